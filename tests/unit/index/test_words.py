"""What a person types, and the query made of it."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import UsageError
from crawlspace.index.words import fts_query

QUERIES = (
    ("one", '"one"'),
    ("one two", '"one" AND "two"'),
    ('"one two" three', '"one two" AND "three"'),
    ('"one two', '"one two"'),
    ("one* two", '"one*" * AND "two"'),
    ('"one tw"*', '"one tw" *'),
    ("one -two", '("one") NOT "two"'),
    ('one -"two three" -four*', '("one") NOT "two three" NOT "four*" *'),
    ("AND OR NOT NEAR(a b)", '"AND" AND "OR" AND "NOT" AND "NEAR(a" AND "b)"'),
    ("title:x c++ e-mail", '"title:x" AND "c++" AND "e-mail"'),
    ("one + ^ -", '"one"'),
    ("one\0two", '"one" AND "two"'),
)


@pytest.mark.parametrize(("words", "query"), QUERIES)
def test_query(words: str, query: str) -> None:
    assert fts_query(words) == query


@pytest.mark.parametrize("words", ["", "  ", "-one", "*", '""', "+ -"])
def test_nothing_to_search_for(words: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        fts_query(words)


@given(st.text(alphabet=st.one_of(st.sampled_from('"*-+^():{} aAND\0'), st.characters()), max_size=30))
def test_no_text_is_an_error_of_syntax(words: str) -> None:
    database = apsw.Connection(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    try:
        query = fts_query(words)
    except UsageError:
        return
    database.execute("SELECT * FROM t WHERE t MATCH ?", (query,)).fetchall()
