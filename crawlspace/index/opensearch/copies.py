"""The indexes behind an alias: the one that is searched, one that is being built beside it, and the one of before.

The alias `NAME` leads to the index that is searched, `NAME.next` to the one that is being built and `NAME.previous` to the one of before the
last switch. So whoever writes to `NAME` knows from the server that there is a second one, whatever process, machine or collection builds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crawlspace.errors import IndexUnavailable
from crawlspace.index.inventory import Copies
from crawlspace.index.json_client import Client, Reply, table
from crawlspace.index.opensearch.bulk import refused_whole

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
