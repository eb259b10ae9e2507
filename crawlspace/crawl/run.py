"""The values of one run: requests, refusals and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crawlspace.decision import Decision, Reason
from crawlspace.model import Outcome, OutcomeKind, State, UrlState
from crawlspace.printable import printable
from crawlspace.urls import parse


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


class Located(Protocol):
    def __call__(self, site: str, address: str | None, *, certain: bool = True) -> None: ...


Locate = Callable[[str, Located], None]
"""Looks up the address of a site (`host:port`), and calls back with both; None if it has none, or the look-up failed."""


MOST_SITES = 1_000
"""Sites of which a page that may need a browser is named, or that an error is noted of."""


class Watcher(Protocol):
    """Notes what a person should know of the outcomes, given the state of each URL before."""

    def document(self, state: UrlState, outcome: Outcome) -> None: ...

    def error(self, state: UrlState, outcome: Outcome) -> None:
        """Note an error that has a detail."""


@dataclass(slots=True)
class RunCounters:
    """Counters of this run."""

    watcher: Watcher | None = None
    fetched: int = 0
    first_fetches: int = 0
    """Fetches of URLs that were pending."""
    documents: int = 0
    errors: int = 0
    failed_sites: set[str] = field(default_factory=set)
    """The sites of these errors, MOST_SITES at most."""
    discovered: int = 0
    pushes: int = 0
    deletes: int = 0
    by_kind: Counter[OutcomeKind] = field(default_factory=Counter)
    """The outcomes of what was fetched; they add up to `fetched`."""
    by_status: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    without_item: int = 0
    """Pages that had a document, and for which the spider or an item pipeline gave none."""
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Pages whose document was found at another address, by the old and the new scheme and host."""
    own_requests: Counter[str] = field(default_factory=Counter)
    """Requests of the spider's own: `yielded`, and of these `failed`, `refused` and `left_out`."""
    browser_pages: dict[str, str] = field(default_factory=dict)
    """The first page that may need a browser of each site, of MOST_SITES at most."""

    def may_need_browser(self, state: UrlState) -> bool:
        """Note a page that may need a browser. Return whether it is the first of its site."""
        if state.site in self.browser_pages or len(self.browser_pages) >= MOST_SITES:
            return False
        self.browser_pages[state.site] = state.url
        return True

    def count(self, state: UrlState, outcome: Outcome) -> None:
        """Count the outcome of a URL, given its state before."""
        if state.state is State.PENDING:
            self.first_fetches += 1
        self.by_status[int(outcome.status)] += 1
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
