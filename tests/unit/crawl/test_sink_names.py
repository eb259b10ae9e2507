"""The store keeps orders under one name: a crawl does not start with a sink of another name, which would never get any."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.clock import FakeClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.engine import SINK
from crawlspace.crawl.startup import open_engine
from crawlspace.errors import ConfigError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.state.memory.store import MemoryStore
from tests.contract.sinks import MemorySink


def collection(folder: Path) -> Collection:
    (folder / "demo").mkdir()
    (folder / "demo" / "start_urls.txt").write_text("http://a.example/\n")
    names = {name: value for name, value in vars(defaults).items() if name.isupper()}
    return load_collection("demo", {**names, "CRAWLSPACE_COLLECTIONS_DIR": str(folder)})


def test_a_sink_with_another_name_is_refused_before_any_change(tmp_path: Path) -> None:
    store = MemoryStore(sinks=(SINK,))
    with pytest.raises(ConfigError, match=f"the sink 'elsewhere' would get no orders, because the store keeps them for '{SINK}'"):
        open_engine(collection(tmp_path), store=store, sink=MemorySink("elsewhere"), clock=FakeClock())
    assert store.get("http://a.example/") is None


def test_the_sink_of_a_crawl_has_the_name(tmp_path: Path) -> None:
    store, sink = MemoryStore(sinks=(SINK,)), EmbeddedIndex(tmp_path / "index.db")
    assert open_engine(collection(tmp_path), store=store, sink=sink, clock=FakeClock()).refused_starts == []
    sink.close()
