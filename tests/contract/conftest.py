"""Each contract test runs on each store; `reopen` closes one and opens it again, where that means something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crawlspace.document import Document
from crawlspace.model import NewUrl, Queue, Source, State, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.duplicates import rank_of
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.store import Store
from crawlspace.urls import parse
from tests.servers import another_client, emptied
from tests.stores import KINDS, store_of

NOW = 1_750_000_000
SINKS = ("index", "log")
SEGMENT = 1 << 17
"""Ids of what is pending that SQLite keeps together."""


def new(url: str, *, source: Source = Source.INDEX_FOLLOW, shift: int = 0, depth: int = 0, redirects: int = 0) -> NewUrl:
    """A candidate as admitted; `a.example/x` is short for `http://a.example/x`."""
    parsed = parse(full(url))
    return NewUrl(parsed.key, parsed.text, parsed.site, source, shift, depth, redirects, rank_of(redirects, parsed.text))


def full(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def short(url: str) -> str:
    return url.removeprefix("http://")


@cache
def key(url: str) -> int:
    return parse(full(url)).key


@dataclass
class Known:
    """A store and the few steps that tests are told in."""

    store: Store

    def discover(self, *urls: str | NewUrl, now: int = NOW) -> Effects:
        return self.store.discover([new(url) if isinstance(url, str) else url for url in urls], now=now)

    def get(self, url: str) -> UrlState:
        state = self.store.get(full(url))
        assert state is not None, f"{url} is not known"
        return state

    def change(self, url: str, **fields: object) -> Change:
        """A change of a known URL: fields of its state, or of the change."""
        state = self.get(url)
        state.state = State.DONE
        change = Change(state)
        for name, value in fields.items():
            setattr(
                change
                if name in ("links", "discovered", "document", "forget", "keep_in_index", "refused_links", "archived")
                else state,
                name,
                value,
            )
        return change

    def page(self, url: str, checksum: str, *, text: str = "", **fields: object) -> Change:
        """A change to a page whose document is in the group `checksum`."""
        document = Document(full(url), title=f"title of {url}", text=text or f"text of {checksum}")
        return self.change(url, checksum=checksum.encode(), document=document, status=200, **fields)

    def record(self, *changes: Change, now: int = NOW) -> Effects:
        return self.store.record(changes, now=now)

    def crawled(self, *pages: tuple[str, str]) -> None:
        """Discover and record pages, as (url, checksum), and acknowledge all orders."""
        self.discover(*(url for url, _ in pages))
        self.record(*(self.page(url, checksum) for url, checksum in pages))
        self.acknowledge_all()

    def acknowledge_all(self) -> None:
        for sink in SINKS:
            self.store.acknowledge(sink, self.store.orders(sink, 10_000, now=NOW))

    def orders(self, sink: str = "index") -> list[tuple[str, str]]:
        return [(order.op.value, short(order.url)) for order in self.store.orders(sink, 10_000, now=NOW)]

    def leased(self, site: str, limit: int = 100, *, now: int = NOW, queue: Queue | None = None) -> list[str]:
        return [short(state.url) for state in self.store.lease(f"{site}:80", limit, now=now, until=now + 300, queue=queue)]


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[Callable[[], Store]]:
    """Opens a store in memory, in a file of the folder or on a server, as often as it is asked to, and closes them all."""
    if kind == "redis":
        emptied().close()
    with ExitStack() as opened:

        def open_one() -> Store:
            return opened.enter_context(closing(store_of(kind, folder / "state.db", name="contract", sinks=SINKS)))

        yield open_one


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens a store of each kind in turn."""
    with stores(request.param, tmp_path) as open_one:
        yield open_one


@pytest.fixture
def known(open_store: Callable[[], Store]) -> Known:
    return Known(open_store())


@pytest.fixture
def store(known: Known) -> Store:
    return known.store


def shared_store() -> RedisStore:
    """Another client's view of the one store on the server."""
    return RedisStore(another_client(), "shared", sinks=SINKS)


@pytest.fixture
def shared() -> Iterator[RedisStore]:
    """A store on the server, for what Redis alone can get wrong."""
    emptied().close()
    with closing(shared_store()) as store:
        yield store


@pytest.fixture
def client() -> Iterator[Any]:
    """A connection of its own to the server."""
    with another_client() as client:
        yield client
