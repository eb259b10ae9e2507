"""Reports of users who miss a page, kept in a file of the collection until an administrator removes them."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path

from crawlspace.errors import ConfigError, UsageError
from crawlspace.private_files import make_folder, replace_file
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

MOST_REPORTS = 500
"""Reports that a collection keeps: no further ones are taken."""
LONGEST_URL = 2_000
LONGEST_COMMENT = 500
_writing = threading.Lock()


@dataclass(frozen=True, slots=True)
class MissingPage:
    """A report. `at` is in seconds since 1970; `words` is what was searched for."""

    url: str
    words: str
    comment: str
    at: int
    times: int = 1


class MissingPages:
    """The reports of a collection, in its data folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "missing-pages.json"

    def all(self) -> list[MissingPage]:
        """Return the reports, the newest first. Raises ConfigError."""
        return sorted(self._read().values(), key=lambda one: -one.at)

    def add(self, url: str, *, words: str, comment: str, at: int) -> None:
        """Keep a report; one of the same URL counts once more. Raises UsageError and ConfigError."""
        try:
            parsed = parse(url.strip())
        except MalformedUrl:
            parsed = None
        if parsed is None or parsed.scheme not in DEFAULT_PORTS:
            raise UsageError("Give the address of the page, as in https://www.example.com/page.html")
        text = parsed.text
        if len(text) > LONGEST_URL:
            raise UsageError("This address is too long")
        with _writing:
            reports = self._read()
            old = reports.pop(text, None)
            if old is None and len(reports) >= MOST_REPORTS:
                raise UsageError("There are too many reports at present; please tell the administrator in another way")
            times = 1 if old is None else old.times + 1
            reports[text] = MissingPage(text, words[:LONGEST_COMMENT], comment[:LONGEST_COMMENT], at, times)
            self._write(reports)

    def remove(self, url: str) -> None:
        """Remove the report of a URL, if there is one. Raises ConfigError."""
        with _writing:
            reports = self._read()
            if reports.pop(url, None) is not None:
                self._write(reports)

    def _read(self) -> dict[str, MissingPage]:
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
            return {row["url"]: MissingPage(**row) for row in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"the reports of missing pages cannot be read from {self._path}: remove the file") from error

    def _write(self, reports: dict[str, MissingPage]) -> None:
        rows = [
            {"url": one.url, "words": one.words, "comment": one.comment, "at": one.at, "times": one.times}
            for one in reports.values()
        ]
        try:
            make_folder(self._path.parent)
            replace_file(self._path, json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"))
        except OSError as error:
            raise ConfigError(f"the report cannot be written to {self._path}: {error.strerror}") from error
