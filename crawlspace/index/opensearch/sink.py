"""OpenSearch and Elasticsearch as a sink: bulk requests with external versions, each item judged by its own answer.

Documents go to the alias `index`, behind which `index-000001` is made if neither is there. A version is the number of an order (see
`versions.py`): so an order that arrives late, after a newer one, changes nothing. A deletion's version is forgotten by the server after a
minute, or when it restarts; the order of the outbox is what counts then.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from crawlspace import __version__
from crawlspace.clock import Clock, SystemClock
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.filters import Filter
from crawlspace.index.json_client import Client, Connection, Reply, items, shown, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.bulk import Item, ItemResult, Judged, answers_of, item_of, refused_whole, requests_of
from crawlspace.index.opensearch.mapping import index_body, languages_of, source_of
from crawlspace.index.opensearch.search import ServerSearch
from crawlspace.index.search import SearchResult
from crawlspace.index.sink import ALL_DONE, Refusal, Sent
from crawlspace.model import IndexOrder, Op
from crawlspace.urls import document_id

if TYPE_CHECKING:
    from crawlspace.index.sink import Options

_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_ANALYZER = re.compile(r"analyzer \[(\w+)\] (?:has not been configured|not found)")
_MOST_ITEMS = 500
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


@dataclass(slots=True)
class _Outcome:
    """What became of the items so far."""

    refused: list[Refusal] = field(default_factory=list)
    later: list[IndexOrder] = field(default_factory=list)
    conflicts: list[tuple[Item, Judged]] = field(default_factory=list)
    why: str = ""
    is_slow: bool = False
    has_stopped: bool = False

    def add(self, item: Item, answered: Judged) -> None:
        match answered.answer:
            case ItemResult.DONE:
                return
            case ItemResult.CONFLICT:
                self.conflicts.append((item, answered))
                return
            case ItemResult.ITS_OWN:
                self.refused.append(Refusal(item.order, answered.why))
                return
            case ItemResult.SLOW_DOWN:
                self.is_slow = True
            case ItemResult.STOP:
                self.has_stopped = True
        self.later.append(item.order)
        self.why = self.why or answered.why


class OpenSearchSink:
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
    ) -> None:
        """`owner` is the collection; `body` is what an index is made with, instead of our mapping."""
        self.name = name
        self._url = connection.url
        self._client = Client(connection)
        self._index = index
        self._owner = owner
        self._most_bytes = most_bytes
        self._connections = connections
        self._parameters = {"require_alias": "true"} | ({"pipeline": pipeline} if pipeline else {})
        self._body = body
        self._shards, self._replicas = shards, replicas
        self._clock = clock or SystemClock()
        self._is_ready = False
        self._languages: frozenset[str] | None = None
        self.product: Product | None = None

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Return the sink that the options describe. Raises SettingError."""
        url, index = options.url("url"), options.text("index")
        if not _INDEX.fullmatch(index):
            raise SettingError(
                f"{options.where('index')} is {index!r}; the name of an index has small letters, digits, hyphens, underscores and dots"
            )
        user, password, key = options.text("user", ""), options.secret("password"), options.secret("api_key")
        if bool(user) != bool(password) or (user and key):
            raise SettingError(f'{options.where("user")} goes with "password", and neither with "api_key"')
        headers = {"User-Agent": f"crawlspace/{__version__}", "Accept": "application/json"}
        if user:
            headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
        elif key:
            headers["Authorization"] = f"ApiKey {key}"
        certificate, private_key = options.file("client_cert"), options.file("client_key")
        connection = Connection(
            url,
            headers,
            options.seconds("timeout", 60, low=1),
            ca_file=options.file("ca_file"),
            certificate=certificate,
            key=private_key,
        )
        return cls(
            options.name,
            connection,
            index,
            owner=options.collection,
            most_bytes=options.integer("batch_bytes", 5_000_000, low=10_000, high=100_000_000),
            connections=options.integer("connections", 4, low=1, high=16),
            pipeline=options.text("pipeline", ""),
            body=_body_of(options),
            shards=options.integer("shards", 1, low=1),
            replicas=options.integer("replicas", 1, low=0),
        )

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Send the orders in bulk requests, several at a time."""
        if not orders:
            return ALL_DONE
        return self._client.run(self._send(orders, is_first=mark is None or mark.batch == 1))

    def search(
        self,
        words: str,
        *,
        limit: int = 10,
        offset: int = 0,
        marks: tuple[str, str] = ("[", "]"),
        filters: Sequence[Filter] = (),
        facets: Sequence[str] = (),
    ) -> SearchResult:
        """Return the best matches of this collection, see `Searchable`."""
        searching = ServerSearch(self._client, self._url, self._index, owner=self._owner)
        return self._client.run(searching.search(words, limit=limit, offset=offset, marks=marks, filters=filters, facets=facets))

    def close(self) -> None:
        self._client.close()

    async def _send(self, orders: Sequence[IndexOrder], *, is_first: bool) -> Sent:
        await self._make_ready(may_create=is_first)
        outcome = _Outcome()
        made = self._items(orders, outcome)
        others = await self._of_others([item.id for item in made if item.order.op is Op.DELETE])
        requests = requests_of(
            [item for item in made if item.id not in others or item.order.op is Op.PUSH],
            most_bytes=self._most_bytes,
            most_items=_MOST_ITEMS,
        )
        free = asyncio.Semaphore(self._connections)

        async def sent(part: list[Item]) -> list[tuple[Item, Judged]]:
            async with free:
                return await self._sent(part)

        for answered in await asyncio.gather(*map(sent, requests), return_exceptions=True):  # none goes on behind the next batch
            if isinstance(answered, BaseException):
                raise answered
            for item, answer in answered:
                outcome.add(item, answer)
        above = await self._settle_conflicts(outcome)
        if outcome.has_stopped:
            self._is_ready = False  # what is there is looked at again
        return Sent(outcome.refused, outcome.later, outcome.why, is_slow=outcome.is_slow and not outcome.has_stopped, above=above)

    def _items(self, orders: Sequence[IndexOrder], outcome: _Outcome) -> list[Item]:
        found = []
        now = self._clock.now()
        for order in orders:
            document = order.document
            if order.op is Op.PUSH and document is None:
                outcome.refused.append(Refusal(order, "a push without a document"))
                continue
            source = (
                None
                if document is None
                else source_of(
                    order.url, document, id=document_id(order.url), owner=self._owner, now=now, languages=self._languages
                )
            )
            try:
                found.append(item_of(order, source))
            except UnicodeEncodeError:
                half = "the document holds characters that cannot be written as UTF-8 (half of a surrogate pair)"
                outcome.refused.append(Refusal(order, half))
        return found

    async def _sent(self, part: Sequence[Item]) -> list[tuple[Item, Judged]]:
        """Send one request; one that is refused whole is halved until what is refused is alone."""
        lines = b"".join(item.lines for item in part)
        reply = await self._client.request("POST", f"/{self._index}/_bulk", lines=lines, parameters=self._parameters)
        if reply.is_ok:
            answered = list(zip(part, answers_of(reply.body, part), strict=True))
            if len(part) == 1:
                return answered
            settled = []
            for item, answer in answered:
                settled += await self._sent([item]) if answer.may_pass else [(item, answer)]
            return settled
        whole = refused_whole(reply.status, reply.body)
        if whole.answer is ItemResult.ITS_OWN and len(part) > 1:
            middle = len(part) // 2
            return [*await self._sent(part[:middle]), *await self._sent(part[middle:])]
        return [(item, whole) for item in part]

    async def _of_others(self, ids: Sequence[str]) -> set[str]:
        """Return those of the documents that belong to another collection: a deletion does not concern them."""
        return {id for id, (_, owner) in (await self._look_up(ids)).items() if owner != self._owner}

    async def _settle_conflicts(self, outcome: _Outcome) -> int:
        """Decide orders whose document has the same version or a later one; return a version that later orders must be above."""
        if not outcome.conflicts:
            return 0
        above = 0
        there = await self._look_up([item.id for item, _ in outcome.conflicts])
        for item, answered in outcome.conflicts:
            version, owner = there.get(item.id, (answered.version, ""))
            if item.order.op is Op.DELETE:
                is_done = item.id not in there or owner != self._owner
            else:
                is_done = owner == self._owner and version == item.order.version  # it was sent before
            if not is_done:
                outcome.later.append(item.order)
                above = max(above, version, answered.version)
        return above

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
        mapping = await self._client.request("GET", f"/{self._index}/_mapping")
        self._languages = languages_of(table(next(iter(table(mapping.body).values()), None)))
        self._is_ready = True

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
        first = f"{self._index}-000001"
        aliases = {self._index: {"is_write_index": True}}
        lacking: set[str] = set()
        while True:
            own = index_body(flat_type=product.flat_type, shards=self._shards, replicas=self._replicas, without=lacking)
            made = await self._client.request("PUT", f"/{first}", body={**(self._body or own), "aliases": aliases})
            if made.is_ok:
                return
            why = refused_whole(made.status, made.body).why
            missing = _ANALYZER.search(why)
            if self._body is not None or missing is None or missing[1] in lacking:
                raise IndexUnavailable(f"{first} could not be made at {self._url}: {why}")
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
