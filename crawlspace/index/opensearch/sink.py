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
from crawlspace.index.by_reference import by_reference, log_by_reference
from crawlspace.index.json_client import Client, Connection, items, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.bulk import Item, ItemResult, Judged, answers_of, item_of, refused_whole, requests_of
from crawlspace.index.opensearch.mapping import index_body, languages_of, source_of
from crawlspace.index.opensearch.product import Product, product_of
from crawlspace.index.servers import Server
from crawlspace.index.sink import ALL_DONE, Refusal, Sent
from crawlspace.model import IndexOrder, Op
from crawlspace.urls import document_id

if TYPE_CHECKING:
    from crawlspace.index.sink import Options

_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_ANALYZER = re.compile(r"analyzer \[(\w+)\] (?:has not been configured|not found)")
_TYPE = re.compile(r"no handler for type \[(\w+)\]", re.IGNORECASE)
_MOST_ITEMS = 500
_MOST_LOOKED_UP = 1_000


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
            case ItemResult.ITS_OWN | ItemResult.TOO_LARGE:
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
        self._product: Product | None = None

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

    @property
    def server(self) -> Server | None:
        """The server that has answered."""
        return None if self._product is None else Server(str(self._product), self._product.warning)

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Send the orders in bulk requests, several at a time."""
        if not orders:
            return ALL_DONE
        return self._client.run(self._send(orders, is_first=mark is None or mark.batch == 1))

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
        for order in orders:
            if order.op is Op.PUSH and order.document is None:
                outcome.refused.append(Refusal(order, "a push without a document"))
                continue
            try:
                found.append(self._item(order))
            except UnicodeEncodeError:
                half = "the document holds characters that cannot be written as UTF-8 (half of a surrogate pair)"
                outcome.refused.append(Refusal(order, half))
        return found

    def _item(self, order: IndexOrder) -> Item:
        """Raises UnicodeEncodeError."""
        document, id, now = order.document, document_id(order.url), self._clock.now()
        if document is None:
            return item_of(order, None)
        return item_of(order, source_of(order, document, id=id, owner=self._owner, now=now, languages=self._languages))

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
        if whole.answer in (ItemResult.ITS_OWN, ItemResult.TOO_LARGE) and len(part) > 1:
            middle = len(part) // 2
            return [*await self._sent(part[:middle]), *await self._sent(part[middle:])]
        if whole.answer is ItemResult.TOO_LARGE and (without_text := by_reference(part[0].order)) is not None:
            log_by_reference(self.name, without_text)
            return await self._sent([self._item(without_text)])
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
        self._product = product = product_of(self._url, await self._client.request("GET", "/"))
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
            flat = "" if product.flat_type in lacking else product.flat_type
            own = index_body(flat_type=flat, shards=self._shards, replicas=self._replicas, without=lacking)
            made = await self._client.request("PUT", f"/{first}", body={**(self._body or own), "aliases": aliases})
            if made.is_ok:
                return
            why = refused_whole(made.status, made.body).why
            missing = _ANALYZER.search(why) or _TYPE.search(why)
            if self._body is not None or missing is None or missing[1] in lacking:
                raise IndexUnavailable(f"{first} could not be made at {self._url}: {why}")
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
