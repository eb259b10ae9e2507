"""What is stored of sites in Redis beside their URLs: their waits, those that cannot be reached, their schemes.

The schemes of a site at port 80 or 443 are noted only where they are not those of its port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from crawlspace.state.redis.encoding import raw, understood, written
from crawlspace.state.unreachable import ALL_SCHEMES, UnreachableSite


class UnreachableRow(msgspec.Struct, array_like=True):
    """A site that cannot be reached, as it is stored."""

    status: int
    since: int
    runs: int
    counted_at: int
    detail: str = ""


_read_row = msgspec.msgpack.Decoder(UnreachableRow).decode
"""Meta: the numbers of documents by site, and the schemes of each, are kept."""
_PAGE = 5_000
_SCHEME_OF_PORT = {"80": "http", "443": "https"}


def wait_of(reply: bytes) -> tuple[int, int]:
    """Return until when a site must wait, and how many seconds that was when it was written; 0 where that is not known."""
    until, _, wait_s = reply.partition(b" ")
    with understood("how long a site waits"):
        return int(until), int(wait_s or 0)


def encode_unreachable(row: UnreachableSite | None) -> msgspec.Raw | None:
    """Return a row as it is stored."""
    return None if row is None else raw(written((row.status, row.since, row.runs, row.counted_at, row.detail)))


def rows_of(reply: Mapping[bytes, bytes]) -> list[UnreachableSite]:
    with understood("the sites that cannot be reached"):
        return [row_of(site.decode(), row) for site, row in sorted(reply.items())]


def row_of(site: str, reply: bytes) -> UnreachableSite:
    return UnreachableSite(site, *msgspec.structs.astuple(_read_row(reply)))


def schemes_of(site: str, is_noted: Callable[[str], bool]) -> frozenset[str]:
    """Return the schemes of a site; `is_noted` returns whether `scheme site` is stored."""
    usual = _SCHEME_OF_PORT.get(site.rpartition(":")[2])
    found = frozenset(scheme for scheme in ALL_SCHEMES if scheme == usual or is_noted(f"{scheme} {site}"))
    return found or ALL_SCHEMES
