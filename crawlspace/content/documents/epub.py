"""The text of EPUB books: the pages of the spine, read as HTML (EPUB 3.3)."""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO

from crawlspace.content.dates import iso_time
from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.package import Leaves, Package, resolved
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull
from crawlspace.content.html import extract

_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Algorithms that obfuscate fonts only; all others encrypt the pages."""


def read_epub(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a book."""
    package = Package(file, limits)
    algorithms = Leaves.of(package, "META-INF/encryption.xml").elements
    if any(name == "EncryptionMethod" and given.get("Algorithm") not in _FONTS_ONLY for name, given in algorithms):
        raise UnreadableFile(TextStatus.ENCRYPTED)
    container = Leaves.of(package, "META-INF/container.xml").elements
    book = next((given["full-path"] for name, given in container if name == "rootfile" and "full-path" in given), "")
    if book not in package:
        raise UnreadableFile(TextStatus.DAMAGED, "it has no package document")
    leaves = Leaves.needed(package, book)
    contents.title, contents.author, contents.language = (leaves.get(name) for name in ("title", "creator", "language"))
    contents.created = iso_time(leaves.get("date"))
    contents.modified = iso_time(leaves.get("meta"))
    files = {given["id"]: given["href"] for name, given in leaves.elements if name == "item" and {"id", "href"} <= given.keys()}
    pages = [files[given["idref"]] for name, given in leaves.elements if name == "itemref" and given.get("idref") in files]
    pages = list(dict.fromkeys(pages))
    contents.text_left_out = len(pages) > limits.max_pages
    buffer = TextBuffer(limits)
    is_whole = True
    with suppress(TextFull):
        for page in pages[: limits.max_pages]:
            is_whole &= _read_page(package, resolved(book, page), buffer)
    buffer.complete(contents)
    if not (is_whole or contents.text):
        raise UnreadableFile(TextStatus.DAMAGED, "its pages cannot be read")


def _read_page(package: Package, part: str, buffer: TextBuffer) -> bool:
    """Add the text of a page. Return whether it could be read."""
    try:
        page = extract(package.read(part), url="http://book.invalid/", xhtml=True)
    except UnreadableFile as error:
        if error.status is not TextStatus.DAMAGED:
            raise
        return False
    for heading in page.headings:
        buffer.add_heading(heading)
    for href in page.hrefs:
        buffer.add_link(href)
    buffer.add(page.text)
    buffer.end_word()
    return True
