"""URLs in one normal form, and the keys that are derived from it.

Parsing and joining follow the WHATWG URL standard (ada-url), as browsers do; on top of that escapes are
brought to the form of RFC 3986 section 6.2.2, and an empty query is dropped, as is the fragment, unless it is a route that is
followed (`CRAWLSPACE_HASH_ROUTES`).
The host as written in the link is kept in addition to the normal form, because domain rules can be case sensitive.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from struct import Struct as Packing
from zlib import crc32

from ada_url import join_url, normalize_url
from msgspec import Struct, structs

from crawlspace.text import quoted

DEFAULT_PORTS = {"http": 80, "https": 443}


class MalformedUrl(ValueError):
    """The text is not a URL that can be crawled; the message has the reason."""


class UrlWithCredentials(MalformedUrl):
    """The URL carries a user name or password."""


class Url(Struct, frozen=True, gc=False):
    """A URL in normal form."""

    text: str
    """The whole URL."""
    scheme: str
    """Lower case, without the colon."""
    host: str
    """Lower case, international names in their ASCII form."""
    port: int
    """The port of the scheme where none is written."""
    path: str
    """Begins with a slash."""
    query: str | None
    """Without the `?`; None without one."""
    host_as_written: str
    """Differs from `host` in case only."""
    fragment: str = ""
    """A route behind #, which `text` has too; other fragments are dropped."""

    @property
    def site(self) -> str:
        """Host and port: the unit of politeness."""
        return f"{self.host}:{self.port}"

    @property
    def page(self) -> Url:
        """The URL without its route: the one that is requested, and that rules see."""
        return structs.replace(self, text=without_route(self.text), fragment="") if self.fragment else self

    def with_route(self, fragment: str) -> Url:
        """Return the URL of a route of this page; `fragment` is in normal form."""
        return structs.replace(self, text=f"{self.text}#{fragment}", fragment=fragment)

    @property
    def key(self) -> int:
        return url_key(self.text)


_KEY = Packing("<q")


def url_key(text: str) -> int:
    """Return the 64-bit signed key of a URL in normal form, the look-up key of the stores.

    The upper 16 bits are the CRC-32 of the folder, the others blake2b of the whole URL. Pages link mostly to their neighbours,
    so keys that are looked up or inserted together are close in an index. Two URLs may share a key: compare the text, too.
    """
    raw = text.encode()
    query = raw.find(b"?")
    folder = raw[: (raw.rfind(b"/") if query < 0 else raw.rfind(b"/", 0, query)) + 1]
    digest = blake2b(raw, digest_size=6).digest()
    key: int = _KEY.unpack(digest + (crc32(folder) & 0xFFFF).to_bytes(2, "little"))[0]
    return key


def document_id(text: str) -> str:
    """Return the id of a URL's document in every index: 32 hexadecimal digits, blake2b of the URL."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def join(base: str, href: str) -> str:
    """Return `href` made absolute against `base`, as a browser does. Raises MalformedUrl."""
    try:
        return str(join_url(base, href))
    except (ValueError, UnicodeError) as error:
        raise MalformedUrl(f"{quoted(href)} is not a URL") from error


def is_route(href: str) -> bool:
    """Return whether the fragment of a link is a route: it begins with / or !, and names something. `#!` alone is a link to nowhere."""
    fragment = href.partition("#")[2]
    return fragment[:1] in ("/", "!") and bool(fragment.strip("/!"))


def without_route(text: str) -> str:
    """Return a URL in normal form without its route: what is requested of a server."""
    return text.partition("#")[0]


def parse(text: str, *, host_as_written: str | None = None, routes: bool = False) -> Url:
    """Return an absolute URL in normal form; with its fragment if that is a route, and `routes` are wanted.

    A URL that is known has a fragment only if it is a route that is followed: it keeps its text with `routes`.
    Raises MalformedUrl, and UrlWithCredentials for one with a user name or password.
    Schemes other than http and https are parsed too, so that a scheme check can name them.
    """
    try:
        href = normalize_url(text)
    except (ValueError, UnicodeError) as error:
        raise MalformedUrl(f"{quoted(text)} is not an absolute URL") from error
    scheme, _, rest = href.partition(":")
    rest, _, fragment = rest.partition("#")
    if scheme not in DEFAULT_PORTS:
        return Url(f"{scheme}:{rest}", scheme, "", 0, rest.partition("?")[0], rest.partition("?")[2] or None, "")
    slash = rest.index("/", 2)  # a URL of these schemes always has a path
    authority = rest[2:slash]
    if "@" in authority:
        raise UrlWithCredentials("a URL must not carry a user name or password")
    written_path, _, query_text = rest[slash:].partition("?")
    path = _normal_escapes(written_path)
    if path != written_path and _DOT_SEGMENT.search(path):  # from nested escapes such as `%2%45`: resolve it as any other
        again = f"{scheme}://{authority}{path}?{query_text}#{fragment}"
        return parse(again, host_as_written=host_as_written or _written_host(text), routes=routes)
    query = _normal_escapes(query_text) or None
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():  # the colons of an IPv6 address are inside its brackets
        host, port = authority, ""
    host = host.removesuffix(".")  # the DNS root: the same host, so the same rules apply
    if not host:
        raise MalformedUrl(f"{quoted(text)} has no host")
    if ".." in f".{host}.":  # DNS resolves `a.example..` as `a.example`, whose rules would not match
        raise MalformedUrl(f"{quoted(text)} has a host with two dots in a row")
    written = host_as_written or _written_host(text) or host
    if written.lower() != host:  # other spellings (IDNA, 0x7f.1, %41) must not bypass a rule
        written = host
    normal = f"{scheme}://{host}:{port}{path}" if port else f"{scheme}://{host}{path}"
    if query is not None:
        normal = f"{normal}?{query}"
    url = Url(normal, scheme, host, int(port) if port else DEFAULT_PORTS[scheme], path, query, written)
    return url.with_route(_normal_escapes(fragment)) if routes and is_route(f"#{fragment}") else url


_ESCAPE = re.compile(
    "%(2[DdEe]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe]|[0-9A-F][a-f]|[a-f][0-9A-Fa-f])",
)
"""Escapes not in normal form: of an unreserved character, or with lower-case digits. Most URLs have none."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")
_AUTHORITY = re.compile(r"\s*(?:https?:)?[/\\]{2,}([^/\\?#]*)", re.IGNORECASE)
_PORT = re.compile(r":\d*$")


def _normal_escapes(part: str) -> str:
    """Return the text with escapes in upper case and unreserved characters unescaped (RFC 3986 6.2.2)."""
    if "%" not in part:
        return part
    once = _ESCAPE.sub(_normal_escape, part)
    if once == part or _ESCAPE.sub(_normal_escape, once) == once:
        return once
    return _ESCAPE.sub(_normal_escape, _unescaped(once))


def _normal_escape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if code in _UNRESERVED else match[0].upper()


def _unescaped(part: str) -> str:
    """Return the text without escapes of unreserved characters, nested ones included (`%%34%31`); in one pass."""
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
    """Return the host as written in the text; None for a relative reference."""
    match = _AUTHORITY.match(text)
    if not match:
        return None
    return _PORT.sub("", match[1].rsplit("@", 1)[-1])
