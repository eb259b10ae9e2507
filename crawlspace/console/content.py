"""Serves what was fetched: pages and files from the archive, for those who process documents that are sent by reference.

A body is sent as it was stored, a part at a time, with the content encoding it came with; ranges are those of RFC 9110, section 14.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlencode

from aiohttp import web

from crawlspace.admin.url_changes import find_url, read_url
from crawlspace.archive.reader import StreamedResponse
from crawlspace.clock import Clock
from crawlspace.config.sites import read_url_folding
from crawlspace.console.console import Console
from crawlspace.console.guard import USER
from crawlspace.console.routes import NoSuchThing
from crawlspace.console.sending import cut_by_errors
from crawlspace.errors import ConfigError, CrawlspaceError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.private_files import make_folder, make_whole_file
from crawlspace.runtime.session.paths import CollectionPaths, archive_reader

CONTENT = "/content"
LONGEST_LINK_S = 7 * 86_400
"""A signed link is valid for a week at most."""
_ID = re.compile(r"[0-9a-f]{32}")
_OF_LINK = frozenset({"collection", "expires", "signature"})
"""The query of a signed link."""
_LOG_IN = "log in, or send a token: Authorization: Bearer TOKEN"
_NOT_THERE = "there is no such document, or the archive on this machine does not have it"
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class ContentLinks:
    """Signs links to contents, which need no log-in until they expire (HMAC-SHA256). The key is in the data folder.

    A link leads to one document of one collection: both are signed, together with the time when it expires.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / "console-key"
        self._clock = clock
        self._key = b""

    def signed(self, id: str, collection: str, seconds: int) -> str:
        """Return the path of a content with a signature that is valid for that long. Raises UsageError and ConfigError."""
        if not 0 < seconds <= LONGEST_LINK_S:
            raise UsageError(f"seconds is a number from 1 to {LONGEST_LINK_S:,}")
        expires = str(int(self._clock.now()) + seconds)
        query = {"collection": collection, "expires": expires, "signature": self._signature(id, collection, expires)}
        return f"{CONTENT}/{quote(id, safe='')}?{urlencode(query)}"

    def is_valid(self, id: str, collection: str, expires: str, signature: str) -> bool:
        """Whether a link was signed here and has not expired. Raises ConfigError."""
        if not (expires.isascii() and expires.isdigit() and len(expires) <= 12):
            return False
        is_right = hmac.compare_digest(self._signature(id, collection, expires).encode(), signature.encode())
        return is_right and int(expires) >= self._clock.now()

    def _signature(self, id: str, collection: str, expires: str) -> str:
        message = f"{id}\n{collection}\n{expires}".encode()
        return hmac.new(self._secret(), message, sha256).hexdigest()

    def _secret(self) -> bytes:
        if not self._key:
            try:
                make_folder(self._path.parent)
                if not self._path.exists():
                    make_whole_file(self._path, secrets.token_bytes(32))  # another console may make one at this moment
                key = self._path.read_bytes()
            except OSError as error:
                raise ConfigError(f"the key for links {self._path} cannot be read or made: {error.strerror}") from error
            if len(key) != 32:
                raise ConfigError(f"the key for links {self._path} is damaged: remove it, which ends all links")
            self._key = key
        return self._key


@dataclass(frozen=True, slots=True)
class _Content:
    """A response that is being read, the collection that has it, and what closes it."""

    response: StreamedResponse
    collection: str
    stack: ExitStack


class ContentServer:
    """The addresses of contents."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._links = ContentLinks(console.data_folder, console.clock)

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/content/{id}/link", self.link)
        app.router.add_get("/content/{id}", self.send)
        app.router.add_get("/content", self.send)

    async def link(self, request: web.Request) -> web.StreamResponse:
        """Return a link that needs no log-in, as JSON."""
        if request.get(USER) is None:
            raise _refusal(HTTPStatus.UNAUTHORIZED, _LOG_IN)
        text = request.query.get("seconds", "3600")
        seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        path = await asyncio.to_thread(self._signed, request.match_info["id"], request.query.get("collection", ""), seconds)
        return web.json_response({"path": path, "seconds": seconds})

    def _signed(self, id: str, collection: str, seconds: int) -> str:
        """Return a link to a document of the collection that is named, or of the first one that has it."""
        content = self._open(id, "", collection)
        if content is None:
            raise NoSuchThing(_NOT_THERE)
        content.stack.close()
        return self._links.signed(id, content.collection, seconds)

    async def send(self, request: web.Request) -> web.StreamResponse:
        """Send a content, or a range of it."""
        id, query = request.match_info.get("id", ""), request.query
        collection, url = query.get("collection", ""), query.get("url", "")
        if request.get(USER) is None:
            if "signature" not in query:
                raise _refusal(HTTPStatus.UNAUTHORIZED, _LOG_IN)
            is_signed = query.keys() == _OF_LINK and await asyncio.to_thread(
                self._links.is_valid, id, collection, query["expires"], query["signature"]
            )
            if not is_signed:
                raise _refusal(HTTPStatus.UNAUTHORIZED, "this link is forged or has expired")
        if id and url:
            raise UsageError("name a document by its id or by its URL, not by both")
        content = await asyncio.to_thread(self._open, id, url, collection)
        if content is None:
            raise NoSuchThing(_NOT_THERE)
        try:
            return await _send(request, content.response)
        finally:
            await asyncio.to_thread(content.stack.close)

    def _open(self, id: str, url: str, collection: str) -> _Content | None:
        """Find a response in the collection that is named, or in any. Raises CrawlspaceError."""
        if url and not collection:
            raise UsageError("name the collection of the URL: /content?collection=NAME&url=URL")
        if not url and not _ID.fullmatch(id):
            return None
        for name in [collection] if collection else self._console.names():
            try:
                found = _opened(self._console.paths(name), id, url)
            except CrawlspaceError:
                if collection:
                    raise
                continue  # another one may have it
            if found is not None:
                return found
        return None


def _opened(paths: CollectionPaths, id: str, url: str) -> _Content | None:
    """Open the response of a document by its id, which the embedded index knows, or of a URL."""
    with ExitStack() as stack:
        text = url or _url_of(paths, id)
        opened = stack.enter_context(paths.store.reading())
        if not text or opened is None:
            return None
        state = find_url(opened.store, read_url(text), read_url_folding(paths.settings))
        if state is None or state.archived is None:
            return None
        archive = stack.enter_context(closing(archive_reader(paths, opened)))
        response = archive.streamed(state.archived, state.url)
        return None if response is None else _Content(response, paths.name, stack.pop_all())


def _url_of(paths: CollectionPaths, id: str) -> str:
    if not paths.sinks.has_embedded or not paths.index_file.exists():
        return ""
    with closing(EmbeddedIndex(paths.index_file, read_only=True, owner=paths.name)) as index:
        document = index.own_document(id=id, url="")
        return "" if document is None else document.url


async def _send(request: web.Request, content: StreamedResponse) -> web.StreamResponse:
    declared = {name.lower(): value for name, value in content.headers}
    encoding = declared.get("content-encoding", "").strip().lower()
    if encoding and encoding != "identity" and not _accepts(request.headers.get("Accept-Encoding", ""), encoding):
        raise _refusal(HTTPStatus.NOT_ACCEPTABLE, f"the content is encoded: ask with Accept-Encoding: {encoding}")
    etag = f'"{content.digest or content.date}"'
    headers = {
        "Content-Type": _type_of(declared.get("content-type", "")),
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Vary": "Accept-Encoding",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": "attachment",
        "Content-Security-Policy": "sandbox; default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Crawlspace-Date": content.date,
    }
    if encoding and encoding != "identity":
        headers["Content-Encoding"] = encoding
    if etag in [one.strip() for one in request.headers.get("If-None-Match", "").split(",")]:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    wanted = request.headers.get("Range", "") if request.headers.get("If-Range", etag) == etag else ""
    first, end, status = 0, content.length, HTTPStatus.OK
    if (match := _RANGE.fullmatch(wanted.replace(" ", ""))) is not None and (match[1] or match[2]):
        first, end = _bounds(match[1], match[2], content.length)
        if first >= end:
            headers["Content-Range"] = f"bytes */{content.length}"
            return web.Response(status=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=headers)
        status = HTTPStatus.PARTIAL_CONTENT
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{content.length}"
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = end - first
    parts = _between(content.parts, first, end)
    with cut_by_errors(request):  # such as a damaged record: the length that was promised does not come
        await response.prepare(request)
        while request.method != "HEAD" and (part := await asyncio.to_thread(next, parts, b"")):
            await response.write(part)
        await response.write_eof()
    return response


def _bounds(first: str, last: str, length: int) -> tuple[int, int]:
    """Return where a range begins, and where it ends (exclusive)."""
    if not first:
        return max(0, length - int(last)), length
    return int(first), min(int(last) + 1, length) if last else length


def _between(parts: Iterator[bytes], first: int, end: int) -> Iterator[bytes]:
    """Yield the bytes between two offsets."""
    at = 0
    for part in parts:
        begin, stop = max(first - at, 0), min(end - at, len(part))
        if begin < stop:
            yield part[begin:stop]
        at += len(part)
        if at >= end:
            return


def _accepts(header: str, encoding: str) -> bool:
    accepted = {}
    for one in header.lower().split(","):
        name, _, weight = one.partition(";")
        accepted[name.strip()] = weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return accepted.get(encoding, accepted.get("*", False))


def _type_of(declared: str) -> str:
    """Return a declared type as a header may have it."""
    text = declared.split(",", maxsplit=1)[0].strip()
    return text if text.isascii() and text.isprintable() and "/" in text else "application/octet-stream"


def _refusal(status: HTTPStatus, sentence: str) -> web.HTTPException:
    """Return an error, which the application answers as JSON."""
    kinds = {HTTPStatus.UNAUTHORIZED: web.HTTPUnauthorized, HTTPStatus.NOT_ACCEPTABLE: web.HTTPNotAcceptable}
    return kinds[status](text=sentence)
