"""Snapshots: what they select and count, and when another one is taken."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlspace.clock import SystemClock
from crawlspace.config.sinks import SinkSettings
from crawlspace.console.snapshot.file import About, Filters, SnapshotFile, SnapshotUnreadable, is_of_host, write_snapshot
from crawlspace.console.snapshot.folders import LEASED, Mark, UrlEntry, folder_of
from crawlspace.console.snapshot.taking import Snapshots
from crawlspace.errors import StoreError
from crawlspace.model import State
from crawlspace.runtime.session.paths import CollectionPaths, OpenFile, StateFile
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.views import Crawler
from tests.contract.conftest import NOW, new
from tests.notifications import LONGEST_WAIT_S

MARKS = (0, Mark.INDEXED, Mark.OVERDUE, Mark.LEASED, Mark.INDEXED | Mark.HELD, Mark.ORPHANED, Mark.DUPLICATE)


def drawn() -> list[UrlEntry]:
    """URLs on several hosts, in order of discovery."""
    draw = random.Random(3)
    hosts = ("http://a.example/", "https://a.example/", "https://a.example:8443/", "https://aa.example/", "https://b.example/")
    urls = list({f"{draw.choice(hosts)}{draw.choice(('', 'x/', 'x/y/', 'x-/', 'ä/'))}{draw.randrange(40)}" for _ in range(500)})
    draw.shuffle(urls)
    return [
        UrlEntry(url, number, draw.choice(list(State)), draw.choice((None, 200, 301, 404, 410, 503)), draw.choice(MARKS))
        for number, url in enumerate(sorted(urls, key=lambda _: draw.random()), 1)
    ]


ENTRIES = drawn()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    path = tmp_path_factory.mktemp("snapshot") / "console.db"
    write_snapshot(path, ENTRIES, lambda: About(17, 0.5, "stamp"), pause=lambda _: None)
    with closing(SnapshotFile(path)) as file:
        yield file


def label(entry: UrlEntry) -> int:
    return LEASED if entry.marks & Mark.LEASED else entry.state


CASES: list[tuple[Filters, Callable[[UrlEntry], bool]]] = [
    (Filters(), lambda _: True),
    (Filters(labels=[State.DONE]), lambda one: label(one) == State.DONE),
    (Filters(labels=[State.GONE, State.FAILED]), lambda one: label(one) in (State.GONE, State.FAILED)),
    (Filters(labels=[LEASED]), lambda one: bool(one.marks & Mark.LEASED)),
    (Filters(statuses=range(404, 405)), lambda one: one.status == 404),
    (Filters(statuses=range(400, 500)), lambda one: one.status in (404, 410)),
    (Filters(labels=[State.GONE], statuses=range(400, 500)), lambda one: label(one) == State.GONE and one.status in (404, 410)),
    (Filters(marks=Mark.INDEXED), lambda one: bool(one.marks & Mark.INDEXED)),
    (Filters(marks=Mark.HELD), lambda one: bool(one.marks & Mark.HELD)),
    (Filters(marks=Mark.ORPHANED, labels=[State.DONE]), lambda one: bool(one.marks & Mark.ORPHANED) and one.state == State.DONE),
    (Filters(host="a.example"), lambda one: one.url.partition("//")[2].startswith(("a.example/", "a.example:"))),
    (Filters(host="a.example:8443"), lambda one: "//a.example:8443/" in one.url),
    (Filters(host="a.example:443"), lambda one: one.url.startswith("https://a.example/")),
    (Filters(host="nowhere.example"), lambda _: False),
    (Filters(prefix="https://a.example"), lambda one: one.url.startswith("https://a.example")),
    (Filters(prefix="https://a.example/x"), lambda one: one.url.startswith("https://a.example/x")),
    (Filters(prefix="https://b.example/ä/"), lambda one: one.url.startswith("https://b.example/ä/")),
    (Filters(prefix="https://a.example/x/", direct=True), lambda one: folder_of(one.url) == "https://a.example/x/"),
    (Filters(prefix="https://a.example/x", direct=True), lambda _: False),
    (Filters(prefix="zzz"), lambda _: False),
    (
        Filters(prefix="https://a", host="a.example", statuses=range(200, 300), marks=Mark.INDEXED),
        lambda one: (
            one.url.startswith(("https://a.example/", "https://a.example:"))
            and one.status == 200
            and bool(one.marks & Mark.INDEXED)
        ),
    ),
]


@pytest.mark.parametrize(("filters", "fits"), CASES)
def test_what_filters_select(snapshot: SnapshotFile, filters: Filters, fits: Callable[[UrlEntry], bool]) -> None:
    by_url = [one.id for one in sorted(ENTRIES, key=lambda one: one.url) if fits(one)]
    assert list(snapshot.ids(filters)) == by_url
    assert list(snapshot.ids(filters, descending=True)) == by_url[::-1]
    assert list(snapshot.ids(filters, by="id")) == sorted(by_url)
    assert list(snapshot.ids(filters, by="id", descending=True)) == sorted(by_url)[::-1]
    assert list(snapshot.ids(filters, first=2, most=3)) == by_url[2:5]
    assert snapshot.count(filters) == len(by_url)


def test_the_cases_select_something() -> None:
    empty = [filters for filters, fits in CASES if not any(map(fits, ENTRIES))]
    assert len(empty) == 3


def test_folders_and_their_order(snapshot: SnapshotFile) -> None:
    total = snapshot.folder("")
    assert total is not None
    assert total.urls == len(ENTRIES)
    hosts = snapshot.children(total, order="name", descending=False, first=0, most=10)
    assert [one.name for one in hosts] == sorted({one.url[: one.url.index("/", 8) + 1] for one in ENTRIES})
    largest = snapshot.children(total, order="urls", descending=True, first=0, most=10)
    assert [one.urls for one in largest] == sorted((one.urls for one in hosts), reverse=True)
    assert [one.name for one in snapshot.children(total, order="urls", descending=True, first=1, most=2)] == [
        one.name for one in largest[1:3]
    ]
    found = snapshot.children(total, order="name", descending=False, first=0, most=10, containing="//b.")
    assert [one.name for one in found] == ["https://b.example/"]
    inner = snapshot.folder("https://a.example/x/")
    assert inner is not None
    assert inner.urls == sum(one.url.startswith("https://a.example/x/") for one in ENTRIES)
    assert snapshot.folder("https://a.example/nowhere/") is None
    assert snapshot.folder("x") is None


def test_urls_next_to_an_unknown_one_are_of_its_host(snapshot: SnapshotFile) -> None:
    found = snapshot.similar("https://b.example/x/2-", 4)
    assert len(found) == 4
    assert all(url.startswith("https://b.example/") for url in found)
    assert snapshot.similar("https://nowhere.example/", 4) == []
    assert snapshot.similar("nothing", 4) == []


@pytest.mark.parametrize(
    ("origin", "host", "is_of"),
    [
        ("https://a.example/", "a.example", True),
        ("https://a.example/", "a.example:443", True),
        ("https://a.example/", "a.example:80", False),
        ("http://a.example:8080/", "a.example", True),
        ("http://a.example:8080/", "a.example:8080", True),
        ("http://a.example:8080/", "a.example:80", False),
        ("https://www.a.example/", "a.example", False),
        ("https://[::1]/", "[::1]", True),
        ("https://[::1]:8443/", "[::1]", True),
        ("https://[::1]/", "[", False),
    ],
)
def test_the_host_of_an_origin(origin: str, host: str, *, is_of: bool) -> None:
    assert is_of_host(origin, host) is is_of


@pytest.mark.parametrize("content", [None, b"", b"no database", b"SQLite format 3\0" + bytes(4000)])
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "console.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SnapshotUnreadable):
        SnapshotFile(path)


def test_a_failed_pass_leaves_the_old_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    write_snapshot(path, ENTRIES[:5], lambda: About(1, 0.1, "first"), pause=lambda _: None)

    def breaking() -> Iterator[UrlEntry]:
        yield ENTRIES[0]
        raise OSError("the store is gone")

    with pytest.raises(OSError, match="is gone"):
        write_snapshot(path, breaking(), lambda: About(2, 0.1, "second"), pause=lambda _: None)
    with closing(SnapshotFile(path)) as file:
        assert file.about.stamp == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["console.db"]
    assert path.stat().st_mode & 0o077 == 0


def test_what_a_killed_console_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "console.db.999999999.new"
    left.write_bytes(b"half")
    write_snapshot(tmp_path / "console.db", ENTRIES[:5], lambda: About(1, 0.1, ""), pause=lambda _: None)
    assert not left.exists()


@pytest.fixture
def paths(tmp_path: Path) -> CollectionPaths:
    sinks = SinkSettings((), tmp_path / "index.db")
    file = tmp_path / "state.db"
    return CollectionPaths(
        "demo", tmp_path, Settings({"CRAWLSPACE_MAX_TEMPORARY_ERRORS": 3}), StateFile("demo", file, sinks), file, sinks
    )


class AwayOnce(OpenFile):
    """Does not say at first who crawls."""

    is_away = True

    def crawlers(self) -> Sequence[Crawler]:
        if AwayOnce.is_away:
            AwayOnce.is_away = False
            raise StoreError("it is away")
        return super().crawlers()


def test_a_pass_that_cannot_begin_keeps_no_other_from_beginning(paths: CollectionPaths) -> None:
    snapshots = Snapshots(SystemClock())
    with closing(SqliteStore(paths.state_file)) as store:
        store.discover([new("a.example/")], now=NOW)
        opened = AwayOnce(store, "demo")
        with pytest.raises(StoreError, match="it is away"), snapshots.open(paths, opened):
            pass
        give_up_at, is_taken = time.monotonic() + LONGEST_WAIT_S, False
        while not is_taken:
            with snapshots.open(paths, opened) as (file, _):  # which waits for it for a moment
                is_taken = file is not None
            assert time.monotonic() < give_up_at


def test_the_stamp_of_a_store_changes_with_it(paths: CollectionPaths) -> None:
    with closing(SqliteStore(paths.state_file)) as store:
        store.discover([new("a.example/")], now=NOW)
        before = OpenFile(store, "demo").stamp()
        assert OpenFile(store, "demo").stamp() == before
        store.discover([new("a.example/1")], now=NOW)
        assert OpenFile(store, "demo").stamp() != before
