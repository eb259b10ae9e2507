"""Orders as items of requests to a search server, and what the server's answers mean for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from crawlspace.document import IndexOrder
from crawlspace.index.sink import Refusal

ADVICE = {
    "index_closed_exception": "open the index again",
    "disk usage exceeded": "free space on the disks of the server",
    "read-only / allow delete": "free space on the disks of the server",
    "read-only": "end that, and waiting orders are sent",
}
"""Advice, by a part of the server's answer."""


class ItemResult(Enum):
    """The result of an item."""

    DONE = auto()
    CONFLICT = auto()
    """The server has the same version, or a later one."""
    SLOW_DOWN = auto()
    REFUSED = auto()
    """The item itself is refused, and will be whenever it is sent."""
    TOO_LARGE = auto()
    """The request has more bytes than the server accepts."""
    BLOCKED = auto()
    """The index accepts no writes at present."""
    RETRY = auto()
    NO_ANSWER = auto()
    """The server could not be reached, or the connection was cut; the item may have been written."""


@dataclass(frozen=True, slots=True)
class Item:
    """An order as it is written in the body of a request; `id` is that of its document."""

    order: IndexOrder
    id: str
    lines: bytes


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """The server's answer to an item, or to a whole request."""

    result: ItemResult
    why: str = ""
    version: int = 0
    """The version on the server, of a conflict; 0: not known."""
    may_pass_alone: bool = False
    """It failed in the server, perhaps because of other items of the request."""

    @property
    def is_server_failure(self) -> bool:
        """Whether the server is the reason, and not the item."""
        return self.result in (ItemResult.SLOW_DOWN, ItemResult.BLOCKED, ItemResult.RETRY, ItemResult.NO_ANSWER)


@dataclass(slots=True)
class BatchOutcome:
    """The results of the items of a batch so far."""

    refused: list[Refusal] = field(default_factory=list)
    later: list[IndexOrder] = field(default_factory=list)
    conflicts: list[tuple[Item, ItemAnswer]] = field(default_factory=list)
    why: str = ""
    is_slow: bool = False
    is_blocked: bool = False

    def add(self, item: Item, answer: ItemAnswer) -> None:
        """Add the result of an item."""
        match answer.result:
            case ItemResult.DONE:
                return
            case ItemResult.CONFLICT:
                self.conflicts.append((item, answer))
            case ItemResult.REFUSED | ItemResult.TOO_LARGE:
                self.refused.append(Refusal(item.order, answer.why))
            case _:
                self._note(answer)
                self.later.append(item.order)

    def postpone(self, items: Sequence[Item], why: str) -> None:
        """Have items sent again later."""
        self.later += [item.order for item in items]
        self.why = self.why or why

    def postpone_all(self, orders: Sequence[IndexOrder], answer: ItemAnswer) -> None:
        """Have all orders of a batch sent again, because of the answer to its marker; sending those again that are done is harmless."""
        self.later, self.refused = list(orders), []
        self._note(answer)

    def _note(self, answer: ItemAnswer) -> None:
        self.is_slow = self.is_slow or answer.result is ItemResult.SLOW_DOWN
        self.is_blocked = self.is_blocked or answer.result is ItemResult.BLOCKED
        self.why = self.why or answer.why


def advice_for(why: str) -> str:
    """Return what can be done where an index accepts nothing for this reason; empty if that is not known."""
    return next((f"; {advice}" for known, advice in ADVICE.items() if known in why), "")


def split_into_requests(
    items: Iterable[Item], *, max_bytes: int, max_items: int, with_all: Item | None = None
) -> Iterator[list[Item]]:
    """Divide items into requests, in their order. `with_all` follows them if all are in one request, else it is left out."""
    part: list[Item] = []
    size = 0
    for item in items:
        if part and (size + len(item.lines) > max_bytes or len(part) == max_items):
            yield part
            part, size, with_all = [], 0, None
        part.append(item)
        size += len(item.lines)
    if part:
        yield part if with_all is None else [*part, with_all]
