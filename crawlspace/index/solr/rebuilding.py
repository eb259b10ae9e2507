"""Solr as a sink whose index can be built anew beside the one that is searched.

While an index is being built, each batch goes there first, and then to the one that is searched. A switch in between does no harm: what
comes late has a version that is there already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.inventory import Copies, Entry
from crawlspace.index.json_client import items
from crawlspace.index.marks import BatchMark
from crawlspace.index.search_server.copies import NextSink, RebuildableSink
from crawlspace.index.search_server.items import Item, requests_of
from crawlspace.index.solr.admin import Collections, Cores
from crawlspace.index.solr.contents import version_of
from crawlspace.index.solr.copies import Note, SolrCopies
from crawlspace.index.solr.documents import copied, deleted
from crawlspace.index.solr.marker import markers
from crawlspace.index.solr.sink import SolrSink
from crawlspace.index.solr.updates import item_of

_MOST_ITEMS = 500


class RebuildableSolr(RebuildableSink["_NextCopy"], SolrSink):
    """A core, or the collection behind an alias."""

    _note: Note | None = None
    """As it was when it was read last."""
    _next: _NextCopy | None = None

    async def _following(self) -> _NextCopy | None:
        try:
            note = await self._copies.note()
        except IndexUnavailable:  # say so more clearly if the index is gone
            self._is_ready = False
            await self._make_ready(may_create=False)
            raise
        if note != self._note:
            if self._note is not None:  # another one may be searched, with another schema
                self._is_ready = False
                await self._make_ready(may_create=False)
            self._next = _NextCopy(self, note.next) if note.next else None
            self._note = note
        return self._next

    @property
    def _copies(self) -> SolrCopies:
        admin = Collections if self._is_cloud else Cores
        return SolrCopies(self._client, self._url, self._index, admin(self._client, self._url, self._index))

    # rebuilding
    def copies(self) -> Copies:
        self._client.run(self._make_ready(may_create=False))
        return self._client.run(self._copies.all())

    def duplicates_of(self, urls: Sequence[str]) -> dict[str, list[str]]:
        found = self._contents().sources(urls, only="duplicates")
        return {url: list(map(str, items(source.get("duplicates")))) for url, source in found.items()}

    def begin_next(self, *, on_previous: bool = False) -> None:
        self._client.run(self._make_ready(may_create=False))
        self._client.run(self._copies.begin_next(on_previous=on_previous))

    def switch(self) -> None:
        self.next_copy().carry_over_markers()
        self._client.run(self._copies.switch())
        self._is_ready = False

    def give_up_next(self) -> None:
        self._client.run(self._make_ready(may_create=False))
        self._client.run(self._copies.give_up_next())


class _NextCopy(NextSink, SolrSink):
    """The index that is being built, by its own name. Uses the client of the sink."""

    def __init__(self, sink: RebuildableSolr, name: str) -> None:
        super().__init__(
            sink.name,
            sink._connection,
            name,
            owner=sink._owner,
            most_bytes=sink._most_bytes,
            connections=sink._connections,
            commit_within_s=sink._commit_within_s,
            clock=sink._clock,
            client=sink._client,
        )
        self._searched = sink._there

    def carry_over(self, urls: Sequence[str]) -> None:
        self._client.run(self._make_ready(may_create=False))
        self._write(
            [
                item_of(IndexOrder(0, Op.PUSH, url, version=version_of(source)), copied(source, without=self._copied_to))
                for url, source in self._searched.sources(urls).items()
            ]
        )

    def carry_over_markers(self) -> None:
        """Copy the markers of all collections; those of later batches are there already, or come."""
        self._client.run(self._make_ready(may_create=False))
        self._write(self._client.run(markers(self._searched)))

    def remove(self, entries: Sequence[Entry]) -> None:
        # One more than the version that is there: whatever is ordered later of the URL has more than that.
        orders = [IndexOrder(0, Op.DELETE, one.url, version=one.version + 1) for one in entries]
        self._write([item_of(order, deleted(order, now=self._clock.now())) for order in orders])

    def _write(self, written: Sequence[Item]) -> None:
        """Write items of which each may be refused, or have a later version there: the comparison that follows sees that."""
        for part in requests_of(written, most_bytes=self._most_bytes, most_items=_MOST_ITEMS):
            for _, answered in self._client.run(self._sent(part)):
                if answered.is_trouble:
                    raise IndexUnavailable(f"{self._index} at {self._url}: {answered.why}")

    async def _marker(self, mark: BatchMark, orders: Sequence[IndexOrder]) -> Item | None:
        """Return the marker whatever is there: it holds from the switch on, when nothing is missing."""
        return await self._marks.item(mark, orders, always=True)

    async def _of_others(self, ids: Sequence[str]) -> set[str]:
        """Return those of another collection in the index that is searched, or here if they are not there.

        Where one is not carried over yet, a deletion would keep it out: Solr remembers its version.
        """
        here, there = await self._look_up(ids), await self._searched.versions(ids)
        owners: Mapping[str, str | None] = {id: owner for id, (_, owner) in {**here, **there}.items()}
        return {id for id, owner in owners.items() if owner not in (None, self._owner)}

    def _missing(self) -> IndexUnavailable:
        return IndexUnavailable(
            f"{self._index} at {self._url}, which was being built, is not there any more: give it up by `scrapy reindex {self._owner} --sink"
            f" {self.name} --discard`"
        )
