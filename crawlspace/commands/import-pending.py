"""`scrapy import-pending`: import the pending file of FDSE.

Scrapy names a command after its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NoReturn

from crawlspace.admin.pending.importing import LINES_AT_ONCE, PendingImport
from crawlspace.admin.pending.lines import PendingFileError, checked, read_lines
from crawlspace.admin.url_changes import Stopped
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.crawl.admission import Admission, CandidateChecker
from crawlspace.crawl.startup import build_space
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.runtime.components.command import CollectionCommand, print_json, reduce_garbage_collection
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.text import counted, printable, quoted

_REMEMBERED = 1_000
"""Size of the cache of decisions: each URL is in the file once."""


class Command(CollectionCommand):
    usage = "[options] <collection> <file>"
    summary = "Import the URLs of FDSE's search.pending.txt"
    explanation = (
        "Import a search.pending.txt of FDSE: lines of URL, realm and number, sorted by URL. 0 enters a URL as pending; a time enters it as "
        "pending, and is kept for `scrapy urls --format pending` until it is fetched; 2 enters it as an error, which is not fetched until "
        "`scrapy clear-errors`. Of a known URL, 2 or a larger number replaces the state. The whole file is checked first: of one with a faulty "
        "line nothing is imported. URLs that the rules refuse are kept out. Works while the collection is crawled, and before its first crawl; "
        "one that was stopped continues when it is run again. "
        "Exit status: 0 imported; 1 a line was kept out, or the file, the collection or the store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--retry-errors", action="store_true", help="import errors (2) as URLs that wait (0)")
        parser.add_argument("--json", action="store_true", help="print the numbers for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a file, as in: scrapy import-pending demo search.pending.txt")
        paths, path = self.paths(args[0]), Path(args[1])
        collection = load_collection(paths.name, paths.settings)
        clock = SystemClock()
        now = int(clock.now())
        with _opened(path) as file, closing(ProgressDisplay(sys.stderr, clock)) as progress:
            begun = clock.monotonic()
            total = checked(file, path.name, now=now)
            file.seek(0)
            reduce_garbage_collection()
            with paths.store.filling() as opened:
                discovery = CandidateChecker(build_space(collection), memory=_REMEMBERED)
                importing = PendingImport(
                    opened.store,
                    Admission(collection, discovery, opened.store),
                    discovery,
                    collection=paths.name,
                    file=path.name,
                    now=now,
                    crawled=bool(opened.crawlers()),
                    retry_errors=opts.retry_errors,
                )
                counts = importing.counts
                try:
                    lines = read_lines(file, path.name, now=now, fault=_refuse)
                    while batch := list(islice(lines, LINES_AT_ONCE)):
                        importing.add(batch)
                        progress(f"{counts.lines:,} of {total:,} lines")
                except KeyboardInterrupt:
                    raise Stopped(_stopped_after(counts.lines, total)) from None
                except CrawlspaceError:
                    print(_stopped_after(counts.lines, total), file=sys.stderr)
                    raise
            seconds = max(clock.monotonic() - begun, 0.001)
        for note in counts.notes:
            print(printable(note, most=2_000), file=sys.stderr)
        for sentence in counts.sentences():
            print(sentence, file=sys.stderr)
        if opts.json:
            print_json(counts.as_json())
        else:
            print(
                f"{counted(counts.lines, 'line')} in {seconds:,.1f} s ({counts.lines / seconds:,.0f}/s): {counted(counts.entered, 'URL')} entered,"
                f" {counts.changed:,} known with another state or realm now, {counts.unchanged:,} as they were, {counts.left_out:,} kept out"
            )
        return 1 if counts.left_out else 0


def _opened(path: Path) -> BinaryIO:
    """Open a regular file, because it is read twice. Raises UsageError."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"{quoted(str(path))} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{quoted(str(path))} is not a file on a disk, and it is read twice: write it to one")
    return file


def _refuse(sentence: str) -> NoReturn:
    """Raise the error for a file that was changed after it was checked."""
    raise PendingFileError([sentence], note="the file was changed while it was imported")


def _stopped_after(lines: int, total: int) -> str:
    return f"stopped: {lines:,} of {total:,} lines are imported; the same command imports the others"
