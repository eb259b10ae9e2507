"""The known URLs of a collection as lines of FDSE's `search.pending.txt`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from urllib.parse import quote

from crawlspace.admin.pending.lines import ERROR, WAITING
from crawlspace.admin.pending.realms import Origins
from crawlspace.errors import ExportError
from crawlspace.model import State, UrlState
from crawlspace.state.store import MetaStore

_AT_ONCE = 100_000
"""Lines in memory."""


def realm_of(collection: str) -> str:
    """Return the realm of the URLs of a collection that were not imported, URL-encoded."""
    return quote(collection, safe="")


def number_of(state: UrlState, indexed_at: int) -> int:
    """Return the number of a URL: 0 while it waits, 2 after an error or if it must not be indexed, else when it was indexed.

    `indexed_at` is the time that was imported with it, which holds until its first fetch.
    """
    if state.state is State.PENDING:
        return indexed_at if state.fetched_at is None else WAITING
    if state.state is State.DONE:
        return max(state.fetched_at or 0, indexed_at)
    return ERROR


def pending_lines(states: Iterable[UrlState], store: MetaStore, *, collection: str) -> Iterator[str]:
    """Yield the line of each URL, without its end, sorted by URL. Raises ExportError."""
    origins = Origins(store)
    own = realm_of(collection)
    return sorted_lines(_lines(states, origins, own))


def sorted_lines(lines: Iterable[str], *, at_once: int = _AT_ONCE) -> Iterator[str]:
    """Yield lines in the order of their characters; more than `at_once` lines are sorted in temporary files.

    Raises ExportError.
    """
    part: list[str] = []
    with ExitStack() as files:
        try:
            parts: list[Iterable[str]] = []
            for line in lines:
                part.append(f"{line}\n")
                if len(part) == at_once:
                    file = files.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n"))
                    file.writelines(sorted(part))
                    file.seek(0)
                    parts.append(file)
                    part.clear()
            for line in merge(*parts, sorted(part)):
                yield line[:-1]
        except OSError as error:
            raise ExportError(
                f"the URLs cannot be sorted in {tempfile.gettempdir()}: {error.strerror}; set TMPDIR to a folder with more space"
            ) from error


def _lines(states: Iterable[UrlState], origins: Origins, own: str) -> Iterator[str]:
    for state in states:
        realm, indexed_at = origins.of(state.id)
        yield f"{state.url} {own if realm is None else realm} {number_of(state, indexed_at)}"
