"""What a crawl does to the one resolver of its process, and takes back when it ends."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlspace import settings as defaults
from crawlspace.decision import Reason
from crawlspace.runtime.http.resolver import GuardedResolver, HostNames
from crawlspace.runtime.session.session import Session
from crawlspace.runtime.session.summary import RunReport
from crawlspace.state.sqlite.store import SqliteStore
from tests.unit.runtime.http.look_ups import answer_look_ups
from tests.unit.runtime.http.test_resolver import PUBLIC, Pool, Reactor, Receiver

RULES = f"forbid address {PUBLIC}\n"


class Process(Reactor):
    """A reactor and its resolver. The names it knows are public; `busy.example` gets no answer."""

    def __init__(self) -> None:
        super().__init__()
        reactor: Any = self
        self.nameResolver = GuardedResolver(HostNames(reactor, cache_size=10, timeout_s=5))

    def getThreadPool(self) -> Pool:
        pool = Pool()
        pool.max = 10  # type: ignore[attr-defined]
        return pool

    def ask(self) -> list[str]:
        receiver = Receiver()
        self.nameResolver.resolveHostName(receiver, "open.example", 80)
        return receiver.found


def look_up(host: str) -> list[str]:
    if host == "open.example":
        return [PUBLIC]
    raise socket.gaierror(socket.EAI_AGAIN if host == "busy.example" else socket.EAI_NONAME, "none")


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    made = Process()
    monkeypatch.setattr("twisted.internet.reactor", made, raising=False)
    answer_look_ups(monkeypatch, look_up)
    return made


@pytest.fixture
def session(tmp_path: Path, process: Process) -> Iterator[Session]:
    opened = open_session(tmp_path, rules="")
    yield opened
    opened.close()


def open_session(folder: Path, *, rules: str) -> Session:
    files = folder / "collections" / "demo"
    files.mkdir(parents=True)
    (files / "start_urls.txt").write_text("http://open.example/\n")
    (files / "crawl.rules").write_text(rules)
    settings = {name: value for name, value in vars(defaults).items() if name.isupper()}
    folders = {"CRAWLSPACE_COLLECTIONS_DIR": str(folder / "collections"), "CRAWLSPACE_DATA_DIR": str(folder / "data")}
    session = Session.open("demo", {**settings, **folders, "CRAWLSPACE_SHARE_ADDRESS_DELAY": True})
    session.guard_connections(lambda: None)
    return session


def test_its_rules_hold_as_long_as_it_lasts(tmp_path: Path, process: Process) -> None:
    first = open_session(tmp_path / "first", rules=RULES)
    second = open_session(tmp_path / "second", rules="")
    try:
        resolvers = [resolver for resolver in (first.resolver(), second.resolver()) if resolver is not None]
        asked = [asyncio.run(resolver.addresses("open.example", 80)) for resolver in resolvers]
        assert [[address for _, address in found] for found in asked] == [[], [PUBLIC]]
        knows = [resolver.why_refused("open.example", 80) for resolver in resolvers]
        assert [decision and decision.reason for decision in knows] == [Reason.ADDRESS, None]
        assert process.ask() == [], "nobody knows whose question this is"
    finally:
        first.close()
        second.close()
    assert process.ask() == [PUBLIC]


def remove(file: Path) -> None:
    file.unlink()


def replace(file: Path) -> None:
    shutil.copy(file, file.with_name("copy"))
    file.with_name("copy").replace(file)


async def committed(session: Session) -> None:
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(spider=None))
    session.commit(crawler)
    await asyncio.sleep(0)  # the crawl is to be ended, on the loop


@pytest.mark.parametrize("harm", [remove, replace])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_state_file_that_is_gone_before_the_first_transaction(
    session: Session, harm: Callable[[Path], None], *, at_the_end: bool
) -> None:
    harm(session.collection.store_file)
    if at_the_end:
        session.close()
    else:
        asyncio.run(committed(session))
    assert "was moved or removed while demo is being crawled; put it back" in str(session.error)


def test_what_cannot_be_written_at_the_end_is_the_error_of_the_crawl(session: Session) -> None:
    store = session.store
    assert isinstance(store, SqliteStore)
    store._file.db.pragma("query_only", "on")  # as where the disk has become read-only
    session.close()
    assert "cannot be written" in str(session.error)
    SqliteStore.open_for_crawl(session.collection.store_file).close()


LOCATED = [
    # the site, its address, whether that is certain
    ("open.example:80",    PUBLIC, True),
    ("nowhere.example:80", None,   True),
    ("busy.example:80",    None,   False),
    ("[2001:db8::7]:80",   "2001:db8::7", True),
]  # fmt: skip


@pytest.mark.parametrize(("site", "address", "certain"), LOCATED)
def test_no_answer_is_not_taken_for_no_address(session: Session, site: str, address: str | None, *, certain: bool) -> None:
    received: list[tuple[str, str | None, bool]] = []

    def located(site: str, address: str | None, *, certain: bool = True) -> None:
        received.append((site, address, certain))

    assert session.engine._locating is not None
    session.engine._locating._locate(site, located)
    assert received == [(site, address, certain)]


def test_all_is_closed_whatever_fails_before(tmp_path: Path, process: Process) -> None:
    opened, called = open_session(tmp_path, rules=""), list[str]()

    def fail() -> None:
        called.append("first")
        raise ZeroDivisionError

    opened.at_close(fail)
    opened.at_close(lambda: called.append("second"))
    with pytest.raises(ZeroDivisionError):
        opened.close()
    assert called == ["first", "second"]
    assert opened.final_counts is not None, "outcomes are recorded"
    file = opened.collection.store_file
    SqliteStore.open_for_crawl(file, sinks=opened.collection.sinks.names).close()  # which nobody else crawls any more


def test_a_log_that_cannot_be_written_makes_the_exit_status_1(session: Session) -> None:
    session.close()
    assert RunReport.of(session, began=0).exit_status == 0
    session.has_lost_log = True
    assert RunReport.of(session, began=0).exit_status == 1
