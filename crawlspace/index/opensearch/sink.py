"""OpenSearch and Elasticsearch as a sink: bulk requests with external versions, each item judged by its own answer.

Documents go to the alias `index`, behind which `index-000001` is made if neither is there. A version is the number of an order (see
`versions.py`): so an order that arrives late, after a newer one, changes nothing. A deletion's version is forgotten by the server after a
minute, or when it restarts; the order of the outbox is what counts then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from crawlspace.clock import Clock
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.inventory import Entry
from crawlspace.index.json_client import Client, Connection, Reply, items, shown, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.bulk import answers_of, item_of, refused_whole
from crawlspace.index.opensearch.inventory import IndexContents
from crawlspace.index.opensearch.mapping import index_body, languages_of, source_of
from crawlspace.index.opensearch.marker import Marker, are_complete
from crawlspace.index.search_server.connection import batch_bytes_of, connection_of, connections_of
from crawlspace.index.search_server.items import Item, Judged
from crawlspace.index.search_server.sink import SearchServerSink
from crawlspace.model import IndexOrder
from crawlspace.urls import document_id

if TYPE_CHECKING:
    from crawlspace.index.sink import Options

_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_ANALYZER = re.compile(r"analyzer \[(\w+)\] (?:has not been configured|not found)")
_MOST_LOOKED_UP = 1_000
_OLDEST = {"OpenSearch": (1, 0), "Elasticsearch": (7, 10)}


@dataclass(frozen=True, slots=True)
class Product:
    """What a server says that it is."""

    name: str
    version: tuple[int, ...]
    is_oss: bool

    @property
    def flat_type(self) -> str:
        """Return the type of a field that takes an object as it is: a mapping cannot grow by what is in it."""
        if self.name == "OpenSearch":
            return "flat_object" if self.version >= (2, 7) else "object"
        return "object" if self.is_oss else "flattened"


class OpenSearchSink(SearchServerSink):
    """An index on a server. Nothing is sent before the first order."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        index: str,
        *,
        owner: str,
        most_bytes: int,
        connections: int,
        pipeline: str = "",
        body: Mapping[str, object] | None = None,
        shards: int = 1,
        replicas: int = 1,
        clock: Clock | None = None,
        client: Client | None = None,
    ) -> None:
        """`owner` is the collection; `body` is what an index is made with, instead of our mapping."""
        super().__init__(
            name, connection, index, owner=owner, most_bytes=most_bytes, connections=connections, clock=clock, client=client
        )
        self._parameters = {"require_alias": "true"} | ({"pipeline": pipeline} if pipeline else {})
        self._body = body
        self._shards, self._replicas = shards, replicas
        self._languages: frozenset[str] | None = None
        self.product: Product | None = None
        self._marks = Marker(self._client, self._url, index, owner=owner, sink=name)

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Return the sink that the options describe. Raises SettingError."""
        index = options.text("index")
        if not _INDEX.fullmatch(index):
            raise SettingError(
                f"{options.where('index')} is {index!r}; the name of an index has small letters, digits, hyphens, underscores and dots"
            )
        return cls(
            options.name,
            connection_of(options, has_api_key=True),
            index,
            owner=options.collection,
            most_bytes=batch_bytes_of(options),
            connections=connections_of(options),
            pipeline=options.text("pipeline", ""),
            body=_body_of(options),
            shards=options.integer("shards", 1, low=1),
            replicas=options.integer("replicas", 1, low=0),
        )

    def mark(self) -> BatchMark | None:
        return self._client.run(self._marks.read())

    def lacks_mark(self) -> bool:
        return self._client.run(self._lacks_mark())

    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        return self._contents().look_up(urls)

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        return self._contents().entries(owner=owner)

    def _contents(self) -> IndexContents:
        """Return what the index has, once it is seen that it is there. Raises IndexUnavailable."""
        self._client.run(self._make_ready(may_create=False))
        return IndexContents(self._client, self._url, self._index)

    def _item_of(self, order: IndexOrder, *, now: float) -> Item:
        if order.document is None:
            return item_of(order, None)
        return item_of(
            order,
            source_of(
                order.url,
                order.document,
                id=document_id(order.url),
                owner=self._owner,
                now=now,
                languages=self._languages,
            ),
        )

    async def _request(self, part: Sequence[Item]) -> Judged | list[Judged]:
        lines = b"".join(item.lines for item in part)
        reply = await self._client.request("POST", f"/{self._index}/_bulk", lines=lines, parameters=self._parameters)
        return answers_of(reply.body, part) if reply.is_ok else refused_whole(reply.status, reply.body)

    async def _look_up(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        """Return version and owner of those documents that are there."""
        found: dict[str, tuple[int, str]] = {}
        for first in range(0, len(ids), _MOST_LOOKED_UP):
            reply = await self._client.request(
                "POST",
                f"/{self._index}/_mget",
                body={"ids": ids[first : first + _MOST_LOOKED_UP]},
                parameters={"_source": "collection"},
            )
            if not reply.is_ok:
                raise IndexUnavailable(f"{self._url} does not tell what it has: {refused_whole(reply.status, reply.body).why}")
            for one in map(table, items(table(reply.body).get("docs"))):
                if one.get("found"):
                    version, source = one.get("_version"), table(one.get("_source"))
                    found[str(one.get("_id"))] = version if isinstance(version, int) else 0, str(source.get("collection", ""))
        return found

    async def _make_ready(self, *, may_create: bool) -> None:
        """See that the server is one that we know, and the alias is there. Raises IndexUnavailable."""
        if self._is_ready:
            return
        self.product = product = _product_of(self._url, await self._client.request("GET", "/"))
        alias = await self._client.request("GET", f"/_alias/{self._index}")
        if alias.status == 404:
            await self._create(product, may_create=may_create)
        elif not alias.is_ok:
            raise IndexUnavailable(f"{self._url}: {refused_whole(alias.status, alias.body).why}")
        await self._read_mapping()
        self._is_ready = True

    async def _read_mapping(self) -> None:
        reply = await self._client.request("GET", f"/{self._index}/_mapping")
        mapping = table(next(iter(table(reply.body).values()), None))
        self._languages = languages_of(mapping)
        await self._marks.prepare(mapping, may_add=self._body is None)

    async def _lacks_mark(self) -> bool:
        reply = await self._client.request("GET", f"/{self._index}/_mapping")
        if reply.status == 404:
            return True
        return are_complete(table(next(iter(table(reply.body).values()), None))) and await self._marks.read() is None

    async def _marker(self, mark: BatchMark, orders: Sequence[IndexOrder]) -> Item | None:
        return await self._marks.item(mark, orders)

    def _settle_marker(self, answered: Judged) -> bool:
        return self._marks.settle(answered)

    async def _create(self, product: Product, *, may_create: bool) -> None:
        if (await self._client.request("HEAD", f"/{self._index}")).is_ok:
            raise IndexUnavailable(
                f"{self._index} at {self._url} is an index, and must be an alias: give the sink another index, or reindex that one under"
                " another name and have an alias lead there"
            )
        if not may_create:
            raise IndexUnavailable(
                f"the alias {self._index} at {self._url} is not there any more: have it lead to its index again, or have all documents sent"
                f" to a new one (`scrapy sinks {self._owner} --fill {self.name}`)"
            )
        await self._make_index(f"{self._index}-000001", {self._index: {"is_write_index": True}}, product)

    async def _make_index(self, name: str, aliases: Mapping[str, object], product: Product, *, is_marked: bool = True) -> None:
        """Make an index with our mapping, or the user's own; analysers that the server lacks are left out. `is_marked`: see `index_body`."""
        lacking: set[str] = set()
        while True:
            own = index_body(
                flat_type=product.flat_type,
                shards=self._shards,
                replicas=self._replicas,
                without=lacking,
                is_marked=is_marked,
            )
            made = await self._client.request("PUT", f"/{name}", body={**(self._body or own), "aliases": aliases})
            if made.is_ok:
                return
            why = refused_whole(made.status, made.body).why
            missing = _ANALYZER.search(why)
            if self._body is not None or missing is None or missing[1] in lacking:
                raise IndexUnavailable(f"{name} could not be made at {self._url}: {why}")
            lacking.add(missing[1])


def _product_of(url: str, reply: Reply) -> Product:
    if reply.status in (401, 403):
        raise IndexUnavailable(
            f"{url} refuses access (HTTP status {reply.status}): check user and password, or the API key, of the sink"
        )
    if reply.status in (429, 503):
        raise IndexUnavailable(f"{url} is not ready (HTTP status {reply.status})")
    version = table(table(reply.body).get("version"))
    number = str(version.get("number", ""))
    if not reply.is_ok or not re.match(r"\d+\.\d+", number):
        raise IndexUnavailable(f"{url} is no OpenSearch or Elasticsearch: it answers {reply.status} {shown(reply.body)}")
    name = "OpenSearch" if version.get("distribution") == "opensearch" else "Elasticsearch"
    product = Product(name, tuple(map(int, re.findall(r"\d+", number)[:3])), version.get("build_flavor") == "oss")
    if product.version[:2] < _OLDEST[name]:
        oldest = ".".join(map(str, _OLDEST[name]))
        raise IndexUnavailable(f"{url} is {name} {number}; {oldest} is the oldest that is supported")
    return product


def _body_of(options: Options) -> Mapping[str, object] | None:
    path = options.file("template")
    if path is None:
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"{options.where('template')} is {str(path)!r}, which is no JSON: {error}") from error
    if not isinstance(body, dict) or not set(body) <= {"settings", "mappings", "aliases"}:
        raise SettingError(
            f"{options.where('template')} is {str(path)!r}; it must be an object with settings and mappings, as an index is made with"
        )
    return body
