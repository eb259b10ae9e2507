"""What a person types, and the query made of it."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import UsageError
from crawlspace.index.embedded_schema import TOKENIZER
from crawlspace.index.ideographs import MARK
from crawlspace.index.words import read_query

DATABASE = apsw.Connection(":memory:")
DATABASE.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
TOKENS = DATABASE.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))


def tokens(text: str) -> Sequence[str]:
    found = TOKENS(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return [str(word) for word in found]


def no_forms(_: str) -> tuple[str, ...]:
    return ()


def with_s(word: str) -> tuple[str, ...]:
    return (f"{word}s",)


QUERIES = (
    ("one", '"one"'),
    ("One TWO", '"one" AND "two"'),
    ('"one two" three', '"one two" AND "three"'),
    ('"one two', '"one two"'),
    ("one* two", '"one" * AND "two"'),
    ('"one tw"*', '"one tw" *'),
    ("one -two", '("one") NOT ("two")'),
    ('one -"two three" -four*', '("one") NOT ("two three" OR "four" *)'),
    ("AND OR NOT NEAR(a b)", '"and" AND "or" AND "not" AND "near a" AND "b"'),
    ("title:x c++ e-mail", '"title x" AND "c" AND "e mail"'),
    ("one + ^ -", '"one"'),
    ("one\0two", '"one" AND "two"'),
    ("Café", '"cafe"'),
    ("管理者", '"管 理 者"'),
    ("apt-get命令 设置", '"apt get 命 令" AND "设 置"'),
    ("「文件、系统」", f'"文 件 {MARK} 系 统"'),
    ("웹서버 설정", '"웹 서 버" AND "설 정"'),
    ("东京*", '"东 京" *'),
)


@pytest.mark.parametrize(("words", "query"), QUERIES)
def test_query(words: str, query: str) -> None:
    assert read_query(words, tokens, no_forms).fts == query


WITH_FORMS = (
    ("one", '("one" OR "ones")'),
    ('one "two" three* e-mail -four', '(("one" OR "ones") AND "two" AND "three" * AND "e mail") NOT ("four")'),
)


@pytest.mark.parametrize(("words", "query"), WITH_FORMS)
def test_plain_words_are_meant_in_all_forms(words: str, query: str) -> None:
    found = read_query(words, tokens, with_s)
    assert found.fts == query
    DATABASE.execute("SELECT * FROM t WHERE t MATCH ?", (query,)).fetchall()


OF_SOME = (
    ("one", ""),
    ('"one two"', ""),
    ("one one", ""),
    ("one two", '("one" OR "two")'),
    ("e-mail", '("e" OR "mail")'),
    ('one "two three" -four', ""),
    ('one two "three four" fi* -six', '("three four" AND "fi" * AND ("one" OR "two")) NOT ("six")'),
    ("管理者", '("管 理" OR "理 者")'),
    ("apt管理", '("apt" OR "管 理")'),
    ("管理", ""),
)


@pytest.mark.parametrize(("words", "query"), OF_SOME)
def test_query_for_some_of_the_words(words: str, query: str) -> None:
    assert read_query(words, tokens, no_forms).fts_of_some == query


@pytest.mark.parametrize("words", ["", "  ", "-one", "*", '""', "+ -", "-管理", MARK, "、"])
def test_nothing_to_search_for(words: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        read_query(words, tokens, no_forms)


@given(st.text(alphabet=st.one_of(st.sampled_from('"*-+^():{} aAND\0管、서' + MARK), st.characters()), max_size=30))
def test_no_text_is_an_error_of_syntax(words: str) -> None:
    try:
        query = read_query(words, tokens, no_forms)
    except UsageError:
        return
    for match in filter(None, (query.fts, query.fts_of_some)):
        DATABASE.execute("SELECT * FROM t WHERE t MATCH ?", (match,)).fetchall()


def test_a_very_long_text_is_no_error() -> None:
    for words in ("one two " * 2000, "管理者" * 2000, "-one " * 2000 + "two"):
        query = read_query(words, tokens, no_forms)
        for match in filter(None, (query.fts, query.fts_of_some)):
            DATABASE.execute("SELECT * FROM t WHERE t MATCH ?", (match,)).fetchall()
