"""CSS selectors and XPath expressions of users, checked when they are read, and bounded when they are applied.

What libxml2 reports only when it comes to such a place in a page is reported at once: unknown functions, variables and prefixes. The
functions of EXSLT that Scrapy has (`re:test` …) are not among those that are known: they run Python's regular expressions, which a page
can keep busy for hours.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from cssselect import SelectorError
from lxml import etree
from parsel.csstranslator import HTMLTranslator

from crawlspace.errors import did_you_mean
from crawlspace.text import quoted

MAX_LENGTH = 5_000
"""Characters of a selector."""

Node: TypeAlias = etree._Element
"""An element, a comment or a processing instruction."""


class BadSelector(ValueError):
    """The message says what is wrong, in one line."""


class NodeSelector:
    """A compiled selector. It returns the first `most` nodes in the order of the page: libxml2 counts, and no others become objects."""

    __slots__ = ("_find",)

    def __init__(self, xpath: str, *, most: int) -> None:
        """Raises BadSelector."""
        _check(xpath)
        try:
            self._find = etree.XPath(xpath, smart_strings=False)
            self._find(_PROBE)
        except etree.XPathError as error:
            raise BadSelector(_one_line(error)) from error
        try:
            bounded = etree.XPath(f"({xpath})[position() <= {most}]", smart_strings=False)
            bounded(_PROBE)
        except etree.XPathError:  # the expression is a text, a number or a truth value
            return
        self._find = bounded

    def nodes(self, root: Node) -> list[Node | str]:
        """Return the nodes; attributes, texts and computed values are text. Empty where libxml2 refuses the page."""
        try:
            found = self._find(root)
        except (etree.LxmlError, ValueError):
            return []
        if isinstance(found, list):
            return found
        if isinstance(found, float):
            return [f"{found:.0f}" if found.is_integer() else repr(found)]
        return [str(found).lower() if isinstance(found, bool) else found]

    def elements(self, root: Node) -> list[Node]:
        """Return the nodes that are elements."""
        return [node for node in self.nodes(root) if not isinstance(node, str) and isinstance(node.tag, str)]


_PROBE = etree.fromstring("<html/>", etree.HTMLParser())


@lru_cache(2_000)
def css_selector(css: str, *, most: int) -> NodeSelector:
    """Return a compiled CSS selector, which may end in `::text` or `::attr(name)`. Raises BadSelector."""
    _check_length(css)
    try:
        xpath = HTMLTranslator().css_to_xpath(css)
    except (SelectorError, RecursionError) as error:
        raise BadSelector(_one_line(error)) from error
    return NodeSelector(xpath, most=most)


@lru_cache(2_000)
def element_selector(css: str, *, most: int) -> NodeSelector:
    """Return a compiled CSS selector of elements. Raises BadSelector for one of texts or attributes, too."""
    if found := _PSEUDO_ELEMENT.search(css):
        raise BadSelector(f"{quoted(found[0])} is no element, and an element is needed here; leave it out")
    return css_selector(css, most=most)


@lru_cache(2_000)
def xpath_selector(xpath: str, *, most: int) -> NodeSelector:
    """Return a compiled XPath expression. Raises BadSelector."""
    _check_length(xpath)
    return NodeSelector(xpath, most=most)


_PSEUDO_ELEMENT = re.compile(r"::(?:text|attr)\b")
_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
_FUNCTION = re.compile(r"(?<![\w:.-])([A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?)\s*\(")
_PREFIX = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]*):(?!:)")
_VARIABLE = re.compile(r"\$\s*[\w.:-]+")
_FUNCTIONS = frozenset(
    "boolean ceiling concat contains count false floor has-class id lang last local-name name namespace-uri normalize-space not number"
    " position round starts-with string string-length substring substring-after substring-before sum translate true"
    " comment node processing-instruction text and or div mod".split()
)
"""Those of XPath 1.0, `has-class` of parsel, tests of nodes, and operators, which may stand before a bracket, too."""


def _check_length(selector: str) -> None:
    if len(selector) > MAX_LENGTH:
        raise BadSelector(f"it has {len(selector):,} characters, and {MAX_LENGTH:,} is the most")


def _check(xpath: str) -> None:
    """Raise BadSelector for functions, variables and prefixes that no page can make valid."""
    bare = _LITERAL.sub("''", xpath)
    for found in _FUNCTION.finditer(bare):
        name = found[1]
        if name.startswith(("re:", "set:", "str:", "math:", "date:")):
            raise BadSelector(
                f"{name}() is not there: it would run expressions that a page can keep busy; use contains() or starts-with()"
            )
        if name not in _FUNCTIONS:
            raise BadSelector(f"there is no function {name}(): {did_you_mean(name, _FUNCTIONS, 'those of XPath 1.0 are there')}")
    if found_prefix := _PREFIX.search(bare):
        raise BadSelector(
            f"the prefix {quoted(found_prefix[1])} is not known; write *[local-name() = 'name'] for such an element"
        )
    if found_variable := _VARIABLE.search(bare):
        raise BadSelector(f"there are no variables, and {quoted(found_variable[0])} is one; write the value itself")


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return " ".join(str(error).split()) or "it cannot be read"
