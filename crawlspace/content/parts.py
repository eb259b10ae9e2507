"""Divide a page into parts that are found by themselves: its sections, or the elements of an extraction rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from lxml.html import HtmlElement

from crawlspace.content.markdown import TextBlock, blocks_of
from crawlspace.content.markup import one_spaced
from crawlspace.content.page import MAX_TEXT
from crawlspace.document import Part

MAX_PARTS = 1_000
"""Parts of a page. The rest of a page with more is found by its document alone."""
MAX_KEY = 200
"""Characters of a key, and of an anchor: a longer key is replaced by its digest."""
MAX_TITLE = 300
"""Characters of a heading."""
TOP = "top"
"""The key of what stands before the first heading."""
_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_AROUND = frozenset({"section", "article", "div", "header", "hgroup", "main", "span"})
_MOST_IN_A_HEADING = 10
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*[^\W_a-z])|[。！？][」』”）]*")
_ABBREVIATION = re.compile(
    r"(?:\b[^\W\d_]|\b(?:approx|bzw|ca|cf|dr|ed|eds|etc|fig|jr|mr|mrs|ms|no|nr|op|pp|prof|sr|st|usw|vol|vs))\Z", re.IGNORECASE
)
"""What has a full stop that ends no sentence."""


class _Section(NamedTuple):
    headings: list[str]
    key: str
    anchor: str
    blocks: list[TextBlock]


def heading_parts(elements: Iterable[HtmlElement], *, most: int) -> list[Part]:
    """Return the sections of elements, each of `most` characters at most: a longer one is several parts.

    A part ends between blocks, or between sentences of a paragraph that is too long by itself; a sentence that is too long is divided
    between words. Tables and code are never divided, however long they are. A section has the anchor of its heading, else that of the
    section around it. Headings with nothing but further headings under them are no part.
    """
    keys = dict[str, int]()
    found: list[Part] = []
    size = 0
    for headings, key, anchor, blocks in _sections(block for element in elements for block in blocks_of(element)):
        for text in _texts(blocks, most):
            size += len(text) + sum(map(len, headings))
            if len(found) == MAX_PARTS or size > MAX_TEXT:
                return found
            found.append(Part(unique_key(key, keys), headings[-1] if headings else "", headings, text, anchor))
    return found


def element_part(element: HtmlElement, *, key: str, title: str, keys: dict[str, int]) -> Part | None:
    """Return an element as a part; None if it has no text. Without a key, that is its anchor, or a digest of its text."""
    text = next(_texts(blocks_of(element), MAX_TEXT), "")[:MAX_TEXT]
    if not text:
        return None
    anchor = anchor_of(element)
    title = title[:MAX_TITLE]
    return Part(unique_key(key or anchor or digest_of(text), keys), title, [title] if title else [], text, anchor)


def unique_key(key: str, keys: dict[str, int]) -> str:
    """Return a key that is not among `keys`, by adding a number where it is; `keys` has the last number of each key given."""
    key = one_spaced(key)
    key = key if len(key) <= MAX_KEY else digest_of(key)
    found, number = key, keys.get(key, 0)
    while found in keys:
        number += 1
        found = f"{key}~{number}"
    keys[key] = max(number, 1)
    keys.setdefault(found, 1)
    return found


def anchor_of(element: HtmlElement) -> str:
    """Return the anchor of a heading or another element: its own, one in it, one right before it, or that of what it begins."""
    for node in islice(element.iter(), _MOST_IN_A_HEADING):
        if found := _anchor(node):
            return found
    before = element.getprevious()
    if before is not None and before.tag in ("a", "span") and not (before.tail or "").strip() and not len(before):
        return "" if (before.text or "").strip() else _anchor(before)
    while before is None and (element := element.getparent()) is not None and element.tag in _AROUND:
        if (element.text or "").strip():
            return ""
        if found := _anchor(element):
            return found
        before = element.getprevious()
    return ""


def _anchor(node: HtmlElement) -> str:
    found = str(node.get("id") or (node.get("name") if node.tag == "a" else "") or "").strip()
    return found if len(found) <= MAX_KEY else ""


def _sections(blocks: Iterable[TextBlock]) -> Iterator[_Section]:
    path: list[tuple[int, str, str]] = []
    """Level, text and anchor of the headings above."""
    section = _Section([], TOP, "", [])
    for block in blocks:
        if block.heading is None:
            section.blocks.append(block)
            continue
        if section.blocks:
            yield section
        level, own = _LEVELS[block.heading.tag], anchor_of(block.heading)
        path = [one for one in path if one[0] < level]
        path.append((level, one_spaced(" ".join(block.lines))[:MAX_TITLE], own))
        headings = [text for _, text, _ in path]
        anchor = next((anchor for _, _, anchor in reversed(path) if anchor), "")
        section = _Section(headings, own or digest_of("\n".join(headings)), anchor, [])
    if section.blocks:
        yield section


def _texts(blocks: Sequence[TextBlock], most: int) -> Iterator[str]:
    """Yield the texts of blocks, as many of them together as fit."""
    pieces: list[str] = []
    size = 0
    for block in blocks:
        written = "\n".join(block.lines)
        whole = block.is_whole or len(written) <= most
        for number, piece in enumerate([written] if whole else _pieces(written, most)):
            between = ("\n\n" if block.is_spaced else "\n") if not number else " "
            if pieces and size + len(between) + len(piece) > most:
                yield "".join(pieces)
                pieces, size = [], 0
            pieces += [between, piece] if pieces else [piece]
            size += len(piece) + (len(between) if size else 0)
    if pieces:
        yield "".join(pieces)


def _pieces(text: str, most: int) -> Iterator[str]:
    """Yield the sentences of a text; one that is too long in pieces that end between words."""
    for sentence in _sentences(text):
        begin = 0
        while len(sentence) - begin > most:
            end = sentence.rfind(" ", begin + 1, begin + most + 1)
            end = begin + most if end < 0 else end
            yield sentence[begin:end]
            begin = end + (sentence[end] == " ")
        yield sentence[begin:]


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        if text[end.start()] == "." and _ABBREVIATION.search(text[max(begin, end.start() - 10) : end.start()]):
            continue
        yield text[begin : end.end()].strip()
        begin = end.end()
    if rest := text[begin:].strip():
        yield rest


def digest_of(text: str) -> str:
    """Return a short digest of a text, for a key."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
