"""Which pages are due at once after a change that loosens a check, because they may lead to URLs that it refused before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from crawlspace.crawl.rule_changes.generation import begin_generation
from crawlspace.decision import Reason
from crawlspace.model import State, Status
from crawlspace.rules.loosened import loosened
from crawlspace.state.refused_links import has_any, letters_of
from crawlspace.state.views import KnownUrl

CHECKS = "checks"
"""Meta: the description of the checks last applied to the store, see `rules.loosened`."""
SPIDER = "spider_hash"
"""Meta: the hash of the code of the spider at the last start."""
_STATUSES = {Reason.MIME_TYPE: Status.WRONG_TYPE, Reason.ROBOTS: Status.ROBOTS_FORBIDDEN, Reason.NOINDEX: Status.NOINDEX}
"""The status of a URL that was refused for itself."""


class NotedChecks(Protocol):
    def get_meta(self, name: str) -> str | None: ...


class AppliedChecks(NotedChecks, Protocol):
    def set_meta(self, name: str, value: str) -> None: ...


class LoosenedChecks:
    """The checks that admit more than before. False where there are none, and the spider is the same."""

    def __init__(
        self, reasons: frozenset[Reason] = frozenset(), starts: frozenset[str] = frozenset(), *, is_other_spider: bool = False
    ) -> None:
        self._has_changed = bool(reasons) or is_other_spider
        self._letters = letters_of(reasons)
        self._statuses = frozenset(int(status) for reason, status in _STATUSES.items() if reason in reasons)
        self._starts = starts

    def __bool__(self) -> bool:
        return self._has_changed

    def concern(self, known: KnownUrl) -> bool:
        """Return whether a known URL is to be fetched at once: one of which a link was refused by such a check, one that was refused
        by it after it was fetched, and each start URL."""
        if not self._has_changed or known.state == State.PENDING:
            return False
        return has_any(known.refused, self._letters) or known.status in self._statuses or known.url in self._starts


NONE_LOOSENED = LoosenedChecks()


@dataclass(frozen=True, slots=True)
class Rediscovery:
    """The present checks, to be compared with those of the last start."""

    checks: str
    """The description of the checks, see `rules.loosened`."""
    starts: frozenset[str] = frozenset()
    """The start URLs in normal form."""
    is_wanted: bool = True
    """CRAWLSPACE_REDISCOVER."""
    spider: str = ""
    """The hash of the spider's code; empty where it is not known."""

    def loosened(self, store: NotedChecks) -> LoosenedChecks:
        """Return the checks that admit more than at the last start; none where there was no start."""
        before = store.get_meta(CHECKS)
        if not self.is_wanted or before is None:
            return NONE_LOOSENED
        return LoosenedChecks(loosened(before, self.checks), self.starts, is_other_spider=self.is_other_spider(store))

    def is_other_spider(self, store: NotedChecks) -> bool:
        """Return whether the code of the spider has changed since the last start."""
        return bool(self.spider) and store.get_meta(SPIDER) not in (None, self.spider)

    def applied(self, store: AppliedChecks) -> None:
        """Store the description of the present checks; with another spider, each page needs one unconditional GET."""
        if self.is_other_spider(store):
            begin_generation(store)
        if self.spider and store.get_meta(SPIDER) != self.spider:
            store.set_meta(SPIDER, self.spider)
        if store.get_meta(CHECKS) != self.checks:
            store.set_meta(CHECKS, self.checks)
