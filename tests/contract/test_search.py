"""What a search finds in every index that can be searched; in the tables, documents are named by their place in `DOCUMENTS`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.document import NO_SNIPPET, Document, Part, listed
from crawlspace.errors import UsageError
from crawlspace.index.closeness import REORDERED
from crawlspace.index.orders import part_id
from crawlspace.index.search import read_facets, read_filter
from tests.conftest import assert_same
from tests.contract.searching import DELETED, DOCUMENTS, KINDS, SERVERS, Searched, searched


@pytest.fixture(scope="module", params=KINDS)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    with searched(request.param, tmp_path_factory.mktemp("index")) as made:
        made.fill(DOCUMENTS)
        made.delete(DELETED)
        yield made


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Searched]:
    with searched(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Searched]:
    with searched(request.param, tmp_path) as made:
        made.fill(DOCUMENTS)
        made.delete(DELETED)
        yield made


# Words, and the documents that have all of them.
WORDS: tuple[tuple[str, list[int]], ...] = (
    ("leave", [0, 1]),
    ("LEAVES", [0, 1]),
    ("annual leave", [0, 1]),
    ("leave annual requests", [0]),
    ('"annual leave"', [0, 1]),
    ('"leave annual"', []),
    ("handbook leave", [0, 1]),
    ("leave -2024", [0]),
    ("req*", [0]),
    ("leav* -req*", [1]),
    ("2024", [1]),
    ("2025", []),
    ("antrag", [2]),
    ("antrage", [2]),
    ("bücher", [3]),
    ("休暇", [4]),
    ("年次休暇", [4]),
    ("次年", []),
    ("e-mail", [5]),
    ("jatlh zebra", []),
    ("gone", []),
    ("mark", []),
)
# What has a meaning in the query language of a server, and is read as words.
SYNTAX: tuple[tuple[str, list[int]], ...] = (
    ("title:leave", []),
    ("*:* leave", [0, 1]),
    ("leave OR zebra", []),
    ("{!term f=id}x", []),
    ("${x:leave} zebra", []),
    ("${x}", [5]),
    ("$q", []),
    ('_query_:"*:*"', []),
    ("[* TO *] zebra", []),
    ('"annual leave', [0, 1]),
    ("leave)) ((", [0, 1]),
    ("leave\\", [0, 1]),
    ("leave~2 zebra", []),
    ("le?ve", []),
    ("/l.*e/", []),
    ("leave && || !", [0, 1]),
    ("leave^", [0, 1]),
)


@pytest.mark.parametrize(("words", "expected"), [*WORDS, *SYNTAX])
def test_words(filled: Searched, words: str, expected: list[int]) -> None:
    assert_same(filled.found(words), [DOCUMENTS[number].url for number in expected])


# What the analysers of servers make of words.
ANALYSED: tuple[tuple[str, list[int]], ...] = (("requests the leave", [0]), ('leave -"annual leaves"', []))


def test_words_as_servers_analyse_them(server: Searched) -> None:
    for words, expected in ANALYSED:
        assert_same(server.found(words), [DOCUMENTS[number].url for number in expected])


FILTERED: tuple[tuple[list[str], list[int]], ...] = (
    (["language=de"], [2, 3]),
    (["language=DE-at"], [3]),
    (["language=d"], []),
    (["language=ja", "language=tlh"], [4, 5]),
    (["host=A.test"], [0, 1]),
    (["host=b.test:8080", "language=de"], [2]),
    (["host=${x}"], []),
    (["type=pdf"], [2]),
    (["type=application/pdf"], [2]),
    (["type=text/*"], []),
    (["type=x) OR *:*"], []),
    (["modified=2026-01-01.."], [0, 4]),
    (["modified=2026-01-01..2026-01-31"], [4]),
    (["modified=2024-02-01"], [1]),
    (["modified=..2024-01-31"], []),
    (["published=2024-01-01"], [1]),
    (["published=2024-01-02.."], [0, 2]),
    (["published=2026-01-16..2026-01-31"], [2]),
    (["published=..2026-01-15"], [0, 1]),
    (["author=Ann"], [0, 1]),
    (["author=Bo", "author=Cy"], [0]),
    (["author=An"], []),
    (["keywords=forms", "author=Ann"], [0]),
    (["fields.image=http://a.test/i.png"], [1]),
    (["fields.type=Article"], [2]),
    (["fields.team=a b"], [2]),
    (["fields.team=a"], []),
    (["fields.none=a"], []),
)


@pytest.mark.parametrize(("filters", "expected"), FILTERED)
def test_filters(filled: Searched, filters: list[str], expected: list[int]) -> None:
    found = filled.sink.search("test", filters=list(map(read_filter, filters)))
    assert_same([hit.url for hit in found.hits], [DOCUMENTS[number].url for number in expected])
    assert found.total == len(expected)


def test_facets_count_what_is_found_and_not_filtered(filled: Searched) -> None:
    found = filled.sink.search("test", facets=["host", "language", "type"], limit=1).facets
    assert {name: values for name, values in found.items() if name != "host"} == {
        "language": [("de", 1), ("de-AT", 1), ("en", 1), ("en-GB", 1), ("ja", 1), ("tlh", 1)],
        "type": [("text/html", 2), ("application/pdf; a=b", 1)],
    }
    assert found["host"][0] == ("a.test", 2)
    html = [read_filter("type=html")]
    assert filled.sink.search("test", filters=html, facets=["type"]).facets == {"type": [("text/html", 2)]}


def test_facets_of_fields(filled: Searched) -> None:
    names = read_facets(["author", "keywords", "site_name", "fields.type"])
    assert filled.sink.search("test", facets=names, limit=1).facets == {
        "fields.author": [("Ann", 2), ("Bo", 1)],
        "fields.keywords": [("leave", 2), ("forms", 1)],
        "fields.site_name": [],
        "fields.type": [("Article", 1)],
    }
    found = filled.sink.search("test", facets=names[:1], filters=[read_filter("keywords=forms")]).facets
    assert found == {"fields.author": [("Ann", 1), ("Bo", 1)]}


def test_facets_of_a_field_of_ones_own(filled: Searched) -> None:
    server = getattr(filled.sink, "server", None)
    if server is not None and server.product.startswith("OpenSearch"):
        with pytest.raises(
            UsageError, match=r"OpenSearch cannot count the values of fields\.team: leave out --facet fields\.team"
        ):
            filled.sink.search("test", facets=["fields.team"])
    else:
        assert filled.sink.search("test", facets=["fields.team"]).facets == {"fields.team": [("a b", 1)]}


def test_a_snippet_does_not_show_what_the_page_keeps_back(filled: Searched) -> None:
    for words in ("4711", "Firma 4711", "die nummer"):
        (hit,) = filled.sink.search(words).hits
        assert (hit.url, listed(hit.fields[NO_SNIPPET])) == (DOCUMENTS[3].url, ["1", "Nummer 4711"])
        assert hit.snippet.replace("[", "").replace("]", "") == "Die Firma … mit der … und 2021"


def test_what_a_hit_shows(filled: Searched) -> None:
    (hit,) = filled.sink.search("jatlh", marks=("<", ">")).hits
    assert (hit.url, hit.title, hit.snippet) == ("http://x.test/k", "", "<jatlh> the e-mail")
    assert (hit.language, hit.fields, hit.duplicates) == ("tlh", {"color": "red"}, ("http://x.test/l",))


def test_pages_with_some_of_the_words_follow_where_few_have_all(filled: Searched) -> None:
    found = filled.sink.search("requests annual")
    assert [(hit.url, hit.has_all_words) for hit in found.hits] == [(DOCUMENTS[0].url, True), (DOCUMENTS[1].url, False)]
    assert (found.total, found.hits[1].snippet) == (1, "[Annual] leaves of 2024.")
    assert len(filled.sink.search("requests annual", limit=1).hits) == 1
    assert filled.sink.search("requests annual", offset=1).hits == ()
    assert filled.sink.search('"requests for" zebra').hits == ()


# Words that no document has all of, and the documents that have a part of them.
PARTS: tuple[tuple[str, list[int]], ...] = (
    ("requests-zebra", [0]),
    ("requests-zebra -leave", []),
    ("jatlh zebra", [5]),
    ("申請休暇", [4]),
    ('zebra lion "annual leave"', []),
)


@pytest.mark.parametrize(("words", "expected"), PARTS)
def test_a_part_of_the_words_is_enough_where_no_page_has_all(filled: Searched, words: str, expected: list[int]) -> None:
    found = filled.sink.search(words)
    assert found.total == 0
    assert_same([hit.url for hit in found.hits], [DOCUMENTS[number].url for number in expected])


@pytest.mark.parametrize("words", ["", "-leave", "+", "*:*"])
def test_nothing_to_search_for(filled: Searched, words: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        filled.sink.search(words)


def test_more_than_are_put_in_order_come_in_pages_too(empty: Searched) -> None:
    number = REORDERED + 30
    empty.fill([Document(f"http://e.test/{at}", "Word", text=f"word {'filler ' * at}") for at in range(number)])
    whole = empty.sink.search("word", limit=number).hits
    assert len({hit.url for hit in whole}) == number
    paged = [hit for offset in range(0, number, 20) for hit in empty.sink.search("word", limit=20, offset=offset).hits]
    assert [hit.url for hit in paged] == [hit.url for hit in whole]
    if not empty.is_emulated:  # it reports the best score of the page in place of that of all hits
        assert [pytest.approx(hit.score) for hit in paged] == [hit.score for hit in whole]


def test_the_best_of_many_is_shown_where_few_are_asked_for(empty: Searched) -> None:
    often = Document("http://e.test/often", "word of all the others", text="word " * 20)
    heading = Document("http://e.test/other", "Title", text="word", headings=["Word", "filler " * 200])
    empty.fill([often, heading])
    assert empty.found("word", limit=1) == [heading.url]


MANUAL = Document(
    "http://m.test/manual",
    "Manual",
    language="en",
    text="Requests are sent to your manager. Managers answer requests. Nothing else. secret",
    fields={NO_SNIPPET: "secret"},
    parts=[
        Part("send", "Send", ["Manual", "Send"], "Requests are sent to your manager.", "send"),
        Part("answer", "Answer", ["Manual", "Answer"], "Managers answer requests.", "a b"),
        Part("else", text="Nothing else. secret"),
        Part("request", "Your request", ["Manual", "Your request"], "Nothing."),
    ],
)
# Words, and for each of the best parts its key and snippet.
OF_PARTS: tuple[tuple[str, list[tuple[str, str]]], ...] = (
    ("managers sent", [("send", "Requests are [sent] to your [manager].")]),
    ("answer else", [("answer", "Managers [answer] requests."), ("else", "Nothing [else]. …")]),
    ('"nothing else"', [("else", "[Nothing else]. …")]),
    ("secret", []),
    ("manual nothing", [("request", "[Nothing].")]),
)


@pytest.mark.parametrize(("words", "expected"), OF_PARTS)
def test_a_hit_has_its_best_parts(empty: Searched, words: str, expected: list[tuple[str, str]]) -> None:
    empty.fill([MANUAL, Document("http://m.test/other", "Other", language="en", text="other")])
    (hit,) = empty.sink.search(words).hits
    assert [(part.key, part.snippet) for part in hit.parts] == expected
    by_key = {part.key: (part.id, part.url, part.headings) for part in hit.parts}
    assert by_key.get("answer", ("", f"{MANUAL.url}#a%20b", ["Manual", "Answer"]))[1:] == (
        f"{MANUAL.url}#a%20b",
        ["Manual", "Answer"],
    )
    assert {key: id for key, (id, _, _) in by_key.items()} == {key: part_id(MANUAL.url, key) for key in by_key}


def test_what_no_snippet_may_show_is_not_in_those_of_parts(empty: Searched) -> None:
    """Its words are joined by spaces, and a part has lines, lists and tables."""
    part = Part("list", "L", ["L"], "an apple\n\n- secret one\n- secret two\n\n| secret | three |\n| --- | --- |\n\nend")
    fields = {NO_SNIPPET: '["secret one secret two", "secret three"]'}
    text = "an apple secret one secret two secret three end"
    empty.fill([Document("http://m.test/hidden", "Hidden", language="en", text=text, fields=fields, parts=[part])])
    (hit,) = empty.sink.search("apple").hits
    assert [one.snippet.replace("…", "").split() for one in hit.parts] == [["an", "[apple]", "end"]]


def test_other_collections_in_the_index_are_left_out(server: Searched) -> None:
    other = server.of("other")
    server.fill([Document("http://o.test/", "Annual leave", language="fr", text="leave")], sink=other)
    assert_same(server.found("leave"), [DOCUMENTS[0].url, DOCUMENTS[1].url])
    assert [hit.url for hit in other.search("leave").hits] == ["http://o.test/"]
    assert server.sink.search("test", facets=["host"]).total == len(DOCUMENTS)


@pytest.mark.parametrize(("limit", "offset"), [(10, 10_000), (10_001, 0), (11, 9_990)])
def test_a_server_shows_the_first_ten_thousand_hits(server: Searched, limit: int, offset: int) -> None:
    with pytest.raises(UsageError, match="a search server shows the first 10,000: narrow the search"):
        server.sink.search("leave", limit=limit, offset=offset)
