"""Pages that may link to URLs refused before a check was loosened: they are due at once, or judged from the archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec

from crawlspace.crawl.conditional import begin_generation
from crawlspace.decision import Reason
from crawlspace.model import State
from crawlspace.rules.loosened import loosened
from crawlspace.state.metadata import damaged
from crawlspace.state.refused_links import has_any, letters_of
from crawlspace.state.store import MetaStore
from crawlspace.state.views import KnownUrl
from crawlspace.status import Status

CHECKS = "checks"
"""Meta: the description of the checks last applied to the store, see `rules.loosened`."""
SPIDER = "spider_hash"
"""Meta: the hash of the code of the spider at the last start."""
JUDGING = "judging"
"""Meta: the pages whose links must be judged from the archive, see `Judging`; empty without any."""
_STATUSES = {Reason.MIME_TYPE: Status.WRONG_TYPE, Reason.ROBOTS: Status.ROBOTS_FORBIDDEN, Reason.NOINDEX: Status.NOINDEX}
"""The status of a URL that was refused for itself."""


class SpiderCode(NamedTuple):
    """Properties of a spider's code."""

    hash: str = ""
    """Empty where it is not known."""
    follows_links: bool = False
    """Whether the URLs of a page are its links only: the spider has no `parse()`."""


UNKNOWN_SPIDER = SpiderCode()


class Judging(msgspec.Struct, frozen=True):
    """Pages whose links must be judged from the archive: those with links refused by one of these checks."""

    letters: str
    """The letters of the checks, see `refused_links.py`."""
    since: int
    """Time of the change of checks, in seconds since 1970."""
    after: int = 0
    """The pages up to this id are judged."""

    def concerns(self, known: KnownUrl) -> bool:
        return _has_stored_links(known, frozenset(self.letters))

    def with_others(self, letters: frozenset[str]) -> Self:
        """Return the same with further checks: all pages are judged again."""
        return msgspec.structs.replace(self, letters="".join(sorted(letters.union(self.letters))), after=0)


class LoosenedChecks:
    """The checks that admit more than before. False without any, if the spider is the same."""

    def __init__(
        self,
        reasons: frozenset[Reason] = frozenset(),
        starts: frozenset[str] = frozenset(),
        *,
        is_other_spider: bool = False,
        from_archive: bool = False,
    ) -> None:
        """`from_archive`: links of archived pages can be judged without fetching."""
        self._has_changed = bool(reasons) or is_other_spider
        self.letters = letters_of(reasons)
        self._from_archive = from_archive
        self._statuses = frozenset(int(status) for reason, status in _STATUSES.items() if reason in reasons)
        self._starts = starts

    def __bool__(self) -> bool:
        return self._has_changed

    def concern(self, known: KnownUrl) -> bool:
        """Return whether a known URL must be fetched at once: one with a link refused by such a check, one refused by it after its fetch,
        and each start URL."""
        if not self._has_changed or known.state == State.PENDING:
            return False
        return has_any(known.refused, self.letters) or self._is_refused(known)

    def is_judged(self, known: KnownUrl) -> bool:
        """Return whether the links of such a URL are judged from the archive instead."""
        return self._from_archive and _has_stored_links(known, self.letters) and not self._is_refused(known)

    def _is_refused(self, known: KnownUrl) -> bool:
        return known.status in self._statuses or known.url in self._starts


NONE_LOOSENED = LoosenedChecks()


def _has_stored_links(known: KnownUrl, letters: frozenset[str]) -> bool:
    """Return whether a page is archived and a check with one of these letters refused links of it."""
    return known.state == State.DONE and known.archived is not None and has_any(known.refused, letters)


def judging(store: MetaStore) -> Judging | None:
    """Return the pages to be judged from the archive; None without any. Raises StoreDamaged."""
    value = store.get_meta(JUDGING)
    if not value:
        return None
    try:
        return msgspec.json.decode(value, type=Judging)
    except msgspec.MsgspecError as error:
        raise damaged(JUDGING, value) from error


def note_judging(store: MetaStore, wanted: Judging) -> None:
    store.set_meta(JUDGING, msgspec.json.encode(wanted).decode())


def begin_judging(store: MetaStore, looser: LoosenedChecks, *, now: int) -> None:
    """Note that the crawl must judge links of archived pages, including those left by an earlier start."""
    note_judging(store, (judging(store) or Judging("", now)).with_others(looser.letters))


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
    from_archive: bool = False
    """Links of archived pages can be judged without fetching."""

    def loosened(self, store: MetaStore) -> LoosenedChecks:
        """Return the checks that admit more than at the last start; none without one."""
        before = store.get_meta(CHECKS)
        if not self.is_wanted or before is None:
            return NONE_LOOSENED
        reasons, is_other_spider = loosened(before, self.checks), self.is_other_spider(store)
        return LoosenedChecks(reasons, self.starts, is_other_spider=is_other_spider, from_archive=self.from_archive)

    def is_other_spider(self, store: MetaStore) -> bool:
        """Return whether the code of the spider has changed since the last start."""
        return bool(self.spider) and store.get_meta(SPIDER) not in (None, self.spider)

    def applied(self, store: MetaStore) -> None:
        """Store the description of the present checks; with another spider, each page needs one unconditional GET."""
        if self.is_other_spider(store):
            begin_generation(store)
        if self.spider and store.get_meta(SPIDER) != self.spider:
            store.set_meta(SPIDER, self.spider)
        if store.get_meta(CHECKS) != self.checks:
            store.set_meta(CHECKS, self.checks)
