"""Orders as items of requests to a search server, and what its answers mean for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from crawlspace.document import IndexOrder
from crawlspace.index.sink import Refusal

_WAYS_OUT = {
    "index_closed_exception": "open the index again",
    "disk usage exceeded": "free space on the disks of the server",
    "read-only / allow delete": "free space on the disks of the server",
    "read-only": "end that, and what waits is sent",
}
"""What to do, by a part of what a server answers."""


class ItemResult(Enum):
    """What the answer to an item means."""

    DONE = auto()
    CONFLICT = auto()
    """The server has the same version, or a later one."""
    SLOW_DOWN = auto()
    ITS_OWN = auto()
    """The item itself is refused, and will be whenever it is sent."""
    TOO_LARGE = auto()
    """The request has more bytes than the server takes."""
    STOP = auto()
    """Nothing can be written at present, by anybody."""
    AGAIN = auto()
    NO_ANSWER = auto()
    """The server could not be reached, or the connection was cut; the item may have been written."""


@dataclass(frozen=True, slots=True)
class Item:
    """An order as it is written in the body of a request; `id` is that of its document."""

    order: IndexOrder
    id: str
    lines: bytes


@dataclass(frozen=True, slots=True)
class Judged:
    answer: ItemResult
    why: str = ""
    version: int = 0
    """That the server has, of a conflict; 0: not known."""
    may_pass: bool = False
    """It failed in the server, which may have had nothing to do with this item if others were sent with it."""

    @property
    def is_trouble(self) -> bool:
        """Whether the server is the reason, and not the item."""
        return self.answer in (ItemResult.SLOW_DOWN, ItemResult.STOP, ItemResult.AGAIN, ItemResult.NO_ANSWER)


@dataclass(slots=True)
class BatchOutcome:
    """What became of the items so far."""

    refused: list[Refusal] = field(default_factory=list)
    later: list[IndexOrder] = field(default_factory=list)
    conflicts: list[tuple[Item, Judged]] = field(default_factory=list)
    why: str = ""
    is_slow: bool = False
    has_stopped: bool = False

    def add(self, item: Item, answered: Judged) -> None:
        match answered.answer:
            case ItemResult.DONE:
                return
            case ItemResult.CONFLICT:
                self.conflicts.append((item, answered))
                return
            case ItemResult.ITS_OWN | ItemResult.TOO_LARGE:
                self.refused.append(Refusal(item.order, answered.why))
                return
            case ItemResult.SLOW_DOWN:
                self.is_slow = True
            case ItemResult.STOP:
                self.has_stopped = True
        self.postpone([item], answered.why)

    def postpone(self, unsent: Sequence[Item], why: str) -> None:
        """Have items be sent later."""
        self.later += [item.order for item in unsent]
        self.why = self.why or why

    def put_off(self, orders: Sequence[IndexOrder], answered: Judged) -> None:
        """Have all orders of a batch be sent again, because of what was answered to its marker; those that are done do no harm."""
        self.later = list(orders)
        self.refused = []
        self.is_slow = self.is_slow or answered.answer is ItemResult.SLOW_DOWN
        self.has_stopped = self.has_stopped or answered.answer is ItemResult.STOP
        self.why = self.why or answered.why


def way_out(why: str) -> str:
    """Return what can be done where an index takes nothing for this reason; empty where that is not known."""
    for known, way in _WAYS_OUT.items():
        if known in why:
            return f"; {way}"
    return ""


def requests_of(items: Iterable[Item], *, most_bytes: int, most_items: int, with_all: Item | None = None) -> Iterator[list[Item]]:
    """Divide items into requests, in their order. `with_all` follows them where all are in one request; else it is left out."""
    part: list[Item] = []
    size = 0
    for item in items:
        if part and (size + len(item.lines) > most_bytes or len(part) == most_items):
            yield part
            part, size, with_all = [], 0, None
        part.append(item)
        size += len(item.lines)
    if part:
        yield part if with_all is None else [*part, with_all]
