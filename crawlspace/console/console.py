"""What all requests of the console share: the collections, whose files and stores are opened anew for each, and the audit log."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crawlspace.clock import Clock, iso
from crawlspace.config.collection import Collection, load_collection
from crawlspace.console.comparisons import Comparisons
from crawlspace.console.plans import Plans
from crawlspace.console.snapshot.taking import Snapshots
from crawlspace.console.users import User
from crawlspace.errors import ConfigError, CrawlspaceError
from crawlspace.private_files import make_folder
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.runtime.session.project import ProjectCollections

logger = logging.getLogger(__name__)

LONGEST_DETAIL = 2_000
"""Characters of one value in the audit log."""
MOST_DETAILS = 20
"""Values of a list there."""


class Console:
    """What all requests share. `project` is the folder with scrapy.cfg, in which crawls are started."""

    def __init__(self, collections: ProjectCollections, *, clock: Clock, project: Path) -> None:
        self.collections = collections
        self.clock = clock
        self.project = project
        self.data_folder = collections.data_folder
        self.snapshots = Snapshots(clock)
        self.comparisons = Comparisons(clock)
        self.passes = threading.Semaphore(1)
        """For what reads the links of all pages: one request at a time."""
        self.long_work = threading.Semaphore(1)
        """For what reads a whole collection for a program: one at a time."""
        self.starting = threading.Lock()
        self.processes: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        """Commands that were started here last, by collection and command; add to it with `starting`."""
        self.audit_log = AuditLog(self.data_folder / "console-audit.jsonl", clock)
        self.plans = Plans(project, clock)

    def names(self) -> list[str]:
        """Return the names of all collections. Raises ConfigError."""
        return self.collections.names()

    def paths(self, name: str) -> CollectionPaths:
        """Return where a collection's files are. Raises UnknownCollection, and ConfigError for a settings.py that doesn't run."""
        return self.collections.paths(name)

    def collection(self, paths: CollectionPaths) -> Collection:
        """Return the whole configuration of a collection. Raises ConfigError."""
        return load_collection(paths.name, paths.settings)


@dataclass(slots=True)
class AuditEntry:
    """What the audit log has of an action after it is done."""

    result: str = "done"
    details: Mapping[str, object] = field(default_factory=dict)


class AuditLog:
    """Who changed what and when, in a file: a JSON object a line."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock

    def write(
        self, user: User, address: str, *, action: str, collection: str, details: Mapping[str, object], result: str
    ) -> None:
        """Add an entry. Raises ConfigError: what cannot be recorded is not to be done."""
        entry = {
            "time": iso(self._clock.now()),
            "user": user.name,
            "address": address,
            "action": action,
            "collection": collection,
            "details": {name: _cut(value) for name, value in details.items()},
            "result": result,
        }
        line = json.dumps(entry, ensure_ascii=False) + "\n"
        try:
            make_folder(self.path.parent)
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, line.encode("utf-8", "backslashreplace"))
            finally:
                os.close(file)
        except OSError as error:
            raise ConfigError(f"the audit log {self.path} cannot be written, so nothing is changed: {error.strerror}") from error

    @contextmanager
    def recorded(
        self, user: User, address: str, *, action: str, collection: str, details: Mapping[str, object]
    ) -> Iterator[AuditEntry]:
        """Record what is done inside, before and after. Raises ConfigError if that is not possible: then nothing is done."""

        def record(result: str, more: Mapping[str, object]) -> None:
            self.write(user, address, action=action, collection=collection, details={**details, **more}, result=result)

        record("begun", {})
        entry = AuditEntry()
        try:
            yield entry
        except BaseException as error:
            why = str(error) if isinstance(error, CrawlspaceError) else f"{type(error).__name__}; the log of the console has it"
            try:
                record(f"failed: {why}", {})
            except ConfigError:
                logger.exception("the audit log does not have that %s of %s has failed", action, collection)
            raise
        record(entry.result, entry.details)

    def last(
        self, number: int, *, fits: Callable[[Mapping[str, object]], bool] = lambda _: True
    ) -> Sequence[Mapping[str, object]]:
        """Return the last entries that fit, the newest first. Raises ConfigError."""
        found: list[Mapping[str, object]] = []
        try:
            with self.path.open("rb") as file:
                lines = _reversed_lines(file.fileno())
                for line in lines:
                    try:
                        entry = json.loads(line)
                    except ValueError:  # cut by a full disk
                        continue
                    if isinstance(entry, dict) and fits(entry):
                        found.append(entry)
                        if len(found) == number:
                            break
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"the audit log {self.path} cannot be read: {error.strerror}") from error
        return found


def _cut(value: object) -> object:
    if isinstance(value, list) and len(value) > MOST_DETAILS:
        return [*map(_cut, value[:MOST_DETAILS]), f"and {len(value) - MOST_DETAILS:,} more"]
    return value if not isinstance(value, str) or len(value) <= LONGEST_DETAIL else value[:LONGEST_DETAIL] + "…"


_BLOCK = 65_536


def _reversed_lines(file: int) -> Iterator[bytes]:
    """Yield the lines of a file from the last to the first."""
    position = os.lseek(file, 0, os.SEEK_END)
    rest = b""
    while position > 0:
        size = min(_BLOCK, position)
        position -= size
        block = os.pread(file, size, position) + rest
        rest, *lines = block.split(b"\n")
        yield from (line for line in reversed(lines) if line)
    if rest:
        yield rest
