"""The reports of URLs as lines of a file: JSON lines and CSV, as `scrapy urls` prints them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator

from crawlspace.admin.links import Referring
from crawlspace.admin.report import UrlReport
from crawlspace.text import MESSAGE, printable

Rows = Iterable[tuple[UrlReport, Referring | None]]
"""URLs, each with the pages that link to it, where these are wanted."""


def json_lines(rows: Rows) -> Iterator[str]:
    """Yield a line for each URL, with its end."""
    for known, referring in rows:
        row = {**known.as_json(), **({} if referring is None else referring.as_json())}
        yield f"{json.dumps(row, ensure_ascii=False)}\n"


def csv_lines(rows: Rows) -> Iterator[str]:
    """Yield the names of the values, and a line for each URL: those of JSON but for earlier fetches,
    the pages that link to a URL in one column, with spaces between."""
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    begun = False
    for known, referring in rows:
        row = {name: value for name, value in known.as_json().items() if name != "fetches"}
        if referring is not None:
            row.update(referring.as_json(), referrers=" ".join(printable(url, most=MESSAGE) for url in referring.urls))
        if not begun:
            table.writerow(row)
            begun = True
        table.writerow(row.values())
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def status_range(text: str) -> range | None:
    """Parse a status code, or a class such as 4xx; None for another text."""
    if text[-2:].lower() == "xx" and text[:-2].isdecimal() and len(text) <= 6:
        first = int(text[:-2]) * 100
        return range(first, first + 100)
    return range(int(text), int(text) + 1) if text.isdecimal() and len(text) <= 6 else None
