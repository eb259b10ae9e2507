"""The values of one run: what to ask for next, what was refused, what has been counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crawlspace.decision import Decision
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
    """Ask for a page; `conditional`: with the validators of its state, so that an unchanged one need not be sent again."""

    state: UrlState
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class FetchRobots:
    """Ask for a site's robots.txt before anything else of it; answered with `Engine.robots_read`."""

    site: str
    scheme: str
    url: str
    redirects: int = 0

    @classmethod
    def of(cls, state: UrlState) -> FetchRobots:
        """Return what to ask before a URL."""
        scheme, _, host, _ = state.url.split("/", 3)
        return cls(state.site, scheme.removesuffix(":"), f"{scheme}//{host}/robots.txt")

    @property
    def target_site(self) -> str:
        """The site that is asked, which a redirect may have made another one."""
        return parse(self.url).site


class Located(Protocol):
    def __call__(self, site: str, address: str | None, *, certain: bool = True) -> None: ...


Locate = Callable[[str, Located], None]
"""Looks up the address of a site (`host:port`), and tells both; None where it has none, or where the look-up gave no answer."""


@dataclass(slots=True)
class Progress:
    """Counters of this run, for whoever shows them."""

    fetched: int = 0
    first_fetches: int = 0
    """Of URLs that were pending."""
    documents: int = 0
    errors: int = 0
    discovered: int = 0
    pushes: int = 0
    deletes: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def count(self, state: UrlState, outcome: Outcome) -> None:
        """Count the outcome of a URL whose state was that before."""
        if state.state is State.PENDING:
            self.first_fetches += 1
        self.by_status[int(outcome.status)] += 1
        if outcome.reason is not None:
            self.refused[outcome.reason] += 1
        if outcome.kind is OutcomeKind.DOCUMENT:
            self.documents += 1
        elif outcome.kind in (OutcomeKind.GONE, OutcomeKind.FAILED):
            self.errors += 1


def describe_refusal(refused: Refused) -> str:
    """`start_urls.txt:3: http://… is refused: a domain rule forbids the host (crawl.rules:7: forbid domain *)`"""
    rule = refused.decision.rule
    where = f"{refused.where}: " if refused.where else ""
    by = f" ({rule}: {printable(rule.text)})" if rule is not None else ""
    return f"{where}{printable(refused.url)} is refused: {refused.decision.reason.sentence}{by}"
