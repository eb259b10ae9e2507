"""Sends orders to a search server in requests of several documents, and processes the answer to each document.

The version of a document is the number of its order (see `versions.py`), so an order that arrives late, after a newer one, changes nothing.
Where the server has the same version or a later one, the stored document is looked up, and its owner decides.

A new index can be built while the present one is searched. Meanwhile each batch goes to the new one first, and then to the one that is
searched. A switch in between is harmless: late orders have versions that are there already.
"""

from __future__ import annotations

import asyncio
import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, Protocol, Self, TypeVar

from crawlspace import __version__
from crawlspace.clock import Clock, SystemClock
from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.json_client import Client, Connection
from crawlspace.index.marks import BatchMark
from crawlspace.index.orders import HALF_SURROGATE, NO_DOCUMENT, by_reference, log_by_reference
from crawlspace.index.search import Filter, SearchResult
from crawlspace.index.search_server.items import BatchOutcome, Item, ItemAnswer, ItemResult, advice_for, split_into_requests
from crawlspace.index.search_server.marker import Marker
from crawlspace.index.search_server.search import DocumentSearch
from crawlspace.index.sink import ALL_DONE, Copies, Entry, Options, Refusal, Sent

MAX_ITEMS = 500
"""Items of a request."""
_MIN_ITEMS = 50
"""A batch is divided among the connections, unless its requests would have fewer items than this."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The options that the sinks of all search servers have."""

    name: str
    connection: Connection
    index: str
    owner: str
    """The collection."""
    max_bytes: int
    """Bytes of a request."""
    connections: int = 4
    """Requests at a time."""

    @classmethod
    def from_options(cls, options: Options, *, index: str, has_api_key: bool) -> Self:
        """Return the settings for an index; `has_api_key`: the server accepts an API key instead of a password. Raises SettingError."""
        connection = _connection(options, has_api_key=has_api_key)
        max_bytes = options.integer("batch_bytes", 5_000_000, low=10_000, high=100_000_000)
        connections = options.integer("connections", 4, low=1, high=16)
        return cls(options.name, connection, index, options.collection, max_bytes, connections)


class Contents(Protocol):
    """The documents in an index. All methods raise IndexUnavailable."""

    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        """Return the entries of those URLs that have a document, as they are at this moment."""

    def count(self, *, owner: str | None) -> int:
        """Return the number of documents of a collection, or of all, with those sent before."""

    def entries(self, *, owner: str | None, except_for: str | None = None) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection, of all, or of all but one, a page at a time, with those sent before."""

    def duplicates_of(self, urls: Sequence[str]) -> dict[str, list[str]]:
        """Return the duplicates stored with the documents of URLs."""


class SearchServerSink(ABC):
    """An index on a server. Nothing is sent before the first order."""

    keeps_deleted_versions = False
    """Whether it has the version of each deleted document for good."""
    _marker: Marker

    def __init__(self, settings: ServerSettings, *, clock: Clock | None = None, client: Client | None = None) -> None:
        """`client` is that of another sink of this server, which closes it."""
        self.name = settings.name
        self._settings = settings
        self._url = settings.connection.url
        self._client = client or Client(settings.connection)
        self._index = settings.index
        self._where = f"{self._index} at {self._url}"
        self._owner = settings.owner
        self._clock = clock or SystemClock()
        self._is_ready = False

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Send the orders in requests of several documents, several requests at a time."""
        return self._client.run(self._send(orders, mark)) if orders else ALL_DONE

    def close(self) -> None:
        self._client.close()

    def check_mark(self, mark: BatchMark) -> None:
        """Log a warning if the index has not had the batch before this one."""
        self._check_ready()
        self._client.run(self._marker.check(mark))

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
        search = self._client.run(self._open_search())
        return self._client.run(search.search(words, limit=limit, offset=offset, marks=marks, filters=filters, facets=facets))

    # contents; all raise IndexUnavailable
    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        return self._contents().look_up(urls)

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        return self._contents().entries(owner=owner)

    def entries_of_others(self, owner: str) -> Iterator[Sequence[Entry]]:
        return self._contents().entries(owner=None, except_for=owner)

    def count(self, *, owner: str | None) -> int:
        return self._contents().count(owner=owner)

    @abstractmethod
    def _contents(self) -> Contents:
        """Check that the index is there, and return its contents."""

    @abstractmethod
    async def _open_search(self) -> DocumentSearch:
        """Return the search of the index; nothing is written for it."""

    @abstractmethod
    async def _make_ready(self, *, may_create: bool) -> None:
        """Check that server and index can be used, and set `_is_ready`. Raises IndexUnavailable."""

    @abstractmethod
    def _item_of(self, order: IndexOrder, *, now: float) -> Item:
        """Return an order as an item. Raises UnicodeEncodeError for half of a surrogate pair."""

    @abstractmethod
    async def _request(self, part: Sequence[Item]) -> ItemAnswer | list[ItemAnswer]:
        """Send one request, and return the answer to each item, or to the whole request if that was refused."""

    @abstractmethod
    async def _look_up(self, ids: Sequence[str]) -> Mapping[str, tuple[int, str | None]]:
        """Return version and owner of stored documents; no owner, None: it is deleted, and its version is known."""

    async def _marker_item(self, mark: BatchMark, orders: Sequence[IndexOrder]) -> Item | None:
        """Return the marker to send with a batch, if any."""
        return await self._marker.item_for(mark, orders)

    def _check_ready(self) -> None:
        self._client.run(self._make_ready(may_create=False))

    async def _send(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent:
        await self._make_ready(may_create=mark is None or mark.batch == 1)
        outcome = BatchOutcome()
        deletions = [*self._items([order for order in orders if order.op is Op.DELETE], outcome)]
        others = await self._owned_by_others([item.id for item in deletions])
        pushes = self._items([order for order in orders if order.op is Op.PUSH], outcome)
        marker = None if mark is None else await self._marker_item(mark, orders)
        requests = split_into_requests(
            chain((item for item in deletions if item.id not in others), pushes),
            max_bytes=self._settings.max_bytes,
            max_items=min(MAX_ITEMS, max(_MIN_ITEMS, -(-len(orders) // self._settings.connections))),
            with_all=marker,
        )
        marker_answer = None
        results: set[ItemResult] = set()
        for item, answer in await self._send_requests(requests):
            if item is marker:
                marker_answer = answer
            else:
                outcome.add(item, answer)
                results.add(answer.result)
        if results == {ItemResult.NO_ANSWER}:
            raise IndexUnavailable(outcome.why)
        if marker is not None and marker_answer is None:  # after all other requests, so that all of its batch is there
            ((_, marker_answer),) = await self._send_request([marker])
        above = await self._settle_conflicts(outcome)
        if marker_answer is not None and self._marker.settle(marker_answer):
            outcome.postpone_all(orders, marker_answer)
        if outcome.is_blocked:
            self._is_ready = False
            outcome.why = f"{self._where} accepts no documents at present: {outcome.why}{advice_for(outcome.why)}"
        return Sent(outcome.refused, outcome.later, outcome.why, is_slow=outcome.is_slow and not outcome.is_blocked, above=above)

    async def _send_requests(self, requests: Iterable[list[Item]]) -> list[tuple[Item, ItemAnswer]]:
        """Send requests, each as soon as it is built and a connection is free, and return all answers."""
        free = asyncio.Semaphore(self._settings.connections)

        async def sent(part: list[Item]) -> list[tuple[Item, ItemAnswer]]:
            try:
                return await self._send_request(part)
            finally:
                free.release()

        in_flight: list[asyncio.Task[list[tuple[Item, ItemAnswer]]]] = []
        try:
            for part in requests:
                await free.acquire()
                in_flight.append(asyncio.create_task(sent(part)))
                await asyncio.sleep(0)  # starts it while the next one is built
        finally:
            answers = await asyncio.gather(*in_flight, return_exceptions=True)  # none outlives its batch
        found: list[tuple[Item, ItemAnswer]] = []
        for one in answers:
            if isinstance(one, BaseException):
                raise one
            found += one
        return found

    def _items(self, orders: Iterable[IndexOrder], outcome: BatchOutcome) -> Iterator[Item]:
        now = self._clock.now()
        for order in orders:
            if order.op is Op.PUSH and order.document is None:
                outcome.refused.append(Refusal(order, NO_DOCUMENT))
                continue
            try:
                item = self._item_of(order, now=now)
            except UnicodeEncodeError:
                outcome.refused.append(Refusal(order, HALF_SURROGATE))
                continue
            yield item

    async def _send_request(self, part: Sequence[Item]) -> list[tuple[Item, ItemAnswer]]:
        """Send one request; if it is refused as a whole, halve it until the item that is refused is alone.

        A document that is too large for a request is sent without its text.
        """
        try:
            answers = await self._request(part)
        except IndexUnavailable as error:  # the results of the other requests are kept
            answers = ItemAnswer(ItemResult.NO_ANSWER, str(error))
        if isinstance(answers, ItemAnswer):
            if answers.result in (ItemResult.REFUSED, ItemResult.TOO_LARGE) and len(part) > 1:
                middle = len(part) // 2
                return [*await self._send_request(part[:middle]), *await self._send_request(part[middle:])]
            if answers.result is ItemResult.TOO_LARGE and (without_text := by_reference(part[0].order)) is not None:
                log_by_reference(self.name, without_text)
                return await self._send_request([self._item_of(without_text, now=self._clock.now())])
            return [(item, answers) for item in part]
        if len(part) == 1:
            return list(zip(part, answers, strict=True))
        settled: list[tuple[Item, ItemAnswer]] = []
        failure: ItemAnswer | None = None
        for item, answer in zip(part, answers, strict=True):
            final = answer
            if answer.may_pass_alone:
                final = failure or (await self._send_request([item]))[0][1]
                failure = final if final.is_server_failure else None
            settled.append((item, final))
        return settled

    async def _owned_by_others(self, ids: Sequence[str]) -> set[str]:
        """Return the documents that belong to another collection: a deletion does not concern them."""
        return {id for id, (_, owner) in (await self._look_up(ids)).items() if owner not in (None, self._owner)}

    async def _settle_conflicts(self, outcome: BatchOutcome) -> int:
        """Decide orders whose document has the same version or a later one; return a version that later orders must exceed."""
        if not outcome.conflicts:
            return 0
        above = 0
        try:
            stored = await self._look_up([item.id for item, _ in outcome.conflicts])
        except IndexUnavailable as error:
            outcome.postpone([item for item, _ in outcome.conflicts], str(error))
            return 0
        for item, answer in outcome.conflicts:
            version, owner = stored.get(item.id, (answer.version, None))
            is_ours = owner == self._owner
            # A push of the same version was sent before; a deletion has nothing to delete if the document is gone or another's.
            is_done = not is_ours if item.order.op is Op.DELETE else is_ours and version == item.order.version
            if self.keeps_deleted_versions and version < item.order.version:
                is_done = False  # the look-up has missed the later version
            if not is_done:
                outcome.later.append(item.order)
                above = max(above, version, answer.version)
        return above


class NextSink(SearchServerSink):
    """The index that is being built, under its own name. It uses the client of the sink."""

    @property
    def index(self) -> str:
        return self._index

    def remove(self, entries: Sequence[Entry]) -> None:
        # One more than the stored version: all later orders of the URL have larger ones.
        orders = [IndexOrder(0, Op.DELETE, one.url, version=one.version + 1) for one in entries]
        self._write([self._item_of(order, now=self._clock.now()) for order in orders])

    @abstractmethod
    def _write(self, written: Sequence[Item]) -> None:
        """Write items, some of which may be refused, or have a later version: the comparison that follows finds them."""

    async def mirror(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent:
        """Send orders that are sent to the searched index, too."""
        return await self._send(orders, mark)

    async def _marker_item(self, mark: BatchMark, orders: Sequence[IndexOrder]) -> Item | None:
        """Return the marker regardless of the stored one: it counts after the switch, when nothing is missing."""
        return await self._marker.item_for(mark, orders, always=True)

    async def _settle_conflicts(self, outcome: BatchOutcome) -> int:
        """Ignore conflicts: this version, or a later one, is there already."""
        return 0


Next = TypeVar("Next", bound=NextSink)


class RebuildableSink(SearchServerSink, Generic[Next]):
    """The searched index, with one that may be being built."""

    @abstractmethod
    async def _next_index(self) -> Next | None:
        """Return the index that is being built."""

    async def _send(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent:
        await self._make_ready(may_create=mark is None or mark.batch == 1)
        next_index = await self._next_index()
        mirrored = None if next_index is None else await next_index.mirror(orders, mark)
        sent = await super()._send(orders, mark)
        return sent if mirrored is None else _combined(sent, mirrored)

    def next_copy(self) -> Next:
        self._contents()
        next_index = self._client.run(self._next_index())
        if next_index is None:
            raise nothing_to_switch_to(self._where)
        return next_index

    def duplicates_of(self, urls: Sequence[str]) -> dict[str, list[str]]:
        return self._contents().duplicates_of(urls)


def nothing_to_switch_to(where: str) -> IndexUnavailable:
    """Return the error where no index is being built."""
    return IndexUnavailable(f"no new index is being built for {where}")


def must_begin(copies: Copies, where: str, *, on_previous: bool) -> bool:
    """Return whether building has to begin; False if it has begun already. Raises IndexUnavailable if it cannot begin."""
    if copies.next and on_previous is not (copies.next == copies.previous):
        what = "a new index is being built" if on_previous else "a return to the previous index is in progress"
        raise IndexUnavailable(f"{what} for {where} ({copies.next}): end that first, or give it up with --discard")
    if not copies.next and on_previous and not copies.previous:
        raise IndexUnavailable(f"there is no previous index of {where} to go back to")
    return not copies.next


def _combined(sent: Sent, mirrored: Sent) -> Sent:
    """Return the result of orders that went to two indexes; what only the new one refuses is found by the comparison before the switch."""
    known = {order.sequence for order in sent.later} | {refusal.order.sequence for refusal in sent.refused}
    later = [*sent.later, *(order for order in mirrored.later if order.sequence not in known)]
    return replace(sent, later=later, why_later=sent.why_later or mirrored.why_later, is_slow=sent.is_slow or mirrored.is_slow)


def _connection(options: Options, *, has_api_key: bool) -> Connection:
    user, password = options.text("user", ""), options.secret("password")
    api_key = options.secret("api_key") if has_api_key else ""
    if bool(user) != bool(password) or (user and api_key):
        neither = ', and neither with "api_key"' if has_api_key else ""
        raise SettingError(f'{options.where("user")} goes with "password"{neither}')
    headers = {"User-Agent": f"crawlspace/{__version__}", "Accept": "application/json"}
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    elif api_key:
        headers["Authorization"] = f"ApiKey {api_key}"
    return Connection.from_options(options, headers)
