"""Write the inline content of a page as Markdown: text, code, emphasis, links and images of one paragraph, heading or cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_SPACES = re.compile(r"\s+")
_ESCAPED = re.compile(
    r"[*`]"
    r"|\\(?=[!-/:-@\[-`{-~\0\1]|\Z)"
    r"|(?<![^\W_])_|_(?![^\W_])"
    r"|\](?=[(\[:]|\Z)"
    r"|<(?=[a-zA-Z/!?]|\Z)"
    r"|&(?=#|[a-zA-Z][a-zA-Z0-9]*;)"
    r"|~(?=~)|!\Z"
)
"""Characters that could begin or end something else than text, where they stand."""
_LINE_START = re.compile(r"#{1,6}(?=\s|\Z)|[-+](?=\s|\Z)|[-=:|](?=[-=:|\s]*\Z)|>|~~~|\[(?=[ xX]\])|([0-9]{1,9})(?=[.)](?:\s|\Z))")
"""What would make a line of text a heading, a list item, a quote, or a part of a table."""
_REFERENCE = re.compile(r"&(?=#|[a-zA-Z][a-zA-Z0-9]*;)")
_BACKTICKS = re.compile("`+")
_IN_URL = {
    " ": "%20",
    "<": "%3C",
    ">": "%3E",
    "\\": "%5C",
    "(": "\\(",
    ")": "\\)",
    "\n": "%0A",
    "\r": "%0D",
    "\t": "%09",
    "|": "%7C",
}
_TO_URL = str.maketrans(_IN_URL)
_MARKERS = {"strong": "**", "em": "*"}


class Inline(NamedTuple):
    """A piece of inline content. `kind`: text, code, break, image, or the start or the end of strong, em or link."""

    kind: str
    text: str = ""
    url: str = ""


SPACE = Inline("text", " ")


def inline_markdown(pieces: Sequence[Inline], *, in_cell: bool = False, in_heading: bool = False) -> str:
    """Return inline content as Markdown; several lines only where the page has a line break. Empty if there is nothing to see.

    Emphasis that Markdown cannot express, such as that of a part of a word that ends with a sign, is left out.
    """
    writer = _InlineWriter(one_line=in_cell or in_heading)
    for piece in _with_whole_code(pieces):
        writer.write(piece)
    text = writer.result()
    if in_cell:
        return text.replace("|", "\\|")
    if in_heading:
        return re.sub(r"(#+)\Z", r"\\\1", text)
    return "\\\n".join(map(_escaped_start, text.split("\\\n")))


def inline_text(pieces: Sequence[Inline], *, in_cell: bool = False, in_heading: bool = False) -> str:
    """Return inline content without markup; several lines only where the page has a line break."""
    line_break = " " if in_cell or in_heading else "\0"
    text = "".join(line_break if piece.kind == "break" else piece.text for piece in pieces)
    text = _SPACES.sub(" ", text).strip(" \0")
    return text.replace("|", "\\|") if in_cell else re.sub(" *\0[ \0]*", "\n", text)


def code_fence(text: str, language: str) -> list[str]:
    """Return the lines of a code block, between fences longer than any run of backticks in it."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return [fence + language, *text.split("\n"), fence]


def escaped(text: str) -> str:
    """Return text so that it is no markup, except at the beginning of a line."""
    return _ESCAPED.sub(r"\\\g<0>", text)


def destination(url: str) -> str:
    """Return a URL as it is written in a link."""
    return _REFERENCE.sub(r"\\&", url.translate(_TO_URL))


def _with_whole_code(pieces: Sequence[Inline]) -> list[Inline]:
    """Return the pieces with neighbouring texts, and neighbouring code, in one: it would not be read as two."""
    found: list[list[Inline]] = []
    for piece in pieces:
        if found and piece.kind in ("text", "code") and found[-1][0].kind == piece.kind:
            found[-1].append(piece)
        else:
            found.append([piece])
    return [Inline(same[0].kind, "".join(piece.text for piece in same), same[0].url) for same in found]


class _InlineWriter:
    """The Markdown so far as parts, and the starts of what is open in it, as positions of parts."""

    def __init__(self, *, one_line: bool) -> None:
        self._one_line = one_line
        self._parts: list[str] = []
        self._last = " "
        """The last character, except of a marker; a space at the beginning of a line."""
        self._space = False
        """Whether a space is due before what comes next."""
        self._open: dict[str, tuple[int, str, str]] = {}
        """By kind: position of the marker, the character before it, URL."""
        self._closed: tuple[str, int, int] | None = None
        """Kind and markers of the emphasis that has just ended."""
        self._content: dict[str, bool] = {}

    def result(self) -> str:
        for kind in reversed(list(self._open)):
            self._end(kind)
        text = "".join(self._parts)
        while text.endswith("\\\n"):
            text = text.removesuffix("\\\n")
        return text

    def write(self, piece: Inline) -> None:
        kind = piece.kind
        if kind == "text":
            self._text(piece.text)
        elif kind == "code":
            self._code(piece.text)
        elif kind == "break":
            self._break()
        elif kind == "image":
            self._put(f"![{_bracketed(piece.text)}]({destination(piece.url)})", first="!", last=")")
        elif kind[0] == "/":
            self._end(kind[1:])
        else:
            self._start(kind, piece.url)

    def _text(self, text: str) -> None:
        words = _SPACES.sub(" ", text)
        self._space = self._space or words.startswith(" ")
        stripped = words.strip(" ")
        if stripped:
            self._put(_bracketed(stripped) if "link" in self._open else escaped(stripped), first=stripped[0], last=stripped[-1])
            self._space = words.endswith(" ")

    def _code(self, text: str) -> None:
        words = _SPACES.sub(" ", text)
        self._space = self._space or words.startswith(" ")
        stripped = words.strip(" ")
        if stripped:
            fence = "`" * (_longest_run(stripped) + 1)
            pad = " " if stripped[0] == "`" or stripped[-1] == "`" else ""
            self._put(f"{fence}{pad}{stripped}{pad}{fence}", first="`", last="`")
            self._space = words.endswith(" ")

    def _break(self) -> None:
        if self._one_line or self._open:
            self._space = True
        elif self._parts and not self._parts[-1].endswith("\\\n"):
            self._parts.append("\\\n")
            self._last, self._space, self._closed = " ", False, None

    def _put(self, written: str, *, first: str, last: str) -> None:
        """Write something visible, with the space that is due before it outside of markers that have just begun."""
        if self._space and self._last != " ":
            self._parts.append(" ")
            self._last = " "
        elif self._closed and self._last_is_sign() and not _is_space_or_sign(first):
            _, start, end = self._closed
            self._parts[start] = self._parts[end] = ""
        self._closed = None
        self._space = False
        for kind, (at, _, url) in list(self._open.items()):
            if at < 0:
                if kind in _MARKERS and _is_sign(first) and not _is_space_or_sign(self._last):
                    self._open[kind] = (len(self._parts), "dropped", url)
                    self._parts.append("")
                else:
                    self._open[kind] = (len(self._parts), self._last, url)
                    self._parts.append(_MARKERS.get(kind, "["))
        self._parts.append(written)
        self._last = last

    def _last_is_sign(self) -> bool:
        return _is_sign(self._last)

    def _start(self, kind: str, url: str) -> None:
        """Begin emphasis or a link; its marker is written with what comes first in it."""
        if kind in self._open:
            self._open[kind] = self._open.pop(kind)
            return
        if self._closed and kind in _MARKERS and not self._space:
            same, start, end = self._closed
            if same == kind:  # goes on
                self._parts[end] = ""
                self._open[kind] = (start, "", "")
                self._closed = None
            else:
                self._open[kind] = (len(self._parts), "dropped", "")
                self._parts.append("")
            return
        self._open[kind] = (-1, "", url)

    def _end(self, kind: str) -> None:
        if kind not in self._open:
            return
        for inner in reversed(list(self._open)):
            at, before, url = self._open.pop(inner)
            if at >= 0:
                if inner == "link":
                    self._parts.append(f"]({destination(url)})")
                    self._last = ")"
                    self._closed = None
                elif before != "dropped":
                    self._closed = (inner, at, len(self._parts))
                    self._parts.append(_MARKERS[inner])
            if inner == kind:
                break


def _escaped_start(line: str) -> str:
    """Return a line of text that begins no heading, list, quote or table."""
    match = _LINE_START.match(line)
    if match is None:
        return line
    at = match.end() if match[1] else 0
    return f"{line[:at]}\\{line[at:]}"


def _bracketed(text: str) -> str:
    """Return the text of a link or an image."""
    return escaped(_SPACES.sub(" ", text).strip().replace("[", "\0").replace("]", "\1")).replace("\0", "\\[").replace("\1", "\\]")


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)


def _is_sign(character: str) -> bool:
    return not character.isalnum() and not character.isspace()


def _is_space_or_sign(character: str) -> bool:
    return not character.isalnum()
