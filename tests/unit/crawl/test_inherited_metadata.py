"""Fields that rules add to documents and that linked pages inherit: single changes, and complete crawls over many days."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.crawl.conditional import _hash_of_fields, generation, mark_after
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.inherited_metadata import MAX_INHERITED, added_by, fitting, lacks_fields, packed
from crawlspace.crawl.run import FetchPage
from crawlspace.decision import Actions
from crawlspace.document import Document
from crawlspace.model import Held, NewUrl, Source, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import HOME, Web

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


# --- complete crawls, over many days and changes of the rules -------------------------------------------------------


ONCE, TWICE = 1, 2


def path(name: str) -> str:
    return HOME + name


class Linked(Web):
    """Pages by name whose links, redirects and rules are set as names; the spider's part of rules.xml is done here."""

    moved: dict[str, str]

    def rules(self, **fields: str) -> None:
        """Write a rules.xml by which pages of that path have a field of that text: `hub="dep=hub"`."""
        written = "".join(
            f'<Rule><Path val="/{name}"/><AddMeta name="{text.partition("=")[0]}" value="{text.partition("=")[2]}"/></Rule>'
            for name, text in fields.items()
        )
        (self.folder / "demo" / "rules.xml").write_text(f"<Rules>{written}</Rules>")

    def leads(self, **names: str) -> None:
        """Set where pages lead: `home="x hub", hub="x"`."""
        for name, to in names.items():
            url = HOME if name == "home" else path(name)
            self.links[url] = [HOME if other == "home" else path(other) for other in to.split()]
            self.pages.setdefault(url, name)
            for other in to.split():
                self.pages.setdefault(path(other), other)

    def work(self, engine: Engine) -> None:
        self.engine = engine
        super().work(engine)

    def times(self) -> Counter[str]:
        """How often each page was asked for in the last crawl."""
        return Counter(url.removeprefix(HOME) for url, _ in self.asked)

    def fields(self, name: str) -> dict[str, str]:
        """What the index has of a page."""
        return self.sink.documents[path(name)].fields

    def have_due(self, *names: str) -> None:
        states = [state for name in names if (state := self.store.get(path(name))) is not None]

        self.store.revise([state.id for state in states], lambda state: Change(structs.replace(state, next_fetch=0)), now=0)

    def _answer(self, fetch: FetchPage) -> Outcome:
        url = fetch.state.url
        if url in self.moved:
            return Outcome(fetch.state.id, url, OutcomeKind.REDIRECTED, 301, redirect_to=self.moved[url])
        outcome = super()._answer(fetch)
        if outcome.document is not None:
            reported = self.engine.recheck(fetch.state).actions
            outcome.link_metadata = reported.fields if self.engine.collection.metadata_along_links else ()
            outcome.document.fields = outcome.added = added_by(reported, fetch.state.inherited)
        return outcome


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> Linked:
    made = Linked(tmp_path, local_store)
    made.moved = {}
    return made


def test_a_change_of_other_rules_takes_no_field_away(web: Linked) -> None:
    web.leads(home="hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    assert web.fields("x") == {"dep": "hub"}
    web.rules(hub="dep=hub", nowhere="a=b")
    web.have_due("x")
    web.crawl()
    assert (web.times(), web.fields("x")) == ({"x": ONCE}, {"dep": "hub"})
    web.crawl(after=31)
    assert (web.times(), web.fields("x")) == ({"": ONCE, "hub": ONCE, "x": ONCE}, {"dep": "hub"})


SET_CHANGES = [
    # rules before and after; the fields of x after the next fetch of all
    ("another value", {"hub": "dep=hub"}, {"hub": "dep=other"}, {"dep": "other"}),
    ("the rule is removed", {"hub": "dep=hub"}, {}, {}),
    ("a rule is added", {}, {"hub": "dep=hub"}, {"dep": "hub"}),
    ("another field", {"hub": "dep=hub"}, {"hub": "of=hub"}, {"of": "hub"}),
    ("one of its own in its place", {"hub": "dep=hub"}, {"hub": "dep=hub", "x": "dep=x"}, {"dep": "x"}),
]


@pytest.mark.parametrize("order", ["x first", "hub first"])
@pytest.mark.parametrize(("title", "before", "after", "fields"), SET_CHANGES, ids=[row[0] for row in SET_CHANGES])
def test_the_index_follows_a_change_of_the_rules_within_the_run_that_fetches_the_source_page(
    web: Linked, title: str, before: dict[str, str], after: dict[str, str], fields: dict[str, str], order: str
) -> None:
    web.leads(home="hub", hub="x")
    web.rules(**before)
    web.crawl()
    web.rules(**after)
    if order == "x first":
        web.have_due("x")
        web.crawl()
        web.have_due("hub")
        web.crawl()
    else:
        web.crawl(after=31)
    assert web.fields("x") == fields
    assert max(web.times().values()) <= TWICE
    web.crawl(after=31)
    assert (web.fields("x"), max(web.times().values())) == (fields, ONCE)


def test_urls_found_before_the_source_page_are_fetched_again_in_the_first_crawl(web: Linked) -> None:
    web.leads(home="x hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    assert (web.times(), web.fields("x")) == ({"": ONCE, "hub": ONCE, "x": TWICE}, {"dep": "hub"})
    web.crawl()
    assert web.asked == []


def test_of_two_source_pages_with_different_fields_the_first_counts_however_often_they_are_fetched(web: Linked) -> None:
    web.leads(home="x one two", one="x", two="x")
    web.rules(one="dep=one", two="dep=two")
    web.crawl()
    assert (web.times()["x"], web.fields("x")) == (TWICE, {"dep": "one"})
    for cycle, due in enumerate(("two", "one", "x two", "two one x", "one two")):
        web.pages[path(due.split()[0])] = f"changed {cycle}"  # asked for whole, so that it hands again
        web.have_due(*due.split())
        web.crawl()
        assert (web.times(), web.fields("x")) == (dict.fromkeys(due.split(), ONCE), {"dep": "one"}), due


def test_when_the_first_leads_there_no_more_the_other_is_heard_though_it_has_not_changed(web: Linked) -> None:
    web.leads(home="x one two", one="x", two="x")
    web.rules(one="dep=one", two="dep=two")
    web.crawl()
    web.leads(one="home")
    web.pages[path("one")] = "leads elsewhere"
    web.crawl(after=31)
    assert web.fields("x") == {"dep": "two"}
    assert max(web.times().values()) <= TWICE
    web.leads(one="x")
    for content in ("leads there again", "and again"):
        web.pages[path("one")] = content
        web.crawl(after=31)
        assert (web.times()["x"], web.fields("x")) == (ONCE, {"dep": "two"})


def test_inherited_metadata_goes_with_its_source_page(web: Linked) -> None:
    web.leads(home="x hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    web.pages[path("hub")] = 404
    web.crawl(after=31)
    assert ("hub" in web.indexed, web.fields("x")) == (False, {})


def test_inherited_metadata_goes_when_the_rules_forbid_its_source_page(web: Linked) -> None:
    web.leads(home="x hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    web.write(start=HOME, rules=f"forbid prefix {HOME}hub\n")
    web.crawl()
    assert (web.times(), web.fields("x")) == ({"x": ONCE}, {})
    web.write(start=HOME)
    web.crawl()
    assert (web.times(), web.fields("x")) == ({"": ONCE, "hub": ONCE, "x": ONCE}, {"dep": "hub"})


def test_inherited_metadata_goes_when_the_held_deletion_of_its_source_page_is_approved(web: Linked) -> None:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    web.leads(home="x hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    web.write(start=HOME, rules=f"forbid prefix {HOME}hub\n")
    web.crawl()
    assert (web.held(), web.fields("x")) == ({"hub": Held.RULES}, {"dep": "hub"}), "as long as it is held, all stays"
    UrlChanges(web.store, clock=web.clock).approve()
    web.crawl(after=1)
    assert (web.times(), web.held(), web.fields("x"), "hub" in web.indexed) == ({"x": ONCE}, {}, {}, False)


def test_inherited_metadata_stays_when_the_deletion_of_its_source_page_is_discarded(web: Linked) -> None:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    web.leads(home="x hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    web.write(start=HOME, rules=f"forbid prefix {HOME}hub\n")
    web.crawl()
    UrlChanges(web.store, clock=web.clock).discard()
    web.write(start=HOME)
    web.crawl()
    assert (web.held(), web.fields("x"), "hub" in web.indexed) == ({}, {"dep": "hub"}, True)


def test_inherited_metadata_goes_when_its_source_page_is_forgotten(web: Linked) -> None:
    web.leads(home="x hub", hub="x")
    web.rules(hub="dep=hub")
    web.crawl()
    web.leads(home="x")
    web.pages[HOME] = "home without the hub"
    hub = web.of(path("hub"))
    UrlChanges(web.store, clock=web.clock).forget([hub.id])
    web.crawl(after=1)
    assert (web.times(), web.fields("x")) == ({"x": ONCE}, {})


def test_pages_that_have_the_field_by_rules_of_their_own_are_fetched_once(web: Linked) -> None:
    names = "sales1 sales2 hr1 hr2"
    web.leads(home=names, sales1=names, sales2=names, hr1=names, hr2=names)
    web.rules(sales="dep=sales", hr="dep=hr")
    web.crawl()
    assert web.times() == dict.fromkeys(["", *names.split()], ONCE)
    assert {name: web.fields(name)["dep"] for name in names.split()} == dict(
        zip(names.split(), ["sales"] * 2 + ["hr"] * 2, strict=True)
    )


def test_pages_whose_links_differ_at_each_fetch_do_not_keep_a_crawl_going(web: Linked) -> None:
    names = [f"{kind}{number}" for kind in "ab" for number in range(10)]
    fetches = count()

    class Differing(dict[str, list[str]]):
        def get(self, url: str, default: object = None) -> list[str]:
            number = next(fetches)
            return [path(name) for place, name in enumerate(names) if url == HOME or (number + place) % 3]

    web.pages = {HOME: "home", **{path(name): name for name in names}}
    web.links = Differing()
    web.rules(a="a=1", b="b=1")
    for after in (0, 31, 31):
        web.crawl(after=after)
        assert max(web.times().values()) <= TWICE
        web.pages = {url: f"{content}." for url, content in web.pages.items()}


SET_ALONG: list[tuple[bool, dict[str, str], dict[str, str]]] = [
    # CRAWLSPACE_METADATA_ALONG_LINKS, the fields of the page behind a link and two redirects, and of the page it links to
    (True, {"dep": "hub", "old": "yes", "first": "1"}, {}),
    (False, {"old": "yes", "first": "1"}, {}),
]


@pytest.mark.parametrize(("along_links", "fields", "further"), SET_ALONG)
def test_redirects_pass_on_what_they_have_inherited(
    web: Linked, along_links: bool, fields: dict[str, str], further: dict[str, str]
) -> None:
    web.settings = {"CRAWLSPACE_METADATA_ALONG_LINKS": along_links}
    web.leads(home="hub", hub="r1", x="further")
    web.moved = {path("r1"): path("r2"), path("r2"): path("x")}
    web.rules(hub="dep=hub", r="old=yes", r1="first=1")
    web.crawl()
    assert (web.fields("x"), web.fields("further")) == (fields, further)
    web.rules(hub="dep=hub", r="old=no", r1="first=1")
    web.crawl(after=31)
    assert web.fields("x") == {**fields, "old": "no"}


def test_a_circle_of_redirects_comes_to_an_end(web: Linked) -> None:
    web.leads(home="r1 r2 r3")
    web.moved = {path("r1"): path("r2"), path("r2"): path("r3"), path("r3"): path("r1")}
    much = "x" * (MAX_INHERITED * 2 // 5)
    web.rules(r1=f"a={much}1", r2=f"b={much}2", r3=f"c={much}3")
    web.crawl()
    assert max(web.times().values()) <= TWICE


def test_of_too_many_fields_those_that_fit_are_inherited_with_one_warning(web: Linked, caplog: pytest.LogCaptureFixture) -> None:
    web.leads(home="hub hub2 r", hub="x", hub2="y")
    web.moved = {path("r"): path("z")}
    web.pages[path("z")] = "z"
    much = "x" * MAX_INHERITED
    web.rules(hub=f"much={much}")
    rules = (web.folder / "demo" / "rules.xml").read_text()
    both = rules.replace('<AddMeta name="much"', '<AddMeta name="dep" value="hub"/><AddMeta name="much"')
    also = '<Rule><Path val="/r"/><AddMeta name="dep" value="r"/><AddMeta name="a" value="{}"/></Rule></Rules>'
    (web.folder / "demo" / "rules.xml").write_text(both.replace("</Rules>", also.format(much)))
    with caplog.at_level(logging.WARNING, logger="crawlspace.crawl.admission"):
        web.crawl()
    reported = [record.getMessage() for record in caplog.records if record.name == "crawlspace.crawl.admission"]
    assert web.fields("hub") == {"dep": "hub", "much": much}
    assert [web.fields(name) for name in "xyz"] == [{"dep": "hub"}, {"dep": "hub"}, {"dep": "r"}]
    assert len(reported) == 1
    assert reported[0].startswith((f"{path('hub')} ", f"{path('r')} "))
    assert "pages it links to lack" in reported[0]


def test_a_page_at_the_depth_limit_passes_metadata_on_to_what_is_known(web: Linked) -> None:
    web.settings["DEPTH_LIMIT"] = 1
    web.leads(home="x hub", hub="x beyond")
    web.rules(hub="dep=hub")
    web.crawl()
    assert (web.times(), web.fields("x")) == ({"": ONCE, "hub": ONCE, "x": TWICE}, {"dep": "hub"})
    assert web.store.get(path("beyond")) is None
    web.crawl(after=31)
    assert (web.times(), web.fields("x")) == ({"": ONCE, "hub": ONCE, "x": ONCE}, {"dep": "hub"})
    web.leads(hub="beyond")
    web.pages[path("hub")] = "leads there no more"
    web.crawl(after=31)
    assert web.fields("x") == {}
