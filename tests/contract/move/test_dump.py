"""A dump: the same from either store, whole again in either store, and never taken for whole where it is not."""

from __future__ import annotations

import io
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import closing
from typing import BinaryIO

import msgspec
import pytest

from crawlspace.errors import StoreDamaged, StoreError, StoreLocked, StoreVersionError
from crawlspace.state.dump import (
    CopyTarget,
    DumpReader,
    Header,
    OrderRecord,
    Record,
    RefusedLinksRecord,
    RobotsRecord,
    SiteRecord,
    Summary,
    Trailer,
    UrlRecord,
    ValueRecord,
    dump,
    move,
    refuse_unfinished_copy,
)
from tests.contract.conftest import NOW, Known, new
from tests.contract.move.stores import KINDS, NAME, Stopping, Stores, all_of, fill, looking

BOTH = [(here, there) for here in KINDS for there in KINDS]
FIRST_LINE = len(b"crawlspace dump\n")


def dumped(stores: Stores, kind: str) -> bytes:
    file = io.BytesIO()
    with closing(stores.side(kind)) as source:
        dump(source, file, NAME)
    return file.getvalue()


def restore(
    stores: Stores,
    kind: str,
    packed: bytes,
    *,
    name: str = "backup.dump",
    watch: Callable[[CopyTarget], CopyTarget] = lambda target: target,
) -> int:
    reader = DumpReader(io.BytesIO(packed), name)
    with closing(stores.side(kind, writes=True)) as target:
        return move(reader, watch(target), NAME, records=3).urls


@pytest.fixture
def filled(stores: Stores) -> bytes:
    """A dump of a bit of everything, which is in a file."""
    with looking(stores, "sqlite") as store:
        fill(store)
    return dumped(stores, "sqlite")


def parts(packed: bytes) -> list[bytes]:
    """The records of a dump, each with its head."""
    found, at = [], FIRST_LINE
    while at < len(packed):
        end = at + 8 + int.from_bytes(packed[at : at + 4], "big")
        found.append(packed[at:end])
        at = end
    return found


# --- as it was ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("here", "there"), BOTH)
def test_there_and_back_again(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        fill(store)
    before = all_of(stores, here)
    packed = dumped(stores, here)
    assert all_of(stores, here) == before, "the source is as it was"
    stores.remove(here)
    assert restore(stores, there, packed) == 14
    assert all_of(stores, there) == before
    assert parts(dumped(stores, there))[1:-1] == parts(packed)[1:-1], "all but the header, which names the store"


def test_a_header_says_what_it_is(stores: Stores, filled: bytes) -> None:
    header = DumpReader(io.BytesIO(filled), "backup.dump").header
    assert (header.format, header.collection, header.source, header.urls) == (5, NAME, str(stores.file), 14)


def test_a_restore_that_was_killed_goes_on_where_it_was(stores: Stores, filled: bytes) -> None:
    for stop in range(1, 100):
        stores.remove("redis")
        targets: list[Stopping] = []

        def watch(target: CopyTarget, stop: int = stop, targets: list[Stopping] = targets) -> CopyTarget:
            targets.append(Stopping(target, stop))
            return targets[-1]

        try:
            restore(stores, "redis", filled, watch=watch)
            break
        except KeyboardInterrupt:
            with (
                looking(stores, "redis") as copy,
                pytest.raises(StoreError, match=r"only in part, because copying it from backup\.dump"),
            ):
                refuse_unfinished_copy(copy, NAME)
        restore(stores, "redis", filled, watch=lambda target, targets=targets: targets.append(Stopping(target)) or targets[-1])  # type: ignore[misc]
        assert sum(target.urls for target in targets) == 14, "nothing is copied twice"
        assert all_of(stores, "redis") == all_of(stores, "sqlite")


# field names in their order: another format where they change
FORM = [
    (Header, "format collection source version urls"),
    (SiteRecord, "site wait_until wait_s health unreachable"),
    (RobotsRecord, "entry"),
    (
        UrlRecord,
        (
            "id key url site state status source shift depth redirects rank host_as_written discovered_at fetched_at next_fetch"
            " interval_s retries errors lease_until etag last_modified rules checksum canonical simhash indexed duplicate_of held held_mark requested_by"
            " inherited fields_mark refused depth_from orphaned archived ordered detail history links document text alternate_in near representative left link_metadata inherited_from inherited_mark"
        ),
    ),
    (RefusedLinksRecord, "letter host entries"),
    (OrderRecord, "sink op number id url reason document"),
    (ValueRecord, "table name value"),
    (Trailer, "by_kind"),
]


@pytest.mark.parametrize(("kind", "names"), FORM)
def test_the_form_is_that_of_format_4(kind: type[msgspec.Struct], names: str) -> None:
    assert " ".join(kind.__struct_fields__) == names


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_or_a_part_is_not_dumped(stores: Stores, kind: str) -> None:
    other = KINDS[kind == "sqlite"]
    with looking(stores, other) as store:
        fill(store)
    with closing(stores.side(kind, writes=True)) as side, pytest.raises(StoreError, match="has no walk"):
        dump(side, io.BytesIO(), NAME)
    stores.stopped(other, kind, stop=4)
    with closing(stores.side(kind)) as side, pytest.raises(StoreError, match="is itself an unfinished copy of walk"):
        dump(side, io.BytesIO(), NAME)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_changes_while_it_is_dumped(stores: Stores, kind: str) -> None:
    class Changing(io.BytesIO):
        def write(self, packed: object) -> int:
            with looking(stores, kind) as store:
                store.discover([new("c.example/")], now=NOW)
            return super().write(packed)  # type: ignore[arg-type]

    file = Changing()
    with looking(stores, kind) as store:
        fill(store)
    with closing(stores.side(kind)) as source, pytest.raises(StoreLocked, match="was changed while walk was copied"):
        dump(source, file, NAME)
    with pytest.raises(StoreDamaged, match="is cut off"):
        restore(stores, KINDS[kind == "sqlite"], file.getvalue())


def broken(stores: Stores, packed: bytes, *sentences: str) -> None:
    """Demand that a dump is refused with one of the sentences, and what was restored of it never used."""
    stores.remove("redis")
    with pytest.raises(StoreError) as caught:
        restore(stores, "redis", packed)
    assert any(sentence in str(caught.value) for sentence in sentences), str(caught.value)
    assert "\n" not in str(caught.value)
    with looking(stores, "redis") as copy:
        if list(copy.urls()):
            with pytest.raises(StoreError, match="only in part"):
                refuse_unfinished_copy(copy, NAME)


@pytest.mark.full
def test_one_that_is_cut_off(stores: Stores, filled: bytes) -> None:
    ends = {FIRST_LINE, len(filled) - 1}
    at = FIRST_LINE
    for part in parts(filled)[:-1]:
        ends |= {at + 3, at + 8, at + len(part) - 1, at + len(part)}
        at += len(part)
    broken(stores, b"", "backup.dump is no dump of a collection")
    for end in sorted(ends):
        broken(stores, filled[:end], "backup.dump is cut off after ")
    assert restore(stores, "redis", filled) == 14, "a whole one of the same goes on there"
    assert all_of(stores, "redis") == all_of(stores, "sqlite")


def test_one_that_is_damaged(stores: Stores, filled: bytes) -> None:
    for at in range(0, len(filled), 97):
        packed = filled[:at] + bytes([filled[at] ^ 1 << at % 8]) + filled[at + 1 :]
        broken(stores, packed, "is damaged (record ", "is no dump of a collection", "is cut off after ")


@pytest.mark.parametrize("change", ["missing", "twice", "other order", "another header"])
def test_one_with_other_records(stores: Stores, filled: bytes, change: str) -> None:
    found = parts(filled)
    first = next(n for n, part in enumerate(found) if b"URLs" in part)
    if change == "missing":
        del found[first + 2]
    elif change == "twice":
        found.insert(-1, found[-2])
    elif change == "other order":
        found[first], found[first + 1] = found[first + 1], found[first]
    else:
        found.insert(first, found[0])
    broken(stores, filled[:FIRST_LINE] + b"".join(found), "is damaged (records are missing, or there are too many)")


def test_one_of_another_version(filled: bytes) -> None:
    """Whatever follows its header, which may have more fields than ours."""
    header = DumpReader(io.BytesIO(filled), "").header
    file = io.BytesIO()
    file.write(filled[:FIRST_LINE])
    write_part(file, ["header", 7, *msgspec.structs.astuple(header)[1:], "more"])
    write_part(file, ["what nobody knows yet"])
    file.seek(0)
    with pytest.raises(
        StoreVersionError, match=r"another version of crawlspace \(dump format 7, this one reads 5\): use that version"
    ):
        DumpReader(file, "backup.dump")


def write_part(file: BinaryIO, record: object) -> None:
    packed = msgspec.msgpack.encode(record)
    file.write(len(packed).to_bytes(4, "big") + zlib.crc32(packed).to_bytes(4, "big") + packed)


@pytest.mark.parametrize("packed", [b"SQLite format 3\0" + bytes(100), b"crawlspace dump\n" + bytes(100), b"crawlspace dum"])
def test_what_is_no_dump(packed: bytes) -> None:
    with pytest.raises(StoreDamaged, match=r"backup\.dump is (no dump of a collection|damaged \(record 1: )"):
        DumpReader(io.BytesIO(packed), "backup.dump")


# --- large ones ---------------------------------------------------------------------------------------------------


class Nowhere(io.RawIOBase):
    def write(self, packed: object) -> int:
        return len(packed)  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_urls(stores: Stores, kind: str) -> None:
    peaks = []
    for count in (2_000, 6_000):
        with looking(stores, kind) as store:
            known = Known(store)
            urls = [f"a.example/{count}/{n}" for n in range(count)]
            known.discover(*urls)
            known.record(*(known.page(url, url, text=url * 10) for url in urls[:500]))
        with closing(stores.side(kind)) as source:
            tracemalloc.start()
            dump(source, Nowhere(), NAME)  # type: ignore[arg-type]
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.3


def test_a_summary_counts_as_a_store_does(stores: Stores, filled: bytes) -> None:
    summary = Summary()
    records: list[Record] = list(DumpReader(io.BytesIO(filled), "").records())
    for record in records:
        summary.add(record)
    with looking(stores, "sqlite") as store:
        assert summary.counts == store.counts()
    assert summary[UrlRecord] == 14
