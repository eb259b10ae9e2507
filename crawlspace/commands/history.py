"""`scrapy history`: what became of a URL, and by which rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from crawlspace.admin.report import label_of
from crawlspace.clock import local_time
from crawlspace.config.collection import load_collection
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, hanging, print_json
from crawlspace.runtime.lookups.url_history import UrlHistory, url_history


class Command(CollectionCommand):
    usage = "[options] <collection> <url>"
    summary = "Show what became of a URL over time, and by which rules"
    explanation = (
        "Show when a URL was fetched, when its document came into the index, changed and left it, and what the rules that were in force "
        "then decide about it, with the rule and its line. Known are the runs that are kept (CRAWLSPACE_RUNS_KEPT), before them "
        "the last ten fetches, and the rule files of the last 200 starts at which they had changed. Makes no network requests. "
        "Exit status: 0 shown, also where nothing is known; 1 the collection or its store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the history for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a URL, as in: scrapy history demo http://www.example.com/page.html")
        paths = self.paths(args[0])
        collection = load_collection(paths.name, paths.settings)
        with paths.store.reading() as opened:
            found = url_history(paths, collection, None if opened is None else opened.store, args[1])
        if opts.json:
            print_json(
                {
                    "url": found.url,
                    "events": [event.as_json() for event in found.events],
                    "state": None if found.state is None else label_of(found.state),
                    "status": None if found.state is None else found.state.status,
                    "indexed": found.state is not None and found.state.indexed,
                    "rules_on_disk": {name: value for name, value in found.now.as_json().items() if name != "since"},
                }
            )
        else:
            print("\n".join(_lines(found, paths.name)))
        return 0


def _lines(found: UrlHistory, name: str) -> Iterator[str]:
    yield found.url
    if not found.events:
        yield f"{name} does not know this URL" if found.state is None else "it has not been fetched yet"
    for event in found.events:
        yield hanging(f"  {local_time(event.at)}  ", event.what)
        if event.rules is not None:
            settings = "; settings.py was another one then" if event.rules.other_settings else ""
            yield hanging(" " * 20, f"rules since {local_time(event.rules.since)}: {event.rules.sentence}{settings}")
    if found.state is None and found.events:
        yield hanging(f"  {'now':<16}  ", f"{name} does not know it any more")
    elif found.state is not None:
        where = "in the index" if found.state.indexed else "not in the index"
        yield hanging(f"  {'now':<16}  ", f"{label_of(found.state)} ({found.state.status or 'no status'}), {where}")
    yield hanging("" if found.state is None and not found.events else " " * 20, f"rules on disk: {found.now.sentence}")
