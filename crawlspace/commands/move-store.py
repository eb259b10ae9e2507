"""`scrapy move-store`: move a collection's store from a file to a Redis server, or back.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from crawlspace.admin.url_changes import Stopped
from crawlspace.clock import SystemClock
from crawlspace.config.secrets import is_elsewhere
from crawlspace.config.sinks import EMBEDDED
from crawlspace.errors import UsageError
from crawlspace.index.sink import index_place
from crawlspace.runtime.components.command import CollectionCommand
from crawlspace.runtime.session.move import FILE, opened, read_place
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.state.dump import check_source, move
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.text import counted

if TYPE_CHECKING:
    from crawlspace.runtime.session.paths import CollectionPaths
    from crawlspace.state.redis.dump import RedisSide

_EXAMPLE = "scrapy move-store demo file redis://localhost:6379/0"


def _index_places(paths: CollectionPaths, source: SqliteSide | RedisSide) -> dict[str, str]:
    """Return the locations of the collection's indexes, by sink."""
    if not isinstance(source, SqliteSide):
        return source.index_locations()
    return {EMBEDDED: index_place(paths.index_file)} if paths.index_file.exists() else {}


class Command(CollectionCommand):
    usage = "<collection> <from> <to>"
    summary = "Move what is known of a collection to another store"
    explanation = (
        "Copy all that is known of a collection from one store to another, and compare the two. A store is `file` (state.db in the folder of "
        "the collection's data), `redis` (the server that the settings name), the URL of a server, or `env:NAME` or `file:PATH` for where that is written. Nobody may crawl the collection "
        "meanwhile. A copy that was stopped or killed continues when the same command is run again. The first store stays as it is. "
        "Exit status: 0 moved; 1 one of the stores has a fault, is being crawled, or holds what it should not; 2 wrong use; 130 stopped by Ctrl-C."
    )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 3:
            raise UsageError(f"name a collection and two stores, as in: {_EXAMPLE}")
        paths = self.paths(args[0])
        here, there = map(read_place, args[1:])
        if here == there:
            raise UsageError(f"the two stores are one and the same: name another one, as in: {_EXAMPLE}")
        try:
            with closing(ProgressDisplay(sys.stderr, SystemClock())) as bar, opened(paths, here) as source:
                check_source(source, paths.name)
                with opened(paths, there, writes=True) as target:
                    moved = move(source, target, paths.name, report=bar)
                    names = source.name, target.name
                    places = _index_places(paths, source)
                    if not isinstance(target, SqliteSide):
                        target.keep_index_locations(places)
        except KeyboardInterrupt:
            raise Stopped("stopped: what was copied stays, and the same command continues there") from None
        print(
            f"{paths.name}: {counted(moved.urls, 'URL')} and {counted(moved.orders, 'index order')} are in {names[1]} now, compared with {names[0]}"
        )
        setting = "" if there == FILE else there if there == "redis" or is_elsewhere(there) else names[1]
        print(f'Set CRAWLSPACE_STORE_URL = "{setting}", so that the next crawl uses it.')
        own, index = index_place(paths.index_file), places.get(EMBEDDED)
        if there != FILE:
            place_ = f"Its index stays where it is, at {index}" if index else "The first worker keeps the index"
            print(f"{place_}: a worker there sends it what all of them find.")
        elif index not in (None, own):
            print(f"Its index is at {index}: copy it to {paths.index_file} before the next crawl.")
        if here == FILE:
            print(f"Once all is well, {paths.state_file} may be deleted.")
        else:
            print(f"Once all is well, all keys of {names[0]} that begin with {{{paths.name}}}: may be deleted.")
        return 0
