"""The values of one run: requests, refusals, counters, and the faults that make its exit status 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from crawlspace.clock import Clock
from crawlspace.crawl.fetch_times import FetchTimes
from crawlspace.crawl.findings import RunFindings
from crawlspace.decision import Decision, Reason
from crawlspace.model import State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.store import ResultStore, RunStore
from crawlspace.status import LINKS_ONLY, Status
from crawlspace.text import counted, printable
from crawlspace.urls import parse

MOST_SITES = 1_000
"""Maximal sites with a page that may need a browser, or with errors."""
SHOWN = 3
_ANSWERS_TO_OWN_CODE = (*LINKS_ONLY, 304)
_NOT_FETCHED = (int(Status.ROBOTS_FORBIDDEN), int(Status.EXCLUDED), int(Status.EXCLUDED_HERE))


class RunStart:
    """The run of this process. It begins when the object is created; a continuous crawl has no beginning."""

    def __init__(self, store: RunStore, clock: Clock, *, continuous: bool) -> None:
        self._store = store
        self._clock = clock
        self._began = None if continuous else int(clock.now())
        store.begin_run(self._began)

    @property
    def ends(self) -> bool:
        return self._began is not None

    def check_clock(self) -> None:
        """Move the beginning of the run back to now if the clock was set back, so that later fetches count as part of it."""
        if self._began is not None and (now := int(self._clock.now())) < self._began:
            self._began = now
            self._store.begin_run(now, resumes=True)


@dataclass(frozen=True, slots=True)
class Refused:
    """A start URL, or a candidate from elsewhere, that is not in the crawl space."""

    where: str
    url: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class FetchPage:
    """A request for a page; `conditional`: with its stored validators, for a 304 if it is unchanged."""

    state: UrlState
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class FetchRobots:
    """A request for a site's robots.txt before its pages; answered with `Engine.robots_read`."""

    site: str
    scheme: str
    url: str
    redirects: int = 0

    @classmethod
    def of(cls, state: UrlState) -> FetchRobots:
        """Return the request to make before that of a URL."""
        return cls.at(state.url, site=state.site)

    @classmethod
    def at(cls, url: str, *, site: str) -> FetchRobots:
        scheme, _, host, _ = url.split("/", 3)
        return cls(site, scheme.removesuffix(":"), f"{scheme}//{host}/robots.txt")

    @property
    def target_site(self) -> str:
        """The site requested, which differs after a redirect to another one."""
        return parse(self.url).site


@dataclass(slots=True)
class RunCounters:
    """Counters of this run."""

    watcher: RunFindings | None = None
    fetched: int = 0
    first_fetches: int = 0
    """Fetches of URLs that were pending."""
    documents: int = 0
    errors: int = 0
    failed_sites: set[str] = field(default_factory=set)
    """The sites of these errors, MOST_SITES at most."""
    discovered: int = 0
    spared: int = 0
    """Pages that were due by their age and not requested, because a sitemap says that they have not changed."""
    called: int = 0
    """Pages that are due because a sitemap says that they have changed, or names them no more."""
    pushes: int = 0
    deletes: int = 0
    by_kind: Counter[OutcomeKind] = field(default_factory=Counter)
    """Outcomes of fetched URLs; they add up to `fetched`."""
    by_status: Counter[int] = field(default_factory=Counter)
    times: FetchTimes = field(default_factory=FetchTimes)
    """How long the fetches took that were sent."""
    body_bytes: int = 0
    """Received bytes of their bodies, before these are decoded."""
    refused: Counter[str] = field(default_factory=Counter)
    without_item: int = 0
    """Pages with a document for which the spider or an item pipeline returned no item."""
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Pages whose document was found at another address, by the old and the new scheme and host."""
    own_requests: Counter[str] = field(default_factory=Counter)
    """Requests made by the spider: `yielded`, and of these `failed`, `refused` and `left_out`."""
    browser_pages: dict[str, str] = field(default_factory=dict)
    """The first page that may need a browser of each site, of MOST_SITES at most."""

    def may_need_browser(self, state: UrlState) -> bool:
        """Note a page that may need a browser. Return whether it is the first of its site."""
        if state.site in self.browser_pages or len(self.browser_pages) >= MOST_SITES:
            return False
        self.browser_pages[state.site] = state.url
        return True

    def add(self, outcome: Outcome) -> None:
        """Count a fetch; not one that has tried where a sitemap may be."""
        if outcome.status != Status.NO_SITEMAP:
            self.fetched += 1
            self.by_kind[outcome.kind] += 1

    def count(self, state: UrlState, outcome: Outcome) -> None:
        """Count the outcome of a URL, given its state before."""
        if outcome.status == Status.NO_SITEMAP:
            return
        if state.state is State.PENDING:
            self.first_fetches += 1
        self.by_status[int(outcome.status)] += 1
        self.body_bytes += outcome.body_bytes
        if outcome.took_s is not None:
            self.times.add(state.site, outcome.took_s)
        if outcome.reason is not None:
            self.refused[outcome.reason] += 1
            self.without_item += state.checksum is not None and outcome.reason in (Reason.NO_ITEM, Reason.DROPPED)
        if outcome.kind is OutcomeKind.DOCUMENT and not outcome.doubted:
            self.documents += 1
            if self.watcher is not None:
                self.watcher.document(state, outcome)
        elif outcome.kind in (OutcomeKind.GONE, OutcomeKind.FAILED):
            self.errors += 1
            if outcome.detail and self.watcher is not None:
                self.watcher.error(state, outcome)
            if len(self.failed_sites) < MOST_SITES:
                self.failed_sites.add(state.site)


def describe_refusal(refused: Refused) -> str:
    """Return `start_urls.txt:3: http://… is refused: a domain rule forbids the host (crawl.rules:7: forbid domain *)`."""
    rule = refused.decision.rule
    where = f"{refused.where}: " if refused.where else ""
    by = f" ({rule}: {printable(rule.text)})" if rule is not None else ""
    return f"{where}{printable(refused.url)} is refused: {refused.decision.reason.sentence}{by}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended by itself. `unreachable` are the sites without any response, and the causes."""

    progress: RunCounters
    start_sites: Collection[str]
    unreachable: Mapping[str, str]
    with_documents: Collection[str]
    """The unreachable sites with indexed documents: a dead link to another site is no fault of a run."""
    has_documents: bool
    failing: Collection[str] = ()
    """Sites with errors whose last answers were mostly failures: the site fails, not a page."""
    refused_logins: Mapping[str, str] = field(default_factory=dict)
    """Sites with due pages that wait because their log-in is refused, with the explanation."""
    without_login: Mapping[str, str] = field(default_factory=dict)
    """Sites that wait because logging in is impossible for now."""


def faults_of(run: Run) -> list[str]:
    """Return the faults of a run, the worst first; empty if it succeeded."""
    progress = run.progress
    if run.refused_logins:
        return [f"{site} waits for its log-in: {why}" for site, why in sorted(run.refused_logins.items())[:SHOWN]]
    if run.without_login and not _has_page(progress):
        return [f"{site} waits for its log-in: {why}" for site, why in sorted(run.without_login.items())[:SHOWN]]
    if run.start_sites and all(site in run.unreachable for site in run.start_sites):
        causes = {site: run.unreachable[site] for site in sorted(run.start_sites)}
        return [f"no start site could be reached: {_listed(causes)}"]
    missed = {site: cause for site, cause in run.unreachable.items() if site in {*run.start_sites, *run.with_documents}}
    if missed and progress.errors == progress.fetched:
        return [f"nothing could be fetched: {_listed(missed)}"]
    if not progress.fetched:
        if progress.by_status[Status.ROBOTS_FORBIDDEN] and not run.has_documents:
            return ["nothing could be fetched: robots.txt forbids every URL"]
        return []
    unexpected = progress.by_status[Status.UNEXPECTED]
    if unexpected and not progress.documents and not any(progress.by_status[code] for code in _ANSWERS_TO_OWN_CODE):
        return [f"every page that was parsed ended in an unexpected error ({int(Status.UNEXPECTED)}), see the log"]
    if progress.without_item and not (progress.documents or progress.by_kind[OutcomeKind.UNCHANGED]):
        pages = counted(progress.without_item, "page that was", "pages that were")
        return [
            f"no page gave an item, not even {pages} indexed: look at parse() or document() of the spider, and at ITEM_PIPELINES"
        ]
    # Dead links, and pages that fail while their site answers others, are no fault of a run in which nothing else was due.
    is_loop = progress.by_status[Status.REDIRECT_LOOP] > 0  # then redirects loop, and none leads to a page
    failed = progress.errors + (progress.by_kind[OutcomeKind.REDIRECTED] if is_loop else 0)
    if failed == progress.fetched and (run.failing or not run.has_documents):
        codes = sorted((code, count) for code, count in progress.by_status.items() if code not in _NOT_FETCHED)
        how = "no page could be read, because of redirect loops" if is_loop else "every page of the run failed"
        return [f"{how}: {', '.join(f'{count:,} × {code}' for code, count in codes[:SHOWN])}"]
    return []


def failing_sites(store: ResultStore, sites: Iterable[str], policy: RecrawlPolicy) -> set[str]:
    """Return the sites whose last answers were mostly failures, or pages that are gone."""
    healths = {site: store.health(site) for site in sites}
    return {
        site
        for site, health in healths.items()
        if health.is_failing(policy.host_failed_percent) or health.is_mostly_missing(policy.host_fetches)
    }


def _has_page(progress: RunCounters) -> bool:
    """Return whether any page of the run was obtained."""
    return any(count for kind, count in progress.by_kind.items() if kind not in (OutcomeKind.FAILED, OutcomeKind.GONE))


def _listed(causes: Mapping[str, str]) -> str:
    """Return `a.example:80 (connection refused), b.example:80 (no answer in time) and 4 more`."""
    shown = ", ".join(f"{site} ({cause})" for site, cause in list(causes.items())[:SHOWN])
    return shown + (f" and {len(causes) - SHOWN:,} more" if len(causes) > SHOWN else "")
