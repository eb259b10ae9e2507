"""What follows when a page looks as if nobody were logged in, and how sessions are kept."""

from __future__ import annotations

import json

import pytest

from crawlspace.access import sessions
from crawlspace.access.sessions import SESSIONS, NextStep, Sessions, kept_sessions
from crawlspace.clock import FakeClock
from crawlspace.config.access import SiteAccess, read_site_access
from crawlspace.config.secrets import Seal
from crawlspace.errors import StoreFull
from tests.contract.memory.store import MemoryStore

AGAIN, OWN, LATER, REFUSED = NextStep.AGAIN, NextStep.OWN, NextStep.LATER, NextStep.REFUSED


@pytest.fixture(autouse=True)
def session_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SID", "one")
    monkeypatch.setattr(sessions, "SCRYPT_COST", 2)


def access(pattern: str = "wiki.example.com") -> SiteAccess:
    login = {"type": "cookies", "cookies": {"sid": "env:SID"}, "logged_out": {"text": "Log in"}}
    found = read_site_access(pattern, pattern, {"login": login})
    assert found is not None
    return found


WIKI = access()
CONTENT, CHANGED = (f'[["sid","{value}","wiki.example.com",false,"/",true,null]]' for value in ("one", "two"))


class Process:
    """One process with its sessions; each log-in works."""

    def __init__(self, store: MemoryStore, clock: FakeClock, seal: Seal | None = None) -> None:
        self.clock = clock
        self.sessions = Sessions(store, clock, seal or Seal())

    def log_in(self, *, lasts_s: float | None = None) -> int:
        assert self.sessions.current(WIKI) is None
        return self.sessions.add(WIKI, CONTENT, lasts_s=lasts_s).number

    def shown(self, page: int, number: int) -> None:
        self.sessions.note_shown(WIKI, page, number, url=f"https://wiki.example.com/{page}")

    def out(self, page: int, number: int, *, is_alive: bool | None = False) -> NextStep:
        return self.sessions.next_step(WIKI, page, number, is_alive=is_alive)

    def pages(self) -> list[str]:
        return [page.url.rpartition("/")[2] for page in self.sessions.pages_to_check(WIKI)]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000)


@pytest.fixture
def one(clock: FakeClock) -> Process:
    return Process(MemoryStore(), clock)


def test_a_session_that_ends_is_renewed_once_for_all_pages(one: Process) -> None:
    first = one.log_in()
    one.shown(1, first)
    assert [one.out(page, first) for page in (2, 3, 4)] == [AGAIN, AGAIN, AGAIN]
    second = one.log_in()
    assert second == first + 1
    assert one.out(5, first) is AGAIN  # sent before
    assert one.sessions.current(WIKI) is not None


def test_a_session_may_end_again_and_again(one: Process) -> None:
    for page in range(0, 100, 2):
        number = one.log_in()
        one.shown(page, number)
        assert one.out(page + 1, number) is AGAIN
        number = one.log_in()
        one.shown(page + 1, number)
        assert one.out(page + 2, number) is AGAIN


def test_log_ins_without_effect_end_after_two(one: Process) -> None:
    assert one.out(1, one.log_in()) is AGAIN
    assert one.out(1, one.log_in()) is REFUSED


def test_a_page_that_is_not_for_this_user_costs_no_log_in(one: Process) -> None:
    number = one.log_in()
    assert [one.out(page, number, is_alive=True) for page in range(50)] == [OWN] * 50
    assert one.sessions.current(WIKI) is not None


def test_where_nothing_tells_whether_the_session_lives(one: Process, clock: FakeClock) -> None:
    number = one.log_in()
    one.shown(1, number)
    assert one.out(2, number, is_alive=None) is AGAIN
    number = one.log_in()
    assert one.out(2, number, is_alive=None) is LATER
    assert one.out(3, number, is_alive=None) is LATER  # no log-in so soon after one that did not help
    clock.advance(31)
    assert one.out(3, number, is_alive=None) is AGAIN
    number = one.log_in()
    one.shown(3, number)
    assert one.out(4, number, is_alive=None) is AGAIN  # it helped


def test_what_was_shown_before_does_not_keep_a_log_in_from_being_refused(one: Process, clock: FakeClock) -> None:
    number, follows = one.log_in(), []
    one.shown(1, number)
    for page in range(2, 9):
        follows.append(one.out(page, number, is_alive=None))
        if follows[-1] is AGAIN:
            number = one.log_in()
        clock.advance(2_000)
    assert follows == [AGAIN, AGAIN, LATER, LATER, REFUSED, REFUSED, REFUSED]


def test_a_session_that_shows_no_page_is_refused_without_a_pause(one: Process) -> None:
    """Twenty pages that fail one after the other would give up the site, with no word of its log-in."""
    number, follows = one.log_in(), []
    one.shown(1, number)
    for page in range(2, 10):
        follows.append(one.out(page, number, is_alive=None))
        if follows[-1] is AGAIN:
            number = one.log_in()
            follows.append(one.out(page, number, is_alive=None))
    assert follows == [AGAIN, LATER, LATER, LATER, LATER, AGAIN, REFUSED, REFUSED, REFUSED, REFUSED]


def test_pauses_grow_and_end(one: Process, clock: FakeClock) -> None:
    number, pauses = one.log_in(), []
    one.shown(0, number)
    for page in range(1, 9):
        while one.out(page, number, is_alive=None) is AGAIN:
            number = one.log_in()
        one.shown(0, number)
        pause = 0
        while one.out(100 + page, number, is_alive=None) is LATER:
            clock.advance(15)
            pause += 15
        pauses.append(pause)
        number = one.log_in()
        one.shown(0, number)
    assert pauses == [30, 60, 120, 240, 480, 960, 1800, 1800]


def test_pages_by_which_a_session_is_found_alive(clock: FakeClock) -> None:
    store = MemoryStore()
    one = Process(store, clock)
    number = one.log_in()
    for page in range(1, 9):
        one.shown(page, number)
    assert one.pages() == ["1", "2", "3"]
    one.sessions.note_page(WIKI, "https://wiki.example.com/1", is_private=False)
    one.sessions.note_page(WIKI, "https://wiki.example.com/3", is_private=True)
    one.shown(1, number)
    assert one.pages() == ["3", "2"]  # what everybody sees tells nothing
    assert Process(store, clock).pages() == ["1"]  # as it was when the first page was shown
    one.sessions.update(WIKI, CONTENT)
    assert Process(store, clock).pages() == ["3", "2"]
    assert one.out(9, number) is AGAIN
    number = one.log_in()
    one.shown(7, number)
    assert one.pages() == ["3", "7", "2"]
    one.sessions.drop_page(WIKI, "https://wiki.example.com/3")
    assert one.pages() == ["7", "2"]


def test_log_ins_that_succeed_are_bounded(clock: FakeClock) -> None:
    store = MemoryStore()
    one = Process(store, clock)
    for page in range(20):
        assert one.sessions.next_login_in(WIKI) == 0
        number = one.log_in()
        one.shown(page, number)
        assert one.out(page + 1, number) is AGAIN
        clock.advance(60)
    assert one.sessions.next_login_in(WIKI) == 3600 - 20 * 60
    assert Process(store, clock).sessions.next_login_in(WIKI) == 3600 - 20 * 60
    clock.advance(3600 - 20 * 60)
    assert Process(store, clock).sessions.next_login_in(WIKI) == 0
    clock.advance(-10_000)
    assert one.sessions.next_login_in(WIKI) == 0  # the clock was set back


def test_a_token_that_is_renewed_at_its_time_is_no_log_in_that_counts(one: Process, clock: FakeClock) -> None:
    for _ in range(50):
        one.log_in(lasts_s=30)
        clock.advance(28)
    assert one.sessions.next_login_in(WIKI) == 0


@pytest.mark.parametrize(("lasts_s", "good_for"), [(3600, 3540), (100, 90), (2, 4), (0.5, 4), (None, 10**9)])
def test_a_session_is_renewed_before_its_end(one: Process, clock: FakeClock, lasts_s: float | None, good_for: int) -> None:
    one.log_in(lasts_s=lasts_s)
    clock.advance(good_for - 1)
    assert one.sessions.current(WIKI) is not None
    if lasts_s is not None:
        clock.advance(2)
        assert one.sessions.current(WIKI) is None


def test_it_is_kept_for_the_next_run_and_for_others(clock: FakeClock) -> None:
    store = MemoryStore()
    one = Process(store, clock)
    number = one.log_in()
    one.shown(1, number)
    other = Process(store, clock)
    carried = other.sessions.current(WIKI)
    assert carried is not None
    assert (carried.number, carried.content) == (number, CONTENT)
    assert one.out(2, number) is AGAIN
    second = one.log_in()
    assert other.out(3, number) is AGAIN
    assert other.sessions.current(WIKI) is None
    assert other.sessions.reload(WIKI)
    carried = other.sessions.current(WIKI)
    assert carried is not None
    assert carried.number == second
    assert not other.sessions.reload(WIKI)
    other.sessions.update(WIKI, CHANGED)
    assert kept_sessions(store)["wiki.example.com"].content == CHANGED
    one.sessions.update(access("other.example.com"), "x")
    assert "other.example.com" not in kept_sessions(store)


def test_a_shared_store_without_a_key_has_no_content(clock: FakeClock) -> None:
    store = MemoryStore()
    one, other = (Process(store, clock, Seal(is_shared=True)) for _ in range(2))
    one.log_in()
    assert CONTENT not in str(kept_sessions(store)["wiki.example.com"].content)
    assert not other.sessions.reload(WIKI)
    assert other.log_in() == 2


UNREADABLE = [
    # what is kept of the session, or all that is kept
    ('{"content": "not json"}', ""),
    ('{"content": "{}"}', ""),
    ('{"content": "[[\\"sid\\",\\"v\\",\\"a\\",false,\\"/\\",\\"true\\",null]]"}', ""),  # of `Secure=true`, as it was kept once
    ('{"number": "first"}', ""),
    ("", "[1"),
    ("", '{"wiki.example.com": 1}'),
    ("", '{"wiki.example.com": {}}'),
]


@pytest.mark.parametrize(("wrong", "all_of_it"), UNREADABLE)
def test_a_session_that_cannot_be_read_counts_as_none(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, wrong: str, all_of_it: str
) -> None:
    store = MemoryStore()
    number = Process(store, clock).log_in()
    if wrong:
        kept = json.loads(store.get_meta(SESSIONS) or "")
        kept["wiki.example.com"] |= json.loads(wrong)
        store.set_meta(SESSIONS, json.dumps(kept))
    else:
        store.set_meta(SESSIONS, all_of_it)
    other = Process(store, clock)
    assert other.sessions.current(WIKI) is None
    assert "cannot be read, and counts as none: somebody logs in again" in caplog.text
    assert other.log_in() in (1, number + 1)
    assert Process(store, clock).sessions.current(WIKI) is not None


def test_what_nobody_has_written_is_no_session(clock: FakeClock) -> None:
    store = MemoryStore()
    store.set_meta(SESSIONS, "[1")
    assert Process(store, clock).log_in() == 1


def test_the_session_of_another_log_in_is_not_carried(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    number = Process(store, clock).log_in()
    assert Process(store, clock).sessions.current(WIKI) is not None
    monkeypatch.setenv("SID", "another")
    other = Process(store, clock)
    assert other.sessions.current(WIKI) is None
    assert not other.sessions.reload(WIKI)
    assert other.log_in() == number + 1
    monkeypatch.delenv("SID")
    assert Process(store, clock).sessions.current(WIKI) is None


class FullStore(MemoryStore):
    """Its disk is full."""

    def set_meta(self, name: str, value: str) -> None:
        raise StoreFull("the disk is full")


def test_a_disk_that_is_full_costs_no_page(clock: FakeClock) -> None:
    one = Process(FullStore(), clock)
    number = one.log_in()
    one.shown(1, number)
    one.sessions.update(WIKI, CHANGED)
    carried = one.sessions.current(WIKI)
    assert carried is not None


class CountingStore(MemoryStore):
    """Counts what is written."""

    written = 0

    def set_meta(self, name: str, value: str) -> None:
        self.written += 1
        super().set_meta(name, value)


def test_cookies_that_are_as_before_are_not_written_again(clock: FakeClock) -> None:
    store = CountingStore()
    one = Process(store, clock)
    one.shown(1, one.log_in())
    before = store.written
    one.sessions.update(WIKI, CONTENT)
    assert store.written == before
    one.sessions.update(WIKI, CHANGED)
    assert store.written == before + 1
