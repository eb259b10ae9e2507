"""`scrapy export`: write all documents of the index to a file, in the forms of Scrapy's feeds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing, redirect_stdout
from pathlib import Path

from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import learned_blocks
from crawlspace.errors import StoreError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.runtime.components.archived_responses import FetchedHtml, archived_html
from crawlspace.runtime.components.command import CollectionCommand, EscapingOutput, exactly_one
from crawlspace.runtime.components.exports import export, read_feeds, with_states
from crawlspace.runtime.session.markdown_export import MarkdownOf, export_markdown
from crawlspace.runtime.session.paths import CollectionPaths, archive_reader, refuse_missing_index
from crawlspace.state.store import Store
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

        parser.add_argument(
            "--markdown",
            metavar="DIR",
            help="write each document to a file of Markdown in this folder, from its archived page; a folder of an earlier export is brought up "
            "to date",
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example=_EXAMPLE))
        if not (opts.output or opts.overwrite_output or opts.markdown):
            raise UsageError(f"name a file to export to, as in: {_EXAMPLE}")
        if opts.markdown and (opts.output or opts.overwrite_output):
            raise UsageError("--markdown is an export of its own: leave out -o and -O")
        feeds = read_feeds(paths.settings, opts.output, opts.overwrite_output)
        refuse_missing_index(paths)
        if not paths.index_file.exists():
            raise StoreError(
                f"{paths.name} has never been crawled, so there is nothing to export: `scrapy crawl {paths.name}` does"
            )
        if opts.markdown:
            print(_written_as_markdown(paths, Path(opts.markdown)), file=sys.stderr)
            return 0
        out = sys.stdout.unescaped if isinstance(sys.stdout, EscapingOutput) else sys.stdout
        with ExitStack() as stack, redirect_stdout(out):
            index, store, archive = _opened(paths, stack)
            number = export(with_states(index.documents(paths.name), store, archive), feeds, paths.settings, name=paths.name)
        if number or paths.settings.getbool("FEED_STORE_EMPTY"):
            where = ", ".join(printable(uri) for uri in feeds)
            done = f"{paths.name}: {counted(number, 'document')} exported to {where}"
        else:
            done = f"{paths.name} has no documents in the index; nothing was written, for FEED_STORE_EMPTY is off"
        print(done, file=sys.stderr)
        return 0


def _written_as_markdown(paths: CollectionPaths, folder: Path) -> str:
    """Export a collection to a folder; return what was done."""
    collection = load_collection(paths.name, paths.settings)
    with ExitStack() as stack:
        index, store, archive = _opened(paths, stack)
        learned = learned_blocks(store) if store is not None and collection.content.boilerplate else {}

        def page_of(url: str) -> FetchedHtml | None:
            state = None if store is None else store.get(url)
            return None if state is None or archive is None else archived_html(state, archive, collection.content)

        done = export_markdown(
            index.documents(paths.name),
            folder,
            page_of=page_of,
            markdown=MarkdownOf(collection.content, collection.extraction_rules, learned),
        )
    return (
        f"{paths.name}: {counted(done.written + done.unchanged, 'document')} in {printable(str(folder))}, {done.written:,} written,"
        f" {done.unchanged:,} as before, {done.removed:,} removed"
    )


def _opened(paths: CollectionPaths, stack: ExitStack) -> tuple[EmbeddedIndex, Store | None, ArchiveReader | None]:
    """Open the index, the store and the archive of a collection to read them; the last two are None where there is no store."""
    index = stack.enter_context(closing(EmbeddedIndex(paths.index_file, read_only=True)))
    opened = stack.enter_context(paths.store.reading())
    if opened is None:
        return index, None, None
    return index, opened.store, stack.enter_context(closing(archive_reader(paths, opened)))
