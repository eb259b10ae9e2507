"""Documents that are too large are sent without their text, and with where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.content import ReferenceSettings
from crawlspace.crawl.sinks.deliveries import references_of
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.orders import by_reference
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sink
from tests.contract.conftest import Known, full
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import OrderReceiver
from tests.fault_proxy import Fault, FaultProxy
from tests.search_server import SearchServer, search_server, sink_of

A, B = "http://a.example/a", "http://a.example/b"
FIELDS = {"content_place": "one.warc.gz:4711", "content_url": "http://c.example/1"}
PLACED: Any = FIELDS
"""As arguments."""
FORTY_MEGABYTES = ("word " + " " * 9_995) * 4_000
"""Of few words: a server takes long for many."""
LARGE = IndexOrder(1, Op.PUSH, A, Document(A, "Large", language="en", text=FORTY_MEGABYTES), 1, **PLACED)
SMALL = IndexOrder(2, Op.PUSH, B, Document(B, "Small", language="en", text="of b"), 2, **PLACED)
TOO_LARGE = Fault(lambda body: (413, "too large") if len(body) > 1_000_000 else None)


def without_text(order: IndexOrder) -> IndexOrder:
    found = by_reference(order)
    assert found is not None
    return found


def test_what_has_no_text_or_is_nowhere_is_not_sent_by_reference() -> None:
    assert by_reference(replace(LARGE, content_place="")) is None
    assert by_reference(IndexOrder(1, Op.DELETE, A, content_place="one.warc.gz:4711")) is None
    assert by_reference(without_text(LARGE)) is None
    assert without_text(LARGE).document == Document(A, "Large", language="en")


class Searched:
    """A search server behind a proxy that refuses what is large, if it is told to."""

    def __init__(self, search: SearchServer, proxy: FaultProxy, folder: Path) -> None:
        self.search, self.proxy = search, proxy
        options = {**search.options(), "url": proxy.url, "batch_bytes": 100_000_000, "timeout": 600}
        self.sink: Sink = sink_of(folder, options)

    def there(self, url: str) -> tuple[object, object, int]:
        """Title of a document; where its text is; and how many characters of it are there."""
        found = self.search.document(url) or {}
        return found.get("title"), _reference(found), len(found.get("text", {}).get("en", ""))


@pytest.fixture
def searched(tmp_path: Path) -> Iterator[Searched]:
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(search.url)))
        made = Searched(search, proxy, tmp_path)
        stack.enter_context(closing(made.sink))
        yield made


@pytest.mark.full
def test_a_search_server_takes_forty_megabytes(searched: Searched, tmp_path: Path) -> None:
    with closing(sink_of(tmp_path, searched.search.options(timeout=600))) as sink:
        sent = sink.send([LARGE, SMALL])
    assert (sent.refused, sent.later) == ([], [])
    assert searched.there(A) == ({"en": "Large"}, {}, 40_000_000)
    assert searched.there(B) == ({"en": "Small"}, {}, 4)


def test_a_search_server_that_takes_less_gets_the_document_without_its_text(
    searched: Searched, caplog: pytest.LogCaptureFixture
) -> None:
    searched.proxy.rest = TOO_LARGE
    sent = searched.sink.send([LARGE, SMALL])
    assert (sent.refused, sent.later) == ([], [])
    assert searched.there(A) == ({"en": "Large"}, FIELDS, 0)
    assert searched.there(B) == ({"en": "Small"}, {}, 4)
    assert (
        f"{A} is too large for the sink search, and is sent without its text, which is at {FIELDS['content_place']}"
        in caplog.text
    )


def test_what_is_not_archived_or_too_large_all_the_same_is_refused(searched: Searched) -> None:
    searched.proxy.rest = TOO_LARGE
    elsewhere = Document(B, "Large", fields={str(number): "x" * 7_000 for number in range(200)}, text="x")
    orders = [replace(LARGE, content_place=""), replace(SMALL, document=elsewhere)]
    assert [(one.order.url, one.reason) for one in searched.sink.send(orders).refused] == [
        (A, "it is too large for the server"),
        (B, "it is too large for the server"),
    ]


def test_a_document_by_reference_is_replaced_by_one_that_is_whole(searched: Searched) -> None:
    searched.sink.send([without_text(SMALL)])
    assert searched.there(B) == ({"en": "Small"}, FIELDS, 0)
    searched.sink.send([replace(SMALL, version=3)])
    assert searched.there(B) == ({"en": "Small"}, {}, 4)


def test_without_a_url_the_place_is_all(searched: Searched) -> None:
    searched.sink.send([without_text(replace(SMALL, content_place="one.warc.gz:7", content_url=""))])
    assert searched.there(B) == ({"en": "Small"}, {"content_place": "one.warc.gz:7"}, 0)


def test_a_drain_sends_large_documents_by_reference_and_settles_them(searched: Searched) -> None:
    searched.proxy.rest = TOO_LARGE
    store = MemoryStore(sinks=("search",))
    known = Known(store)
    place = store.add_archive_file("one.warc.gz") << 32 | 4711
    known.discover("a.example/a", "a.example/b", "a.example/c")
    known.record(
        known.page("a.example/a", "a", text=FORTY_MEGABYTES, archived=place),  # too large by the setting
        known.page("a.example/b", "b", text="x" * 2_000_000, archived=place + 1),  # and by the server
        known.page("a.example/c", "c", text="of c", archived=place + 2),
    )
    settings = ReferenceSettings(
        is_archived=True, max_bytes=10_000_000, url="http://c.example/{collection}/{id}", collection="demo"
    )
    drain = Drain(store, searched.sink, FakeClock(), references=references_of(store, "search", settings))
    while drain.step().sent:
        pass
    assert (drain.backlog(), store.parked("search")) == (0, [])
    found = [searched.search.document(full(f"a.example/{name}")) or {} for name in "abc"]
    assert [one.get("content_place") for one in found] == ["one.warc.gz:4711", "one.warc.gz:4712", None]
    assert [one.get("text") for one in found] == [None, None, {"other": "of c"}]


@pytest.mark.parametrize("status", [200, 413])
def test_a_receiver_of_lines_gets_where_the_text_is(tmp_path: Path, status: int) -> None:
    """It is sent so, or after it has refused the whole one."""
    with closing(OrderReceiver()) as receiver, closing(sink_of(tmp_path, {"type": "http", "url": receiver.url})) as sink:
        receiver.answers = [(status, "")] if status != 200 else []
        order = SMALL if status != 200 else without_text(SMALL)
        assert not sink.send([order]).refused
        line = json.loads(receiver.requests[-1][1])
    assert (line["document"]["text"], _reference(line["document"])) == ("", FIELDS)
    assert len(receiver.requests) == (2 if status != 200 else 1)


def test_a_receiver_that_refuses_it_all_the_same_has_it_parked(tmp_path: Path) -> None:
    with closing(OrderReceiver()) as receiver, closing(sink_of(tmp_path, {"type": "http", "url": receiver.url})) as sink:
        receiver.answers = [(413, ""), (413, "")]
        (refused,) = sink.send([SMALL]).refused
    assert (refused.order.url, "413" in refused.reason, len(receiver.requests)) == (B, True, 2)


def test_a_file_of_lines_has_where_the_text_is(tmp_path: Path) -> None:
    with closing(sink_of(tmp_path, {"type": "file"})) as sink:
        sink.send([without_text(LARGE), SMALL])
    lines = [json.loads(line) for line in (tmp_path / "search.jsonl").read_bytes().splitlines()]
    assert [(line["document"]["text"], _reference(line["document"])) for line in lines] == [("", FIELDS), ("of b", {})]


def _reference(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("content_place", "content_url") if name in found}
