"""`scrapy export`: write all documents of the index to a file, in the forms of Scrapy's feeds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing, redirect_stdout

from crawlspace.errors import StoreError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.runtime.components.command import CollectionCommand, EscapingOutput, exactly_one
from crawlspace.runtime.components.exports import export, read_feeds
from crawlspace.runtime.session.paths import refuse_missing_index
from crawlspace.text import counted, printable

_EXAMPLE = "scrapy export demo -O demo.jsonl"


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Export all documents in a collection's index"
    explanation = (
        "Write all documents of a collection that are in the index at this moment, in a form of Scrapy's feeds: jsonl, json, csv, xml, or "
        "one of FEED_EXPORTERS. The settings FEED_EXPORT_FIELDS, FEED_EXPORT_ENCODING and FEED_EXPORT_INDENT apply. Nothing is fetched; "
        "works while the collection is crawled. The file is there as soon as it is complete. "
        "Exit status: 0 exported; 1 the collection has no index, the index has a fault, or the export cannot be written; 2 wrong use or "
        "the file exists; 130 stopped by Ctrl-C."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        form = "the form is that of its ending, or FILE:FORM; - is the standard output, as in -:jsonl"
        parser.add_argument("-o", "--output", metavar="FILE", action="append", default=[], help=f"write to a new file; {form}")
        parser.add_argument(
            "-O",
            "--overwrite-output",
            metavar="FILE",
            action="append",
            default=[],
            help="write to a file, and replace one that is there",
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example=_EXAMPLE))
        if not (opts.output or opts.overwrite_output):
            raise UsageError(f"name a file to export to, as in: {_EXAMPLE}")
        feeds = read_feeds(paths.settings, opts.output, opts.overwrite_output)
        refuse_missing_index(paths)
        if not paths.index_file.exists():
            raise StoreError(
                f"{paths.name} has never been crawled, so there is nothing to export: `scrapy crawl {paths.name}` does"
            )
        out = sys.stdout.unescaped if isinstance(sys.stdout, EscapingOutput) else sys.stdout
        with closing(EmbeddedIndex(paths.index_file, read_only=True)) as index, redirect_stdout(out):
            number = export(index.documents(paths.name), feeds, paths.settings, name=paths.name)
        if number or paths.settings.getbool("FEED_STORE_EMPTY"):
            where = ", ".join(printable(uri) for uri in feeds)
            done = f"{paths.name}: {counted(number, 'document')} exported to {where}"
        else:
            done = f"{paths.name} has no documents in the index; nothing was written, for FEED_STORE_EMPTY is off"
        print(done, file=sys.stderr)
        return 0
