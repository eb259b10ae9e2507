"""The marker: a document that says which batch of a collection an index had last, so that an index from an older copy is noticed.

It has an id that no URL has, a version as documents have, and looks like what is left of a deleted document, which no search finds: so the
schema needs nothing for it. It is written with each batch, as long as the index has had the batch before: so the marker of an index that was
put back stays behind until the index was repaired. An index without one and without documents of the collection is not the one that its
batches went to: it gets the marker of batch 0. One with documents is of before there were markers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crawlspace.document import IndexOrder, Op
from crawlspace.index.json_client import items
from crawlspace.index.marks import BatchMark
from crawlspace.index.search_server.items import Item, ItemResult, Judged
from crawlspace.index.search_server.marker import MarkReports
from crawlspace.index.solr.contents import SolrContents, version_of
from crawlspace.index.solr.documents import item_of

PREFIX = "mark:"
"""How the id of a marker begins; that of a document has 32 hexadecimal digits."""
_FIELDS = "id,version,fields"


class SolrMarker:
    """The marker of one collection in an index. Raises IndexUnavailable."""

    def __init__(self, there: SolrContents, *, owner: str, reports: MarkReports) -> None:
        self._there = there
        self._owner = owner
        self._reports = reports
        self._is_kept = True

    async def read(self) -> BatchMark | None:
        """Return the mark that the index has."""
        mark, _ = await self._read()
        return mark

    async def item(self, mark: BatchMark, orders: Sequence[IndexOrder], *, always: bool = False) -> Item | None:
        """Return what is written with a batch; None where nothing is. A warning is logged if the index is not as it should be.

        `always`: write it whatever the index has.
        """
        if not self._is_kept:
            return None
        found, version = await self._read()  # each time: others may have sent meanwhile, and the index may have been put back
        is_of_before = found is None and await self._there.has_documents(self._owner)
        if not always and not is_of_before and not self._reports.may_follow(mark, found):
            if found is not None:
                return None
            mark = BatchMark(mark.generation, 0)
        return _item(_document(mark, self._owner, max(version + 1, *(order.version for order in orders))))

    async def check(self, mark: BatchMark) -> None:
        """Log a warning if the index is not as it should be before a batch, which comes next."""
        found, _ = await self._read()
        if found is not None or not await self._there.has_documents(self._owner):
            self._reports.may_follow(mark, found)

    def settle(self, answered: Judged) -> bool:
        """Take the answer to an item; return whether the batch has to be sent again for it."""
        if answered.answer is ItemResult.ITS_OWN:
            self._is_kept = False
            self._reports.not_taken(answered.why)
        return answered.is_trouble

    async def is_missing(self) -> bool:
        """Return whether the index has neither the marker nor documents of the collection."""
        return await self.read() is None and not await self._there.has_documents(self._owner)

    async def _read(self) -> tuple[BatchMark | None, int]:
        id = f"{PREFIX}{self._owner}"
        found = await self._there.get([id], _FIELDS) or await self._there.get([id], _FIELDS)  # see `SolrContents.versions`
        return (_mark_of(found[0]), version_of(found[0])) if found else (None, 0)


async def markers(there: SolrContents) -> list[Item]:
    """Return the markers of all collections in an index, to be written to another one."""
    found = await there.get(await there.ids_of_all(PREFIX), _FIELDS)
    return [_item({**one, "deleted": True}) for one in found]


def _document(mark: BatchMark, owner: str, version: int) -> dict[str, object]:
    fields = [f"{name}={value}" for name, value in msgspec.structs.asdict(mark).items()]
    return {"id": f"{PREFIX}{owner}", "version": version, "deleted": True, "fields": fields}


def _item(document: Mapping[str, object]) -> Item:
    return item_of(IndexOrder(0, Op.PUSH, "", version=version_of(document)), document, id=str(document.get("id")))


def _mark_of(document: Mapping[str, object]) -> BatchMark | None:
    written = dict(str(one).split("=", 1) for one in items(document.get("fields")) if "=" in str(one))
    try:
        return msgspec.convert(written, BatchMark, strict=False)
    except msgspec.ValidationError:
        return None
