"""Making and exchanging cores, or the collections of SolrCloud."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import basename

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, items, table
from crawlspace.index.solr.contents import answered
from crawlspace.index.solr.updates import why_of

CONFIGSET = "crawlspace"
"""The configset that a core is made of, unless there is none of that name: then its folder must have a configuration."""
_NUMBER = re.compile(r"_(\d{6})$")
_REPLICAS = ("nrtReplicas", "tlogReplicas", "pullReplicas")


class Cores:
    """Cores of a Solr without ZooKeeper: `NAME`, and up to two others, which a SWAP puts in its place."""

    def __init__(self, client: Client, server: str, index: str) -> None:
        self._client = client
        self._server = server
        self._index = index
        self._names = [f"{index}_copy1", f"{index}_copy2"]
        """Of the other cores. The folders of all three have these names and `NAME`, each one of them by chance after some switches."""

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
            f"{self._server} makes no core beside {self._index}: copy conf, in the folder {folders.get(self._index)} of Solr, to"
            f" configsets/{CONFIGSET}/conf, or to {last}/conf, both in the folder that has the cores ({'; '.join(refusals[:: len(ways) - 1])})"
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
                f"{where} is a collection, and must be an alias to lead to another one later: call"
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
                f"{present} at {self._server} has the router {router}, and {name} cannot be made like it: only compositeId is supported"
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
            f"{where}: access is refused (HTTP status {reply.status}); to build an index anew, the user of the sink needs the permissions"
            f" {permission}-read and {permission}-edit"
        )
    return answered(reply, where, part)
