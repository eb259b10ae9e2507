"""`scrapy archive`: show, check or compact what was fetched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from crawlspace.admin.archive import compact, coverage, faults
from crawlspace.archive.files import archive_files, open_files, size_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.clock import SystemClock
from crawlspace.errors import StoreLocked, UsageError
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, print_json
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, archive_reader, folder_of
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.text import counted

_MOST_SHOWN = 100


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Show, check or compact the archive of what was fetched"
    explanation = (
        "Show how large the archive of a collection is, and how many of its documents have a record there. --verify reads all of it, "
        "checks the digests, and whether each URL has its record at its location. --compact drops records to which no URL refers "
        "any more: older versions, errors and revisits; not while the collection is crawled. "
        "Exit status: 0 done; 1 --verify found a fault, or the store has one, or the archive cannot be written; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--verify", action="store_true", help="read all files, and check digests and locations")
        parser.add_argument("--compact", action="store_true", help="drop superseded records")
        parser.add_argument("--json", action="store_true", help="print what is shown without other options for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy archive demo"))
        if opts.verify and opts.compact:
            raise UsageError("--verify or --compact, not both")
        with paths.crawled(paths.store.changing() if opts.compact else paths.store.reading(), exit_status=0) as opened:
            if opts.compact:
                return _compact(paths, opened)
            with closing(archive_reader(paths, opened)) as archive:
                return _verify(paths, opened, archive) if opts.verify else _show(paths, opened, archive, as_json=opts.json)


def _show(paths: CollectionPaths, opened: OpenStore, archive: ArchiveReader, *, as_json: bool) -> int:
    folder, found = folder_of(paths), coverage(opened.store, archive)
    number, size = len(archive_files(folder)) + len(open_files(folder)), size_of(folder)
    if as_json:
        print_json(
            {"folder": str(folder), "files": number, "bytes": size, "documents": found.documents, "archived": found.archived}
        )
        return 0
    print(f"{paths.name}: {counted(number, 'file')}, {size:,} bytes, in {folder}")
    print(f"of {counted(found.documents, 'document')} in the index {found.archived:,} have a record")
    if found.archived < found.documents:
        print(f"`scrapy urls {paths.name} --not-archived` lists the others, `scrapy reindex {paths.name}` has them fetched again")
    return 0


def _verify(paths: CollectionPaths, opened: OpenStore, archive: ArchiveReader) -> int:
    folder = folder_of(paths)
    with closing(ProgressDisplay(sys.stderr, SystemClock())) as display:
        found = faults(opened.store, archive, folder, progress=display)
        number = 0
        for fault in islice(found, _MOST_SHOWN):
            number += 1
            print(fault)
        more = sum(1 for _ in found)
    if more:
        print(f"and {more:,} more")
    if not number:
        print(
            f"{paths.name}: {counted(len(archive_files(folder)), 'file is sound', 'files are sound')}, and each location has its record"
        )
    return 1 if number else 0


def _compact(paths: CollectionPaths, opened: OpenStore) -> int:
    if opened.crawlers():
        raise StoreLocked(f"{paths.name} is being crawled: its archive can be compacted when that has ended")
    folder, clock = folder_of(paths), SystemClock()
    if not Path(folder).exists():
        print(f"{paths.name} has no archive in {folder}", file=sys.stderr)
        return 0
    with closing(ProgressDisplay(sys.stderr, clock)) as display:
        done = compact(opened.store, folder, collection=paths.name, clock=clock, progress=display)
    print(f"{paths.name}: {done.freed_bytes:,} bytes freed, {size_of(folder):,} are left")
    return 0
