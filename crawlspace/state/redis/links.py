"""Links in Redis: link depths, the metadata of links, and the sample of refused links (see `lua/reading.lua`, `lua/refused.lua`)."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, TypeVar

import msgspec

from crawlspace.decision import Reason
from crawlspace.state.depths import DepthMark, NewDepth, PageLinks, UrlDepth
from crawlspace.state.link_keys import folded_links, moved_links, pack_keys, unpack_keys
from crawlspace.state.redis.encoding import key_bytes, number_of, raw, understood
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.redis.server import RedisServer, pairs_of
from crawlspace.state.refused_links import LETTERS, RefusedLink, reason_of

_T = TypeVar("_T")
_SOME = 1_000
_PAGES = 2_000
"""Pages of one call, which occupies the server for about 20 ms."""
_read_depths = msgspec.msgpack.Decoder(list[tuple[int, msgspec.Raw, int, int | bool, int, int, int | bool, bool, bool]]).decode
Entries = list[tuple[str, int, str | Literal[False]]]
"""Entries of a host in the sample, the oldest first: URL, page, and the rule, or False."""
_read_entries = msgspec.msgpack.Decoder(Entries).decode


class RedisLinks:
    """The part of the store that concerns links and depths."""

    server: RedisServer

    @contextmanager
    def settling(self) -> Iterator[bool]:
        """Yield whether this worker must settle the depths: not while another one does, which expires after ten minutes."""
        is_this = self.server.command("SET", Key.SETTLING, 1, "NX", "EX", 600) is not None
        try:
            yield is_this
        finally:
            if is_this:
                self.server.command("DEL", Key.SETTLING)

    def depth_marks(self) -> dict[int, DepthMark]:
        found, cursor = dict[int, DepthMark](), 0
        while True:
            cursor, some = self.server.command("HSCAN", Key.DEPTH_MARK, cursor, "COUNT", _SOME)
            with understood("its depth marks"):
                found |= {_key(key): DepthMark(*map(int, text.split())) for key, text in pairs_of(some)}
            if not int(cursor):
                return found

    def set_depth_marks(self, marks: Mapping[int, DepthMark | None]) -> None:
        for some in _parts(list(marks.items())):
            gone = [key_bytes(key) for key, mark in some if mark is None]
            new = [part for key, mark in some if mark is not None for part in (key_bytes(key), f"{mark.page} {mark.depth}")]
            if gone:
                self.server.command("HDEL", Key.DEPTH_MARK, *gone)
            if new:
                self.server.command("HSET", Key.DEPTH_MARK, *new)

    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]:
        found: list[UrlDepth] = []
        for some in _parts(sorted(set(keys))):
            found += _depths_of(self.server.call("depths_of", keys=raw(pack_keys(some))))
        return found

    def scan_depths(self, after: int, limit: int) -> list[UrlDepth]:
        found: list[UrlDepth] = []
        while len(found) < limit:
            after, reply = self.server.call("scan_depths", after=after, limit=min(limit - len(found), _PAGES))
            found += _depths_of(reply)
            if not after:
                break
        return found

    def orphans(self) -> list[UrlDepth]:
        ids = sorted(map(int, self.server.command("SMEMBERS", Key.ORPHANED)))
        return [one for some in _parts(ids) for one in _depths_of(self.server.call("orphans", ids=some))]

    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]:
        found: dict[int, array[int]] = {}
        for some in _parts(list(ids)):
            with understood("links"):
                found |= {
                    id: unpack_keys(links)
                    for id, links in zip(some, self.server.command("HMGET", Key.LINKS, *some), strict=True)
                    if links
                }
        return found

    def scan_links(self, after: int, limit: int) -> list[PageLinks]:
        found: list[PageLinks] = []
        while len(found) < limit:
            last, pages = self.server.call("scan_links", after=after, limit=min(limit - len(found), _PAGES))
            with understood("links"):
                found += [PageLinks(id, reach, unpack_keys(links)) for id, reach, links in pages]
            if not last:
                break
            after = last
        return found

    def links_to(self, keys: Collection[int]) -> Iterator[PageLinks]:
        wanted, after = raw(pack_keys(keys)), 0
        while True:
            after, pages = self.server.call("scan_links", after=after, limit=_PAGES, keys=wanted)
            with understood("links"):
                yield from [PageLinks(id, reach, unpack_keys(links)) for id, reach, links in pages]
            if not after:
                return

    def set_depths(self, new: Sequence[NewDepth]) -> list[int]:
        return list(self.server.write("set_depths", new=[tuple(one) for one in new]))

    def relink(self, links: Mapping[int, Sequence[int]]) -> None:
        self.server.write("relink", links=[(id, raw(pack_keys(keys))) for id, keys in links.items()])

    def one_transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def move_links(self, into: Mapping[int, int | None]) -> None:
        links = self.links_of(into.keys())
        pages = {page for id, page in into.items() if id in links and page is not None}
        if links:
            self.relink(moved_links({**self.links_of(pages), **links}, into))

    def fold_links(self, into: Mapping[int, int]) -> None:
        last = 0
        while True:
            last, pages = self.server.call("scan_links", after=last, limit=_PAGES, all=True)
            with understood("links"):
                new = folded_links([(id, links) for id, _, links in pages], into)
            if new:
                self.server.write("relink", links=[(id, raw(links)) for links, id in new])
            if not last:
                return

    def link_metadata(self, ids: Sequence[int]) -> Mapping[int, str]:
        values = self.server.command("HMGET", Key.LINK_METADATA, *ids) if ids else ()
        with understood("metadata of links"):
            return {id: value.decode() for id, value in zip(ids, values, strict=True) if value is not None}

    def refused_links(
        self, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
    ) -> list[RefusedLink]:
        letters = sorted(LETTERS.values()) if reason is None else [LETTERS[reason]] if reason in LETTERS else []
        with understood("the sample of refused links"):
            return [
                RefusedLink(reason_of(letter), name.decode(), url, of, rule or None)
                for letter, name, entries in (self._of_page(page) if page is not None else self._of_letters(letters, host))
                for url, of, rule in _read_entries(entries)
                if letter in letters and host in (None, name.decode()) and page in (None, of)
            ]

    def _of_letters(self, letters: Iterable[str], host: str | None) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield letters and hosts, each with its entries; optionally of one host only."""
        for letter in letters:
            if host is None:
                for name, entries in sorted(self.server.command("HGETALL", f"{Prefix.REFUSED}{letter}").items()):
                    yield letter, name, entries
            elif (entries := self.server.command("HGET", f"{Prefix.REFUSED}{letter}", host)) is not None:
                yield letter, host.encode(), entries

    def _of_page(self, page: int) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the same for the hosts where a page has entries."""
        for member in self.server.command("ZRANGEBYLEX", Key.REFUSED_PAGES, f"[{page}:", f"({page};"):
            letter, _, name = member.partition(b":")[2].partition(b" ")
            entries = self.server.command("HGET", f"{Prefix.REFUSED}{letter.decode()}", name)
            if entries is not None:  # a crawl may have dropped them meanwhile
                yield letter.decode(), name, entries


def _parts(items: Sequence[_T]) -> Iterable[Sequence[_T]]:
    return (items[first : first + _SOME] for first in range(0, len(items), _SOME))


def _key(key: bytes) -> int:
    return int.from_bytes(key, "little", signed=True)


def _depths_of(reply: bytes) -> list[UrlDepth]:
    with understood("the depths of URLs"):
        return [
            UrlDepth(
                id,
                number_of(key) or 0,
                state,
                None if status is False else status,
                depth,
                depth_from,
                None if orphaned is False else orphaned,
                has_document,
                folded,
            )
            for id, key, state, status, depth, depth_from, orphaned, has_document, folded in _read_depths(reply)
        ]
