"""`scrapy recrawl`: make URLs due before their time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from crawlspace.admin.url_changes import Selection, read_prefix, read_url
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, url_changes
from crawlspace.runtime.session.url_requests import recrawl


class Command(CollectionCommand):
    usage = "[options] <collection> [<url> ...]"
    summary = "Fetch URLs again before their time"
    explanation = (
        "Make URLs due now, with an unconditional GET: those named, which are inserted if they are new and the rules "
        "admit them, and the known ones that match all options given. A running crawl fetches them, or else the next one. URLs outside the crawl "
        "space are refused. Works while the collection is crawled. "
        "Exit status: 0 done, also when no known URL matches the options; 1 a URL was refused, or the collection or the store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--errors", action="store_true", help="known URLs whose last fetch ended in an error (states gone and failed)"
        )
        add_selection(parser)

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        selection = selected(opts, errors=opts.errors)
        if not args or not (args[1:] or selection):
            raise UsageError(
                f"name a collection and what to fetch again, as in: scrapy recrawl {args[0] if args else 'demo'} --errors"
            )
        paths = self.paths(args[0])
        urls = dict.fromkeys(read_url(text) for text in args[1:])
        with paths.crawled(paths.store.changing()) as opened:
            done = recrawl(paths, opened, url_changes(opened), urls, selection)
        print(done.sentence)
        for note in done.notes:
            print(note, file=sys.stderr)
        return 1 if done.refused else 0


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that select known URLs."""
    parser.add_argument(
        "--prefix", metavar="PREFIX", help="known URLs with this beginning, as in http://www.example.com/archive/"
    )
    parser.add_argument("--host", type=str.lower, help="known URLs of this host, as in www.example.com or www.example.com:8080")


def selected(opts: argparse.Namespace, *, errors: bool = False, statuses: range | None = None) -> Selection | None:
    """Return the selection; None if no option is given. Raises UsageError."""
    prefix = None if opts.prefix is None else read_prefix(opts.prefix)
    selection = Selection(prefix=prefix, host=opts.host, errors=errors, statuses=statuses)
    return None if selection == Selection() else selection
