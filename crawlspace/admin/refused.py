"""Refused links and their pages: the stored sample, with decisions by the present rules.

The store drops links that a page has lost. Entries are left out here if their page is gone, or the rules now admit the URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from crawlspace.crawl.admission import as_stored
from crawlspace.decision import OF_PAGES, Decision, Reason
from crawlspace.model import UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.depths import reach_of
from crawlspace.state.refused_links import LETTERS, RefusedLink, has_any, letters_of
from crawlspace.state.store import Store
from crawlspace.text import HIDDEN, MESSAGE, printable
from crawlspace.urls import MalformedUrl, Url, parse

_SOME = 500
"""Pages that are read at once."""
REASONS = tuple(reason for reason in LETTERS if reason not in OF_PAGES)
"""The reasons for which links are refused."""


@dataclass(frozen=True, slots=True)
class SeenLink:
    """A refused link and its page, with the present decision."""

    link: RefusedLink
    page: UrlState
    decision: Decision

    @property
    def depth(self) -> int:
        """The link depth of the URL by this link."""
        return reach_of(self.page.depth, self.page.state)

    @property
    def rule(self) -> str | None:
        """The location of the deciding rule; that of the fetch if the URL is cut off and can't be decided again."""
        if self.decision.rule is not None:
            return str(self.decision.rule)
        return self.link.rule if _is_cut(self.link) else None

    @property
    def printable(self) -> str:
        return printable(self.link.url, most=MESSAGE)

    @property
    def printable_page(self) -> str:
        return printable(self.page.url, most=MESSAGE)

    def as_json(self) -> dict[str, object]:
        return {
            "url": self.printable,
            "reason": self.decision.reason.value,
            "rule": self.rule,
            "page": self.printable_page,
        }


@dataclass(frozen=True, slots=True)
class RefusedForReason:
    """The refused links of one reason. `total` is the sum over all pages as last fetched; None for the links to one host."""

    reason: Reason
    total: int | None
    links: Sequence[SeenLink]

    @property
    def others(self) -> int:
        """The number of links that are not listed."""
        return max(0, (self.total or 0) - len(self.links))

    def as_json(self) -> dict[str, object]:
        return {"total": self.total, "others": self.others, "links": [link.as_json() for link in self.links]}


def refused_by_reason(
    store: Store, space: CrawlSpace, *, reason: Reason | None = None, host: str | None = None, most: int | None
) -> list[RefusedForReason]:
    """Return the refused links by reason, the most frequent one first; `most` links for each reason, None for no such limit."""
    totals: Mapping[Reason, int] = store.counts().refused
    found = []
    for one in REASONS if reason is None else (reason,):
        links = list(islice(seen_links(store.refused_links(reason=one, host=host), space=space, store=store), most))
        total = totals.get(one, 0) if host is None else None
        if total or links:
            found.append(RefusedForReason(one, total, links))
    return sorted(found, key=lambda row: (-(row.total or len(row.links)), row.reason))


def seen_links(links: Iterable[RefusedLink], *, space: CrawlSpace, store: Store) -> Iterator[SeenLink]:
    """Yield those links of the sample that are still on their page and still refused."""
    left = iter(links)
    while some := list(islice(left, _SOME)):
        pages = {page.id: page for page in store.get_by_ids(sorted({link.page for link in some}))}
        for link in some:
            page = pages.get(link.page)
            if page is not None and has_any(page.refused, letters_of([link.reason])):
                decision = _decided(link, page, space)
                if not decision.admitted:
                    yield SeenLink(link, page, decision)


def seen_on(url: Url | None, text: str, *, space: CrawlSpace, store: Store) -> list[SeenLink]:
    """Return the entries of the sample for a URL; a malformed one is found by its text."""
    links = [link for link in store.refused_links(host="" if url is None else url.host) if _is_of(link, url, text)]
    return list(seen_links(links, space=space, store=store))


def _is_of(link: RefusedLink, url: Url | None, text: str) -> bool:
    if url is None:
        return link.url == as_stored(None, text)
    try:
        return parse(link.url, routes=True).text == url.text
    except MalformedUrl:
        return False


def _is_cut(link: RefusedLink) -> bool:
    return link.url.endswith(HIDDEN)


def _decided(link: RefusedLink, page: UrlState, space: CrawlSpace) -> Decision:
    """Return the present decision for a link; that of its fetch where the rules alone don't decide."""
    if _is_cut(link):
        return Decision(link.reason, None, ())
    url, decision = space.decide(link.url, depth=reach_of(page.depth, page.state))
    if not decision.admitted or url is None:
        return decision
    if link.reason is Reason.REDIRECTS:
        return Decision(link.reason, None, ())
    if link.reason is Reason.URLS_PER_HOST and space.limits_of(url.host, url.port).max_urls_per_host is not None:
        return Decision(link.reason, None, ())
    return decision
