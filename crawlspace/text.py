"""Text for people: untrusted text made printable, numbers with their nouns. And glob patterns.

Arguments, settings, files, pages, servers and the shared store can contain anything. Their text goes into messages, logs and
command output only through one of these:

* `printable`: a value inside a sentence; `quoted`: the same with quotation marks (text only; other values as `repr`);
* `printable_message`: a whole sentence, as the last step before printing; values already made printable don't change;
* `excerpt`: a line of a file around a position;
* `escaped`: control characters only, for complete output such as JSON and URLs.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple

EXCERPT = 200
"""Maximal characters of a value in a sentence."""
MESSAGE = 2048
"""Maximal characters of a sentence."""
HIDDEN = "…"
"""Replaces credentials and cut-off text."""
IDEOGRAPHS = (
    "\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
"""Chinese, Japanese and Korean, for a set of characters in a pattern: of these languages, each character is a word of the index."""
SOUTH_EAST_ASIAN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\uaa60-\uaa76\uaa7a-\uaa7f"
)
"""The same of Thai, Lao, Myanmar and Khmer: letters and the marks around them."""
COMMON_BYTES = bytes(byte for byte in range(256) if byte < 0xE0 or byte == 0xE2)
"""Bytes of UTF-8 that no character of these languages begins with. Looking for others is several times as fast as a pattern."""


def printable(value: object, *, most: int = EXCERPT) -> str:
    """Return a value as text for a sentence: one line, at most `most` characters."""
    return cut(escaped(without_credentials(_text(value)[:_READ])), most)


def quoted(value: object, *, most: int = EXCERPT) -> str:
    """Return text as `repr` writes it, and other values as `printable` does."""
    if not isinstance(value, str):
        return printable(value, most=most)
    text = repr(cut(without_credentials(value[:_READ]), most))
    return text if len(text) <= most + 2 else f"{text[:most]}{HIDDEN}{text[-1]}"  # escapes have made it longer


def printable_message(sentence: str, *, most: int = MESSAGE) -> str:
    """Return one or more lines of text without credentials and control characters, of limited length."""
    return cut(escaped(without_credentials(sentence[:_READ]), keep_lines=True), most)


def escaped(text: str, *, keep_lines: bool = False) -> str:
    r"""Return the text with control, bidirectional and NUL characters as `\x1b` or `\u202e`; as in JSON where that has an escape.

    `keep_lines` keeps tabs and line ends.
    """
    return (_STEERING if keep_lines else _STEERING_OR_BREAKING).sub(_escape, text)


def without_credentials(text: str) -> str:
    """Return the text with the user information and query passwords of all URLs hidden, also of malformed ones."""
    shown, _ = _hide(text, 0)
    return shown


def excerpt(line: str, place: int, *, width: int = 120) -> tuple[str, int]:
    """Return the part of a line around index `place`, at most EXCERPT characters, and the index in that part."""
    first = max(0, place - _READ // 2)
    line, place = _hide(line[first : first + _READ].replace("\t", " "), place - first)
    start, end = 0, len(line)
    if end > width:
        start = max(0, min(place - width // 2, end - width))
        end = start + width
    cells = [escaped(character) for character in line[start:end]]
    room = EXCERPT - 2
    while sum(map(len, cells)) > room:  # escapes are longer than the characters
        if place - start > len(cells) // 2:
            cells.pop(0)
            start += 1
        else:
            cells.pop()
            end -= 1
    head, tail = HIDDEN if start else "", HIDDEN if end < len(line) else ""
    return f"{head}{''.join(cells)}{tail}", len(head) + sum(map(len, cells[: place - start])) + max(0, place - end)


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, with an ellipsis if something is cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}{HIDDEN}"


_READ = 1 << 16
"""Maximal characters examined: hostile text may have megabytes."""
_UNSEEN = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f"
"""Direction marks, byte-order mark, and tag characters."""
_NO_TEXT = "\u2028\u2029\ud800-\udfff"
"""Line and paragraph separators, and surrogates."""
_STEERING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_UNSEEN}{_NO_TEXT}]")
_STEERING_OR_BREAKING = re.compile(f"[\x00-\x1f\x7f-\x9f{_UNSEEN}{_NO_TEXT}]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if code > 0xFFFF:  # as JSON writes it
        return "".join(f"\\u{half:04x}" for half in (0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code & 0x3FF)))
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(_without_secrets(value))


def _without_secrets(value: object, depth: int = 0) -> object:
    """Return a setting's value, with the values of secret-looking names hidden."""
    if depth > 4:
        return value
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if isinstance(key, str) and _SECRET.search(key) else _without_secrets(inner, depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)([_without_secrets(inner, depth + 1) for inner in value]) if type(value) in {list, tuple} else value
    return value


_SECRET = re.compile(r"pass|pwd|secret|token|api.?key|credential|authorization|cookie", re.IGNORECASE)


# --- credentials ------------------------------------------------------------------------------------------------------


def _hide(text: str, place: int) -> tuple[str, int]:
    """Return the text with credentials hidden, and the new position of `place`."""
    if "@" not in text and "=" not in text:
        return text, place
    parts: list[str] = []
    done, moved = 0, place
    for start, end in _merged([*_user_information(text), *_passwords(text)]):
        parts += (text[done:start], HIDDEN)
        done = end
        if place >= end:
            moved -= end - start - len(HIDDEN)
        elif place > start:
            moved -= place - start
    return "".join([*parts, text[done:]]), moved


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans in order, overlapping ones merged."""
    first, last = 0, 0
    for start, end in sorted(spans):
        if start < last:
            last = max(last, end)
            continue
        if first < last:
            yield first, last
        first, last = start, end
    if first < last:
        yield first, last


def _passwords(text: str) -> Iterator[tuple[int, int]]:
    for found in _PASSWORD.finditer(text):
        yield found.span(1)


_PASSWORD = re.compile(r"[?&;](?:password|passwd|pwd|secret)=([^&;#\s'\"]+)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?::[/\\]+|[/\\]{2,})([^/\\?#\n]*)")
_WORD = re.compile(r"\S+")
_BLANK = re.compile(r"\s")
_NO_PASSWORD = re.compile(r"[^:\[\]]*|(?:[^:]*|\[[^\]]*\]):\d*[^\w]*|\[[^\]]*\]|[^:]*:\d*[\"'),.;>]+.*")
"""The authority of a URL without user information."""


def _user_information(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans (start, end) of user information, without the `@`, also where a parser would not recognise it."""
    ats = [found.start() for found in re.finditer("@", text)]
    if not ats:
        return
    blanks = [found.start() for found in _BLANK.finditer(text)]
    done = 0
    for found in _AUTHORITY.finditer(text):
        start, end = found.span(1)
        if start < done:
            continue
        authority = found[1]
        word = authority.split(maxsplit=1)[0] if authority[:1].strip() else ""
        at = word.rfind("@")
        if at < 0 and not _NO_PASSWORD.fullmatch(word):  # user:pass with a blank or slash in the password
            at = authority.rfind("@")
            if at < 0:
                stop = bisect_left(blanks, end)
                last = bisect_left(ats, blanks[stop] if stop < len(blanks) else len(text)) - 1
                at = ats[last] - start if last >= 0 and ats[last] > end else -1
        if at >= 0:
            done = start + at
            yield start, done
    yield from _without_slashes(text)


def _without_slashes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of `user:password@host` and `http:user:password@host`."""
    for found in _WORD.finditer(text):
        word, begin = found[0], found.start()
        colon = word.find(":")
        if colon < 0 or word.find("@", colon) < 0 or word[colon + 1 : colon + 2] in {"/", "\\"}:
            continue
        user = max(map(word[:colon].rfind, "\"'`<(=[{,;/\\")) + 1
        name = word[user:colon].lower()
        if name == "mailto":
            continue
        path = _PATH.search(word, colon)
        end = path.start() if path else len(word)
        if path and word[colon + 1 : end].isdigit():  # host:port/path@there
            continue
        at = word.rfind("@", colon, end)
        if at < 0:
            at = word.rfind("@")
        yield begin + (colon + 1 if name in _SCHEMES else user), begin + at


_PATH = re.compile(r"[/\\?#]")
_SCHEMES = ("http", "https", "redis", "rediss", "unix", "sentinel", "ftp")


# --- plural --------------------------------------------------------------------------------------------------------


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun; `plural` if that is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Return `340 ms`, `2.5 s`, `3 min`, `5 h`, `4 days`."""
    if seconds < 1:
        return f"{seconds * 1000:,.0f} ms"
    if seconds < 120:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    for unit, length in (("min", 60), ("h", 3600)):
        if seconds < length * (120 if unit == "min" else 72):
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds / 86_400:,.0f} days"


def verb(number: int, one: str, many: str) -> str:
    """Return the form of a verb for a number: `is` or `are`."""
    return one if number == 1 else many


# --- globs ---------------------------------------------------------------------------------------------------------


class Glob(NamedTuple):
    """A pattern split at its stars."""

    head: str
    inner: tuple[str, ...]
    """The texts between two stars."""
    tail: str | None
    """None for a pattern without a star."""

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches a text; each part is searched once, from left to right."""
        head, inner, tail = self
        if tail is None:
            return text == head
        at, end = len(head), len(text) - len(tail)
        if end < at or not text.startswith(head) or not text.endswith(tail):
            return False
        for literal in inner:
            at = text.find(literal, at, end)
            if at < 0:
                return False
            at += len(literal)
        return True


def compile_glob(pattern: str) -> Glob:
    """Return a pattern in compiled form."""
    head, *rest = pattern.split("*")
    return Glob(head, tuple(filter(None, rest[:-1])), rest[-1] if rest else None)
