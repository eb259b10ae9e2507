"""Changes of stored URLs by command: held deletions, due times, forgetting URLs. A crawl may run at the same time.

Ids are collected first and then changed a thousand at a time, so that a crawl never waits for long; it notices the changes by the
store's version. A URL that is being fetched is not changed, because its outcome decides, unless it is to be forgotten.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Protocol

from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.crawl.admission import Admission
from crawlspace.crawl.depths.settlement import last_run
from crawlspace.crawl.rule_changes.reconcile import RULES_HASH
from crawlspace.crawl.run import describe_refusal
from crawlspace.decision import Reason
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.model import Candidate, Held, Requester, Source, State, UrlState
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.duplicates import host_of
from crawlspace.state.lifecycle import approved, discarded, pending_again
from crawlspace.state.store import Store, UrlStore
from crawlspace.state.views import KnownUrl
from crawlspace.status import OUT_OF_SPACE
from crawlspace.text import counted, printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

_BATCH = 1_000
_PAGE = 5_000
_ERRORS = (State.GONE, State.FAILED)


class NotChanged(StrEnum):
    """Why a URL was not changed; the value is a message for several of them."""

    FETCHED_NOW = "are being fetched at this moment, and their outcome decides; run it again afterwards"
    OUTSIDE = "are outside the crawl space, and are not changed"
    PENDING = "wait to be fetched for the first time, in source user, and are due already"

    def of(self, number: int) -> str:
        """Return the message for a number of URLs."""
        return f"{number:,} {self.value}" if number != 1 else f"1 URL {_OF_ONE[self]}"


_OF_ONE = {
    NotChanged.FETCHED_NOW: "is being fetched at this moment, and its outcome decides; run it again afterwards",
    NotChanged.OUTSIDE: "is outside the crawl space, and is not changed",
    NotChanged.PENDING: "waits to be fetched for the first time, in source user, and is due already",
}


@dataclass(slots=True)
class ChangeCounts:
    """The result of a change, as numbers of URLs."""

    changed: int = 0
    renewed: int = 0
    """Those among them that are pending again, as if newly discovered."""
    left: Counter[NotChanged] = field(default_factory=Counter)

    def count(self, outcome: Change | NotChanged | None) -> None:
        """Count the outcome for one URL."""
        if isinstance(outcome, NotChanged):
            self.left[outcome] += 1
        elif outcome is not None:
            self.changed += 1
            self.renewed += outcome.state.state is State.PENDING and not outcome.forget

    def add(self, other: ChangeCounts) -> None:
        """Add the counts of another change."""
        self.changed += other.changed
        self.renewed += other.renewed
        self.left += other.left

    def of_the_rest(self) -> Iterator[str]:
        """Yield messages about the URLs that were not changed."""
        yield from (why.of(count) for why, count in self.left.items())


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of known URLs by all given criteria. `prefix` is in normal form, `host` may have a port."""

    prefix: str | None = None
    host: str | None = None
    statuses: range | None = None
    errors: bool = False
    """Only URLs whose last fetch ended in an error."""

    def fits(self, known: KnownUrl) -> bool:
        return (
            (self.prefix is None or known.url.startswith(self.prefix))
            and self.host in (None, known.site, known.site.rpartition(":")[0])
            and (self.statuses is None or (known.status is not None and known.status in self.statuses))
            and (not self.errors or known.state in _ERRORS)
        )


class Display(Protocol):
    """Shows the progress of a change."""

    def __call__(self, doing: str) -> None: ...
    def close(self) -> None: ...


class NoDisplay:
    """Shows nothing."""

    def __call__(self, doing: str) -> None: ...
    def close(self) -> None: ...


NO_DISPLAY = NoDisplay()


class UrlChanges:
    """Changes URLs of one collection. `crawled`: a crawl is running; `progress` shows the number of URLs processed."""

    def __init__(self, store: Store, *, clock: Clock, crawled: bool = False, progress: Display = NO_DISPLAY) -> None:
        self._store = store
        self._now = int(clock.now())
        self.crawled = crawled
        self._progress = progress

    def approve(self, reason: Held | None = None, *, host: str | None = None) -> ChangeCounts:
        """Send the held deletions, all or those with one reason or of one host, and those of held duplicates that replace them."""

        def sent(state: UrlState) -> Change | None:
            if not _is_held(state, reason, host):
                return None
            transition = approved(state, now=self._now)
            return Change(transition.state, forget=transition.forget)

        return self._revise_all(lambda: self._held(reason, host), sent)

    def discard(self, reason: Held | None = None, *, host: str | None = None) -> ChangeCounts:
        """Drop the held deletions, all or those with one reason or of one host.

        Those demanded by the rules are held again at the next start, which checks all URLs again, unless the rules are corrected.
        """

        next_run = last_run(self._store) + 1

        def dropped(state: UrlState) -> Change | None:
            if not _is_held(state, reason, host):
                return None
            transition = discarded(state, next_run=next_run)
            return Change(transition.state, keep_in_index=True)  # even if it was left there for another collection

        if any(reason in (None, one) and self._held(one, host) for one in (Held.RULES, Held.FOLDED)):
            self._store.set_meta(RULES_HASH, "")  # first: after a kill the next start also checks all URLs
        return self._revise(self._held(reason, host), dropped)

    def approve_site(self, site: str) -> ChangeCounts:
        """Delete the documents of an unreachable site, and forget their URLs; a link to one discovers it again."""
        return self._revise_all(
            lambda: array(
                "q", (state.id for state in self._store.urls(host=host_of(site)) if state.site == site and state.indexed)
            ),
            lambda state: _forgotten(state) if state.indexed else None,
        )

    def discard_site(self, site: str) -> ChangeCounts:
        """Keep the documents of an unreachable site: its count of runs without an answer begins again."""
        made = ChangeCounts(changed=self._store.documents([site])[site])
        self._store.set_unreachable(site, None)
        return made

    def recrawl(self, ids: Sequence[int]) -> ChangeCounts:
        """Make URLs due now, in source user, with an unconditional GET. URLs outside the crawl space are not changed."""

        def due(state: UrlState) -> Change | NotChanged:
            if is_outside(state):
                return NotChanged.OUTSIDE
            if state.state is State.PENDING:
                return NotChanged.PENDING if state.source is Source.USER else Change(structs.replace(state, source=Source.USER))
            return Change(structs.replace(state, rules=0, next_fetch=self._now, requested_by=Requester.PERSON))

        return self._revise(ids, due)

    def forget(self, ids: Sequence[int]) -> ChangeCounts:
        """Remove URLs from the store, and their documents from the index."""
        return self._revise(ids, _forgotten, even_fetched=True)

    def clear_errors(self) -> ChangeCounts:
        """Reset URLs whose last fetch ended in an error: pending if there is no document, else due now without errors."""

        def cleared(state: UrlState) -> Change | NotChanged | None:
            if state.state not in _ERRORS:
                return None  # another process changed it
            if is_outside(state):
                return NotChanged.OUTSIDE
            if state.checksum is None:
                return Change(pending_again(state))
            return Change(
                structs.replace(
                    state, errors=0, retries=0, held=None, held_mark=0, next_fetch=at_once(self._now, state.fetched_at)
                )
            )

        return self._revise(self.select(Selection(errors=True)), cleared)

    def enter(self, url: Url, admission: Admission) -> str | None:
        """Insert an unknown URL in source user; return why not, if the rules or a limit refuse it."""
        candidate = Candidate(url.text, Source.USER, base_host_as_written=url.host_as_written)
        new, refused = admission.candidates([candidate])
        if refused:
            return describe_refusal(refused[0])
        if not new:
            return f"{printable(url.text)} is refused: {Reason.URLS_PER_HOST.sentence}"
        self._store.discover(new, now=self._now)
        return None

    def select(self, selection: Selection) -> array[int]:
        """Return the ids of the selected URLs, in order of discovery."""
        ids = array("q")
        last = seen = 0
        with closing(self._progress):
            while page := self._store.scan(last, _PAGE):
                ids.extend(known.id for known in page if selection.fits(known))
                last = page[-1].id
                seen += len(page)
                self._progress(f"{counted(seen, 'URL')} so far")
        return ids

    def _held(self, reason: Held | None, host: str | None) -> array[int]:
        return array("q", (state.id for state in self._store.urls(held=True, reason=reason, host=host)))

    def _revise_all(
        self, ids_left: Callable[[], Sequence[int]], change: Callable[[UrlState], Change | NotChanged | None]
    ) -> ChangeCounts:
        """Change URLs until none is left, or none can be changed."""
        made = ChangeCounts()
        while ids := ids_left():
            step = self._revise(ids, change)
            made.changed += step.changed
            made.left = step.left
            if not step.changed:
                break
        return made

    def _revise(
        self, ids: Sequence[int], change: Callable[[UrlState], Change | NotChanged | None], *, even_fetched: bool = False
    ) -> ChangeCounts:
        made = ChangeCounts()
        with closing(self._progress):
            for first in range(0, len(ids), _BATCH):
                outcomes: dict[int, Change | NotChanged | None] = {}
                change_or_none = partial(self._outcome, change, even_fetched, outcomes)
                self._store.revise(ids[first : first + _BATCH], change_or_none, now=self._now)
                for outcome in outcomes.values():
                    made.count(outcome)
                self._progress(f"{counted(min(first + _BATCH, len(ids)), 'URL')} so far")
        return made

    def _outcome(
        self,
        change: Callable[[UrlState], Change | NotChanged | None],
        even_fetched: bool,  # noqa: FBT001 - bound by position
        outcomes: dict[int, Change | NotChanged | None],
        state: UrlState,
    ) -> Change | None:
        """Record the outcome of a URL. A store may call it again for a URL that changed meanwhile; the last outcome counts."""
        is_fetched = self.crawled and state.lease_until is not None and not even_fetched
        outcome = outcomes[state.id] = NotChanged.FETCHED_NOW if is_fetched else change(state)
        return None if isinstance(outcome, NotChanged) else outcome


def _is_held(state: UrlState, reason: Held | None, host: str | None) -> bool:
    return state.held is not None and reason in (None, state.held) and host in (None, host_of(state.site))


def is_outside(state: UrlState) -> bool:
    """Return whether a known URL is outside the crawl space, even if its deletion is held; only a start can readmit it.

    An imported error (`lifecycle.imported_error`) is never due either, and has no status."""
    never_due = state.state is not State.PENDING and state.next_fetch is None and state.status is not None
    return never_due or state.held is Held.RULES or state.status in OUT_OF_SPACE


def read_url(text: str) -> Url:
    """Parse a URL argument, with its route. Raises UsageError."""
    try:
        return parse(text, routes=True)
    except MalformedUrl as error:
        raise UsageError(f"{quoted(text)} is not a valid URL: {error}") from error


def find_url(store: UrlStore, url: Url, folding: UrlFolding | None) -> UrlState | None:
    """Return the state of a URL, which may be known by the URL that the options fold it into; else None."""
    folded = url if folding is None else folding.fold(url)
    if url.fragment and not folded.fragment:  # a route known from when routes were followed is not mistaken for its page
        folded, url = url, folded
    return store.get(folded.text) or (None if folded is url else store.get(url.text))


def read_prefix(text: str) -> str:
    """Return a URL prefix with scheme and host in normal form. Raises UsageError."""
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() not in DEFAULT_PORTS:
        raise UsageError(f"--prefix is {quoted(text)}; write what the URLs begin with, as in http://www.example.com/archive/")
    host, slash, path = rest.partition("/")
    if not slash:
        return f"{scheme}://{host}".lower()
    return read_url(f"{scheme}://{host}/").text + path


class Stopped(CrawlspaceError):
    """Ctrl-C stopped a command before it was done."""

    exit_status = 130


def _forgotten(state: UrlState) -> Change:
    return Change(state, forget=True)
