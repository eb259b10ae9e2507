r"""Write elements of a page as Markdown: CommonMark, with the tables of GitHub, without raw HTML.

Own, because no kept library does it right. Of the headings, lists, tables, code blocks and links of 42 pages
(`python -m benchmarks.main_content`) it finds all and invents none; markdownify finds 0.99, 0.39, 0.55, 0.97, 0.84 of them, html2text 0.94,
0.37, 0.49, 0.87, 0.71, and both invent some, because they do not escape all text and lose the form of tables and nested blocks. Both also end
badly on hostile pages: html2text takes 44 s for 100 KB of `<ul><li>`, and markdownify raises RecursionError for 100 KB of any nested
element. Here the page is read once, without recursion, and lines are indented by no more than `MAX_NESTING`
lists and quotes.

What Markdown does not have is written as follows: a definition list as a list, each term with its definitions an item; a cell that spans
several, as itself and empty ones; a table without a header row with an empty one; a table for the layout (one column or one row, or with
headings or tables in its cells) as what is in its cells; blocks in the cells of other tables as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lxml.etree import iterwalk
from lxml.html import HtmlElement

from crawlspace.content.markdown_inline import SPACE, Inline, code_fence, inline_markdown, inline_text
from crawlspace.content.markup import INLINE, one_spaced
from crawlspace.content.tree import is_sign
from crawlspace.urls import MalformedUrl, join

MAX_NESTING = 20
"""Lists and quotes in each other that are indented; deeper ones are written at that depth."""
MAX_COLUMNS = 200
"""Columns of a table that spans are applied in."""

_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_EMPHASIS = {"b": "strong", "strong": "strong", "i": "em", "em": "em"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_PREFORMATTED = frozenset({"pre", "listing", "plaintext", "xmp"})
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl"})
_CELLS = frozenset({"td", "th"})
_ROWS = frozenset({"tr", "thead", "tbody", "tfoot", "colgroup", "caption"})
_NOT_SHOWN = frozenset({"title", "head", "colgroup"})
_LOOSE = frozenset("p pre blockquote table div dl h1 h2 h3 h4 h5 h6 hr".split())
"""Children of list items that need empty lines between items."""
_NUMBERS_OF_LINES = frozenset("lineno linenos linenumber listing_lines gutter lnt".split())
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|sourceCode|src|brush:)[-:\s]\s*(?!text\b|none\b|default\b|notranslate\b|plain)"
    r"([A-Za-z0-9+#.-]{1,30})(?=$|\s|;)"
)
_SCHEME = re.compile(r"(?:https?|ftps?|mailto|news|tel|file):", re.IGNORECASE)
_MAX_URL = 10_000


class TextBlock(NamedTuple):
    """A block of a page as plain text: a heading, a paragraph or list item, a table, or code."""

    lines: Sequence[str]
    heading: HtmlElement | None = None
    is_whole: bool = False
    """It must not be divided: a table, or code."""
    is_spaced: bool = True
    """An empty line is before it."""


def blocks_of(element: HtmlElement) -> list[TextBlock]:
    """Return the blocks of an element in their order, with lists and tables as in Markdown, and otherwise without markup."""
    writer = _MarkdownWriter("", plain=True)
    writer.read(element)
    return writer.blocks


def markdown_of(elements: Iterable[HtmlElement], base: str) -> str:
    """Return the content of elements as Markdown, links relative to `base` made absolute. The time is proportional to its length.

    Empty elements, links without text, links that run scripts, and the signs of permalinks are left out.
    """
    writer = _MarkdownWriter(base)
    for element in elements:
        writer.read(element)
    return writer.result()


@dataclass(slots=True)
class _Container:
    """A list item or a quote. `first` begins its first line, `rest` the others."""

    first: str
    rest: str
    is_item: bool = False
    tight: bool = False
    """Whether no empty line is before it."""
    started: bool = False


@dataclass(slots=True)
class _List:
    marker: str
    number: int | None
    loose: bool
    tag: str
    items: int = 0
    after_term: bool = False
    opened: int = 0
    """Containers of its items that are open."""


class _Table:
    """The rows of a table so far."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.has_header = False
        self._spans: dict[int, int] = {}
        """By column, how many further rows a cell above takes."""
        self._column = 0
        self._only_headers = True
        self._row: list[str] | None = None

    def start_row(self) -> None:
        self._row, self._column, self._only_headers = [], 0, True

    def add(self, text: str, cell: HtmlElement) -> None:
        if self._row is None:
            self.start_row()
        assert self._row is not None
        self._skip_spanned()
        columns, rows = _number(cell.get("colspan"), 1, most=100), _number(cell.get("rowspan"), 1, most=1_000)
        self._only_headers = self._only_headers and cell.tag == "th"
        for number in range(max(columns, 1)):
            self._row.append("" if number else text)
            if rows > 1 and self._column < MAX_COLUMNS:
                self._spans[self._column] = rows - 1
            self._column += 1

    def end_row(self, *, in_head: bool) -> None:
        if self._row is None:
            return
        self._skip_spanned()
        for column in range(self._column, MAX_COLUMNS) if self._spans else ():
            if column in self._spans:
                self._skip(column)
        if any(self._row):
            self.has_header = self.has_header or (not self.rows and (in_head or self._only_headers))
            self.rows.append(self._row)
        self._row = None

    def lines(self) -> list[str]:
        width = max(map(len, self.rows), default=0)
        header, body = (self.rows[0], self.rows[1:]) if self.has_header else ([], self.rows)
        header = header + [""] * (width - len(header))
        return [_row(header), "|" + " --- |" * width, *map(_row, body)] if width else []

    def _skip_spanned(self) -> None:
        assert self._row is not None
        while self._column in self._spans:
            self._skip(self._column)
            self._row.append("")
            self._column += 1

    def _skip(self, column: int) -> None:
        self._spans[column] -= 1
        if not self._spans[column]:
            del self._spans[column]


class _MarkdownWriter:
    """The Markdown so far, and what is open in the page."""

    def __init__(self, base: str, *, plain: bool = False) -> None:
        """`plain`: without escapes, emphasis, links and marks of headings and code; `blocks` has each block by itself."""
        self._base = base
        self._inline = inline_text if plain else inline_markdown
        self._is_plain = plain
        self.blocks: list[TextBlock] = []
        self._lines: list[str] = []
        self._containers: list[_Container] = []
        self._lists: list[_List] = []
        self._pieces: list[Inline] = []
        self._code = 0
        self._heading = 0
        self._heading_element: HtmlElement | None = None
        self._link = ""
        """The URL of the open link that has no text yet, or is in the current paragraph."""
        self._link_at = 0
        self._open_links = 0
        self._table: _Table | None = None
        self._cell: list[Inline] | None = None
        self._in_head = False
        self._layout: set[HtmlElement] = set()
        self._last_list = ("", 0)
        """Marker of the list that ended last, and the number of lines at its end: two lists side by side have other markers."""
        self._line_breaks = 0

    def read(self, element: HtmlElement) -> None:
        self._layout = _tables_for_layout(element)
        walker = iterwalk(element, events=("start", "end"))
        skipped: HtmlElement | None = None
        for event, node in walker:
            if event == "start":
                if self._is_skipped(node):
                    skipped = node
                    walker.skip_subtree()
                    continue
                self._start(node)
                self._text(node.text)
                continue
            if node is skipped:
                skipped = None
            else:
                self._end(node)
            if node is not element:
                self._text(node.tail)
        self._paragraph()

    def result(self) -> str:
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _is_skipped(self, node: HtmlElement) -> bool:
        """Return whether all of an element is done, or left out."""
        tag = node.tag
        if tag in _PREFORMATTED or (tag == "div" and node.get("class") == "fragment"):  # Doxygen's code
            self._preformatted(node)
            return True
        if tag in _NOT_SHOWN:
            return True
        if tag in ("td", "span", "div") and not _NUMBERS_OF_LINES.isdisjoint(node.get("class", "").split()):
            return True
        return tag == "a" and is_sign(node)

    def _text(self, text: str | None) -> None:
        if text:
            if not text.isspace():
                self._line_breaks = 0
            elif not self._pieces and self._cell is None:
                return  # at the beginning of a block
            self._add(Inline("code" if self._code else "text", text))

    def _add(self, piece: Inline) -> None:
        (self._pieces if self._cell is None else self._cell).append(piece)

    def _start(self, node: HtmlElement) -> None:
        tag = node.tag
        if tag in _CODE:
            self._code += 1
        elif tag in _EMPHASIS:
            self._add(Inline(_EMPHASIS[tag])) if not self._code else None
        elif tag == "a":
            self._start_link(node)
        elif tag == "img":
            self._image(node)
        elif tag == "br":
            self._break()
        elif tag in INLINE:
            pass
        elif self._cell is not None or tag == "button":
            self._add(SPACE)
        elif self._table is not None and (tag in _CELLS or tag in _ROWS):
            self._start_of_row(node)
        else:
            self._paragraph()
            self._start_block(node)

    def _start_of_row(self, node: HtmlElement) -> None:
        assert self._table is not None
        if node.tag in _CELLS:
            self._paragraph()
            self._cell = []
        elif node.tag == "tr":
            self._table.start_row()
        elif node.tag == "thead":
            self._in_head = True
        else:
            self._paragraph()

    def _start_block(self, node: HtmlElement) -> None:
        tag = node.tag
        if tag in _HEADINGS:
            self._heading, self._heading_element = _HEADINGS[tag], node
        elif tag in _LISTS:
            self._start_list(node)
        elif tag == "li":
            self._start_item(node)
        elif tag in ("dt", "dd") and self._lists:
            self._start_definition(tag)
        elif tag == "blockquote":
            self._push(_Container("> ", "> "))
        elif tag == "hr":
            self._write([] if self._is_plain else ["___"])
        elif tag == "table" and node not in self._layout and self._table is None:
            self._table = _Table()

    def _end(self, node: HtmlElement) -> None:
        tag = node.tag
        if tag in _CODE:
            self._code -= 1
        elif tag in _EMPHASIS:
            self._add(Inline("/" + _EMPHASIS[tag])) if not self._code else None
        elif tag == "a":
            self._end_link()
        elif tag in INLINE or tag in ("img", "br"):
            pass
        elif tag == "button":
            self._add(SPACE)
        elif self._cell is not None:
            self._add(SPACE)
            if tag in _CELLS and self._table is not None:
                self._table.add(self._inline(self._cell, in_cell=True), node)
                self._cell = None
        elif self._table is not None and tag in ("tr", "thead"):
            self._paragraph()
            if tag == "tr":
                self._table.end_row(in_head=self._in_head)
            else:
                self._in_head = False
        else:
            self._paragraph()
            self._end_block(node)

    def _end_block(self, node: HtmlElement) -> None:
        tag = node.tag
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in _LISTS:
            self._end_list()
        elif tag == "li" and self._lists and self._lists[-1].tag != "dl":
            self._close_item()
        elif tag == "blockquote":
            self._containers.pop()
        elif tag == "table" and self._table is not None and node not in self._layout:
            lines = self._table.lines()
            self._table = None
            self._write(lines, is_whole=True)

    # inline content
    def _start_link(self, node: HtmlElement) -> None:
        self._open_links += 1
        href = node.get("href", "").strip()
        if self._link or not href:
            return
        self._link = self._absolute(href)
        if self._link:
            self._link_at = self._open_links
            self._add(Inline("link", url=self._link))

    def _end_link(self) -> None:
        if self._link and self._link_at == self._open_links:
            self._link = ""
            self._add(Inline("/link"))
        self._open_links -= 1

    def _image(self, node: HtmlElement) -> None:
        source = (node.get("src") or node.get("data-src") or "").strip()
        alt = one_spaced(node.get("alt", ""))
        url = "" if source[:5].lower() == "data:" else self._absolute(source) if source else ""
        if url and (alt or "alt" not in node.attrib or self._link):
            self._add(Inline("image", alt, url))
        elif alt:
            self._add(Inline("text", alt))

    def _break(self) -> None:
        self._line_breaks += 1
        if self._line_breaks > 1 and self._cell is None and not self._heading:
            self._paragraph()
        else:
            self._add(Inline("break"))

    def _absolute(self, href: str) -> str:
        try:
            url = join(self._base, href) if len(href) <= _MAX_URL else ""
        except MalformedUrl:
            return ""
        return url if _SCHEME.match(url) else ""

    def _paragraph(self) -> None:
        """Write the inline content so far; a link that goes on is one of the first block with text in it."""
        self._line_breaks = 0
        if not self._pieces:
            return
        pieces, self._pieces = self._pieces, []
        text = self._inline(pieces, in_heading=bool(self._heading))
        if text:
            self._link = ""
            mark = "" if self._is_plain or not self._heading else "#" * self._heading + " "
            self._write([mark + text] if self._heading else text.split("\n"))
        elif self._link:
            self._pieces.append(Inline("link", url=self._link))

    # blocks
    def _preformatted(self, node: HtmlElement) -> None:
        text = _text_of_code(node)
        if self._cell is not None:
            self._cell += [SPACE, Inline("code", text), SPACE]
            return
        self._paragraph()
        if text.strip():
            self._write(text.split("\n") if self._is_plain else code_fence(text, _language_of(node)), is_whole=True)

    def _start_list(self, node: HtmlElement) -> None:
        tag = node.tag
        is_ordered = tag == "ol"
        last, at = self._last_list
        plain, other = (".", ")") if is_ordered else ("-", "*")
        self._lists.append(
            _List(
                marker=other if last == plain and at == len(self._lines) else plain,
                number=_number(node.get("start"), 1) if is_ordered else None,
                loose=tag == "dl" or any(block.tag in _LOOSE for item in node for block in item),
                tag=tag,
            )
        )

    def _end_list(self) -> None:
        ended = self._lists.pop()
        while ended.opened:
            self._containers.pop()
            ended.opened -= 1
        self._last_list = (ended.marker, len(self._lines))

    def _start_item(self, node: HtmlElement) -> None:
        if not self._lists or self._lists[-1].tag == "dl":
            return
        of = self._lists[-1]
        if of.number is not None and node.get("value"):
            of.number = _number(node.get("value"), of.number)
        self._open_item(of)

    def _start_definition(self, tag: str) -> None:
        of = self._lists[-1]
        if of.tag != "dl":
            return
        if tag == "dt" or not of.opened:
            self._close_item()
            self._open_item(of)

    def _open_item(self, of: _List) -> None:
        marker = f"{of.number}{of.marker} " if of.number is not None else f"{of.marker} "
        above = self._lists[-2] if len(self._lists) > 1 else None
        goes_on = (
            above is not None and not above.loose and above.opened > 0 and self._containers[-1].is_item and of.number in (None, 1)
        )
        tight = not of.loose and (of.items > 0 or goes_on)
        self._push(_Container(marker, " " * len(marker), is_item=True, tight=tight))
        of.opened += 1
        of.items += 1
        if of.number is not None:
            of.number = min(of.number + 1, 999_999_999)

    def _close_item(self) -> None:
        of = self._lists[-1]
        if of.opened:
            of.opened -= 1
            item = self._containers.pop()
            if not item.started:  # empty: the next item takes its place
                of.items -= 1
                of.number = of.number - 1 if of.number else of.number

    def _push(self, container: _Container) -> None:
        if len(self._containers) >= MAX_NESTING:
            container.first = container.rest = ""
        self._containers.append(container)

    def _write(self, lines: list[str], *, is_whole: bool = False) -> None:
        """Write a block, after an empty line unless it begins a list item that needs none."""
        if not lines:
            return
        new = next((container for container in self._containers if not container.started), None)
        is_spaced = not (new is not None and new.tight)
        if self._lines and is_spaced:
            self._lines.append("".join(c.rest for c in self._containers if c.started).rstrip())
        first = "".join(c.rest if c.started else c.first for c in self._containers)
        rest = "".join(c.rest for c in self._containers)
        for container in self._containers:
            container.started = True
        written = [first + lines[0], *((rest + line).rstrip() if not line else rest + line for line in lines[1:])]
        self._lines += written
        if self._is_plain:
            self.blocks.append(TextBlock(written, self._heading_element if self._heading else None, is_whole, is_spaced))


def _tables_for_layout(element: HtmlElement) -> set[HtmlElement]:
    """Return the tables that place parts of a page, and have no data: of one row or column, or with headings or tables in cells."""
    found = set()
    rows: list[list[int]] = []
    """For each open table: rows, cells of the current row, the most cells, whether a cell has blocks that no cell can have."""
    for event, node in iterwalk(element, events=("start", "end")):
        tag = node.tag
        if event == "end":
            if tag == "table":
                number, _, most, has_blocks = rows.pop()
                if number < 2 or most < 2 or has_blocks or node.get("role") in ("presentation", "none"):
                    found.add(node)
        elif tag == "table":
            if rows:
                rows[-1][3] = 1
            rows.append([0, 0, 0, 0])
        elif rows:
            if tag == "tr":
                rows[-1][0] += 1
                rows[-1][1] = 0
            elif tag in _CELLS:
                rows[-1][1] += max(_number(node.get("colspan"), 1, most=100), 1)
                rows[-1][2] = max(rows[-1][1:3])
            elif tag in _HEADINGS:
                rows[-1][3] = 1
    return found


def _text_of_code(node: HtmlElement) -> str:
    """Return the text of a code block, without numbers of lines."""
    parts: list[str] = []
    walker = iterwalk(node, events=("start", "end"))
    for event, inner in walker:
        if event == "start":
            if inner is not node and not _NUMBERS_OF_LINES.isdisjoint(inner.get("class", "").split()):
                walker.skip_subtree()
            elif inner.tag == "br":
                parts.append("\n")
            else:
                parts.append(inner.text or "")
        elif inner is not node:
            ends_line = inner.tag in ("div", "p", "li", "tr") and parts and not parts[-1].endswith("\n")
            parts += ["\n" if ends_line else "", inner.tail or ""]
    return "".join(parts).replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()


def _language_of(node: HtmlElement) -> str:
    """Return the language of a code block by the class names of it, of the code in it, or of the elements around."""
    around = [node, *(child for child in node if child.tag == "code"), node.getparent()]
    around.append(around[-1].getparent() if around[-1] is not None else None)
    for element in around:
        if element is None:
            continue
        found = _LANGUAGE.search(element.get("class", ""))
        language = found[1] if found else element.get("data-lang", "")
        if re.fullmatch(r"[A-Za-z0-9+#.-]{1,30}", language):
            return str(language)
    return ""


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(written: str | None, default: int, *, most: int = 999_999_999) -> int:
    """Return the number of an attribute within bounds, or the default for anything else."""
    digits = (written or "").strip()
    return min(int(digits), most) if digits.isascii() and digits.isdigit() and len(digits) < 12 else default
