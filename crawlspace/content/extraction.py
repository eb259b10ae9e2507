"""What extraction rules find in a page: fields of its document, and its text.

Pure, and the same for the crawl and for `scrapy extract`, which shows what each rule finds by itself. A page is parsed once, and only if a
rule needs that. Nothing raises, whatever the page; the numbers of nodes, values and characters are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import re2
from lxml import etree
from lxml.html import HtmlElement

from crawlspace.content.boilerplate import Block, leave_out
from crawlspace.content.element_text import NodeBudget, value_of
from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.content.extraction_rules import Extracted, ExtractionRules, FieldRule, PartRule, TextRule
from crawlspace.content.json_ld_paths import JsonLdPaths
from crawlspace.content.main_content import main_elements, text_of
from crawlspace.content.markdown import markdown_of
from crawlspace.content.markup import INLINE, one_spaced
from crawlspace.content.page import MAX_TEXT
from crawlspace.content.parts import MAX_PARTS, element_part, heading_parts
from crawlspace.content.selectors import BadSelector, Node, css_selector, element_selector, xpath_selector
from crawlspace.content.tree import is_sign, page_tree
from crawlspace.content.typed_values import typed
from crawlspace.document import Part, packed

MAX_VALUES = 1_000
"""Values of a field; and nodes of a selector that are looked at for one."""
MAX_VALUE = 10_000
"""Characters of a value."""
MAX_JOINED = 100_000
"""Characters of values that are joined."""
MAX_ALL = 1_000_000
"""Characters of all values of a field."""
MAX_ELEMENTS = 100_000
"""Elements that a selector adds to a text, or leaves out of it."""
_MAX_STEPS = 1_000_000
"""Nodes looked at for the values of one rule."""

Headers = Sequence[tuple[str, str]]
"""Names, in any case, and values."""


class RuleValues(NamedTuple):
    """What one rule finds in a page by itself."""

    value: str
    """That of the field; empty for none."""
    values: tuple[str, ...] = ()
    """Those that `value` is made of, of the field's type."""
    misfits: tuple[str, ...] = ()
    """Values that are not of its type, as they are in the page."""
    number: int = 0
    """How many values there are; MAX_VALUES may stand for more."""

    @property
    def finds(self) -> bool:
        return bool(self.values or self.misfits)


NOTHING = RuleValues("")


def extracted(
    rules: ExtractionRules, page: RuledPage, *, is_main: bool = False, markdown: bool = False, part_chars: int = 0
) -> Extracted:
    """Return what rules find in a page, all of which apply to it. Never raises.

    `is_main`: the text is that of the main content, where no rule decides it. `markdown` and `part_chars`: also the Markdown of what the
    text is taken from, and its sections as parts of so many characters, if no rule finds parts.
    """
    fields: dict[str, str] = {}
    misfits: dict[str, int] = {}
    decided: set[str] = set()
    for rule in rules.fields:
        if rule.name in decided:
            continue
        found = page.values(rule)
        if found.finds:
            decided.add(rule.name)
        if found.value:
            fields[rule.name] = found.value
        if found.misfits:
            misfits[rule.name] = len(found.misfits)
    parts = page.parts(rules.parts)
    is_needed = rules.texts or is_main or page.boilerplate or markdown or part_chars
    text, elements = page.content(rules.texts, is_main=is_main) if is_needed else (None, [])
    return Extracted(
        fields,
        text,
        misfits,
        markdown=page.markdown(elements) if markdown else "",
        parts=heading_parts(elements, most=part_chars) if part_chars and not parts else parts,
    )


class RuledPage:
    """One page, for rules that are applied to it one by one.

    `base` is what URLs in it are relative to (`url`). Exclusion marks hold for its text, and not for fields, which are named one by one.
    """

    def __init__(
        self,
        html: str,
        *,
        url: str,
        base: str = "",
        headers: Headers = (),
        exclusion_marks: Collection[str] = EXCLUSION_MARKS,
        xhtml: bool = False,
        boilerplate: Collection[int] = (),
    ) -> None:
        """`boilerplate` are blocks that are left out of the text."""
        self._xhtml = xhtml
        self._html = html.replace("\0", "") if "\0" in html else html
        self._url = url
        self._base = base or url
        self._headers = headers
        self._marks = exclusion_marks
        self.boilerplate = frozenset(boilerplate)
        self.left_out: list[Block] = []
        """Blocks that `content` has left out."""

    def values(self, rule: FieldRule) -> RuleValues:
        """Return what a rule finds."""
        found = _FINDERS[rule.by](self, rule.expression)
        steps = NodeBudget(_MAX_STEPS)
        values: list[str] = []
        misfits: list[str] = []
        size = 0
        for one in found:
            is_element = not isinstance(one, str)
            text = one if isinstance(one, str) else _text_for(one, rule, steps)
            text = one_spaced(text[: 4 * MAX_VALUE])[:MAX_VALUE]
            if not text and not (is_element and rule.type == "bool"):
                continue
            value = typed(text, rule.type, base=self._base, is_element=is_element, is_exact=rule.by == "jsonld")
            (values if value else misfits).append(value or text)
            size += len(text)
            if rule.take == "first" or size > MAX_ALL:
                break
        return RuleValues(_taken(values, rule), tuple(values), tuple(misfits), len(found))

    def text(self, rule: TextRule) -> str | None:
        """Return the text that a rule takes from the page; None if there is no element of `only`, or nothing is left."""
        only, drop = self._elements(self.tree, rule.only), self._elements(self.tree, rule.drop)
        drop.update(filter(is_sign, self.tree.iter("a")))
        body = self.tree.find("body")
        elements = _outermost(self.tree, only, drop) if rule.only else [body] if body not in drop else []
        return text_of(elements, without=drop)[:MAX_TEXT].rstrip() or None

    def parts(self, rules: Iterable[PartRule]) -> list[Part]:
        """Return the parts that rules find, MAX_PARTS at most; of elements in each other the outermost is one. A key is never given twice."""
        found: list[Part] = []
        keys = dict[str, int]()
        steps = NodeBudget(_MAX_STEPS)
        size = 0
        for rule in rules:
            for element in _outermost(self.tree, self._elements(self.tree, [rule.css]), ()):
                key, title = self._named(element, rule.key, steps), self._named(element, rule.title, steps)
                part = element_part(element, key=key, title=title, keys=keys)
                if part is None:
                    continue
                size += len(part.text)
                if len(found) == MAX_PARTS or size > MAX_TEXT:
                    return found
                found.append(part)
        return found

    @staticmethod
    def _named(element: Node, by: str, steps: NodeBudget) -> str:
        """Return the text of the first element in another one by its CSS, or an attribute of that one, as in `@id`."""
        if not by or by.startswith("@"):
            return one_spaced(element.get(by[1:], ""))[:MAX_VALUE] if by else ""
        first = next(iter(element_selector(by, most=1).elements(element)), None)
        return "" if first is None else value_of(first, most=MAX_VALUE, steps=steps)

    def content(self, rules: Iterable[TextRule], *, is_main: bool) -> tuple[str | None, list[HtmlElement]]:
        """Return the text of a page, and the elements that it is taken from; None where that is the page's own.

        Removes from the tree what is not in the text: it is called last.
        """
        self.left_out = leave_out(self.tree, self.boilerplate)
        for rule in rules:
            if (text := self.text(rule)) is not None:
                only, drop = self._elements(self.tree, rule.only), self._elements(self.tree, rule.drop)
                elements = _outermost(self.tree, only, drop) if rule.only else [self.tree]
                for node in drop:
                    node.clear(keep_tail=True)
                    node.tag = "span" if node.tag in INLINE else "div"
                return text, elements
        if not is_main:
            return text_of([self.tree.find("body")])[:MAX_TEXT] if self.left_out else None, [self.tree]
        elements = main_elements(self.tree)
        return text_of(elements)[:MAX_TEXT], elements

    def markdown(self, elements: Iterable[HtmlElement]) -> str:
        """Return what these elements have, as Markdown."""
        return markdown_of(elements, self._base)[:MAX_TEXT]

    @staticmethod
    def _elements(root: Node, selectors: Iterable[str]) -> set[Node]:
        found: set[Node] = set()
        for css in selectors:
            try:
                found.update(element_selector(css, most=MAX_ELEMENTS).elements(root))
            except BadSelector:  # rules that were read have none
                continue
        return found

    @cached_property
    def tree(self) -> HtmlElement:
        """The tree without what exclusion marks leave out, for texts: all of the page, however deep it is."""
        return page_tree(self._html, xhtml=self._xhtml, exclusion_marks=self._marks)

    @cached_property
    def _root(self) -> Node | None:
        """The root element of the tree of libxml2, for values: it takes a tenth of the time; None where the page has none."""
        parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
        try:
            root: Node | None = etree.fromstring(self._html.encode("utf-8", "replace"), parser)
        except (etree.LxmlError, ValueError):
            return None
        return root

    @cached_property
    def _metas(self) -> Mapping[str, list[str]]:
        """The contents of meta elements, by name and property in lower case."""
        found: dict[str, list[str]] = {}
        for meta in () if self._root is None else self._root.iter("meta"):
            for attribute in ("property", "name", "itemprop"):
                name = meta.get(attribute, "").strip().lower()
                if name and len(contents := found.setdefault(name, [])) < MAX_VALUES:
                    contents.append(meta.get("content", ""))
        return found

    @cached_property
    def _json_ld(self) -> JsonLdPaths:
        return JsonLdPaths(self._html)

    # What a rule finds, by the kind of its source.
    def _by_css(self, css: str) -> Sequence[Node | str]:
        return [] if self._root is None else css_selector(css, most=MAX_VALUES).nodes(self._root)

    def _by_xpath(self, xpath: str) -> Sequence[Node | str]:
        return [] if self._root is None else xpath_selector(xpath, most=MAX_VALUES).nodes(self._root)

    def _by_meta(self, name: str) -> Sequence[Node | str]:
        return self._metas.get(name.lower(), [])

    def _by_json_ld(self, path: str) -> Sequence[Node | str]:
        return self._json_ld.values(path, most=MAX_VALUES)

    def _by_header(self, name: str) -> Sequence[Node | str]:
        return [value for header, value in self._headers if header.lower() == name.lower()][:MAX_VALUES]

    def _by_url(self, pattern: str) -> Sequence[Node | str]:
        found = _url_pattern(pattern).search(self._url)
        return [unquote(found[1])] if found is not None and found[1] else []


_FINDERS: Mapping[str, Callable[[RuledPage, str], Sequence[Node | str]]] = {
    "css": RuledPage._by_css,
    "xpath": RuledPage._by_xpath,
    "meta": RuledPage._by_meta,
    "jsonld": RuledPage._by_json_ld,
    "header": RuledPage._by_header,
    "url": RuledPage._by_url,
}


def _outermost(root: Node, only: Collection[Node], drop: Collection[Node]) -> list[Node]:
    """Return the elements in `only` that are in no other of them, nor in one of `drop`, in the order of the page."""
    found = []
    walker = etree.iterwalk(root, events=("start",))
    for _, node in walker:
        if node in only and node not in drop:
            found.append(node)
        if node in only or node in drop:
            walker.skip_subtree()
    return found


def url_options() -> re2.Options:
    """Return the options of regular expressions for URLs: errors are raised and not logged."""
    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(2_000)
def _url_pattern(pattern: str) -> re2._Regexp:
    return re2.compile(pattern, url_options())


def _text_for(node: Node, rule: FieldRule, steps: NodeBudget) -> str:
    """Return the text of an element, or of the attribute that says better what this type needs."""
    if not isinstance(node.tag, str):
        return ""
    names = ("content",) if node.tag == "meta" else _SAID_BY.get(rule.type, ())
    for name in names:
        if value := node.get(name):
            return str(value)
    return value_of(node, most=MAX_VALUE, steps=steps)


_SAID_BY = {"url": ("href", "src"), "date": ("datetime",)}


def _taken(values: Sequence[str], rule: FieldRule) -> str:
    if not values:
        return ""
    if rule.take == "all":
        return packed(list(dict.fromkeys(values)))
    return " ".join(values)[:MAX_JOINED] if rule.take == "joined" else values[0]
