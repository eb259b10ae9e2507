"""Fields that rules add to documents and that linked pages inherit: what a document gets, and when what was inherited no longer holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.crawl.conditional import _hash_of_fields, generation, mark_after
from crawlspace.crawl.inherited_metadata import MAX_INHERITED, added_by, fitting, lacks_fields, packed
from crawlspace.decision import Actions
from crawlspace.document import Document
from crawlspace.model import NewUrl, Source, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine_life import HOME, Web

RED, BLUE = (Actions(fields=(("colour", colour),)) for colour in ("red", "blue"))
NOTHING, WALL = Actions(), Actions(label="wall")

ADDED: list[tuple[Actions, str | None, dict[str, str]]] = [
    # the rule actions of a URL, what it has inherited, the fields of its document
    (NOTHING, None, {}),
    (RED, None, {"colour": "red"}),
    (WALL, None, {"source": "wall"}),
    (NOTHING, '{"colour":"blue"}', {"colour": "blue"}),
    (RED, '{"colour":"blue","size":"9"}', {"colour": "red", "size": "9"}),
    (WALL, '{"source":"floor"}', {"source": "wall"}),
    (Actions(label="wall", fields=(("source", "floor"),)), None, {"source": "wall"}),
]


@pytest.mark.parametrize(("reported", "inherited", "fields"), ADDED)
def test_the_fields_of_a_document(reported: Actions, inherited: str | None, fields: dict[str, str]) -> None:
    assert added_by(reported, inherited) == fields


PACKED: list[tuple[dict[str, str], str | None]] = [
    ({}, None),
    ({"b": "ü", "a": "1"}, '{"b":"ü","a":"1"}'),
    (added_by(RED, '{"a":"1","colour":"blue"}'), '{"colour":"red","a":"1"}'),  # what is said of the URL itself goes first
]


@pytest.mark.parametrize(("fields", "text"), PACKED, ids=["none", "in their order", "its own first"])
def test_the_metadata_that_is_inherited(fields: dict[str, str], text: str | None) -> None:
    assert packed(fields.items()) == text


MUCH = "x" * (MAX_INHERITED - len('{"a":""}'))
ROOM = "x" * (MAX_INHERITED - len('{"a":"","b":"1"}'))

FITTING: list[tuple[dict[str, str], list[str], list[str]]] = [
    # fields, the names of those that are inherited, of those that are left out
    ({"a": MUCH}, ["a"], []),
    ({"a": MUCH + "x"}, [], ["a"]),
    ({"a": MUCH + "x", "b": "1"}, ["b"], ["a"]),
    ({"a": MUCH, "b": "1"}, ["a"], ["b"]),
    ({"a": ROOM, "b": "1"}, ["a", "b"], []),
    ({"a": ROOM, "b": "12", "c": "2"}, ["a", "c"], ["b"]),
    ({"a": ROOM, "b": "\n", "c": "2", "d": "3"}, ["a", "c"], ["b", "d"]),
]


@pytest.mark.parametrize(("fields", "taken", "left_out"), FITTING)
def test_of_too_many_fields_those_that_fit_are_inherited(fields: dict[str, str], taken: list[str], left_out: list[str]) -> None:
    inherited = packed(fields.items())
    assert inherited is not None
    assert fitting(inherited) == (packed((name, fields[name]) for name in taken), left_out)


LACKS: list[tuple[dict[str, str], Actions, str | None, bool]] = [
    # the fields its document was stored with, the present rule actions, what it inherits now, whether it is to be fetched anyway
    ({}, NOTHING, None, False),
    ({}, WALL, None, True),
    ({"colour": "red"}, RED, None, False),
    ({"colour": "red"}, NOTHING, '{"colour":"red"}', False),
    ({"colour": "red"}, BLUE, None, True),
    ({"colour": "red"}, NOTHING, None, True),
    ({}, NOTHING, '{"colour":"red"}', True),
]


@pytest.mark.parametrize(("stored", "reported", "inherited", "lacks"), LACKS)
def test_a_document_with_other_fields_than_it_is_to_have(
    stored: dict[str, str], reported: Actions, inherited: str | None, lacks: bool
) -> None:
    outcome = Outcome(1, HOME, OutcomeKind.DOCUMENT, 200, added=stored, declared_type="text/html")
    outcome.document = Document(HOME, title="Home", fields=stored)
    unmarked = UrlState(1, 1, HOME, "a.example:80", checksum=b"0" * 16)
    mark, _ = mark_after(outcome, unmarked, before=0)
    state = UrlState(1, 1, HOME, "a.example:80", checksum=b"0" * 16, fields_mark=mark, inherited=inherited)
    assert lacks_fields(state, reported) is lacks
    assert not lacks_fields(structs.replace(state, checksum=None), reported), "what is no document has no fields"


EARLIER_MARKS = [
    # fields of the document, the mark that an earlier version gave it (of the fields alone), whether it is out of date
    ({}, 0, False),
    ({"own": "1"}, 0, True),
    ({"own": "1"}, _hash_of_fields({"own": "1"}, 16) << 16, False),
    ({"own": "1"}, _hash_of_fields({"own": "2"}, 16) << 16, True),
    ({}, _hash_of_fields({"own": "1"}, 16) << 16, True),
]


@pytest.mark.parametrize(("fields", "before", "outdated"), EARLIER_MARKS)
def test_documents_of_an_earlier_version_are_not_all_sent_again(fields: dict[str, str], before: int, outdated: bool) -> None:
    document = Document(HOME, title="Home", fields=fields)
    outcome = Outcome(1, HOME, OutcomeKind.DOCUMENT, 200, document=document)
    known = UrlState(1, 1, HOME, "a.example:80", checksum=b"0" * 16)
    mark, is_outdated = mark_after(outcome, known, before=before)
    assert is_outdated is outdated
    assert not mark_after(outcome, known, before=mark)[1]
    document.title = "Another"
    assert mark_after(outcome, known, before=mark)[1]


ADD_RED, ADD_BLUE, LABEL, LAST = (
    f'<Rule><Path val="/a"/>{action}</Rule>'
    for action in ('<AddMeta name="c" value="red"/>', '<AddMeta name="c" value="blue"/>', '<Source name="s"/>', "<NoFollow/>")
)
ALONG, NOT_ALONG = True, False

CHANGES = [
    # rules and whether fields are inherited along links, before and after; whether pages may hand something else now
    (ADD_RED, ALONG, ADD_RED, ALONG, False),
    (ADD_RED, ALONG, LAST + ADD_RED, ALONG, True),
    (ADD_RED, ALONG, ADD_RED + LAST, ALONG, True),
    (ADD_RED, ALONG, ADD_BLUE, ALONG, True),
    (ADD_RED, ALONG, ADD_RED + LABEL, ALONG, True),
    (ADD_RED, ALONG, ADD_RED, NOT_ALONG, True),
    (ADD_RED, ALONG, "", ALONG, True),
    ("", ALONG, ADD_RED, ALONG, True),
    ("", ALONG, "", NOT_ALONG, False),
    (LAST, ALONG, LAST, NOT_ALONG, False),
]


@pytest.mark.parametrize(("before", "along_before", "after", "along_after", "asks"), CHANGES)
def test_metadata_is_kept_and_each_page_gets_an_unconditional_get_where_it_may_pass_on_other_fields(
    tmp_path: Path, before: str, along_before: bool, after: str, along_after: bool, asks: bool
) -> None:
    store = MemoryStore(sinks=("embedded",))
    web = Web(tmp_path, store)

    def opened(rules: str, *, along: bool) -> int:
        (tmp_path / "demo" / "rules.xml").write_text(f"<Rules>{rules}</Rules>")
        web.settings = {"CRAWLSPACE_METADATA_ALONG_LINKS": along}
        web.open()
        return generation(store)

    first = opened(before, along=along_before)
    url = parse(f"{HOME}b")
    store.discover([NewUrl(url.key, url.text, url.site, Source.INDEX, 0, 1, 0, 2, inherited='{"c":"x"}')], now=1)
    second = opened(after, along=along_after)
    state = store.get(url.text)
    assert state is not None
    assert state.inherited == '{"c":"x"}'
    assert (second > first) is asks
    third = opened(after, along=along_after)
    assert third == second
