"""`scrapy restore`: put a backup of a collection in place."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from crawlspace.admin.backups.file import Backup
from crawlspace.admin.backups.folders import listed
from crawlspace.admin.url_changes import Stopped
from crawlspace.clock import SystemClock
from crawlspace.config.secrets import is_elsewhere
from crawlspace.config.sinks import EMBEDDED
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, print_json, reduce_garbage_collection, refuse_wrong_name
from crawlspace.runtime.operations.restore import Restore, Restored, open_backup
from crawlspace.runtime.session.move import FILE, read_place
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.text import counted


class Command(CollectionCommand):
    usage = "[options] <collection> <file>"
    summary = "Put a backup of a collection in place"
    explanation = (
        "Put the store, the files and the archive of a collection in place as `scrapy backup` has copied them. The file is verified before "
        "anything is written. A store that holds the collection already is refused, and so is a folder with other files. Documents that the archive has are sent to the "
        "embedded index at once; the next crawl fetches and sends the others, and looks up documents of the index that are not known. "
        "A restore that was stopped or killed continues when the same command is run again; until then no crawl begins. "
        "Exit status: 0 restored, or verified; 1 the backup is damaged, of another version or of what is there already, or store, files or "
        "disk have a fault; 2 wrong use; 130 stopped by Ctrl-C."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--store",
            metavar="S",
            help="file, redis or the URL of a server; without it, as the settings of the collection name it",
        )
        parser.add_argument(
            "--keep-files", action="store_true", help="take the files of the collection that are there, where they differ"
        )
        parser.add_argument("--check", action="store_true", help="verify the file, and write nothing")
        parser.add_argument("--json", action="store_true", help="with --check, print what is in the backup for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a file, as in: scrapy restore demo /backups/demo.tar")
        if opts.json and not opts.check:
            raise UsageError("--json goes with --check: a restore prints what was done")
        name, file = args[0], Path(args[1])
        refuse_wrong_name(name)
        store = None if opts.store is None else read_place(opts.store)
        reduce_garbage_collection()
        with closing(ProgressDisplay(sys.stderr, SystemClock())) as display, open_backup(file) as backup:
            restore = Restore(backup, name, self.project_settings(), display, store, keeps_files=opts.keep_files)
            try:
                if opts.check:
                    restore.check()
                    _print_checked(backup, file, as_json=opts.json)
                else:
                    _print(restore.run(), file, restore)
            except KeyboardInterrupt:
                raise Stopped("stopped: what was restored stays, and the same command continues there") from None
        return 0


def _print_checked(backup: Backup, file: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(backup.manifest))
        return
    has = backup.contents
    print(f"{file} is whole: {has.collection}, {counted(has.urls, 'URL')} and {counted(has.orders, 'index order')} of {has.made}")


def _print(done: Restored, file: Path, restore: Restore) -> None:
    contents, paths = restore.backup.contents, done.paths
    print(
        f"{paths.name}: {counted(contents.urls, 'URL')} and {counted(contents.orders, 'index order')} of {contents.made} are in {done.store},"
        f" compared with {file}"
    )
    print(f"Its files are in {paths.folder}, and {counted(done.archive_files, 'file')} of the archive in place.")
    if done.global_rules is not None:
        print(f"{done.global_rules} was written, which applies to all collections.")
    if contents.missing_archive_files:
        print(f"The archive lacked files when it was copied: {listed(contents.missing_archive_files)}.")
    if done.reindexed is not None:
        print(f"{done.reindexed.sentence(paths.name)}.")
    if restore.store is not None:
        setting = "" if restore.store == FILE else restore.store if is_elsewhere(restore.store) else done.store
        print(f'Set CRAWLSPACE_STORE_URL = "{setting}", so that the next crawl uses it.')
    is_left = done.reindexed is None or not done.reindexed.is_whole
    what = "fetches and sends documents" if is_left else "sends what waits"
    print(f"Next: `scrapy crawl {paths.name}` {what}, and looks up documents of the index that the backup does not know.")
    for sink in paths.sinks.names:
        if sink != EMBEDDED:
            print(
                f"It sends all documents to {sink}; then `scrapy audit {paths.name} --sink {sink} --repair` removes others there."
            )
