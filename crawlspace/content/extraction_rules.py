"""Extraction rules: which fields a document gets from its page, and which parts of the page its text is taken from.

They are plain values of texts and tuples, so that a process that reads pages gets them as they are (msgpack). What their selectors may be
is in `selectors`, how they are applied in `extraction`; `crawlspace/config/extraction.py` reads them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, TypeAlias, get_args

import msgspec

from crawlspace.document import Part

By: TypeAlias = Literal["css", "xpath", "meta", "jsonld", "header", "url"]
"""What a value is taken from: elements of the page, its meta elements, its JSON-LD, a header of the response, the URL."""
Take: TypeAlias = Literal["first", "all", "joined"]
ValueType: TypeAlias = Literal["text", "number", "date", "url", "bool"]
SOURCES: tuple[By, ...] = get_args(By)
TAKES: tuple[Take, ...] = get_args(Take)
TYPES: tuple[ValueType, ...] = get_args(ValueType)

EXTRACT_TOML = "extract.toml"
"""The file of the rules in the folder of a collection."""
VERSION = 1
"""Of what the rules do: with another one, the same rules may find something else in the same page."""


class FieldRule(msgspec.Struct, frozen=True):
    """A field of documents. Of several rules for a field, the first that finds something counts."""

    name: str
    by: By
    expression: str
    """The selector, the name, the path or the regular expression."""
    where: tuple[str, ...] = ()
    """Beginnings of URLs in normal form, with `*` for any characters; empty: all pages."""
    take: Take = "first"
    type: ValueType = "text"
    line: int = 0
    """In the file."""


class TextRule(msgspec.Struct, frozen=True):
    """The elements that the text of a page is taken from, and those that are left out, by CSS. The first that finds something counts."""

    only: tuple[str, ...] = ()
    """Empty: the whole page."""
    drop: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    line: int = 0


class PartRule(msgspec.Struct, frozen=True):
    """The elements of a page that are documents of their own."""

    css: str
    key: str
    """CSS of the element whose text is the key of a part, or `@name`: an attribute of the part's own element."""
    title: str = ""
    """CSS; empty: a part has the title of its page."""
    where: tuple[str, ...] = ()
    line: int = 0


class ExtractionRules(msgspec.Struct, frozen=True):
    """The rules of a file in its order. False if there are none."""

    fields: tuple[FieldRule, ...] = ()
    texts: tuple[TextRule, ...] = ()
    parts: tuple[PartRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.fields or self.texts or self.parts)

    @property
    def content_hash(self) -> str:
        """Hexadecimal; changes whenever a page may yield another document. Empty without rules."""
        if not self:
            return ""
        bare = [[msgspec.structs.replace(rule, line=0) for rule in rules] for rules in (self.fields, self.texts, self.parts)]
        return blake2b(msgspec.msgpack.encode((VERSION, bare)), digest_size=16).hexdigest()


NO_RULES = ExtractionRules()


class Extracted(msgspec.Struct, frozen=True):
    """What the rules make of a page. `fields` has several values packed; `text` is None where the page's own stays."""

    fields: dict[str, str] = {}
    text: str | None = None
    misfits: dict[str, int] = {}
    """By field, the number of values that were found and are not of its type."""
    markdown: str = ""
    parts: list[Part] = []
    fault: str = ""
    """Why the rules could not be applied."""
