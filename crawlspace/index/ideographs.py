"""Words of languages that are written without spaces, as FTS5 can find them.

FTS5 takes a run of Chinese, Japanese or Korean characters for one word. So each of these characters is stored as a word of its own, with
a separator between them, and a search for a word is one for its characters side by side. White space between Chinese or Japanese
characters is a line end of the page's source, and separates nothing; before Korean ones it does, as punctuation does before all of them:
a mark is stored there, which FTS5 takes for a word, so that what is on both sides of it is not side by side.

Separator and mark are characters that the text of a page does not have (one counts as white space there, the other is for private use);
they are removed again when a document is read.
"""

from __future__ import annotations

import re

SEPARATOR = "\x1f"
MARK = "\U000ffffd"
_CHARACTERS = (
    "\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
_RUNS = re.compile(f"([{_CHARACTERS}]+)")
_BELOW = bytes(range(0xE3))
"""The bytes of UTF-8 that no character from U+3000 on begins with. Looking for others is several times as fast as a pattern."""
_GAPS = frozenset(("", " "))
_MARKED = SEPARATOR + MARK + SEPARATOR
_DOT = "\u30fb"
"""It separates the words of a foreign name in Japanese, which may be written without it."""


def separated(text: str) -> str:
    """Return a text with separators around each of these characters, and marks between those that are not side by side."""
    if text.isascii() or not text.encode("utf-8", "replace").translate(None, _BELOW):
        return text
    parts = _RUNS.split(text)
    for at in range(1, len(parts), 2):
        run, before = parts[at], parts[at - 1]
        is_apart = "\uac00" <= run[0] <= "\ud7ff" or (before not in _GAPS and _ends_in_punctuation(before))
        parts[at] = f"{_MARKED if is_apart else SEPARATOR}{SEPARATOR.join(run)}{SEPARATOR}"
    return "".join(parts)


def joined(text: str) -> str:
    """Return a text as it was before `separated`."""
    return text.replace(SEPARATOR, "").replace(MARK, "")


def is_ideograph(word: str) -> bool:
    """Return whether a word of the index is one of these characters."""
    return _RUNS.fullmatch(word) is not None


def _ends_in_punctuation(text: str) -> bool:
    last = text.rstrip()[-1:]
    return bool(last) and not last.isalnum() and last != _DOT
