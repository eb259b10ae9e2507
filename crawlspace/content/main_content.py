"""Find the main content of a page: without navigation, header, footer and cookie boxes.

The page's own elements decide, or those of a generator that is older than these. Only where a page has none does trafilatura, an
extra, and only about where the content is: the smallest element with nearly all of the text that it finds is taken, because its own
result has lost part of the tables and code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from lxml.etree import iterwalk, tostring
from lxml.html import HtmlElement

from crawlspace.content.markup import INLINE, collapsed
from crawlspace.content.page import has_trafilatura
from crawlspace.content.tree import is_sign

LEAST_SHARE = 0.05
"""Share of a page's words that its main content has at least."""
_LEAST_SHARE_OF_PARTS = 1 / 3
"""The same for articles and elements found by name: smaller ones are teasers, or boxes beside the content."""
_FOUND_SHARE = 0.9
"""Share of trafilatura's words that an element has which is taken for the content."""
_MOST_WORDS_OF_A_BOX = 300
_MOST_WORDS_OF_A_LINK = 4
"""Words of a link that leads past the navigation, and of the title of a table of contents."""
_LEAST_LINKS_OF_A_TOC = 3
_SHARE_OF_LINKS_IN_MENUS = 0.8
_SHARE_OF_LINKS_IN_TEXTS = 0.1
_SHARE_OF_LINKS = 0.4
"""Share of words in links, from which on a part of a page is taken for links to other pages."""

_NAVIGATION_ROLES = frozenset("navigation banner contentinfo search complementary menu menubar dialog alertdialog".split())
_COOKIE_BOX = re.compile(
    r"(?:cookies?|consent|gdpr)[-_]?(?:banner|bar|box|dialog|hint|info|law|message|modal|notice|notification|overlay|popup)"
    r"|onetrust-consent-sdk|cybotcookiebotdialog|usercentrics-root|didomi-host|iubenda-cs-banner|cc-window",
    re.IGNORECASE,
)
_NAVIGATION_NAMES = frozenset(
    "breadcrumb breadcrumbs navbar sidebar pagination pager skip-link skip-nav skip-to-content skiplink prev-next toctree-l0".split()
)
"""Ids and classes of navigation."""
_GENERATOR_NAMES = frozenset(
    # Sphinx, MkDocs, Doxygen
    "sphinxsidebar related rst-footer-buttons rst-versions navpath nav-path tabs tabs2 tabs3 side-nav #top nav"
    # DocBook, GTK-Doc, Texinfo, LaTeX2HTML
    " navheader navfooter navigation nav-panel node-navigation"
    # Javadoc, Haddock, Qt, Apache, AsciiDoc
    " topnav bottomnav subnav fixednav package-header toplang bottomlang #path footer footer-text menu-bar menu nosearch".split()
)
"""Ids and classes of navigation and footers, on pages without elements for their content."""
_HEADER_NAMES = frozenset({"header", "page-header"})
"""Ids and classes of what is navigation, unless it has a title."""
_CONTENT_NAMES: tuple[Collection[str], ...] = (
    {"document-body", "rst-content", "md-content"},  # Sphinx and MkDocs
    {"body"},  # Sphinx
    {"contentcontainer"},  # Javadoc up to 12
    {"refentry", "chapter", "sect1", "book", "part", "appendix", "preface", "reference"},  # DocBook, GTK-Doc
    {"contents"},  # Doxygen
    {"page-content", "main-content", "mw-content-text", "bodycontent"},
    {"content", "main", "section", "article"},
)
"""Ids and classes of `div` elements with the content; the first kind that a page has counts."""
_TITLE_NAMES = frozenset({"title", "headertitle"})
_TOC_NAMES = frozenset("toc contents table-of-contents quickview local-toc page-toc index".split())
_TOC_TITLES = frozenset(
    {"contents", "table of contents", "on this page", "index", "inhalt", "inhaltsverzeichnis", "sommaire", "目次", "目录"}
)
_WORD = re.compile(r"\w+")
_LISTS = frozenset({"ul", "ol", "dl"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def main_elements(root: HtmlElement) -> list[HtmlElement]:
    """Return the elements with the main content of a page, in their order, and remove navigation from them.

    In this order: `main` and role `main`; `article`, if these are not only teasers; the element that a known generator makes for the
    content; what trafilatura finds, if it is installed and leaves little but links out of the body without navigation, header and footer;
    that body. One that has fewer than 5 % of the page's words is none, so that no page is empty because of this. `root` is that of `page_tree`.
    """
    body = root.find("body")
    page = _CountedPage(body)
    mains = page.outermost([body], lambda node: node.tag == "main" or _role(node) == "main")
    if page.take(mains, LEAST_SHARE, is_navigation=page.is_navigation):
        return mains
    articles = page.outermost(
        [body],
        lambda node: node.tag == "article" or _role(node) == "article",
        without=page.is_outside_content,
    )
    if page.take(articles, _LEAST_SHARE_OF_PARTS, is_navigation=page.is_navigation):
        return articles
    for names in _CONTENT_NAMES:
        elements = page.named(names)
        title = page.title_outside(elements)
        if page.take(elements, _LEAST_SHARE_OF_PARTS, is_navigation=page.is_outside_content):
            return [*title, *elements]
    is_known = page.take([body], LEAST_SHARE, is_navigation=page.is_outside_content)
    if not has_trafilatura():
        return [body]
    rest = _CountedPage(body)
    if is_known and not rest.has_many_links:
        return [body]
    found = _found_by_trafilatura(root, body)
    if found is None or found is body or page.share([found]) < LEAST_SHARE:
        return [body]
    return [body] if is_known and not rest.is_mostly_links(besides=found) else [*rest.title_outside([found]), found]


def text_of(elements: Iterable[HtmlElement], *, without: Collection[HtmlElement] = ()) -> str:
    """Return the text of elements, `without` some in them; words are separated by single spaces, and as in `html`."""
    return collapsed("".join(part for element in elements for part in _parts(element, without)))


def _parts(element: HtmlElement, without: Collection[HtmlElement]) -> Iterator[str]:
    walker = iterwalk(element, events=("start", "end"))
    for event, node in walker:
        separator = "" if node.tag in INLINE else "\n"
        if event == "start":
            yield separator
            if node in without:
                walker.skip_subtree()
            else:
                yield node.text or ""
        else:
            yield separator
            yield (node.tail or "") if node is not element else ""


class _Count(NamedTuple):
    """What an element has, with all that is in it."""

    words: int
    linked: int
    """Words in links."""
    links_here: int
    """Links to parts of the page itself."""
    links_elsewhere: int


class _CountedPage:
    """The elements of a page with what is in each. They are counted once, so that looking at each takes no more time than its length."""

    def __init__(self, body: HtmlElement) -> None:
        self._body = body
        self._counts: dict[HtmlElement, _Count] = {}
        self._with_heading: set[HtmlElement] = set()
        """The elements that have a heading of the first rank, or a title, in them."""
        self._headings = 0
        self._count()

    def _count(self) -> None:
        open_counts = [[0, 0, 0, 0]]
        for event, node in iterwalk(self._body, events=("start", "end")):
            if event == "start":
                words = len(node.text.split()) if node.text else 0
                href = node.get("href", "") if node.tag == "a" else ""
                open_counts.append([words, 0, int(href[:1] == "#"), int(href[:1] not in ("", "#"))])
                continue
            counts = open_counts.pop()
            if node.tag == "a" and node.get("href"):
                counts[1] = counts[0]
            self._counts[node] = _Count(*counts)
            above = open_counts[-1]
            for at, count in enumerate(counts):
                above[at] += count
            above[0] += len(node.tail.split()) if node.tail and node is not self._body else 0
            if node.tag == "h1" or node in self._with_heading or _TITLE_NAMES & _names(node):
                self._headings += node.tag == "h1"
                parent = node.getparent()
                if parent is not None and node is not self._body:
                    self._with_heading.add(parent)

    def share(self, elements: Iterable[HtmlElement], left_out: Iterable[HtmlElement] = ()) -> float:
        """Return the share of the page's words that elements have, without those in them that are left out."""
        words = sum(self._counts[node].words for node in elements) - sum(self._counts[node].words for node in left_out)
        return words / max(self._counts[self._body].words, 1)

    @property
    def has_many_links(self) -> bool:
        """Whether a search for further menus is worth its time, which is ten times that of all else here."""
        body = self._counts[self._body]
        return body.linked >= _SHARE_OF_LINKS_IN_TEXTS * body.words

    def is_mostly_links(self, *, besides: HtmlElement) -> bool:
        """Return whether most of what the body has besides an element is menus and lists of other pages."""
        body, found = self._counts[self._body], self._counts[besides]
        return body.linked - found.linked >= _SHARE_OF_LINKS * (body.words - found.words)

    def take(self, elements: Sequence[HtmlElement], least: float, *, is_navigation: Callable[[HtmlElement], bool]) -> bool:
        """Return whether elements are the content, by their share of what is no navigation; remove navigation from them then."""
        if not elements:
            return False
        left_out = self.outermost(elements, is_navigation)
        share = self.share(elements, left_out)
        if least > LEAST_SHARE:
            least = max(least * self.share([self._body], self.outermost([self._body], self.is_outside_content)), LEAST_SHARE)
        if share < least or (elements == [self._body] and not any(self._counts[node].words for node in left_out)):
            return False
        for node in left_out:
            _remove(node)
        return True

    def outermost(
        self,
        elements: Iterable[HtmlElement],
        is_one: Callable[[HtmlElement], bool],
        *,
        without: Callable[[HtmlElement], bool] | None = None,
    ) -> list[HtmlElement]:
        """Return what is in the elements and of this kind, but not in another one, nor in one of the kind `without`."""
        found = []
        for element in elements:
            walker = iterwalk(element, events=("start",))
            for _, node in walker:
                if node is element:
                    continue
                if is_one(node):
                    found.append(node)
                    walker.skip_subtree()
                elif without is not None and without(node):
                    walker.skip_subtree()
        return found

    def named(self, names: Collection[str]) -> list[HtmlElement]:
        """Return the outermost `div` elements with one of these ids or classes, without menus, which may have them too."""

        def is_named(node: HtmlElement) -> bool:
            return node.tag == "div" and not _names(node).isdisjoint(names) and not self._is_menu(node)

        return self.outermost([self._body], is_named, without=self.is_outside_content)

    def _is_menu(self, node: HtmlElement) -> bool:
        count = self._counts[node]
        return count.linked >= _SHARE_OF_LINKS_IN_MENUS * count.words or self.is_local_toc(node)

    def title_outside(self, elements: Sequence[HtmlElement]) -> list[HtmlElement]:
        """Return the title of a page that is not in the elements with its content, as a list of at most one."""
        if not elements or any(node in self._with_heading for node in elements):
            return []
        inside = set(elements)
        for is_title in (lambda node: node.tag == "h1", lambda node: bool(_TITLE_NAMES & _names(node))):
            found = self.outermost([self._body], is_title, without=lambda node: node in inside or self.is_outside_content(node))
            if found:
                return found[:1]
        return []

    def is_navigation(self, node: HtmlElement) -> bool:
        """Return whether an element is no content, even in an element for the content."""
        tag = node.tag
        if tag == "a":
            return is_sign(node) or self._is_skip_link(node)
        if tag in ("nav", "footer") or _role(node) in _NAVIGATION_ROLES:
            return True
        if tag in INLINE or tag in _HEADINGS:
            return False
        names = _names(node)
        if tag == "aside":
            return bool(names & {"sidebar", "toc"})
        return (
            bool(names & _NAVIGATION_NAMES) or self._is_cookie_box(node) or self.is_local_toc(node) or self._is_title_of_toc(node)
        )

    def is_outside_content(self, node: HtmlElement) -> bool:
        """Return whether an element of the body is no content, on a page without an element for it."""
        if self.is_navigation(node):
            return True
        if node.tag == "header":
            return not (node in self._with_heading and self._headings == 1)
        if node.tag == "aside":
            return True
        names = _names(node)
        if names & _GENERATOR_NAMES:
            return node.tag not in INLINE and node not in self._with_heading
        return bool(names & _HEADER_NAMES) and node.tag == "div" and node not in self._with_heading

    def is_local_toc(self, node: HtmlElement) -> bool:
        """Return whether an element only lists the parts of the page itself: a list of other pages is content."""
        count = self._counts.get(node)
        if count is None or count.links_elsewhere or count.links_here < _LEAST_LINKS_OF_A_TOC:
            return False
        if node.tag in _LISTS and count.linked >= 0.9 * count.words:
            return True
        return not _names(node).isdisjoint(_TOC_NAMES) and count.linked >= 0.6 * count.words

    def _is_title_of_toc(self, node: HtmlElement) -> bool:
        following = node.getnext()
        return (
            following is not None
            and self._counts[node].words <= _MOST_WORDS_OF_A_LINK
            and self.is_local_toc(following)
            and text_of([node]).casefold().rstrip(":") in _TOC_TITLES
        )

    def _is_cookie_box(self, node: HtmlElement) -> bool:
        written = f"{node.get('id', '')} {node.get('class', '')}"
        return (
            _COOKIE_BOX.search(written) is not None
            and node not in self._with_heading
            and self._counts[node].words <= _MOST_WORDS_OF_A_BOX
        )

    def _is_skip_link(self, node: HtmlElement) -> bool:
        """Return whether a link leads past the navigation."""
        return (
            node.get("href", "")[:1] == "#"
            and self._counts[node].words <= _MOST_WORDS_OF_A_LINK
            and any("skip" in name for name in _names(node))
        )


def _role(node: HtmlElement) -> str:
    return str(node.get("role", "")).strip().lower()


def _names(node: HtmlElement) -> set[str]:
    """Return the id and the classes of an element, in lower case; the id also with a `#`."""
    attributes = node.attrib
    if not attributes:
        return set()
    identifier = attributes.get("id", "")
    return set(f"{identifier} {'#' if identifier else ''}{identifier} {attributes.get('class', '')}".lower().split())


def _remove(node: HtmlElement) -> None:
    """Remove an element from its tree, but not the text after it."""
    parent, before, tail = node.getparent(), node.getprevious(), node.tail or ""
    if node.tag not in INLINE:
        tail = " " + tail
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    node.tail = None
    parent.remove(node)


def _found_by_trafilatura(root: HtmlElement, body: HtmlElement) -> HtmlElement | None:
    """Return the smallest element with nearly all words that trafilatura finds; None if it finds nothing."""
    from trafilatura import bare_extraction  # noqa: PLC0415 - an extra

    try:
        found = bare_extraction(tostring(root, encoding="unicode", method="html"), fast=True, include_comments=False)
    except Exception:  # noqa: BLE001 - a library that reads any page of anybody
        return None
    wanted = Counter(_WORD.findall(getattr(found, "text", None) or ""))
    least = _FOUND_SHARE * wanted.total()
    if not least:
        return None
    best = body
    while True:
        parts = [
            node
            for node in best
            if node.tag not in INLINE and (Counter(_WORD.findall(text_of([node]))) & wanted).total() >= least
        ]
        if not parts:
            return best
        best = parts[0]
