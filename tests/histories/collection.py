"""A collection of a random history: its configuration, commands of a person, and what is known of its past."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from crawlspace.config.sinks import EMBEDDED
from crawlspace.model import Held, State, UrlState
from tests.histories import neighbour
from tests.histories.changes import Changes
from tests.histories.configuration import ELSEWHERE, Configuration
from tests.histories.documents import EARLIER_VERSION, Indexed, Past, has_earlier_version
from tests.histories.drawn import Drawn
from tests.histories.driver import SimulatedCrawler
from tests.histories.folded import folded_web
from tests.histories.oracle import FORBIDDEN, WALLED, Oracle
from tests.histories.sites import is_walled, walled_web
from tests.histories.web import Web, fails, host_of

NO_DOCUMENT = (State.REDIRECTED, State.GONE, State.EXCLUDED)
_ERRORS_OF_HOSTS = 500


@dataclass(slots=True)
class HistoryReport:
    """Figures and differences of a history."""

    seed: int
    steps: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    crawls: int = 0
    kills: int = 0
    checks: int = 0
    fetches: int = 0
    met: Counter[str] = field(default_factory=Counter)
    """Number of settled states by rare conditions that held in them."""

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *(f"{number:4} {step}" for number, step in enumerate(self.steps, 1)), *self.differences]
        return "\n".join(lines)


@dataclass(slots=True)
class Trouble:
    """Recent faults of the web or the clock, which may still have effects."""

    unsettled: bool = False
    """A site or a page has failed since the last settled state."""
    clock_off: int = 0
    """After the clock was set back: rounds until everything is due after its usual time again."""


class Collection:
    """State of a collection between the steps."""

    _drawn: Drawn
    _focus: str
    _chance: random.Random
    _web: Web
    _changes: Changes
    _report: HistoryReport
    _configuration: Configuration
    _crawler: SimulatedCrawler
    _other: Collection | None

    def _begin(self) -> None:
        """Forget the past."""
        self._lost: dict[str, Indexed] = {}
        """Own documents, as they were, that the other collection has pushed last and deleted. They come back after its next start."""
        self._not_rebuilt: set[str] = set()
        """What a lost index did not get back from the archive, which lacks it, and not by a fetch, since the rules hold it."""
        self._not_compared: set[str] = set()
        """URLs whose documents were only in the index, or only known, after a backup was restored, and are so still."""
        self._lost_with_index: dict[str, Indexed] = {}
        """Documents as they were in an index that was lost, of which a backup was restored."""
        self._has_had: set[str] = set()
        """URLs that were ever a document of this collection."""
        self._answers_for: set[str] = set()
        """URLs of its own documents in the index, and of those left there for another collection."""
        self._look()
        self._trouble: Trouble = Trouble() if self._other is None else self._other._trouble
        self._regrouping = False
        """The settings that decide which pages are equal have changed since the last settled state."""
        self._asked_to_wait = False
        """A site has sent Retry-After in the last crawl, of up to an hour."""
        self._has_waited = self._set_back = False
        """A site has sent Retry-After at any time, and the clock was set back since the last crawl: so it may be that time again."""
        self._elsewhere: dict[str, Indexed | None] = {}
        self._returned: set[str] = set()
        """URLs that may have come back into the crawl space since the last settled state."""
        self._kept: set[str] = set()
        """URLs of which a person has discarded a held deletion."""
        self._discarded: dict[str, int | None] = {}
        """The same of what was left in the index for another crawler: when it had been fetched by then. It stays until its next answer."""
        self._index_before: dict[str, Indexed] | None = {}
        """Documents in the index after the last crawl, if that finished; else None."""

    def note_set_back(self) -> None:
        """Note that the clock was set back: URLs may wait for longer."""
        self._set_back = True

    def note_loosened(self) -> None:
        """Note that a check admits more: URLs outside the crawl space may come back."""
        self._returned = {url for url, state in self._known.items() if state.state is State.EXCLUDED or state.held is not None}

    def _command(self, name: str = "", *, crawled: bool = False, most: int = 4) -> str:
        """Approve or discard held deletions, of all or of some URLs, as a person does."""
        name = name or self._chance.choice(("approve", "approve", "discard", "clear-errors", "recrawl", "forget", "forget"))
        if crawled:
            self._look()
        here = [url for url in sorted(self._known) if url not in self._elsewhere]
        chosen = self._chance.sample(here, min(len(here), self._chance.randint(1, most)))
        self._index_before = None  # orders may wait now
        if name == "approve":
            held = {url for url, state in self._known.items() if state.held is not None}
            self._elsewhere.update(dict.fromkeys(held & self._elsewhere.keys()))
        elif name == "discard":
            self._kept |= {url for url, state in self._known.items() if state.held is not None}
            self._discarded.update({url: state.fetched_at for url, state in self._known.items() if _is_left(state)})
        indexed = {url for url in self._elsewhere if url in self._known and self._known[url].indexed}
        step = self._crawler.command(name, chosen, crawled=crawled)
        self._look()
        # an equal page may stand for it from now on, before the next start gives both up to another crawler
        self._elsewhere.update({url: None for url in indexed if url in self._known and not self._known[url].indexed})
        if name in ("approve", "discard") and not crawled:
            undecided = [url for url, state in self._known.items() if _is_undecided(state)]
            self._report.differences += [f"HELD    {url}: after all was decided, {row_of(self._known[url])}" for url in undecided]
        self._note_unknown()
        return step

    def _configure(self, new: Configuration) -> None:
        before, self._configuration = self._configuration, new
        self._note_elsewhere()
        content = [(one.checksum_title, one.cut_off, one.near) for one in (before, new)]
        self._regrouping = self._regrouping or content[0] != content[1]
        if self._configuration.refresh_max < before.refresh_max or self._configuration.followed != before.followed:
            self._trouble.clock_off = max(
                1, self._trouble.clock_off
            )  # what was due later is due after the new interval, or at the first new time of a schedule, from the next start on
        changed = [
            f"{name} = {_shown(getattr(self._configuration, name))}"
            for name in Configuration.__slots__
            if getattr(before, name) != getattr(self._configuration, name)
        ]
        self._say(f"settings: {'; '.join(changed) or 'as before'}")

    def _oracle(self) -> Oracle:
        """Return the oracle for the present web and configuration."""
        return Oracle(self._seen_web(), self._configuration)

    def _seen_web(self) -> Web:
        """Return the web as the crawler sees it at present."""
        return walled_web(folded_web(self._web, self._configuration), self._configuration)

    def _look(self) -> None:
        """Read the states from the store."""
        with self._crawler.store() as store:
            self._known = {state.url: state for state in store.urls()}
            self._counts = replace(store.counts(), outbox=store.backlog(EMBEDDED), parked=len(store.parked(EMBEDDED)))
            self._held = sum(store.held_numbers().values())
        if self._other is not None:
            left = self._crawler.left_to_others(self._known.values())
            self._answers_for = left | {url for url, state in self._known.items() if state.indexed}
            self._has_had |= self._answers_for

    def _past(self, states: Mapping[str, UrlState]) -> Past:
        kept = [
            self._crawler.kept(state, self._configuration)
            for state in states.values()
            if state.held is not None and state.checksum is not None and state.url not in self._not_rebuilt
        ]
        kept += [
            replace(self._crawler.kept(state, self._configuration), reason=EARLIER_VERSION)
            for state in states.values()
            if state.held is None and has_earlier_version(state)
        ]
        dead = {site.host for site in self._web.sites.values() if site.is_dead}
        walled = {site.host for site in self._web.sites.values() if is_walled(site, self._configuration)} - dead
        forbidden = {page.url for page in self._web.pages.values() if page.is_forbidden and self._web.site_of(page.url).login}
        there = {one.url for one in kept}
        kept += [
            replace(self._crawler.kept(state, self._configuration), reason=FORBIDDEN)
            for url, state in states.items()
            if state.checksum is not None and url in forbidden and url not in there
        ]
        for why, hosts in (("dead", dead), (WALLED, walled)):
            there = {one.url for one in kept}
            kept += [
                replace(self._crawler.kept(state, self._configuration), reason=why)
                for url, state in states.items()
                if state.checksum is not None and url not in there and host_of(url) in hosts
            ]
        left = {url for url, state in states.items() if _is_left(state) or (host_of(url) in dead and _is_awaited(state))}
        # what was left to another crawler, and came back as a page that is not shown, is not decided again either
        left |= {url for url in forbidden if url in states and states[url].checksum is None and not states[url].indexed}
        left |= self._not_rebuilt
        left |= {url for url in self._returned if _has_failed(states.get(url))}
        left |= {url for url in self._discarded if host_of(url) in dead and self._is_as_discarded(states.get(url))}
        if walled:  # one that came back to such a site and fails: that is temporary, or its deletion is held
            still_there = self._crawler.left_to_others(states.values())
            left |= {url for url in still_there if host_of(url) in walled and states[url].state is State.FAILED}
        tomorrow = {url for url, state in states.items() if self._crawler.is_due_tomorrow(state)}
        inherited = [self._crawler.inherited_from(url) for url in sorted(forbidden & states.keys())]
        if self._other is None:
            return Past(kept, self._elsewhere, left, returned=self._returned, due_tomorrow=tomorrow, forbidden=inherited)
        changed = self._other._has_had  # by the other collection, whose document it was after this one's, or deleted by it
        elsewhere = {url: None if url in changed else was for url, was in self._elsewhere.items()}
        of_other = {url for url, owner in self._crawler.owners().items() if owner != self._crawler.name} | self._lost.keys()
        theirs = {url: self._other._known[url] for url in of_other if url in self._other._known}
        held_by_other = {url for url, state in theirs.items() if state.held is not None or has_earlier_version(state)}
        return Past(kept, elsewhere, left, of_other, self._returned, held_by_other, tomorrow, inherited)

    def _is_as_discarded(self, state: UrlState | None) -> bool:
        return state is not None and state.checksum is None and state.fetched_at == self._discarded[state.url]

    def _note_elsewhere(self) -> None:
        """Remember what is indexed of addresses that another crawler is to take over from now on."""
        oracle = self._oracle()
        index = self._index_before
        known = {*(index or {}), *self._known}
        there = {url for url in {*known, *self._elsewhere} if self._is_of_web(url) and ELSEWHERE in oracle.verdicts(url)}
        for url in [url for url in self._elsewhere if url not in there]:
            del self._elsewhere[url]
        for url in sorted(there):
            if oracle.verdicts(url) != {ELSEWHERE}:  # what is too deep as well may be deleted
                self._elsewhere[url] = None
            elif url in self._elsewhere:
                continue
            elif index is None:
                self._elsewhere[url] = None
            elif url in index:
                self._elsewhere[url] = index[url]

    def _note_unknown(self) -> None:
        """A command may have had another of equal pages pushed, before the next start gives it up to another crawler."""
        oracle = self._oracle()
        for url in self._known:
            if url not in self._elsewhere and self._is_of_web(url) and ELSEWHERE in oracle.verdicts(url):
                self._elsewhere[url] = None

    def _is_of_web(self, url: str) -> bool:
        return any(url.startswith(site.home) for site in self._web.sites.values())

    def _shared(self) -> tuple[dict[str, Indexed], set[str]]:
        """Return all documents in the index, and those that this collection pushed last; nothing if no other collection shares it."""
        if self._other is None:
            return {}, set()
        owned = {url for url, owner in self._crawler.owners().items() if owner == self._crawler.name}
        return self._crawler.index(), owned

    def _index(self) -> dict[str, Indexed]:
        """Return the documents in the index for which this collection is responsible."""
        index = self._crawler.index()
        if self._other is None:
            return index
        own = {url for url, state in self._known.items() if state.indexed}
        self._lost = {url: has for url, has in self._lost.items() if url in own and url not in index}
        owners, others = self._crawler.owners(), self._other._answers_for
        mine = {
            url: has
            for url, has in index.items()
            if url in self._answers_for or (url not in others and owners[url] == self._crawler.name)
        }
        return {**self._lost, **mine}

    def _note_lost(self, before: Mapping[str, Indexed], *, owned: set[str]) -> None:
        """Note which documents the other collection has deleted because it pushed them last, before this crawl or in it."""
        gone = neighbour.lost_to(before=before, after=self._crawler.index(), owned=owned)
        self._lost.update({url: before[url] for url in gone if url in self._known and self._known[url].indexed})
        if self._index_before is not None:  # what the other one has deleted is no deletion of this one's next crawl
            kept = {url: has for url, has in self._index_before.items() if url not in gone or url in self._lost}
            self._index_before = kept

    def _lost_for_ever(self) -> Iterator[str]:
        """Yield documents that the other collection has deleted and that are still missing in a settled state.

        Such a document is fetched to be sent again, which needs a page that is shown.
        """
        dead = {site.host for site in self._web.sites.values() if site.is_dead}
        for url in sorted(self._lost):
            if self._known[url].held is None and host_of(url) not in dead and not self._is_forbidden(url):
                yield f"MISSING {url}: deleted by the other collection, and not sent again ({row_of(self._known[url])})"

    def _is_forbidden(self, url: str) -> bool:
        """Return whether a page leads to the log-in though somebody is logged in: its document stays as it is, and cannot be fetched."""
        page = self._web.page(url)
        return page is not None and page.is_forbidden and self._web.site_of(url).login is not None

    def _shows(self) -> tuple[object, ...]:
        """Return states and index, without times."""
        return {url: row_of(state) for url, state in self._known.items()}, self._crawler.index()

    def _is_calm(self) -> bool:
        """Return whether nothing waits to be confirmed by another answer, of a page or of its site."""
        fine = not any(map(fails, self._web.pages.values())) and not any(site.outage for site in self._web.sites.values())
        return fine and not any(
            state.held is Held.HOST or state.state is State.FAILED or state.retries or state.errors
            for state in self._known.values()
        )

    def _say(self, step: str) -> None:
        self._report.steps.append(step)


def _is_awaited(state: UrlState | None) -> bool:
    """Return whether a URL that another crawler had is in the space again, without an answer of its own yet."""
    return state is not None and (state.state in (State.PENDING, State.FAILED) or 500 <= (state.status or 0) < 700)


def _is_undecided(state: UrlState) -> bool:
    """Whether a document still waits for a decision: one that is in the index, or whose page is known to be no document any more."""
    if state.held is None:
        return False
    apart = state.held is Held.RULES or (state.held is Held.MANY and state.state in NO_DOCUMENT)
    return state.indexed or (apart and (state.checksum is not None or _is_left(state)))


def _is_left(state: UrlState | None) -> bool:
    """Return whether the deletion of a document that was left in the index for another crawler is held."""
    return state is not None and state.checksum is None and state.held in (Held.RULES, Held.MANY)


def _has_failed(state: UrlState | None) -> bool:
    """What came back has failed in a way that may be its host's: what the index had of it, held or left there, stays until a later fetch."""
    if state is None or state.state is State.FAILED:
        return state is not None
    return state.checksum is None and state.state is State.GONE and (state.status or 0) >= _ERRORS_OF_HOSTS


def row_of(state: UrlState | None) -> str:
    if state is None:
        return "forgotten"
    held = f", held {state.held.label}" if state.held is not None else ""
    pending = ", pending" if state.state is State.PENDING else ""
    return f"{state.state.label} {state.status}{held}{pending}, indexed {state.indexed}, checksum {state.checksum is not None}"


def _shown(value: object) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)
