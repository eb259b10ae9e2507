"""`scrapy clear-errors`: what ended in an error begins anew.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from crawlspace.admin.url_changes import LiveCount, Made, UrlChanges
from crawlspace.clock import SystemClock
from crawlspace.plural import counted, verb
from crawlspace.runtime.command import CollectionCommand, exactly_one


class Command(CollectionCommand):
    """URLs whose last fetch ended in an error, as if it had not."""

    def syntax(self) -> str:
        return "[options] <collection>"

    def short_desc(self) -> str:
        return "Have URLs with errors begin anew"

    def long_desc(self) -> str:
        return (
            "Clear the errors of all URLs whose last fetch ended in one (states gone and failed): those without a document are pending again, as if "
            "they had just been found; those with one are due now, their errors count from none, and a deletion held for them is dropped. A crawl that "
            "runs fetches them, or else the next one. Works while the collection is crawled. "
            "Exit status: 0 done, also when there were none; 1 the store has a fault; 2 wrong use."
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        place = self.place(exactly_one(args, example="scrapy clear-errors demo"))
        clock = SystemClock()
        made = Made()
        with place.store.changing() as opened:
            if opened is not None:
                crawled = bool(opened.crawlers())
                made = UrlChanges(opened.store, clock=clock, crawled=crawled, told=LiveCount(sys.stderr, clock)).clear_errors()
        print(
            f"{counted(made.renewed, 'URL is', 'URLs are')} pending again, {made.changed - made.renewed:,} with a document {verb(made.changed - made.renewed, 'is', 'are')} due now"
        )
        for note in made.of_the_rest():
            print(note, file=sys.stderr)
        return 0
