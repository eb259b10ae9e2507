"""The interface of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crawlspace.index.marks import BatchMark
from crawlspace.model import IndexOrder


@dataclass(frozen=True, slots=True)
class Refusal:
    """An order that the index refuses; sending it again would not help."""

    order: IndexOrder
    reason: str


class Sink(Protocol):
    """An index that accepts orders. Sending an order twice is harmless, because ids depend on the URL alone."""

    name: str
    """The sink's name in the outbox."""

    def mark(self) -> BatchMark | None:
        """Return the mark of the last batch; None without one."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sequence[Refusal]:
        """Commit the orders, in their order; return those that are refused.

        The mark of their batch is stored in the same transaction, if it `may_follow` the present one. A batch may come in parts.
        Raises IndexUnavailable if the index cannot be used: nothing is acknowledged then.
        """

    def close(self) -> None: ...
