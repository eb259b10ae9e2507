"""Admit URLs to the store: start URLs, a page's links and redirect targets, within rules and limits."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from crawlspace.config.collection import Collection, StartUrl
from crawlspace.crawl.discovery import CandidateChecker
from crawlspace.crawl.host_limit import HostCounts, HostRoom
from crawlspace.crawl.inherited_metadata import added_by, packed
from crawlspace.crawl.run import Refused, describe_refusal
from crawlspace.decision import Reason
from crawlspace.errors import ConfigError
from crawlspace.model import Candidate, NewUrl, Outcome, OutcomeKind, Source, UrlState
from crawlspace.printable import printable, quoted
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.refused_links import RefusedLink
from crawlspace.urls import MalformedUrl, join, parse, without_route

logger = logging.getLogger(__name__)

_STARTS_AT_ONCE = 1_000
_WARNINGS = 20
"""Sites of which it is warned that the URL options do not suit them."""


class KnownHosts(HostCounts, Protocol):
    def get(self, url: str) -> UrlState | None: ...


class PageUrls(NamedTuple):
    """What a page leads to: the URLs that the store may not know, the keys of all, how many were refused by reason, and some of these.

    `keys` and `refused` are None if those of the last fetch remain.
    """

    new: list[NewUrl]
    keys: Sequence[int] | None
    refused: Mapping[Reason, int] | None
    sample: Sequence[RefusedLink] = ()


class Admission:
    """Checks candidates and returns what the store must insert."""

    def __init__(self, collection: Collection, discovery: CandidateChecker, store: KnownHosts) -> None:
        self._collection = collection
        self._discovery = discovery
        self._store = store
        self._warned_of: set[str] = set()
        """Sites whose redirects do not go with the URL options."""
        self.room = HostRoom(store, lambda host, port: collection.sites.of(host, port).limits, run_ends=not collection.continuous)

    def candidates(self, candidates: Iterable[Candidate]) -> tuple[list[NewUrl], list[Refused]]:
        """Check single candidates, from users or spiders."""
        new: list[NewUrl] = []
        refused: list[Refused] = []
        for candidate in candidates:
            admitted, _, decision = self._discovery.candidate(candidate)
            if admitted is None:
                refused.append(Refused("", candidate.href, decision))
            else:
                new.append(admitted)
        return self.within_host_limit(new)[0], refused

    def starts(self) -> Iterator[list[NewUrl]]:
        """Yield the admitted start URLs in batches, each after the one before was inserted."""
        starts = self._collection.start_urls
        for first in range(0, len(starts), _STARTS_AT_ONCE):
            yield self.candidates(start_candidates(starts[first : first + _STARTS_AT_ONCE]))[0]

    def of_page(self, state: UrlState, outcome: Outcome) -> PageUrls:
        """Check the links of a page, or the target of its redirect."""
        new: list[NewUrl] = []
        keys: Sequence[int] | None = None
        refused: dict[Reason, int] | None = None
        sample = self._discovery.sample
        if outcome.links is not None or outcome.redirect_to is not None:
            sample.begin(state.id)
        if outcome.links is not None:
            found = self._discovery.links(
                outcome.links,
                base=outcome.base or state.url,
                base_host_as_written=state.host_as_written,
                depth=state.depth + 1,
                page=state.id,
                inherited=packed(outcome.link_metadata) if outcome.link_metadata else None,
            )
            known = self._known(found.too_deep)
            keys, new = [*found.keys, *(url.key for url in known)] if known else found.keys, [*known, *found.new]
            refused = {**found.refused, **outcome.left_out}
        if outcome.redirect_to is not None:
            if self._leads_back(state, outcome.redirect_to):
                self._warn_of_folded_redirect(state, outcome.redirect_to)
                if state.checksum is not None:  # its document stays as it is
                    outcome.kind, outcome.conditional = OutcomeKind.UNCHANGED, True
                    return PageUrls([], None, None)
            target, reason = self._redirect_target(state, outcome)
            refused = {} if target is not None else {reason: 1}
            new, keys = ([], []) if target is None else ([target], [target.key])
        if new:
            kept, unknown = self.within_host_limit(new)
            self.room.coming(unknown)
            if len(kept) < len(new) and keys is not None:  # URLs over the limit don't become links, which would look lost
                left_out = {url.key: url for url in new}
                for url in kept:
                    left_out.pop(url.key, None)
                for url in left_out.values():
                    sample.note_known(Reason.URLS_PER_HOST, url)
                keys = [key for key in keys if key not in left_out]
                outcome.etag = outcome.last_modified = None  # so that no 304 prevents finding the refused links again
                refused = {**(refused or {}), Reason.URLS_PER_HOST: len(left_out)}
            new = kept
        return PageUrls(new, keys, refused, sample.take() if refused else ())

    def _known(self, urls: Iterable[NewUrl]) -> list[NewUrl]:
        """Return the URLs that the store knows, each once."""
        return [
            url
            for url in {url.key: url for url in urls}.values()
            if self._discovery.is_known(url.key) or self._store.get(url.url) is not None
        ]

    def canonical_key(self, state: UrlState, outcome: Outcome) -> int | None:
        """Return the key of the canonical page named by a page; None if it is the page itself, or outside the crawl space."""
        if not outcome.canonical:
            return None
        try:
            href = join(outcome.base or state.url, outcome.canonical)
        except MalformedUrl:
            return None
        if href == state.url:  # as of most pages
            return None
        url, decision = self._discovery.judge(href)
        if url is not None and url.text == without_route(state.url):
            return None  # of a route: the template of its program names the page, and all routes would be that page
        return url.key if url is not None and decision.admitted and url.key != state.key else None

    def within_host_limit(self, new: Sequence[NewUrl]) -> tuple[list[NewUrl], list[NewUrl]]:
        """Remove unknown URLs of hosts that have reached CRAWLSPACE_MAX_URLS_PER_HOST.

        Returns the others, and those of them that are unknown, at hosts with a limit, and not yet being inserted.
        """
        kept: list[NewUrl] = []
        unknown: list[NewUrl] = []
        adding: Counter[str] = Counter()
        for url in new:
            most = self.room.most(url.site)
            if most is not None and not self.room.is_coming(url) and self._store.get(url.url) is None:
                host = url.site.rpartition(":")[0]
                if self.room.taken(host) + adding[host] >= most:
                    self._discovery.refused[Reason.URLS_PER_HOST] += 1
                    self._discovery.forget(url.key)
                    continue
                adding[host] += 1
                unknown.append(url)
            kept.append(url)
        return kept, unknown

    def _redirect_target(self, state: UrlState, outcome: Outcome) -> tuple[NewUrl | None, Reason]:
        """Return the target of a redirect: a new candidate of source redir with the same link depth, to which all rules apply.

        None if it is refused, and the reason.
        """
        if state.redirects >= self._collection.max_redirects:
            self._discovery.refused[Reason.REDIRECTS] += 1
            self._note_target(state, outcome, Reason.REDIRECTS)
            return None, Reason.REDIRECTS
        candidate = Candidate(
            outcome.redirect_to or "",
            Source.REDIR,
            base=state.url,
            base_host_as_written=state.host_as_written,
            depth=state.depth,
            redirects=state.redirects + 1,
            depth_from=state.id,
            inherited=packed(added_by(self._discovery.recheck(state).actions, state.inherited).items()),
        )
        admitted, url, decision = self._discovery.candidate(candidate)
        if admitted is None:
            self._discovery.sample.note(decision.reason, url, candidate.href, decision.rule)
        if admitted is None and state.source is Source.USER:
            shown = url.text if url is not None else outcome.redirect_to or ""
            logger.warning("a start URL leads outside: %s", describe_refusal(Refused(state.url, f"its target {shown}", decision)))
        return admitted, decision.reason

    def _note_target(self, state: UrlState, outcome: Outcome, reason: Reason) -> None:
        """Note the target of a redirect that is refused before it is checked."""
        href = outcome.redirect_to or ""
        try:
            url = parse(join(state.url, href))
        except MalformedUrl:
            url = None
        self._discovery.sample.note(reason, url, href)

    def _leads_back(self, state: UrlState, href: str) -> bool:
        """Return whether a page redirects to a spelling that the URL options fold into its own URL, so that it cannot be fetched under any."""
        folding = self._collection.url_folding
        try:
            into = folding.folded(folding.parse(join(state.url, href), host_as_written=state.host_as_written))
        except MalformedUrl:
            return False
        return into is not None and into.text == state.url

    def _warn_of_folded_redirect(self, state: UrlState, target: str) -> None:
        """Warn, once for each site, of a page that redirects to a spelling that the URL options fold into its own URL."""
        if state.site in self._warned_of or len(self._warned_of) >= _WARNINGS:
            return
        self._warned_of.add(state.site)
        logger.warning(
            "%s redirects to %s, which the URL options (CRAWLSPACE_URL_…) fold into the same URL: its page cannot be fetched, and a document "
            "of it that is in the index stays as it is. The options do not suit this site: set them in CRAWLSPACE_SITES for %s as it spells its "
            "URLs; for other pages of it this warning is not repeated in this run",
            state.url,
            printable(join(state.url, target)),
            quoted(state.site.rpartition(":")[0]),
        )


def check_start_urls(starts: Sequence[StartUrl], space: CrawlSpace) -> list[Refused]:
    """Return the start URLs that the rules refuse. Raises ConfigError if they refuse all: such a collection cannot start."""
    refused = []
    for start in starts:
        decision = space.decide(start.url.text, base_host_as_written=start.url.host_as_written, depth=0)[1]
        if not decision.admitted:
            refused.append(Refused(start.where, start.url.text, decision))
    if len(refused) == len(starts):
        raise ConfigError("no start URL is in the crawl space:\n" + "\n".join(f"  {describe_refusal(one)}" for one in refused))
    return refused


def start_candidates(starts: Sequence[StartUrl]) -> list[Candidate]:
    return [
        Candidate(start.url.text, Source.USER, base_host_as_written=start.url.host_as_written, shift=start.shift)
        for start in starts
    ]
