"""OpenSearch and Elasticsearch as a sink whose index can be built anew beside the one that is searched.

While an index is being built, each batch goes there first, and then to the one that is searched. A switch in between does no harm: what
comes late has a version that is there already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, items, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.bulk import item_of, refused_whole
from crawlspace.index.opensearch.contents import IndexContents
from crawlspace.index.opensearch.marker import copy_markers
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.index.search_server.items import Item
from crawlspace.index.search_server.sink import NextSink, RebuildableSink, may_begin
from crawlspace.index.sink import Copies, Entry


class RebuildableOpenSearch(RebuildableSink["_NextIndex"], OpenSearchSink):
    """An index on a server."""

    _next: _NextIndex | None = None

    async def _following(self) -> _NextIndex | None:
        name = await self._aliases.next()
        if name != ("" if self._next is None else self._next.index):
            self._is_ready = False  # it may have become the one that is searched, with another mapping
            await self._make_ready(may_create=False)
            self._next = _NextIndex(self, name) if name else None
        return self._next

    @property
    def _aliases(self) -> Aliases:
        return Aliases(self._client, self._url, self._index)

    # rebuilding
    def copies(self) -> Copies:
        return self._client.run(self._aliases.all())

    def duplicates_of(self, urls: Sequence[str]) -> dict[str, list[str]]:
        found = self._contents().sources(urls, only="duplicates")
        return {url: list(map(str, items(source.get("duplicates")))) for url, (_, source) in found.items()}

    def begin_next(self, *, on_previous: bool = False) -> None:
        self._client.run(self._begin_next(on_previous=on_previous))

    def switch(self) -> None:
        self._client.run(self._switch())

    def give_up_next(self) -> None:
        self._client.run(self._give_up_next())

    async def _begin_next(self, *, on_previous: bool) -> None:
        await self._make_ready(may_create=False)
        copies = await self._aliases.all()
        if not may_begin(copies, f"{self._index} at {self._url}", on_previous=on_previous):
            return
        if on_previous:
            await self._aliases.change([leads(self._aliases.next_alias, copies.previous)])
            return
        assert self.product is not None, "it is known since the sink is ready"
        await self._make_index(
            await self._aliases.name_of_new(),
            {self._aliases.next_alias: {}},
            self.product,
            is_marked=self._marks.is_complete,
        )

    async def _switch(self) -> None:
        copies = await self._aliases.all()
        if not copies.next:
            raise IndexUnavailable(f"no index is being built beside {self._index} at {self._url}")
        actions = [
            leads_no_more(self._index, copies.present),
            leads(self._index, copies.next, is_write_index=True),
            leads_no_more(self._aliases.next_alias, copies.next),
            leads(self._aliases.previous_alias, copies.present),
        ]
        if copies.previous:
            actions.append(leads_no_more(self._aliases.previous_alias, copies.previous))
        await copy_markers(self._client, self._url, copies.present, to=copies.next)
        await self._aliases.change(actions)
        self._is_ready, self._next = False, None
        if copies.previous not in ("", copies.next):
            await self._aliases.delete(copies.previous)

    async def _give_up_next(self) -> None:
        copies = await self._aliases.all()
        if copies.next:
            await self._aliases.change([leads_no_more(self._aliases.next_alias, copies.next)])
            self._next = None
            if copies.next != copies.previous:
                await self._aliases.delete(copies.next)


class _NextIndex(NextSink, OpenSearchSink):
    """The index that is being built, by its own name: the alias leads elsewhere once it is searched. Uses the client of the sink."""

    def __init__(self, sink: RebuildableOpenSearch, name: str) -> None:
        super().__init__(
            sink.name,
            sink._connection,
            name,
            owner=sink._owner,
            most_bytes=sink._most_bytes,
            connections=sink._connections,
            body=sink._body,
            clock=sink._clock,
            client=sink._client,
        )
        self._parameters = {key: value for key, value in sink._parameters.items() if key != "require_alias"}
        self._searched = IndexContents(sink._client, sink._url, sink._index)

    def carry_over(self, urls: Sequence[str]) -> None:
        found = self._searched.sources(urls)
        lines = [
            item_of(IndexOrder(0, Op.PUSH, url, version=entry.version), source).lines for url, (entry, source) in found.items()
        ]
        self._write(lines)

    def remove(self, entries: Sequence[Entry]) -> None:
        # One more than the version that is there: whatever is ordered later of the URL has more than that.
        self._write([item_of(IndexOrder(0, Op.DELETE, one.url, version=one.version + 1), None).lines for one in entries])

    def _write(self, lines: Sequence[bytes]) -> None:
        """Write items for which it matters only whether the whole request was understood: the comparison that follows sees the rest."""
        part: list[bytes] = []
        for line in [*lines, b""]:
            if part and (not line or sum(map(len, part)) + len(line) > self._most_bytes):
                reply = self._client.run(
                    self._client.request("POST", f"/{self._index}/_bulk", lines=b"".join(part), parameters=self._parameters)
                )
                if not reply.is_ok:
                    raise IndexUnavailable(f"{self._index} at {self._url}: {refused_whole(reply.status, reply.body).why}")
                part = []
            part.append(line)

    async def _make_ready(self, *, may_create: bool) -> None:
        if not self._is_ready:
            await self._read_mapping()
            self._is_ready = True

    async def _marker(self, mark: BatchMark, orders: Sequence[IndexOrder]) -> Item | None:
        """Return the marker whatever is there: it holds from the switch on, when nothing is missing."""
        return await self._marks.item(mark, orders, always=True)


# --- copies --------------------------------------------------------------------------------------------------------


_NUMBER = re.compile(r"-(\d{6})$")


class Aliases:
    """The aliases of one sink. All raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, alias: str) -> None:
        self._client = client
        self._server = server
        self._alias = alias

    async def next(self) -> str:
        """Return the index that is being built; empty without one."""
        return await self._index_of(self.next_alias)

    async def all(self) -> Copies:
        return Copies(await self._index_of(self._alias), await self.next(), await self._index_of(self.previous_alias))

    @property
    def next_alias(self) -> str:
        return f"{self._alias}.next"

    @property
    def previous_alias(self) -> str:
        return f"{self._alias}.previous"

    async def name_of_new(self) -> str:
        """Return a name for a new index: that of the last one, with the number that follows."""
        reply = await self._client.request("GET", f"/{self._alias}-*/_alias")
        if not reply.is_ok and reply.status != 404:
            raise self._error(reply)
        names = [name for name in table(reply.body) if name.startswith(f"{self._alias}-")]
        numbers = [int(found[1]) for name in names if (found := _NUMBER.search(name)) is not None]
        return f"{self._alias}-{max(numbers, default=0) + 1:06}"

    async def change(self, actions: Sequence[Mapping[str, Mapping[str, object]]]) -> None:
        """Change aliases in one step: all or nothing."""
        reply = await self._client.request("POST", "/_aliases", body={"actions": list(actions)})
        if not reply.is_ok:
            raise self._error(reply)

    async def delete(self, index: str) -> None:
        reply = await self._client.request("DELETE", f"/{index}")
        if not reply.is_ok and reply.status != 404:
            raise self._error(reply)

    async def _index_of(self, alias: str) -> str:
        reply = await self._client.request("GET", f"/_alias/{alias}")
        if reply.status == 404:
            return ""
        if not reply.is_ok:
            raise self._error(reply)
        names = [name for name, one in table(reply.body).items() if alias in table(table(one).get("aliases"))]
        if len(names) > 1:
            raise IndexUnavailable(
                f"the alias {alias} at {self._server} leads to {', '.join(sorted(names))}; have it lead to one of them"
            )
        return names[0] if names else ""

    def _error(self, reply: Reply) -> IndexUnavailable:
        return IndexUnavailable(f"{self._server}: {refused_whole(reply.status, reply.body).why}")


def leads(alias: str, index: str, **more: object) -> dict[str, dict[str, object]]:
    """Return the action that adds an alias."""
    return {"add": {"index": index, "alias": alias, **more}}


def leads_no_more(alias: str, index: str) -> dict[str, dict[str, object]]:
    """Return the action that removes an alias."""
    return {"remove": {"index": index, "alias": alias}}
