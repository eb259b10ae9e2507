"""Solr as a sink: a core or a collection with the schema and the update chain of `conf`.

A deletion adds a document with nothing but its id, a version and `deleted`: so pushes and deletions go in one request, each with its own
version, and an older push is refused even after a restart. Each query excludes these documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from crawlspace.clock import Clock
from crawlspace.document import IndexOrder
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.json_client import Client, Reply, shown, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.notes import Server
from crawlspace.index.search_server.items import Item, ItemAnswer, ItemResult
from crawlspace.index.search_server.sink import SearchServerSink, ServerSettings
from crawlspace.index.sink import Options
from crawlspace.index.solr.contents import SolrContents, answered
from crawlspace.index.solr.documents import (
    CHAIN,
    NO_CHAIN,
    answers_of,
    body_of,
    copied_to,
    deleted,
    item_of,
    kept_of,
    languages_of,
    missing_of,
    parameters_of,
    pushed,
    refused_whole,
    why_of,
)
from crawlspace.index.solr.marker import SolrMarker
from crawlspace.index.solr.search import SolrSearch

CONF = Path(__file__).parent / "conf"
"""Schema and configuration of a core."""
_INDEX = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,200}")
TESTED = "9.10.1"
"""The version on which `make test-servers` runs the tests; one that differs in its last number alone counts as tried."""
_OLDEST = (9, 0)
_JSON = {"Content-Type": "application/json"}
_COPY = f"copy schema.xml and solrconfig.xml from {CONF} into its conf folder, and reload it (docs/sinks.md, Solr)"
_NOTHING: tuple[int, str | None] = (-1, None)


class SolrSink(SearchServerSink):
    """A core or a collection of Solr."""

    keeps_deleted_versions = True

    def __init__(
        self, settings: ServerSettings, *, commit_within_s: float, clock: Clock | None = None, client: Client | None = None
    ) -> None:
        """`commit_within_s`: the time after which searches find a document."""
        super().__init__(settings, clock=clock, client=client)
        self._stored = SolrContents(self._client, self._url, self._index)
        self._marker: SolrMarker = SolrMarker(self._stored, owner=self._owner, sink=self.name, where=self._where)
        self._commit_within_s = commit_within_s
        self._languages: frozenset[str] = frozenset()
        self._copied_to: frozenset[str] = frozenset()
        self._kept: frozenset[str] = frozenset()
        self._is_cloud = False
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
            ServerSettings.from_options(options, index=index, has_api_key=False),
            commit_within_s=options.seconds("commit_within", 1, low=0.1),
        )

    def mark(self) -> BatchMark | None:
        self._check_ready()
        return self._client.run(self._marker.read())

    def lacks_mark(self) -> bool:
        self._check_ready()
        return self._client.run(self._marker.is_missing())

    async def _open_search(self) -> SolrSearch:
        await self._read_schema()
        return SolrSearch(self._client, self._url, self._index, owner=self._owner, languages=self._languages)

    def _contents(self) -> SolrContents:
        self._check_ready()
        return self._stored

    def _item_of(self, order: IndexOrder, *, now: float) -> Item:
        if order.document is None:
            return item_of(order, deleted(order, now=now))
        return item_of(
            order, pushed(order, order.document, owner=self._owner, now=now, languages=self._languages, kept=self._kept)
        )

    async def _request(self, part: Sequence[Item]) -> ItemAnswer | list[ItemAnswer]:
        reply = await self._client.request(
            "POST",
            f"/{self._index}/update",
            lines=body_of(part),
            headers=_JSON,
            parameters=parameters_of(part, commit_within_s=self._commit_within_s),
        )
        answers = answers_of(reply.body, part) if reply.is_ok else refused_whole(reply.status, reply.body)
        return answers if isinstance(answers, ItemAnswer) else await self._verified(part, answers)

    async def _verified(self, part: Sequence[Item], answers: Sequence[ItemAnswer]) -> list[ItemAnswer]:
        """Return the answers; items that count as done and are missing are sent again."""
        done = {item.id: item.order.version for item, one in zip(part, answers, strict=True) if one.result is ItemResult.DONE}
        stored = await self._stored.look_up_once(list(done))
        stored |= await self._look_up([id for id, version in done.items() if stored.get(id, _NOTHING)[0] < version])
        missing = ItemAnswer(ItemResult.RETRY, "the server does not have what it has acknowledged")
        return [
            missing if item.id in done and stored.get(item.id, _NOTHING)[0] < item.order.version else one
            for item, one in zip(part, answers, strict=True)
        ]

    async def _look_up(self, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
        return await self._stored.versions(ids)

    async def _make_ready(self, *, may_create: bool) -> None:
        if self._is_ready:
            return
        await self._read_schema()
        empty = await self._client.request(
            "POST", f"/{self._index}/update", body=[], parameters={"update.chain": CHAIN, "wt": "json"}
        )
        if NO_CHAIN in why_of(empty.status, empty.body):
            raise IndexUnavailable(f"the configuration of {self._where} lacks the update chain {CHAIN}: {_COPY}")
        answered(empty, self._where)
        self._is_ready = True

    async def _read_schema(self) -> None:
        """Check that the server is a supported Solr, and has the index with our fields. Raises IndexUnavailable."""
        system = await self._client.request("GET", "/admin/info/system", parameters={"wt": "json"})
        self.server = _server_of(self._url, system)
        self._is_cloud = table(system.body).get("mode") == "solrcloud"
        parameters = {"show": "schema", "numTerms": "0", "wt": "json"}
        reply = await self._client.request("GET", f"/{self._index}/admin/luke", parameters=parameters)
        if reply.status == 404:
            raise self._missing()
        schema = table(answered(reply, self._where, "schema")["schema"])
        missing = missing_of(schema)
        if missing:
            raise IndexUnavailable(f"the schema of {self._where} lacks {', '.join(missing)}: {_COPY}")
        self._languages = languages_of(schema)
        self._copied_to = copied_to(schema)
        self._kept = kept_of(schema)

    def _missing(self) -> IndexUnavailable:
        """Return the error for a missing index."""
        return IndexUnavailable(
            f"there is no core or collection {self._index} at {self._url}: create it from the files in {CONF} (docs/sinks.md, Solr), or give"
            " the sink another index"
        )


def _server_of(url: str, reply: Reply) -> Server:
    """Return the server that has answered. Raises IndexUnavailable unless it is a supported Solr."""
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
