"""Links of a page: URLs of attributes and refreshes as browsers read them, and attributes of the user's choice that have links.

Such attributes are pairs as `img@src` and `*@data-url`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from crawlspace.content.charset import in_encoding
from crawlspace.content.markup import resolved_attribute
from crawlspace.document import essence
from crawlspace.urls import is_route

_RELATIONS = frozenset({"next", "prev", "alternate", "canonical"})
_NO_PAGES = (
    "javascript:", "mailto:", "data:", "tel:", "sms:", "about:", "blob:", "callto:", "fax:", "skype:", "whatsapp:", "vbscript:",
    "view-source:",
)  # fmt: skip
_LONGEST_SCHEME = max(map(len, _NO_PAGES))
_CONTROL_OR_SPACE = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE = str.maketrans("", "", "\t\n\r")
_REFRESH = re.compile(r"\s*(\d+(?:\.[\d.]*)?|\.\d[\d.]*)\s*[;,\s]\s*(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL)
_ADDRESSES = re.compile(r'(\s(?:href|src|action|xlink:href)=")([^"?]*+\?[^"]*+)')
_PARTS_OF_TYPE = re.compile("[/+]")
_DATA = frozenset({"json", "xml", "oembed", "rss", "atom", "rdf", "calendar", "turtle", "n3", "n-triples", "vcard", "css"})
"""Parts of the names of types that are for programs: feeds, oEmbed, JSON."""
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"})
_MEDIA = ("image/", "audio/", "video/", "font/")


def target(written: str, codec: str) -> str:
    """Return the URL of an attribute as a browser reads it on a page in this encoding; a reference within the page, too."""
    return in_encoding(_stripped(resolved_attribute(written)), codec)


def page_target(written: str, codec: str) -> str:
    """Return the URL of an attribute that leads to another page, or to a route after #; empty for any other."""
    href = resolved_attribute(written).strip(_CONTROL_OR_SPACE)  # as in `target`, without calls
    if not href.isprintable():
        href = href.translate(_TAB_OR_NEWLINE)
    if not href or (href[0] == "#" and not is_route(href)):
        return ""
    if ":" in href[:_LONGEST_SCHEME] and href[:_LONGEST_SCHEME].lower().startswith(_NO_PAGES):
        return ""
    return href if href.isascii() else in_encoding(href, codec)


def is_link(relations: Collection[str], type_written: str) -> bool:
    """Return whether a link element leads to a page, by its relations and its type."""
    if "stylesheet" in relations or _RELATIONS.isdisjoint(relations):
        return False
    if not type_written or _RELATIONS.intersection(relations) != {"alternate"}:
        return True
    return _may_be_page(essence(resolved_attribute(type_written)))


def is_feed(relations: Collection[str], type_written: str) -> bool:
    """Return whether a link element names a feed of the site (HTML, 4.6.7.1)."""
    return "alternate" in relations and bool(type_written) and essence(resolved_attribute(type_written)) in _FEEDS


def parse_refresh(content: str, codec: str) -> tuple[float, str] | None:
    """Return seconds and URL of a refresh; None without a URL."""
    match = _REFRESH.match(content)
    if match is None:
        return None
    url = match[2]
    if url[:1] in ("'", '"'):
        url = url[1:].partition(url[0])[0]
    url = in_encoding(_stripped(url), codec)
    if not url:
        return None
    whole, _, fraction = match[1].partition(".")
    return float(f"{whole[:9] or 0}.{fraction.partition('.')[0][:9] or 0}"), url


def with_queries_in(html: str, codec: str) -> str:
    """Return the HTML of a DOM with queries as they are sent from a page in this encoding, so that they stay the same in UTF-8."""
    return html if html.isascii() else _ADDRESSES.sub(lambda match: match[1] + in_encoding(match[2], codec), html)


def _may_be_page(kind: str) -> bool:
    """Return whether a type may be that of a page or file."""
    if kind.endswith("xhtml+xml"):
        return True
    return not kind.startswith(_MEDIA) and _DATA.isdisjoint(_PARTS_OF_TYPE.split(kind))


def _stripped(href: str) -> str:
    """Return a URL without control characters and spaces at both ends, and without tabs and line ends (URL standard, 4.4)."""
    href = href.strip(_CONTROL_OR_SPACE)
    if href.isprintable():
        return href
    return href.translate(_TAB_OR_NEWLINE)


ANY = "*"
"""Stands for each element."""
MARK = "@"
"""Replaces the name of a tag that may have such an attribute; no element has this name."""
_HAVE_REL = frozenset({"a", "area", "form", "link"})
"""Elements whose `rel` is that of the link."""


class LinkAttributes:
    """Pairs of element and attribute, in lower case. False if there are none."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        of: defaultdict[str, list[str]] = defaultdict(list)
        for element, attribute in sorted(set(pairs)):
            of[element].append(attribute)
        self._of_any = of.pop(ANY, [])
        self._of = dict(of)
        self._attributes = sorted({name for names in (self._of_any, *self._of.values()) for name in names})
        self.of_scripts = bool(self._of_any) or not self._of.keys().isdisjoint(("script", "style"))
        """Whether scripts or styles may have one."""

    def __bool__(self) -> bool:
        return bool(self._attributes)

    def may_be_in(self, html: str) -> bool:
        """Return False if the page has none of the attributes: then the pairs can be ignored."""
        lower = html.lower()
        return any(name in lower for name in self._attributes)

    def marked(self, names: Sequence[str], attributes: Sequence[str]) -> list[str]:
        """Return the names of tags, with MARK for each start tag that may have one of its attributes."""
        marked = list(names)
        for at, written in enumerate(attributes):
            name = names[at]
            if written and name[:1] != "/" and (self._of_any or name in self._of) and self.may_be_in(written):
                marked[at] = MARK
        return marked

    def links(self, name: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
        """Yield the links of a tag as written, and whether they must not be followed."""
        nofollow = name in _HAVE_REL and "nofollow" in attributes.get("rel", "").lower().split()
        for attribute in (*self._of.get(name, ()), *self._of_any):
            if attribute in attributes:
                yield attributes[attribute], nofollow


NO_OTHERS = LinkAttributes()
