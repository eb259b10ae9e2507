"""Solr as a sink whose index can be rebuilt while it is searched: with other cores, or with other collections of SolrCloud behind an alias.

A document in each index, its note, names the indexes that are being built and that were searched before; the note in the searched index
counts. A switch replaces the searched index in one step, and so the note too: after a kill at any moment there is one note that counts, and
it is true. The note looks like the remains of a deleted document, which no search finds. Names of aliases or cores would need several steps,
and after the SWAP of two cores Solr 9.10.1 confuses names if one of them is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename
from typing import Protocol

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, items, table
from crawlspace.index.search_server.items import Item, split_into_requests
from crawlspace.index.search_server.sink import MAX_ITEMS, NextSink, RebuildableSink, must_begin, nothing_to_switch_to
from crawlspace.index.sink import Copies
from crawlspace.index.solr.contents import SolrContents, answered, pair_of, version_of
from crawlspace.index.solr.documents import copied, item_of, why_of
from crawlspace.index.solr.marker import markers_in
from crawlspace.index.solr.sink import SolrSink


class RebuildableSolr(RebuildableSink["_NextCopy"], SolrSink):
    """A core, or the collection behind an alias."""

    _note: Note | None = None
    """The note when it was read last."""
    _next: _NextCopy | None = None

    async def _next_index(self) -> _NextCopy | None:
        try:
            note = await self._copies.note()
        except IndexUnavailable:  # raise a clearer error if the index is gone
            self._is_ready = False
            await self._make_ready(may_create=False)
            raise
        if note != self._note:
            if self._note is not None:  # the searched index may be another one, with another schema
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
        self._check_ready()
        return self._client.run(self._copies.all())

    def begin_next(self, *, on_previous: bool = False) -> None:
        self._check_ready()
        self._client.run(self._copies.begin_next(on_previous=on_previous))

    def switch(self) -> None:
        self.next_copy().carry_over_markers()
        self._client.run(self._copies.switch())
        self._is_ready = False

    def give_up_next(self) -> None:
        self._check_ready()
        self._client.run(self._copies.give_up_next())


class _NextCopy(NextSink, SolrSink):
    """The index that is being built, under its own name."""

    def __init__(self, sink: RebuildableSolr, name: str) -> None:
        super().__init__(
            replace(sink._settings, index=name),
            commit_within_s=sink._commit_within_s,
            clock=sink._clock,
            client=sink._client,
        )
        self._searched = sink._stored

    def carry_over(self, urls: Sequence[str]) -> None:
        self._check_ready()
        self._write(
            [
                item_of(IndexOrder(0, Op.PUSH, url, version=version_of(source)), copied(source, without=self._copied_to))
                for url, source in self._searched.sources(urls).items()
            ]
        )

    def carry_over_markers(self) -> None:
        """Copy the markers of all collections; those of later batches are there already, or follow."""
        self._check_ready()
        self._write(self._client.run(markers_in(self._searched)))

    def _write(self, written: Sequence[Item]) -> None:
        for part in split_into_requests(written, max_bytes=self._settings.max_bytes, max_items=MAX_ITEMS):
            for _, one in self._client.run(self._send_request(part)):
                if one.is_server_failure:
                    raise IndexUnavailable(f"{self._where}: {one.why}")

    async def _owned_by_others(self, ids: Sequence[str]) -> set[str]:
        """Return those of another collection in the searched index, or in this one if they are missing there.

        The deletion of a document that is not carried over yet would keep it out, because Solr remembers its version.
        """
        found = {**await self._look_up(ids), **await self._searched.versions(ids)}
        return {id for id, (_, owner) in found.items() if owner not in (None, self._owner)}

    def _missing(self) -> IndexUnavailable:
        return IndexUnavailable(
            f"{self._where}, which was being built, does not exist any more: give it up by `scrapy reindex {self._owner} --sink"
            f" {self.name} --discard`"
        )


_ID = "crawlspace-copies"


@dataclass(frozen=True, slots=True)
class Note:
    """The names of other indexes of a sink; empty if there is none."""

    next: str = ""
    previous: str = ""
    discarded: str = ""
    """An index to delete, if it exists."""

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Note:
        written = dict(map(pair_of, items(document.get("fields"))))
        return cls(written.get("next", ""), written.get("previous", ""), written.get("discarded", ""))

    def document(self) -> dict[str, object]:
        """Return the note as a document of Solr."""
        written = {"next": self.next, "previous": self.previous, "discarded": self.discarded}
        fields = [f"{name}={value}" for name, value in written.items() if value]
        return {"id": _ID, "version": 1, "deleted": True} | ({"fields": fields} if fields else {})


class IndexAdmin(Protocol):
    """Creates and exchanges cores or collections. All methods raise IndexUnavailable."""

    async def present(self) -> str:
        """Return the name of the searched one. Raises IndexUnavailable if another one could not replace it."""

    async def name_of_new(self, previous: str) -> str:
        """Return a name for a new one."""

    async def create(self, name: str) -> None:
        """Create an empty one like the searched one."""

    async def put_in_place(self, name: str) -> None:
        """Let this one be searched, in one step."""

    def name_of_replaced(self, present: str, name: str) -> str:
        """Return the name that the replaced one has afterwards."""

    async def delete(self, name: str) -> None:
        """Delete one, if it exists."""


class SolrCopies:
    """The indexes of one sink. All methods raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str, admin: IndexAdmin) -> None:
        self._client = client
        self._server = server
        self._index = index
        self._where = f"{index} at {server}"
        self._admin = admin

    async def note(self) -> Note:
        """Return the note in the searched index."""
        found = await SolrContents(self._client, self._server, self._index).get([_ID], "id,fields")
        return Note.of(found[0]) if found else Note()

    async def all(self) -> Copies:
        note = await self.note()
        return Copies(await self._admin.present(), note.next, note.previous)

    async def begin_next(self, *, on_previous: bool) -> None:
        copies = await self.all()
        if not must_begin(copies, self._where, on_previous=on_previous):
            return
        note = await self._delete_discarded(await self.note())
        if on_previous:
            await self._write(self._index, replace(note, next=note.previous))
            return
        name = await self._admin.name_of_new(note.previous)
        await self._write(self._index, replace(note, discarded=name))
        await self._admin.create(name)
        await self._write(self._index, replace(note, next=name))

    async def switch(self) -> None:
        copies = await self.all()
        if not copies.next:
            raise nothing_to_switch_to(self._where)
        older = "" if copies.previous == copies.next else copies.previous
        note = Note(previous=self._admin.name_of_replaced(copies.present, copies.next), discarded=older)
        await self._write(copies.next, note)
        await self._admin.put_in_place(copies.next)
        await self._delete_discarded(note)

    async def give_up_next(self) -> None:
        note = await self.note()
        if note.next:
            note = replace(note, next="", discarded="" if note.next == note.previous else note.next)
            await self._write(self._index, note)
        await self._delete_discarded(note)

    async def _delete_discarded(self, note: Note) -> Note:
        if not note.discarded:
            return note
        await self._admin.delete(note.discarded)
        note = replace(note, discarded="")
        await self._write(self._index, note)
        return note

    async def _write(self, index: str, note: Note) -> None:
        # Without our update chain: the version of a note does not grow.
        reply = await self._client.request(
            "POST", f"/{index}/update", body=[note.document()], parameters={"commit": "true", "wt": "json"}
        )
        answered(reply, f"{index} at {self._server}")


CONFIGSET = "crawlspace"
"""The configset of a new core, unless it does not exist: then the folder of the core must have a configuration."""
_NUMBER = re.compile(r"_(\d{6})$")
_REPLICAS = ("nrtReplicas", "tlogReplicas", "pullReplicas")


class Cores:
    """Cores of a Solr without ZooKeeper: `NAME`, and up to two others, which a SWAP puts in its place."""

    def __init__(self, client: Client, server: str, index: str) -> None:
        self._client = client
        self._server = server
        self._index = index
        self._names = [f"{index}_copy1", f"{index}_copy2"]
        """Names of the other cores. After some switches, the folder of each may have any of the three names."""

    async def present(self) -> str:
        if self._index not in await self._status():
            raise IndexUnavailable(f"{self._server} has no core {self._index}")
        return self._index

    async def name_of_new(self, previous: str) -> str:
        return next(name for name in self._names if name != previous)

    async def create(self, name: str) -> None:
        await self.delete(name)
        folders = {core: str(table(one).get("instanceDir")).rstrip("/") for core, one in (await self._status()).items()}
        taken = {basename(folder) for folder in folders.values()}
        free = [folder for folder in [self._index, *self._names] if folder not in taken]
        ways = [{"instanceDir": folder, "configSet": CONFIGSET} for folder in free[:1]]
        ways += [{"instanceDir": folder} for folder in free]
        refusals = []
        for way in ways:
            made = await self._ask(action="CREATE", name=name, **way)
            if made.is_ok:
                return
            if made.status in (401, 403):
                self._done(made)
            refusals.append(why_of(made.status, made.body))
        last = free[-1] if free else name
        raise IndexUnavailable(
            f"{self._server} creates no core besides {self._index}: copy conf, in the folder {folders.get(self._index)} of Solr, to"
            f" configsets/{CONFIGSET}/conf, or to {last}/conf, both in the folder of the cores ({'; '.join(refusals[:: len(ways) - 1])})"
        )

    async def put_in_place(self, name: str) -> None:
        self._done(await self._ask(action="SWAP", core=self._index, other=name))

    def name_of_replaced(self, present: str, name: str) -> str:
        return name

    async def delete(self, name: str) -> None:
        if name in self._names and name in await self._status():
            self._done(await self._ask(action="UNLOAD", core=name, deleteIndex="true", deleteDataDir="true"))

    async def _status(self) -> Mapping[str, object]:
        return table(self._done(await self._ask(action="STATUS", indexInfo="false"), "status")["status"])

    async def _ask(self, **parameters: str) -> Reply:
        return await self._client.request("GET", "/admin/cores", parameters={**parameters, "wt": "json"})

    def _done(self, reply: Reply, part: str = "responseHeader") -> Mapping[str, object]:
        return _done(reply, f"the cores of {self._server}", "core-admin", part)


class Collections:
    """Collections of SolrCloud, `NAME_000001` and so on, behind the alias `NAME`."""

    def __init__(self, client: Client, server: str, index: str) -> None:
        self._client = client
        self._server = server
        self._index = index

    async def present(self) -> str:
        led = str(table((await self._done("aliases", action="LISTALIASES"))["aliases"]).get(self._index, ""))
        where = f"{self._index} at {self._server}"
        if not led:
            alias = f"{self._index}_search"
            raise IndexUnavailable(
                f"{where} is a collection, and must be an alias that can lead to another one later: call"
                f" {self._server}/admin/collections?action=CREATEALIAS&name={alias}&collections={self._index}, and give the sink {alias} as"
                " its index"
            )
        if "," in led:
            raise IndexUnavailable(f"the alias {where} leads to {', '.join(led.split(','))}; have it lead to one of them")
        return led

    async def name_of_new(self, previous: str) -> str:
        names = map(str, items((await self._done("collections", action="LIST"))["collections"]))
        ours = [name for name in names if _NUMBER.sub("", name) == self._index]
        numbers = [int(found[1]) for name in ours if (found := _NUMBER.search(name)) is not None]
        return f"{self._index}_{max(numbers, default=0) + 1:06}"

    async def create(self, name: str) -> None:
        present = await self.present()
        found = await self._done("cluster", action="CLUSTERSTATUS", collection=present)
        like = table(table(table(found["cluster"]).get("collections")).get(present))
        shards = [one for one in table(like.get("shards")).values() if table(one).get("state") == "active"]
        router = str(table(like.get("router")).get("name", ""))
        if router != "compositeId" or not shards:
            raise IndexUnavailable(
                f"{present} at {self._server} has the router {router}, and {name} cannot be created like it: only compositeId is supported"
            )
        options = {key: str(like[key]) for key in _REPLICAS if str(like.get(key, "0")) != "0"}
        await self._done(
            "responseHeader",
            action="CREATE",
            name=name,
            numShards=str(len(shards)),
            waitForFinalState="true",
            **{"collection.configName": str(like.get("configName", ""))},
            **(options or {"replicationFactor": str(like.get("replicationFactor", "1"))}),
        )

    async def put_in_place(self, name: str) -> None:
        await self._done("responseHeader", action="CREATEALIAS", name=self._index, collections=name)

    def name_of_replaced(self, present: str, name: str) -> str:
        return present

    async def delete(self, name: str) -> None:
        there = items((await self._done("collections", action="LIST"))["collections"])
        if name in there:
            await self._done("responseHeader", action="DELETE", name=name)

    async def _done(self, part: str, **parameters: str) -> Mapping[str, object]:
        reply = await self._client.request("GET", "/admin/collections", parameters={**parameters, "wt": "json"})
        return _done(reply, f"the collections of {self._server}", "collection-admin", part)


def _done(reply: Reply, where: str, permission: str, part: str) -> Mapping[str, object]:
    if reply.status in (401, 403):
        raise IndexUnavailable(
            f"{where}: access is refused (HTTP status {reply.status}); to rebuild an index, the user of the sink needs the permissions"
            f" {permission}-read and {permission}-edit"
        )
    return answered(reply, where, part)
