"""The marker: a document that says which batch of a collection an index had last, so that an index from an older copy is noticed.

It has an id that no URL has, neither `url` nor text, and a version as documents have. It is written with each batch, as long as the index
has had the batch before: so the marker of an index that was put back stays behind until the index was repaired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, items, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.bulk import item_of, refused_whole
from crawlspace.index.opensearch.mapping import MARK
from crawlspace.index.search_server.items import Item, ItemResult, Judged
from crawlspace.index.search_server.marker import MarkReports

FIELD = "batch_mark"
_MOST = 10_000
"""Collections in one index whose markers are copied."""


class Marker:
    """The marker of one collection in an index. Raises IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str, *, owner: str, sink: str) -> None:
        """`server` is the URL of the server, for messages."""
        self._client = client
        self._server = server
        self._index = index
        self._owner = owner
        self._reports = MarkReports(sink=sink, owner=owner, where=f"{index} at {server}")
        self._is_kept = False
        self.is_complete = False
        """Whether the index had markers from its beginning: a collection that has sent something there has one."""

    async def prepare(self, mapping: Mapping[str, object], *, may_add: bool) -> None:
        """Look whether the index has a place for it, and make one if that is allowed. `mapping` is that of the index."""
        there = has_field(mapping)
        if not there and may_add:
            made = await self._client.request("PUT", f"/{self._index}/_mapping", body={"properties": {FIELD: MARK}})
            there = made.is_ok
            if not there:
                self._leave_out(refused_whole(made.status, made.body).why)
        self._is_kept = there
        self.is_complete = are_complete(mapping)

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
        may_begin = always or (found is None and not self.is_complete)
        if not may_begin and not self._reports.may_follow(mark, found):
            return None
        return _item(mark, self._owner, max(version + 1, *(order.version for order in orders)))

    async def check(self, mark: BatchMark) -> None:
        """Log a warning if the index is not as it should be before a batch, which comes next."""
        if self._is_kept:
            found, _ = await self._read()
            if found is not None or self.is_complete:
                self._reports.may_follow(mark, found)

    def settle(self, answered: Judged) -> bool:
        """Take the answer to an item; return whether the batch has to be sent again for it."""
        if answered.answer is ItemResult.ITS_OWN:
            self._leave_out(answered.why)
        return answered.is_trouble

    def _leave_out(self, why: str) -> None:
        self._is_kept = False
        self._reports.not_taken(why)

    async def _read(self) -> tuple[BatchMark | None, int]:
        reply = await self._client.request("GET", f"/{self._index}/_doc/{quote(_id_of(self._owner), safe='')}")
        if reply.status == 404:
            return None, 0
        if not reply.is_ok:
            raise IndexUnavailable(
                f"{self._server} does not tell what {self._index} has: {refused_whole(reply.status, reply.body).why}"
            )
        found, version = table(table(reply.body).get("_source")).get(FIELD), table(reply.body).get("_version")
        try:
            mark = msgspec.convert(found, BatchMark)
        except msgspec.ValidationError:
            mark = None
        return mark, version if isinstance(version, int) else 0


def has_field(mapping: Mapping[str, object]) -> bool:
    """Return whether the mapping of an index has a place for markers."""
    properties = table(table(mapping.get("mappings")).get("properties"))
    return "batch" in table(table(properties.get(FIELD)).get("properties"))


def are_complete(mapping: Mapping[str, object]) -> bool:
    """Return whether an index, by its mapping, had markers from its beginning."""
    return FIELD in table(table(mapping.get("mappings")).get("_meta"))


async def copy_markers(client: Client, server: str, index: str, *, to: str) -> None:
    """Copy the markers of all collections from an index to another one, which has those of later batches already or takes them."""
    await client.request("POST", f"/{index}/_refresh")
    query = {"size": _MOST, "version": True, "query": {"exists": {"field": f"{FIELD}.collection"}}}
    reply = await client.request("POST", f"/{index}/_search", body=query)
    if not reply.is_ok:
        raise IndexUnavailable(f"{server} does not tell what {index} has: {refused_whole(reply.status, reply.body).why}")
    found = []
    for hit in map(table, items(table(table(reply.body).get("hits")).get("hits"))):
        written, version = table(table(hit.get("_source")).get(FIELD)), hit.get("_version")
        if isinstance(version, int):
            found.append(_item(msgspec.convert(written, BatchMark), str(written.get("collection")), version))
    if found:
        reply = await client.request("POST", f"/{to}/_bulk", lines=b"".join(item.lines for item in found))
        if not reply.is_ok:
            raise IndexUnavailable(f"{to} at {server}: {refused_whole(reply.status, reply.body).why}")


def _item(mark: BatchMark, owner: str, version: int) -> Item:
    source = {FIELD: {"collection": owner, **msgspec.structs.asdict(mark)}}
    return item_of(IndexOrder(0, Op.PUSH, "", version=version), source, id=_id_of(owner), pipeline="_none")


def _id_of(owner: str) -> str:
    """Return the id of a marker; that of a document has 32 hexadecimal digits."""
    return f"mark:{owner}"
