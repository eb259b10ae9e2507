"""Words in a form that FTS5 can find: of languages written without spaces, and of others as they are typed.

FTS5 reads a run of Chinese, Japanese or Korean characters as one word. So each of these characters is stored as a word of its own, with
a separator between them, and a search for a word is one for its characters side by side. White space between Chinese or Japanese
characters is a line end of the page's source, and separates nothing; before Korean ones it does, as punctuation does before all of them:
a mark is stored there, which FTS5 reads as a word, so that the characters before and after it are not side by side.

Letters of Thai, Lao, Khmer and Myanmar are stored in the same way, each with the signs around it: vowels, tones, letters below it. A space
separates words there. FTS5 reads most of these signs as white space, so they are stored as characters for private use.

Separator and mark are characters that the text of a page does not have (one counts as white space there, the other is for private use);
they are removed again when a document is read.

Ligatures, full-width letters, half-width kana and the like are normalised (NFKC), and soft hyphens and zero-width characters left out. After
such a word the original follows, in characters that FTS5 reads as white space. So a document and its snippets are shown as they were written,
and other words cost nothing. A zero-width non-joiner separates the parts of a word in Arabic script, where it is typed
as such or as a space, and stays. Symbols are not normalised (`Windows™` is found by `windows`), nor are fractions (`2½` is not 21/2).
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

from crawlspace.text import COMMON_BYTES, IDEOGRAPHS, SOUTH_EAST_ASIAN

OPEN, CLOSE = "\U000e0002", "\U000e0003"
"""Marks around the words found in a snippet until it is shown."""

_BEGIN, _END = "\U000e0001", "\U000e007f"
_BYTES, _HIGH_BYTES, _FIRST_HIGH = 0xE0100, 0xE0020, 0xC0
"""Characters for the bytes of UTF-8: FTS5 reads no other range as white space, and no text has a run of them."""
_LONGEST = _FIRST_HIGH - 1
"""Characters of a normalised word; a longer one stays as it is."""

_LEFT_OUT = "\xad\u200b-\u200d\u2060-\u2064\u2066-\u2069\ufeff"
"""FTS5 reads the signs of direction of Unicode 6.3 as letters, the others as white space."""
_ARABIC = "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc"
_LETTERS = (
    "\xaa\xb2\xb3\xb9\xba\u0132\u0133\u017f\u2070\u2071\u2074-\u2079\u207f-\u2089\u2090-\u209c\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2128\u212c\u212d\u212f-\u2131\u2133-\u2139\u213c-\u213f\u2145-\u2149\u2160-\u217f\u2460-\u249b\u24ea\ufb00-\ufb06"
    "\ufb13-\ufb17\ufb1d-\ufbb1\ufbd3-\ufd3d\ufd50-\ufd8f\ufd92-\ufdc7\ufdf0-\ufdfb\ufe70-\ufefc\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    "\U0001d400-\U0001d7ff"
)
_IN_WORDS = f"[{_LETTERS}{_LEFT_OUT}{_BEGIN}]"
_WORD = rf"(?:[^\W_{IDEOGRAPHS}{SOUTH_EAST_ASIAN}{_LETTERS}]|[\u0300-\u036f])"
_KANA, _VOICED, _SYMBOLS = (
    "\uff66-\uff9d",
    "\u3099\u309a",
    "\u2f00-\u2fd5\u3038-\u303a\u3200-\u33ff\uf900-\ufaff\U0002f800-\U0002fa1f",
)
_VARIATIONS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_FIRST = re.compile(
    f"[{_KANA}][\uff9e\uff9f]?"
    f"|[\u3046\u304b-\u3072\u30a6\u30ab-\u30f2][{_VOICED}]"
    f"|[{_SYMBOLS}]"
    "|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?"
    f"|(?<=[{IDEOGRAPHS}])[{_VARIATIONS}]"
    f"|({_IN_WORDS}(?:{_WORD}|{_IN_WORDS})*+)"
)
"""Characters of languages without spaces, of which each is a word of the index, with the marks that belong to them; or, as a group, the
rest of another word."""
_ANY = re.compile(f"[{_LETTERS}{_LEFT_OUT}{_BEGIN}{_KANA}{_VOICED}{_SYMBOLS}{_VARIATIONS}\u1100-\u1112]")
_IS_WORD = re.compile(_WORD)
_HIDDEN = re.compile(f"{_BEGIN}([\U000e0100-\U000e01bf])([\U000e0020-\U000e005f\U000e0100-\U000e01bf]*+){_END}")
_REMOVED = re.compile(f"(?:(?!\u200c)[{_LEFT_OUT}{_BEGIN}{_VARIATIONS}])|(?<![{_ARABIC}])\u200c")

SEPARATOR = "\x1f"
MARK = "\U000ffffd"
_RUNS = re.compile(f"([{IDEOGRAPHS}]+|[{SOUTH_EAST_ASIAN}]+)")
_ALSO_NORMALISED = (*"\xaa\xad\xb2\xb3\xb9\xba\u0132\u0133\u200b\u200c\u200d",)
_OTHERS_NORMALISED = re.compile(rb"\xe2(?:\x81[\xa0-\xbf]|\x82[\x80-\x9c]|[\x84\x85\x91\x92\xbc-\xbf])")
"""The normalised ones among characters that begin with other bytes; FTS5 knows the long s."""
_GAPS = frozenset(("", " "))
_MARKED = SEPARATOR + MARK + SEPARATOR
_DOT = "\u30fb"
"""It separates the words of a foreign name in Japanese, which may be written without it."""

_THAI = "[\u0e40-\u0e44\u0ec0-\u0ec4]?[\u0e01-\u0e2e\u0e81-\u0eae\u0edc-\u0edf][\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece]*+"
_KHMER = "[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|[\u17b4-\u17d3\u17dd])*+"
_BURMESE_LETTERS = "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\uaa60-\uaa76\uaa7a\uaa7e\uaa7f"
_BURMESE = (
    f"[{_BURMESE_LETTERS}](?:\u1039[{_BURMESE_LETTERS}]|[\u102b-\u103e\u1056-\u1059\u105e-\u108f\u109a-\u109d\uaa7b-\uaa7d])*+"
)
_CLUSTERS = re.compile(f"{_THAI}|{_KHMER}|{_BURMESE}|.")
_BLOCKS = (
    (range(0x0E00, 0x0F00), 0xFF000),
    (range(0x1000, 0x10A0), 0xFF100),
    (range(0x1780, 0x1800), 0xFF200),
    (range(0xAA60, 0xAA80), 0xFF300),
)
_AS_LETTERS = {code: at + code - block[0] for block, at in _BLOCKS for code in block if not chr(code).isalnum()}
_AS_SIGNS = {at + code - block[0]: code for block, at in _BLOCKS for code in block}
_SIGNS = "\U000ff000-\U000ff31f"
_ANY_SIGN = re.compile(f"[{_SIGNS}]")
_WORDS = re.compile(f"[{IDEOGRAPHS}{SOUTH_EAST_ASIAN}{_SIGNS}]+")


def separated(text: str) -> str:
    """Return a text with separators around each of these characters, marks between those that are not side by side, and words normalised."""
    if text.isascii():
        return text
    raw = text.encode("utf-8", "replace")
    others = raw.translate(None, COMMON_BYTES)
    if others or any(map(text.__contains__, _ALSO_NORMALISED)) or _OTHERS_NORMALISED.search(raw):
        text = _normalised(text) if _ANY.search(text) is not None else text
    if not others or _RUNS.search(text) is None:
        return text
    parts = _RUNS.split(text)
    for at in range(1, len(parts), 2):
        run, before = parts[at], _without_hidden(parts[at - 1])
        if run[0] < "\u3000" or "\uaa60" <= run[0] < "\uaa80":
            is_separate, words = before[-1:].isspace(), SEPARATOR.join(_CLUSTERS.findall(run)).translate(_AS_LETTERS)
        else:
            is_separate, words = "\uac00" <= run[0] <= "\ud7ff" and not (at > 1 and not before), SEPARATOR.join(run)
        is_separate = is_separate or (before not in _GAPS and _ends_in_punctuation(before))
        parts[at] = f"{_MARKED if is_separate else SEPARATOR}{words}{SEPARATOR}"
    return "".join(parts)


def joined(text: str, marks: tuple[str, str] = ("", "")) -> str:
    """Return a text as it was before `separated`, with `marks` in place of OPEN and CLOSE."""
    if text.isascii():
        return text.replace(SEPARATOR, "")
    text = text.replace(SEPARATOR, "").replace(MARK, "")
    if _ANY_SIGN.search(text):
        text = text.translate(_AS_SIGNS)
    return _as_written(text).replace(OPEN, marks[0]).replace(CLOSE, marks[1])


def is_ideograph(word: str) -> bool:
    """Return whether a word of the index is one of these characters."""
    return _WORDS.fullmatch(word) is not None


def _ends_in_punctuation(text: str) -> bool:
    last = text.rstrip()[-1:]
    return bool(last) and not last.isalnum() and last != _DOT


def _normalised(text: str) -> str:
    """Return a text with normalised words, each followed by the hidden original."""
    out, done = [], 0
    for found in _FIRST.finditer(text):
        start = found.start()
        if found[1] is not None:
            first = max(done, start - _LONGEST)
            while start > first and _IS_WORD.match(text, start - 1):
                start -= 1
        word = text[start : found.end()]
        out += [text[done:start], _normalised_word(word) if len(word) <= 2 * _LONGEST else word]
        done = found.end()
    return "".join([*out, text[done:]])


def _as_written(text: str) -> str:
    """Return a text as it was before `_normalised`. It may begin and end within a word, and have OPEN and CLOSE in it."""
    if _BEGIN not in text:
        return text
    pieces = _HIDDEN.split(text)
    out = []
    for shown, length, hidden in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=False):
        at, opened, closed = len(shown), "", ""
        left = ord(length) - _BYTES
        while at and left > 0:
            at -= 1
            if shown[at] == OPEN:
                opened += OPEN
            elif shown[at] == CLOSE:
                closed += CLOSE
            else:
                left -= 1
        out += [shown[:at], opened, bytes(map(_byte, hidden)).decode("utf-8", "replace"), closed]
    return "".join([*out, pieces[-1]])


def _without_hidden(text: str) -> str:
    """Return a text without the hidden originals."""
    return _HIDDEN.sub("", text) if _BEGIN in text else text


@lru_cache(4_096)
def _normalised_word(written: str) -> str:
    word = normalize("NFKC", _REMOVED.sub("", written))
    if word == written or len(word) > _LONGEST:
        return written
    hidden = "".join(map(_character, written.encode("utf-8", "replace")))
    return f"{word}{_BEGIN}{chr(_BYTES + len(word))}{hidden}{_END}"


def _character(byte: int) -> str:
    return chr(_BYTES + byte if byte < _FIRST_HIGH else _HIGH_BYTES + byte - _FIRST_HIGH)


def _byte(character: str) -> int:
    code = ord(character)
    return (code - _BYTES if code >= _BYTES else code - _HIGH_BYTES + _FIRST_HIGH) & 0xFF
