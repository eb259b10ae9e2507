"""Build an lxml tree of a page, for what needs one: main content, Markdown, the user's own selectors.

The tree is built from the tokens of `markup`, not by the parser of libxml2. That stops at 256 nested elements (2,048 with
`huge_tree`) and loses the rest of the page, and a tree of unlimited depth makes XPath slow. Here elements deeper than `MAX_DEPTH` are
left out and their text is kept, so that whoever walks the tree meets no greater depth. Measured on two shared cores:

    what                                       this module   lxml.html   lxml.html, huge_tree
    1 MB of <div>                              0.33 s        cut off     cut off
    1 MB of <p><b n=1>                         0.89 s        0.35 s      0.33 s
    a page of Sphinx, 57 KB                    10 ms         1 ms        1 ms

Text and its word breaks are those of `html`, and so are the texts that exclusion marks leave out: the same function finds them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import islice

from lxml.etree import SubElement
from lxml.html import HtmlElement, HTMLParser

from crawlspace.content.exclusion_marks import BLOCKS, EXCLUSION_MARKS, marked_texts, marks_in, with_tags
from crawlspace.content.markup import INLINE, RAW_TEXT, VOID, attributes_of, one_spaced, resolved_attribute, resolved_text, tags

MAX_DEPTH = 200
"""Elements that are nested in each other, `html` and `body` included."""
MAX_ATTRIBUTES = 100
"""Attributes of an element."""

_SHOWN, _LEFT_OUT, _DROPPED = 0, 1, 2
"""What is kept of a text and the tag after it: all; the tag, unless it is void; nothing."""
_DROPPED_RAW = RAW_TEXT - {"title", "textarea", "xmp", "plaintext"} | {"!script"}
_NEVER_ELEMENTS = _DROPPED_RAW | {"title", "noscript"}
_IN_HEAD = frozenset({"base", "link", "meta"})
_NO_BREAK = INLINE | {"area", "base", "html", "title", "!", "!script", "noscript", "template", *_DROPPED_RAW}
"""Elements that don't separate words where they are not in the tree."""
_ALSO_VOID = VOID | {"frame", "keygen"}
_SCOPES = frozenset("table td th caption button object applet marquee".split())
"""Elements that no end tag in them ends, except their own and those of the table around."""
_OF_TABLES = frozenset("table caption colgroup thead tbody tfoot tr td th".split())
_LISTS = frozenset("ul ol menu dir".split())
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_ENDS_IN_TABLE = {
    **dict.fromkeys(("td", "th"), ("td", "th", "caption", "colgroup")),
    "tr": ("tr", "td", "th", "caption", "colgroup"),
    **dict.fromkeys(("thead", "tbody", "tfoot"), ("thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup")),
}
"""The open elements of the same table that a start tag ends."""

_MOST_TEXTS = 5
"""Texts in the link of a sign."""

_NAME = re.compile(r"[a-z_][a-z0-9_.:-]*")
_NOT_IN_XML = re.compile("[\0-\x08\x0b\x0e-\x1b\ud800-\udfff\ufffe\uffff]")
_SPACE_NOT_IN_XML = re.compile("[\x0c\x1c-\x1f]")

_SIGNS = frozenset("¶#§†‡^↑↩∞🔗⚓⌘\uf0c1\ue157\ufe0e\ufe0f[]")
"""Characters of the links that lead to a heading itself; Sphinx's themes have some of their own fonts."""

_make = HTMLParser().makeelement


def page_tree(html: str, *, xhtml: bool = False, exclusion_marks: Collection[str] = EXCLUSION_MARKS) -> HtmlElement:
    """Return the `html` element of a page. Never raises, for any page; the time is proportional to its length.

    It has a `head` and a `body`. Scripts, styles, templates that are no shadow roots, `noscript` and frames have no part in it, nor
    have comments and doctypes. Texts that one of the `exclusion_marks` leaves out are missing, with images in them; their elements are
    there, but empty. An element inside `MAX_DEPTH` others is replaced by its content.
    """
    html = html.replace("\0", "")
    marks = marks_in(html, exclusion_marks)
    texts, names, attributes = tags(with_tags(html, marks), xml=xhtml)
    builder = _Builder()
    kept = _kept_texts(names, attributes, marks)
    foreign = 0
    for at, name in enumerate(names):
        if not kept[at]:
            builder.text(texts[at])
        if kept[at + 1] == _DROPPED or (name[:1] == "/" and kept[at] == _DROPPED):
            if name == "title" and not foreign and kept[at] != _DROPPED:
                builder.title(texts[at + 1])
            builder.without_element(name)
        elif name.removeprefix("/") in _NEVER_ELEMENTS:
            builder.without_element(name)  # without an end tag, in XHTML: its text is shown
        elif name in ("svg", "math"):
            foreign += not attributes[at].endswith("/")
            builder.start(name, attributes[at], is_void=attributes[at].endswith("/"))
        elif name[:1] == "/":
            foreign -= foreign > 0 and name in ("/svg", "/math")
            builder.end(name[1:])
        elif name:
            is_void = name in _ALSO_VOID or ((xhtml or foreign > 0) and attributes[at].endswith("/"))
            if is_void and kept[at + 1]:
                builder.without_element(name)
            else:
                builder.start(name, attributes[at], is_void=is_void)
    builder.close()
    return builder.root


def is_sign(link: HtmlElement) -> bool:
    """Return whether a link to a part of the page has no text but a sign, such as ¶: the permalink of a heading."""
    if link.get("href", "")[:1] != "#" or next(link.iter("img", "svg"), None) is not None:
        return False
    texts = list(islice(link.itertext(), _MOST_TEXTS + 1))
    return len(texts) <= _MOST_TEXTS and _SIGNS.issuperset("".join("".join(texts).split()))


def _kept_texts(names: Sequence[str], attributes: Sequence[str], marks: frozenset[str]) -> bytearray:
    """Return what is kept of each text, and one more that is dropped by nothing."""
    kept = bytearray(len(names) + 1)
    for at in marked_texts(names, attributes, marks)[0] if marks else ():
        kept[at] = _LEFT_OUT
    raw_at = None
    shadow_roots: list[bool] = []
    hidden_by_template = hidden_at = 0
    in_noscript = False
    for at, name in enumerate(names):
        was_hidden = hidden_by_template or in_noscript
        if name in _DROPPED_RAW or name == "title":
            raw_at = at
        elif name[:1] == "/" and (name[1:] in _DROPPED_RAW or name == "/title"):
            if raw_at is not None:
                kept[raw_at + 1 : at + 1] = bytes([_DROPPED]) * (at - raw_at)
            raw_at = None
        elif name == "template":
            is_shadow_root = attributes_of(attributes[at]).get("shadowrootmode", "").lower() in ("open", "closed")
            shadow_roots.append(is_shadow_root)
            hidden_by_template += not is_shadow_root
        elif name == "/template":
            if not (shadow_roots and shadow_roots.pop()):
                hidden_by_template = max(hidden_by_template - 1, 0)
        elif name in ("noscript", "/noscript"):
            in_noscript = name == "noscript"
        else:
            continue
        if was_hidden:
            kept[hidden_at + 1 : at + 1] = bytes([_DROPPED]) * (at - hidden_at)
        hidden_at = at
    if hidden_by_template or in_noscript:
        kept[hidden_at + 1 : len(names)] = bytes([_DROPPED]) * (len(names) - hidden_at - 1)
    return kept


class _Builder:
    """The open elements of a page, and the tree so far.

    `_names` has all of them, `_elements` those that are in the tree, each with its last child in `_last`. The positions of those that end
    tags are about are kept by kind, so that no tag searches the open elements.
    """

    def __init__(self) -> None:
        self.root = _make("html")
        self._head = SubElement(self.root, "head")
        self._body = SubElement(self.root, "body")
        self._is_in_head = True
        self._text: list[str] = []
        self._names = ["body"]
        self._ended = [False]
        """Whether an end tag for it came while a block was open in it: an inline element that ends with that block."""
        self._elements = [self._body]
        self._last: list[HtmlElement | None] = [None]
        self._at: defaultdict[str, list[int]] = defaultdict(list)
        self._scopes = [0]
        self._blocks = [0]
        self._lists = [0]

    def text(self, written: str) -> None:
        if not written or (self._is_in_head and not written.strip()):
            return
        self._is_in_head = False
        self._text.append(written)

    def title(self, written: str) -> None:
        """Record the title of the page, if it is the first."""
        title = one_spaced(resolved_text(written))
        if title and not len(self._head.xpath("title")):
            _set_text(SubElement(self._head, "title"), title)

    def without_element(self, name: str) -> None:
        """Separate the words on both sides of a tag that is not in the tree, if it does that."""
        if not self._is_in_head and name.removeprefix("/") not in _NO_BREAK:
            self._text.append(" ")

    def start(self, name: str, written: str, *, is_void: bool) -> None:
        if name in ("html", "head", "body", "!"):
            self._outer(name, written)
            return
        if name == "image":
            name = "img"
        if self._is_in_head and name in _IN_HEAD:
            _element(self._head, name, written)
            return
        self._is_in_head = False
        self._end_implied(name)
        if name in ("td", "th") and self._names[-1] in ("table", "tbody", "thead", "tfoot"):
            self._open("tr", "", is_void=False)
        self._open(name, written, is_void=is_void)

    def end(self, name: str) -> None:
        """End an element and those in it; an end tag that ends nothing only separates words."""
        if name in _HEADINGS:
            name = max(_HEADINGS, key=self._position)
        at = self._position(name)
        if name in INLINE:
            if at > self._blocks[-1]:
                self._close(at)
            elif at > self._scopes[-1]:
                self._ended[at] = True
        elif at > 0 and at >= self._boundary(name):
            self._close(at)
        elif name == "br":
            self.start("br", "", is_void=True)
        else:
            self.without_element(name)

    def close(self) -> None:
        """End the page."""
        self._flush()

    def _outer(self, name: str, written: str) -> None:
        element = {"html": self.root, "body": self._body}.get(name)
        if element is not None:
            for key, value in _attributes(written).items():
                if key not in element.attrib:
                    element.set(key, _in_xml(value))
        self.without_element(name)
        self._is_in_head = self._is_in_head and name != "body"

    def _end_implied(self, name: str) -> None:
        """End the elements that a start tag ends (HTML standard, 13.1.2.4 and 13.2.6.4.7)."""
        scope = self._scopes[-1]
        if name in _ENDS_IN_TABLE:
            table = self._position("table")
            positions = [at for ended in _ENDS_IN_TABLE[name] if (at := self._position(ended)) > max(table, 0)]
            if positions:
                self._close(min(positions))
            return
        if name in BLOCKS or name in ("li", "dt", "dd"):
            if name == "li":
                self._close_if_above("li", max(self._lists[-1], scope))
            elif name in ("dt", "dd"):
                self._close_if_above("dt", max(self._position("dl"), scope))
                self._close_if_above("dd", max(self._position("dl"), scope))
            self._close_if_above("p", scope)
            if name in _HEADINGS and self._names[-1] in _HEADINGS:
                self._close(len(self._names) - 1)
        elif name == "option":
            self._close_if_above("option", scope)
        elif name == "a" and (at := self._position("a")) > scope:
            if at > self._blocks[-1]:
                self._close(at)
            else:
                self._ended[at] = True

    def _close_if_above(self, name: str, boundary: int) -> None:
        if self._position(name) > boundary:
            self._close(self._position(name))

    def _position(self, name: str) -> int:
        """Return the position of the innermost open element of a name; -1 for none."""
        found = self._at.get(name)
        return found[-1] if found else -1

    def _boundary(self, name: str) -> int:
        """Return the position of the innermost element that an end tag cannot end from inside."""
        if name in _OF_TABLES:
            return max(self._position("table"), 0)
        if name in _SCOPES:
            return 0
        return max(self._scopes[-1], self._lists[-1]) if name == "li" else self._scopes[-1]

    def _open(self, name: str, written: str, *, is_void: bool) -> None:
        if len(self._names) + 1 >= MAX_DEPTH and not is_void:
            self.without_element(name)
        else:
            self._flush()
            self._last[-1] = element = _element(
                self._elements[-1], "div" if name == "template" else name, written
            )  # a shadow root
            if not is_void:
                self._elements.append(element)
                self._last.append(None)
        if is_void:
            return
        at = len(self._names)
        self._names.append(name)
        self._ended.append(False)
        self._at[name].append(at)
        for positions in self._kept_of(name):
            positions.append(at)

    def _close(self, at: int) -> None:
        """End the elements from this position on, and those before it that have had their end tag."""
        while len(self._names) > at or (self._ended[-1] and self._names[-1] in INLINE):
            name = self._names.pop()
            self._ended.pop()
            self._at[name].pop()
            for positions in self._kept_of(name):
                positions.pop()
            if len(self._elements) > len(self._names):
                self._flush()
                self._elements.pop()
                self._last.pop()
            else:
                self.without_element(name)

    def _kept_of(self, name: str) -> list[list[int]]:
        """Return the lists that positions of elements of this name are in."""
        found = [] if name in INLINE else [self._blocks]
        if name in _SCOPES:
            found.append(self._scopes)
        if name in _LISTS:
            found.append(self._lists)
        return found

    def _flush(self) -> None:
        """Put the text since the last tag into the tree."""
        text = resolved_text("".join(self._text))
        self._text.clear()
        if text:
            _set_text(self._elements[-1], text, after=self._last[-1])


def _element(parent: HtmlElement, name: str, written: str) -> HtmlElement:
    """Return a new last child of an element."""
    name = name if _NAME.fullmatch(name) else "unknown"
    attributes = _attributes(written) if written else {}
    try:
        return SubElement(parent, name, attributes)
    except ValueError:  # a character that XML does not have
        return SubElement(parent, name, {key: _in_xml(value) for key, value in attributes.items()})


def _attributes(written: str) -> dict[str, str]:
    """Return the attributes of a tag whose names a tree may have."""
    found = ((name, value) for name, value in reversed(attributes_of(written).items()) if _NAME.fullmatch(name))
    return {name: resolved_attribute(value) for name, value in islice(found, MAX_ATTRIBUTES)}


def _set_text(element: HtmlElement, text: str, *, after: HtmlElement | None = None) -> None:
    """Set the text at the beginning of an element, or after its last child."""
    try:
        if after is None:
            element.text = text
        else:
            after.tail = text
    except ValueError:
        _set_text(element, _in_xml(text), after=after)


def _in_xml(text: str) -> str:
    """Return a text without characters that XML does not have."""
    return _NOT_IN_XML.sub("", _SPACE_NOT_IN_XML.sub(" ", text))
