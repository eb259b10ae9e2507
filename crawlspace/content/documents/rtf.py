"""The text of RTF files, by striprtf, and the parts that it omits: footnotes, headers and footers, text boxes, metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from striprtf.striprtf import font_table_group, rtf_to_text

from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull, one_line

_MOST_BYTES = 64 * 1024 * 1024
_PICTURE = re.compile(rb"\{\\(?:\*\\shppict|nonshppict|pict|\*\\blipuid|\*\\objdata)[^{}]*(?:\{[^{}]*\}[^{}]*){0,200}\}")
_PART = re.compile(r"\{(?:\\\*)?\\(?:footnote|annotation|header[lrf]?|footer[lrf]?|shptxt|dptxbxtext)(?![a-z])")
"""Groups with text, which striprtf omits."""
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_FONT = re.compile(r"\\f(?=\d)")
_FIELD = re.compile(r'\{\\\*\\fldinst[^{}]*(?:\{[^{}]*?)?HYPERLINK\s+(?:\\l\s+)?"([^"]+)"', re.IGNORECASE)
_INFO = re.compile(r"\{\\(title|author)((?:[^{}\\]|\\['\\{}a-z0-9-])*)\}", re.IGNORECASE)
_TIMES = re.compile(r"\{\\(creatim|revtim)\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})(?:\\hr(\d{1,2}))?(?:\\min(\d{1,2}))?")


def read_rtf(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read an RTF file."""
    file.seek(0)
    source = file.read(_MOST_BYTES + 1)
    if len(source) > _MOST_BYTES:
        raise UnreadableFile(TextStatus.OVER_LIMITS, "it is an RTF file of more than 64 MB")
    if not source.startswith(b"{\\rtf"):
        raise UnreadableFile(TextStatus.DAMAGED, "it does not begin as RTF")
    text = _PICTURE.sub(b"", source).decode("latin-1")
    text = text.replace("{\\field", "\n{\\field")  # striprtf looks for the end of each to the end of its line
    _read_info(text, contents)
    buffer = TextBuffer(limits)
    for href in _FIELD.findall(text):
        buffer.add_link(href)
    with suppress(TextFull):
        for part in _parts(text):
            buffer.add(_shown(part).replace("|", " "))
            buffer.end_word()
    buffer.complete(contents)


def _read_info(text: str, contents: FileContents) -> None:
    head = text[: 1024 * 1024]
    at = head.find("{\\info")
    if at < 0:
        return
    for name, value in _INFO.findall(head, at):
        setattr(contents, name.lower(), one_line(_shown("{\\rtf1 " + value.strip() + "}")))
    for name, year, month, day, hour, minute in _TIMES.findall(head, at):
        when = f"{year}-{int(month):02}-{int(day):02}T{int(hour or 0):02}:{int(minute or 0):02}:00Z"
        setattr(contents, "created" if name == "creatim" else "modified", when)


def _parts(text: str) -> Iterator[str]:
    """Yield the text without its notes, headers and boxes, and then each of these: they may be anywhere, even within a word."""
    kept, asides, at = [], [], 0
    while (match := _PART.search(text, at)) is not None:
        end = _end_of_group(text, match.end())
        kept.append(text[at : match.start()])
        asides.append(text[match.end() : end - 1])
        at = end
    yield "".join([*kept, text[at:]])
    head = text[: text.find("{", 1)]  # has the character set
    for aside in asides:
        yield f"{head} {aside}}}"


def _end_of_group(text: str, at: int) -> int:
    """Return the end of the group that contains an offset."""
    depth = 1
    for brace in _BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.end()
    return len(text) + 1


def _shown(source: str) -> str:
    fonts: str = font_table_group(source)  # type: ignore[no-untyped-call]
    if fonts:  # striprtf looks for the character set of each to the end of its line, and from there for a semicolon
        source = source.replace(fonts, _FONT.sub(r"\n;\g<0>", fonts).removesuffix("}") + "\n;}", 1)
    text: str = rtf_to_text(source, errors="replace")  # type: ignore[no-untyped-call]
    return text
