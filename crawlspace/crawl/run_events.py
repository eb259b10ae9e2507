"""What became of each URL in a run, event by event, in a file of each process that crawls.

A file has records of one size and no index: a header, then an event for each outcome, and for each URL that a change of the rules has moved.
The events of a transaction are written right before it, and removed if it fails. Only after a kill in between they are there although the
states are as before; the URL is fetched again, and has another event. What is not whole at the end of a file is ignored.

A run that is very long, as a crawl that does not end, has two files at most: one that is full becomes the older one of the two.

After the event of a URL that is forgotten, records with its text follow, because no store knows it by its key any more.

An event has: the key of the URL, a time, the status code before and after (0: none), the state before (4 bits) and after, flags, the duration
of the download in milliseconds (all bits: unknown), the received bytes of the body, and the number of records with text.
"""

from __future__ import annotations

import os
import re
import struct
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from crawlspace import private_files
from crawlspace.clock import Clock
from crawlspace.errors import RunFileError
from crawlspace.model import State, UrlState
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.fetch_history import DocumentChange
from crawlspace.state.views import FoldedUrl
from crawlspace.status import Status

EVENTS_FOLDER = "runs"
"""The folder of the files, in the data folder of the collection."""
ENDING = ".events"
_MAGIC, _VERSION = b"crawlrun", 1
_HEADER = struct.Struct("<8sHIIH8x")
PART_BYTES = 128 << 20
"""The size at which a file is full: five million events."""
_OLDER = ".older"
_EVENT = struct.Struct("<qIHHBBIIH")
SIZE = _EVENT.size
_IN_BEFORE, _IN_AFTER, _BY_RULES, _FORGOTTEN, _IS_EVENT = 1, 2, 4, 8, 128
_CHANGE_SHIFT = 4
_UNKNOWN = 0xFFFFFFFF
_AT_ONCE = 500
_BLOCK = SIZE * 40_000
_TEXTS = 0xFFFF


class RunEvent(NamedTuple):
    """What became of a URL. In the index is what had, or gets, a document of its own: a new one that proves to be a duplicate counts."""

    key: int
    at: int
    status_before: int | None
    status_after: int | None
    state_before: State
    state_after: State
    in_index_before: bool
    in_index_after: bool
    change: DocumentChange
    by_rules: bool
    """A change of the rules has moved it; else it is the outcome of a fetch, or follows from one."""
    forgotten: bool
    took_s: float | None
    body_bytes: int
    url: str = ""
    """Of a forgotten URL."""


class EventStore(Protocol):
    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]: ...


class RunEvents:
    """Writes the events of this process. Raises RunFileError where they cannot be written."""

    def __init__(
        self, folder: Path, name: str, *, run: int, store: EventStore, clock: Clock, part_bytes: int = PART_BYTES
    ) -> None:
        self._folder, self._store, self._clock = folder, store, clock
        self._path, self.run, self._part_bytes = folder / name, run, part_bytes
        self._part, self._end = 1, SIZE
        self._noted = SIZE
        """Where the events of the last call begin."""
        self._alone = threading.Lock()
        try:
            private_files.make_folder(folder)
            self._fd = self._new_file(self._part)
        except OSError as error:
            raise unwritable(folder, error) from error

    def note(self, changes: Sequence[Change]) -> None:
        """Write the events of changes that are recorded next: of fetches, and of other changes that take a document out of the index."""
        now = int(self._clock.now())
        self._add(b"".join(_of_change(change, now) for change in changes if change.fetch is not None or _leaves(change)))

    def take_back(self) -> None:
        """Remove the events of the last call, because its changes could not be recorded."""
        with self._alone:
            self._cut(self._noted)

    def note_rules(self, found: Reclassified) -> None:
        """Write the events of a change of the rules, which is applied next."""
        now = int(self._clock.now())
        for ids, state, status, forgets in (
            (found.given_up, State.EXCLUDED, int(Status.EXCLUDED_HERE), False),
            (found.excluded, State.EXCLUDED, int(Status.EXCLUDED), False),
            (found.unindexed, State.EXCLUDED, int(Status.NOINDEX), False),
            (found.returned, State.PENDING, 0, False),
            (found.forgotten, State.EXCLUDED, 0, True),
        ):
            for first in range(0, len(ids), _AT_ONCE):
                urls = self._store.urls_to_fold(ids[first : first + _AT_ONCE])
                self._add(b"".join(_of_rules(url, state, status, now, forgets=forgets) for url in urls))

    def close(self) -> None:
        """Wait until all is on the disk."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        finally:
            os.close(self._fd)

    def _add(self, packed: bytes) -> None:
        with self._alone:
            try:
                if self._end >= self._part_bytes:
                    self._begin_part()
                self._noted = self._end
                _write(self._fd, packed)
                self._end += len(packed)
            except OSError as error:
                self._cut(self._end)  # as if nothing had been written
                raise unwritable(self._folder, error) from error

    def _cut(self, end: int) -> None:
        with suppress(OSError):
            os.ftruncate(self._fd, end)
            os.lseek(self._fd, end, os.SEEK_SET)
            self._end = end

    def _begin_part(self) -> None:
        """Make the full file the older one, and continue in a new one; if that fails, the full one stays in use."""
        older, part = _older_of(self._path), min(self._part + 1, 0xFFFF)
        self._path.replace(older)
        try:
            new = self._new_file(part)
        except OSError:
            older.replace(self._path)
            raise
        full, self._fd, self._end, self._part = self._fd, new, SIZE, part
        os.close(full)

    def _new_file(self, part: int) -> int:
        """Return the descriptor of a new file with its header. Raises OSError, also if there is one already: it is of another process."""
        opened = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            _write(opened, _HEADER.pack(_MAGIC, _VERSION, self.run, int(self._clock.now()) & _UNKNOWN, part))
        except OSError:
            os.close(opened)
            self._path.unlink()
            raise
        return opened


def _write(file: int, packed: bytes) -> None:
    left = memoryview(packed)
    while left:
        left = left[os.write(file, left) :]


def unwritable(folder: Path, error: OSError) -> RunFileError:
    return RunFileError(
        f"the events of the run cannot be written to {folder} ({error.strerror or error}): free space there or correct its permissions;"
        " CRAWLSPACE_RUNS_KEPT = 0 crawls without them; nothing that was recorded is lost"
    )


def file_name(run: int, host: str, process: int, start: str = "") -> str:
    """Return the name of the file of a process. `start` is another one for each start: a process in a container often has the number 1."""
    words = f"{run:06}", re.sub(r"[^A-Za-z0-9.-]+", "_", host)[:60], str(process), *([start] if start else [])
    return "-".join(words) + ENDING


def keep_only(folder: Path, names: Collection[str]) -> None:
    """Remove all other files of events: those of runs that are not kept any more. Raises RunFileError."""
    try:
        for path in folder.glob(f"*{ENDING}"):
            if path.name.replace(_OLDER + ENDING, ENDING) not in names:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def parts_of(path: Path) -> list[Path]:
    """Return the files of a process that are there, the older one first; `path` is that of the newer one."""
    return [one for one in (_older_of(path), path) if one.exists()]


def is_from_beginning(path: Path) -> bool:
    """Return whether a file has the first events of its run."""
    with path.open("rb") as file:
        header = file.read(SIZE)
    return _is_ours(header) and _HEADER.unpack(header)[4] == 1


def read_events(path: Path) -> Iterator[RunEvent]:
    """Yield the events of a file in the order of their writing; none of a file of another version."""
    with path.open("rb") as file:
        if not _is_ours(file.read(SIZE)):
            return
        while len(record := file.read(SIZE)) == SIZE:
            texts = _texts_of(record)
            if texts is None or len(text := file.read(texts * SIZE)) < texts * SIZE:
                return
            yield _event(record, text)


def events_of(path: Path, key: int) -> Iterator[RunEvent]:
    """Yield the events of one URL in a file, in the order of their writing: without reading the others one by one."""
    wanted = struct.pack("<q", key)
    with path.open("rb") as file:
        if not _is_ours(file.read(SIZE)):
            return
        while block := file.read(_BLOCK):
            at = block.find(wanted)
            while at >= 0:
                record = block[at : at + SIZE]
                texts = _texts_of(record) if at % SIZE == 0 and len(record) == SIZE else None
                if texts is not None:
                    yield _event(record, block[at + SIZE : at + SIZE + texts * SIZE])
                at = block.find(wanted, at + 1)


def _older_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(ENDING) + _OLDER + ENDING)


def _leaves(change: Change) -> bool:
    """Return whether a change without a fetch takes a document out of the index."""
    if change.forget:
        return _before(change).checksum is not None
    return change.before is not None and change.before.checksum is not None and change.state.checksum is None


def _before(change: Change) -> UrlState:
    return change.before or change.state


def _of_change(change: Change, now: int) -> bytes:
    before, after, fetch = _before(change), change.state, change.fetch
    has_document = not change.forget and after.checksum is not None
    document = DocumentChange.NONE
    if has_document and fetch is not None and fetch.shows_document:
        document = DocumentChange.NEW if before.checksum is None else DocumentChange.UNCHANGED
        if before.checksum not in (None, after.checksum):
            document = DocumentChange.CHANGED
    flags = (
        _IS_EVENT
        | (_IN_BEFORE if before.indexed else 0)
        | (_IN_AFTER if has_document and (before.indexed or change.document is not None) else 0)
        | (_FORGOTTEN if change.forget else 0)
        | document << _CHANGE_SHIFT
    )
    took_s, size = (None, 0) if fetch is None else (fetch.took_s, fetch.body_bytes)
    texts = _texts(before.url) if change.forget else b""
    return (
        _EVENT.pack(
            before.key,
            now & _UNKNOWN,
            before.status or 0,
            after.status or 0,
            before.state | after.state << 4,
            flags,
            _UNKNOWN if took_s is None else min(round(took_s * 1000), _UNKNOWN - 1),
            min(size, _UNKNOWN),
            len(texts) // SIZE,
        )
        + texts
    )


def _of_rules(url: FoldedUrl, state: State, status: int, now: int, *, forgets: bool) -> bytes:
    flags = _IS_EVENT | _BY_RULES | (_IN_BEFORE if url.in_index else 0)
    if status == Status.EXCLUDED_HERE and url.in_index:
        flags |= _IN_AFTER
    texts = _texts(url.url) if forgets else b""
    if forgets:
        flags |= _FORGOTTEN
    states = int(url.state) | state << 4
    return _EVENT.pack(url.key, now & _UNKNOWN, url.status or 0, status, states, flags, _UNKNOWN, 0, len(texts) // SIZE) + texts


def _texts(url: str) -> bytes:
    text = url.encode("utf-8", "surrogatepass")[: _TEXTS * SIZE]
    return text + bytes(-len(text) % SIZE)


def _is_ours(header: bytes) -> bool:
    return len(header) == SIZE and _HEADER.unpack(header)[:2] == (_MAGIC, _VERSION)


def _texts_of(record: bytes) -> int | None:
    """Return the number of records with text after one; None if it is no event."""
    flags = record[17]
    return int.from_bytes(record[26:28], "little") if flags & _IS_EVENT else None


def _event(record: bytes, text: bytes) -> RunEvent:
    key, at, before, after, states, flags, took_ms, size, _ = _EVENT.unpack(record)
    return RunEvent(
        key,
        at,
        before or None,
        after or None,
        State(min(states & 15, max(State))),
        State(min(states >> 4, max(State))),
        bool(flags & _IN_BEFORE),
        bool(flags & _IN_AFTER),
        DocumentChange(flags >> _CHANGE_SHIFT & 3),
        bool(flags & _BY_RULES),
        bool(flags & _FORGOTTEN),
        None if took_ms == _UNKNOWN else took_ms / 1000,
        size,
        text.rstrip(b"\0").decode("utf-8", "replace"),
    )
