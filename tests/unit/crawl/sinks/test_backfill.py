"""A sink that lacks documents is sent all of them, also those whose pages are being fetched at that moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.sinks.backfill import Backfill
from crawlspace.crawl.sinks.deliveries import backfilled_up_to, lacks_documents, request_backfill
from crawlspace.crawl.sinks.repair import UNSENT
from crawlspace.document import Document
from crawlspace.index.login_exclusion import LoginExclusion
from crawlspace.model import UrlState
from crawlspace.state.views import KnownUrl
from tests.contract.conftest import NOW, Known, full
from tests.contract.memory.store import MemoryStore

SINK = "search"
NAMES = [f"a.example/{name}" for name in "abc"]


class Scene:
    """Three documents, none of which waits for the sink."""

    def __init__(self) -> None:
        self.store = ObservedStore(sinks=(SINK,))
        self.known = Known(self.store)
        self.known.discover(*NAMES)
        for name in NAMES:
            self.known.record(self.known.page(name, name, archived=1, next_fetch=NOW))
        self.sent()
        self.archived: set[str] = set()
        self.due: list[str] = []
        request_backfill(self.store, SINK)
        self.backfill = self.begin()

    def begin(self) -> Backfill:
        """As another crawl does."""
        return Backfill(self.store, SINK, FakeClock(NOW), self, lambda state: self.due.append(state.url))

    def document(self, _: int, url: str) -> Document | None:
        return Document(url, title="archived") if url in self.archived else None

    def sent(self) -> list[str]:
        """What waits, which is sent then."""
        orders = self.store.orders(SINK, 100, now=NOW)
        self.store.acknowledge(SINK, orders)
        return [order.url for order in orders]

    def lease(self) -> None:
        assert len(self.store.lease("a.example:80", 3, now=NOW, until=NOW + 300)) == 3

    def release(self) -> None:
        self.store.release([state.id for state in self.store.urls(leased=True)])


class ObservedStore(MemoryStore):
    """Something may happen while it is read."""

    meanwhile: Callable[[], object] | None = None

    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().scan(after, limit)


def states(scene: Scene) -> list[UrlState]:
    return [scene.known.get(name) for name in NAMES]


def test_what_is_ordered_and_awaited_is_ordered_once() -> None:
    scene = Scene()
    scene.archived = {full(name) for name in NAMES}
    behind = LoginExclusion(lambda _: True, "")
    filling = Backfill(scene.store, SINK, FakeClock(NOW), scene, lambda state: scene.due.append(state.url), exclusion=behind)
    scene.lease()
    assert filling.step()
    assert scene.sent() == [full(name) for name in NAMES], "to be deleted"
    assert not filling.step()
    assert scene.sent() == []
    scene.release()
    assert not filling.step()
    assert scene.sent() == []
    assert scene.due == [full(name) for name in NAMES], "fetched before there was a log-in"
    assert not lacks_documents(scene.store, SINK)


def test_what_is_being_fetched_is_awaited() -> None:
    scene = Scene()
    scene.archived = {full(NAMES[1])}
    scene.lease()
    assert scene.backfill.step()
    assert scene.sent() == [full(NAMES[1])]
    assert not scene.backfill.step()
    assert lacks_documents(scene.store, SINK)
    scene.archived |= {full(NAMES[0])}  # by that fetch
    scene.release()
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(NAMES[0])]
    assert [state.fields_mark == UNSENT for state in states(scene)] == [False, False, True]
    assert scene.due == [full(NAMES[2])]
    assert not lacks_documents(scene.store, SINK)


def test_after_a_kill_the_next_crawl_awaits_it() -> None:
    scene = Scene()
    scene.lease()
    scene.backfill.step()
    assert backfilled_up_to(scene.store, SINK) < scene.known.get(NAMES[0]).id
    scene.release()
    scene.archived = set(map(full, NAMES))
    again = scene.begin()
    while again.step():
        pass
    assert scene.sent() == [full(name) for name in NAMES]
    assert not lacks_documents(scene.store, SINK)


def test_what_is_asked_for_meanwhile_is_done() -> None:
    scene = Scene()
    scene.archived = set(map(full, NAMES))
    scene.lease()
    scene.archived.discard(full(NAMES[0]))
    scene.backfill.step()  # the first is awaited, so that all is to be sent from the beginning on, too
    scene.sent()
    scene.archived = set(map(full, NAMES))
    request_backfill(scene.store, SINK)
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(name) for name in NAMES]
    request_backfill(scene.store, SINK, after=scene.known.get(NAMES[0]).id)
    scene.store.meanwhile = lambda: request_backfill(scene.store, SINK)
    scene.backfill.step()
    scene.sent()
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(name) for name in NAMES], "a command asked for them while the first were ordered"


def test_what_is_fetched_no_more_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.known.record(scene.known.page(NAMES[0], NAMES[0], archived=1, next_fetch=None))
    scene.sent()
    scene.archived = set(map(full, NAMES[1:]))
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(name) for name in NAMES[1:]]
    assert "the sink search lacks 1 document that the archive does not have" in caplog.text
    assert not lacks_documents(scene.store, SINK)
