"""What every sink does with orders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import SinkOptions
from crawlspace.document import Document, IndexOrder, Op, Part
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.urls import document_id
from tests.command_line import ROOT
from tests.contract.sinks import MemorySink, OrderReceiver, ReadableLog, ReadablePush, ReadableSink, written_as
from tests.quick import some
from tests.search_server import ReadableOpenSearch, search_server, sink_of
from tests.solr_server import ReadableSolr, solr_server

A = "http://example.com/a"
B = "http://example.com/b"


@pytest.fixture(params=["memory", "embedded", "file", "http", "opensearch", "solr", "of the docs"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReadableSink]:
    with ExitStack() as stack:
        made: ReadableSink
        if request.param == "memory":
            made = MemorySink()
        elif request.param == "embedded":
            made = EmbeddedIndex(tmp_path / "index.db")
        elif request.param == "file":
            made = ReadableLog("log", tmp_path / "log.jsonl", owner="demo", most_bytes=300, clock=Ticking())
        elif request.param == "http":
            receiver = stack.enter_context(closing(OrderReceiver()))
            made = ReadablePush(sink_of(tmp_path, {"type": "http", "url": receiver.url}), receiver)
        elif request.param == "of the docs":
            made = of_the_docs(tmp_path)
        elif request.param == "solr":
            solr = stack.enter_context(solr_server())
            made = ReadableSolr(sink_of(tmp_path, solr.options()), solr)
        else:
            server = stack.enter_context(search_server())
            made = ReadableOpenSearch(sink_of(tmp_path, server.options()), server)
        yield stack.enter_context(closing(made))


# Orders, each `+url text` or `-url`, and what the sink holds after them.
SEQUENCES: tuple[tuple[list[str], dict[str, str]], ...] = (
    ([], {}),
    ([f"+{A} one"], {A: "one"}),
    ([f"+{A} one", f"+{B} two"], {A: "one", B: "two"}),
    ([f"+{A} one", f"+{A} two"], {A: "two"}),
    ([f"+{A} one", f"-{A}"], {}),
    ([f"-{A}", f"+{A} one"], {A: "one"}),
    ([f"-{A}"], {}),
    ([f"+{A} one", f"+{B} two", f"-{A}", f"+{A} three", f"-{B}"], {A: "three"}),
)


@pytest.mark.parametrize(("written", "expected"), SEQUENCES)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("together", some([True, False], 1))
def test_orders_are_obeyed_in_order_and_sending_again_does_no_harm(
    sink: ReadableSink, written: list[str], expected: dict[str, str], times: int, *, together: bool
) -> None:
    made = [order(number, text) for number, text in enumerate(written)]
    for _ in range(times):
        for batch in [made] if together else [[one] for one in made]:
            assert not sink.send(batch).refused
    assert {url: document.text for url in (A, B) if (document := sink.get(url))} == expected


def test_everything_of_a_document_is_kept(sink: ReadableSink) -> None:
    document = Document(
        url=A,
        title="Tïtle",
        description="about",
        language="de",
        text="some text 🙂",
        headings=["one", "two"],
        content_type="text/html",
        modified="2024-01-01",
        fields={"source": "x"},
        duplicates=[B],
        markdown="# Tïtle\n",
        parts=[
            Part("top", text="some text"),
            Part("one~2", "one", ["Tïtle", "one"], "| a |\n| --- |", "one two", {"price": "3", "tags": '["x", "y"]'}),
        ],
    )
    assert not sink.send([IndexOrder(1, Op.PUSH, A, document, version=1)]).refused
    assert sink.get(A) == document


def test_parts_are_those_that_the_page_had_last(sink: ReadableSink) -> None:
    first = Document(A, text="one two", parts=[Part("one", text="one"), Part("two", text="two")])
    second = Document(A, text="one", parts=[Part("one", text="one")])
    for number, document in enumerate((first, second, replace(second, parts=[])), 1):
        assert not sink.send([IndexOrder(number, Op.PUSH, A, document, version=number)]).refused
        assert sink.get(A) == document


def test_a_refused_order_is_named_and_the_others_are_durable(sink: ReadableSink) -> None:
    refused = IndexOrder(2, Op.PUSH, B, None, version=3)
    refusals = sink.send([order(1, f"+{A} one"), refused, order(3, f"+{A} two")]).refused
    assert [(refusal.order, bool(refusal.reason)) for refusal in refusals] == [(refused, True)]
    found = sink.get(A)
    assert found is not None
    assert found.text == "two"


def of_the_docs(folder: Path) -> ReadableSink:
    """The class that docs/sinks.md shows as one of the user's own, with what it has of a URL."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if "class FolderSink" in block), names)
    options = SinkOptions("mine", "x.FolderSink", {"folder": str(folder / "documents")}, "demo", folder)
    sink = names["FolderSink"].from_options(options)
    options.text("type", "x.FolderSink")
    options.refuse_others()

    def get(url: str) -> Document | None:
        path = sink.folder / f"{document_id(url)}.json"
        return written_as(json.loads(path.read_text())) if path.exists() else None

    sink.get = get
    return cast("ReadableSink", sink)


class Ticking(FakeClock):
    """A clock by which no two moments are the same."""

    def now(self) -> float:
        self.advance(1)
        return super().now()


def order(number: int, written: str) -> IndexOrder:
    url, _, text = written[1:].partition(" ")
    if written[0] == "-":
        return IndexOrder(number, Op.DELETE, url, version=number + 1)
    return IndexOrder(number, Op.PUSH, url, Document(url, text=text), version=number + 1)
