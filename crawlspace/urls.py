"""URLs in one normal form, and the keys that are derived from it.

Parsing and joining follow the WHATWG URL standard (ada-url), as browsers do; on top of that escapes are
brought to the form of RFC 3986 section 6.2.2, and the fragment and an empty query are dropped.
The host as written in the link is kept beside the normal form, because domain rules can be case sensitive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol
from zlib import crc32

from ada_url import join_url, normalize_url

from crawlspace.printable import quoted

DEFAULT_PORTS = {"http": 80, "https": 443}


class MalformedUrl(ValueError):
    """The text is not a URL that can be crawled; the message says why."""


class UrlWithCredentials(MalformedUrl):
    """The URL carries a user name or password."""


@dataclass(frozen=True, slots=True)
class Url:
    """A URL in normal form. `host_as_written` differs from `host` in case only."""

    text: str
    scheme: str
    host: str
    port: int
    path: str
    query: str | None
    host_as_written: str

    @property
    def site(self) -> str:
        """Host and port: what politeness is kept for."""
        return f"{self.host}:{self.port}"

    @property
    def key(self) -> int:
        return url_key(self.text)


class UrlParts(Protocol):
    """What the checks of rules and limits read: a `Url`, or an object that costs less to make where there are a million of them."""

    @property
    def text(self) -> str: ...
    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def query(self) -> str | None: ...
    @property
    def host_as_written(self) -> str: ...


def as_url(parts: UrlParts) -> Url:
    """Return a `Url` with these parts; a `Url` itself."""
    if isinstance(parts, Url):
        return parts
    return Url(parts.text, parts.scheme, parts.host, parts.port, parts.path, parts.query, parts.host_as_written)


def url_key(text: str) -> int:
    """Return the 64-bit signed key of a URL in normal form, the look-up key of the stores.

    Its upper 16 bits come from the folder (CRC-32), the others from the whole URL (blake2b). A page leads mostly to its neighbours,
    so what is looked up or inserted together lies together in an index. Two URLs may share a key; whoever looks one up compares the text too.
    """
    raw = text.encode()
    query = raw.find(b"?")
    folder = raw[: raw.rfind(b"/", 0, query if query >= 0 else len(raw)) + 1]
    digest = blake2b(raw, digest_size=6).digest()
    return int.from_bytes(digest + (crc32(folder) & 0xFFFF).to_bytes(2, "little"), "little", signed=True)


def document_id(text: str) -> str:
    """Return the id of a URL's document in every index: 32 hexadecimal digits of blake2b over the URL alone."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def join(base: str, href: str) -> str:
    """Return `href` made absolute against `base`, as a browser does. Raises MalformedUrl."""
    try:
        return str(join_url(base, href))
    except (ValueError, UnicodeError) as error:
        raise MalformedUrl(f"{quoted(href)} is not a URL") from error


def parse(text: str, *, host_as_written: str | None = None) -> Url:
    """Return an absolute URL in normal form.

    Raises MalformedUrl, and UrlWithCredentials for one with a user name or password.
    Schemes other than http and https are parsed too, so that a scheme check can name them.
    """
    try:
        href = normalize_url(text)
    except (ValueError, UnicodeError) as error:
        raise MalformedUrl(f"{quoted(text)} is not an absolute URL") from error
    scheme, _, rest = href.partition(":")
    rest = rest.partition("#")[0]
    if scheme not in DEFAULT_PORTS:
        return Url(f"{scheme}:{rest}", scheme, "", 0, rest.partition("?")[0], rest.partition("?")[2] or None, "")
    slash = rest.index("/", 2)  # a URL of these schemes always has a path
    authority = rest[2:slash]
    if "@" in authority:
        raise UrlWithCredentials("a URL must not carry a user name or password")
    written_path, _, query_text = rest[slash:].partition("?")
    path = _normal_escapes(written_path)
    if path != written_path and _DOT_SEGMENT.search(path):  # made of escapes in escapes, `%2%45`: to be resolved as any other
        return parse(f"{scheme}://{authority}{path}?{query_text}", host_as_written=host_as_written or _written_host(text))
    query = _normal_escapes(query_text) or None
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():  # the colons of an IPv6 address are inside its brackets
        host, port = authority, ""
    host = host.removesuffix(".")  # the root of the name space: the same host, and not a way past a rule
    if not host:
        raise MalformedUrl(f"{quoted(text)} has no host")
    if ".." in f".{host}.":  # `a.example..` would be looked up as `a.example`, past the rules for that
        raise MalformedUrl(f"{quoted(text)} has a host with two dots in a row")
    written = host_as_written or _written_host(text) or host
    if written.lower() != host:  # other spellings (IDNA, 0x7f.1, %41) must not slip past a rule either
        written = host
    normal = f"{scheme}://{host}:{port}{path}" if port else f"{scheme}://{host}{path}"
    if query is not None:
        normal = f"{normal}?{query}"
    return Url(normal, scheme, host, int(port) if port else DEFAULT_PORTS[scheme], path, query, written)


_ESCAPE = re.compile(
    "%(2[DdEe]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe]|[0-9A-F][a-f]|[a-f][0-9A-Fa-f])",
)
"""Those that are not in normal form: of an unreserved character, or with small letters. Most are, and need no string each."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")
_AUTHORITY = re.compile(r"\s*(?:https?:)?[/\\]{2,}([^/\\?#]*)", re.IGNORECASE)
_PORT = re.compile(r":\d*$")


def _normal_escapes(part: str) -> str:
    """RFC 3986 6.2.2: escapes in capitals, escaped unreserved characters as themselves."""
    if "%" not in part:
        return part
    once = _ESCAPE.sub(_normal_escape, part)
    if once == part or _ESCAPE.sub(_normal_escape, once) == once:
        return once
    return _ESCAPE.sub(_normal_escape, _opened(once))


def _normal_escape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if code in _UNRESERVED else match[0].upper()


def _opened(part: str) -> str:
    """Without escapes of unreserved characters, those made by others that were opened too (`%%34%31`): once through the text."""
    out: list[str] = []
    for character in part:
        out.append(character)
        while len(out) > 2 and out[-3] == "%" and (found := _ESCAPE.fullmatch("".join(out[-3:]))):
            code = int(found[1], 16)
            if code not in _UNRESERVED:
                break
            out[-3:] = chr(code)
    return "".join(out)


def _written_host(text: str) -> str | None:
    """The host as it stands in the text, or None for a relative reference."""
    match = _AUTHORITY.match(text)
    if not match:
        return None
    return _PORT.sub("", match[1].rsplit("@", 1)[-1])
