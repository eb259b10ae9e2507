"""Save a rule file in place of the old one, which is kept.

A file is saved only over the text that the editor has seen (`RuleText.digest`).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crawlspace.admin.rule_files import RuleFile, digest_of
from crawlspace.clock import Clock
from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError, UsageError
from crawlspace.private_files import make_folder, real_path, replace_file, sync_folder

VERSIONS_KEPT = 20
"""Old versions kept of each file."""
LOCK = ".lock"


class RuleFileChanged(UsageError):
    """The file on disk is not the one that was edited; nothing has been saved."""


@dataclass(frozen=True, slots=True)
class RuleVersion:
    """An old version of a file: until when it was there, and who replaced it. `is_missing`: there was no file."""

    id: str
    file: str
    until: float
    user: str
    size: int
    is_missing: bool = False


def save_rule_file(file: RuleFile, data: bytes | None, *, seen: str, user: str, clock: Clock) -> None:
    """Replace a file, or remove it (None), and keep the old one. `seen` is the digest of the file that was edited.

    Raises RuleFileChanged if another one is there, ConfigError if it cannot be written: then nothing has changed.
    """
    path = real_path(file.path)  # a link stays one
    try:
        make_folder(file.history)
        with _alone(file.history):
            old = path.read_bytes() if is_there(path) else None
            if ("" if old is None else digest_of(old)) != seen:
                raise RuleFileChanged(f"{file.shown} has been changed on disk since it was opened here: nothing was saved")
            if old == data:
                return
            _keep(file, old, user=user, clock=clock)
            if data is None:
                path.unlink()
                sync_folder(path.parent)
            else:
                replace_file(path, data, mode=path.parent.stat().st_mode & 0o666)
            _forget_old_versions(file)
    except OSError as error:
        raise ConfigError(f"{file.path} cannot be written: {error.strerror or error}; nothing was saved") from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other request, or console, saves a file with that history. Raises OSError."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def versions(file: RuleFile) -> list[RuleVersion]:
    """Return the old versions of a file that are kept, the newest first."""
    found = []
    for note in file.history.glob(f"*.{file.name}.json") if file.history.is_dir() else ():
        with suppress(OSError, ValueError, KeyError, TypeError):
            read = json.loads(note.read_bytes())
            found.append(
                RuleVersion(
                    note.name.partition(".")[0],
                    file.name,
                    float(read["until"]),
                    str(read["user"]),
                    int(read["size"]),
                    bool(read["missing"]),
                )
            )
    return sorted(found, key=lambda one: (one.until, one.id), reverse=True)


def read_version(file: RuleFile, id: str) -> tuple[RuleVersion, bytes | None]:
    """Return an old version and its bytes, None where there was no file. Raises UsageError for one that is not kept, ConfigError."""
    version = next((one for one in versions(file) if one.id == id), None)
    if version is None:
        raise UsageError(f"this version of {file.name} is not kept any more")
    return version, None if version.is_missing else read_bytes(file.history / f"{version.id}.{file.name}")


def _keep(file: RuleFile, old: bytes | None, *, user: str, clock: Clock) -> None:
    """Write an old version into the history. Raises OSError."""
    now = clock.now()
    number = int(now * 1000)
    while (note := file.history / f"{number}.{file.name}.json").exists():
        number += 1
    if old is not None:
        replace_file(file.history / f"{number}.{file.name}", old)
    described = {"until": now, "user": user, "size": len(old or b""), "missing": old is None}
    replace_file(note, json.dumps(described).encode())


def _forget_old_versions(file: RuleFile) -> None:
    for version in versions(file)[VERSIONS_KEPT:]:
        for name in (f"{version.id}.{file.name}.json", f"{version.id}.{file.name}"):
            with suppress(OSError):
                (file.history / name).unlink(missing_ok=True)
