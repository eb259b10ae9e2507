"""OpenSearch and Elasticsearch as a sink: bulk requests with external versions.

Documents go to the alias `index`; if it does not exist, it is created with the index `index-000001`. The server forgets the version of a
deletion after a minute, or when it restarts; then the order of the outbox is what counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from crawlspace.clock import Clock
from crawlspace.document import IndexOrder
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.json_client import Client, Reply, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.notes import Server
from crawlspace.index.opensearch.bulk import answers_of, item_of, refused_whole
from crawlspace.index.opensearch.contents import IndexContents
from crawlspace.index.opensearch.mapping import columns_of, index_body, languages_of, source_of
from crawlspace.index.opensearch.marker import OpenSearchMarker, are_complete
from crawlspace.index.opensearch.search import ServerSearch, not_an_alias, not_this_product
from crawlspace.index.search_server.items import Item, ItemAnswer
from crawlspace.index.search_server.sink import SearchServerSink, ServerSettings
from crawlspace.index.sink import Options

_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_ANALYZER = re.compile(r"analyzer \[(\w+)\] (?:has not been configured|not found)")
_TYPE = re.compile(r"no handler for type \[(\w+)\]", re.IGNORECASE)


class OpenSearchSink(SearchServerSink):
    """An index on OpenSearch or Elasticsearch. Nothing is sent before the first order."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        pipeline: str = "",
        body: Mapping[str, object] | None = None,
        shards: int = 1,
        replicas: int = 1,
        clock: Clock | None = None,
        client: Client | None = None,
    ) -> None:
        """`body` is used to create an index, instead of our mapping."""
        super().__init__(settings, clock=clock, client=client)
        self._parameters = {"require_alias": "true"} | ({"pipeline": pipeline} if pipeline else {})
        self._body = body
        self._shards, self._replicas = shards, replicas
        self._languages: frozenset[str] | None = None
        self._columns: frozenset[str] = frozenset()
        self.product: Product | None = None
        self._marker: OpenSearchMarker = OpenSearchMarker(self._client, self._url, self._index, owner=self._owner, sink=self.name)

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Return the sink that the options describe. Raises SettingError."""
        index = options.text("index")
        if not _INDEX.fullmatch(index):
            raise SettingError(
                f"{options.where('index')} is {index!r}; the name of an index has small letters, digits, hyphens, underscores and dots"
            )
        return cls(
            ServerSettings.from_options(options, index=index, has_api_key=True),
            pipeline=options.text("pipeline", ""),
            body=_body_of(options),
            shards=options.integer("shards", 1, low=1),
            replicas=options.integer("replicas", 1, low=0),
        )

    def mark(self) -> BatchMark | None:
        return self._client.run(self._marker.read())

    def lacks_mark(self) -> bool:
        return self._client.run(self._lacks_mark())

    @property
    def server(self) -> Server | None:
        """The server that has answered."""
        return None if self.product is None else Server(str(self.product), self.product.warning)

    async def _open_search(self) -> ServerSearch:
        return ServerSearch(self._client, self._url, self._index, owner=self._owner)

    def _contents(self) -> IndexContents:
        self._check_ready()
        return IndexContents(self._client, self._url, self._index)

    def _item_of(self, order: IndexOrder, *, now: float) -> Item:
        if order.document is None:
            return item_of(order, None)
        source = source_of(order, order.document, owner=self._owner, now=now, languages=self._languages, columns=self._columns)
        return item_of(order, source)

    async def _request(self, part: Sequence[Item]) -> ItemAnswer | list[ItemAnswer]:
        lines = b"".join(item.lines for item in part)
        reply = await self._client.request("POST", f"/{self._index}/_bulk", lines=lines, parameters=self._parameters)
        return answers_of(reply.body, part) if reply.is_ok else refused_whole(reply.status, reply.body)

    async def _look_up(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        found = await IndexContents(self._client, self._url, self._index).get(ids, "collection")
        return {id: (entry.version, entry.owner) for id, (entry, _) in found.items()}

    async def _make_ready(self, *, may_create: bool) -> None:
        if self._is_ready:
            return
        self.product = product = product_of(self._url, await self._client.request("GET", "/"))
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
        self._languages, self._columns = languages_of(mapping), columns_of(mapping)
        await self._marker.prepare(mapping, may_add=self._body is None)

    async def _lacks_mark(self) -> bool:
        reply = await self._client.request("GET", f"/{self._index}/_mapping")
        if reply.status == 404:
            return True
        return are_complete(table(next(iter(table(reply.body).values()), None))) and await self._marker.read() is None

    async def _create(self, product: Product, *, may_create: bool) -> None:
        if (await self._client.request("HEAD", f"/{self._index}")).is_ok:
            raise not_an_alias(self._url, self._index)
        if not may_create:
            raise IndexUnavailable(
                f"the alias {self._index} at {self._url} is not there any more: have it lead to its index again, or have all documents sent"
                f" to a new one (`scrapy sinks {self._owner} --fill {self.name}`); if nothing was ever sent there, `scrapy crawl"
                f" {self._owner}` makes it"
            )
        await self._make_index(f"{self._index}-000001", {self._index: {"is_write_index": True}}, product)

    async def _make_index(self, name: str, aliases: Mapping[str, object], product: Product, *, is_marked: bool = True) -> None:
        """Create an index with our mapping, or the user's own; analysers and field types that the server lacks are left out.

        `is_marked`: see `index_body`.
        """
        lacking: set[str] = set()
        while True:
            flat = "" if product.flat_type in lacking else product.flat_type
            own = index_body(flat_type=flat, shards=self._shards, replicas=self._replicas, without=lacking, is_marked=is_marked)
            made = await self._client.request("PUT", f"/{name}", body={**(self._body or own), "aliases": aliases})
            if made.is_ok:
                return
            why = refused_whole(made.status, made.body).why
            missing = _ANALYZER.search(why) or _TYPE.search(why)
            if self._body is not None or missing is None or missing[1] in lacking:
                raise IndexUnavailable(f"{name} could not be made at {self._url}: {why}")
            lacking.add(missing[1])


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


# --- product -------------------------------------------------------------------------------------------------------


TESTED: Mapping[str, tuple[str, ...]] = {"OpenSearch": ("2.19.1",), "Elasticsearch": ("7.10.2",)}
"""The versions on which `make test-servers` runs the tests. One that differs in its last number alone counts as tried."""
_OLDEST = {"OpenSearch": (1, 0), "Elasticsearch": (7, 10)}


@dataclass(frozen=True, slots=True)
class Product:
    """Name and version of a server."""

    name: str
    number: str
    """Its version, as written."""

    def __str__(self) -> str:
        return f"{self.name} {self.number}"

    @property
    def flat_type(self) -> str:
        """The server's type of a flat object, with which no field of a document adds to the mapping."""
        return "flat_object" if self.name == "OpenSearch" else "flattened"

    @property
    def warning(self) -> str:
        """A sentence if this version was never tried; empty if it was."""
        if _two(self.number) in map(_two, TESTED[self.name]):
            return ""
        tried = " and ".join(f"{name} {number}" for name, numbers in TESTED.items() for number in numbers)
        return f"{self} was not tried by us; {tried} were. See that documents arrive, and that it refuses none"


def product_of(url: str, reply: Reply) -> Product:
    """Return the product that has answered `GET /`. Raises IndexUnavailable for another one, or one that is too old."""
    if reply.status in (401, 403):
        raise IndexUnavailable(
            f"{url} refuses access (HTTP status {reply.status}): check user and password, or the API key, of the sink"
        )
    if reply.status in (429, 503):
        raise IndexUnavailable(f"{url} is not ready (HTTP status {reply.status})")
    version = table(table(reply.body).get("version"))
    number = str(version.get("number", ""))
    if not reply.is_ok or not re.match(r"\d+\.\d+[\w.-]{0,40}$", number):
        raise not_this_product(url, reply)
    product = Product("OpenSearch" if version.get("distribution") == "opensearch" else "Elasticsearch", number)
    if _two(number) < _OLDEST[product.name]:
        oldest = ".".join(map(str, _OLDEST[product.name]))
        raise IndexUnavailable(f"{url} is {product}; {oldest} is the oldest that is supported")
    return product


def _two(number: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", number)[:2]))
