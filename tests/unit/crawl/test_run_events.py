"""The file of a run's events: what is written and read, files that are torn or not ours, and a full disk."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.crawl.commits import Commits
from crawlspace.crawl.run_events import (
    SIZE,
    RunEvent,
    RunEvents,
    file_name,
    is_from_beginning,
    keep_only,
    parts_of,
    read_events,
)
from crawlspace.document import Document
from crawlspace.errors import RunFileError, StoreFull
from crawlspace.model import State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change, Effects, Fetch, Reclassified
from crawlspace.state.fetch_history import DocumentChange, fetches
from crawlspace.state.lifecycle import advance
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import Health
from crawlspace.status import Status
from tests.contract.conftest import Known, key
from tests.contract.memory.store import MemoryStore

NOW = 1_750_000_000
NAME = file_name(1, "host", 7)
NEW = UrlState(1, -5, "http://a.example/", "a.example:80")
PAGE = structs.replace(NEW, state=State.DONE, status=200, checksum=b"one", indexed=True)
DUPLICATE = structs.replace(PAGE, indexed=False, duplicate_of=2)
DOCUMENT = Document("http://a.example/")
FETCHED = Outcome(1, "http://a.example/", OutcomeKind.DOCUMENT, 200, took_s=0.25, body_bytes=1234)
GONE = replace(FETCHED, kind=OutcomeKind.GONE, status=404)
SAME = replace(FETCHED, kind=OutcomeKind.UNCHANGED, status=304)
NONE, NEW_ONE, CHANGED, UNCHANGED = DocumentChange


def change(state: UrlState, *, document: Document | None = None, forget: bool = False) -> Change:
    return Change(state, document, forget=forget)


def fetched(made: Change, outcome: Outcome, before: UrlState) -> Change:
    """The change as `Commits.add` makes it, which another row may use with another state before."""
    shows_document = outcome.kind in (OutcomeKind.DOCUMENT, OutcomeKind.UNCHANGED)
    return replace(made, before=before, fetch=Fetch(shows_document, outcome.took_s, outcome.body_bytes))


def gone(state: UrlState) -> UrlState:
    return structs.replace(state, state=State.GONE, status=404, checksum=None)


ROWS = [
    # before, change, outcome, the event: states, statuses, in the index before and after, the document, forgotten
    (NEW, change(PAGE, document=DOCUMENT), FETCHED, (0, 1), (None, 200), (False, True), NEW_ONE, False),
    (
        PAGE,
        change(structs.replace(PAGE, checksum=b"two"), document=DOCUMENT),
        FETCHED,
        (1, 1),
        (200, 200),
        (True, True),
        CHANGED,
        False,
    ),
    (PAGE, change(PAGE), FETCHED, (1, 1), (200, 200), (True, True), UNCHANGED, False),
    (PAGE, change(PAGE), SAME, (1, 1), (200, 200), (True, True), UNCHANGED, False),
    (DUPLICATE, change(PAGE), SAME, (1, 1), (200, 200), (False, False), UNCHANGED, False),
    (PAGE, change(gone(PAGE)), GONE, (1, 3), (200, 404), (True, False), NONE, False),
    (NEW, change(gone(NEW)), GONE, (0, 3), (None, 404), (False, False), NONE, False),
    (PAGE, change(gone(PAGE), forget=True), GONE, (1, 3), (200, 404), (True, False), NONE, True),
]


@pytest.fixture
def events(tmp_path: Path) -> RunEvents:
    return RunEvents(tmp_path / "runs", NAME, run=1, store=MemoryStore(), clock=FakeClock(NOW))


@pytest.mark.parametrize(("before", "made", "outcome", "states", "statuses", "index", "document", "forgotten"), ROWS)
def test_an_outcome(
    events: RunEvents,
    tmp_path: Path,
    before: UrlState,
    made: Change,
    outcome: Outcome,
    states: tuple[int, int],
    statuses: tuple[int | None, int | None],
    index: tuple[bool, bool],
    document: DocumentChange,
    forgotten: bool,
) -> None:
    events.note([fetched(made, outcome, before)])
    events.close()
    path = tmp_path / "runs" / NAME
    url = before.url if forgotten else ""
    expected = RunEvent(
        -5, NOW, *statuses, State(states[0]), State(states[1]), *index, document, False, forgotten, 0.25, 1234, url
    )
    assert list(read_events(path)) == [expected]


def test_changes_without_an_outcome_are_noted_where_they_may_delete(tmp_path: Path) -> None:
    store = MemoryStore()
    known = Known(store)
    known.crawled(("a.example/x", "one"), ("a.example/y", "two"), ("a.example/z", "three"))
    known.discover("a.example/pending")
    events = RunEvents(tmp_path, NAME, run=1, store=store, clock=FakeClock(NOW))
    x, y, z, pending = (known.change(f"a.example/{name}") for name in ("x", "y", "z", "pending"))
    x.forget, y.state.checksum, pending.forget = True, None, True
    y.before = known.get("a.example/y")
    events.note([x, y, z, pending])
    found = list(read_events(tmp_path / NAME))
    assert [(one.key, one.in_index_before, one.in_index_after, one.url, one.took_s) for one in found] == [
        (key("a.example/x"), True, False, "http://a.example/x", None),
        (key("a.example/y"), True, False, "", None),
    ]


def test_changes_of_rules(tmp_path: Path) -> None:
    store = MemoryStore()
    known = Known(store)
    known.crawled(*((f"a.example/{n}", str(n)) for n in range(6)))
    ids = [known.get(f"a.example/{n}").id for n in range(6)]
    events = RunEvents(tmp_path, NAME, run=1, store=store, clock=FakeClock(NOW))
    events.note_rules(
        Reclassified(excluded=ids[:1], given_up=ids[1:2], unindexed=ids[2:3], returned=ids[3:4], forgotten=ids[4:5], due=ids[5:])
    )
    found = {one.key: one for one in read_events(tmp_path / NAME)}
    numbers = [(key(f"a.example/{n}"), found.get(key(f"a.example/{n}"))) for n in range(6)]
    assert [
        one and (one.state_after, one.status_after, one.in_index_before, one.in_index_after, one.url) for _, one in numbers
    ] == [
        (State.EXCLUDED, 760, True, False, ""),
        (State.EXCLUDED, 761, True, True, ""),
        (State.EXCLUDED, 2004, True, False, ""),
        (State.PENDING, None, True, False, ""),
        (State.EXCLUDED, None, True, False, "http://a.example/4"),
        None,
    ]
    assert all(one is None or (one.by_rules and one.took_s is None) for _, one in numbers)


def test_a_torn_file_is_read_up_to_its_last_whole_event(events: RunEvents, tmp_path: Path) -> None:
    path = tmp_path / "runs" / NAME
    long = structs.replace(PAGE, url=f"http://a.example/{'x' * 100}")
    same = fetched(change(PAGE), SAME, PAGE)
    events.note([same, fetched(change(gone(long), forget=True), GONE, long), same])
    content = path.read_bytes()
    whole = list(read_events(path))
    assert len(whole) == 3
    texts = (len(content) - 4 * SIZE) // SIZE
    ends = [SIZE, 2 * SIZE, (3 + texts) * SIZE, (4 + texts) * SIZE]
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        assert list(read_events(path)) == whole[: sum(end <= size for end in ends[1:])]
    path.write_bytes(content + bytes(3 * SIZE))
    assert list(read_events(path)) == whole, "zeros, as a power failure leaves them"


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"crawlrun\xff\xff" + bytes(100)])
def test_a_file_that_is_not_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / NAME
    path.write_bytes(content)
    assert list(read_events(path)) == []


@pytest.mark.parametrize(
    ("took_s", "size", "read"), [(None, 0, (None, 0)), (0.0004, 1, (0.0, 1)), (10**9, 10**12, (4294967.294, 4294967295))]
)
def test_bounds(events: RunEvents, tmp_path: Path, took_s: float | None, size: int, read: tuple[float | None, int]) -> None:
    events.note([fetched(change(PAGE), replace(SAME, took_s=took_s, body_bytes=size), PAGE)])
    (one,) = read_events(tmp_path / "runs" / NAME)
    assert (one.took_s, one.body_bytes) == read


def test_every_state_and_status_comes_back(events: RunEvents, tmp_path: Path) -> None:
    made = [structs.replace(gone(PAGE), state=state, status=int(status)) for state in State for status in Status]
    events.note([fetched(change(one), GONE, PAGE) for one in made])
    found = list(read_events(tmp_path / "runs" / NAME))
    assert [(one.state_after, one.status_after) for one in found] == [(one.state, one.status) for one in made]


def test_files_of_runs_that_are_not_kept_are_removed(tmp_path: Path) -> None:
    names = [file_name(run, "a host", run) for run in range(3)]
    assert names[1] == "000001-a_host-1.events"
    for name in (*names, "other.txt"):
        (tmp_path / name).touch()
    keep_only(tmp_path, names[1:])
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names[1:], "other.txt"]
    keep_only(tmp_path / "missing", [])


def test_a_long_run_has_two_files_at_most(tmp_path: Path) -> None:
    events = RunEvents(tmp_path, NAME, run=1, store=MemoryStore(), clock=FakeClock(NOW), part_bytes=10 * SIZE)
    numbers = []
    for number in range(35):
        noted(events, 100 + number)
        parts = parts_of(tmp_path / NAME)
        read = [event.status_after for part in parts for event in read_events(part)]
        assert read == list(range(100 + number - len(read) + 1, 101 + number)), "the last ones, in their order"
        numbers.append((len(parts), len(read), is_from_beginning(parts[0])))
    events.close()
    assert numbers[8:11] == [(1, 9, True), (2, 10, True), (2, 11, True)]
    assert numbers[17:20] == [(2, 18, True), (2, 10, False), (2, 11, False)]
    assert max(read for _, read, _ in numbers) == 18
    keep_only(tmp_path, [NAME])
    assert len(parts_of(tmp_path / NAME)) == 2
    keep_only(tmp_path, [])
    assert parts_of(tmp_path / NAME) == []


def noted(events: RunEvents, *statuses: int) -> None:
    events.note([fetched(change(structs.replace(PAGE, status=status)), SAME, PAGE) for status in statuses])


def test_the_file_of_another_process_is_not_overwritten(events: RunEvents, tmp_path: Path) -> None:
    noted(events, 200)
    with pytest.raises(RunFileError, match="File exists"):
        RunEvents(tmp_path / "runs", NAME, run=1, store=MemoryStore(), clock=FakeClock(NOW))
    assert [one.status_after for one in read_events(tmp_path / "runs" / NAME)] == [200]
    names = {file_name(1, "host", 1), file_name(1, "host", 1, "a1"), file_name(1, "host", 1, "b2")}
    assert sorted(names) == ["000001-host-1-a1.events", "000001-host-1-b2.events", "000001-host-1.events"]


@pytest.mark.parametrize("fails", ["open", "write"])
def test_a_full_file_stays_in_use_while_the_next_one_cannot_be_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    events = RunEvents(tmp_path, NAME, run=1, store=MemoryStore(), clock=FakeClock(NOW), part_bytes=3 * SIZE)
    noted(events, 200, 201)
    before = len(list(Path("/proc/self/fd").iterdir()))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(f"crawlspace.crawl.run_events.os.{fails}", full)
            with pytest.raises(RunFileError, match="No space left"):
                noted(events, 202)
    assert [part.name for part in parts_of(tmp_path / NAME)] == [NAME]
    noted(events, 203)
    found = [one.status_after for part in parts_of(tmp_path / NAME) for one in read_events(part)]
    assert (len(parts_of(tmp_path / NAME)), found) == (2, [200, 201, 203])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    events.close()


def test_several_threads_write_whole_files(tmp_path: Path) -> None:
    events = RunEvents(tmp_path, NAME, run=1, store=MemoryStore(), clock=FakeClock(NOW), part_bytes=40 * SIZE)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: noted(events, *[100 + number % 100] * 7), range(400)))
    events.close()
    older, newer = (list(read_events(part)) for part in parts_of(tmp_path / NAME))
    assert (len(older), len(newer)) == (42, 400 * 7 % 42 or 42)


class FullOnce:
    """Writes no events at the first call."""

    def __init__(self, events: RunEvents) -> None:
        self.events, self.calls = events, 0

    def note(self, changes: Sequence[Change]) -> None:
        self.calls += 1
        if self.calls == 1:
            raise RunFileError("the disk is full")
        self.events.note(changes)

    def take_back(self) -> None:
        self.events.take_back()


class AwayOnce(MemoryStore):
    """Records nothing at the first call."""

    is_away = True

    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        if self.is_away:
            self.is_away = False
            raise StoreFull("the disk is full")
        return super().record(changes, now=now, health=health)


def test_outcomes_whose_events_or_states_cannot_be_written_are_kept_and_noted_once(tmp_path: Path) -> None:
    store, clock = AwayOnce(), FakeClock(NOW)
    known = Known(store)
    known.discover("a.example/1", "a.example/2")
    log = FullOnce(RunEvents(tmp_path, NAME, run=1, store=store, clock=clock))
    commits = Commits(store, clock, events=log)

    def add(url: str) -> None:
        state = known.get(url)
        outcome = replace(GONE, id=state.id, url=state.url)
        commits.add(Change(structs.replace(state, state=State.GONE, status=404)), outcome, state)

    for url, error in (("a.example/1", RunFileError), ("a.example/2", StoreFull)):
        add(url)
        assert commits.begin(dict)
        with pytest.raises(error):
            commits.write()
        commits.merge_back()
        assert list(read_events(tmp_path / NAME)) == [], "what is not recorded has no event"
        assert {known.get(f"a.example/{n}").status for n in (1, 2)} == {None}
    assert commits.begin(dict)
    commits.write()
    commits.end()
    assert [one.key for one in read_events(tmp_path / NAME)] == [key("a.example/1"), key("a.example/2")]
    assert {known.get(f"a.example/{n}").status for n in (1, 2)} == {404}


class Faulty(MemoryStore):
    """Cannot record a document with the text that is too much for it."""

    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        if any(change.document is not None and change.document.text == "too much" for change in changes):
            raise ValueError
        return super().record(changes, now=now, health=health)


def test_a_fetch_whose_document_cannot_be_stored_is_one_entry_and_one_event(tmp_path: Path) -> None:
    """It becomes an unexpected error of the URL as it was before, and not of one that has been fetched already."""
    store, clock, policy = Faulty(), FakeClock(NOW), RecrawlPolicy(60, 3600, 0, 1, 3)
    known = Known(store)
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"))
    commits = Commits(store, clock, events=RunEvents(tmp_path, NAME, run=1, store=store, clock=clock))
    for url, text in (("a.example/1", "too much"), ("a.example/2", "text")):
        state = known.get(url)
        document = Document(state.url, text=text)
        outcome = replace(FETCHED, id=state.id, url=state.url, document=document, checksum=text.encode())
        after = advance(state, outcome, policy=policy, now=NOW).state
        commits.add(Change(after, document), outcome, state)
    assert commits.begin(dict)
    assert commits.write() is None
    commits.write_one_by_one(commits.one_by_one(lambda state, lost: advance(state, lost, policy=policy, now=NOW).state))
    commits.end()
    events = {one.key: (one.status_after, one.change) for one in read_events(tmp_path / NAME)}
    assert events == {key("a.example/1"): (int(Status.UNEXPECTED), NONE), key("a.example/2"): (200, CHANGED)}
    assert len(list(read_events(tmp_path / NAME))) == 2
    for url, status in (("a.example/1", Status.UNEXPECTED), ("a.example/2", 200)):
        assert [one.status for one in fetches(known.get(url))] == [int(status)]
    assert known.get("a.example/1").checksum == b"one"


FULL = """
import resource, sys
from pathlib import Path
from crawlspace.clock import FakeClock
from crawlspace.errors import StoreError
from tests.unit.crawl.test_run_events import NAME, PAGE, SAME, MemoryStore, RunEvents, change, fetched, read_events
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
folder = Path(sys.argv[1])
events = RunEvents(folder, NAME, run=1, store=MemoryStore(), clock=FakeClock(0))
for _ in range(3):
    try:
        events.note([fetched(change(PAGE), SAME, PAGE)] * 15)
    except StoreError as error:
        print(error)
print(len(list(read_events(folder / NAME))))
"""


def test_a_full_disk_is_an_error_and_what_was_written_stays_whole(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    sentence = (
        f"the events of the run cannot be written to {tmp_path} (File too large): free space there or correct its permissions;"
        " CRAWLSPACE_RUNS_KEPT = 0 crawls without them; nothing that was recorded is lost"
    )
    assert done.stdout.splitlines() == [sentence, "30"]
