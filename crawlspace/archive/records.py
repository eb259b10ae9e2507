"""Records of WARC 1.1 (ISO 28500:2017), each one member of a gzip file.

Not written by warcio's WARCWriter because of Python's lock: the crawl waits each time that compressing or hashing has released it for a
moment, and while the record is built. Here that is twice a page, and short.

A fetch has up to four records: `metadata` with the document, if there is one, then `response` or `revisit`, then `resource` with the DOM of
a rendered page, then `request`. The archive offset of a URL is that of the first one, so the document is read without decompressing the page.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from http.client import responses as phrases
from operator import itemgetter
from os import urandom
from struct import pack
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from isal import isal_zlib

from crawlspace.clock import iso
from crawlspace.document import Document
from crawlspace.outcome import BodyFile, Exchange, HeaderLines

LEFT_OUT = frozenset({b"authorization", b"proxy-authorization", b"cookie", b"set-cookie"})
"""Headers that are not archived."""
ROBOTS_TAG = b"x-robots-tag"
LEVEL = 1
"""Of compression by ISA-L: three to four times as fast as zlib at its level 1, and 3 % smaller. zlib's level 6 makes pages 5 % smaller
still, and takes six times as long."""
_STORED_BYTES = 1_000
"""Records up to this size are not compressed."""
_HASHED_AT_ONCE = 2_000
"""Below the size from which on hashlib releases Python's lock."""
_GZIP = isal_zlib.MAX_WBITS | 16
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
TRUNCATED = "WARC-Truncated"
"""Of a response whose body is not whole (WARC 1.1, 5.13)."""
PREVIOUS = "Crawlspace-Previous"
"""A field of ours (WARC 1.1 allows them): file name and offset of the version of the page before this one."""
DOM = "Crawlspace-DOM-Digest"
"""A field of ours in the record of a response: the digest of the DOM, whose record comes next. Without it, no record of a DOM is looked for."""
_IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_DROPPED = frozenset({b"transfer-encoding"})
"""Headers of a response that its stored body does not have any more."""
_SHAPING = frozenset(
    {
        b"content-type",
        b"content-encoding",
        b"content-disposition",
        b"content-language",
        b"link",
        b"location",
        b"refresh",
        ROBOTS_TAG,
    }
)
"""Headers that affect document and links of a page: if they differ, equal bodies are different versions."""
_encode = msgspec.json.Encoder().encode


class Location(NamedTuple):
    """The beginning of a record."""

    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class Original:
    """The response that a revisit record refers to."""

    id: str
    date: str
    digest: str
    dom: str | None = None
    """The digest of the DOM of a rendered page."""
    shape: Sequence[bytes] = ()
    """See `shape_of`."""


def digest_of(body: bytes | BodyFile) -> str:
    """Return the digest of a payload as WARC writes it."""
    hashed = sha1(usedforsecurity=False)
    if isinstance(body, BodyFile):
        for part in body.parts():
            hashed.update(part)
    else:
        for first in range(0, len(body), _HASHED_AT_ONCE):
            hashed.update(body[first : first + _HASHED_AT_ONCE])
    return named_digest(hashed.digest())


def named_digest(digest: bytes) -> str:
    """Return a SHA-1 digest as WARC writes it."""
    return f"sha1:{b32encode(digest).decode()}"


def info(*, file: str, software: str, collection: str, now: float) -> bytes:
    """Return the first record of a file."""
    fields = f"software: {software}\r\nformat: WARC file version 1.1\r\nisPartOf: {collection}\r\n"
    named = (("WARC-Filename", file), ("Content-Type", "application/warc-fields"))
    return _record("warcinfo", _new_id(), date_of(now), named, fields.encode())


def page(
    exchange: Exchange, document: Document | None, *, digest: str, previous: Location | None, dom: str | None = None
) -> Iterator[bytes]:
    """Yield the records of a fetch with its document; a large body in parts. `dom` is the digest of its DOM."""
    id, date = _new_id(), date_of(exchange.sent_at)
    url = ("WARC-Target-URI", exchange.url)
    named = [url, ("WARC-Payload-Digest", digest), ("Content-Type", "application/http; msgtype=response")]
    if exchange.address:
        named.append(("WARC-IP-Address", exchange.address))
    if previous is not None:
        named.append((PREVIOUS, f"{previous.file} {previous.offset}"))
    if dom is not None:
        named.append((DOM, dom))
    if exchange.is_cut:
        named.append((TRUNCATED, "length"))
    yield metadata(document, url=exchange.url, of=id, date=date)
    if isinstance(exchange.body, BodyFile):
        yield from _large_record("response", id, date, named, response_head(exchange), exchange.body)
    else:
        yield _record("response", id, date, named, response_head(exchange) + exchange.body)
    if exchange.dom is not None and dom is not None:
        yield _resource(exchange.url, exchange.dom, dom, id, date)
    yield _request(exchange, id, date)


def metadata(document: Document | None, *, url: str, of: str, date: str) -> bytes:
    """Return the record of a document of the response with the id `of`; nothing without one."""
    if document is None:
        return b""
    named = (("WARC-Target-URI", url), ("WARC-Refers-To", of), ("Content-Type", "application/json"))
    return _record("metadata", _new_id(), date, named, _encode(document))


def revisit(exchange: Exchange, original: Original | None, *, digest: str | None, dom: str | None = None) -> bytes:
    """Return the records of a fetch with the content of the original; without a digest the server sent no body (304).

    `dom` is the digest of its DOM, if that differs.
    """
    id, date = _new_id(), date_of(exchange.sent_at)
    named = [
        ("WARC-Target-URI", exchange.url),
        ("WARC-Profile", _NOT_MODIFIED if digest is None else _IDENTICAL),
        ("Content-Type", "application/http; msgtype=response"),
    ]
    if original is not None:
        named += [
            ("WARC-Payload-Digest", original.digest),
            ("WARC-Refers-To", original.id),
            ("WARC-Refers-To-Target-URI", exchange.url),
            ("WARC-Refers-To-Date", original.date),
        ]
    if exchange.address:
        named.append(("WARC-IP-Address", exchange.address))
    head = _record("revisit", id, date, named, response_head(exchange))
    resource = b"" if exchange.dom is None or dom is None else _resource(exchange.url, exchange.dom, dom, id, date)
    return b"".join((head, resource, _request(exchange, id, date)))


def shape_of(head: bytes) -> list[bytes]:
    """Return what affects document and links of a page besides its body: its status, and some headers, sorted by name."""
    first, *lines = head.split(b"\r\n")
    named = ((name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines))
    return [*first.split(b" ", 2)[1:2], *(b"%s: %s" % one for one in sorted(named, key=itemgetter(0)) if one[0] in _SHAPING)]


def robots_tags(shape: Sequence[bytes]) -> list[bytes]:
    """Return the X-Robots-Tag headers of a result of `shape_of`."""
    return [line for line in shape if line.startswith(ROBOTS_TAG)]


def date_of(at: float) -> str:
    return _date_of_second(int(at))


_date_of_second = lru_cache(100)(iso)


def _resource(url: str, dom: bytes, digest: str, response: str, date: str) -> bytes:
    named = (
        ("WARC-Target-URI", url),
        ("WARC-Concurrent-To", response),
        ("WARC-Payload-Digest", digest),
        ("Content-Type", "text/html; charset=utf-8"),
    )
    return _record("resource", _new_id(), date, named, dom)


def _request(exchange: Exchange, response: str, date: str) -> bytes:
    parts = urlsplit(exchange.url)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    head = f"{exchange.method} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n".encode()
    named = (
        ("WARC-Target-URI", exchange.url),
        ("WARC-Concurrent-To", response),
        ("Content-Type", "application/http; msgtype=request"),
    )
    lines = _header_lines(exchange.request_headers, without=LEFT_OUT | {b"host"})
    return _record("request", _new_id(), date, named, b"".join((head, lines, b"\r\n")))


def response_head(exchange: Exchange) -> bytes:
    """Return status line and headers of a response as they are archived."""
    phrase = phrases.get(exchange.status, "")
    lines = _header_lines(exchange.response_headers, without=LEFT_OUT | _DROPPED)
    return b"".join((f"{exchange.protocol} {exchange.status} {phrase}\r\n".encode(), lines, b"\r\n"))


def _header_lines(headers: HeaderLines, *, without: frozenset[bytes]) -> bytes:
    return b"".join(b"%s: %s\r\n" % (name, value) for name, values in headers if name.lower() not in without for value in values)


def _record(kind: str, id: str, date: str, named: Iterable[tuple[str, str]], block: bytes) -> bytes:
    whole = b"".join((_head(kind, id, date, named, len(block)), block, b"\r\n\r\n"))
    return isal_zlib.compress(whole, LEVEL, _GZIP) if len(whole) > _STORED_BYTES else _stored(whole)


def _large_record(
    kind: str, id: str, date: str, named: Iterable[tuple[str, str]], start: bytes, body: BodyFile
) -> Iterator[bytes]:
    deflate = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _GZIP)
    yield deflate.compress(_head(kind, id, date, named, len(start) + body.size) + start)
    for part in body.parts():
        yield deflate.compress(part)
    yield deflate.compress(b"\r\n\r\n") + deflate.flush()


def _head(kind: str, id: str, date: str, named: Iterable[tuple[str, str]], length: int) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in named)
    return (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {id}\r\nWARC-Date: {date}\r\n{fields}Content-Length: {length}\r\n\r\n"
    ).encode()


def _stored(whole: bytes) -> bytes:
    """Return a gzip member that holds data as it is (RFC 1951, 3.2.4, and RFC 1952)."""
    size = len(whole)
    return b"".join((_GZIP_HEAD, pack("<BHH", 1, size, size ^ 0xFFFF), whole, pack("<LL", isal_zlib.crc32(whole), size)))


def _new_id() -> str:
    """Return a random id: a UUID of version 4, which `uuid` makes in four times the time."""
    digits = urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}>"
