"""Solr as a sink: a core or a collection with the schema and the update chain that are in `conf`.

A deletion is the addition of a document that has nothing but its id, a version and `deleted`: so pushes and deletions go in one request, each
with a version of its own, and an older push is refused even after a restart. Each query leaves these documents out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self

from crawlspace.clock import Clock
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.inventory import Entry
from crawlspace.index.json_client import Connection, Reply, items, shown, table
from crawlspace.index.search_server.connection import batch_bytes_of, connection_of, connections_of
from crawlspace.index.search_server.items import Item, ItemResult, Judged
from crawlspace.index.search_server.sink import SearchServerSink
from crawlspace.index.servers import Server
from crawlspace.index.solr.documents import deleted, languages_of, missing_of, pushed
from crawlspace.index.solr.updates import CHAIN, NO_CHAIN, answers_of, body_of, item_of, parameters_of, refused_whole, why_of
from crawlspace.model import IndexOrder
from crawlspace.urls import document_id

if TYPE_CHECKING:
    from crawlspace.index.sink import Options

CONF = Path(__file__).parent / "conf"
"""Schema and configuration of a core."""
NOT_DELETED = "-deleted:true"
_INDEX = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,200}")
TESTED = "9.10.1"
"""The version that `make test-servers` runs the tests on; one that differs in its last number alone counts as tried."""
_OLDEST = (9, 0)
_MOST_LOOKED_UP = 1_000
_PAGE = 1_000
_JSON = {"Content-Type": "application/json"}
_NOTHING: tuple[int, str | None] = (-1, None)


class SolrSink(SearchServerSink):
    """A core or a collection of Solr."""

    keeps_deleted_versions = True

    def __init__(
        self,
        name: str,
        connection: Connection,
        index: str,
        *,
        owner: str,
        most_bytes: int,
        connections: int,
        commit_within_s: float,
        clock: Clock | None = None,
    ) -> None:
        """`owner` is the collection of ours; `commit_within_s`: the time after which a document is found."""
        super().__init__(name, connection, index, owner=owner, most_bytes=most_bytes, connections=connections, clock=clock)
        self._commit_within_s = commit_within_s
        self._languages: frozenset[str] = frozenset()
        self.server: Server | None = None

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Return the sink that the options describe. Raises SettingError."""
        index = options.text("index")
        if not _INDEX.fullmatch(index):
            raise SettingError(
                f"{options.where('index')} is {index!r}; the name of a core or collection has letters, digits, underscores, dots, and"
                " hyphens after the first"
            )
        return cls(
            options.name,
            connection_of(options, has_api_key=False),
            index,
            owner=options.collection,
            most_bytes=batch_bytes_of(options),
            connections=connections_of(options),
            commit_within_s=options.seconds("commit_within", 1, low=0.1),
        )

    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        """Return the entries of those URLs that have a document, committed or not. Raises IndexUnavailable."""
        self._client.run(self._make_ready(may_create=False))
        by_id = {document_id(url): url for url in urls}
        there = self._client.run(self._look_up(list(by_id)))
        return {by_id[id]: Entry(by_id[id], version, owner) for id, (version, owner) in there.items() if owner is not None}

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection of ours, a page at a time; what was sent before is among them. Raises IndexUnavailable."""
        self._client.run(self._make_ready(may_create=False))
        self._told(
            self._client.run(self._client.request("POST", f"/{self._index}/update", body={"commit": {"softCommit": True}}))
        )
        cursor, before = "*", ""
        while cursor != before:
            query = {
                "query": "*:*",
                "filter": [NOT_DELETED, f"{{!term f=collection}}{owner}"],
                "sort": "id asc",
                "limit": _PAGE,
                "fields": ["url", "version", "collection"],
                "params": {"defType": "lucene", "cursorMark": cursor, "wt": "json"},
            }
            body = self._told(
                self._client.run(self._client.request("POST", f"/{self._index}/select", body=query)), "nextCursorMark"
            )
            page = [Entry(str(one.get("url", "")), _version(one), str(one.get("collection", ""))) for one in _documents(body)]
            if page:
                yield page
            before, cursor = cursor, str(body["nextCursorMark"])

    def _item_of(self, order: IndexOrder, *, now: float) -> Item:
        if order.document is None:
            return item_of(order, deleted(order, now=now))
        return item_of(order, pushed(order, order.document, owner=self._owner, now=now, languages=self._languages))

    async def _request(self, part: Sequence[Item]) -> Judged | list[Judged]:
        reply = await self._client.request(
            "POST",
            f"/{self._index}/update",
            lines=body_of(part),
            headers=_JSON,
            parameters=parameters_of(part, commit_within_s=self._commit_within_s),
        )
        answers = answers_of(reply.body, part) if reply.is_ok else refused_whole(reply.status, reply.body)
        return answers if isinstance(answers, Judged) else await self._seen(part, answers)

    async def _seen(self, part: Sequence[Item], answers: Sequence[Judged]) -> list[Judged]:
        """Return the answers; what counts as done and is not there is sent again."""
        done = {item.id: item.order.version for item, one in zip(part, answers, strict=True) if one.answer is ItemResult.DONE}
        there = await self._get(list(done))
        there |= await self._look_up([id for id, version in done.items() if there.get(id, _NOTHING)[0] < version])
        missing = Judged(ItemResult.AGAIN, "the server does not have what it has acknowledged")
        return [
            missing if item.id in done and there.get(item.id, _NOTHING)[0] < item.order.version else one
            for item, one in zip(part, answers, strict=True)
        ]

    async def _look_up(self, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
        """Return version and owner of those documents that are there, committed or not; no owner: it is deleted.

        Solr misses documents that it commits while it looks up many, because it goes on with the searcher that it began with
        (RealTimeGetComponent). The next look finds them.
        """
        found = await self._get(ids)
        for id, entry in (await self._get(ids)).items():
            found[id] = max(found.get(id, entry), entry, key=itemgetter(0))
        return found

    async def _get(self, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
        found: dict[str, tuple[int, str | None]] = {}
        for first in range(0, len(ids), _MOST_LOOKED_UP):
            asked = ",".join(ids[first : first + _MOST_LOOKED_UP])
            parameters = {"ids": asked, "fl": "id,version,collection,deleted", "wt": "json"}
            reply = await self._client.request("POST", f"/{self._index}/get", body={"params": parameters})
            for one in _documents(self._told(reply, "response")):
                owner = None if one.get("deleted") else str(one.get("collection", ""))
                found[str(one.get("id"))] = _version(one), owner
        return found

    async def _make_ready(self, *, may_create: bool) -> None:
        if self._is_ready:
            return
        self.server = _server_of(self._url, await self._client.request("GET", "/admin/info/system", parameters={"wt": "json"}))
        parameters = {"show": "schema", "numTerms": "0", "wt": "json"}
        reply = await self._client.request("GET", f"/{self._index}/admin/luke", parameters=parameters)
        where = f"{self._index} at {self._url}"
        if reply.status == 404:
            raise IndexUnavailable(
                f"there is no core or collection {where}: make it of the files in {CONF} (docs/sinks.md, Solr), or give the sink another"
                " index"
            )
        schema = table(self._told(reply, "schema")["schema"])
        copy = f"copy schema.xml and solrconfig.xml from {CONF} into its conf folder, and reload it (docs/sinks.md, Solr)"
        missing = missing_of(schema)
        if missing:
            raise IndexUnavailable(f"the schema of {where} lacks {', '.join(missing)}: {copy}")
        empty = await self._client.request(
            "POST", f"/{self._index}/update", body=[], parameters={"update.chain": CHAIN, "wt": "json"}
        )
        if NO_CHAIN in why_of(empty.status, empty.body):
            raise IndexUnavailable(f"the configuration of {where} lacks the update chain {CHAIN}: {copy}")
        self._told(empty)
        self._languages = languages_of(schema)
        self._is_ready = True

    def _told(self, reply: Reply, part: str = "responseHeader") -> Mapping[str, object]:
        """Return an answer that has a part. Raises IndexUnavailable for any other, and where shards are missing in it."""
        where = f"{self._index} at {self._url}"
        if not reply.is_ok:
            raise IndexUnavailable(f"{where}: {refused_whole(reply.status, reply.body).why}")
        body = table(reply.body)
        if part not in body or table(body.get("responseHeader")).get("partialResults"):
            raise IndexUnavailable(f"{where} does not answer in full: {shown(reply.body)}")
        return body


def _server_of(url: str, reply: Reply) -> Server:
    """Return what has answered. Raises IndexUnavailable unless it is a Solr that we know."""
    if reply.status in (401, 403):
        raise IndexUnavailable(
            f"{url} refuses access (HTTP status {reply.status}): check user and password of the sink; in Solr the user needs the"
            " permissions config-read, read and update"
        )
    if reply.status in (429, 503):
        raise IndexUnavailable(f"{url} is not ready (HTTP status {reply.status})")
    number = str(table(table(reply.body).get("lucene")).get("solr-spec-version", ""))
    if not reply.is_ok or not re.match(r"\d+\.\d+", number):
        raise IndexUnavailable(
            f"{url} is no Solr: it answers {reply.status} {shown(reply.body)}; the URL of a Solr ends with /solr, as in"
            " https://search.example.com:8983/solr"
        )
    if tuple(map(int, re.findall(r"\d+", number)[:2])) < _OLDEST:
        raise IndexUnavailable(f"{url} is Solr {number}; {'.'.join(map(str, _OLDEST))} is the oldest that is supported")
    is_tried = number.split(".")[:2] == TESTED.split(".")[:2]
    return Server(
        f"Solr {number}",
        ""
        if is_tried
        else f"Solr {number} was not tried by us; Solr {TESTED} was. See that documents arrive, and that it refuses none",
    )


def _version(document: Mapping[str, object]) -> int:
    version = document.get("version")
    return version if isinstance(version, int) else 0


def _documents(body: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    return map(table, items(table(body.get("response")).get("docs")))
