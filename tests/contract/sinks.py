"""The simplest sink there is, and what a test asks of any sink beyond its contract: to show what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crawlspace.index.sink import Refusal, Sink
from crawlspace.model import Document, IndexOrder, Op


class ReadableSink(Sink, Protocol):
    def get(self, url: str) -> Document | None:
        """The document of a URL."""


class MemorySink:
    """An index in a dictionary. `failures` are raised by the next calls, one each; documents titled `bad` are refused."""

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self.documents: dict[str, Document] = {}
        self.log: list[str] = []
        self.failures: list[Exception] = []
        self.poison: set[str] = set()
        """URLs on which a whole batch fails, without saying which."""

    def send(self, orders: Sequence[IndexOrder]) -> Sequence[Refusal]:
        if self.failures:
            raise self.failures.pop(0)
        for order in orders:
            if order.url in self.poison:
                raise ValueError("something in this batch")
        refusals = []
        for order in orders:
            if order.op is Op.DELETE:
                self.documents.pop(order.url, None)
            elif order.document is None:
                refusals.append(Refusal(order, "a push without a document"))
                continue
            elif order.document.title == "bad":
                refusals.append(Refusal(order, "it is bad"))
                continue
            else:
                self.documents[order.url] = order.document
            self.log.append(f"{order.op} {order.url}")
        return refusals

    def get(self, url: str) -> Document | None:
        return self.documents.get(url)

    def close(self) -> None:
        """Nothing to close."""
