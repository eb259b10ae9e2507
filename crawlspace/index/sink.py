"""What the drain needs of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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

    def send(self, orders: Sequence[IndexOrder]) -> Sequence[Refusal]:
        """Make the orders durable, in their order; return those refused for themselves.

        Raises IndexUnavailable when the index does not answer: nothing is acknowledged then.
        """

    def close(self) -> None: ...
