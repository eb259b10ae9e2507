"""Counts the URLs of each folder of each host, from URLs in the order of their text: what is below a folder then comes together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crawlspace.model import State

MOST_LEVELS = 24
"""Levels of folders. What is deeper counts as in the last of them: a trap may have URLs with thousands."""
LEASED = len(State)
"""The number of a leased URL among the states, which the lists show instead of its state."""


class UrlEntry(NamedTuple):
    """A URL as the snapshot has it."""

    url: str
    id: int
    state: int
    """Its State, also while it is leased."""
    status: int | None
    marks: int
    """Bits of `Mark`."""


class Mark:
    """What else can be selected by, as bits."""

    LEASED = 1
    INDEXED = 2
    OVERDUE = 4
    HELD = 8
    DUPLICATE = 16
    ORPHANED = 32


class FolderCounts(NamedTuple):
    """A folder and the numbers of URLs in it and below it. A host is a folder whose `parent` is 0.

    `first` is the position of its first URL; those of the others follow. `direct` counts the URLs in the folder itself.
    """

    id: int
    parent: int
    name: str
    """With its slash; that of a host with its scheme, as in `https://www.example.com/`."""
    first: int
    direct: int
    folders: int
    urls: int
    waiting: int
    done: int
    redirected: int
    errors: int
    excluded: int
    indexed: int
    overdue: int


_COUNTER_OF = {State.PENDING: 0, State.DONE: 1, State.REDIRECTED: 2, State.GONE: 3, State.FAILED: 3, State.EXCLUDED: 4}
_COUNTERS = [_COUNTER_OF[state] for state in State]
_INDEXED, _OVERDUE = 5, 6


class _OpenFolder:
    """A folder whose URLs are being counted."""

    __slots__ = ("counters", "direct", "first", "folders", "id", "name", "prefix", "urls")

    def __init__(self, id: int, prefix: str, name: str, first: int) -> None:
        self.id = id
        self.prefix = prefix
        self.name = name
        self.first = first
        self.direct = self.folders = self.urls = 0
        self.counters = [0] * 7


class FolderCounter:
    """Takes the URLs in the order of their text, and has the counts of the folders that are complete."""

    def __init__(self) -> None:
        self._open: list[_OpenFolder] = [_OpenFolder(0, "", "", 0)]
        self._last_id = 0
        self.position = 0
        """That of the next URL."""
        self._complete: list[FolderCounts] = []

    def add(self, entry: UrlEntry) -> int:
        """Count a URL; return the id of its folder."""
        folder = folder_of(entry.url)
        current = self._open[-1]
        if folder != current.prefix:
            current = self._enter(folder)
        current.direct += 1
        current.urls += 1
        current.counters[_COUNTERS[entry.state]] += 1
        if entry.marks & Mark.INDEXED:
            current.counters[_INDEXED] += 1
        if entry.marks & Mark.OVERDUE:
            current.counters[_OVERDUE] += 1
        self.position += 1
        return current.id

    def complete(self) -> list[FolderCounts]:
        """Return the folders that are complete, each once."""
        found, self._complete = self._complete, []
        return found

    def end(self) -> FolderCounts:
        """Complete all folders; return the counts of all URLs."""
        while len(self._open) > 1:
            self._close()
        return _counts(self._open[0], 0)

    def _enter(self, folder: str) -> _OpenFolder:
        while not folder.startswith(self._open[-1].prefix):
            self._close()
        for prefix, name in _below(folder, self._open[-1].prefix):
            self._last_id += 1
            self._open[-1].folders += 1
            self._open.append(_OpenFolder(self._last_id, prefix, name, self.position))
        return self._open[-1]

    def _close(self) -> None:
        done = self._open.pop()
        parent = self._open[-1]
        parent.urls += done.urls
        parent.counters = [a + b for a, b in zip(parent.counters, done.counters, strict=True)]
        self._complete.append(_counts(done, parent.id))


def _counts(one: _OpenFolder, parent: int) -> FolderCounts:
    return FolderCounts(one.id, parent, one.name, one.first, one.direct, one.folders, one.urls, *one.counters)


def folder_of(url: str) -> str:
    """Return the folder of a URL: all up to the last slash of its path, and of at most MOST_LEVELS levels."""
    end = len(url)
    for mark in "?#":
        at = url.find(mark)
        if 0 <= at < end:
            end = at
    slash = url.rfind("/", 0, end)
    begin = url.find("/", url.find("://") + 3)
    if begin < 0 or slash < begin:
        return url[:end]
    folder = url[: slash + 1]
    if folder.count("/", begin) > MOST_LEVELS:
        for _ in range(MOST_LEVELS - 1):
            begin = folder.index("/", begin + 1)
        folder = folder[: begin + 1]
    return folder


def names_of(folder: str) -> Sequence[str]:
    """Return the names of a folder from its host on; the text itself, where it is none."""
    return [name for _, name in _below(folder, "")]


def parents_of(folder: str) -> Sequence[tuple[str, str]]:
    """Return a folder and those above it, from its host on: each whole, and its name."""
    return list(_below(folder, ""))


def _below(folder: str, above: str) -> Iterator[tuple[str, str]]:
    """Yield the folders from the one below `above` to `folder`: each whole, and its name."""
    at = len(above)
    while at < len(folder):
        slash = folder.find("/", at if above or at else folder.find("://") + 3)
        end = len(folder) if slash < 0 else slash + 1
        yield folder[:end], folder[at:end]
        at = end
