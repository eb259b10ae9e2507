"""`scrapy forget`: remove URLs from the store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from crawlspace.admin.url_changes import read_url
from crawlspace.commands.recrawl import add_selection, selected
from crawlspace.commands.urls import status_codes
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, url_changes
from crawlspace.runtime.session.url_requests import forget


class Command(CollectionCommand):
    usage = "[options] <collection> [<url> ...]"
    summary = "Forget URLs and delete their documents"
    explanation = (
        "Remove URLs from the store, and their documents from the index: those named, and the known ones that match all options "
        "given. A link or start URL that leads to one discovers it again, unless the rules forbid it. These deletions are not held for approval. "
        "Works while the collection is crawled. "
        "Exit status: 0 done, also when no known URL matches the options; 1 a URL named is not known, or the store or index has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        add_selection(parser)
        parser.add_argument(
            "--status", type=status_codes, metavar="CODE", help="known URLs with this status code, as in 404 or 4xx"
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        selection = selected(opts, statuses=opts.status)
        if not args or not (args[1:] or selection):
            raise UsageError(
                "name a collection and what to forget, as in: scrapy forget demo --prefix http://www.example.com/archive/"
            )
        paths = self.paths(args[0])
        urls = dict.fromkeys(read_url(text) for text in args[1:])
        with paths.store.changing() as opened:
            if opened is None:
                print(f"{paths.name} has never been crawled: nothing of it is known", file=sys.stderr)
                return 1
            done = forget(paths, opened, url_changes(opened), urls, selection)
        print(done.sentence)
        for note in done.notes:
            print(note, file=sys.stderr)
        return 1 if done.unknown else 0
