"""What is the same wherever an index is built anew beside the one that is searched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from crawlspace.document import IndexOrder
from crawlspace.errors import IndexUnavailable
from crawlspace.index.inventory import Copies
from crawlspace.index.marks import BatchMark
from crawlspace.index.search_server.items import BatchOutcome
from crawlspace.index.search_server.sink import SearchServerSink
from crawlspace.index.sink import Sent


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
