"""What follows from an outcome in this run: the life of the URL, with the health of its site and the deletions of the run in view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.crawl.displaced_documents import Displacements
from crawlspace.model import Held, Outcome, OutcomeKind, State, Status, UrlState
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.duplicates import is_left
from crawlspace.state.lifecycle import Transition, advance, is_retry, withhold
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import MISSING, REFUSALS, Health
from crawlspace.state.unreachable import UNREACHABLE
from crawlspace.state.views import Counts

DAY_S = 86_400.0
_KEPT = 20_000
_BUSY = (429, 503)
_WAIT_FOR_APPROVAL = (Held.MANY, Held.RULES)
_TELLS_NOTHING = frozenset(
    {Status.ROBOTS_FORBIDDEN, Status.EXCLUDED, Status.EXCLUDED_HERE, Status.PORT_OR_SCHEME, Status.UNEXPECTED}
)


class DocumentCounts(Protocol):
    def counts(self) -> Counts: ...
    def known_of_host(self, host: str) -> int: ...
    def left_to_others(self, ids: Collection[int]) -> set[int]: ...
    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool: ...


class OutcomePolicy:
    """Follows outcomes up in the order in which they come. A crawl that goes on for days counts its deletions anew each day."""

    def __init__(
        self, store: DocumentCounts, *, read_health: Callable[[str], Health], clock: Clock, deletion_limit: DeletionLimit
    ) -> None:
        """`read_health` returns the stored health of a site."""
        self._store = store
        self._read_health = read_health
        self._clock = clock
        self._deletion_limit = deletion_limit
        self._displacements = Displacements(store)
        self._healths: dict[str, Health] = {}
        self._changed: dict[str, Health] = {}
        self._small: dict[str, bool] = {}
        """By site, as it was before any of its pages was found missing: see `_is_small`."""
        self.deleted = 0
        self.deleted_elsewhere = 0
        """Deletions by others who crawl the same collection, as far as known."""
        self.withheld = 0
        """Deletions of this run that were held because there were too many."""
        self._count_anew()

    def follow(self, state: UrlState, outcome: Outcome, *, policy: RecrawlPolicy, canonical: int | None = None) -> Transition:
        """Return what follows from an outcome; beyond the run's deletions, with the deletion held.

        `canonical` is the key of the canonical page that the page names.
        """
        health = self._healths.get(state.site) or self._read(state.site)
        now = self._clock.now()
        missing = outcome.kind is OutcomeKind.GONE and outcome.status in MISSING
        small = missing and state.checksum is not None and self._is_small(state.site, health, policy)
        transition = advance(state, outcome, policy=policy, now=int(now), site=health, is_small_site=small)
        failed = _is_failure(outcome) or (outcome.kind is OutcomeKind.GONE and outcome.status in REFUSALS)
        # What was missing before and is confirmed is no news of the site: a section that is gone leaves whole, however long it is.
        again = ((failed or missing) and is_retry(state)) or (missing and transition.forget and state.held is Held.HOST)
        if _tells_of_site(outcome) and not again:
            health = health.after(failed=failed, missing=missing, window=policy.host_fetches)
            self._healths[state.site] = self._changed[state.site] = health
        if outcome.kind is OutcomeKind.DOCUMENT and transition.state.checksum is not None:
            transition.state.canonical = canonical
            return self._follow_document(state, transition)
        if not _deletes(transition, outcome) or not (state.indexed or self._takes_back(state, transition)):
            return transition
        if state.held in _WAIT_FOR_APPROVAL:  # a new run must not let through, bit by bit, what an earlier one has held
            return withhold(state, transition)
        room = self._room()
        if self._displacements.lost(room=room) < room:
            self.deleted += 1
            return transition
        self.withheld += 1
        return withhold(state, transition)

    def _follow_document(self, state: UrlState, transition: Transition) -> Transition:
        """Hold a document that another one is to stand for from now on, where too many are lost in this way or another."""
        displacements, after = self._displacements, transition.state
        if state.held is Held.MANY and state.indexed and state.state is State.DONE:
            beyond = (after.checksum, after.canonical) != (state.checksum, state.canonical) and displacements.is_lost(after)
        else:
            beyond = displacements.is_beyond(state, after, room=self._room())
            self.withheld += beyond
        if beyond:
            return withhold(state, transition)
        displacements.add(after)
        return transition

    def recorded(self, displaced: int) -> None:
        """What was set apart has been recorded, and so many documents were lost to duplicates by it."""
        self._displacements.end()
        self.deleted += displaced

    def know(self, site: str, health: Health) -> None:
        """The store has another word on a site, which another process has asked meanwhile."""
        self._healths[site] = self._changed.get(site, health)

    def take_changed(self) -> Mapping[str, Health]:
        """Return the health of the sites whose health has changed since the last call, to be written down."""
        self._displacements.begin()
        changed, self._changed = self._changed, {}
        if len(self._healths) > _KEPT:
            self._healths.clear()
            self._small.clear()
        return changed

    def give_back(self, health: Mapping[str, Health]) -> None:
        """What `take_changed` returned could not be written down; it is to be tried again."""
        self._displacements.give_back()
        self._changed = {**health, **self._changed}

    def _room(self) -> int:
        """How many documents may still be deleted."""
        if self._clock.now() - self._since >= DAY_S:
            self._count_anew()
        return self._most - self.deleted - self.deleted_elsewhere

    def _count_anew(self) -> None:
        self._since = self._clock.now()
        self.deleted = 0
        self._small.clear()
        counts = self._store.counts()
        self._most = self._deletion_limit.most(counts.indexed)
        self._has_left = counts.left_to_others > 0

    def _takes_back(self, state: UrlState, transition: Transition) -> bool:
        """Whether a document leaves the index that was left there for another collection, because its URL is this one's again."""
        if not self._has_left or state.checksum is not None:
            return False
        return (transition.forget or not is_left(transition.state)) and bool(self._store.left_to_others([state.id]))

    def _is_small(self, site: str, health: Health, policy: RecrawlPolicy) -> bool:
        """Whether a site has no more pages than count for its health: the known URLs of its host, and those that were missing of late.

        Those may be forgotten by now, and are a part of the site all the same."""
        small = self._small.get(site)
        if small is None:
            known = self._store.known_of_host(site.rpartition(":")[0]) + health.misses
            small = self._small[site] = known <= policy.host_fetches
        return small

    def _read(self, site: str) -> Health:
        health = self._healths[site] = self._changed.get(site) or self._read_health(site)
        return health


def _is_failure(outcome: Outcome) -> bool:
    return outcome.host_failure or outcome.kind is OutcomeKind.FAILED or outcome.status in _BUSY


def site_failed(outcome: Outcome) -> bool | None:
    """Return whether a site failed to answer; None where the outcome does not tell."""
    return _is_failure(outcome) if _tells_of_site(outcome) else None


def site_answered(outcome: Outcome) -> bool | None:
    """Return whether a site gave any answer; None where the outcome does not tell."""
    return outcome.status not in UNREACHABLE if _tells_of_site(outcome) else None


def _tells_of_site(outcome: Outcome) -> bool:
    """Whether an outcome shows how the site is.

    What the rules, the addresses or robots.txt keep out was never asked for. An unexpected error is mostly a fault in the parsing of a
    page that the site has answered well; to count it as an answer would be wrong as well, for answers are what confirms deletions.
    """
    if outcome.kind is OutcomeKind.GONE:
        return True  # a site may answer with any number
    return outcome.status not in _TELLS_NOTHING


def _deletes(transition: Transition, outcome: Outcome) -> bool:
    return (transition.forget or transition.state.checksum is None) and outcome.status != Status.EXCLUDED_HERE
