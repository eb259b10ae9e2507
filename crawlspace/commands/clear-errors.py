"""`scrapy clear-errors`: reset URLs that ended in an error.

Scrapy names a command after its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from crawlspace.admin.url_changes import ChangeCounts
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, url_changes
from crawlspace.text import counted, verb


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Reset URLs with errors"
    explanation = (
        "Clear the errors of all URLs whose last fetch ended in one (states gone and failed): those without a document are pending again, as if newly "
        "discovered; those with one are due now, their count of errors is reset, and a deletion held for them is dropped. A running crawl fetches them, "
        "or else the next one. Works while the collection is crawled. "
        "Exit status: 0 done, also when there were none; 1 the store has a fault; 2 wrong use."
    )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy clear-errors demo"))
        with paths.store.changing() as opened:
            made = ChangeCounts() if opened is None else url_changes(opened).clear_errors()
        print(
            f"{counted(made.renewed, 'URL is', 'URLs are')} pending again, {made.changed - made.renewed:,} with a document {verb(made.changed - made.renewed, 'is', 'are')} due now"
        )
        for note in made.of_the_rest():
            print(note, file=sys.stderr)
        return 0
