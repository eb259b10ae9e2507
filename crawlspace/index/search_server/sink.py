"""How orders are sent to a search server: in requests of several documents, each judged by its own answer.

A version is the number of an order (see `versions.py`): so an order that arrives late, after a newer one, changes nothing. Where the server
has the same version or a later one, what it has is looked up, and the owner of the document decides.
"""

from __future__ import annotations

import asyncio
import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from crawlspace import __version__
from crawlspace.clock import Clock, SystemClock
from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.json_client import Client, Connection
from crawlspace.index.marks import BatchMark
from crawlspace.index.orders import by_reference, log_by_reference
from crawlspace.index.search import Filter, SearchResult
from crawlspace.index.search_server.items import BatchOutcome, Item, ItemResult, Judged, requests_of, way_out
from crawlspace.index.search_server.search import DocumentSearch
from crawlspace.index.sink import ALL_DONE, Copies, Entry, Refusal, Sent

if TYPE_CHECKING:
    from crawlspace.index.sink import Options

_LEAST_ITEMS, _MOST_ITEMS = 50, 500
"""Of a request: a batch is divided among the connections, as long as requests don't become too small for that."""
_HALF = "the document holds characters that cannot be written as UTF-8 (half of a surrogate pair)"


class Contents(Protocol):
    """What an index has. All raise IndexUnavailable."""

    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]: ...
    def count(self, *, owner: str | None) -> int: ...
    def entries(self, *, owner: str | None, except_for: str | None = None) -> Iterator[Sequence[Entry]]: ...


class SearchServerSink(ABC):
    """An index on a server. Nothing is sent before the first order."""

    keeps_deleted_versions = False
    """Whether it has the version of each deleted document for good."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        index: str,
        *,
        owner: str,
        most_bytes: int,
        connections: int,
        clock: Clock | None = None,
        client: Client | None = None,
    ) -> None:
        """`owner` is the collection; `client` is that of another sink on this server, which closes it."""
        self.name = name
        self._url = connection.url
        self._connection = connection
        self._client = client or Client(connection)
        self._index = index
        self._owner = owner
        self._most_bytes = most_bytes
        self._connections = connections
        self._clock = clock or SystemClock()
        self._is_ready = False

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Send the orders in requests of several documents, several requests at a time."""
        if not orders:
            return ALL_DONE
        return self._client.run(self._send(orders, mark))

    def close(self) -> None:
        self._client.close()

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
        searching = self._client.run(self._searching())
        return self._client.run(searching.search(words, limit=limit, offset=offset, marks=marks, filters=filters, facets=facets))

    # what it has; all raise IndexUnavailable
    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        """Return the entries of those URLs that have a document, as they are at this moment."""
        return self._contents().look_up(urls)

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection, a page at a time; what was sent before is among them."""
        return self._contents().entries(owner=owner)

    def entries_of_others(self, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield those of the other collections."""
        return self._contents().entries(owner=None, except_for=owner)

    def count(self, *, owner: str | None) -> int:
        """Return how many documents a collection has there, or all have."""
        return self._contents().count(owner=owner)

    @abstractmethod
    def _contents(self) -> Contents:
        """Return what the index has, once it is seen that it is there."""

    @abstractmethod
    async def _searching(self) -> DocumentSearch:
        """Return what searches the index; nothing is written for it."""

    @abstractmethod
    async def _make_ready(self, *, may_create: bool) -> None:
        """See that the server is one that we know, and has the index; set `_is_ready`. Raises IndexUnavailable."""

    @abstractmethod
    def _item_of(self, order: IndexOrder, *, now: float) -> Item:
        """Return an order as an item. Raises UnicodeEncodeError for half of a surrogate pair."""

    @abstractmethod
    async def _request(self, part: Sequence[Item]) -> Judged | list[Judged]:
        """Send one request, and return what its answer means: for each item, or for the whole request if that was refused."""

    @abstractmethod
    async def _look_up(self, ids: Sequence[str]) -> Mapping[str, tuple[int, str | None]]:
        """Return version and owner of those documents that are there; no owner, None: it is deleted, and its version is known."""

    async def _marker(self, mark: BatchMark, orders: Sequence[IndexOrder]) -> Item | None:
        """Return what is written with a batch so that its mark can be read; None where nothing is."""
        return None

    def _settle_marker(self, answered: Judged) -> bool:
        """Take the answer to the marker; return whether the batch has to be sent again for it."""
        return False

    async def _send(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent:
        await self._make_ready(may_create=mark is None or mark.batch == 1)
        outcome = BatchOutcome()
        deletions = [*self._items([order for order in orders if order.op is Op.DELETE], outcome)]
        others = await self._of_others([item.id for item in deletions])
        pushes = self._items([order for order in orders if order.op is Op.PUSH], outcome)
        marker = None if mark is None else await self._marker(mark, orders)
        requests = requests_of(
            chain((item for item in deletions if item.id not in others), pushes),
            most_bytes=self._most_bytes,
            most_items=min(_MOST_ITEMS, max(_LEAST_ITEMS, -(-len(orders) // self._connections))),
            with_all=marker,
        )
        marked = None
        answers: set[ItemResult] = set()
        for item, answer in await self._answers(requests):
            if item is marker:
                marked = answer
            else:
                outcome.add(item, answer)
                answers.add(answer.answer)
        if answers == {ItemResult.NO_ANSWER}:
            raise IndexUnavailable(outcome.why)
        if marker is not None and marked is None:  # the other requests are answered: it says no more than what is there
            ((_, marked),) = await self._sent([marker])
        above = await self._settle_conflicts(outcome)
        if marked is not None and self._settle_marker(marked):
            outcome.put_off(orders, marked)
        if outcome.has_stopped:
            self._is_ready = False  # what is there is looked at again
            outcome.why = f"{self._index} at {self._url} takes no documents at present: {outcome.why}{way_out(outcome.why)}"
        return Sent(outcome.refused, outcome.later, outcome.why, is_slow=outcome.is_slow and not outcome.has_stopped, above=above)

    async def _answers(self, requests: Iterable[list[Item]]) -> list[tuple[Item, Judged]]:
        """Send requests, each as soon as it is made and there is a connection for it, and return the answers to all."""
        free = asyncio.Semaphore(self._connections)

        async def sent(part: list[Item]) -> list[tuple[Item, Judged]]:
            try:
                return await self._sent(part)
            finally:
                free.release()

        under_way: list[asyncio.Task[list[tuple[Item, Judged]]]] = []
        try:
            for part in requests:
                await free.acquire()
                under_way.append(asyncio.create_task(sent(part)))
                await asyncio.sleep(0)  # it is on its way while the next one is made
        finally:
            answered = await asyncio.gather(*under_way, return_exceptions=True)  # none goes on behind the next batch
        found: list[tuple[Item, Judged]] = []
        for one in answered:
            if isinstance(one, BaseException):
                raise one
            found += one
        return found

    def _items(self, orders: Iterable[IndexOrder], outcome: BatchOutcome) -> Iterator[Item]:
        now = self._clock.now()
        for order in orders:
            if order.op is Op.PUSH and order.document is None:
                outcome.refused.append(Refusal(order, "a push without a document"))
                continue
            try:
                item = self._item_of(order, now=now)
            except UnicodeEncodeError:
                outcome.refused.append(Refusal(order, _HALF))
                continue
            yield item

    async def _sent(self, part: Sequence[Item]) -> list[tuple[Item, Judged]]:
        """Send one request; one that is refused whole is halved until what is refused is alone. What is too large alone is sent without
        its text."""
        try:
            answered = await self._request(part)
        except IndexUnavailable as error:  # what other requests have brought is done all the same
            answered = Judged(ItemResult.NO_ANSWER, str(error))
        if isinstance(answered, Judged):
            if answered.answer in (ItemResult.ITS_OWN, ItemResult.TOO_LARGE) and len(part) > 1:
                middle = len(part) // 2
                return [*await self._sent(part[:middle]), *await self._sent(part[middle:])]
            if answered.answer is ItemResult.TOO_LARGE and (without_text := by_reference(part[0].order)) is not None:
                log_by_reference(self.name, without_text)
                return await self._sent([self._item_of(without_text, now=self._clock.now())])
            return [(item, answered) for item in part]
        if len(part) == 1:
            return list(zip(part, answered, strict=True))
        settled: list[tuple[Item, Judged]] = []
        trouble: Judged | None = None
        for item, answer in zip(part, answered, strict=True):
            alone = answer
            if answer.may_pass:
                alone = trouble or (await self._sent([item]))[0][1]
                trouble = alone if alone.is_trouble else None
            settled.append((item, alone))
        return settled

    async def _of_others(self, ids: Sequence[str]) -> set[str]:
        """Return those of the documents that belong to another collection: a deletion does not concern them."""
        return {id for id, (_, owner) in (await self._look_up(ids)).items() if owner not in (None, self._owner)}

    async def _settle_conflicts(self, outcome: BatchOutcome) -> int:
        """Decide orders whose document has the same version or a later one; return a version that later orders must be above."""
        if not outcome.conflicts:
            return 0
        above = 0
        try:
            there = await self._look_up([item.id for item, _ in outcome.conflicts])
        except IndexUnavailable as error:
            outcome.postpone([item for item, _ in outcome.conflicts], str(error))
            return 0
        for item, answered in outcome.conflicts:
            version, owner = there.get(item.id, (answered.version, None))
            is_ours = owner == self._owner
            # A push of the same version was sent before; a deletion has nothing to delete if the document is gone or another's.
            is_done = not is_ours if item.order.op is Op.DELETE else is_ours and version == item.order.version
            if self.keeps_deleted_versions and version < item.order.version:
                is_done = False  # there is a later one, and the look-up has missed it
            if not is_done:
                outcome.later.append(item.order)
                above = max(above, version, answered.version)
        return above


# --- connection ----------------------------------------------------------------------------------------------------


def connection_of(options: Options, *, has_api_key: bool) -> Connection:
    """Return the connection that options describe; `has_api_key`: an API key may take the place of a password. Raises SettingError."""
    url = options.url("url")
    user, password = options.text("user", ""), options.secret("password")
    key = options.secret("api_key") if has_api_key else ""
    if bool(user) != bool(password) or (user and key):
        neither = ', and neither with "api_key"' if has_api_key else ""
        raise SettingError(f'{options.where("user")} goes with "password"{neither}')
    headers = {"User-Agent": f"crawlspace/{__version__}", "Accept": "application/json"}
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    elif key:
        headers["Authorization"] = f"ApiKey {key}"
    return Connection(
        url,
        headers,
        options.seconds("timeout", 60, low=1),
        ca_file=options.file("ca_file"),
        certificate=options.file("client_cert"),
        key=options.file("client_key"),
    )


def batch_bytes_of(options: Options) -> int:
    """Return the most bytes of one request. Raises SettingError."""
    return options.integer("batch_bytes", 5_000_000, low=10_000, high=100_000_000)


def connections_of(options: Options) -> int:
    """Return the number of requests at a time. Raises SettingError."""
    return options.integer("connections", 4, low=1, high=16)


# --- copies --------------------------------------------------------------------------------------------------------


class NextSink(SearchServerSink):
    """The index that is being built, by its own name."""

    @property
    def index(self) -> str:
        return self._index

    async def take(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent:
        """Write what is sent to the index that is searched."""
        return await self._send(orders, mark)

    async def _settle_conflicts(self, outcome: BatchOutcome) -> int:
        """A conflict says that it has this version already, or a later one."""
        return 0


Next = TypeVar("Next", bound=NextSink)


class RebuildableSink(SearchServerSink, Generic[Next]):
    """A sink whose index can be built anew beside the one that is searched."""

    @abstractmethod
    async def _following(self) -> Next | None:
        """Return the index that is being built."""

    async def _send(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent:
        await self._make_ready(may_create=mark is None or mark.batch == 1)
        following = await self._following()
        behind = None if following is None else await following.take(orders, mark)
        sent = await super()._send(orders, mark)
        return sent if behind is None else together(sent, behind)

    def next_copy(self) -> Next:
        self._contents()
        following = self._client.run(self._following())
        if following is None:
            raise IndexUnavailable(f"no index is being built beside {self._index} at {self._url}")
        return following


def may_begin(copies: Copies, where: str, *, on_previous: bool) -> bool:
    """Return whether to begin; False where that was done before. `where` is the index. Raises IndexUnavailable for what is in the way."""
    if copies.next and on_previous is not (copies.next == copies.previous):
        what = "an index is being built" if on_previous else "the return to the previous index is under way"
        raise IndexUnavailable(f"{what} beside {where} ({copies.next}): end that first, or give it up with --discard")
    if not copies.next and on_previous and not copies.previous:
        raise IndexUnavailable(f"there is no previous index of {where} to go back to")
    return not copies.next


def together(sent: Sent, behind: Sent) -> Sent:
    """Return what became of orders that went to two indexes; what only the one that is being built refuses is found by comparing."""
    known = {order.sequence for order in sent.later} | {refusal.order.sequence for refusal in sent.refused}
    more = [order for order in behind.later if order.sequence not in known]
    return replace(
        sent,
        later=[*sent.later, *more],
        why_later=sent.why_later or behind.why_later,
        is_slow=sent.is_slow or behind.is_slow,
    )
