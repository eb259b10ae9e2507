"""How a URL, its links and its document stand in the rows of the SQLite store."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import fields

import apsw
import msgspec

from crawlspace.asked import Asked
from crawlspace.model import Document, Held, Source, State, UrlState

_STATES = tuple(State)
SOURCES = tuple(Source)
_HELD = (None, *Held)
_ASKED = tuple(Asked)

SET_ASIDE = 1 << 40
"""Added to `next_fetch` where a URL is for the next run; whoever reads takes it off."""

URL_COLUMNS = f"""
    url.id, url.key, url.url, site.site, url.state, url.status, url.source, url.shift, url.depth, url.redirects,
    url.rank, url.host_as_written, url.discovered_at, url.fetched_at, url.next_fetch & {SET_ASIDE - 1},
    url.interval_s, url.retries,
    url.errors, url.lease_until, url.etag, url.last_modified, url.rules, url.checksum, url.canonical, url.indexed,
    CASE WHEN url.grp IS NOT NULL AND NOT url.indexed THEN ifnull(
        (SELECT incumbent.id FROM incumbent WHERE incumbent.grp = url.grp),
        (SELECT best.id FROM url AS best INDEXED BY url_group WHERE best.grp = url.grp
         ORDER BY best.aside, best.named DESC, best.rank, best.id LIMIT 1)
    ) END,
    url.held, url.held_mark, url.asked, url.inherited, url.fields_mark,
    url.refused, url.depth_from, url.orphaned, url.archived, url.ordered, url.detail
"""
"""What `url_state` reads, in the order of UrlState; who stands for a group is looked up, so that a new one costs no update of all members."""


def url_states(rows: apsw.Cursor) -> list[UrlState]:
    """Return the URL states of rows of URL_COLUMNS."""
    states = []
    for row in rows:
        state = UrlState(*row)
        state.state = _STATES[row[4]]
        state.source = SOURCES[row[6]]
        state.indexed = bool(row[24])
        state.held = _HELD[row[26] or 0]
        state.asked = _ASKED[row[28]]
        states.append(state)
    return states


def integers(values: Iterable[int]) -> apsw.CArrayBinding | None:
    """Bind whole numbers as the table `carray(?)`: one look-up for a batch instead of one a row."""
    bound = array("q", values)
    return apsw.carray(bound) if bound else None  # apsw takes no empty array; `carray(NULL)` is an empty table


def blobs(values: Iterable[bytes]) -> apsw.CArrayBinding | None:
    """Bind checksums as the table `carray(?)`."""
    bound = tuple(values)
    return apsw.carray(bound) if bound else None


_KEPT = tuple(field.name for field in fields(Document) if field.name not in ("url", "text", "duplicates"))
"""The document of a page; the rest comes from other tables. Fields are only ever added at the end of Document."""


def pack_whole(document: Document) -> bytes:
    """Return all of a document but its URL."""
    return pack_kept(pack_document(document), document.text, document.duplicates)


def pack_kept(body: bytes, text: str, duplicates: list[str]) -> bytes:
    """Return the same of a document that is stored: what is kept of it, its text, and the URLs that are noted on it."""
    return msgspec.msgpack.encode([body, text, duplicates])


def unpack_whole(packed: bytes, *, url: str) -> Document:
    body, text, duplicates = msgspec.msgpack.decode(packed)
    return unpack_document(body, url=url, text=text, duplicates=duplicates)


def pack_document(document: Document) -> bytes:
    """Return what is kept of a document beside its text, as a MessagePack array."""
    return msgspec.msgpack.encode([getattr(document, name) for name in _KEPT])


def fields_of(body: bytes | None) -> dict[str, str]:
    """Return the fields of a document as it is kept; none where there is no document."""
    return {} if body is None else dict(msgspec.msgpack.decode(body)[_KEPT.index("fields")])


def unpack_document(body: bytes, *, url: str, text: str, duplicates: list[str]) -> Document:
    document = Document(url, text=text, duplicates=duplicates)
    for name, value in zip(_KEPT, msgspec.msgpack.decode(body), strict=False):
        setattr(document, name, value)
    return document
