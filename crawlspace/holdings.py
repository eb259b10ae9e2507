"""The sites that a worker holds, what of each lies ready to be handed out, and which it needs besides."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from crawlspace.clock import Clock
from crawlspace.model import UrlState
from crawlspace.recent import Recent

LET_GO = 50_000
"""Of so many sites it is remembered that they were this worker's."""
CLAIM_S = 3.0
"""A site that was needed within that time is claimed from others, and kept from them."""


class Holdings:
    """By site, in the order in which they came."""

    def __init__(self) -> None:
        self._lanes: dict[str, dict[int, deque[UrlState]]] = {}
        self._gone: Recent[str, str] = Recent(LET_GO)
        self.ready = 0
        """How many URLs lie here."""

    def __contains__(self, site: object) -> bool:
        return site in self._lanes

    def __len__(self) -> int:
        return len(self._lanes)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._lanes))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._lanes))

    def put(self, site: str, states: Iterable[UrlState]) -> list[int]:
        """Hold a site from now on, or more of it. Returns the lanes in which something lies ready."""
        self._gone.drop(site)
        lanes = self._lanes.setdefault(site, {})
        for state in states:
            lanes.setdefault(state.queue.lane, deque()).append(state)
            self.ready += 1
        return list(lanes)

    def hand_out(self, site: str, lane: int, limit: int) -> list[UrlState]:
        lanes = self._lanes[site]
        hand = lanes.get(lane, deque())
        got = [hand.popleft() for _ in range(min(limit, len(hand)))]
        self.ready -= len(got)
        if not hand:
            lanes.pop(lane, None)
        return got

    def has_any(self, site: str) -> bool:
        """Whether something of the site lies ready."""
        return bool(self._lanes[site])

    def put_down(self, site: str) -> list[int]:
        """Have nothing of a site lie ready; return the ids of what did."""
        lanes = self._lanes[site]
        ids = [state.id for hand in lanes.values() for state in hand]
        lanes.clear()
        self.ready -= len(ids)
        return ids

    def drop(self, site: str) -> list[int]:
        """Hold a site no more; return the ids of what lay ready."""
        ids = self.put_down(site)
        del self._lanes[site]
        self._gone.put(site, site)
        return ids

    def has_gone(self, site: str) -> bool:
        """Whether the site was held, and is not any more."""
        return self._gone.get(site) is not None


class Claims:
    """Sites that are needed for something else than their URLs, and when that was last said."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}

    def __contains__(self, site: object) -> bool:
        return site in self._said

    def say(self, site: str) -> None:
        self._said[site] = self._clock.monotonic()

    def outstanding(self, held: Holdings) -> Sequence[str]:
        """Those that are not held; what was not said again for long is forgotten."""
        latest = self._clock.monotonic() - CLAIM_S
        self._said = {site: at for site, at in self._said.items() if at >= latest}
        return [site for site in self._said if site not in held]
