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
from crawlspace.private_files import make_folder, real_path

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
            else:
                _replace(path, data)
            _sync_folder(path.parent)
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
        _write(file.history / f"{number}.{file.name}", old, mode=0o600)
    described = {"until": now, "user": user, "size": len(old or b""), "missing": old is None}
    _write(note, json.dumps(described).encode(), mode=0o600)


def _forget_old_versions(file: RuleFile) -> None:
    for version in versions(file)[VERSIONS_KEPT:]:
        for name in (f"{version.id}.{file.name}.json", f"{version.id}.{file.name}"):
            with suppress(OSError):
                (file.history / name).unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    """Write a file in place of another, with its mode and owner. Raises OSError."""
    before = path.stat() if is_there(path) else None
    mode = path.parent.stat().st_mode & 0o666 if before is None else before.st_mode & 0o7777
    unfinished = path.with_name(f".{path.name}.new")
    try:
        _write(unfinished, data, mode=mode)
        if before is not None:
            with suppress(OSError):  # of a file of another user: root alone may give it back
                os.chown(unfinished, before.st_uid, before.st_gid)
                unfinished.chmod(mode)  # which chown may have reduced
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes, *, mode: int) -> None:
    with suppress(FileNotFoundError):
        path.unlink()  # what was left by a kill, or a link
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
