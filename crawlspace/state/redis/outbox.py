"""The outbox in Redis, and the files of the archive; `lua/outbox.lua` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crawlspace.document import Document, IndexOrder, Op, packed_text
from crawlspace.state.order_times import ORDER_TIMES, given_by
from crawlspace.state.redis.encoding import document_of, kept_document, number, raw, understood
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.redis.server import RedisServer
from crawlspace.state.views import MOST_BYTES_AT_ONCE
from crawlspace.urls import url_key


class RedisOutbox:
    """The part of the store that concerns index orders and the archive."""

    server: RedisServer

    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = MOST_BYTES_AT_ONCE) -> list[IndexOrder]:
        return [
            IndexOrder(sequence, Op.DELETE if op else Op.PUSH, url.decode(), document_of(document), archived=archived)
            for sequence, op, url, document, archived in self.server.call("orders", sink=sink, limit=limit, bytes=most_bytes)
        ]

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        self.server.write("acknowledge", sink=sink, orders=[(order.sequence, order.url) for order in orders])

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        self.server.write("park", sink=sink, number=order.sequence, url=order.url, reason=reason)

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        reply = self.server.call("parked", sink=sink)
        with understood("parked orders"):
            return [(Op.DELETE if op else Op.PUSH, url.decode(), reason.decode()) for op, url, reason in reply]

    def backlog(self, sink: str, *, parked: bool = False) -> int:
        kinds = ("parked",) if parked else ("delete", "push")
        return sum(self.server.command("ZCARD", f"{Prefix.OUTBOX}{sink}:{kind}") for kind in kinds)

    def waiting_since(self, sink: str) -> int | None:
        first = [self.server.command("ZRANGE", f"{Prefix.OUTBOX}{sink}:{kind}", 0, 0) for kind in ("delete", "push")]
        numbers = [int(number) for numbers in first for number in numbers]
        if not numbers:
            return None
        notes = self.server.command("HGET", Key.META, ORDER_TIMES)
        return given_by(None if notes is None else notes.decode(errors="replace"), min(numbers))

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        given = [(id, _parts(document)) for id, document in documents.items()]
        return sorted(self.server.write("push_again", documents=given, **({} if sink is None else {"sink": sink})))

    def use_sinks(self, sinks: Sequence[str]) -> None:
        self.server.use_sinks(sinks)

    def ordered(self, sink: str, urls: Sequence[str]) -> dict[str, bool]:
        wanted = list(dict.fromkeys(urls))
        answers = self.server.call("ordered", sink=sink, urls=wanted)
        return {url: answer == 1 for url, answer in zip(wanted, answers, strict=True) if answer >= 0}

    def in_index(self, urls: Sequence[str]) -> set[str]:
        wanted = _named(urls)
        return {wanted[position - 1][0] for position in self.server.call("in_index", urls=wanted)}

    def delete_again(self, sink: str, urls: Sequence[str]) -> None:
        self.server.write("delete_again", sink=sink, urls=_named(urls))

    def withdraw(self, sink: str, *, deletes: bool) -> None:
        self.server.write("withdraw", sink=sink, deletes=deletes)

    def unpark(self, sink: str) -> int:
        return int(self.server.write("unpark", sink=sink))

    # the archive
    def archive_files(self) -> dict[int, str]:
        names = self.server.command("HGETALL", Key.ARCHIVE_FILE)
        with understood("the files of the archive"):
            return {int(number): name.decode() for number, name in names.items()}

    def add_archive_file(self, name: str) -> int:
        return int(self.server.write("add_archive_file", name=name))

    def move_archived(self, moves: Sequence[tuple[int, int, int | None]]) -> None:
        self.server.write("move_archived", moves=[(id, was, is_now or False) for id, was, is_now in moves])


def _named(urls: Sequence[str]) -> list[tuple[str, msgspec.Raw]]:
    """Return URLs with their keys, in their order."""
    return [(url, number(url_key(url))) for url in sorted(set(urls))]


def _parts(document: Document | None) -> list[object] | bool:
    """Return a document, and its text apart; False for none."""
    if document is None:
        return False
    return [raw(kept_document(document)), packed_text(document)]
