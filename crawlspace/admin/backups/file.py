"""The file of a backup: a tar with the dump of the store, the files of the collection, and those of its archive.

`tar -tvf` lists it. The store is a dump (`state/dump.py`) compressed with gzip. The last two members are the manifest, with the size and the
SHA-256 of each other member, and the SHA-256 of the manifest. So a file that was cut off or changed is detected before anything is restored.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from gzip import GzipFile
from hashlib import sha256
from io import BufferedReader, BufferedWriter, RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, BinaryIO

import msgspec
from isal import isal_zlib
from isal.igzip import IGzipFile

from crawlspace import __version__, private_files
from crawlspace.archive import files as archive
from crawlspace.errors import StoreDamaged, StoreError, StoreLocked, StoreVersionError
from crawlspace.state.dump import FORMAT as DUMP_FORMAT
from crawlspace.state.dump import DumpReader
from crawlspace.text import quoted

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

FORMAT = 1
"""Format of the file: changed whenever a kind of member or a field of the manifest is added, changed or removed."""
STORE = "store.dump.gz"
FOLDER = "collection/"
"""What the names of the collection's files begin with."""
ARCHIVE = "archive/"
GLOBAL_RULES = "global.rules"
"""The file of the global crawl space, where the collection does not have its own."""
MANIFEST, CHECKSUM = "manifest.json", "manifest.sha256"
_BLOCK = 512
_READ_BYTES = 1 << 20
_MOST_MANIFEST = 1 << 28
_ARCHIVE_NAME = re.compile(re.escape(archive.ENDING) + f"(?:{re.escape(archive.OPEN)})?$")
_TO_BE_READ = (tarfile.REGTYPE, tarfile.AREGTYPE)


class Member(msgspec.Struct, frozen=True):
    name: str
    size: int
    sha256: str


class BackupContents(msgspec.Struct, frozen=True):
    """What a backup is of, and what is in it besides its files."""

    collection: str
    made: str
    """Date and time, in ISO 8601."""
    store: str
    """Where it was: `file` or `redis`."""
    urls: int
    orders: int
    """Index orders that wait or are parked."""
    has_archive: bool
    missing_archive_files: Sequence[str] = ()
    """Files that the store names and that did not exist any more."""


class Manifest(msgspec.Struct, frozen=True):
    contents: BackupContents
    members: Sequence[Member]
    format: int = FORMAT
    dump_format: int = DUMP_FORMAT
    version: str = __version__
    """Of crawlspace."""


class _Formats(msgspec.Struct):
    """What is read of the manifest of any version."""

    format: int
    dump_format: int
    version: str


Progress = Callable[[str], None]
"""Called with what is done at present."""


class BackupWriter:
    """Writes the members of a backup to a file, one after the other. Raises OSError."""

    def __init__(self, file: BinaryIO, *, now: float) -> None:
        self._file = file
        self._now = int(now)
        self._members: list[Member] = []

    @property
    def members(self) -> Sequence[Member]:
        return self._members

    @contextmanager
    def packed(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file for a member that is compressed, and whose size is not known yet."""
        at = self._file.tell()
        self._file.write(self._header(name, 0))
        written = _Hashed(self._file)
        with _gzip(written, "wb") as packed, BufferedWriter(packed, _READ_BYTES) as buffer:
            yield buffer
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(at)
        self._file.write(self._header(name, written.size))
        self._file.seek(end)
        self._end(name, written)

    def add(self, name: str, source: BinaryIO, size: int) -> None:
        """Write the next `size` bytes of a file as a member. Raises StoreError where it has fewer, or cannot be read."""
        self._file.write(self._header(name, size))
        written = _Hashed(self._file)
        parts = _parts(source, size)
        while True:
            try:
                part = next(parts, b"")
            except OSError as error:
                raise StoreError(f"{name} cannot be read: {error.strerror}") from error
            if not part:
                break
            written.write(part)
        if written.size < size:
            raise StoreError(f"{name} became shorter while it was copied: run the same command again")
        self._end(name, written)

    def finish(self, contents: BackupContents) -> Manifest:
        """Write the manifest, and the end of the file."""
        manifest = Manifest(contents, tuple(self._members))
        encoded = json.dumps(msgspec.to_builtins(manifest), indent=1).encode() + b"\n"
        for name, content in ((MANIFEST, encoded), (CHECKSUM, _checksum(encoded))):
            self._file.write(self._header(name, len(content)) + content + _padding(len(content)))
        self._file.write(bytes(2 * _BLOCK))
        return manifest

    def _header(self, name: str, size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, self._now, 0o600
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")

    def _end(self, name: str, written: _Hashed) -> None:
        self._file.write(_padding(written.size))
        self._members.append(Member(name, written.size, written.digest))


class Backup:
    """An open backup. `name` is its path, for messages. Raises StoreDamaged, and StoreVersionError for another version."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self._tar = _opened(file, name)
        self._members = self._listed()
        self.manifest = self._read_manifest()

    @property
    def contents(self) -> BackupContents:
        return self.manifest.contents

    def names(self, prefix: str) -> list[str]:
        """Return the names of the members that begin with a prefix, without it."""
        return [name.removeprefix(prefix) for name in self._members if name.startswith(prefix)]

    def verify(self, progress: Progress) -> None:
        """Read everything, and compare it with the manifest."""
        for number, member in enumerate(self.manifest.members, 1):
            progress(f"verifying {member.name}, file {number:,} of {len(self.manifest.members):,}")
            for _ in self.parts(member.name):
                pass
        progress("verifying the records of the store")
        for _ in self.store().records():
            pass

    def parts(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member in parts; the last one only if the checksum is right."""
        member = next(one for one in self.manifest.members if one.name == name)
        digest, part = sha256(), b""
        try:
            for following in _parts(self._open(name), member.size):
                yield part
                digest.update(following)
                part = following
        except (tarfile.TarError, OSError) as error:
            raise StoreDamaged(f"{self.name} cannot be read ({name}: {error}): use another copy of it") from error
        if digest.hexdigest() != member.sha256:
            raise StoreDamaged(f"{self.name} is damaged (the checksum of {name} differs): use another copy of it")
        yield part

    def read(self, name: str) -> bytes:
        return b"".join(self.parts(name))

    def store(self) -> DumpReader:
        """Open the dump of the store."""
        return DumpReader(BufferedReader(_Unpacked(self._open(STORE), self.name), _READ_BYTES), self.name)

    def _open(self, name: str) -> IO[bytes]:
        opened = self._tar.extractfile(self._members[name])
        assert opened is not None, "only files are members"
        return opened

    def _listed(self) -> dict[str, tarfile.TarInfo]:
        """Return the members by name. Refuse what no backup has, such as links and names that lead to other folders."""
        found: dict[str, tarfile.TarInfo] = {}
        try:
            for member in self._tar:
                if member.type not in _TO_BE_READ or not _is_name(member.name) or member.name in found:
                    raise StoreDamaged(
                        f"{self.name} has {quoted(member.name)}, which no backup has (a link, a name outside its folders, or one that is"
                        " there twice), and nothing of it was read: use a file that `scrapy backup` has written"
                    )
                found[member.name] = member
        except (tarfile.TarError, ValueError, EOFError, OverflowError, RecursionError) as error:
            raise self._cut_off(found) from error
        if CHECKSUM not in found:
            raise self._cut_off(found)
        return found

    def _cut_off(self, found: dict[str, tarfile.TarInfo]) -> StoreDamaged:
        if STORE in found:
            return StoreDamaged(f"{self.name} is cut off or damaged after {len(found):,} of its files: use another copy of it")
        return _no_backup(self.name)

    def _read_manifest(self) -> Manifest:
        damaged = StoreDamaged(f"{self.name} is damaged (its manifest): use another copy of it")
        if MANIFEST not in self._members or self._members[MANIFEST].size > _MOST_MANIFEST:
            raise damaged
        encoded = self._open(MANIFEST).read()
        if self._members[CHECKSUM].size != len(_checksum(b"")) or self._open(CHECKSUM).read() != _checksum(encoded):
            raise damaged
        try:
            formats = msgspec.json.decode(encoded, type=_Formats)
            if (formats.format, formats.dump_format) != (FORMAT, DUMP_FORMAT):
                raise StoreVersionError(
                    f"{self.name} was written by crawlspace {formats.version} (backup format {formats.format}, dump format"
                    f" {formats.dump_format}), and this is crawlspace {__version__} (formats {FORMAT} and {DUMP_FORMAT}): restore it with"
                    " that version"
                )
            manifest = msgspec.json.decode(encoded, type=Manifest)
        except (msgspec.MsgspecError, RecursionError):
            raise damaged from None
        there = {name: one.size for name, one in self._members.items() if name not in (MANIFEST, CHECKSUM)}
        if {one.name: one.size for one in manifest.members} != there or STORE not in there:
            raise damaged
        return manifest


@contextmanager
def unfinished(path: Path) -> Iterator[BinaryIO]:
    """Yield a file next to `path` that only its owner may read. It gets that name in the end, if nothing fails, else it is removed.

    What a killed backup has left is overwritten. Raises StoreLocked where another process writes the same backup, and OSError.
    """
    there = path.with_name(f".{path.name}.new")
    descriptor = os.open(there, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(descriptor, "w+b") as file:
        if not archive.lock(descriptor):
            raise StoreLocked(f"{path} is being written by another process: wait for it, or name another file")
        file.truncate(0)
        there.chmod(0o600)
        try:
            yield file
            there.replace(path)
        except BaseException:
            with suppress(OSError):
                there.unlink()
            raise
    private_files.sync_folder(path.parent)


class _Unpacked(RawIOBase):
    """The content of a compressed member, to be read through a buffer. Raises StoreDamaged."""

    def __init__(self, packed: IO[bytes], name: str) -> None:
        self._file = _gzip(packed, "rb")
        self._name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        try:
            return self._file.readinto(buffer)
        except (EOFError, OSError, isal_zlib.error, tarfile.TarError) as error:  # type: ignore[misc]  # the stub has it as an instance
            raise StoreDamaged(f"{self._name} is damaged ({STORE}: {error}): use another copy of it") from error

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class _Hashed:
    """A file to be written to, and the size and SHA-256 of what was."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = sha256()
        self.size = 0

    def write(self, part: bytes) -> int:
        self._file.write(part)
        self._digest.update(part)
        self.size += len(part)
        return len(part)

    def flush(self) -> None:
        self._file.flush()

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def _gzip(file: object, mode: str) -> GzipFile:
    opened: GzipFile = IGzipFile(fileobj=file, mode=mode, mtime=0)  # type: ignore[no-untyped-call]
    return opened


def _opened(file: BinaryIO, name: str) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="surrogateescape")
    except (tarfile.TarError, ValueError, EOFError, OverflowError) as error:
        raise _no_backup(name) from error


def _no_backup(name: str) -> StoreDamaged:
    return StoreDamaged(f"{name} is no backup of a collection: name a file that `scrapy backup` has written")


def _is_name(name: str) -> bool:
    """Return whether a member of a backup may have this name: a path in its folders, which leads nowhere else."""
    if name in (STORE, GLOBAL_RULES, MANIFEST, CHECKSUM):
        return True
    is_plain = "\0" not in name and "\\" not in name and PurePosixPath(name).as_posix() == name
    if not is_plain or ".." in name.split("/"):
        return False
    if name.startswith(ARCHIVE):
        return name.count("/") == 1 and _ARCHIVE_NAME.search(name) is not None
    return name.startswith(FOLDER) and name != FOLDER


def _parts(source: IO[bytes], size: int) -> Iterator[bytes]:
    while size and (part := source.read(min(size, _READ_BYTES))):
        size -= len(part)
        yield part


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


def _checksum(manifest: bytes) -> bytes:
    """Return the SHA-256 of the manifest, in the form of `sha256sum`."""
    return f"{sha256(manifest).hexdigest()}  {MANIFEST}\n".encode()
