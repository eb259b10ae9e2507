"""What the present web and configuration do not tell, and the oracle is told: what is held, and what others have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tests.histories.documents import Indexed


@dataclass(frozen=True, slots=True)
class Kept:
    """A document whose deletion is held: it is as it was. `why` is "host", "many" or "rules"."""

    url: str
    title: str
    text: str
    canonical: str
    why: str
    key: tuple[str, ...] | None = None
    """By what it is known to be equal to others, where that isn't how it is now."""
    inherited: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Values of the field that its links have inherited since it was first read, by the addresses they may have come to."""


@dataclass(slots=True)
class Past:
    """What the present doesn't tell."""

    kept: Sequence[Kept] = ()
    elsewhere: Mapping[str, Indexed | None] = field(default_factory=dict)
    """What was indexed of addresses when another crawler took them over; None where that can't be said any more."""
    left: Collection[str] = ()
    """Addresses whose documents were left to another crawler, and whose deletion is held."""
    of_other: Collection[str] = ()
    """Documents that another collection with the same index pushed last: it knows other duplicates of them, and other pages lead there."""
    returned: Collection[str] = ()
    """Addresses that came back into the crawl space just now, and have been fetched once since: what is gone is remembered until the next fetch."""
    held_by_other: Collection[str] = ()
    """Those of them that it holds for its rules: it fetches them no more, and pushes what it had once their duplicates are others."""
    due_tomorrow: Collection[str] = ()
    """Addresses that inherit something else now, and were fetched for that today already: they are fetched again the next day."""

    forbidden: Sequence[Mapping[str, Collection[str]]] = ()
    """What links of pages have inherited that lead to the log-in though somebody is logged in, as `Kept.inherited`: all that is known of them stays."""

    @property
    def held(self) -> set[str]:
        """The addresses of `kept`."""
        return {one.url for one in self.kept}
