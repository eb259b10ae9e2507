"""A collection of a random history that has a search server beside the embedded index: what happens to it, and what it must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crawlspace.crawl.sinks.deliveries import have_filled, lacks_documents
from crawlspace.crawl.sinks.repair import UNSENT
from crawlspace.state.duplicates import held_checksum
from tests.histories.archived import ArchivedCollection
from tests.histories.collection import row_of
from tests.histories.documents import Indexed
from tests.histories.oracle import Oracle, Remembered
from tests.histories.past import Past
from tests.histories.sending import SEARCH, SimulatedSearch


class SearchedCollection(ArchivedCollection):
    def _tend_search(self, search: SimulatedSearch) -> None:
        """What a person, or too long an outage, does to the sink between two crawls."""
        search.was_filled = True
        what = self._chance.random()
        with self._crawler.store() as store:
            if not search.is_named:
                search.is_named = True
                store.use_sinks(self._crawler.sinks)
                if store.counts().indexed:
                    have_filled(store, SEARCH)
                self._say("the settings name the search server")
            elif what < 0.3:
                have_filled(store, SEARCH)
                self._say("the search server is to be filled")
            elif what < 0.6:
                search.lose(store)
                self._say("the search server has lost its index, and is to be filled")
            else:
                waiting = store.backlog(SEARCH)
                have_filled(store, SEARCH)
                store.withdraw(SEARCH, deletes=False)
                self._say(f"of {waiting} orders for the search server the pushes are dropped")
                self._report.met["pushes for the search server dropped"] += waiting > 0

    def _calm(self, search: SimulatedSearch) -> None:
        """Have nothing fail any more where the server lacks documents: some are fetched for it in the crawls that follow."""
        with self._crawler.store() as store:
            if lacks_documents(store, SEARCH):
                search.end_faults()

    def _search_differences(
        self, oracle: Oracle, index: Mapping[str, Indexed], memory: Mapping[str, Remembered], past: Past
    ) -> Iterator[str]:
        """All being settled and sent, the server has the same documents as the embedded index, as the oracle expects them."""
        search = self._crawler.search
        if search is None or not search.is_named:
            return
        with self._crawler.store() as store:
            search.send_rest(store, self._crawler.clock.now())
            if waiting := store.backlog(SEARCH):
                yield f"SEARCH  {waiting} orders wait, though nothing fails"
            for op, url, reason in store.parked(SEARCH):
                yield f"SEARCH  {op.name} {url} refused: {reason}"
            if lacks_documents(store, SEARCH):
                yield "SEARCH  it lacks documents still"
        there = search.index()
        lacking = {url for url in index.keys() - there.keys() if self._cannot_be_sent(url, search)}
        for url in sorted(index.keys() - there.keys() - lacking):
            yield f"SEARCH  MISSING {url}: {index[url].title!r} ({row_of(self._known.get(url))})"
        for url in sorted(there.keys() - index.keys()):
            yield f"SEARCH  EXTRA   {url}: {there[url].title!r}"
        of_embedded = set(oracle.differences(index, memory, past))
        for one in oracle.differences({**there, **{url: index[url] for url in lacking}}, memory, past):
            if one not in of_embedded:
                yield f"SEARCH  {one}"
        self._report.met["documents on the search server"] += len(there)
        self._report.met["documents that it cannot be sent"] += len(lacking)
        search.fail_again()

    def _cannot_be_sent(self, url: str, search: SimulatedSearch) -> bool:
        """Whether the server, since it was filled, lacks a document that could only be fetched: its page fails, or is never asked for."""
        state = self._known.get(url)
        if state is None or not search.was_filled:
            return False
        if state.next_fetch is None or state.held is not None:
            return True  # left in the index for another crawler, or its page is no document any more
        # in a crawl that goes on, a page may have been in flight whenever its document was to be sent
        # one without a checksum was left in the index when its page came back and failed: nothing is kept of what it was
        # one with a checksum of its own was held for the rules; it is sent after its next fetch, changed or not
        is_to_fetch = state.fields_mark == UNSENT or state.checksum in (None, held_checksum(state.id))
        return is_to_fetch and (self._configuration.continuous or not self._is_well(url))
