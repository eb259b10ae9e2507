"""`scrapy reindex`: send all documents again, to one sink after the other, or made anew to each of them."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlspace.admin.reindex import UNKNOWN, IndexState, Reindexed, Reindexing, meta_of
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.deliveries import end_filling, take_over_filling
from crawlspace.errors import StoreError
from crawlspace.index.marks import Agreement, MarkKeeper, agreement, forget_mark
from crawlspace.runtime.progress_display import ProgressDisplay
from crawlspace.runtime.reindexing.index_file import note_sent_again, prepare_index
from crawlspace.runtime.reindexing.sending import SendingToEach, opened_sink, sending_to
from crawlspace.runtime.replay.extracting import extracting
from crawlspace.runtime.stores.archive import archive_reader
from crawlspace.runtime.stores.sinks import note_new_sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crawlspace.index.marks import BatchMark, MarkedStore
    from crawlspace.index.sink import Sink
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


@dataclass(frozen=True, slots=True)
class DocumentsAgain:
    """Sends the documents of a collection again. Raises StoreError."""

    place: Place
    opened: OpenStore

    def to(self, sink: str) -> Reindexed:
        """Send all to one sink. Raises IndexUnavailable if it does not take them."""
        clock = SystemClock()
        now = int(clock.now())
        state = prepare_index(self.place, self.opened) if sink == EMBEDDED else self._prepare_server(sink)
        with (
            closing(archive_reader(self.place, self.opened)) as archive,
            closing(ProgressDisplay(sys.stderr, clock)) as display,
            sending_to(sink, self.place, self.opened) as sending,
        ):
            sending.until(0)
            doing = "sending" if len(self.place.sinks.names) == 1 else f"sending to {sink}"
            done = Reindexing(
                self.opened.store,
                archive,
                state,
                now,
                deliver=sending.until,
                progress=lambda seen, total: display(doing, seen, total),
                sink=sink,
            ).run()
        if sink == EMBEDDED:
            note_sent_again(self.place, self.opened, done, now=now)
        elif not self.opened.crawlers():
            end_filling(self.opened.store, sink)
        return done

    def made_anew(
        self, *, processes: int, options: dict[str, str], report: Callable[[ProgressDisplay, str, str], None]
    ) -> tuple[Reindexed, Mapping[str, str]]:
        """Make all documents anew, and send them to each sink. Return also which servers did not take them, and why.

        Raises IndexUnavailable if the embedded index does not take them.
        """
        if self.opened.crawlers():
            raise StoreError(
                f"{self.place.name} is being crawled, with the code and settings of when that began: stop the crawl first, or wait for its end"
            )
        clock = SystemClock()
        now = int(clock.now())
        has_embedded = self.place.sinks.has_embedded
        state = prepare_index(self.place, self.opened) if has_embedded else UNKNOWN
        with ExitStack() as stack:
            archive = stack.enter_context(closing(archive_reader(self.place, self.opened)))
            display = stack.enter_context(closing(ProgressDisplay(sys.stderr, clock)))
            sendings = {name: stack.enter_context(sending_to(name, self.place, self.opened)) for name in self.place.sinks.names}
            each = SendingToEach(sendings)
            each.until(0)
            reindexing = Reindexing(
                self.opened.store,
                archive,
                state,
                now,
                deliver=each.until,
                settle=each.settle,
                progress=lambda seen, total: display("sending", seen, total),
            )
            making = extracting(
                reindexing,
                self.place,
                self.opened,
                archive,
                processes=processes,
                options=options,
                report=lambda url, why: report(display, url, why),
            )
            done = stack.enter_context(making).run()
        if has_embedded:
            note_sent_again(self.place, self.opened, done, now=now)
        return done, each.unavailable

    def _prepare_server(self, sink: str) -> IndexState:
        """Begin anew with a server, if no reindex is to be continued: an index that is not there any more is made again."""
        store, meta = self.opened.store, meta_of(sink)
        with opened_sink(sink, self.place) as server:
            found = server.mark()
            if store.get_meta(meta) and _is_another(store, server, found):
                store.set_meta(meta, "")
        if not self.opened.crawlers():  # else the crawl would not know of it
            note_new_sinks(store, self.place.sinks)
            if not store.get_meta(meta):
                take_over_filling(store, sink)
                if found is None:
                    forget_mark(store, sink)
        return UNKNOWN


def _is_another(store: MarkedStore, server: Sink, found: BatchMark | None) -> bool:
    """Return whether the index of a sink is not the one that it was sent its orders, as far as that can be known."""
    if found is None:
        return isinstance(server, MarkKeeper) and server.lacks_mark()
    return agreement(store, server.name, found, now=int(SystemClock().now())) is not Agreement.SAME
