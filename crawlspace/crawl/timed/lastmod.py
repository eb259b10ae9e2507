"""When sitemaps say that pages were changed, how far that is trusted, and which pages are due or spared because of it.

What a sitemap named when it was read last is kept among the values of the store: the sorted keys of its pages, and a time for each. Where it is
read again, the difference is kept as pages to be checked, before its outcome is recorded; they are checked in steps, and after a kill again.

A page is **due** where its time is new and later than its last fetch, and where the sitemap names it no more. A page that is due by its age
is **spared** the request where a fresh sitemap says that it has not changed since, except for a sample. Whether sitemaps are right is measured
with each page that is fetched: see `Trust`.
"""

from __future__ import annotations

import zlib
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec
from msgspec import Struct, structs

from crawlspace.cache import Recent
from crawlspace.clock import Clock
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.timed.steps import Steps, TimedStep
from crawlspace.model import State, UrlState
from crawlspace.outcome import NamedPages, Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.due_times import Due, is_due_by_age
from crawlspace.state.duplicates import host_of
from crawlspace.state.metadata import damaged
from crawlspace.state.recrawl import RecrawlPolicy, interval_of, next_refresh
from crawlspace.state.store import DepthStore, MetaStore, SiteStore, UrlStore

ALL = "sitemaps"
"""Meta: the URLs of sitemaps that have been read, one a line, the first MOST_LISTED of them."""
OF_HOST = "sitemaps_of:"
"""Meta, with a host: the URLs of sitemaps that name pages of it, one a line."""
READ = "sitemap:"
"""Meta, with the URL of a sitemap: a `Reading`."""
PAGES = "sitemap_pages:"
"""The same: the keys and times of what it names."""
TO_CHECK = "sitemap_check:"
"""The same: the keys of pages that may be due, and of those that it names no more."""
MOST_LISTED = 1_000
SAMPLED = 100
"""One of so many pages that would be spared is fetched nevertheless, so that a sitemap that begins to lie is found out."""
_MOST_ENTRIES = 4_000_000
"""Entries of sitemaps that are held in memory, 12 bytes each. Pages of further sitemaps are fetched as if there were none."""
_MOST_HOSTS = 20_000
_HELD_S = 3_600
"""Time after which they are read from the store again, as other workers may have read the sitemaps."""
_SAVE_EVERY_S = 60
_AT_ONCE = 500
_TOLERATED_S = 86_400
"""A time may be so far in the future: the rest of the day, in any time zone."""
_DAY_S = 86_400
_DAY = "2026-01-31"
_WINDOW = 400
_ENOUGH_CALLED, _ENOUGH_OTHERS = 20, 100
"""Pages that must have been fetched before a sitemap is believed wrong in what it calls changed, and right in what it does not."""
_MOSTLY = 0.5
_TRUSTED = 0.8


class Trust(Struct):
    """How right a sitemap was with the pages that were fetched since it was read first, the last few hundred of them.

    A page counts by whether it had changed since its last fetch, and whether the sitemap called it changed since.
    """

    right: float = 0
    """Called changed, and had changed."""
    wrong: float = 0
    """Called changed, and had not."""
    found: float = 0
    """As `right`, in the window of `missed`."""
    missed: float = 0
    """Not called changed, and had changed; those found by a sample count for all pages that were spared."""
    others: int = 0
    """Not called changed, whether they had changed or not; counted up to 100."""

    def count(self, *, called: bool, changed: bool, weight: int = 1) -> None:
        """Count a page."""
        if called:
            self.right += changed
            self.wrong += not changed
            self.found += changed
        else:
            self.others = min(self.others + 1, _ENOUGH_OTHERS)
            self.missed += weight * changed
        if self.right + self.wrong > _WINDOW:
            self.right, self.wrong = self.right / 2, self.wrong / 2
        if self.found + self.missed > _WINDOW:
            self.found, self.missed = self.found / 2, self.missed / 2

    @property
    def of_called(self) -> float | None:
        """The part of the pages called changed that had changed; None where too few were fetched."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong >= _ENOUGH_CALLED else None

    @property
    def of_changed(self) -> float | None:
        """The part of the changed pages that had been called changed; None where too few were fetched."""
        return (self.found + 1) / (self.found + self.missed + 1) if self.others >= _ENOUGH_OTHERS else None

    @property
    def value(self) -> float | None:
        """The smaller of both; None where too few pages were fetched."""
        known = [one for one in (self.of_called, self.of_changed) if one is not None]
        return min(known, default=None)

    @property
    def is_ignored(self) -> bool:
        """Whether what it calls changed makes no page due."""
        return self.of_called is not None and self.of_called < _MOSTLY

    @property
    def spares(self) -> bool:
        """Whether what it does not call changed is spared."""
        return self.of_changed is not None and self.of_changed >= _TRUSTED


class Reading(Struct, omit_defaults=True):
    """A sitemap as it was read last."""

    at: int
    """When, in seconds since 1970; also when a 304 said that it had not changed."""
    entries: int
    """URLs that it names and the rules admit."""
    timed: int
    """Those with a time."""
    trust: Trust = msgspec.field(default_factory=Trust)
    names_sitemaps: bool = False


class PageTimes:
    """The pages that a sitemap names, by key."""

    __slots__ = ("keys", "times")

    def __init__(self, keys: array[int], times: array[int]) -> None:
        """`keys` are sorted; of each the time as `packed_time` gives it."""
        self.keys = keys
        self.times = times

    @classmethod
    def of(cls, named: Mapping[int, int]) -> PageTimes:
        keys = array("q", sorted(named))
        return cls(keys, array("I", map(named.__getitem__, keys)))

    def time(self, key: int) -> int | None:
        """Return the packed time of a page, 0 where it has none; None for a page that the sitemap does not name."""
        at = bisect_left(self.keys, key)
        return self.times[at] if at < len(self.keys) and self.keys[at] == key else None

    def differences(self, named: Mapping[int, int]) -> list[int]:
        """Return the keys of pages whose time is not the one here, or that are not here; of those with a time."""
        return [key for key, time in named.items() if time and self.time(key) != time]

    def without(self, named: Mapping[int, int]) -> list[int]:
        """Return the keys of those that are named no more."""
        return [key for key in self.keys if key not in named]


NO_PAGES = PageTimes(array("q"), array("I"))


class SitemapRecord:
    """What is known of a sitemap."""

    __slots__ = ("is_changed", "pages", "reading", "url")

    def __init__(self, url: str, reading: Reading, pages: PageTimes) -> None:
        self.url = url
        self.reading = reading
        self.pages = pages
        self.is_changed = False
        """The reading has to be saved."""


def packed_time(text: str, *, now: int) -> int:
    """Return a time in ISO 8601 as an even number of seconds since 1970, plus one for a day without a time; 0 where it is none.

    One in the future is none, and neither is one before 1970.
    """
    if len(text) < len(_DAY):
        return 0
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return 0
    seconds = int((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp())
    return seconds & ~1 | (len(text) == len(_DAY)) if 0 < seconds <= now + _TOLERATED_S else 0


def bounds_of(time: int) -> tuple[int, int]:
    """Return the first second that a packed time may mean, and the first after it."""
    return (time - 1, time - 1 + _DAY_S) if time & 1 else (time, time + 2)


class _Stores(MetaStore, SiteStore, UrlStore, DepthStore, Protocol):
    """What is read and written of a store."""


class LastModified:
    """What the sitemaps of a collection say about the changes of pages, for this process."""

    def __init__(self, store: _Stores, clock: Clock, *, fresh_s: int, progress: RunCounters) -> None:
        """`fresh_s` is the interval at which sitemaps are read: one that is due is not believed before that."""
        self._store = store
        self._clock = clock
        self._fresh_s = fresh_s
        self._progress = progress
        self._is_used = bool(store.get_meta(ALL))
        self._by_host: Recent[str, tuple[SitemapRecord, ...]] = Recent(_MOST_HOSTS)
        self._loaded: dict[str, SitemapRecord] = {}
        self._loaded_at = self._saved_at = clock.now()
        self._entries = 0
        self._sampled: set[int] = set()
        self._to_check = [url for url in listed(store, ALL) if store.get_meta(TO_CHECK + url)] if self._is_used else []
        self._steps: Steps[TimedStep] = Steps(clock)

    # --- sitemaps -------------------------------------------------------------------------------------------------

    def packed_time(self, text: str) -> int:
        """Return the time of an entry, as `packed_time` does now."""
        return packed_time(text, now=int(self._clock.now()))

    def note(self, state: UrlState, outcome: Outcome) -> None:
        """Take what a sitemap names, before its outcome is recorded; `state` is that of before."""
        now = int(self._clock.now())
        if outcome.named is not None:
            self._read(state, outcome.named, names_sitemaps=outcome.names_sitemaps, now=now)
        elif outcome.kind is OutcomeKind.UNCHANGED:
            if (record := self._record(state.url)) is not None:
                record.reading.at = now
                self._save(record)
        elif outcome.kind is not OutcomeKind.FAILED and (record := self._record(state.url)) is not None:
            self._keep(state.url, structs.replace(record.reading, at=0, entries=0, timed=0), NO_PAGES)

    def _read(self, state: UrlState, named: NamedPages, *, names_sitemaps: bool, now: int) -> None:
        record = self._record(state.url)
        before, trust = (NO_PAGES, Trust()) if record is None else (record.pages, record.reading.trust)
        is_new = record is None and len(named.hosts) == 1 and not any(self._store.documents([state.site]).values())
        due = [] if is_new else before.differences(named.times)
        left = before.without(named.times) if named.is_whole else []
        _list(self._store, ALL, state.url)  # first: by this list what is to be checked is found after a kill
        if due or left:
            waiting, gone = read_to_check(self._store, state.url)
            waiting |= set(due)
            gone = (gone | set(left)) - named.times.keys()
            self._store.set_meta(TO_CHECK + state.url, _encoded(array("q", waiting), array("q", gone)))
            self._to_check.append(state.url)
        timed = sum(map(bool, named.times.values()))
        self._keep(state.url, Reading(now, len(named.times), timed, trust, names_sitemaps), PageTimes.of(named.times))
        for host in () if names_sitemaps else named.hosts:
            _list(self._store, OF_HOST + host, state.url)
            self._by_host.drop(host)
        self._is_used = True

    def _keep(self, url: str, reading: Reading, pages: PageTimes) -> None:
        self._store.set_meta(PAGES + url, _encoded(pages.keys, pages.times) if pages.keys else "")
        self._store.set_meta(READ + url, msgspec.json.encode(reading).decode())
        if (record := self._loaded.get(url)) is not None:
            self._entries += len(pages.keys) - len(record.pages.keys)
            record.reading, record.pages, record.is_changed = reading, pages, False

    def _save(self, record: SitemapRecord) -> None:
        self._store.set_meta(READ + record.url, msgspec.json.encode(record.reading).decode())
        record.is_changed = False

    def _record(self, url: str) -> SitemapRecord | None:
        """Return what is known of a sitemap, from memory or the store."""
        return self._loaded.get(url) or read_record(self._store, url)

    # --- pages ----------------------------------------------------------------------------------------------------

    def spare(self, state: UrlState, changes: list[Change], *, policy: RecrawlPolicy, generation: int) -> bool:
        """Put off a page that is due by its age and has not changed since its last fetch, as a sitemap says; return whether it was.

        What it depends on must be unchanged, too: it was fetched under this generation of the rules.
        """
        if not self._is_used or state.fetched_at is None or not self._is_settled(state, policy, generation):
            return False
        trusted = False
        for record, time in self._naming(state):
            if record.reading.at <= state.fetched_at or not self._is_fresh(record) or not time:
                continue
            if bounds_of(time)[1] >= state.fetched_at:
                return False
            trusted = trusted or record.reading.trust.spares
        if not trusted:
            return False
        if hash((state.key, state.next_fetch)) % SAMPLED == 0:
            self._sampled.add(state.id)
            return False
        now = int(self._clock.now())
        policy = policy.of(state.site)
        interval = interval_of(state, changed=False, policy=policy)
        after = structs.replace(state, interval_s=interval, next_fetch=next_refresh(now, interval, policy), lease_until=None)
        changes.append(Change(after))
        self._progress.spared += 1
        return True

    def _is_settled(self, state: UrlState, policy: RecrawlPolicy, generation: int) -> bool:
        is_page = state.state is State.DONE and state.held is None and state.depth > 0
        is_page = is_page and not state.errors and state.rules == generation
        return is_page and policy.next_cycle is None and is_due_by_age(state)

    def _is_fresh(self, record: SitemapRecord) -> bool:
        return record.reading.at + self._fresh_s > self._clock.now()

    def measure(self, state: UrlState, outcome: Outcome, *, generation: int) -> None:
        """Count whether sitemaps were right about a page that was fetched; `state` is that of before."""
        if not self._is_used or state.fetched_at is None or state.state is not State.DONE or state.rules != generation:
            return
        is_changed = outcome.kind is OutcomeKind.DOCUMENT and outcome.checksum != state.checksum
        if outcome.doubted or not (is_changed or outcome.kind in (OutcomeKind.DOCUMENT, OutcomeKind.UNCHANGED)):
            return
        weight = SAMPLED if state.id in self._sampled else 1
        self._sampled.discard(state.id)
        for record, time in self._naming(state):
            if not time or record.reading.at <= state.fetched_at:
                continue
            first, last = bounds_of(time)
            if first <= state.fetched_at <= last:  # it may mean the change before
                continue
            record.reading.trust.count(called=first > state.fetched_at, changed=is_changed, weight=weight)
            record.is_changed = True

    def _naming(self, state: UrlState) -> Iterator[tuple[SitemapRecord, int]]:
        """Yield the sitemaps that name a page, each with its packed time."""
        host = listed_host(state.site)
        records = self._by_host.get(host)
        if records is None:
            records = tuple(self._load(listed(self._store, OF_HOST + host)))
            self._by_host.put(host, records)
        for record in records:
            time = record.pages.time(state.key)
            if time is not None and not record.reading.names_sitemaps:
                yield record, time

    def _load(self, urls: Iterable[str]) -> Iterator[SitemapRecord]:
        for url in urls:
            record = self._loaded.get(url)
            if record is None and self._entries < _MOST_ENTRIES and (record := read_record(self._store, url)) is not None:
                self._loaded[url] = record
                self._entries += len(record.pages.keys)
            if record is not None:
                yield record

    # --- in steps -------------------------------------------------------------------------------------------------

    @property
    def has_steps(self) -> bool:
        """Whether pages remain to be checked, of which some may be due."""
        return bool(self._to_check) or self._steps.has_remaining

    def resume(self) -> TimedStep | None:
        """Check some of the pages that may be due; return the effects, if it was time for a step."""
        if not self._to_check and not self._steps.has_remaining:
            return None
        if not self._steps.has_remaining:
            self._steps.begin(self._checked(self._to_check[0]))
        return self._steps.next()

    def _checked(self, url: str) -> Iterator[TimedStep]:
        record = self._record(url)
        waiting, left = read_to_check(self._store, url)
        if record is not None:
            keys = [*waiting, *left]
            for start in range(0, len(keys), _AT_ONCE):
                yield TimedStep(due=self._made_due(record, keys[start : start + _AT_ONCE], left))
        if read_to_check(self._store, url) == (waiting, left):  # else it was read once more
            self._store.set_meta(TO_CHECK + url, "")
            self._to_check = [one for one in self._to_check if one != url]

    def _made_due(self, record: SitemapRecord, keys: Sequence[int], left: set[int]) -> list[Due]:
        """Make those pages due that have changed, or left the sitemap, since they were fetched."""
        now = int(self._clock.now())
        made: dict[int, UrlState] = {}

        def changed(state: UrlState) -> Change | None:
            made.pop(state.id, None)
            if not self._is_to_be_due(record, state, has_left=state.key in left, now=now):
                return None
            at = now + (state.fetched_at == now)  # later than its fetch; one after now is of before the clock was set back
            made[state.id] = structs.replace(state, next_fetch=at)
            return Change(made[state.id])

        if ids := [one.id for one in self._store.depths_of(keys)]:
            self._store.revise(ids, changed, now=now)
        self._progress.called += len(made)
        return [(state.site, state.queue, now) for state in made.values()]

    def _is_to_be_due(self, record: SitemapRecord, state: UrlState, *, has_left: bool, now: int) -> bool:
        if state.fetched_at is None or state.next_fetch is None or state.next_fetch <= now or state.lease_until is not None:
            return False
        if state.state in (State.PENDING, State.FAILED) or state.held is not None or state.requested_by or state.retries:
            return False
        if has_left:
            return state.fetched_at < record.reading.at and not any(one.url != record.url for one, _ in self._naming(state))
        time = record.pages.time(state.key) or 0
        return time > 0 and not record.reading.trust.is_ignored and bounds_of(time)[1] > state.fetched_at

    # --- between ---------------------------------------------------------------------------------------------------

    def keep(self, *, is_last: bool = False) -> None:
        """Save what was measured, now and then; drop what was read from the store long ago."""
        now = self._clock.now()
        if not self._loaded or not (is_last or now - self._saved_at >= _SAVE_EVERY_S or now < self._saved_at):
            return
        self._saved_at = now
        for record in self._loaded.values():
            if record.is_changed:
                self._save(record)
        if not 0 <= now - self._loaded_at < _HELD_S:
            self._loaded.clear()
            self._by_host.clear()
            self._sampled.clear()
            self._entries, self._loaded_at = 0, now


# --- in the store ---------------------------------------------------------------------------------------------------


def listed(store: MetaStore, name: str) -> list[str]:
    """Return the sitemaps of a list."""
    value = store.get_meta(name)
    return value.split("\n") if value else []


def naming(store: MetaStore, state: UrlState) -> Iterator[tuple[SitemapRecord, int]]:
    """Yield the sitemaps that name a page, each with its packed time, from the store alone."""
    for url in listed(store, OF_HOST + listed_host(state.site)):
        record = read_record(store, url)
        if record is not None and (time := record.pages.time(state.key)) is not None:
            yield record, time


def readings(store: MetaStore, urls: Sequence[str]) -> Iterator[tuple[str, Reading]]:
    """Yield those of the sitemaps that have been read, and how. Raises StoreDamaged."""
    for start in range(0, len(urls), _AT_ONCE):
        some = urls[start : start + _AT_ONCE]
        for url, written in zip(some, store.get_metas([READ + url for url in some]), strict=True):
            if written and (reading := _reading(READ + url, written)).at:
                yield url, reading


def read_record(store: MetaStore, url: str) -> SitemapRecord | None:
    """Return what is known of a sitemap; None for one that has not been read. Raises StoreDamaged."""
    written, pages = store.get_metas([READ + url, PAGES + url])
    if not written:
        return None
    keys, times = _decoded(PAGES + url, pages or "", "q", "I")
    if len(keys) != len(times):
        raise damaged(PAGES + url, pages or "")
    return SitemapRecord(url, _reading(READ + url, written), PageTimes(keys, times))


def read_to_check(store: MetaStore, url: str) -> tuple[set[int], set[int]]:
    """Return the keys of the pages that may be due, and of those that a sitemap names no more. Raises StoreDamaged."""
    waiting, left = _decoded(TO_CHECK + url, store.get_meta(TO_CHECK + url) or "", "q", "q")
    return set(waiting), set(left)


def _reading(name: str, written: str) -> Reading:
    try:
        return msgspec.json.decode(written, type=Reading)
    except msgspec.MsgspecError as error:
        raise damaged(name, written) from error


def _list(store: MetaStore, name: str, url: str) -> None:
    """Add a sitemap to a list, unless that is full."""
    urls = listed(store, name)
    if url not in urls and len(urls) < MOST_LISTED:
        store.set_meta(name, "\n".join([*urls, url]))


def _encoded(first: array[int], second: array[int]) -> str:
    """Return numbers as text: the length of the first array, and both, compressed."""
    return f"{len(first)} {b64encode(zlib.compress(first.tobytes() + second.tobytes(), 1)).decode()}"


def _decoded(name: str, written: str, *types: str) -> tuple[array[int], array[int]]:
    first, second = array(types[0]), array(types[1])
    if written:
        length, _, encoded = written.partition(" ")
        try:
            content = zlib.decompress(b64decode(encoded))
            first.frombytes(content[: int(length) * first.itemsize])
            second.frombytes(content[int(length) * first.itemsize :])
        except (ValueError, zlib.error) as error:
            raise damaged(name, written) from error
    return first, second


def listed_host(site: str) -> str:
    """Return the host of a site as sitemaps are listed by it."""
    return bare_host(host_of(site))


def bare_host(host: str) -> str:
    """Return a host without `www.`, which URL options may fold."""
    return host.removeprefix("www.")
