"""A zip file with XML parts, as OOXML, OpenDocument and EPUB are: opened within limits, its parts read as a stream.

The bytes that come out of the archive are counted while they are inflated, because its directory may be wrong. No entity of an
XML part is expanded.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Protocol
from urllib.parse import unquote
from xml.parsers import expat

from crawlspace.content.documents.compound_file import is_compound
from crawlspace.content.documents.contents import FileLimits, TextStatus, UnreadableFile

_CHUNK = 64 * 1024
MAX_DEPTH = 1_000
"""Elements within each other."""
_MOST_TAG = 16 * 1024 * 1024
"""Bytes of one tag, comment or instruction."""


class XmlHandler(Protocol):
    """Processes the events of an XML part; names are local names, and namespaces of elements are not compared."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


class Package:
    """The parts of one file. Raises UnreadableFile where it is damaged, encrypted, or over a limit."""

    def __init__(self, file: BinaryIO, limits: FileLimits) -> None:
        self._left = limits.max_inflated_bytes
        file.seek(0)
        if is_compound(file.read(8)):
            raise UnreadableFile(TextStatus.ENCRYPTED)
        try:
            self._archive = zipfile.ZipFile(file)
        except MemoryError:
            raise
        except Exception as error:
            raise UnreadableFile(TextStatus.DAMAGED, str(error)) from error
        members = self._archive.infolist()
        if len(members) > limits.max_members:
            raise UnreadableFile(TextStatus.OVER_LIMITS, f"it has {len(members):,} members")
        self._members = {member.filename.lower().lstrip("/"): member for member in members}

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._members

    def names(self, beginning: str) -> list[str]:
        """Return the parts whose names have a beginning, in the order of their numbers."""
        found = [member.filename.lstrip("/") for name, member in self._members.items() if name.startswith(beginning)]
        return sorted(found, key=lambda name: (len(name), name))

    def chunks(self, part: str) -> Iterator[bytes]:
        """Yield the bytes of a part; none if it is missing."""
        member = self._members.get(part.lower())
        if member is None:
            return
        if member.flag_bits & 1:
            raise UnreadableFile(TextStatus.ENCRYPTED)
        try:
            with self._archive.open(member) as stream:
                while chunk := stream.read(_CHUNK):
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise UnreadableFile(TextStatus.OVER_LIMITS, "it inflates to too much")
                    yield chunk
        except (UnreadableFile, MemoryError):
            raise
        except Exception as error:  # of zipfile, or of what inflates the member
            raise UnreadableFile(TextStatus.DAMAGED, str(error)) from error

    def read(self, part: str, *, most: int = 16 * 1024 * 1024) -> bytes:
        """Return the bytes of a part, up to a number."""
        found = bytearray()
        for chunk in self.chunks(part):
            found += chunk
            if len(found) >= most:
                break
        return bytes(found[:most])

    def parse(self, part: str, handler: XmlHandler) -> None:
        """Pass the events of an XML part to a handler; none if the part is missing."""
        parse_xml(self.chunks(part), handler)

    def parse_readable(self, part: str, handler: XmlHandler) -> bool:
        """Pass the events of an XML part to a handler as far as it can be read. Return whether all of it can."""
        try:
            self.parse(part, handler)
        except UnreadableFile as error:
            if error.status is not TextStatus.DAMAGED:
                raise
            return False
        return True


def parse_xml(chunks: Iterator[bytes], handler: XmlHandler) -> None:
    """Pass the events of an XML document to a handler. Raises UnreadableFile if it is not well formed or declares entities."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    local = _LocalNames()
    depth = 0
    handle_start, handle_end = handler.start, handler.end

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise UnreadableFile(TextStatus.OVER_LIMITS, "its elements are nested too deep")
        if len(attributes) > 1:
            named = sorted(attributes, key=_has_namespace)  # `r:id` counts before `id`
            attributes = {local[key]: attributes[key] for key in named}
        elif attributes:
            attributes = {local[key]: value for key, value in attributes.items()}
        handle_start(local[name], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handle_end(local[name])

    def refuse_entity(*_: object) -> None:
        raise UnreadableFile(TextStatus.OVER_LIMITS, "it declares XML entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = refuse_entity
    unread, given = bytearray(), 0
    try:
        for chunk in chunks:
            unread += chunk
            begun = max(0, given - parser.CurrentByteIndex) if given else 0
            if begun > _MOST_TAG:
                raise UnreadableFile(TextStatus.OVER_LIMITS, "it has a tag of more than 16 MB")
            if len(unread) < begun:
                continue  # expat would read an unfinished tag from its beginning with each chunk
            parser.Parse(bytes(unread))
            given += len(unread)
            unread.clear()
        if given or unread:
            parser.Parse(bytes(unread), True)  # noqa: FBT003 - it takes no keywords
    except (expat.ExpatError, ValueError, LookupError) as error:  # the latter for encodings
        raise UnreadableFile(TextStatus.DAMAGED, str(error)) from error


class _LocalNames(dict[str, str]):
    """Local names by the names of expat, which have the namespace and a space before them."""

    def __missing__(self, name: str) -> str:
        found = name.rpartition(" ")[2]
        if len(self) < 10_000:
            self[name] = found
        return found


def _has_namespace(name: str) -> bool:
    return " " in name


class Leaves:
    """Collects the text of elements by their name, as in metadata."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._open = ""
        self._attributes: Mapping[str, str] = {}
        self._parts: list[str] = []
        self.elements: list[tuple[str, Mapping[str, str]]] = []
        """All elements with attributes."""

    @classmethod
    def of(cls, package: Package, part: str) -> Leaves:
        """Return those of a part, which may be damaged."""
        leaves = cls()
        with ignoring_damage():  # the text matters more than metadata
            package.parse(part, leaves)
        return leaves

    @classmethod
    def needed(cls, package: Package, part: str) -> Leaves:
        """Return those of a part without which the file cannot be read. Raises UnreadableFile."""
        leaves = cls()
        package.parse(part, leaves)
        return leaves

    def get(self, *names: str) -> str:
        """Return the first of these elements that has text."""
        return next((self.values[name] for name in names if self.values.get(name)), "")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._open, self._parts = name, []
        if attributes and len(self.elements) < 100_000:
            self.elements.append((name, attributes))

    def end(self, name: str) -> None:
        if name == self._open:
            self.values.setdefault(name, " ".join("".join(self._parts).split()))
        self._open = ""

    def text(self, text: str) -> None:
        if self._open:
            self._parts.append(text)


@contextmanager
def ignoring_damage() -> Iterator[None]:
    """Ignore damage of a less important part; limits apply nevertheless."""
    try:
        yield
    except UnreadableFile as error:
        if error.status is not TextStatus.DAMAGED:
            raise


def page_count(text: str) -> int:
    """Return a number of pages in metadata; 0 for anything else."""
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def resolved(part: str, target: str) -> str:
    """Return the part that a relative reference in another one names."""
    target = unquote(target.partition("#")[0])
    joined = target.lstrip("/") if target.startswith("/") else posixpath.join(posixpath.dirname(part), target)
    return posixpath.normpath(joined)
