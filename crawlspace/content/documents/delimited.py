"""The text of CSV files: cell after cell, and no more of the file than the text may have."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from crawlspace.content.charset import decode
from crawlspace.content.documents.contents import FileContents, FileLimits
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull

_SAMPLE = 16 * 1024
_BYTES_A_CHARACTER = 4


def read_csv(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a file of values, separated by what separates most of them."""
    file.seek(0)
    body = file.read(limits.max_text * _BYTES_A_CHARACTER + 1)
    contents.text_left_out = len(body) > limits.max_text * _BYTES_A_CHARACTER
    text, _ = decode(body, None)
    del body
    buffer = TextBuffer(limits)
    try:
        for row in _rows(text):
            for cell in row:
                buffer.add(cell)
                buffer.end_word()
    except TextFull:
        pass
    buffer.complete(contents)


def _rows(text: str) -> Iterator[list[str]]:
    sample = text[:_SAMPLE]
    delimiter = max(",;\t|", key=sample.count)
    before = csv.field_size_limit(len(text) + 1)  # of the whole process
    try:
        yield from csv.reader(text.replace("\0", " ").splitlines(), delimiter=delimiter)
    finally:
        csv.field_size_limit(before)
