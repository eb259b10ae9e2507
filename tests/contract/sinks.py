"""The simplest sink there is, and what a test asks of any sink beyond its contract: to show what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crawlspace.index.marks import BatchMark
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
        self.marked: BatchMark | None = None
        self.poison: set[str] = set()
        """URLs on which a whole batch fails, without saying which."""

    def mark(self) -> BatchMark | None:
        return self.marked

    def set_mark(self, mark: BatchMark) -> None:
        self.marked = mark

    def urls_of(self, owner: str, *, after: str, limit: int) -> list[str]:
        """All are one owner's."""
        return [url for url in sorted(self.documents) if url > after][:limit]

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sequence[Refusal]:
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
        if mark is not None and mark.may_follow(self.marked):
            self.marked = mark
        return refusals

    def get(self, url: str) -> Document | None:
        return self.documents.get(url)

    def close(self) -> None:
        """Nothing to close."""
