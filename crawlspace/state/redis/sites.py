"""What is kept of sites in Redis beside their URLs: how long each is to be left alone, which cannot be reached, their schemes.

The schemes of a site at port 80 or 443 are noted only where they are not those of its port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from crawlspace.model import UNCOUNTED
from crawlspace.state.redis.encoding import raw, understood, written
from crawlspace.state.redis.scripts import Scripts
from crawlspace.state.store import KnownUrl
from crawlspace.state.unreachable import ALL_SCHEMES, UnreachableSite

_read_row = msgspec.msgpack.Decoder(tuple[int, int, int, int]).decode
COUNTED = "sites_counted"
"""Meta: the numbers of documents by site, and the schemes of each, are kept."""
_PAGE = 5_000
_SCHEME_OF_PORT = {"80": "http", "443": "https"}


def wait_of(told: bytes) -> tuple[int, int]:
    """Return until when a site is to be left alone, and for how many seconds that was when it was written; 0 where it does not say."""
    until, _, wait_s = told.partition(b" ")
    with understood("how long a site waits"):
        return int(until), int(wait_s or 0)


def encode_unreachable(row: UnreachableSite | None) -> msgspec.Raw | None:
    """Return a row as it is kept."""
    return None if row is None else raw(written((row.status, row.since, row.runs, row.counted_at)))


def rows_of(told: Mapping[bytes, bytes]) -> list[UnreachableSite]:
    with understood("the sites that cannot be reached"):
        return [row_of(site.decode(), row) for site, row in sorted(told.items())]


def row_of(site: str, told: bytes) -> UnreachableSite:
    return UnreachableSite(site, *_read_row(told))


class Countable(Protocol):
    scripts: Scripts

    def scan(self, after: int, limit: int) -> list[KnownUrl]: ...
    def get_meta(self, name: str) -> str | None: ...


def count_sites(store: Countable) -> None:
    """Count the documents of each site and what does not count of each host, and note the schemes, once, for a collection of an older version."""
    if store.get_meta(COUNTED) is not None:
        return
    documents: Counter[str] = Counter()
    uncounted: Counter[str] = Counter()
    schemes: set[str] = set()
    last = 0
    while page := store.scan(last, _PAGE):
        for known in page:
            documents[known.site] += known.indexed
            if known.status in UNCOUNTED:
                uncounted[known.site.rpartition(":")[0]] += 1
            schemes.add(f"{known.url.partition(':')[0]} {known.site}")
        last = page[-1].id
    counts, noted, out = list(documents.items()), sorted(schemes), list(uncounted.items())
    for first in range(0, len(noted), _PAGE):  # there are at least as many as of the others
        part = slice(first, first + _PAGE)
        store.scripts.run("set_site_counts", documents=counts[part], schemes=noted[part], uncounted=out[part])
    store.scripts.command("HSET", "meta", COUNTED, "1")


def schemes_of(site: str, is_noted: Callable[[str], bool]) -> frozenset[str]:
    """Return the schemes of a site; `is_noted` tells whether `scheme site` is."""
    usual = _SCHEME_OF_PORT.get(site.rpartition(":")[2])
    found = frozenset(scheme for scheme in ALL_SCHEMES if scheme == usual or is_noted(f"{scheme} {site}"))
    return found or ALL_SCHEMES
