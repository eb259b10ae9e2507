"""`scrapy backup`: copy a collection to one file, also while it is crawled."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from crawlspace.admin.backups.folders import listed
from crawlspace.admin.url_changes import Stopped
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, print_json
from crawlspace.runtime.operations.backup import back_up, check_file, secrets_in
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.text import counted


class Command(CollectionCommand):
    usage = "[options] <collection> <file>"
    summary = "Copy all that is known of a collection, and its files, to one file"
    explanation = (
        "Copy the store of a collection, the files in its folder and the global.rules that apply to it to one tar file, which `scrapy restore` "
        "puts back. With --archive it has the archive too. The index is not in it: a restore sends all documents again. A collection whose "
        "store is a file may be crawled meanwhile; on a Redis server its workers have to be stopped. The file is verified before it gets its name, "
        "and only this user may read it. Settings that have a password as plain text are named. "
        "Exit status: 0 written and verified; 1 store, files or disk have a fault, or workers crawl the collection; 2 wrong use; 130 stopped by Ctrl-C."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--archive", action="store_true", help="copy the files of the archive too")
        parser.add_argument("--replace", action="store_true", help="replace a file that exists, once the new one is verified")
        parser.add_argument("--json", action="store_true", help="print what is in the backup for a program, as one object")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a file, as in: scrapy backup demo /backups/demo.tar")
        paths, file = self.paths(args[0]), Path(args[1])
        check_file(paths, file, replaces=opts.replace)
        if secrets := secrets_in(paths.folder):
            sys.stderr.write(
                f"{paths.folder / 'settings.py'} has secrets as plain text, which will be in the backup: {listed(secrets)}; write env:NAME or"
                " file:PATH there instead\n"
            )
        try:
            with closing(ProgressDisplay(sys.stderr, SystemClock())) as display:
                manifest = back_up(paths, file, display, SystemClock(), with_archive=opts.archive, replaces=opts.replace)
        except KeyboardInterrupt:
            raise Stopped(f"stopped: {file} was not written") from None
        contents, size = manifest.contents, file.stat().st_size
        if contents.missing_archive_files:
            sys.stderr.write(
                f"the archive lacks {counted(len(contents.missing_archive_files), 'file')} that the store names, and so does the backup:"
                f" {listed(contents.missing_archive_files)}\n"
            )
        if opts.json:
            print_json({"file": str(file), "bytes": size, **msgspec.to_builtins(manifest)})
            return 0
        files = counted(len(manifest.members) - 1, "file")
        print(
            f"{paths.name}: {counted(contents.urls, 'URL')}, {counted(contents.orders, 'index order')} and {files}"
            f"{', the archive among them,' if contents.has_archive else ''} are in {file} ({size:,} bytes), verified"
        )
        return 0
