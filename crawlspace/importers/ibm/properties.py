"""Files of properties: names and values, as text or XML. IBM documents the properties as its console shows them, and no file.

Maximum URL path depth = 8            <property name="maxPathDepth" value="8"/>
maxPathDepth: 8                       <entry key="max_path_depth">8</entry>
                                      <MaxPathDepth>8</MaxPathDepth>
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from crawlspace.importers.xml_reading import XmlReading

MAX_DEPTH = 50
"""Maximal depth of nested elements."""
_COMMENTS = "#!;["
"""What lines begin with that are no properties; a section in brackets does not count."""
_DIVIDING = re.compile(r"[=:\t]")


@dataclass(frozen=True, slots=True)
class Property:
    """`value` is empty where there is none; the parts of a list stand below each other."""

    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class PropertyFile:
    properties: list[Property]
    not_understood: list[int] = field(default_factory=list)
    """Numbers of lines that are no property."""


def read_properties(text: str) -> PropertyFile:
    """Return the properties of a text. A backslash at the end of a line continues it, as in Java's files."""
    found = PropertyFile([])
    begun, start = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if not begun and (not line.strip() or line.lstrip()[0] in _COMMENTS):
            continue
        start = start if begun else number
        if line.endswith("\\"):
            begun += line[:-1].strip() + "\n"
            continue
        name, value = divided(begun + line)
        if name and value is not None:
            found.properties.append(Property(name, value, start))
        else:
            found.not_understood.append(start)
        begun = ""
    return found


def divided(line: str) -> tuple[str, str | None]:
    """Return name and value of `name = value`, `name: value` or `name<tab>value`; the value is None where nothing divides them."""
    found = _DIVIDING.search(line)
    return (line.strip(), None) if found is None else (line[: found.start()].strip(), line[found.end() :].strip())


def read_xml_properties(data: bytes, *, file: str, is_known: Callable[[str], bool]) -> PropertyFile:
    """Return the properties of an XML file. Raises RuleFileError.

    An element with a `name` or `key`, or whose own name is known, alone or behind that of the element around it, has its value in
    `value` or in the text inside; so has every other element without elements inside.
    """
    return _XmlReading(data, file=file, is_known=is_known).result()


@dataclass(slots=True)
class _OpenProperty:
    name: str
    line: int
    is_named: bool
    texts: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    """The `value`, and the values of elements inside."""
    is_leaf: bool = True


class _XmlReading(XmlReading):
    def __init__(self, data: bytes, *, file: str, is_known: Callable[[str], bool]) -> None:
        super().__init__(data, file=file, smaller="take out what are no properties", max_depth=MAX_DEPTH)
        self._is_known = is_known
        self._open: list[_OpenProperty] = []
        self._found: list[Property] = []

    def result(self) -> PropertyFile:
        self.parse()
        return PropertyFile(sorted(self._found, key=lambda one: one.line))

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        """Allow that of Java's properties, which is not read, and none with entities."""
        if has_subset:
            super()._doctype(name, system, public, has_subset)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        above = self._open[-1] if self._open else None
        if above is not None:
            above.is_leaf = False
        given = {key.lower(): value for key, value in attributes.items()}
        own = name.rpartition(":")[2]
        if above is not None and self._is_known(f"{above.name} {own}"):
            own = f"{above.name} {own}"
        named = given.get("name") or given.get("key") or ""
        opened = _OpenProperty(named or own, self.line, bool(named) or self._is_known(own))
        if "value" in given:
            opened.parts.append(given["value"])
        self._open.append(opened)

    def end(self, name: str) -> None:
        closed = self._open.pop()
        value = "\n".join(part for part in (part.strip() for part in ("".join(closed.texts), *closed.parts)) if part)
        above = self._open[-1] if self._open else None
        if above is not None and above.is_named and not closed.is_named:
            above.parts.append(value)
        elif (closed.is_named and (value or closed.is_leaf)) or (closed.is_leaf and above is not None):
            self._found.append(Property(closed.name, value, closed.line))

    def characters(self, text: str) -> None:
        if self._open:
            self._open[-1].texts.append(text)
