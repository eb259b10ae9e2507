"""Blocks that stand on most pages of a site, such as menus and notices: learned from its pages, and left out of their text.

A block is the text between two borders of block elements, with the names of the elements around: the same words at another place are
another block. It is known by a number of 63 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from lxml.etree import iterwalk
from lxml.html import HtmlElement

from crawlspace.content.main_content import LEAST_SHARE
from crawlspace.content.markup import INLINE, collapsed

FEWEST_PAGES = 5
"""Pages of a site from which blocks are learned; with fewer there are none."""
MAX_BLOCKS = 500
"""Blocks of a site that are known: those on the most pages."""
_MAX_COUNTED = 50_000
"""Different blocks that are counted at a time; above, those that were seen once are given up."""

Blocks = dict[int, int]
"""By block, the number of pages that have it."""


class SiteBlocks(msgspec.Struct, frozen=True):
    """What was learned of a site."""

    pages: int
    """How many were read."""
    blocks: Blocks
    """Those on more than half of them."""


NO_BLOCKS = SiteBlocks(0, {})


class Block(NamedTuple):
    """A block of a page. `texts` are elements, each with whether the text after it is meant, not the one at its beginning."""

    number: int
    text: str
    texts: list[tuple[HtmlElement, bool]]
    images: list[HtmlElement]


class BlockCounter:
    """Counts the blocks of the pages of one site."""

    def __init__(self) -> None:
        self._pages = 0
        self._counts: Blocks = {}

    def add(self, root: HtmlElement) -> None:
        """Count each block of a page once."""
        self._pages += 1
        for number in {block.number for block in blocks_in(root)}:
            self._counts[number] = self._counts.get(number, 0) + 1
        if len(self._counts) > _MAX_COUNTED:
            self._counts = {number: count for number, count in self._counts.items() if count > 1}

    def learned(self) -> SiteBlocks:
        """Return the blocks on more than half of the pages."""
        if self._pages < FEWEST_PAGES:
            return SiteBlocks(self._pages, {})
        common = [(-count, number) for number, count in self._counts.items() if 2 * count > self._pages]
        return SiteBlocks(self._pages, {number: -count for count, number in sorted(common)[:MAX_BLOCKS]})


def leave_out(root: HtmlElement, boilerplate: Collection[int]) -> list[Block]:
    """Remove the texts of these blocks from a page, with images in them, and return them; none if next to nothing would be left."""
    if not boilerplate:
        return []
    found = list(blocks_in(root))
    left_out = [block for block in found if block.number in boilerplate]
    words, kept = (sum(len(block.text.split()) for block in blocks) for blocks in (found, left_out))
    if words - kept < LEAST_SHARE * words:
        return []
    for block in left_out:
        for node, is_tail in block.texts:
            if is_tail:
                node.tail = None
            else:
                node.text = None
        for image in block.images:
            image.clear(keep_tail=True)
    return left_out


def blocks_in(root: HtmlElement) -> Iterator[Block]:
    """Yield the blocks of the body of a page, in its order."""
    body = root.find("body")
    places = [b""]
    """Of the open elements: digests of their names with those around, which may be long."""
    texts: list[tuple[HtmlElement, bool]] = []
    images: list[HtmlElement] = []
    for event, node in iterwalk(body, events=("start", "end")):
        is_inline = node.tag in INLINE or node.tag in ("br", "img")
        if not is_inline:
            if texts and (block := _block(places[-1], texts, images)) is not None:
                yield block
            texts, images = [], []
        if event == "start":
            if not is_inline:
                places.append(blake2b(places[-1] + node.tag.encode(), digest_size=8).digest())
            elif node.tag == "img":
                images.append(node)
            if node.text:
                texts.append((node, False))
        else:
            if not is_inline:
                places.pop()
            if (node.tail or node.tag == "br") and node is not body:
                texts.append((node, True))


def _block(place: bytes, texts: list[tuple[HtmlElement, bool]], images: list[HtmlElement]) -> Block | None:
    pieces = ((" " if node.tag == "br" else "") + ((node.tail if is_tail else node.text) or "") for node, is_tail in texts)
    text = collapsed("".join(pieces))
    if not text:
        return None
    digest = blake2b(place + text.encode("utf-8", "replace"), digest_size=8).digest()
    return Block(int.from_bytes(digest, "big") >> 1, text, texts, images)
