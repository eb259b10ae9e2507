"""Soft errors: error pages with status 200, recognised by URL, title and text, and treated as the error.

CRAWLSPACE_SOFT_ERRORS has rows of URL pattern, title pattern, text pattern and status code; the first matching row applies:

    ("http://www.example.com/hr/*", "Sorry, the page*", "*", 404)
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from crawlspace.errors import SettingError
from crawlspace.text import Glob, compile_glob, quoted

NAME = "CRAWLSPACE_SOFT_ERRORS"
Row = tuple[str, str, str, int]
"""URL pattern, title pattern, text pattern, code. An empty pattern is `*`."""


class SoftErrors:
    """Immutable after compilation. False if there are no rows."""

    __slots__ = ("_rows", "content_hash")

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._rows = [(_glob(url.strip()), _glob(_folded(title)), _glob(_folded(text)), code) for url, title, text, code in rows]
        self.content_hash = blake2b(repr([tuple(row) for row in rows]).encode(), digest_size=16).hexdigest() if rows else ""
        """Changes whenever a result may change."""

    def __bool__(self) -> bool:
        return bool(self._rows)

    def status_of(self, url: str, *, title: str, text: str) -> int | None:
        """Return the status code to use instead of 200 for a page; None if no row matches.

        `url` is in normal form and compared with case. Title and text are compared without case and runs of white space.
        """
        found_title = found_text = None
        for of_url, of_title, of_text, code in self._rows:
            if of_url is not None and not of_url.matches(url):
                continue
            if of_title is not None:
                found_title = _folded(title) if found_title is None else found_title
                if not of_title.matches(found_title):
                    continue
            if of_text is not None:
                found_text = _folded(text) if found_text is None else found_text
                if not of_text.matches(found_text):
                    continue
            return code
        return None


def read_soft_errors(value: object) -> SoftErrors:
    """Read the setting. Raises SettingError with the number of the first wrong row."""
    if value is None or value == "":
        return SoftErrors()
    if not isinstance(value, list | tuple):
        raise SettingError(f"{NAME} is {quoted(value)}; it must be a list of rows like {_EXAMPLE}")
    return SoftErrors([_row(f"row {number} of {NAME}", row) for number, row in enumerate(value, 1)])


def _glob(pattern: str) -> Glob | None:
    """Return a compiled pattern; None if it matches everything."""
    return compile_glob(pattern) if pattern.strip("*") else None


_EXAMPLE = '("http://www.example.com/hr/*", "Sorry, the page*", "*", 404)'


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _row(where: str, row: object) -> Row:
    if not isinstance(row, list | tuple) or len(row) != 4:
        raise SettingError(
            f"{where} is {quoted(row)}; it must be a URL pattern, a title pattern, a text pattern and a code, as {_EXAMPLE}"
        )
    url, title, text, code = row
    for name, pattern in (("URL", url), ("title", title), ("text", text)):
        if not isinstance(pattern, str):
            raise SettingError(f'{where}: the {name} pattern is {quoted(pattern)}; it must be a text; "*" matches everything')
    number = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3 else code
    if not isinstance(number, int) or isinstance(number, bool) or not 400 <= number <= 599:
        raise SettingError(f"{where}: the code is {quoted(code)}; it must be an error from 400 to 599, as 404")
    if not any(pattern.replace("*", "").strip() for pattern in (url, title, text)):
        raise SettingError(
            f"{where} is {quoted(row)} and would turn every page into an error; restrict it with one of the patterns"
        )
    return url, title, text, number
