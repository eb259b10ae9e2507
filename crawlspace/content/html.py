"""Extract links, robots directives, canonical, language and text from a page in one pass over its tags.

Choices that the standards leave open:

* A URL that is linked twice is one link, at its first position; it is nofollow only if every link to it is.
* Links in `template` are ignored (they are not part of the page), unless it is a declarative shadow root, which browsers show.
  Links in `noscript` count, because a crawler runs no scripts. Its text is ignored: mostly it only asks to enable scripts.
* Inline elements (`b`, `span` …) do not separate words; all others do, unknown ones too. So `th<b>re</b>e` is `three`, and
  neighbouring `<td>`, `<br>` and `<my-card>` separate words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import repeat
from urllib.parse import unquote

from crawlspace.content.charset import decode
from crawlspace.content.exclusion_marks import EXCLUSION_MARKS, marked_texts, marks_in, with_tags
from crawlspace.content.links import MARK, NO_OTHERS, LinkAttributes, is_feed, is_link, page_target, parse_refresh, target
from crawlspace.content.markup import INLINE, attributes_of, collapsed, one_spaced, resolved_attribute, resolved_text, tags
from crawlspace.content.metadata import MAX_METAS, NO_META_FIELDS, MetaFields, absolute, meta_names, page_fields
from crawlspace.content.page import MAX_TEXT, Page
from crawlspace.content.robots_directives import NO_LIMITS, parse_robots
from crawlspace.document import NO_SNIPPET, packed
from crawlspace.urls import MalformedUrl, is_route, join

LINK_TAGS = frozenset({"a", "area", "frame", "iframe", "link", "meta"})
"""Elements whose links are extracted by default; `meta` stands for its refresh."""

MAX_TITLE = 1_000
MAX_DESCRIPTION = 5_000
MAX_HEADINGS = 1_000
MAX_HEADING = 300
MAX_ALTERNATES = 200
MAX_FEEDS = 20
"""Languages in which a page names itself."""

_NOT_SHOWN = (
    "area base html title /title script /script style /style noembed /noembed noframes /noframes /iframe template /template noscript"
    " /noscript ! !script"
)
_ALONG = frozenset(["", *_NOT_SHOWN.split(), *INLINE, *(f"/{name}" for name in INLINE)])
"""Tags that don't separate words."""

_SPACE = r"\t\n\f\r "
_USUAL = rf"""[{_SPACE}]++(?!href=|rel=)[a-z-]++="[^"\0]*+\""""
_USUAL_HREFS = re.compile(
    rf"""\0(?:(?:{_USUAL})*+[{_SPACE}]++href="((?:https?:)?[!#-9;-~]++)"(?=\0|(?:{_USUAL})*+[{_SPACE}]*+(?=\0|\Z)))?"""
)
"""The `href` of each anchor with attributes as in most pages, joined by NULs: a page's URL or a `#…` reference, nothing to strip,
no `rel`; empty for any other anchor."""

_SHELL_TEXT = 25
"""Characters of a script shell: it may have "Loading, please wait …", and an ordinary short page has a sentence."""
_SHELL_LINKS = 1
"""Links of a script shell: it may have the frame of a tag manager, or a link for browsers without scripts."""
_LINKED = frozenset({"a", "area", "frame", "iframe"})
_HAS_CONTENT = frozenset({"form", "frame"})

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")


def extract(
    body: bytes,
    *,
    url: str,
    charset: str | None = None,
    max_links: int = 10_000,
    max_text: int = MAX_TEXT,
    link_tags: Collection[str] = LINK_TAGS,
    link_attributes: LinkAttributes = NO_OTHERS,
    agent_names: Collection[str] = (),
    exclusion_marks: Collection[str] = EXCLUSION_MARKS,
    meta_fields: MetaFields = NO_META_FIELDS,
    xhtml: bool = False,
) -> Page:
    """Return the contents of a page. Never raises, for any body; the time is proportional to its length.

    `charset` is that of the Content-Type header. `max_links` limits different links, `max_text` characters; the rest is
    counted. `link_attributes` have links besides those of `link_tags`. `agent_names` are names of meta elements to obey besides `robots`.
    `exclusion_marks` are those that count; `meta_fields` has the names of meta elements that fields of the document are taken from.
    `xhtml` is for application/xhtml+xml.
    """
    html, codec = decode(body, charset, markup=True)
    if "\0" in html:
        html = html.replace("\0", "")
    others = link_attributes if link_attributes and link_attributes.may_be_in(html) else NO_OTHERS
    marks = marks_in(html, exclusion_marks)
    texts, names, attributes = tags(with_tags(html, marks), xml=xhtml, of_scripts=others.of_scripts)
    reader = _Reader(
        texts,
        names,
        attributes,
        codec=codec,
        link_tags=link_tags,
        others=others,
        agent_names=agent_names,
        metas=meta_names(meta_fields),
    )
    if marks:
        reader.apply(marks)
    reader.read(others.marked(names, attributes) if others else names)
    base = _base(url, reader.base)
    fields = page_fields(reader.metas, html, base=base, own=meta_fields)
    fields |= reader.further_fields(base)
    whole = collapsed(resolved_text("".join(reader.parts)))
    return Page(
        base=base,
        title=reader.title or (reader.headings[0] if reader.headings else reader.og_title[:MAX_TITLE]),
        description=(reader.description or reader.og_description)[:MAX_DESCRIPTION],
        language=reader.language or reader.pragma_language,
        headings=tuple(reader.headings),
        text=whole[:max_text],
        hrefs=tuple(reader.links)[:max_links],
        tags=tuple(reader.links.values())[:max_links],
        nofollow=frozenset(reader.nofollow),
        canonical=reader.canonical,
        robots=reader.robots,
        meta_refresh=reader.refresh,
        charset=codec,
        feeds=tuple(href for href in dict.fromkeys(reader.feeds) if href),
        links_left_out=max(0, len(reader.links) - max_links),
        text_left_out=max(0, len(whole) - max_text),
        modified=fields.pop("modified", ""),
        fields=fields,
        may_need_browser=_is_script_shell(names, text=whole, links=reader.links, refreshes=reader.refresh is not None),
    )


_IN_TEMPLATE, _IN_NOSCRIPT = 1, 2
_BEGIN_WITH_HEADING = frozenset({"a", "article", "div", "header", "hgroup", "section", "span"})
"""Elements whose id may be that of the heading that they begin with."""


class _Reader:
    """The state of extraction, with a method for each tag that has a meaning.

    `parts` has the texts and, after each, the separator of its tag: empty or a line end. Ignored text is replaced by "".
    """

    def __init__(
        self,
        texts: list[str],
        names: list[str],
        attributes: list[str],
        *,
        codec: str,
        link_tags: Collection[str],
        others: LinkAttributes,
        agent_names: Collection[str],
        metas: Collection[str],
    ) -> None:
        self.parts = [""] * (2 * len(texts))
        self.parts[0::2] = texts
        self.parts[1::2] = ["" if name in _ALONG else "\n" for name in names]
        self.links: dict[str, str] = {}
        self.nofollow: set[str] = set()
        self.headings: list[str] = []
        self.anchors: list[str] = []
        """Fragments of the URLs that lead to the headings; empty for one without."""
        self.alternates: dict[str, str] = {}
        self.feeds: list[str] = []
        """URLs of the page in other languages, as written, by language."""
        self.title: str | None = None
        self.description = self.og_description = self.og_title = self.language = self.pragma_language = ""
        self.metas: dict[str, list[str]] = {}
        """Contents of the meta elements that fields are taken from, by their name or property."""
        self.base: str | None = None
        self.canonical: str | None = None
        self.robots = NO_LIMITS
        self.refresh: tuple[float, str] | None = None
        self._hidden = 0
        self._hidden_at = 0
        self._names = names
        self._attributes = attributes
        self._no_snippet: list[int] = []
        """The texts that no snippet may show."""
        self._metas = metas
        self._codec = codec
        self._link_tags = link_tags
        self._others = others
        self._robots_names = {"robots", *(name.lower() for name in agent_names)}
        self._templates = 0
        self._shadow_roots: list[bool] = []
        """For each open template, whether it is a shadow root."""
        self._svg = 0
        self._raw_at: int | None = None
        self._heading_at: int | None = None

    def apply(self, marks: frozenset[str]) -> None:
        """Leave out the texts that a mark excludes, and note those that no snippet may show. To be called before `read`."""
        left_out, self._no_snippet = marked_texts(self._names, self._attributes, marks)
        for at in left_out:
            if 2 * at < len(self.parts) and not (at and self._names[at - 1] == "title"):
                self.parts[2 * at] = ""

    def read(self, names: list[str]) -> None:
        """Process all tags. Most are links of the usual form: one pattern finds the `href` of all of them."""
        links, nofollow, attributes = self.links, self.nofollow, self._attributes
        positions = [at for at, name in enumerate(names) if name in _HANDLERS]
        anchors = [attributes[at] for at in positions if names[at] == "a"]
        usual_hrefs = iter(_USUAL_HREFS.findall("\0".join(["", *anchors])) if "a" in self._link_tags else repeat(""))
        for at in positions:
            name = names[at]
            if name == "a" and (href := next(usual_hrefs)):
                if "&" in href:
                    self._link(href, "a")
                elif not self._templates and (href[0] != "#" or is_route(href)):
                    links.setdefault(href, "a")
                    if nofollow:
                        nofollow.discard(href)
            else:
                _HANDLERS[name](self, attributes[at], at)
        self.heading_end("", len(names) - 1)
        if self._hidden:
            self._hide_until(len(names) - 1)

    # links
    def anchor(self, written: str, _: int, tag: str = "a") -> None:
        if tag in self._link_tags and not self._templates:
            attributes = attributes_of(written)
            href = attributes.get("href")
            if href is None:
                href = attributes.get("xlink:href", "") if self._svg else ""
            self._link(href, tag, nofollow="nofollow" in attributes.get("rel", "").lower().split())

    def area(self, written: str, at: int) -> None:
        self.anchor(written, at, "area")

    def frame(self, written: str, _: int, tag: str = "frame") -> None:
        if tag not in self._link_tags:
            return
        attributes = attributes_of(written)
        for name in ("src", "href"):
            self._link(attributes.get(name, ""), tag)

    def inner_frame(self, written: str, at: int) -> None:
        self.frame(written, at, "iframe")
        self.raw_start(written, at)

    def link_element(self, written: str, _: int) -> None:
        attributes = attributes_of(written)
        rel = attributes.get("rel", "").lower().split()
        kind, href = attributes.get("type", ""), attributes.get("href", "")
        if self._templates or not is_link(rel, kind):
            if not self._templates and is_feed(rel, kind) and "link" in self._link_tags and len(self.feeds) < MAX_FEEDS:
                self.feeds.append(page_target(href, self._codec))
            return
        if "canonical" in rel and self.canonical is None:
            self.canonical = target(href, self._codec) or None
        if "alternate" in rel and "hreflang" in attributes and len(self.alternates) < MAX_ALTERNATES:
            language = attributes["hreflang"].strip().lower()
            language = language if language == "x-default" else _language(language)
            if language:
                self.alternates.setdefault(language, target(href, self._codec))
        if "link" in self._link_tags:
            self._link(href, "link", nofollow="nofollow" in rel)

    def _link(self, written: str, tag: str, *, nofollow: bool = False) -> None:
        href = page_target(written, self._codec)
        if not href or self._templates:
            return
        if href not in self.links:
            self.links[href] = tag
            if nofollow:
                self.nofollow.add(href)
        elif not nofollow:
            self.nofollow.discard(href)

    def other_links(self, written: str, at: int) -> None:
        name = self._names[at]
        for href, nofollow in self._others.links(name, attributes_of(written)):
            self._link(href, name, nofollow=nofollow)
        if name in _HANDLERS:
            _HANDLERS[name](self, written, at)

    # metadata
    def html(self, written: str, _: int) -> None:
        attributes = attributes_of(written)
        self.language = self.language or _language(attributes.get("lang") or attributes.get("xml:lang") or "")

    def base_element(self, written: str, _: int) -> None:
        href = attributes_of(written).get("href")
        if self.base is None and href is not None and not self._templates:
            self.base = target(href, self._codec)

    def meta(self, written: str, _: int) -> None:
        if self._templates:
            return
        attributes = attributes_of(written)
        content = resolved_attribute(attributes.get("content", ""))
        name = attributes.get("name", "").strip().lower()
        kind = (attributes.get("property") or name or attributes.get("itemprop", "")).strip().lower()
        if kind in self._metas and content.strip() and len(values := self.metas.setdefault(kind, [])) < MAX_METAS:
            values.append(content)
        if name == "description":
            self.description = self.description or one_spaced(content)
        elif name in self._robots_names:
            self.robots &= parse_robots(content)
        elif kind == "og:description":
            self.og_description = self.og_description or one_spaced(content)
        elif kind == "og:title":
            self.og_title = self.og_title or one_spaced(content)
        pragma = attributes.get("http-equiv")
        if pragma is None:
            return
        pragma = pragma.strip().lower()
        if pragma == "refresh" and self.refresh is None:
            self.refresh = parse_refresh(content, self._codec)
            if self.refresh is not None and "meta" in self._link_tags:
                self._link(self.refresh[1].replace("&", "&amp;"), "meta")
        elif pragma == "content-language" and "," not in content:
            self.pragma_language = self.pragma_language or _language(content)

    # text
    def raw_start(self, _: str, at: int) -> None:
        self._raw_at = at

    def raw_end(self, _: str, at: int) -> None:
        if self._raw_at is not None:
            first, end = 2 * self._raw_at + 2, 2 * at + 1
            self.parts[first:end] = [""] * (end - first)
            self._raw_at = None

    def title_end(self, _: str, at: int) -> None:
        if self._raw_at is not None and not self._hidden and not self._svg and self.title is None:
            self.title = self._text_between(self._raw_at, at)[:MAX_TITLE]
        self.raw_end("", at)

    def heading_start(self, _: str, at: int) -> None:
        if self._heading_at is not None:
            self.heading_end("", at)
        self._heading_at = at

    def heading_end(self, _: str, at: int) -> None:
        """End the open heading, if any; headings do not nest."""
        if self._heading_at is not None:
            if self._hidden:
                self._hide_until(at)
            self._drop_permalinks(self._heading_at, at)
            heading = self._text_between(self._heading_at, at)[:MAX_HEADING]
            if heading and len(self.headings) < MAX_HEADINGS:
                self.headings.append(heading)
                self.anchors.append(self._anchor_of(self._heading_at, at))
            self._heading_at = None

    def _drop_permalinks(self, start: int, end: int) -> None:
        """Remove the signs of links to a heading itself, such as ¶."""
        for at in range(start + 1, end):
            is_short_link = self._names[at] == "a" and self._names[at + 1] == "/a"
            if is_short_link and attributes_of(self._attributes[at]).get("href", "")[:1] == "#":
                is_sign = not any(map(str.isalnum, self._text_between(at, at + 1)))
                self.parts[2 * at + 2] = "" if is_sign else self.parts[2 * at + 2]

    def _anchor_of(self, start: int, end: int) -> str:
        """Return the fragment that leads to a heading: an id of it, in it or of what begins with it, else that of a link in it to itself."""
        own = attributes_of(self._attributes[start]).get("id", "")
        if own:
            return resolved_attribute(own)
        inside = [attributes_of(written) for written in self._attributes[start + 1 : end] if written]
        above = self._attributes_before(start)
        for attributes in (*inside, *above):
            if found := attributes.get("id") or attributes.get("name"):
                return resolved_attribute(found)
        hrefs = (attributes.get("href", "") for attributes in inside)
        return next((resolved_attribute(unquote(href[1:])) for href in hrefs if len(href) > 1 and href[0] == "#"), "")

    def _attributes_before(self, at: int) -> Iterator[dict[str, str]]:
        """Yield the attributes of the start tags just before a tag, without text between, the nearest first."""
        while at and not self.parts[2 * at].strip():
            at -= 1
            if self._names[at] in _BEGIN_WITH_HEADING:
                yield attributes_of(self._attributes[at])
            elif self._names[at] not in _ALONG:
                return

    def template_start(self, written: str, at: int) -> None:
        is_shadow_root = attributes_of(written).get("shadowrootmode", "").lower() in ("open", "closed")
        self._shadow_roots.append(is_shadow_root)
        if is_shadow_root:
            self.parts[2 * at + 1] = "\n"
        else:
            self._templates += 1
            self._hide(_IN_TEMPLATE, at)

    def template_end(self, _: str, at: int) -> None:
        if self._shadow_roots and self._shadow_roots.pop():
            self.parts[2 * at + 1] = "\n"
        else:
            self._templates = max(self._templates - 1, 0)
            if not self._templates:
                self._show(_IN_TEMPLATE, at)

    def noscript_start(self, _: str, at: int) -> None:
        self._hide(_IN_NOSCRIPT, at)

    def noscript_end(self, _: str, at: int) -> None:
        self._show(_IN_NOSCRIPT, at)

    def svg_start(self, written: str, _: int) -> None:
        self._svg += not written.endswith("/")

    def svg_end(self, _: str, at: int) -> None:
        self._svg = max(self._svg - 1, 0)

    def further_fields(self, base: str) -> dict[str, str]:
        """Return further fields of the document, several values packed: anchors of headings, alternates, and what no snippet may show."""
        fields = {}
        if any(self.anchors):
            fields["anchors"] = packed(self.anchors)
        if alternates := [f"{language} {url}" for language, href in self.alternates.items() if (url := absolute(base, href))]:
            fields["alternates"] = packed(alternates)
        if self._no_snippet and (hidden := self._texts_without_snippet()):
            fields[NO_SNIPPET] = packed(hidden)
        return fields

    def _texts_without_snippet(self) -> list[str]:
        """Return the texts that no snippet may show; neighbouring ones are one."""
        found: list[list[str]] = []
        last = -2
        for at in self._no_snippet:
            if at != last + 1:
                found.append([])
            found[-1] += self.parts[2 * at : 2 * at + 2]
            last = at
        return [text for text in map(collapsed, map(resolved_text, map("".join, found))) if text]

    def _hide(self, why: int, at: int) -> None:
        if not self._hidden:
            self._hidden_at = at
        self._hidden |= why

    def _show(self, why: int, at: int) -> None:
        if self._hidden:
            self._hide_until(at)
        self._hidden &= ~why

    def _hide_until(self, at: int) -> None:
        """Remove the text since the hidden part began; the tags in it still separate words."""
        self.parts[2 * self._hidden_at + 2 : 2 * at + 1 : 2] = [""] * (at - self._hidden_at)
        self._hidden_at = at

    def _text_between(self, start: int, end: int) -> str:
        return one_spaced(resolved_text("".join(self.parts[2 * start + 2 : 2 * end + 1])))


_HANDLERS: dict[str, Callable[[_Reader, str, int], None]] = {
    "html": _Reader.html,
    "base": _Reader.base_element,
    "meta": _Reader.meta,
    "link": _Reader.link_element,
    "a": _Reader.anchor,
    "area": _Reader.area,
    "frame": _Reader.frame,
    "iframe": _Reader.inner_frame,
    "title": _Reader.raw_start,
    "/title": _Reader.title_end,
    **dict.fromkeys(("script", "style", "noembed", "noframes"), _Reader.raw_start),
    **dict.fromkeys(("/script", "/style", "/noembed", "/noframes", "/iframe"), _Reader.raw_end),
    "template": _Reader.template_start,
    "/template": _Reader.template_end,
    "noscript": _Reader.noscript_start,
    "/noscript": _Reader.noscript_end,
    "svg": _Reader.svg_start,
    "/svg": _Reader.svg_end,
    MARK: _Reader.other_links,
    **dict.fromkeys(("h1", "h2", "h3"), _Reader.heading_start),
    **dict.fromkeys(("/h1", "/h2", "/h3", "/h4", "/h5", "/h6"), _Reader.heading_end),
}
"""The method for each tag; its arguments are the attributes as written and the index of the tag."""


def _language(written: str) -> str:
    """Return a language tag in its usual spelling (RFC 5646, 2.1.1); empty if invalid."""
    match = _LANGUAGE.fullmatch(written.strip().replace("_", "-"))
    if match is None:
        return ""
    first, *others = match[0].lower().split("-")
    return "-".join([first, *(sub.upper() if len(sub) == 2 else sub.title() if len(sub) == 4 else sub for sub in others)])


def _base(url: str, href: str | None) -> str:
    """Return the base URL of a page: its own, unless a base element names another http or https URL."""
    if href:
        try:
            base = join(url, href)
        except MalformedUrl:
            return url
        if base.startswith(("http:", "https:")):
            return base
    return url


def _is_script_shell(names: Collection[str], *, text: str, links: Mapping[str, str], refreshes: bool) -> bool:
    """Return whether a page has scripts, and next to no text and links, so that it may show nothing without a browser.

    `names` are those of all its tags, `links` has the tag of each link; `refreshes`: it has a refresh to another page. Links to routes
    behind # of the page itself are part of its program.
    """
    if len(text) > _SHELL_TEXT or refreshes or "/script" not in names:
        return False
    number = sum(tag in _LINKED and href[0] != "#" for href, tag in links.items())
    return number <= _SHELL_LINKS and _HAS_CONTENT.isdisjoint(names)
