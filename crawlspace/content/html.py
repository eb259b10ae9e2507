"""What a crawler takes from a page: links, robots directives, canonical, language and the text, in one pass over its tags.

Choices that the standards leave open:

* A URL that is linked twice is one link, at its first place; it is nofollow only if every link to it is.
* Links in `template` are none (they are not part of the page); links in `noscript` are, because a crawler runs no scripts.
  The text of `noscript` is left out: it mostly says that scripts are needed.
* Elements that run along in a line (`b`, `span` …) do not end a word; every other one does, unknown ones too. So `th<b>re</b>e` is
  `three`, and neighbouring `<td>`, `<br>` and `<my-card>` stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from crawlspace.content.charset import charset_parameter, decode
from crawlspace.content.markup import attributes_of, resolved_attribute, resolved_text, tokens
from crawlspace.content.robots_directives import NO_LIMITS, RobotsDirectives, parse_robots
from crawlspace.model import Link
from crawlspace.urls import MalformedUrl, join

LINK_TAGS = frozenset({"a", "area", "frame", "iframe", "link", "meta"})
"""Elements whose links are taken by default; `meta` is its refresh."""

MAX_TITLE = 1_000
MAX_DESCRIPTION = 5_000
MAX_HEADINGS = 100
MAX_HEADING = 300

_INLINE_NAMES = (
    "a abbr acronym b basefont bdi bdo big blink cite code data del dfn em font i ins kbd link mark meta nobr param q rb ruby s samp slot"
    " small source span strike strong sub sup time track tspan tt u var wbr"
)
_INLINE: dict[str, None] = dict.fromkeys(["", *_INLINE_NAMES.split(), *(f"/{name}" for name in _INLINE_NAMES.split())])
_LINK_RELATIONS = frozenset({"next", "prev", "alternate", "canonical"})
_NO_PAGES = (
    "javascript:", "mailto:", "data:", "tel:", "sms:", "about:", "blob:", "callto:", "fax:", "skype:", "whatsapp:", "vbscript:",
    "view-source:",
)  # fmt: skip
_LONGEST_SCHEME = max(map(len, _NO_PAGES))
_CONTROL_OR_SPACE = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE = str.maketrans("", "", "\t\n\r")
_REFRESH = re.compile(r"\s*(\d+(?:\.[\d.]*)?|\.\d[\d.]*)\s*[;,\s]\s*(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL)
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class Page:
    """What was found in a page. `links` hold the references as written, white space stripped as browsers do; `base` is what they are
    relative to. `canonical` and the URL of `meta_refresh` are as written too."""

    base: str
    title: str = ""
    description: str = ""
    language: str = ""
    """A language tag like `en-GB`, or empty."""
    headings: tuple[str, ...] = ()
    """`h1` to `h3`."""
    text: str = ""
    """Words apart by single spaces; the title is not part of it."""
    links: tuple[Link, ...] = ()
    canonical: str | None = None
    robots: RobotsDirectives = NO_LIMITS
    meta_refresh: tuple[float, str] | None = None
    """Seconds, URL."""
    charset: str = "utf-8"
    """Python's name of the codec the body was read with."""
    links_truncated: bool = False
    text_truncated: bool = False


def extract(
    body: bytes,
    *,
    url: str,
    charset: str | None = None,
    max_links: int = 10_000,
    max_text: int = 10_000_000,
    link_tags: Collection[str] = LINK_TAGS,
    agent_names: Collection[str] = (),
    xhtml: bool = False,
) -> Page:
    """Return what a page holds. Never raises, whatever the body is; costs time in proportion to its length.

    `charset` is the one of the Content-Type header. `max_links` counts different links, `max_text` characters; what is beyond is left
    out and flagged. `agent_names` are names of meta elements that speak to us beside `robots`. `xhtml` is for application/xhtml+xml.
    """
    html, codec = decode(body, charset)
    if "\0" in html:
        html = html.replace("\0", "")
    reader = _Reader(max_links, link_tags, agent_names)
    parts, handler_of = reader.parts, reader.handlers.get
    for text, name, attributes in tokens(html, xml=xhtml):
        if text and not reader.hidden:
            parts.append(text)
        handler = handler_of(name, _ends_a_word)
        if handler is _ends_a_word:
            parts.append(" ")
        elif handler is not None:
            handler(attributes)
    reader.heading_end("")
    whole = _collapsed("".join(parts))
    return Page(
        base=_base(url, reader.base),
        title=reader.title or "",
        description=(reader.description or reader.og_description)[:MAX_DESCRIPTION],
        language=reader.language or reader.pragma_language,
        headings=tuple(reader.headings),
        text=whole[:max_text],
        links=tuple(reader.links.values()),
        canonical=reader.canonical,
        robots=reader.robots,
        meta_refresh=reader.refresh,
        charset=codec,
        links_truncated=reader.links_truncated,
        text_truncated=len(whole) > max_text,
    )


_Handler = Callable[[str], None]


def _ends_a_word(_: str) -> None:
    """Stands for all tags without a handler of their own; the caller puts the space, which is cheaper than a call."""


_IN_TEMPLATE, _IN_NOSCRIPT = 1, 2


class _Reader:
    """What has been found so far; a method for each tag that means something."""

    def __init__(self, max_links: int, link_tags: Collection[str], agent_names: Collection[str]) -> None:
        self.parts: list[str] = []
        self.links: dict[str, Link] = {}
        self.headings: list[str] = []
        self.title: str | None = None
        self.description = self.og_description = self.language = self.pragma_language = ""
        self.base: str | None = None
        self.canonical: str | None = None
        self.robots = NO_LIMITS
        self.refresh: tuple[float, str] | None = None
        self.links_truncated = False
        self.hidden = 0
        self._max_links = max_links
        self._link_tags = link_tags
        self._robots_names = {"robots", *(name.lower() for name in agent_names)}
        self._templates = 0
        self._svg = 0
        self._raw_at: int | None = None
        self._heading_at: int | None = None
        self.handlers: dict[str, _Handler | None] = {
            **_INLINE,
            "html": self._html,
            "base": self._base_element,
            "meta": self._meta,
            "link": self._link_element,
            "title": self._raw_start,
            "/title": self._title_end,
            "script": self._raw_start,
            "/script": self._raw_end,
            "style": self._raw_start,
            "/style": self._raw_end,
            "noembed": self._raw_start,
            "/noembed": self._raw_end,
            "noframes": self._raw_start,
            "/noframes": self._raw_end,
            "iframe": self._inner_frame,
            "/iframe": self._raw_end,
            "template": self._template_start,
            "/template": self._template_end,
            "noscript": self._noscript_start,
            "/noscript": self._noscript_end,
            "svg": self._svg_start,
            "/svg": self._svg_end,
        }
        for level in "123456":
            if level <= "3":
                self.handlers["h" + level] = self._heading_start
            self.handlers["/h" + level] = self.heading_end
        for tag, handler in (("a", self._anchor), ("area", self._area), ("frame", self._frame)):
            if tag in link_tags:
                self.handlers[tag] = handler

    # links
    def _anchor(self, written: str) -> None:
        if self._templates:
            return
        attributes = attributes_of(written)
        href = attributes.get("href")
        if href:
            rel = attributes.get("rel")
            self._link(href, "a", nofollow=rel is not None and "nofollow" in rel.lower().split())

    def _area(self, written: str) -> None:
        attributes = attributes_of(written)
        self._link(attributes.get("href", ""), "area", nofollow="nofollow" in attributes.get("rel", "").lower().split())

    def _frame(self, written: str, tag: str = "frame") -> None:
        attributes = attributes_of(written)
        for name in ("src", "href"):
            self._link(attributes.get(name, ""), tag)
        self.parts.append(" ")

    def _inner_frame(self, written: str) -> None:
        if "iframe" in self._link_tags:
            self._frame(written, "iframe")
        self.parts.append(" ")
        self._raw_start(written)

    def _link_element(self, written: str) -> None:
        attributes = attributes_of(written)
        rel = attributes.get("rel", "").lower().split()
        if "stylesheet" in rel or self._templates or _LINK_RELATIONS.isdisjoint(rel):
            return
        href = attributes.get("href", "")
        if "canonical" in rel and self.canonical is None:
            self.canonical = _as_browsers_read(resolved_attribute(href)) or None
        if "link" in self._link_tags:
            self._link(href, "link", nofollow="nofollow" in rel)

    def _link(self, written: str, tag: str, *, nofollow: bool = False) -> None:
        href = _as_browsers_read(resolved_attribute(written))
        if not href or self._templates or href[0] == "#":
            return
        if ":" in href[:_LONGEST_SCHEME] and href[:_LONGEST_SCHEME].lower().startswith(_NO_PAGES):
            return
        known = self.links.get(href)
        if known is not None:
            known.nofollow = known.nofollow and nofollow
        elif len(self.links) < self._max_links:
            self.links[href] = Link(href, nofollow, tag)
        else:
            self.links_truncated = True

    # what the page says of itself
    def _html(self, written: str) -> None:
        attributes = attributes_of(written)
        self.language = self.language or _language(attributes.get("lang") or attributes.get("xml:lang") or "")

    def _base_element(self, written: str) -> None:
        href = attributes_of(written).get("href")
        if self.base is None and href is not None and not self._templates:
            self.base = _as_browsers_read(resolved_attribute(href))

    def _meta(self, written: str) -> None:
        if self._templates:
            return
        attributes = attributes_of(written)
        content = resolved_attribute(attributes.get("content", ""))
        name = attributes.get("name", "").strip().lower()
        if name == "description":
            self.description = self.description or _collapsed_plain(content)
        elif name in self._robots_names:
            self.robots &= parse_robots(content)
        elif attributes.get("property", name).strip().lower() == "og:description":
            self.og_description = self.og_description or _collapsed_plain(content)
        pragma = attributes.get("http-equiv")
        if pragma is None:
            return
        pragma = pragma.strip().lower()
        if pragma == "refresh" and self.refresh is None:
            self._meta_refresh(content)
        elif pragma == "content-language" and "," not in content:
            self.pragma_language = self.pragma_language or _language(content)

    def _meta_refresh(self, content: str) -> None:
        match = _REFRESH.match(content)
        if match is None:
            return
        target = match[2]
        if target[:1] in ("'", '"'):
            target = target[1:].partition(target[0])[0]
        target = _as_browsers_read(target)
        if target:
            whole, _, fraction = match[1].partition(".")
            self.refresh = (float(f"{whole[:9] or 0}.{fraction.partition('.')[0][:9] or 0}"), target)
            if "meta" in self._link_tags:
                self._link(target.replace("&", "&amp;"), "meta")

    # text
    def _raw_start(self, _: str) -> None:
        self._raw_at = len(self.parts)

    def _raw_end(self, _: str) -> None:
        if self._raw_at is not None:
            del self.parts[self._raw_at :]
            self._raw_at = None

    def _title_end(self, _: str) -> None:
        if self._raw_at is not None and not self.hidden and not self._svg and self.title is None:
            self.title = _collapsed("".join(self.parts[self._raw_at :]))[:MAX_TITLE]
        self._raw_end("")

    def _heading_start(self, _: str) -> None:
        self.heading_end("")
        self._heading_at = len(self.parts)

    def heading_end(self, _: str) -> None:
        """Close an open heading; headings do not nest."""
        if self._heading_at is not None:
            heading = _collapsed("".join(self.parts[self._heading_at :]))[:MAX_HEADING]
            if heading and len(self.headings) < MAX_HEADINGS:
                self.headings.append(heading)
            self._heading_at = None
        self.parts.append(" ")

    def _template_start(self, _: str) -> None:
        self._templates += 1
        self.hidden |= _IN_TEMPLATE

    def _template_end(self, _: str) -> None:
        self._templates = max(self._templates - 1, 0)
        if not self._templates:
            self.hidden &= ~_IN_TEMPLATE

    def _noscript_start(self, _: str) -> None:
        self.hidden |= _IN_NOSCRIPT

    def _noscript_end(self, _: str) -> None:
        self.hidden &= ~_IN_NOSCRIPT

    def _svg_start(self, written: str) -> None:
        self._svg += not written.endswith("/")
        self.parts.append(" ")

    def _svg_end(self, _: str) -> None:
        self._svg = max(self._svg - 1, 0)
        self.parts.append(" ")


def _collapsed(text: str) -> str:
    return " ".join(resolved_text(text).split())


def _collapsed_plain(text: str) -> str:
    return " ".join(text.split())


def _as_browsers_read(href: str) -> str:
    """Control characters and spaces off both ends, tabs and line ends out of the middle (URL standard, 4.4)."""
    href = href.strip(_CONTROL_OR_SPACE)
    if href.isprintable():
        return href
    return href.translate(_TAB_OR_NEWLINE)


def _language(written: str) -> str:
    """A language tag in its usual spelling (RFC 5646, 2.1.1), or empty."""
    match = _LANGUAGE.fullmatch(written.strip().replace("_", "-"))
    if match is None:
        return ""
    first, *others = match[0].lower().split("-")
    return "-".join([first, *(sub.upper() if len(sub) == 2 else sub.title() if len(sub) == 4 else sub for sub in others)])


def _base(url: str, href: str | None) -> str:
    """The page's base URL: its own, unless a base element names another that pages can be under."""
    if href:
        try:
            base = join(url, href)
        except MalformedUrl:
            return url
        if base.startswith(("http:", "https:")):
            return base
    return url


__all__ = ["LINK_TAGS", "Page", "charset_parameter", "extract"]
