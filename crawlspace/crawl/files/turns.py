"""The end of a turn of a site: with the outcome of a request; where a file came that has yet to be read, before.

So other pages of the site are fetched while a file waits. When too many files wait, no more are fetched, but pages are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from http import HTTPStatus

from crawlspace.clock import Clock
from crawlspace.content.documents.kinds import FILE_EXTENSIONS, FILE_TYPES
from crawlspace.crawl.document_hash import type_mark, type_mark_of
from crawlspace.crawl.files.waiting import WaitingFiles
from crawlspace.crawl.site_delays import SiteDelays
from crawlspace.crawl.site_failures import SiteFailures
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import Outcome, UrlState
from crawlspace.rules.limits import extension
from crawlspace.state.recrawl import RecrawlPolicy, site_wait

MOST_SET_ASIDE = 1_000
"""URLs of files that are leased and not fetched. Beyond that, a site whose next URL is a file waits."""
PAUSE_S = 1.0


class SiteTurns:
    """Ends the turns of sites. Keeps which files of this run wait to be read, and which are not fetched because too many wait."""

    def __init__(
        self,
        frontier: Frontier,
        site_delays: SiteDelays,
        site_failures: SiteFailures,
        *,
        leased: MutableMapping[int, UrlState],
        policy: Callable[[], RecrawlPolicy],
        clock: Clock,
        converted_types: Iterable[str] = (),
    ) -> None:
        """`leased`: the URLs in flight, by id. `converted_types`: types of files besides those with a reader of ours."""
        self._frontier, self._site_delays, self._site_failures = frontier, site_delays, site_failures
        self._leased, self._policy = leased, policy
        self._marks = frozenset(map(type_mark, (*FILE_TYPES, *converted_types)))
        self._waiting = WaitingFiles(clock)
        self._coming: set[int] = set()
        """URLs of files that are being fetched."""
        self._aside: deque[UrlState] = deque()
        self._returned: set[int] = set()
        """URLs that were set aside, and that the frontier has not chosen again yet."""

    @property
    def are_left(self) -> bool:
        """Whether there are files to be fetched, beside what the frontier has."""
        return bool(self._aside)

    def leased_again(self, state: UrlState) -> bool:
        """Take a URL as it was leased once more, if it is in flight; return whether it is."""
        if state.id not in self._leased:
            return False
        self._leased[state.id] = state
        return True

    def file_arrived(self, answer: Outcome, *, size: int) -> None:
        """A file has come and waits: the turn of its site ends, and its lease goes on. `answer` is a document without its contents."""
        state = self._leased.get(answer.id)
        if state is not None and answer.id not in self._waiting:
            self._coming.discard(state.id)
            self._waiting.add(state.id, size=size)
            self._end(state, answer)

    def ended(self, state: UrlState, outcome: Outcome) -> None:
        """A fetch has its outcome: end the turn of its site, unless that of a file has ended before."""
        self._coming.discard(state.id)
        if not self._waiting.remove(state.id):
            self._end(state, outcome)

    def sets_aside(self, state: UrlState) -> bool:
        """Keep a URL just returned by the frontier for later, if it is that of a file and too many wait. Return whether."""
        if not self._is_file(state):
            return False
        self._returned.discard(state.id)
        if self._room() > 0:
            self._coming.add(state.id)
            return False
        if len(self._aside) < MOST_SET_ASIDE:
            self._frontier.skip(state)
            self._aside.append(state)
        else:
            self._frontier.put_back(state, wait_s=PAUSE_S)
        return True

    def let_in(self) -> None:
        """Give the frontier back what was set aside, as far as there is room."""
        if not self._aside:
            return
        for _ in range(self._room() - len(self._returned)):
            if self._aside:
                state = self._aside.popleft()
                self._returned.add(state.id)
                self._frontier.return_later(state)

    def _room(self) -> int:
        self._coming.intersection_update(self._leased.keys())  # others were not sent, or did not get through the checks
        return self._waiting.room - len(self._coming)

    def _end(self, state: UrlState, outcome: Outcome) -> None:
        if self._site_delays.answered(state.site, outcome):
            self._frontier.repace(state.site)
        self._site_failures.fetched(state, outcome)
        if outcome.retry_after_s is not None or outcome.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._frontier.wait_site(state.site, site_wait(state.retries, outcome.retry_after_s, policy=self._policy()))

    def _is_file(self, state: UrlState) -> bool:
        """Whether a URL is that of a file: by its type at the last fetch, else by its extension."""
        mark = type_mark_of(state.fields_mark)
        return mark in self._marks if mark else extension(state.url.partition("?")[0]) in FILE_EXTENSIONS
