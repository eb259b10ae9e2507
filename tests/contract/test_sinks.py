"""What every sink does with orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import Document, IndexOrder, Op
from tests.contract.sinks import MemorySink, ReadableSink

A = "http://example.com/a"
B = "http://example.com/b"


@pytest.fixture(params=["memory", "embedded"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReadableSink]:
    made: ReadableSink = MemorySink() if request.param == "memory" else EmbeddedIndex(tmp_path / "index.db")
    yield made
    made.close()


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
@pytest.mark.parametrize("together", [True, False])
def test_orders_are_obeyed_in_order_and_sending_again_does_no_harm(
    sink: ReadableSink, written: list[str], expected: dict[str, str], times: int, *, together: bool
) -> None:
    made = [order(number, text) for number, text in enumerate(written)]
    for _ in range(times):
        for batch in [made] if together else [[one] for one in made]:
            assert not sink.send(batch)
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
    )
    assert not sink.send([IndexOrder(1, Op.PUSH, A, document)])
    assert sink.get(A) == document


def test_a_refused_order_is_named_and_the_others_are_durable(sink: ReadableSink) -> None:
    refused = IndexOrder(2, Op.PUSH, B, None)
    refusals = sink.send([order(1, f"+{A} one"), refused, order(3, f"+{A} two")])
    assert [(refusal.order, bool(refusal.reason)) for refusal in refusals] == [(refused, True)]
    found = sink.get(A)
    assert found is not None
    assert found.text == "two"


def order(number: int, written: str) -> IndexOrder:
    url, _, text = written[1:].partition(" ")
    if written[0] == "-":
        return IndexOrder(number, Op.DELETE, url)
    return IndexOrder(number, Op.PUSH, url, Document(url, text=text))
