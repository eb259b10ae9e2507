"""An index that is rebuilt while the collection changes, whoever is killed when: the switch is to one that is equal to the store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.admin.rebuild import Rebuild, Rebuilt
from crawlspace.clock import FakeClock
from crawlspace.document import Document
from crawlspace.errors import IndexUnavailable
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Entry
from crawlspace.index.versions import Versions
from crawlspace.state.error_policy import DeletionLimit
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.search_server import search_server, sink_of
from tests.solr_server import rebuildable_solr
from tests.unit.index.faulty import push

NAMES = [f"a.example/{number}" for number in range(60)]
LIMIT = DeletionLimit(percent=100, count=1_000)


class Killed(BaseException):
    """The process ends here."""


class Archive:
    """Has a document of most URLs, as it was sent last."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}

    def document(self, place: int, url: str) -> Document | None:
        return self.documents.get(url)


class Scene:
    def __init__(self, folder: Path, options: dict[str, object], seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryStore(sinks=("search",))
        self.known = Known(self.store)
        self.clock = FakeClock()
        self.archive = Archive()
        self.opened = ExitStack()
        self._folder, self._options = folder, options
        self.drain = Drain(self.store, self.sink(), self.clock, batch=7)
        self._number = 0
        self.known.discover(*NAMES)
        for name in NAMES:
            self.push(name)
        self.send_all()

    def sink(self) -> Any:
        made = sink_of(self._folder, self._options)
        self.opened.callback(made.close)
        return made

    def push(self, name: str) -> None:
        self._number += 1
        change = self.known.page(name, f"{self._number}", text=f"text {self._number}")
        assert change.document is not None
        self.known.record(change)
        change.document.url = f"http://{name}"
        self.archive.documents.pop(f"http://{name}", None)
        if self.chance.random() < 0.8:
            self.archive.documents[f"http://{name}"] = change.document

    def step(self) -> None:
        """The collection changes a little, and some of that is sent."""
        for _ in range(self.chance.randrange(4)):
            name = self.chance.choice(NAMES)
            if self.chance.random() < 0.6:
                self.push(name)
            else:
                self.known.record(self.known.change(name, checksum=None))
        if self.chance.random() < 0.7:
            self.drain.step()

    def send_all(self) -> None:
        while self.drain.backlog():
            self.clock.advance(100)
            self.drain.step()

    def rebuild(self, *, killed_at: int, on_previous: bool = False) -> Rebuilt | None:
        """Build it until a step; None where it was killed there."""
        steps = 0

        def step(*_: object) -> None:
            nonlocal steps
            steps += 1
            if steps == killed_at:
                raise Killed
            self.step()

        work = Rebuild(
            self.store,
            self.archive,
            "search",
            Stepping(self.sink(), step),
            Versions(self.store, "search", self.clock),
            "demo",
            LIMIT,
            wait=lambda: None,
            progress=step,
        )
        try:
            return work.run(on_previous=on_previous)
        except Killed:
            return None


class Stepping:
    """Something happens before each call."""

    def __init__(self, wrapped: Any, step: Any) -> None:
        self._wrapped, self._step = wrapped, step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)

        def call(*args: Any, **options: Any) -> Any:
            self._step()
            result = found(*args, **options)
            return Stepping(result, self._step) if name == "next_copy" else result

        return call if callable(found) else found


SERVERS: dict[str, Any] = {"opensearch": search_server, "solr": rebuildable_solr}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    with SERVERS[request.param]() as made:
        yield made


@pytest.mark.parametrize("seed", some(range(12), 2))
def test_after_kills_and_changes_the_new_index_is_equal_to_the_store(tmp_path: Path, server: Any, seed: int) -> None:
    with ExitStack() as stack:
        scene = Scene(tmp_path, server.options(), seed)
        stack.enter_context(scene.opened)
        for number in range(2):
            present = server.searched()
            done = None
            while done is None or done.differ:
                done = scene.rebuild(killed_at=scene.chance.randrange(1, 60), on_previous=number == 1)
                assert (server.searched() == present) is (done is None or bool(done.differ))
            assert not done.refused
            for _ in range(5):
                scene.step()
            scene.send_all()
            expected = {state.url: state.ordered for state in scene.store.urls() if state.indexed}
            found = server.versions()
            assert found.keys() == expected.keys()
            for url, sequence in expected.items():
                order = scene.known.get(url.removeprefix("http://"))
                assert found[url] >= Versions(scene.store, "search", scene.clock).least(sequence), order


def test_what_can_be_had_nowhere_prevents_the_switch(tmp_path: Path, server: Any) -> None:
    with ExitStack() as stack:
        scene = Scene(tmp_path, server.options(), 1)
        stack.enter_context(scene.opened)
        scene.archive.documents.clear()
        url = f"http://{NAMES[7]}"
        server.remove(url)
        scene.step = lambda: None  # type: ignore[method-assign]
        done = scene.rebuild(killed_at=0)
        assert done is not None
        assert (done.differ, done.has_switched) == (1, False)


def test_one_call_at_a_time_decides_what_is_built(tmp_path: Path, server: Any) -> None:
    with ExitStack() as stack:
        scene = Scene(tmp_path, server.options(), 1)
        stack.enter_context(scene.opened)
        scene.sink().begin_next()
        with pytest.raises(
            IndexUnavailable, match=rf"a new index is being built for {server.options()['index']} at .*: end that first"
        ):
            scene.sink().begin_next(on_previous=True)


def test_a_document_of_another_collection_that_cannot_be_carried_over_prevents_the_switch(tmp_path: Path) -> None:
    """Solr keeps the version of what was deleted."""
    with rebuildable_solr() as server, ExitStack() as stack:
        scene = Scene(tmp_path, server.options(), 1)
        stack.enter_context(scene.opened)
        other = stack.enter_context(closing(sink_of(tmp_path, server.options(), collection="other")))
        other.send([push("of-another", 5)])
        sink = scene.sink()
        sink.begin_next()
        sink.next_copy().remove([Entry("http://a.example/of-another", 100, "other")])
        scene.step = lambda: None  # type: ignore[method-assign]
        done = scene.rebuild(killed_at=0)
        assert done is not None
        assert (done.differ, done.has_switched) == (1, False)
