"""A process that writes the embedded index of a crawl: `python -m crawlspace.index.process`.

It communicates by a socket that it inherits (its number is the first argument), and ends when the crawl closes that. What it is writing then
is committed: the crawl sends those orders again, which does no harm.
"""

from __future__ import annotations

import socket
import sys
from contextlib import closing
from pathlib import Path

from msgspec import Struct, msgpack

from crawlspace.document import IndexOrder
from crawlspace.errors import CrawlspaceError
from crawlspace.framing import framed, received
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import BatchMark


class OrderBatch(Struct, frozen=True):
    """Orders of one transaction."""

    orders: tuple[IndexOrder, ...]
    mark: BatchMark | None


class BatchAnswer(Struct, frozen=True):
    """What became of a batch."""

    is_committed: bool
    refused: tuple[tuple[int, str], ...] = ()
    """Numbers of the orders that the index refuses, each with the reason."""


_BATCHES = msgpack.Decoder(OrderBatch)


def main(descriptor: int, path: str, owner: str) -> None:
    """Commit batches until the other side closes the socket."""
    with socket.socket(fileno=descriptor) as channel, closing(EmbeddedIndex(Path(path), owner=owner)) as index:
        while body := received(channel):
            channel.sendall(framed(answer(index, _BATCHES.decode(body))))


def answer(index: EmbeddedIndex, batch: OrderBatch) -> BatchAnswer:
    """Commit a batch. Where that fails, nothing has changed, and the crawl, which tries it itself, finds out why."""
    try:
        sent = index.send(batch.orders, batch.mark)
    except CrawlspaceError:
        return BatchAnswer(is_committed=False)
    return BatchAnswer(is_committed=True, refused=tuple((refusal.order.sequence, refusal.reason) for refusal in sent.refused))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
