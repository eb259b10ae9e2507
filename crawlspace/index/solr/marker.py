"""The marker of a collection in an index of Solr: it looks like the remains of a deleted document, which no search finds.

So the schema needs nothing for it. An index without a marker and without documents of the collection is not the one that its batches went
to: it gets the marker of batch 0. One with documents is older than markers.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from crawlspace.document import IndexOrder, Op
from crawlspace.index.json_client import items
from crawlspace.index.marks import BatchMark
from crawlspace.index.search_server.items import Item
from crawlspace.index.search_server.marker import MARKER_PREFIX, Marker
from crawlspace.index.solr.contents import SolrContents, pair_of, version_of
from crawlspace.index.solr.documents import item_of

_FIELDS = "id,version,fields"


class SolrMarker(Marker):
    """The marker of one collection in an index. Raises IndexUnavailable."""

    def __init__(self, contents: SolrContents, *, owner: str, sink: str, where: str) -> None:
        super().__init__(sink=sink, owner=owner, where=where)
        self._contents = contents

    async def is_missing(self) -> bool:
        """Return whether the index has neither the marker nor documents of the collection."""
        return await self.read() is None and not await self._may_predate_markers()

    async def _stored(self) -> tuple[BatchMark | None, int]:
        id = f"{MARKER_PREFIX}{self._owner}"
        found = await self._contents.get([id], _FIELDS) or await self._contents.get([id], _FIELDS)  # see `SolrContents.versions`
        return (_mark_of(found[0]), version_of(found[0])) if found else (None, 0)

    async def _may_predate_markers(self) -> bool:
        return bool(await self._contents.count_found(self._owner))

    def _mark_of_other_index(self, mark: BatchMark) -> BatchMark:
        return BatchMark(mark.generation, 0)

    def _item(self, mark: BatchMark, version: int) -> Item:
        fields = [f"{name}={value}" for name, value in msgspec.structs.asdict(mark).items()]
        return _item({"id": f"{MARKER_PREFIX}{self._owner}", "version": version, "deleted": True, "fields": fields})


async def markers_in(contents: SolrContents) -> list[Item]:
    """Return the markers of all collections in an index, as items for another one."""
    found = await contents.get(await contents.ids_of_all(MARKER_PREFIX), _FIELDS)
    return [_item({**one, "deleted": True}) for one in found]


def _item(document: Mapping[str, object]) -> Item:
    return item_of(IndexOrder(0, Op.PUSH, "", version=version_of(document)), document, id=str(document.get("id")))


def _mark_of(document: Mapping[str, object]) -> BatchMark | None:
    written = dict(map(pair_of, items(document.get("fields"))))
    try:
        return msgspec.convert(written, BatchMark, strict=False)
    except msgspec.ValidationError:
        return None
