"""The marker of a collection in an index of OpenSearch or Elasticsearch: a document with the field `batch_mark`, and without URL and text."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.bulk import item_of, refused_whole
from crawlspace.index.opensearch.contents import cannot_read, hits_of
from crawlspace.index.opensearch.mapping import MARK
from crawlspace.index.search_server.items import Item
from crawlspace.index.search_server.marker import MARKER_PREFIX, Marker

FIELD = "batch_mark"
_MAX_COPIED = 10_000
"""Markers of collections that are copied to another index."""


class OpenSearchMarker(Marker):
    """The marker of one collection in an index. Raises IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str, *, owner: str, sink: str) -> None:
        """`server` is the URL of the server, for messages."""
        super().__init__(sink=sink, owner=owner, where=f"{index} at {server}")
        self._client = client
        self._server = server
        self._index = index
        self._is_supported = False
        self.is_complete = False
        """Whether each collection with documents in the index has a marker, because the index was created with them."""

    async def prepare(self, mapping: Mapping[str, object], *, may_add: bool) -> None:
        """Check whether the index, which has this mapping, has the field of markers; add it if that is allowed."""
        self._is_supported = has_field(mapping)
        if not self._is_supported and may_add:
            added = await self._client.request("PUT", f"/{self._index}/_mapping", body={"properties": {FIELD: MARK}})
            self._is_supported = added.is_ok
            if not added.is_ok:
                self._disable(refused_whole(added.status, added.body).why)
        self.is_complete = are_complete(mapping)

    async def _stored(self) -> tuple[BatchMark | None, int]:
        reply = await self._client.request("GET", f"/{self._index}/_doc/{quote(f'{MARKER_PREFIX}{self._owner}', safe='')}")
        if reply.status == 404:
            return None, 0
        if not reply.is_ok:
            raise cannot_read(self._index, self._server, refused_whole(reply.status, reply.body).why)
        found, version = table(table(reply.body).get("_source")).get(FIELD), table(reply.body).get("_version")
        try:
            mark = msgspec.convert(found, BatchMark)
        except msgspec.ValidationError:
            mark = None
        return mark, version if isinstance(version, int) else 0

    async def _may_predate_markers(self) -> bool:
        return not self.is_complete

    def _item(self, mark: BatchMark, version: int) -> Item:
        return _item(mark, self._owner, version)


def has_field(mapping: Mapping[str, object]) -> bool:
    """Return whether the mapping of an index has the field of markers."""
    properties = table(table(mapping.get("mappings")).get("properties"))
    return "batch" in table(table(properties.get(FIELD)).get("properties"))


def are_complete(mapping: Mapping[str, object]) -> bool:
    """Return whether an index, by its mapping, was created with markers."""
    return FIELD in table(table(mapping.get("mappings")).get("_meta"))


async def copy_markers(client: Client, server: str, index: str, *, to: str) -> None:
    """Copy the markers of all collections from an index to another one; those of later batches are there already, or follow."""
    await client.request("POST", f"/{index}/_refresh")
    query = {"size": _MAX_COPIED, "version": True, "query": {"exists": {"field": f"{FIELD}.collection"}}}
    reply = await client.request("POST", f"/{index}/_search", body=query)
    if not reply.is_ok:
        raise cannot_read(index, server, refused_whole(reply.status, reply.body).why)
    found = []
    for hit in hits_of(reply.body):
        written, version = table(table(hit.get("_source")).get(FIELD)), hit.get("_version")
        if isinstance(version, int):
            found.append(_item(msgspec.convert(written, BatchMark), str(written.get("collection")), version))
    if found:
        reply = await client.request("POST", f"/{to}/_bulk", lines=b"".join(item.lines for item in found))
        if not reply.is_ok:
            raise IndexUnavailable(f"{to} at {server}: {refused_whole(reply.status, reply.body).why}")


def _item(mark: BatchMark, owner: str, version: int) -> Item:
    source = {FIELD: {"collection": owner, **msgspec.structs.asdict(mark)}}
    return item_of(IndexOrder(0, Op.PUSH, "", version=version), source, id=f"{MARKER_PREFIX}{owner}", pipeline="_none")
