"""What the drain needs of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crawlspace.index.marks import Mark
from crawlspace.model import IndexOrder


@dataclass(frozen=True, slots=True)
class Refusal:
    """An order the index refuses for itself; sending it again would not help."""

    order: IndexOrder
    reason: str


class Sink(Protocol):
    """An index that takes orders. Sending an order again does no harm: ids depend on the URL alone."""

    name: str
    """The sink's own place in the outbox."""

    def mark(self) -> Mark | None:
        """Return the mark of the last batch, None where there is none."""

    def send(self, orders: Sequence[IndexOrder], mark: Mark | None = None) -> Sequence[Refusal]:
        """Make the orders durable, in their order; return those refused for themselves.

        With them, in the same transaction, the mark of their batch, if it `may_follow` the one that is there. A batch may come in parts.
        Raises IndexUnavailable when the index does not answer: nothing is acknowledged then.
        """

    def close(self) -> None: ...
