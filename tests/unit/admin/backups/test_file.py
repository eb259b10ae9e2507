"""The file of a backup: what is in it can be read by `tar`, and whatever is wrong with it is found before anything is used."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from crawlspace import __version__
from crawlspace.admin.backups import file as backups
from crawlspace.admin.backups.file import Backup, BackupContents, BackupWriter, unfinished
from crawlspace.admin.backups.folders import OpenArchive
from crawlspace.config.sinks import EMBEDDED
from crawlspace.errors import CrawlspaceError, StoreDamaged, StoreError, StoreLocked, StoreVersionError
from crawlspace.state.dump import FORMAT as DUMP_FORMAT
from crawlspace.state.dump import Moved, dump
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import Known

URLS = [f"a.example/{number}" for number in range(20)]
NAME = "backup.tar"


def written(folder: Path) -> bytes:
    """Return a backup of a store with a file of the collection and one of the archive."""
    with closing(SqliteStore(folder / "state.db", sinks=(EMBEDDED,))) as store:
        Known(store).discover(*URLS)
    file = io.BytesIO()
    writer = BackupWriter(file, now=1_750_000_000)
    with closing(SqliteSide(folder / "state.db", during_crawl=True)) as source, writer.packed(backups.STORE) as packed:
        moved = dump(source, packed, "demo")
    assert moved == Moved(len(URLS), 0)
    writer.add("collection/crawl.rules", io.BytesIO(b"allow domain *\nmore"), 15)
    writer.add("archive/demo-1.warc.gz", io.BytesIO(b"records" * 100), 700)
    writer.finish(BackupContents("demo", "2025-06-15T15:06:40Z", "file", moved.urls, moved.orders, has_archive=True))
    return file.getvalue()


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    return written(tmp_path)


def verified(content: bytes) -> Backup:
    backup = Backup(io.BytesIO(content), NAME)
    backup.verify(lambda _: None)
    return backup


def test_what_is_in_it(whole: bytes) -> None:
    backup = verified(whole)
    assert (backup.contents.collection, backup.contents.urls) == ("demo", len(URLS))
    assert backup.read("collection/crawl.rules") == b"allow domain *\n"
    assert (backup.names("collection/"), backup.names("archive/")) == (["crawl.rules"], ["demo-1.warc.gz"])
    assert [backup.store().count(), backup.store().header.collection] == [len(URLS), "demo"]
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        assert [(one.name, one.mode) for one in tar if one.name.endswith((".json", ".sha256"))] == [
            ("manifest.json", 0o600),
            ("manifest.sha256", 0o600),
        ]


def test_a_snapshot_is_of_one_moment(tmp_path: Path) -> None:
    """What is written after it was opened is not in it, and writing needs not wait."""
    with closing(SqliteStore(tmp_path / "state.db", sinks=(EMBEDDED,))) as store:
        known = Known(store)
        known.discover(*URLS)
        with closing(SqliteSide(tmp_path / "state.db", during_crawl=True)) as source:
            version = source.version()
            known.discover("b.example/")
            assert (source.count(), source.version()) == (len(URLS), version)
        with closing(SqliteSide(tmp_path / "state.db", during_crawl=True)) as source:
            assert (source.count(), source.version() == version) == (len(URLS) + 1, False)


# --- damage -------------------------------------------------------------------------------------------------------


def test_every_damage_is_found(whole: bytes) -> None:
    """Cut anywhere, or with one byte that is another; only padding, and spaces before a header's checksum, do not matter."""
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        members = [(one.offset, one.offset_data, one.size) for one in tar]
    last = members[-1][1] + members[-1][2]
    for at in (*range(0, last, 61), last - 1):
        with pytest.raises(StoreDamaged, match=r"^backup\.tar "):
            verified(whole[:at])
    checked = [
        at
        for begin, data, size in members
        for at in (*range(begin, begin + 148), *range(begin + 156, begin + 257), *range(data, data + size, 7))
    ]
    for at in checked:
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(StoreDamaged, match=r"^backup\.tar "):
            verified(changed)
    assert len(checked) > 1_000


@pytest.mark.parametrize("content", [b"", b"crawlspace dump\n" * 1_000, os.urandom(100_000)], ids=["empty", "dump", "noise"])
def test_no_backup_at_all(content: bytes) -> None:
    with pytest.raises(StoreDamaged, match="is no backup of a collection: name a file that `scrapy backup` has written"):
        verified(content)


def test_a_tar_of_something_else() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("manifest.json"))
    with pytest.raises(StoreDamaged, match="is no backup of a collection"):
        verified(file.getvalue())


# --- made by others -----------------------------------------------------------------------------------------------


Changed = Sequence[tuple[tarfile.TarInfo, bytes]]


def rewritten(whole: bytes, change: Callable[[tarfile.TarInfo, bytes], Changed]) -> bytes:
    """Return a backup whose members are as a function has them."""
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        members = [(one, tar.extractfile(one).read()) for one in tar]  # type: ignore[union-attr]
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member, content in (changed for one in members for changed in change(*one)):
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def with_manifest(whole: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a backup with another manifest, whose checksum is right."""
    manifest = b""

    def changed(member: tarfile.TarInfo, content: bytes) -> Changed:
        nonlocal manifest
        if member.name == backups.MANIFEST:
            manifest = content = change(content)
        elif member.name == backups.CHECKSUM:
            content = f"{sha256(manifest).hexdigest()}  {backups.MANIFEST}\n".encode()
        return [(member, content)]

    return rewritten(whole, changed)


OUTSIDE = [
    ("../outside", tarfile.REGTYPE, ""),
    ("collection/../../outside", tarfile.REGTYPE, ""),
    ("/tmp/outside", tarfile.REGTYPE, ""),
    ("collection//outside", tarfile.REGTYPE, ""),
    ("collection/a\\..\\outside", tarfile.REGTYPE, ""),
    ("collection/", tarfile.REGTYPE, ""),
    ("archive/../x.warc.gz", tarfile.REGTYPE, ""),
    ("archive/x/y.warc.gz", tarfile.REGTYPE, ""),
    ("archive/settings.py", tarfile.REGTYPE, ""),
    ("collection/link", tarfile.SYMTYPE, "/etc/passwd"),
    ("collection/link", tarfile.LNKTYPE, "store.dump.gz"),
    ("collection/folder", tarfile.DIRTYPE, ""),
    ("collection/pipe", tarfile.FIFOTYPE, ""),
    ("collection/device", tarfile.CHRTYPE, ""),
    ("store.dump.gz", tarfile.REGTYPE, ""),
    ("other", tarfile.REGTYPE, ""),
]


@pytest.mark.parametrize(("name", "kind", "to"), OUTSIDE)
def test_members_that_no_backup_has(whole: bytes, name: str, kind: bytes, to: str) -> None:
    extra = tarfile.TarInfo(name)
    extra.type, extra.linkname = kind, to
    made = rewritten(whole, lambda one, content: [*([(extra, b"")] if one.name == backups.STORE else []), (one, content)])
    with pytest.raises(StoreDamaged, match=r"which no backup has .* and nothing of it was read"):
        verified(made)


def test_a_member_that_the_manifest_does_not_name(whole: bytes) -> None:
    extra = tarfile.TarInfo("collection/settings.py")
    made = rewritten(whole, lambda one, content: [*([(extra, b"X = 1")] if one.name == backups.STORE else []), (one, content)])
    with pytest.raises(StoreDamaged, match="its manifest"):
        verified(made)


VERSIONS = [
    ({"format": 9, "version": "7.0.0"}, "7.0.0 (backup format 9, dump format {dump})"),
    ({"dump_format": 99}, "{version} (backup format {format}, dump format 99)"),
]


@pytest.mark.parametrize(("changed", "sentence"), VERSIONS)
def test_another_version(whole: bytes, changed: dict[str, object], sentence: str) -> None:
    made = with_manifest(whole, lambda content: json.dumps({**json.loads(content), **changed}).encode())
    with pytest.raises(StoreVersionError) as error:
        verified(made)
    named = sentence.format(dump=DUMP_FORMAT, format=backups.FORMAT, version=__version__)
    assert f"was written by crawlspace {named}, and this is crawlspace {__version__}" in str(error.value)


@pytest.mark.parametrize("manifest", [b"", b"[]", b"{}", b"[" * 100_000, b'{"format": "1"}'])
def test_a_manifest_that_cannot_be_read(whole: bytes, manifest: bytes) -> None:
    with pytest.raises(StoreDamaged, match="its manifest"):
        verified(with_manifest(whole, lambda _: manifest))


# --- writing ------------------------------------------------------------------------------------------------------


def test_a_file_that_becomes_shorter() -> None:
    writer = BackupWriter(io.BytesIO(), now=0)
    with pytest.raises(StoreError, match=r"collection/a became shorter while it was copied"):
        writer.add("collection/a", io.BytesIO(b"short"), 6)


def test_two_backups_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "demo.tar"
    with unfinished(path) as file:
        file.write(b"one")
        with pytest.raises(StoreLocked, match="is being written by another process"), unfinished(path):
            pass
    assert ([one.name for one in tmp_path.iterdir()], path.read_bytes()) == (["demo.tar"], b"one")
    with pytest.raises(CrawlspaceError), unfinished(path):
        raise StoreError("it fails")
    assert ([one.name for one in tmp_path.iterdir()], path.read_bytes()) == (["demo.tar"], b"one")


def test_an_archive_that_is_compacted_and_written_to_meanwhile(tmp_path: Path) -> None:
    """Files are copied as they were when they were opened, though they are gone or longer since."""
    (tmp_path / "demo-1.warc.gz").write_bytes(b"first")
    (tmp_path / "demo-2.warc.gz.open").write_bytes(b"second")
    file = io.BytesIO()
    writer = BackupWriter(file, now=0)
    with closing(OpenArchive(tmp_path)) as archive:
        (tmp_path / "demo-1.warc.gz").unlink()
        with (tmp_path / "demo-2.warc.gz.open").open("ab") as growing:
            growing.write(b" and more")
        (tmp_path / "demo-3.warc.gz.open").touch()
        assert (archive.has("demo-1.warc.gz"), archive.has("demo-2.warc.gz"), archive.has("demo-3.warc.gz")) == (
            True,
            True,
            False,
        )
        archive.add_to(writer, lambda _: None)
    assert [(one.name, one.size) for one in writer.members] == [
        ("archive/demo-1.warc.gz", len(b"first")),
        ("archive/demo-2.warc.gz.open", len(b"second")),
    ]
