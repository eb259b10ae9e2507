"""How fast one site may be asked, and when its next turn is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from crawlspace.model import Source, State, UrlState


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between the starts of two requests to a site, and how many may be under way at once."""

    delay_s: float
    concurrency: int


class Place(Enum):
    """Where the frontier keeps a site; it is in exactly one place."""

    NOWHERE = auto()
    """Nothing to do, or as many requests under way as it bears."""
    IDLE = auto()
    """Has work in the store and none at hand."""
    READY = auto()
    """May be asked now."""
    WAITING = auto()
    """Has work at hand; its next turn is in the future."""
    DUE_LATER = auto()
    """Known URLs of it are due in the future."""


Rank = tuple[int, int, int]
"""Source, shift, order of discovery: smaller goes first."""


def rank_of(state: UrlState) -> Rank:
    """Return the place of a URL that is to be fetched; one that is due again waits behind what is new, whatever its source was."""
    is_new = state.state is State.PENDING or state.retries > 0
    return (state.source if is_new else Source.REFRESH, state.shift, state.id)


@dataclass(slots=True)
class SiteTurns:
    """One site's turns: what is at hand, under way, and when the next request may start."""

    site: str
    pace: Pace
    batch: int
    """URLs leased at a time."""
    at_hand: list[tuple[Rank, UrlState]] = field(default_factory=list)
    """A heap of leased URLs."""
    under_way: int = 0
    next_turn: float = 0.0
    """On the monotonic clock."""
    turn_before: float = 0.0
    more: bool = False
    """The store may have more that is ready."""
    due_at: int | None = None
    urgent: set[Source] = field(default_factory=set)
    """Sources in which something that goes before what is at hand has come into the store."""
    held: bool = False
    """Nothing is handed out until robots.txt has come."""
    place: Place = Place.NOWHERE

    @property
    def has_room(self) -> bool:
        return self.under_way < self.pace.concurrency and not self.held
