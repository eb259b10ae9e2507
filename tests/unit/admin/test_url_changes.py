"""What a person changes by command: each state that a URL can be in, and what each command makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.admin.url_changes import ChangeCounts, NotChanged, Selection, UrlChanges, read_prefix, read_url
from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.config.sinks import EMBEDDED, read_sinks
from crawlspace.crawl.admission import Admission, CandidateChecker
from crawlspace.crawl.rule_changes.reconcile import RULES_HASH
from crawlspace.crawl.startup import build_space
from crawlspace.document import Document
from crawlspace.errors import UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.model import Held, NewUrl, Source, State, UrlState
from crawlspace.runtime.session.paths import StateFile
from crawlspace.state.changes import Change, Effects
from crawlspace.state.sqlite.file import CrawlLock
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.draining import drain_all

NOW = 1_750_000_000
LATER, NEVER = NOW + 86_400, None
URL = "http://www.example.com/a"

Row = tuple[State, int | None, bool, Held | None, int | None]  # state, status, has a document, held, next fetch

PENDING = (State.PENDING, None, False, None, NEVER)
DOCUMENT = (State.DONE, 200, True, None, LATER)
MISSING = (State.GONE, 404, False, None, LATER)
FAILING = (State.FAILED, 503, True, Held.HOST, LATER)
MANY = (State.GONE, 404, True, Held.MANY, LATER)
RULES = (State.DONE, 200, True, Held.RULES, NEVER)

# as it is known, and what becomes of it: approved, discarded, crawled again, its errors cleared; "" where it stays as it is
LIVES: list[tuple[Row, str, str, str, str]] = [
    (PENDING, "", "", "pending never", ""),
    (DOCUMENT, "", "", "done 200 document due", ""),
    (MISSING, "", "", "gone 404 due", "pending never"),
    (FAILING, "forgotten", "failed 503 document later", "failed 503 document held:host due", "failed 503 document due"),
    ((State.FAILED, 503, False, Held.HOST, LATER), "", "", "failed 503 held:host due", "pending never"),
    (MANY, "forgotten", "gone 404 document later", "gone 404 document held:many due", "gone 404 document due"),
    (
        (State.REDIRECTED, 301, True, Held.MANY, LATER),
        *("redirected 301 later", "redirected 301 document later", "redirected 301 document held:many due", ""),
    ),
    (RULES, "excluded 760 never", "done 200 document never", "", ""),
    ((State.FAILED, 503, True, Held.RULES, NEVER), "excluded 760 never", "failed 503 document never", "", ""),
    ((State.DONE, 200, True, None, NEVER), "", "", "", ""),
    ((State.EXCLUDED, 740, False, None, LATER), "", "", "excluded 740 due", ""),
    ((State.GONE, None, False, None, NEVER), "", "", "gone due", "pending never"),  # an imported error
    ((State.FAILED, None, True, None, NEVER), "", "", "failed document due", "failed document due"),
    ((State.EXCLUDED, 760, False, None, NEVER), "", "", "", ""),
    ((State.EXCLUDED, 761, False, None, NEVER), "", "", "", ""),
]


COMMANDS: list[Callable[[UrlChanges], ChangeCounts]] = [
    UrlChanges.approve,
    UrlChanges.discard,
    lambda url_changes: url_changes.recrawl([1]),
    UrlChanges.clear_errors,
]


@pytest.mark.parametrize("row", LIVES, ids=lambda row: shown_row(row[0]))
def test_what_becomes_of_a_url(row: tuple[Row, str, str, str, str]) -> None:
    before, *expected = row
    for number, (command, after) in enumerate(zip(COMMANDS, expected, strict=True)):
        store = known((URL, before))
        at_first = shown(store, URL)
        made = command(keeper(store))
        assert shown(store, URL) == (after or at_first), number
        assert (made.changed, made.renewed) == (int(bool(after)), int(after == "pending never")), number


@pytest.mark.parametrize("before", [row[0] for row in LIVES], ids=lambda row: shown_row(row))
def test_whatever_is_known_can_be_forgotten(before: Row) -> None:
    store = known((URL, before))
    assert keeper(store).forget([1]).changed == 1
    assert shown(store, URL) == "forgotten"
    assert indexed(store) == []


def test_what_is_fetched_at_this_moment_is_left_alone_but_for_forgetting() -> None:
    for command in COMMANDS:
        store = known((URL, FAILING))
        store.lease("www.example.com:80", 1, now=LATER, until=LATER + 600)
        before = store.get(URL)
        made = command(keeper(store, crawled=True))
        assert (made.changed, made.left) == (0, {NotChanged.FETCHED_NOW: 1})
        assert store.get(URL) == before
        assert command(keeper(store)).changed == 1, "a lease that a dead crawl has left means nothing"
    store = known((URL, DOCUMENT))
    store.lease("www.example.com:80", 1, now=LATER, until=LATER + 600)
    assert keeper(store, crawled=True).forget([1]).changed == 1


def test_urls_that_are_not_changed_are_reported() -> None:
    store = known((URL, PENDING), (f"{URL}/b", RULES), (f"{URL}/c", (State.EXCLUDED, 760, False, None, NEVER)))
    assert keeper(store).recrawl([1]).changed == 1, "it waits in source user from now on"
    assert store.get(URL).source is Source.USER  # type: ignore[union-attr]
    assert list(keeper(store).recrawl([1, 2, 3, 4]).of_the_rest()) == [
        "1 URL waits to be fetched for the first time, in source user, and is due already",
        "2 are outside the crawl space, and are not changed",
    ]


def test_only_what_is_held_for_a_reason() -> None:
    store = known((URL, FAILING), (f"{URL}/b", MANY), (f"{URL}/c", RULES))
    assert keeper(store).approve(Held.MANY).changed == 1
    assert keeper(store).discard(Held.HOST).changed == 1
    assert [state.url for state in store.urls(held=True)] == [f"{URL}/c"]
    assert store.get_meta(RULES_HASH) == "applied"


def test_the_next_start_judges_again_what_the_rules_exclude_and_a_person_keeps() -> None:
    store = known((URL, RULES))
    keeper(store).discard()
    assert store.get_meta(RULES_HASH) == ""
    store = known((URL, FAILING))
    keeper(store).discard()
    assert store.get_meta(RULES_HASH) == "applied"


def test_a_duplicate_that_is_held_too_goes_with_the_page_that_it_represents() -> None:
    store = known(*((f"{URL}{number}", FAILING) for number in range(3)), checksum=bytes(16))
    assert sum(store.held_numbers().values()) == 1
    assert keeper(store).approve().changed == 3
    assert (indexed(store), sum(store.held_numbers().values())) == ([], 0)


def test_the_document_of_a_duplicate_takes_the_place_of_one_that_is_forgotten() -> None:
    store = known((URL, DOCUMENT), (f"{URL}b", DOCUMENT), checksum=bytes(16))
    keeper(store).forget([1])
    assert indexed(store) == [f"{URL}b"]


# what is asked for -> which URLs, by their place below
URLS = [
    ("http://a.example/x/1", MISSING),
    ("http://a.example:8080/x/1", DOCUMENT),
    ("http://b.example/", FAILING),
    ("http://b.example/y", (State.REDIRECTED, 302, False, None, LATER)),
]
SELECTIONS: list[tuple[Selection, list[int]]] = [
    (Selection(), [1, 2, 3, 4]),
    (Selection(errors=True), [1, 3]),
    (Selection(host="a.example"), [1, 2]),
    (Selection(host="a.example:80"), [1]),
    (Selection(host="example"), []),
    (Selection(prefix="http://a.example/x"), [1]),
    (Selection(prefix="http://b.example/"), [3, 4]),
    (Selection(prefix="/x"), []),
    (Selection(statuses=range(300, 500)), [1, 4]),
    (Selection(host="b.example", errors=True), [3]),
]


@pytest.mark.parametrize(("selection", "ids"), SELECTIONS)
def test_the_urls_that_fit(selection: Selection, ids: list[int]) -> None:
    assert list(keeper(known(*URLS)).select(selection)) == ids


# as a person gives it, and what URLs begin with; None where it is refused
PREFIXES = [
    ("http://www.example.com/a/", "http://www.example.com/a/"),
    ("HTTP://WWW.Example.com:80/A?b", "http://www.example.com/A?b"),
    ("https://", "https://"),
    ("http://www.Exam", "http://www.exam"),
    ("http://[::1]/a", "http://[::1]/a"),
    ("www.example.com/a/", None),
    ("ftp://www.example.com/", None),
    ("http://bad host/", None),
    ("", None),
]


@pytest.mark.parametrize(("given", "prefix"), PREFIXES)
def test_prefixes(given: str, prefix: str | None) -> None:
    if prefix is None:
        with pytest.raises(UsageError):
            read_prefix(given)
    else:
        assert read_prefix(given) == prefix


def test_urls_are_normalised() -> None:
    assert read_url("HTTP://WWW.Example.com:80/%7ea#b").text == "http://www.example.com/~a"
    with pytest.raises(UsageError, match=r"'www\.example\.com' is not a valid URL"):
        read_url("www.example.com")


# an unknown URL -> why it is not entered
ENTERED = [
    ("http://www.example.com/new", None),
    (
        "http://www.example.com/private/",
        "a prefix rule forbids the URL (crawl.rules:1: forbid prefix http://www.example.com/private/)",
    ),
    ("http://full.example.com/", "the host already has CRAWLSPACE_MAX_URLS_PER_HOST URLs"),
]


@pytest.mark.parametrize(("url", "why"), ENTERED)
def test_a_url_that_a_person_submits(tmp_path: Path, url: str, why: str | None) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "start_urls.txt").write_text("http://www.example.com/\n")
    (tmp_path / "demo" / "crawl.rules").write_text("forbid prefix http://www.example.com/private/\n")
    names = {name: value for name, value in vars(defaults).items() if name.isupper()}
    settings = {
        **names,
        "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path),
        "CRAWLSPACE_SITES": {"full.example.com": {"max_urls_per_host": 1}},
    }
    collection = load_collection("demo", settings)
    store = known(("http://full.example.com/a", DOCUMENT))
    admission = Admission(collection, CandidateChecker(build_space(collection)), store)
    assert keeper(store).enter(parse(url), admission) == (None if why is None else f"{url} is refused: {why}")
    state = store.get(url)
    assert (state and (state.state, state.source, state.depth)) == (None if why else (State.PENDING, Source.USER, 0))


class Contested(MemoryStore):
    """A store that several write to: what has changed meanwhile is asked for again."""

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        wanted = list(ids)
        for id in wanted:
            state = self.get_by_id(id)
            assert state is not None
            state.lease_until = None
            change(state)
        return super().revise(wanted, change, now=now)


def test_a_url_named_twice_counts_once_with_its_last_result() -> None:
    store = Contested(sinks=(EMBEDDED,))
    fill(store, [(URL, DOCUMENT), (f"{URL}b", DOCUMENT)], None)
    store.lease("www.example.com:80", 1, now=LATER, until=LATER + 600)
    made = keeper(store, crawled=True).recrawl([1, 2])
    assert (made.changed, made.left) == (1, {NotChanged.FETCHED_NOW: 1})


# --- the index and the terminal -----------------------------------------------------------------------------------


def test_the_index_follows_unless_a_crawl_sees_to_it(tmp_path: Path) -> None:
    clock, index_file = FakeClock(NOW), tmp_path / "index.db"
    sinks = read_sinks(None, collection="demo", data_folder=tmp_path)
    place = StateFile("demo", tmp_path / "state.db", sinks)
    with place.changing() as nothing:
        assert nothing is None
        assert not place.path.exists()
    SqliteStore(place.path).close()
    with place.changing() as opened:
        assert opened is not None
        fill(opened.store, [(URL, DOCUMENT)], None)
        assert "which is not there" in opened.deliver(sinks, clock)
        assert not index_file.exists()
        with closing(EmbeddedIndex(index_file, owner="demo")) as index:
            drain_all(Drain(opened.store, index, clock))
            assert list(index.urls()) == [URL]
        assert opened.deliver(sinks, clock) == ""
        keeper(opened.store).forget([1])
        with closing(CrawlLock(place.path)):
            assert opened.deliver(sinks, clock) == "the running crawl updates the index"
        assert opened.deliver(sinks, clock) == "the index is up to date"
        with closing(EmbeddedIndex(index_file, read_only=True)) as index:
            assert list(index.urls()) == []


# --- a store with URLs in given states ----------------------------------------------------------------------------


def known(*urls: tuple[str, Row], checksum: bytes | None = None) -> MemoryStore:
    """A store that knows these URLs, each with a document of its own, or all with the same."""
    store = MemoryStore(sinks=(EMBEDDED,))
    fill(store, urls, checksum)
    store.set_meta(RULES_HASH, "applied")
    return store


def fill(store: Store, urls: object, checksum: bytes | None) -> None:
    assert isinstance(urls, list | tuple)
    for number, (url, (state, status, has_document, held, next_fetch)) in enumerate(urls):
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)
        if state is State.PENDING:
            continue
        row = store.get(url)
        assert row is not None
        row.state, row.status, row.held, row.next_fetch = state, status, held, next_fetch
        row.interval_s = 86_400
        row.checksum = (checksum or bytes([number]) * 16) if has_document else None
        store.record([Change(row, document=Document(url, title="A") if has_document else None)], now=NOW)


def keeper(store: Store, *, crawled: bool = False) -> UrlChanges:
    return UrlChanges(store, clock=FakeClock(NOW), crawled=crawled)


def indexed(store: MemoryStore) -> list[str]:
    return [state.url for state in store.urls() if state.indexed]


def shown(store: MemoryStore, url: str) -> str:
    state = store.get(url)
    return "forgotten" if state is None else shown_state(state)


def shown_state(state: UrlState) -> str:
    return shown_row((state.state, state.status, state.checksum is not None, state.held, state.next_fetch))


def shown_row(row: Row) -> str:
    state, status, has_document, held, next_fetch = row
    words = [state.label, str(status or ""), "document" if has_document else "", f"held:{held.label}" if held else ""]
    return " ".join(filter(None, [*words, "never" if next_fetch is None else "due" if next_fetch <= NOW else "later"]))
