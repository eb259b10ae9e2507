"""Files in a crawl: how they wait to be parsed, and the outcome of one without readable text.

The slot of a site ends with the outcome of its request, or as soon as a file has arrived that must be parsed: so other pages of the site
are fetched while the file waits. When too many files wait, no more are fetched, but pages are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus

from crawlspace.clock import Clock
from crawlspace.content.documents.kinds import FILE_EXTENSIONS, FILE_TYPES
from crawlspace.content.fingerprint import has_text
from crawlspace.crawl.conditional import type_mark, type_mark_of
from crawlspace.crawl.sites import SiteDelays, SiteFailures
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.limits import extension
from crawlspace.state.recrawl import RecrawlPolicy, site_wait
from crawlspace.status import Status

MOST_DEFERRED = 1_000
"""Maximal URLs of files that are leased and deferred. Beyond that, a site whose next URL is a file waits."""
PAUSE_S = 1.0
"""Wait of such a site."""
MOST_WAITING = 64
"""Maximal files waiting to be parsed, however fast that is."""
MOST_BYTES = 256 * 1024 * 1024
"""Their maximal total size."""
MAX_WAIT_S = 5.0
"""Longest intended wait of a file."""
FIRST_GUESS_S = 0.3
"""Assumed time to parse a file, until it is measured."""
_SMOOTHING = 8


class FileSlots:
    """Ends the slots of sites; keeps the files of this run that wait to be parsed, and the URLs deferred because too many wait."""

    def __init__(
        self,
        frontier: Frontier,
        site_delays: SiteDelays,
        site_failures: SiteFailures,
        *,
        leased: Mapping[int, UrlState],
        policy: Callable[[], RecrawlPolicy],
        clock: Clock,
        converted_types: Iterable[str] = (),
    ) -> None:
        """`leased`: the URLs in flight, by id. `converted_types`: types of files that converters handle."""
        self._frontier, self._site_delays, self._site_failures = frontier, site_delays, site_failures
        self._leased, self._policy = leased, policy
        self._marks = frozenset(map(type_mark, (*FILE_TYPES, *converted_types)))
        self._waiting = WaitingFiles(clock)
        self._coming: set[int] = set()
        """URLs of files that are being fetched."""
        self._deferred: deque[UrlState] = deque()
        self._returned: set[int] = set()
        """Deferred URLs returned to the frontier and not chosen again yet."""

    @property
    def has_deferred(self) -> bool:
        """Whether there are deferred files to be fetched."""
        return bool(self._deferred)

    def file_arrived(self, answer: Outcome, *, size: int) -> None:
        """End the slot of a site whose file has arrived and waits; its lease continues. `answer` is the outcome without its text."""
        state = self._leased.get(answer.id)
        if state is not None and answer.id not in self._waiting:
            self._coming.discard(state.id)
            self._waiting.add(state.id, size=size)
            self._end(state, answer)

    def ended(self, state: UrlState, outcome: Outcome) -> None:
        """End the slot of a site after an outcome, unless a file has ended it already."""
        self._coming.discard(state.id)
        if not self._waiting.remove(state.id):
            self._end(state, outcome)

    def defers(self, state: UrlState) -> bool:
        """Defer a URL just returned by the frontier if it is a file and too many wait; return whether it was deferred."""
        if not self._is_file(state):
            return False
        self._returned.discard(state.id)
        if self._room() > 0:
            self._coming.add(state.id)
            return False
        if len(self._deferred) < MOST_DEFERRED:
            self._frontier.skip(state)
            self._deferred.append(state)
        else:
            self._frontier.put_back(state, wait_s=PAUSE_S)
        return True

    def admit_deferred(self) -> None:
        """Return deferred URLs to the frontier, as far as there is room."""
        if not self._deferred:
            return
        for _ in range(self._room() - len(self._returned)):
            if self._deferred:
                state = self._deferred.popleft()
                self._returned.add(state.id)
                self._frontier.return_later(state)

    def _room(self) -> int:
        self._coming.intersection_update(self._leased.keys())  # others were not sent, or refused
        return self._waiting.room - len(self._coming)

    def _end(self, state: UrlState, outcome: Outcome) -> None:
        if self._site_delays.answered(state.site, outcome):
            self._frontier.repace(state.site)
        self._site_failures.fetched(state, outcome)
        if outcome.retry_after_s is not None or outcome.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._frontier.wait_site(state.site, site_wait(state.retries, outcome.retry_after_s, policy=self._policy()))

    def _is_file(self, state: UrlState) -> bool:
        """Return whether a URL is a file: by its type at the last fetch, else by its extension."""
        mark = type_mark_of(state.fields_mark)
        return mark in self._marks if mark else extension(state.url.partition("?")[0]) in FILE_EXTENSIONS


class WaitingFiles:
    """The waiting files, by the id of their URL, and how fast they are parsed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._a_file_s = FIRST_GUESS_S
        """Seconds from the end of one file to that of the next: a moving average."""
        self._since = 0.0
        """Time when the last one ended, or the first waiting one arrived."""

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, id: int) -> bool:
        return id in self._sizes

    @property
    def room(self) -> int:
        """The number of files that may be added."""
        if self._bytes >= MOST_BYTES:
            return 0
        most = max(1, min(MOST_WAITING, int(MAX_WAIT_S / self._a_file_s)))
        return max(0, most - len(self._sizes))

    def add(self, id: int, *, size: int) -> None:
        """Add a file that has arrived."""
        if not self._sizes:
            self._since = self._clock.monotonic()
        self._sizes[id] = size
        self._bytes += size

    def remove(self, id: int) -> bool:
        """Remove a file that was read; return whether it was waiting."""
        size = self._sizes.pop(id, None)
        if size is None:
            return False
        now = self._clock.monotonic()
        self._a_file_s += (now - self._since - self._a_file_s) / _SMOOTHING
        self._a_file_s = max(self._a_file_s, MAX_WAIT_S / MOST_WAITING)
        self._since = now
        self._bytes -= size
        return True


def unreadable(state: UrlState, outcome: Outcome, *, why: str, policy: RecrawlPolicy) -> Outcome:
    """Return the outcome of a file without readable text: a document without text.

    Where a version with text is indexed, it is a temporary error, and that version stays. The file exists, so the last allowed error does not
    delete the document, but replaces it by one without text.
    """
    most = policy.most_errors(Status.UNREADABLE_FILE)
    is_passing = most is None or state.errors + 1 < most
    if is_passing and state.checksum is not None and has_text(state.checksum):
        return Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNREADABLE_FILE, detail=why)
    outcome.status, outcome.detail = Status.UNREADABLE_FILE, why
    return outcome
