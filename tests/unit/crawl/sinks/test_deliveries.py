"""Orders that wait for the sinks of a crawl, and the backfill of a sink that lacks documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.archive.files import place_of
from crawlspace.clock import FakeClock
from crawlspace.config.content import ReferenceSettings
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.backfill import Backfill
from crawlspace.crawl.sinks.deliveries import (
    ArchiveReferences,
    Deliveries,
    backfilled_up_to,
    end_backfill,
    lacks_documents,
    references_of,
    request_backfill,
    take_over_backfill,
)
from crawlspace.crawl.sinks.repair import UNSENT
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.login_exclusion import LoginExclusion
from crawlspace.model import State, UrlState
from crawlspace.state.sqlite.file import IN_MEMORY
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.views import KnownUrl
from crawlspace.urls import document_id
from tests.contract.conftest import NOW, Known, full
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink

NAMES = [f"a.example/{name}" for name in "abcd"]


class Scene:
    """Two sinks for which up to three orders may wait."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(sinks=(EMBEDDED, "search")), FakeClock()
        self.local, self.server = MemorySink(EMBEDDED), MemorySink("search")
        self.deliveries = Deliveries(self.store, [self.local, self.server], self.clock, most=3)
        self.known = Known(self.store)
        self.known.discover(*NAMES)

    def page(self, name: str) -> None:
        effects = self.known.record(self.known.page(name, name, text=name))
        self.deliveries.ordered(effects.pushes + effects.deletes)

    def send(self, number: int) -> None:
        drain = self.deliveries.drains[number]
        self.deliveries.settle(drain, drain.deliver(drain.take()))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_each_sink_has_its_own_backlog(scene: Scene) -> None:
    scene.page(NAMES[0])
    scene.send(0)
    assert (scene.deliveries.waiting(EMBEDDED), scene.deliveries.waiting("search"), scene.deliveries.max_backlog) == (0, 1, 1)
    assert (len(scene.local.documents), len(scene.server.documents)) == (1, 0)


def test_a_sink_that_answers_holds_up_the_crawl(scene: Scene) -> None:
    for name in NAMES[:3]:
        scene.page(name)
    assert scene.deliveries.blocks_crawl
    scene.send(0)
    assert scene.deliveries.blocks_crawl, "the other one has not taken them"
    scene.send(1)
    assert not scene.deliveries.blocks_crawl


def test_pushes_for_a_server_that_does_not_answer_are_dropped_and_deletions_kept(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.page(NAMES[0])
    scene.send(0)
    scene.send(1)
    scene.server.failures = [IndexUnavailable("down")] * 9
    scene.known.record(scene.known.change(NAMES[0], checksum=None, state=State.GONE))
    scene.deliveries.ordered(1)
    scene.send(1)
    for name in NAMES[1:3]:
        scene.page(name)
    scene.send(0)
    assert not scene.deliveries.blocks_crawl
    assert [order.op.value for order in scene.store.orders("search", 10, now=NOW)] == ["delete"]
    assert lacks_documents(scene.store, "search")
    assert not lacks_documents(scene.store, EMBEDDED)
    assert caplog.text.count("the pushes among them are dropped") == 1


def test_they_are_dropped_where_others_have_ordered_them(scene: Scene) -> None:
    scene.server.failures = [IndexUnavailable("down")] * 9
    scene.page(NAMES[0])
    scene.send(1)
    for name in NAMES[1:3]:
        scene.known.record(scene.known.page(name, name, text=name))
    drain = scene.deliveries.drains[1]
    scene.deliveries.drop_excess(drain)
    assert not lacks_documents(scene.store, "search"), "it is not known yet that so many wait"
    scene.deliveries.recount({"search": 3})
    scene.deliveries.drop_excess(drain)
    assert lacks_documents(scene.store, "search")
    assert scene.store.backlog("search") == 0
    scene.deliveries.recount({"search": 3})  # another worker has not seen it yet
    request_backfill(scene.store, "search", after=2)
    scene.deliveries.drop_excess(drain)
    assert backfilled_up_to(scene.store, "search") == 2


def test_a_worker_to_whom_it_did_not_answer_drops_nothing_where_another_one_sends(scene: Scene) -> None:
    scene.server.failures = [IndexUnavailable("down")]
    for name in NAMES[:2]:
        scene.page(name)
    scene.send(1)
    scene.deliveries.drains[1].leave_to_others()
    scene.page(NAMES[2])
    assert not lacks_documents(scene.store, "search")
    assert scene.store.backlog("search") == 3


def test_the_embedded_index_is_waited_for(scene: Scene) -> None:
    scene.local.failures = [IndexUnavailable("the disk is full")]
    for name in NAMES[:3]:
        scene.page(name)
    scene.send(0)
    scene.send(1)
    assert scene.deliveries.blocks_crawl
    assert scene.deliveries.waiting(EMBEDDED) == 3


def test_a_command_that_fills_a_sink_ends_no_filling_that_a_crawl_has_begun_since() -> None:
    store = MemoryStore(sinks=("search",))
    take_over_backfill(store, "search")
    assert not lacks_documents(store, "search"), "it lacked none"
    for happens, lacks in (("nothing", False), ("dropped", True), ("a crawl fills it", True)):
        request_backfill(store, "search")
        take_over_backfill(store, "search")
        assert (lacks_documents(store, "search"), backfilled_up_to(store, "search")) == (True, 0)
        if happens != "nothing":
            request_backfill(store, "search", after=0 if happens == "dropped" else 7)
        end_backfill(store, "search")
        assert lacks_documents(store, "search") is lacks, happens


URL = "http://a.example/"
SETTINGS = ReferenceSettings(is_archived=True, max_bytes=1_000, url="http://c.example/{id}")
SMALL, LARGE = Document(URL, "title", text="a" * 1_000), Document(URL, "title", text="a" * 1_001)
CONTENT = ("two.warc.gz:4711", f"http://c.example/{document_id(URL)}")
NONE = ("", "")
PLACE, UNKNOWN = place_of(2, 4711), place_of(3, 0)


def files() -> SqliteStore:
    store = SqliteStore(IN_MEMORY)
    for name in ("one.warc.gz", "two.warc.gz"):
        store.add_archive_file(name)
    return store


# a document and its place; where it is then, and whether it is without its text
ORDERS = [
    (SMALL, PLACE, CONTENT, False),
    (LARGE, PLACE, CONTENT, True),
    (LARGE, None, NONE, False),
    (LARGE, UNKNOWN, NONE, False),
    (None, PLACE, NONE, False),
]


@pytest.mark.parametrize(("document", "place", "content", "is_by_reference"), ORDERS)
def test_orders(document: Document | None, place: int | None, content: tuple[str, str], *, is_by_reference: bool) -> None:
    order = IndexOrder(1, Op.PUSH if document else Op.DELETE, URL, document, 7, archived=place)
    (found,) = ArchiveReferences(files(), SETTINGS).of([order])
    assert ((found.content_place, found.content_url), found.is_by_reference) == (content, is_by_reference)
    assert found.document == (Document(URL, "title") if is_by_reference else document)
    assert (found.sequence, found.version, found.url) == (1, 7, URL)


def test_a_file_that_was_begun_meanwhile_is_found() -> None:
    store = files()
    references = ArchiveReferences(store, SETTINGS)
    order = IndexOrder(1, Op.PUSH, URL, SMALL, archived=UNKNOWN)
    assert references.of([order])[0].content_place == ""
    store.add_archive_file("three.warc.gz")
    (found,) = references.of([order])
    assert found.content_place == "three.warc.gz:0"


def test_the_embedded_index_has_all_texts_and_nothing_is_referred_to_without_an_archive() -> None:
    assert references_of(files(), EMBEDDED, SETTINGS) is None
    assert references_of(files(), "search", ReferenceSettings(max_bytes=1_000)) is None
    assert references_of(files(), "search", SETTINGS) is not None


# --- backfill -------------------------------------------------------------------------------------------------------


SINK = "search"
FILLED = [f"a.example/{name}" for name in "abc"]


class Backfilled:
    """Three documents, none of which waits for the sink."""

    def __init__(self) -> None:
        self.store = ObservedStore(sinks=(SINK,))
        self.known = Known(self.store)
        self.known.discover(*FILLED)
        for name in FILLED:
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


def states(scene: Backfilled) -> list[UrlState]:
    return [scene.known.get(name) for name in FILLED]


def test_what_is_ordered_and_awaited_is_ordered_once() -> None:
    scene = Backfilled()
    scene.archived = {full(name) for name in FILLED}
    behind = LoginExclusion(lambda _: True, "")
    filling = Backfill(scene.store, SINK, FakeClock(NOW), scene, lambda state: scene.due.append(state.url), exclusion=behind)
    scene.lease()
    assert filling.step()
    assert scene.sent() == [full(name) for name in FILLED], "to be deleted"
    assert not filling.step()
    assert scene.sent() == []
    scene.release()
    assert not filling.step()
    assert scene.sent() == []
    assert scene.due == [full(name) for name in FILLED], "fetched before there was a log-in"
    assert not lacks_documents(scene.store, SINK)


def test_what_is_being_fetched_is_awaited() -> None:
    scene = Backfilled()
    scene.archived = {full(FILLED[1])}
    scene.lease()
    assert scene.backfill.step()
    assert scene.sent() == [full(FILLED[1])]
    assert not scene.backfill.step()
    assert lacks_documents(scene.store, SINK)
    scene.archived |= {full(FILLED[0])}  # by that fetch
    scene.release()
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(FILLED[0])]
    assert [state.fields_mark == UNSENT for state in states(scene)] == [False, False, True]
    assert scene.due == [full(FILLED[2])]
    assert not lacks_documents(scene.store, SINK)


def test_after_a_kill_the_next_crawl_awaits_it() -> None:
    scene = Backfilled()
    scene.lease()
    scene.backfill.step()
    assert backfilled_up_to(scene.store, SINK) < scene.known.get(FILLED[0]).id
    scene.release()
    scene.archived = set(map(full, FILLED))
    again = scene.begin()
    while again.step():
        pass
    assert scene.sent() == [full(name) for name in FILLED]
    assert not lacks_documents(scene.store, SINK)


def test_what_is_asked_for_meanwhile_is_done() -> None:
    scene = Backfilled()
    scene.archived = set(map(full, FILLED))
    scene.lease()
    scene.archived.discard(full(FILLED[0]))
    scene.backfill.step()  # the first is awaited, so that all is to be sent from the beginning on, too
    scene.sent()
    scene.archived = set(map(full, FILLED))
    request_backfill(scene.store, SINK)
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(name) for name in FILLED]
    request_backfill(scene.store, SINK, after=scene.known.get(FILLED[0]).id)
    scene.store.meanwhile = lambda: request_backfill(scene.store, SINK)
    scene.backfill.step()
    scene.sent()
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(name) for name in FILLED], "a command asked for them while the first were ordered"


def test_what_is_fetched_no_more_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    scene = Backfilled()
    scene.known.record(scene.known.page(FILLED[0], FILLED[0], archived=1, next_fetch=None))
    scene.sent()
    scene.archived = set(map(full, FILLED[1:]))
    while scene.backfill.step():
        pass
    assert scene.sent() == [full(name) for name in FILLED[1:]]
    assert "the sink search lacks 1 document that the archive does not have" in caplog.text
    assert not lacks_documents(scene.store, SINK)
