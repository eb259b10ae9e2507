"""Read sitemaps and feeds: the URLs that they name, and when each was changed last.

Formats: sitemaps and index files in XML and plain text (sitemaps.org, protocol 0.9), with alternates (`xhtml:link`); RSS 0.9x, 1.0 and 2.0;
Atom; JSON Feed 1.1; each also compressed with gzip. XML is read as a stream. Broken XML is read once more, as much of it as libxml2 recovers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import BinaryIO

import msgspec
from msgspec import Struct

from crawlspace.content.dates import written_time

MAX_HREF = 8_000
"""Characters of a URL; a longer one is ignored."""
DETECTED_BYTES = 4096
"""The number of first bytes that show whether a body is a sitemap."""
SITEMAP_TYPES = frozenset(
    {
        *("text/xml", "application/xml", "text/plain"),
        *("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json", "application/json"),
        *("application/gzip", "application/x-gzip"),
    }
)
"""The types of responses that may be a sitemap, whatever CRAWLSPACE_MIME_TYPES takes."""
COMMON_TYPES = frozenset({"application/gzip", "application/x-gzip", "application/json"})
"""Those of them that mostly are of something else."""
_GZIP = b"\x1f\x8b"
_AT_ONCE = 64 * 1024
_ROOT = re.compile(
    rb"(?:\s++|<\?[^>]*+>|<!--.*?-->|<!DOCTYPE[^>\[]*+>)*+<(?:[A-Za-z]\w*:)?(urlset|sitemapindex|rss|feed|RDF)[\s>]", re.DOTALL
)
_JSON_FEED = re.compile(rb'\s*\{[^{}]*?"version"\s*:\s*"https?:\\?/\\?/(?:www\.)?jsonfeed\.org', re.DOTALL)
_URL_LINE = re.compile(r"https?://\S+")
_MOST_LINE = 16_384
_MOST_DEPTH = 500
"""Elements one in the other; Atom may have pages in its entries."""
_UTC = re.compile(r"[12]\d{3}-(?:0[1-9]|1[012])-(?:0[1-9]|1\d|2[0-8])(?:T[01]\d:[0-5]\d:[0-5]\dZ)?")
_ESCAPED = re.compile("&(?:amp|#38);")
"""An ampersand; libxml2 leaves the second one in attributes."""
_AMPERSAND = re.compile(rb"&(?!#?\w{1,32};)")
_LONGEST_ENTITY = 40
_OPEN_TAG = re.compile(rb"<(?!!--|!\[CDATA\[)(?=[^<>]*<)")


class SitemapKind(StrEnum):
    SITEMAP = "sitemap"
    INDEX = "sitemap index"
    TEXT = "text sitemap"
    RSS = "RSS feed"
    ATOM = "Atom feed"
    JSON = "JSON feed"

    @property
    def is_feed(self) -> bool:
        return self in (SitemapKind.RSS, SitemapKind.ATOM, SitemapKind.JSON)


class SitemapLimits(Struct, frozen=True):
    max_entries: int = 50_000
    """The limit of the protocol."""
    max_bytes: int = 100 * 1024 * 1024
    """Of its content after decompression."""


class SitemapEntry(Struct, array_like=True):
    """A URL as written, and when its page was changed last, in ISO 8601 as in `content.dates`; empty if that is missing or unreadable."""

    href: str
    modified: str = ""


class SitemapContents(Struct):
    """The entries of a sitemap; `kind` is None if it is none."""

    kind: SitemapKind | None
    entries: list[SitemapEntry] = []
    left_out: int = 0
    """Number of entries beyond the limit that were read."""
    fault: str = ""
    """Why it was not read to its end, or what is wrong with it."""


def is_sitemap(start: bytes) -> bool:
    """Return whether a body is a sitemap or feed by its first bytes; a list of URLs in plain text is not recognised by them."""
    return _kind_of(start[:DETECTED_BYTES]) is not None


def read_sitemap(file: BinaryIO, limits: SitemapLimits, *, may_be_text: bool = False) -> SitemapContents:
    """Return the entries of an open file. `may_be_text`: lines that are all URLs count as a sitemap. Never raises, except for a MemoryError."""
    parts = _Parts(file, limits.max_bytes)
    contents = SitemapContents(_kind_of(parts.start()[:DETECTED_BYTES]))
    if contents.kind is SitemapKind.JSON:
        _read_json(parts, contents, limits.max_entries)
    elif contents.kind is not None:
        _read_xml(parts, contents, limits.max_entries)
        if contents.fault:  # once more, leniently
            parts = _Parts(file, limits.max_bytes)
            _read_xml(parts, contents, limits.max_entries, is_broken=True)
    elif may_be_text:
        _read_text(parts, contents, limits.max_entries)
    if contents.kind is not None:
        contents.fault = parts.fault or contents.fault
    return contents


class _Parts:
    """The content of a file in parts, decompressed, up to a number of bytes."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        file.seek(0)
        self._parts = self._read(file, most)
        self._first: list[bytes] = []
        self.fault = ""
        """Why there is more than these parts."""

    def start(self) -> bytes:
        """Return the first bytes, which stay in the content."""
        size = 0
        for part in self._parts:
            self._first.append(part)
            size += len(part)
            if size >= DETECTED_BYTES:
                break
        return b"".join(self._first)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._first
        yield from self._parts

    def _read(self, file: BinaryIO, most: int) -> Iterator[bytes]:
        left = most
        try:
            for part in _decompressed(file):
                if len(part) > left:
                    self.fault = f"it has more than {most:,} bytes, and the rest was not read"
                    yield part[:left]
                    return
                left -= len(part)
                yield part
        except (zlib.error, EOFError) as error:
            self.fault = f"it is compressed, and damaged: {error}"


def _decompressed(file: BinaryIO) -> Iterator[bytes]:
    data = file.read(DETECTED_BYTES)
    if not data.startswith(_GZIP):
        while data:
            yield data
            data = file.read(_AT_ONCE)
        return
    gzip = zlib.decompressobj(wbits=31)
    while data:  # in small parts, because those before damaged bytes count
        yield gzip.decompress(data, DETECTED_BYTES)
        data = gzip.unconsumed_tail
        if gzip.eof:
            data = gzip.unused_data
            if len(data) < len(_GZIP):
                data += file.read(DETECTED_BYTES)
            if not data.startswith(_GZIP):
                return  # what follows the last member is ignored, as by gzip
            gzip = zlib.decompressobj(wbits=31)
        elif not data:
            data = file.read(DETECTED_BYTES)
    if not gzip.eof:
        raise EOFError("it ends too early")


def _add(contents: SitemapContents, href: str, modified: str, most: int) -> None:
    """Add an entry, unless there are as many already. A URL may be escaped twice, or in a CDATA section."""
    href = _ESCAPED.sub("&", href.strip())
    if not href or len(href) > MAX_HREF:
        return
    if len(contents.entries) >= most:
        contents.left_out += 1
    else:
        contents.entries.append(SitemapEntry(href, _time(modified) if modified else ""))


def _time(written: str) -> str:
    """Return the time of a change; in UTC it mostly is written as it is returned."""
    written = written.strip()
    return written if _UTC.fullmatch(written) else written_time(written)


def _kind_of(start: bytes) -> SitemapKind | None:
    if start.startswith(_GZIP):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, DETECTED_BYTES)
        except zlib.error:
            return None
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        start = start.decode("utf-16", "replace").encode()
    start = start.removeprefix(b"\xef\xbb\xbf")
    if _JSON_FEED.match(start):
        return SitemapKind.JSON
    root = _ROOT.match(start)
    if root is None:
        return None
    name = root[1]
    if name == b"urlset":
        return SitemapKind.SITEMAP
    if name == b"sitemapindex":
        return SitemapKind.INDEX
    if name == b"feed":
        return SitemapKind.ATOM if b"atom" in start.lower() else None
    return SitemapKind.RSS if name == b"rss" or b"purl.org/rss/1.0" in start else None


# --- xml -----------------------------------------------------------------------------------------------------------


class _Format:
    """Where a format has its entries: the names of elements without namespace."""

    def __init__(self, entry: str, href: str, modified: tuple[str, ...], *, fallback: str = "") -> None:
        self.entry, self.href, self.modified, self.fallback = entry, href, modified, fallback
        self.texts = frozenset({href, fallback, *modified} - {""})


_FORMATS: Mapping[SitemapKind, _Format] = {
    SitemapKind.SITEMAP: _Format("url", "loc", ("lastmod",)),
    SitemapKind.INDEX: _Format("sitemap", "loc", ("lastmod",)),
    SitemapKind.RSS: _Format("item", "link", ("pubDate", "date", "updated"), fallback="guid"),
    SitemapKind.ATOM: _Format("entry", "link", ("updated", "modified", "published", "issued")),
}
_MODULES = re.compile(r"\{[^}]*(?:image|video|news|mobile|xhtml|media)[^}]*\}", re.IGNORECASE)
"""Namespaces of extensions, whose `loc` and `link` are of no page of their own."""


class _TooDeep(Exception):
    """Elements are nested so deeply that reading the rest would take long."""


class _Entries:
    """Target of a parser: takes the entries as they come, and keeps no tree."""

    def __init__(self, contents: SitemapContents, kind: SitemapKind, most: int) -> None:
        self._contents = contents
        self._most = most
        self._format = _FORMATS[kind]
        self._depth = 0
        self._entry_depth = 0
        """The depth of the entry that is open; 0: none is."""
        self._values: dict[str, str] = {}
        self._of_entry: list[str] = []
        """Its alternates."""
        self._alternates: dict[str, str] = {}
        """Those that no entry has named so far, with the times of their entries: mostly each has an entry of its own."""
        self._named: set[str] = set()
        self._text: list[str] | None = None
        self._length = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _TooDeep
        name = tag.rpartition("}")[2]
        if not self._entry_depth:
            if name == self._format.entry:
                self._entry_depth = self._depth
                self._values, self._of_entry = {}, []
            return
        self._text = None
        if self._depth != self._entry_depth + 1:
            return
        if name == "link" and "href" in attributes:
            self._link(tag, attributes)
        elif name in self._format.texts and name not in self._values and not _MODULES.match(tag):
            is_url = name != "guid" or attributes.get("isPermaLink", "true").strip().lower() == "true"
            self._text, self._length = [] if is_url else None, 0

    def end(self, tag: str) -> None:
        name = tag.rpartition("}")[2]
        if self._entry_depth and self._depth == self._entry_depth + 1 and self._text is not None:
            self._values[name] = "".join(self._text)
        if self._entry_depth and self._depth == self._entry_depth:
            self._entry_depth = 0
            self._add()
        self._text = None
        self._depth -= 1

    def data(self, text: str) -> None:
        if self._text is not None and self._length <= MAX_HREF:
            self._text.append(text)
            self._length += len(text)

    def close(self) -> None:
        for href, modified in self._alternates.items():
            if href not in self._named:
                _add(self._contents, href, modified, self._most)

    def _link(self, tag: str, attributes: Mapping[str, str]) -> None:
        relation = attributes.get("rel", "alternate").strip().lower()
        if relation != "alternate":
            return
        if "hreflang" in attributes or "xhtml" in tag:
            self._of_entry.append(attributes["href"].strip())
        else:
            self._values.setdefault("link", attributes["href"])

    def _add(self) -> None:
        values = self._values
        modified = next((values[name] for name in self._format.modified if values.get(name, "").strip()), "")
        href = values.get(self._format.href, "").strip()
        if not href and _URL_LINE.fullmatch(guid := values.get(self._format.fallback, "").strip()):
            href = guid
        if len(self._named) < self._most:
            self._named.add(href)
            for one in self._of_entry:
                self._alternates.setdefault(one, modified)
        _add(self._contents, href, modified, self._most)


def _read_xml(parts: _Parts, contents: SitemapContents, most: int, *, is_broken: bool = False) -> None:
    """Read XML; note its first error. `is_broken`: read as much as can be recovered, and leave the error noted."""
    from lxml import etree  # noqa: PLC0415 - it takes time to import, and most processes read no sitemap

    assert contents.kind is not None
    contents.entries, contents.left_out = [], 0
    # Without huge_tree, libxml2's limits of depth and of entities hold.
    parser = etree.XMLParser(
        target=_Entries(contents, contents.kind, most),
        recover=is_broken,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    try:
        for part in _repaired(parts) if is_broken else _without_space(parts):
            parser.feed(part)
        parser.close()
    except etree.XMLSyntaxError as error:
        contents.fault = contents.fault or f"its XML is broken: {error.msg}"
    except _TooDeep:
        contents.fault = f"its elements are nested more than {_MOST_DEPTH} deep, and the rest was not read"


def _without_space(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts without the space before the XML declaration, which must come first."""
    is_first = True
    for part in parts:
        data = part.lstrip() if is_first else part
        is_first = is_first and not data
        if data:
            yield data


def _repaired(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts in which an ampersand that begins no entity, as in many URLs, is escaped, and a `<` of a tag that does not end.

    Of many such tags libxml2 would take quadratic time. UTF-16 stays as it is.
    """
    rest = b""
    is_wide = False
    for number, part in enumerate(_without_space(parts)):
        is_wide = is_wide or (number == 0 and part[:2] in (b"\xff\xfe", b"\xfe\xff"))
        if is_wide:
            yield part
            continue
        data = rest + part
        at = _unclear_from(data)
        data, rest = data[:at], data[at:]
        if data:
            yield _escaped(data)
    if rest:
        yield _escaped(rest)


def _unclear_from(data: bytes) -> int:
    """Return where a tag or an entity begins that may go on in the next part; the length if there is none, or it would be very long."""
    tag = data.rfind(b"<")
    if tag >= 0 and data.find(b">", tag) < 0:
        return tag if len(data) - tag < _AT_ONCE else len(data)
    entity = data.rfind(b"&", max(len(data) - _LONGEST_ENTITY, 0))
    return entity if entity >= 0 else len(data)


def _escaped(data: bytes) -> bytes:
    return _OPEN_TAG.sub(b"&lt;", _AMPERSAND.sub(b"&amp;", data))


# --- json and text -------------------------------------------------------------------------------------------------


class _Item(Struct):
    url: object = None
    external_url: object = None
    date_modified: object = None
    date_published: object = None


class _Feed(Struct):
    items: list[_Item] = []


def _read_json(parts: _Parts, contents: SitemapContents, most: int) -> None:
    try:
        feed = msgspec.json.decode(b"".join(parts).removeprefix(b"\xef\xbb\xbf"), type=_Feed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        contents.fault = f"its JSON is broken: {error}"
        return
    for item in feed.items:
        href = next((one for one in (item.url, item.external_url) if isinstance(one, str)), "")
        modified = next((one for one in (item.date_modified, item.date_published) if isinstance(one, str)), "")
        _add(contents, href, modified, most)


def _read_text(parts: _Parts, contents: SitemapContents, most: int) -> None:
    """Take a list of URLs. Any other line makes it a text like others, without entries."""
    for line in _lines(parts):
        href = line.strip()
        if href and _URL_LINE.fullmatch(href) is None:
            contents.entries, contents.left_out = [], 0
            return
        _add(contents, href, "", most)
    if contents.entries:
        contents.kind = SitemapKind.TEXT


def _lines(parts: _Parts) -> Iterator[str]:
    rest = b""
    is_first = True
    for part in parts:
        data = rest + part
        if is_first:
            data = data.removeprefix(b"\xef\xbb\xbf")
            is_first = False
        *lines, rest = data.splitlines(keepends=True) or [b""]
        if rest.endswith((b"\n", b"\r")):
            lines, rest = [*lines, rest], b""
        yield from (line.decode("utf-8", "replace") for line in lines)
        if len(rest) > _MOST_LINE:
            yield rest.decode("utf-8", "replace")
            return
    if rest:
        yield rest.decode("utf-8", "replace")
