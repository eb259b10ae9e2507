"""Reads records of an archive by archive offset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from crawlspace.archive.files import file_and_offset, find
from crawlspace.archive.members import MOST_HEAD, DamagedRecord, Record, RecordParts, copied, number, record_without_block
from crawlspace.archive.records import DOM, PREVIOUS, TRUNCATED, Location, Original, shape_of
from crawlspace.document import Document

MOST_BYTES = 1 << 30
"""Bytes of a record that is read: a larger one counts as not archived."""
MOST_DOCUMENT = 1 << 28
"""Bytes of the record of a document, whose text has at most 10,000,000 characters."""
_MOST_OPEN = 50
_MOST_HEADERS = 1 << 18
"""Bytes of the head of a response that are read (`docs/security.md`)."""
_decode = msgspec.json.Decoder(Document).decode


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was sent, with the DOM of a page that was rendered; `head` has its status line and headers."""

    url: str
    date: str
    status: int
    headers: list[tuple[str, str]]
    head: bytes
    body: bytes
    previous: Location | None
    """The version of the page before this one."""
    dom: bytes | None = None
    """Its HTML in UTF-8: document and links of the page were extracted from it, and not from the body."""
    is_cut: bool = False
    """Of the body only the beginning was taken."""


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A response whose body is read in parts, so that a large one needs little memory."""

    url: str
    date: str
    headers: list[tuple[str, str]]
    length: int
    """Bytes of the body, as it was sent."""
    digest: str
    """Digest of the body, as WARC writes it; empty if the record has none."""
    parts: Iterator[bytes]
    """The body. Raises DamagedRecord."""


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A response with its document; `id` and `location` are those of the response's record."""

    document: Document | None
    response: StoredResponse
    id: str
    location: Location


class ArchiveReader:
    """Reads the archive in `folder`; `files` has the names of files by number. A missing or damaged record is None."""

    def __init__(self, folder: Path, files: dict[int, str], *, look_up: Callable[[], Mapping[int, str]] | None = None) -> None:
        """`look_up` returns the current files, for a number that was added while the archive is read."""
        self._folder = folder
        self.files = files
        self._look_up = look_up
        self._unknown: set[int] = set()
        self._open: dict[str, int] = {}
        self._found: set[str] = set()
        """Files that `has` has found."""

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def location(self, place: int) -> Location | None:
        """Return the location of an archive offset; None if its file is not known."""
        number, offset = file_and_offset(place)
        name = self.files.get(number)
        if name is None and self._look_up is not None and number not in self._unknown:
            self.files.update(self._look_up())
            name = self.files.get(number)
            if name is None:
                self._unknown.add(number)
        return None if name is None else Location(name, offset)

    def has(self, place: int) -> bool:
        """Return whether the file of an archive offset exists."""
        location = self.location(place)
        return location is not None and (location.file in self._found or self._exists(location.file))

    def is_at(self, place: int, url: str) -> bool:
        """Return whether an archive offset has a record of a URL."""
        location = self.location(place)
        fd = None if location is None else self._descriptor(location.file)
        record = None if fd is None or location is None else record_without_block(fd, location.offset)
        return record is not None and _is_of(record, url)

    def _exists(self, file: str) -> bool:
        exists = find(self._folder, file) is not None
        if exists:
            self._found.add(file)
        return exists

    def document(self, place: int, url: str) -> Document | None:
        """Return the document that was stored for a URL."""
        record = self._at(place, url)
        if record is None or record.kind != "metadata":
            return None
        return _document(record, url)

    def page(self, place: int, url: str) -> StoredPage | None:
        """Return the response that was stored for a URL, with its document."""
        found = self._fetch(self.location(place), url)
        if found is None:
            return None
        document, record, location = found
        made, response = None if document is None else _document(document, url), self._response(record, location)
        return None if response is None else StoredPage(made, response, record.fields.get("WARC-Record-ID", ""), location)

    def raw_fetch(self, location: Location, url: str) -> Iterator[bytes]:
        """Yield the records of the response at a location, of its DOM and its request, as in the file, in parts; nothing if it is missing."""
        fd, response = self._descriptor(location.file), self._read(location, url)
        if fd is None or response is None:
            return
        end = response.end
        for _ in ("DOM", "request") if DOM in response.fields else ("request",):
            record = self._read(Location(location.file, end), url)
            if record is None or not _belongs(record, response):
                break
            end = record.end
        yield from copied(fd, location.offset, end)

    def original(self, place: int, url: str) -> Original | None:
        """Return the response of a URL for a revisit record; None if the response of another URL represents it."""
        found = self._fetch(self.location(place), url)
        if found is None or found[1].url != url:
            return None
        fields, shape = found[1].fields, shape_of(found[1].block[:_MOST_HEADERS].partition(b"\r\n\r\n")[0])
        id, date = fields.get("WARC-Record-ID"), fields.get("WARC-Date")
        return None if not (id and date) else Original(id, date, fields.get("WARC-Payload-Digest", ""), fields.get(DOM), shape)

    def response(self, place: int, url: str) -> StoredResponse | None:
        """Return the response that was stored for a URL."""
        return self.response_at(self.location(place), url)

    def response_at(self, location: Location | None, url: str) -> StoredResponse | None:
        found = self._fetch(location, url)
        return None if found is None else self._response(found[1], found[2])

    def _response(self, record: Record, location: Location) -> StoredResponse | None:
        """Return the response of a record, with its DOM; None if that is missing, because the body does not replace it."""
        if DOM not in record.fields:
            return _stored(record)
        dom = self._read(Location(location.file, record.end), record.url)
        if dom is None or dom.kind != "resource" or not _belongs(dom, record):
            return None
        return _stored(record, dom.block)

    def streamed(self, place: int, url: str) -> StreamedResponse | None:
        """Return the response that was stored for a URL, with its body in parts. The reader stays open while they are read."""
        location = self.location(place)
        fd = None if location is None else self._descriptor(location.file)
        if fd is None or location is None:
            return None
        try:
            record, offset = RecordParts(fd, location.offset), location.offset
            if record.fields.get("WARC-Type") == "metadata":
                document = record_without_block(fd, offset)
                if document is None or not _is_of(document, url):
                    return None
                record = RecordParts(fd, document.end)
                if record.fields.get("WARC-Record-ID") != document.fields.get("WARC-Refers-To"):
                    return None
            if record.fields.get("WARC-Type") != "response" or not _is_of(record.record(), url):
                return None
            return _streamed(record)
        except DamagedRecord:
            return None

    def versions(self, place: int, url: str) -> Iterator[StoredResponse]:
        """Yield the responses of a URL that are still archived, the newest first."""
        location, seen = self.location(place), set[Location | None]()
        while location not in seen and (found := self.response_at(location, url)) is not None:
            yield found
            seen.add(location)
            location = found.previous

    def _fetch(self, location: Location | None, url: str) -> tuple[Record | None, Record, Location] | None:
        """Return the document at a location, if any, the response that follows it, and its location; None without a response."""
        if location is None:
            return None
        document, record = None, self._read(location, url)
        if record is not None and record.kind == "metadata":
            document, location = record, Location(location.file, record.end)
            record = self._read(location, url)
            if record is not None and record.fields.get("WARC-Record-ID") != document.fields.get("WARC-Refers-To"):
                return None  # its response was dropped, and this one belongs to another fetch
        return (document, record, location) if record is not None and record.kind == "response" else None

    def _at(self, place: int, url: str) -> Record | None:
        location = self.location(place)
        return None if location is None else self._read(location, url)

    def _read(self, location: Location, url: str) -> Record | None:
        fd = self._descriptor(location.file)
        record = None if fd is None else read_record(fd, location.offset)
        return record if record is not None and _is_of(record, url) else None

    def _descriptor(self, name: str) -> int | None:
        fd = self._open.get(name)
        if fd is None:
            path = find(self._folder, name)
            if path is None:
                return None
            if len(self._open) >= _MOST_OPEN:
                self.close()
            with suppress(OSError):
                fd = self._open[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return fd


def read_record(fd: int, offset: int) -> Record | None:
    """Read the record that begins at an offset; None if it is missing, too large or damaged."""
    try:
        record = RecordParts(fd, offset)
        if record.length > (MOST_DOCUMENT if record.fields.get("WARC-Type") == "metadata" else MOST_BYTES):
            return None
        return record.record(b"".join(record.parts()))
    except DamagedRecord:
        return None


def _streamed(record: RecordParts) -> StreamedResponse:
    """Return a response record whose head is read. Raises DamagedRecord."""
    parts = record.parts()
    read = bytearray()
    while (at := read.find(b"\r\n\r\n")) < 0:
        part = next(parts, b"")
        if not part or len(read) > MOST_HEAD:
            raise DamagedRecord
        read += part
    begin = bytes(memoryview(read)[at + 4 :])
    fields = record.fields
    return StreamedResponse(
        fields.get("WARC-Target-URI", ""),
        fields.get("WARC-Date", ""),
        _headers_of_head(bytes(read[:at])),
        record.length - at - 4,
        fields.get("WARC-Payload-Digest", ""),
        chain([begin], parts),
    )


def _headers_of_head(head: bytes) -> list[tuple[str, str]]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return [(name, value) for name, mark, value in (line.partition(": ") for line in lines) if mark]


def _is_of(record: Record, url: str) -> bool:
    return record.url == url or _may_be_folded(record.url, into=url)


def _document(record: Record, url: str) -> Document | None:
    try:
        document = _decode(record.block)
    except (msgspec.MsgspecError, RecursionError):  # the latter if it is nested too deep
        return None
    document.url = url
    return document


def _may_be_folded(url: str, *, into: str) -> bool:
    """Return whether URL options may have folded a URL into another one, which then has its document: see `rules/url_options.py`."""
    try:
        (one, parts), (other, kept) = _without_spelling(url), _without_spelling(into)
    except ValueError:  # no crawl has written it
        return False
    return one == other and kept <= parts


def _without_spelling(url: str) -> tuple[tuple[str, str, str, str], frozenset[str]]:
    """Return the parts of a URL that no option changes, and those of its query. A route is another document than its page."""
    parts = urlsplit(url)
    return (parts.scheme, parts.netloc.removeprefix("www."), parts.path.rstrip("/"), parts.fragment), frozenset(
        filter(None, parts.query.split("&"))
    )


def _belongs(record: Record, response: Record) -> bool:
    return record.fields.get("WARC-Concurrent-To") == response.fields.get("WARC-Record-ID")


def _stored(record: Record, dom: bytes | None = None) -> StoredResponse | None:
    at = record.block.find(b"\r\n\r\n", 0, MOST_HEAD)
    head, body = (record.block, b"") if at < 0 else (record.block[:at], record.block[at + 4 :])
    if len(head) > MOST_HEAD:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    status = first.split(" ", 2)[1:2]
    file, _, offset = record.fields.get(PREVIOUS, "").partition(" ")
    before = number(offset)
    return StoredResponse(
        record.url,
        record.fields.get("WARC-Date", ""),
        (number(status[0]) or 0) if status and len(status[0]) == 3 else 0,
        [(name, value) for name, mark, value in (line.partition(": ") for line in lines) if mark],
        head,
        body,
        None if before is None else Location(file, before),
        dom,
        is_cut=TRUNCATED in record.fields,
    )
