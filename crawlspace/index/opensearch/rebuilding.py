"""OpenSearch and Elasticsearch as a sink whose index can be rebuilt while it is searched.

The alias `NAME` leads to the index that is searched, `NAME.next` to the one that is being built, and `NAME.previous` to the one before the
last switch. So every process that writes to `NAME` learns from the server that there is a second index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, table
from crawlspace.index.opensearch.bulk import item_of, refused_whole
from crawlspace.index.opensearch.contents import IndexContents
from crawlspace.index.opensearch.marker import copy_markers
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.index.search_server.items import Item, split_into_requests
from crawlspace.index.search_server.sink import MAX_ITEMS, NextSink, RebuildableSink, must_begin, nothing_to_switch_to
from crawlspace.index.sink import Copies


class RebuildableOpenSearch(RebuildableSink["_NextIndex"], OpenSearchSink):
    """The index behind the alias `NAME`."""

    _next: _NextIndex | None = None

    async def _next_index(self) -> _NextIndex | None:
        name = await self._aliases.next()
        if name != ("" if self._next is None else self._next.index):
            self._is_ready = False  # the searched index may be another one, with another mapping
            await self._make_ready(may_create=False)
            self._next = _NextIndex(self, name) if name else None
        return self._next

    @property
    def _aliases(self) -> Aliases:
        return Aliases(self._client, self._url, self._index)

    # rebuilding
    def copies(self) -> Copies:
        return self._client.run(self._aliases.all())

    def begin_next(self, *, on_previous: bool = False) -> None:
        self._client.run(self._begin_next(on_previous=on_previous))

    def switch(self) -> None:
        self._client.run(self._switch())

    def give_up_next(self) -> None:
        self._client.run(self._give_up_next())

    async def _begin_next(self, *, on_previous: bool) -> None:
        await self._make_ready(may_create=False)
        copies = await self._aliases.all()
        if not must_begin(copies, self._where, on_previous=on_previous):
            return
        if on_previous:
            await self._aliases.change([_add_alias(self._aliases.next_alias, copies.previous)])
            return
        assert self.product is not None, "it is known since the sink is ready"
        await self._make_index(
            await self._aliases.name_of_new(),
            {self._aliases.next_alias: {}},
            self.product,
            is_marked=self._marker.is_complete,
        )

    async def _switch(self) -> None:
        copies = await self._aliases.all()
        if not copies.next:
            raise nothing_to_switch_to(self._where)
        actions = [
            _remove_alias(self._index, copies.present),
            _add_alias(self._index, copies.next, is_write_index=True),
            _remove_alias(self._aliases.next_alias, copies.next),
            _add_alias(self._aliases.previous_alias, copies.present),
        ]
        if copies.previous:
            actions.append(_remove_alias(self._aliases.previous_alias, copies.previous))
        await copy_markers(self._client, self._url, copies.present, to=copies.next)
        await self._aliases.change(actions)
        self._is_ready, self._next = False, None
        if copies.previous not in ("", copies.next):
            await self._aliases.delete(copies.previous)

    async def _give_up_next(self) -> None:
        copies = await self._aliases.all()
        if copies.next:
            await self._aliases.change([_remove_alias(self._aliases.next_alias, copies.next)])
            self._next = None
            if copies.next != copies.previous:
                await self._aliases.delete(copies.next)


class _NextIndex(NextSink, OpenSearchSink):
    """The index that is being built, under its own name: the alias `NAME.next` is removed by the switch."""

    def __init__(self, sink: RebuildableOpenSearch, name: str) -> None:
        super().__init__(replace(sink._settings, index=name), body=sink._body, clock=sink._clock, client=sink._client)
        self._parameters = {key: value for key, value in sink._parameters.items() if key != "require_alias"}
        self._searched = IndexContents(sink._client, sink._url, sink._index)

    def carry_over(self, urls: Sequence[str]) -> None:
        found = self._searched.sources(urls)
        self._write(
            [item_of(IndexOrder(0, Op.PUSH, url, version=entry.version), source) for url, (entry, source) in found.items()]
        )

    def _write(self, written: Sequence[Item]) -> None:
        for part in split_into_requests(written, max_bytes=self._settings.max_bytes, max_items=MAX_ITEMS):
            lines = b"".join(item.lines for item in part)
            reply = self._client.run(
                self._client.request("POST", f"/{self._index}/_bulk", lines=lines, parameters=self._parameters)
            )
            if not reply.is_ok:
                raise IndexUnavailable(f"{self._where}: {refused_whole(reply.status, reply.body).why}")

    async def _make_ready(self, *, may_create: bool) -> None:
        if not self._is_ready:
            await self._read_mapping()
            self._is_ready = True


_NUMBER = re.compile(r"-(\d{6})$")


class Aliases:
    """The aliases of one sink. All methods raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, alias: str) -> None:
        self._client = client
        self._server = server
        self._alias = alias

    async def next(self) -> str:
        """Return the name of the index that is being built; empty without one."""
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
        """Return a name for a new index: the one of the last, with the next number."""
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


def _add_alias(alias: str, index: str, **more: object) -> dict[str, dict[str, object]]:
    """Return the action that adds an alias."""
    return {"add": {"index": index, "alias": alias, **more}}


def _remove_alias(alias: str, index: str) -> dict[str, dict[str, object]]:
    """Return the action that removes an alias."""
    return {"remove": {"index": index, "alias": alias}}
