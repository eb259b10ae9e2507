"""The decoded text of an XML file, its elements, and its mistakes: each at the place that the XML parser reports."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from xml.parsers.expat import ExpatError, errors

from crawlspace.errors import Mistake, RuleFileError
from crawlspace.rules.xml.model import NAMESPACE
from crawlspace.text import quoted

MAX_LISTED = 100
"""Mistakes of one file that are listed one by one."""
MAX_SHOWN = 1_000_000
"""Characters of the lines shown with them, about: a file may be one line of 10 million characters, with mistakes all over."""


@dataclass(slots=True)
class Element:
    """The values of a start tag. Line and column count from 1 and are of its `<`; an attribute in a namespace is `namespace name`."""

    name: str
    namespace: str
    attributes: dict[str, str]
    line: int
    column: int
    children: list[Element] = field(default_factory=list)
    spoiled: bool = False
    """A mistake inside was listed; that something is missing here would only repeat it."""


class XmlText:
    """A decoded file; its line ends are `\\n`, as the XML parser counts them."""

    def __init__(self, text: str, *, file: str) -> None:
        self.text = text
        self.file = file
        self._lines = text.split("\n")

    def mistake(self, line: int, column: int, message: str) -> Mistake:
        return Mistake(self.file, line, column, message, self._lines[line - 1])

    def offset(self, line: int, column: int) -> int:
        """Return the index of a place in the text; line and column count from 1."""
        return sum(map(len, self._lines[: line - 1])) + line - 1 + column - 1


class Mistakes:
    """The mistakes of a file as they are found; beyond the first hundred they are only counted."""

    def __init__(self, text: XmlText) -> None:
        self._text = text
        self._found: list[Mistake] = []
        self._shown = 0
        self._more = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def full(self) -> bool:
        """Whether no more are listed: then a message is worth no work."""
        return len(self._found) >= MAX_LISTED or self._shown > MAX_SHOWN

    def at(self, element: Element, message: str) -> None:
        self.at_place(element.line, element.column, message)

    def at_place(self, line: int, column: int, message: str) -> None:
        if self.full:
            self._more += 1
            return
        mistake = self._text.mistake(line, column, message)
        self._found.append(mistake)
        self._shown += len(mistake.text)

    def end_at(self, element: Element, message: str) -> RuleFileError:
        """Return the error with which reading ends at an element, however many mistakes there are before it."""
        return RuleFileError([self._text.mistake(element.line, element.column, message)])

    @property
    def count(self) -> int:
        return len(self._found) + self._more

    def error(self) -> RuleFileError:
        found = sorted(self._found, key=lambda mistake: (mistake.line, mistake.column))
        if self._more:
            last = found[-1]
            message = f"{self._more:,} more mistakes are not shown"
            found.append(Mistake(last.file, last.line, last.column, message, last.text))
        return RuleFileError(found)


def not_well_formed(error: ExpatError, text: XmlText) -> RuleFileError:
    """Return the error of a file that is no XML: what is wrong where the parser stopped, and what to write, if it can be said."""
    line, column = error.lineno, error.offset + 1
    message = f"the file is not well-formed XML: {errors.messages[error.code]}"
    at = text.offset(line, column)
    if error.code == errors.codes[errors.XML_ERROR_UNBOUND_PREFIX]:
        prefix = _PREFIX.search(text.text, at)
        name = (prefix[1] or prefix[2]) if prefix is not None else "ar"
        message = (
            f'the prefix {name}: is not declared; write xmlns:{name}="{NAMESPACE}" into the outermost element, '
            f'as in <Rules xmlns:{name}="{NAMESPACE}">, or leave {name}: off'
        )
    elif error.code == errors.codes[errors.XML_ERROR_UNCLOSED_TOKEN]:
        message = _open_value(text.text, at, len(text.text)) or message
    elif error.code == errors.codes[errors.XML_ERROR_INVALID_TOKEN]:
        start = max(text.text.rfind("<", 0, at), 0)
        if is_open := _open_value(text.text, start, at):
            line, column, message = text.text[:start].count("\n") + 1, start - text.text.rfind("\n", 0, start), is_open
        else:
            message += _at_invalid_token(text.text, at)
    return RuleFileError([text.mistake(line, column, message)])


def _open_value(text: str, start: int, end: int) -> str:
    """Return what to write for a tag with an attribute whose value goes on up to `end`, the next tag or the end; empty if none does."""
    tag = _OPEN_VALUE.match(text, start, start + _LONGEST_TAG)
    if tag is None or tag.end() != end or text[end : text.find(">", end)].count(tag["quote"]) % 2:
        return ""
    value = tag["value"].split("\n")[0].rstrip(" />")
    close = ">" if tag["element"].rpartition(":")[2] in _HOLDING else "/>"
    return f"the value of {tag['attribute']} has no {tag['quote']} at its end; write {tag['before']}{value}{tag['quote']}{close}"


def _at_invalid_token(text: str, at: int) -> str:
    """Return what may be wrong at a place where the parser has stopped inside a tag or text."""
    if _ENTITY.search(text, max(0, at - 50), at + 1) or (text.startswith("<", at) and _IN_VALUE.search(text, at - 1, at)):
        return "; in a value, & is written &amp; and < is written &lt;"
    if text.startswith("<", at):
        return "; the tag before it has no end, which is written /> or >"
    return "; no file of XML has this character" if text[at : at + 1] < " " else "; is a quotation mark missing before it?"


_PREFIX = re.compile(r"</?([\w.-]+):[\w.-]+|\s(?!xml(?:ns)?:)([\w.-]+):[\w.-]+\s*=")
_LONGEST_TAG = 10_000
_OPEN_VALUE = re.compile(
    r"""(?P<before><(?P<element>[\w:.-]+)(?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s+(?P<attribute>[\w:.-]+)\s*=\s*(?P<quote>["']))"""
    r"""(?P<value>(?:(?!(?P=quote))[^<])*)"""
)
_HOLDING = frozenset({"Rules", "Rule", "And", "Or", "Not", "CrawlConfig", "Crawler"})
"""Elements that have others inside."""
_ENTITY = re.compile(r"&[#\w.-]*.?\Z", re.DOTALL)
_IN_VALUE = re.compile(r"[^\s\"'/>]")


def decode(data: bytes, *, file: str) -> str:
    """Return the text of an XML file without byte-order mark. Raises RuleFileError.

    The encoding is the byte-order mark's, else that of UTF-16 if the file looks so, else the declared one, else UTF-8 (XML 1.0, F.1).
    """
    if data.startswith(_UTF_32):
        raise RuleFileError([Mistake(file, 1, 1, "the file is in UTF-32; save it as UTF-8", "")])
    encoding, skip = "utf-8", 0
    for mark, name in _MARKS:
        if data.startswith(mark):
            encoding, skip = name, len(mark)
            break
    else:
        if b"\0" in data[:2]:
            encoding = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
        elif declared := _DECLARED.match(data):
            encoding = declared["encoding"].decode("ascii")
            if not _is_readable(encoding):
                message = f"the file cannot be read as {quoted(encoding)}, the encoding that it names; save it as UTF-8, and name that here"
                raise _at_end_of(data[: declared.start("encoding")].decode("latin-1"), data.decode("latin-1"), message, file=file)
    try:
        text = data[skip:].decode(encoding)
    except UnicodeDecodeError as error:
        before = data[skip:][: error.start].decode(encoding, "ignore")
        message = (
            f"the text here is not {encoding.upper()}; save the file as UTF-8, or name its encoding in the first line, "
            'as in <?xml version="1.0" encoding="windows-1252"?>'
        )
        raise _at_end_of(before, data[skip:].decode(encoding, "replace"), message, file=file) from error
    return _line_ends(text)


_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, *("<".encode(encoding) for encoding in ("utf-32-le", "utf-32-be")))
"""How such a file begins (XML 1.0, F.1); the first also is the mark of UTF-16, with a character that no XML has behind it."""
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["'](?P<encoding>[A-Za-z][A-Za-z0-9._-]*)["']""")
# Encodings in which the declaration can be read before they are known. Python has others that are none of texts, or slow.
_READABLE = re.compile(r"utf-8|ascii|iso8859|cp\d|koi8|mac|shift_jis|euc_|gb|big5|tis-620")


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _at_end_of(before: str, text: str, message: str, *, file: str) -> RuleFileError:
    """Return the error of a mistake in the text behind so much of it."""
    lines = _line_ends(before).split("\n")
    return RuleFileError([XmlText(_line_ends(text), file=file).mistake(len(lines), len(lines[-1]) + 1, message)])


def _is_readable(encoding: str) -> bool:
    try:
        return _READABLE.match(codecs.lookup(encoding).name) is not None
    except LookupError:
        return False
