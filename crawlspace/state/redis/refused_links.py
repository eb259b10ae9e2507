"""The sample of refused links in Redis; `lua/refused.lua` writes it, and has the keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from crawlspace.decision import Reason
from crawlspace.state.redis.encoding import understood
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.refused_links import LETTERS, RefusedLink, reason_of

Entries = list[tuple[str, int, str | Literal[False]]]
"""Of a host, the oldest first: URL, page, and the rule, or False."""
_read = msgspec.msgpack.Decoder(Entries).decode


class RedisRefusedLinks(ABC):
    """The part of the store that is the sample of refused links."""

    @abstractmethod
    def _command(self, command: str, key: str, *args: Any) -> Any: ...

    def refused_links(
        self, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
    ) -> list[RefusedLink]:
        letters = sorted(LETTERS.values()) if reason is None else [LETTERS[reason]] if reason in LETTERS else []
        with understood("the sample of refused links"):
            return [
                RefusedLink(reason_of(letter), name.decode(), url, of, rule or None)
                for letter, name, entries in (self._of_page(page) if page is not None else self._of_letters(letters, host))
                for url, of, rule in _read(entries)
                if letter in letters and host in (None, name.decode()) and page in (None, of)
            ]

    def _of_letters(self, letters: Iterable[str], host: str | None) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield letters and hosts, each with its entries; of one host or all."""
        for letter in letters:
            if host is None:
                for name, entries in sorted(self._command("HGETALL", f"{Prefix.REFUSED}{letter}").items()):
                    yield letter, name, entries
            elif (entries := self._command("HGET", f"{Prefix.REFUSED}{letter}", host)) is not None:
                yield letter, host.encode(), entries

    def _of_page(self, page: int) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the same for the places where a page has entries."""
        for member in self._command("ZRANGEBYLEX", Key.REFUSED_PAGES, f"[{page}:", f"({page};"):
            letter, _, name = member.partition(b":")[2].partition(b" ")
            entries = self._command("HGET", f"{Prefix.REFUSED}{letter.decode()}", name)
            if entries is not None:  # a crawl may have dropped them meanwhile
                yield letter.decode(), name, entries
