"""What Solr is asked for: a search text, filters and languages as a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from crawlspace.index.solr.search import filters_of, query_of
from crawlspace.index.words import Term
from tests.unit.index.search_requests import request


def analysed(_: str, term: Term) -> Sequence[str]:
    """An analyser that leaves out "the"."""
    return [word for word in term.words if word != "the"]


def short(query: Any) -> str:
    """A query in few characters: `w` in any field, `w..` a beginning, `+` both, `|` either, `-` not."""
    ((kind, body),) = query.items()
    match kind:
        case "edismax":
            return str(body["query"])
        case "lucene":
            return str(body["query"])
        case "boost":
            return f"{body['query']['prefix']['query']}.." if body["query"]["prefix"]["f"] == "address" else ""
        case "term":
            return f"{body['f']}={body['query']}"
        case "terms":
            return f"{body['f']}={','.join(body['query'].split(body['separator']))}"
        case "prefix":
            return f"{body['f']}={body['query']}.."
    parts = " + ".join(map(short, body.get("must", [])))
    either = " | ".join(filter(None, map(short, body.get("should", []))))
    without = "".join(f" -{short(one)}" for one in body.get("must_not", []))
    return f"({parts}{either}{without})"


QUERIES: tuple[tuple[str, str], ...] = (
    ("leave", '("leave")'),
    ("annual the leave", '("annual" + "leave")'),
    ("the", "(*:*)"),
    ('"annual leave" now', '("annual leave" + "now")'),
    ("e-mail", '("e-mail")'),
    ("Holi*", "((holi..))"),
    ("e-ma*", '(("e" + (ma..)))'),
    ("leave -old -ol* -the", '("leave" -"old" -(ol..))'),
    ("a\\b OR", '("a\\\\b" + "OR")'),
    ("休暇*", '("休暇")'),
)


@pytest.mark.parametrize(("text", "expected"), QUERIES)
def test_query(text: str, expected: str) -> None:
    assert short(query_of(request(text, fields=()), analysed)) == expected


OF_SOME: tuple[tuple[str, str], ...] = (
    ("annual the leave", "((annual | leave))"),
    ("e-mail title:x", r"((e\-mail | title\:x))"),
    ("OR leave", "((or | leave))"),
    ('a b "c d" -f', '("c d" + (a | b) -"f")'),
    ("the", "-*:*"),
)


@pytest.mark.parametrize(("text", "expected"), OF_SOME)
def test_query_for_some_of_the_words(text: str, expected: str) -> None:
    assert short(query_of(request(text, fields=(), of_some=True), analysed)) == expected


def test_each_language_is_asked_by_its_fields() -> None:
    query: Any = query_of(request("Urlaub", ["de", "de-AT", "fr"]), analysed)
    german, other = (one["bool"] for one in query["bool"]["should"])
    assert german["must"][0]["edismax"]["qf"] == "title_txt_de^10 headings_txt_de^5 description_txt_de^3 text_txt_de^1 address^3"
    assert list(map(short, german["filter"])) == ["language=de,de-AT"]
    assert other["must"][0]["edismax"]["qf"].startswith("title_txt_other^10 ")
    assert list(map(short, other["must_not"])) == ["language=de,de-AT"]


FILTERS: tuple[tuple[list[str], list[str]], ...] = (
    ([], []),
    (["host=A.test"], ["host=a.test"]),
    (["host=a.test:81"], ["(host=a.test + (url=http://a.test:81/.. | url=https://a.test:81/..))"]),
    (["host=a.test", "host=b.test"], ["(host=a.test | host=b.test)"]),
    (["type=Text/html"], ["(content_type=text/html | content_type=text/html;..)"]),
    (["type=pdf*"], [r"content_type:*\/pdf\* OR content_type:*\/pdf\*\;*"]),
    (["modified=2026-01-01.."], ["modified:[2026-01-01T00:00:00Z TO *]"]),
    (["modified=2026-01-02"], ["modified:[2026-01-02T00:00:00Z TO 2026-01-02T23:59:59.999Z]"]),
    (["type=a b) OR *:*"], [r"content_type:*\/a\ b\)\ or\ \*\:\* OR content_type:*\/a\ b\)\ or\ \*\:\*\;*"]),
    (["language=de"], ["language=de,de-AT"]),
    (["language=fr"], ["language="]),
)


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_filters(filters: list[str], expected: list[str]) -> None:
    assert list(map(short, filters_of(request("x", ["de", "de-AT"], filters=filters)))) == expected
