"""The sites of a collection for a person: what is stored of each and why it waits; and pausing and resuming hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from crawlspace.access.login_states import why_urls_wait
from crawlspace.access.sessions import kept_sessions
from crawlspace.admin.refresh import refreshing
from crawlspace.admin.site_report import SiteReport, unreachable_sites
from crawlspace.admin.sitemaps import trust_sentence
from crawlspace.clock import Clock, iso, local_time
from crawlspace.config.collection import Collection
from crawlspace.config.sites import SiteSettings
from crawlspace.crawl.rendering import LearnedRendering, learned_rendering
from crawlspace.crawl.sites import PrescribedPace, SiteDelays, robots_of
from crawlspace.crawl.timed.lastmod import ALL, Reading, listed, readings
from crawlspace.decision import Render
from crawlspace.errors import UsageError
from crawlspace.state.due_times import real_time
from crawlspace.state.site_health import Health
from crawlspace.state.site_pauses import MOST_PAUSES, MOST_REASON, Paused, Pauses, SitePause, patterns_of, pause_of
from crawlspace.state.store import Store
from crawlspace.state.views import KnownSite, RobotsEntry, Site, WaitingUrls
from crawlspace.text import MESSAGE, counted, printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

_EXAMPLES = "www.example.com, www.example.com:8080 or *.example.com"


class SiteOrder(StrEnum):
    """What a list of sites is sorted by: the largest number first, or by name."""

    URLS = "urls"
    DOCUMENTS = "documents"
    ERRORS = "errors"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class SiteState:
    """A site with the numbers that cost nothing, however many URLs it has. Times are seconds since 1970."""

    known: KnownSite
    paused: Paused | None
    unreachable: SiteReport | None
    has_work: bool
    """URLs of it are pending, or due now."""
    next_at: int | None
    """When it is requested next, as far as the store says; in the past: as soon as it has its turn. None: never, or nobody knows."""
    login_wait: str = ""
    """Why its URLs wait for its log-in, if they do."""
    wait_until: int | None = None
    """The time that it must wait for, in the future."""
    is_suspended: bool = False
    """CRAWLSPACE_VARIABLE_DELAY suspends all requests now."""

    @property
    def site(self) -> str:
        return self.known.site

    @property
    def health(self) -> Health:
        return self.known.health

    @property
    def has_errors(self) -> bool:
        """Whether some of its last fetches failed, it is unreachable, or its log-in fails."""
        return self.health.failures > 0 or self.unreachable is not None or bool(self.login_wait)

    @property
    def is_waiting(self) -> bool:
        """Whether it has URLs to fetch now, and something keeps them from being fetched."""
        return self.has_work and bool(self.waits)

    @property
    def waits(self) -> list[str]:
        """Why nothing of it is requested now, in sentences; without its delay."""
        found = []
        if self.paused is not None:
            of = "" if self.paused.pattern == self.site else f" ({self.paused.pattern})"
            found.append(f"{self.paused.pause.sentence}{of}")
        if self.login_wait:
            found.append(self.login_wait)
        if self.wait_until is not None:
            found.append(
                f"waits until {local_time(self.wait_until)}, by its own answer, because of failures, or for the rest of a long delay"
            )
        if self.is_suspended:
            found.append("all requests are suspended by CRAWLSPACE_VARIABLE_DELAY")
        return found

    @property
    def errors_sentence(self) -> str:
        """`3 of the last 20 fetches failed, 1 found nothing (404 or 410)`; empty without any."""
        parts = []
        if self.health.failures:
            parts.append(f"{self.health.failures} of the last {counted(self.health.fetches, 'fetch', 'fetches')} failed")
        if self.health.misses:
            parts.append(
                f"{self.health.misses} of the last {counted(self.health.fetches, 'fetch', 'fetches')} found nothing (404, 410)"
            )
        return "; ".join(parts)

    def as_json(self) -> dict[str, object]:
        health = self.health
        return {
            "site": self.site,
            "urls_of_host": self.known.urls,
            "documents": self.known.documents,
            "has_work": self.has_work,
            "next_request": None if self.next_at is None else iso(self.next_at),
            "waits": self.waits,
            "wait_until": None if self.wait_until is None else iso(self.wait_until),
            "paused": None if self.paused is None else {"pattern": self.paused.pattern, **self.paused.pause.as_json()},
            "last_fetches": {"count": health.fetches, "failed": health.failures, "missing": health.misses},
            "unreachable": None if self.unreachable is None else self.unreachable.as_json(),
        }


@dataclass(frozen=True, slots=True)
class SiteRobots:
    """A robots.txt as it was read last."""

    entry: RobotsEntry
    is_obeyed: bool

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.entry.body.encode())

    def as_json(self, *, with_text: bool) -> dict[str, object]:
        entry = self.entry
        found = {"scheme": entry.scheme, "status": entry.status, "read": iso(entry.fetched_at), "bytes": self.size}
        return {**found, "obeyed": self.is_obeyed, **({"text": entry.body} if with_text else {})}


@dataclass(frozen=True, slots=True)
class SiteDetails:
    """A site with what must be read for it alone."""

    state: SiteState
    waiting: WaitingUrls
    pace: PrescribedPace
    is_throttled: bool
    """AutoThrottle lengthens the delay while the site is crawled, which only the crawl knows."""
    robots: Sequence[SiteRobots]
    login: str
    """The credentials that requests carry, without secrets, and the session; empty without any."""
    render: Render
    render_where: str
    groups: int
    """Groups of its pages of which was learned whether they need a browser."""
    needing: int
    """Of these, those that do."""
    sitemaps: Mapping[str, Reading]
    """By URL, those that were read."""

    @property
    def delay_sentence(self) -> str:
        """`2 s, one request at a time (DOWNLOAD_DELAY)`"""
        pace = self.pace.pace
        delay = f"{pace.delay_s:g} s" if pace.delay_s else "none"
        together = "one request at a time" if pace.concurrency == 1 else f"up to {pace.concurrency} requests at a time"
        throttled = "; AutoThrottle follows how fast it answers, and never goes below" if self.is_throttled else ""
        return f"{delay}, {together} ({self.pace.where}){throttled}"

    @property
    def rendering_sentence(self) -> str:
        """Whether its pages are rendered, and what was learned; empty where they never are."""
        if self.render is Render.NEVER:
            return ""
        learned = f"; {counted(self.needing, 'folder')} of {self.groups:,} seen so far need it" if self.groups else ""
        return f"{self.render.value} ({self.render_where}){learned}"

    def as_json(self, *, with_text: bool = False) -> dict[str, object]:
        """`with_text`: with the text of its robots.txt."""
        pace = self.pace.pace
        return {
            **self.state.as_json(),
            "pending": self.waiting.pending,
            "due": self.waiting.due,
            "delay_s": pace.delay_s,
            "concurrency": pace.concurrency,
            "delay_from": self.pace.where,
            "autothrottle": self.is_throttled,
            "robots": [one.as_json(with_text=with_text) for one in self.robots],
            "login": self.login or None,
            "rendering": {
                "mode": self.render.value,
                "setting": self.render_where,
                "groups": self.groups,
                "needing": self.needing,
            },
            "sitemaps": [
                {"url": printable(url, most=MESSAGE), "entries": one.entries, "read": iso(one.at), "trust": one.trust.value}
                for url, one in self.sitemaps.items()
            ],
        }


class SiteList:
    """The sites of a collection, read once. Costs time by sites, not by URLs. Raises StoreError."""

    def __init__(self, store: Store, collection: Collection, clock: Clock) -> None:
        self._store = store
        self._collection = collection
        self._now = int(clock.now())
        self._delays = SiteDelays(collection, clock, robots_of(collection, store, clock))
        self.pauses: Pauses = store.site_pauses()
        self._scheduled_at = refreshing(collection.refresh, store, now=self._now).next_at
        self._login_waits: dict[str, str] = {}
        self._learned: LearnedRendering | None = None
        self._sitemaps: dict[str, dict[str, Reading]] | None = None
        work = {one.site: one for one in store.sites()}
        errors = collection.policy.max_temporary_errors
        unreachable = {one.row.site: one for one in unreachable_sites(store, max_temporary_errors=errors)}
        self.states = [
            self._state(
                known, work.get(known.site), unreachable.get(known.site), is_suspended=self._delays.is_suspended(known.site)
            )
            for known in store.known_sites()
        ]

    def select(
        self,
        *,
        host: str | None = None,
        containing: str = "",
        errors: bool = False,
        paused: bool = False,
        waiting: bool = False,
        unreachable: bool = False,
        order: SiteOrder = SiteOrder.URLS,
    ) -> list[SiteState]:
        """Return the sites that match all that is given, sorted. `host` is a pattern, as of a pause (`read_pattern`); `containing` is a part of
        the name."""
        found = [
            one
            for one in self.states
            if (host is None or host in patterns_of(one.site))
            and containing in one.site
            and (not unreachable or one.unreachable is not None)
            and (not errors or one.has_errors)
            and (not paused or one.paused is not None)
            and (not waiting or one.is_waiting)
        ]
        return sorted(found, key=lambda one: (_SORTED_BY[order](one), one.site))

    def details(self, states: Sequence[SiteState]) -> list[SiteDetails]:
        """Return the details of some sites. Costs time by their pending and due URLs where the store is a file."""
        waiting = self._store.waiting_urls([one.site for one in states], now=self._now)
        return [self._details(one, waiting[one.site]) for one in states]

    def _state(self, known: KnownSite, work: Site | None, unreachable: SiteReport | None, *, is_suspended: bool) -> SiteState:
        paused = pause_of(self.pauses, known.site)
        login_wait = self._login_wait(known.site)
        work = work or Site(known.site)
        left_s = work.left_s(self._now, longest_s=self._collection.policy.retry_after_max_s)
        wait_until = self._now + round(left_s) if left_s >= 1 else None
        has_work = bool(work.pending) or any(at <= self._now for _, at in work.due)
        at = self._now if has_work else min((at for _, at in work.due if real_time(at) is not None), default=None)
        if self._scheduled_at is not None and known.urls:
            at = self._scheduled_at if at is None else min(at, self._scheduled_at)
        if at is not None and wait_until is not None:
            at = max(at, wait_until)
        is_held_back = paused is not None or login_wait
        return SiteState(
            known, paused, unreachable, has_work, None if is_held_back else at, login_wait, wait_until, is_suspended=is_suspended
        )

    def _login_wait(self, site: str) -> str:
        access = self._collection.sites.at(site).access
        if access is None:
            return ""
        if access.pattern not in self._login_waits:
            self._login_waits[access.pattern] = why_urls_wait(self._store, access.pattern, now=self._now)
        return self._login_waits[access.pattern]

    def _details(self, state: SiteState, waiting: WaitingUrls) -> SiteDetails:
        site, settings = state.site, self._collection.sites.at(state.site)
        if self._learned is None:
            self._learned = learned_rendering(self._store) if self._collection.renders else LearnedRendering()
        roots = {f"{scheme}://{_netloc(site, scheme)}/" for scheme in DEFAULT_PORTS}
        groups = [one for name, one in self._learned.groups.items() if any(name.startswith(root) for root in roots)]
        robots = [entry for scheme in DEFAULT_PORTS if (entry := self._store.robots(site, scheme)) is not None]
        return SiteDetails(
            state,
            waiting,
            self._delays.prescribed(site),
            is_throttled=self._collection.throttle is not None,
            robots=[SiteRobots(entry, self._collection.robots_obey) for entry in robots],
            login=self._login(site, settings),
            render=settings.rendering.mode,
            render_where=settings.rendering.where,
            groups=len(groups),
            needing=sum(one.needs_browser for one in groups),
            sitemaps=self._sitemaps_of(site),
        )

    def _login(self, site: str, settings: SiteSettings) -> str:
        if settings.access is None:
            return ""
        schemes = self._store.schemes(site)
        sentence = settings.access.sentence_for("https" if "https" in schemes else "http")
        session = kept_sessions(self._store).get(settings.access.pattern)
        return sentence if session is None else f"{sentence}; logged in since {local_time(session.since)}"

    def _sitemaps_of(self, site: str) -> Mapping[str, Reading]:
        if self._sitemaps is None:
            by_site: defaultdict[str, dict[str, Reading]] = defaultdict(dict)
            for url, reading in readings(self._store, listed(self._store, ALL)):
                by_site[parse(url).site][url] = reading
            self._sitemaps = dict(by_site)
        return self._sitemaps.get(site, {})


def sites_as_json(
    collection: str, shown: Sequence[SiteDetails], *, total: int, pauses: Pauses, with_text: bool = False
) -> dict[str, object]:
    """Return some of the selected sites, and all pauses, as JSON has them."""
    return {
        "collection": collection,
        "total": total,
        "pauses": {pattern: one.as_json() for pattern, one in pauses.items()},
        "sites": [one.as_json(with_text=with_text) for one in shown],
    }


def sitemap_lines(details: SiteDetails) -> Iterator[str]:
    """Yield a sentence about each sitemap of a site."""
    for url, reading in details.sitemaps.items():
        what = counted(reading.entries, "sitemap" if reading.names_sitemaps else "URL")
        yield f"{printable(url, most=MESSAGE)}: {what}, {trust_sentence(reading)}"


_SORTED_BY: Mapping[SiteOrder, Callable[[SiteState], int]] = {
    SiteOrder.URLS: lambda one: -one.known.urls,
    SiteOrder.DOCUMENTS: lambda one: -one.known.documents,
    SiteOrder.ERRORS: lambda one: -one.health.failures - (one.unreachable is not None) * 100,
    SiteOrder.NAME: lambda _: 0,
}


def _netloc(site: str, scheme: str) -> str:
    host, _, port = site.rpartition(":")
    return host if int(port) == DEFAULT_PORTS[scheme] else site


# --- pausing -------------------------------------------------------------------------------------------------------


def read_pattern(text: str) -> str:
    """Return the pattern for a host, a host and port, or with `*.` all hosts below a domain, in normal form. Raises UsageError."""
    star, rest = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        url = parse(f"http://{rest}/")
    except MalformedUrl as error:
        raise UsageError(f"{quoted(text)} is no host: {error}; write one as in {_EXAMPLES}") from error
    has_port = rest.rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in rest.rpartition("]")[2]
    if not rest or set(rest) & set("/*@?# ") or url.path not in ("", "/"):
        raise UsageError(f"{quoted(text)} is no host; write one as in {_EXAMPLES}")
    return star + (url.site if has_port else url.host)


def pause_host(store: Store, pattern: str, pause: SitePause, *, collection: str) -> SitePause | None:
    """Pause the hosts of a pattern; return the pause that was there before. Raises UsageError if no known host matches, and StoreError."""
    pauses = store.site_pauses()
    if not any(pattern in patterns_of(one.site) for one in store.known_sites()):
        raise UsageError(
            f"{pattern} is no host that {collection} knows: `scrapy sites {collection}` lists them; to keep a host out for good,"
            " forbid it in crawl.rules"
        )
    if pattern not in pauses and len(pauses) >= MOST_PAUSES:
        raise UsageError(
            f"{counted(len(pauses), 'host is', 'hosts are')} paused, and no more can be: pause a domain, as *.example.com"
        )
    if len(pause.reason) > MOST_REASON:
        raise UsageError(f"the reason has {len(pause.reason):,} characters; write at most {MOST_REASON}")
    store.set_site_pause(pattern, pause)
    return pauses.get(pattern)


def resume_host(store: Store, pattern: str, *, collection: str) -> SitePause:
    """Resume the hosts of a pattern; return the pause that has ended. Raises UsageError if there was none, and StoreError."""
    pauses = store.site_pauses()
    pause = pauses.get(pattern)
    if pause is None:
        names = patterns_of(pattern if pattern.rpartition(":")[2].isdigit() else f"{pattern}:80")
        by = next((one for one in names if one in pauses), None)
        way = f"{by} is: --resume {quoted(by)}" if by else f"`scrapy sites {collection} --paused` lists what is"
        raise UsageError(f"{pattern} is not paused by itself; {way}" if by else f"{pattern} is not paused; {way}")
    store.set_site_pause(pattern, None)
    return pause


def sentence_of_pause(pattern: str, before: SitePause | None, *, is_crawled: bool) -> str:
    """Return what follows from a pause that was made; `before` is the one that it replaces."""
    was = f" (before, it was {before.sentence})" if before is not None else ""
    when = "the running crawl stops within seconds, when its requests have ended" if is_crawled else "crawls leave it out"
    return f"{pattern} is paused{was}: {when}"


def sentence_of_resumption(pattern: str, ended: SitePause, *, is_crawled: bool) -> str:
    """Return what follows from the end of a pause."""
    then = "the running crawl fetches it again" if is_crawled else "the next crawl fetches it again"
    return f"{pattern} is not paused any more (it was {ended.sentence}): {then}"
