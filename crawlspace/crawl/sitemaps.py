"""Sitemaps and feeds: which URLs are requested as such, and what becomes of their entries.

They are URLs of the store. Those that robots.txt or a setting names are inserted like start URLs, at link depth 0, so that their entries are
one link away. An index file is stored as a redirect to the sitemaps that it names (`status.SITEMAPS`), which get its depth.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus

from protego import Protego

from crawlspace.cache import Recent
from crawlspace.config.collection import Collection
from crawlspace.content.sitemaps import COMMON_TYPES, SITEMAP_TYPES, SitemapContents, SitemapKind
from crawlspace.crawl.admission import Admission, CandidateChecker, sitemap_candidate
from crawlspace.crawl.redirects import redirects_before
from crawlspace.crawl.run import FetchRobots, Refused, describe_refusal
from crawlspace.crawl.timed.lastmod import LastModified, bare_host
from crawlspace.decision import Reason
from crawlspace.document import essence
from crawlspace.frontier.robots import Robots
from crawlspace.model import SITEMAP_QUEUE, NewUrl, UrlState
from crawlspace.outcome import NamedPages, Outcome, OutcomeKind
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.duplicates import host_of
from crawlspace.state.store import Store
from crawlspace.status import SITEMAPS, Status
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, join, parse

logger = logging.getLogger(__name__)

MAX_NESTING = 5
"""Index files, one named by the other, whose sitemaps are requested."""
NAMED_ON_HOSTS = "sitemap_hosts:"
"""Prefix of the names of the entries; the URL of a sitemap follows. The sites whose robots.txt names it though it is on another host."""
_MOST_HOSTS = 100
_MOST_HOSTS_COUNTED = 5_000
_MOST_LINES = 1_000
"""Maximal sitemaps that a robots.txt names."""
_LINE = re.compile(r"\s*site-?maps?\s*:\s*\S", re.IGNORECASE)
"""Protego interprets these; of the other lines it would keep the rules of all groups."""
_GUESS = "/sitemap.xml"
_LOOKS_LIKE_ONE = re.compile(r"sitemap|feed|rss|atom", re.IGNORECASE)


class Sitemaps:
    """The sitemaps and feeds of a collection."""

    def __init__(
        self,
        collection: Collection,
        store: Store,
        *,
        admission: Admission,
        checker: CandidateChecker,
        robots: Robots,
        lastmod: LastModified,
    ) -> None:
        self._sites = collection.sites
        self._settings = collection.sitemaps
        self._store = store
        self._admission = admission
        self._checker = checker
        self._robots = robots
        self._lastmod = lastmod
        settings = (collection.sites.default, *collection.sites.settings)
        self._are_read = any(one.reads_sitemaps for one in settings)
        self._everywhere = all(one.reads_sitemaps for one in settings)
        self._follows_everywhere = all(one.follows_links for one in settings)
        self._own = {url.text for url in collection.sitemaps.urls}
        self._named: Recent[str, set[int]] = Recent(_MOST_HOSTS_COUNTED)
        """By host, hashes of the sitemaps that index files have named in this run."""

    def are_read(self, url: str) -> bool:
        """Return whether sitemaps of the site of a URL are read."""
        if self._everywhere or not self._are_read:
            return self._are_read
        parsed = parse(url)
        return self._sites.of(parsed.host, parsed.port).reads_sitemaps

    def are_links_followed(self, url: str) -> bool:
        """Return whether links of pages are followed at the site of a URL."""
        if self._follows_everywhere:
            return True
        parsed = parse(url)
        return self._sites.of(parsed.host, parsed.port).follows_links

    def may_be(self, state: UrlState, declared: str | None) -> bool:
        """Return whether a response may be a sitemap by its Content-Type header; with a common type, only if its URL looks like one."""
        kind = essence(declared)
        if kind not in SITEMAP_TYPES or not self.are_read(state.url):
            return False
        is_named = (state.source, state.shift) == SITEMAP_QUEUE or state.status in SITEMAPS
        return is_named or kind not in COMMON_TYPES or _LOOKS_LIKE_ONE.search(state.url) is not None

    def may_be_text(self, state: UrlState) -> bool:
        """Return whether a text whose lines are all URLs is a sitemap: one named as such, or a start URL."""
        return state.depth == 0

    # --- where they are -------------------------------------------------------------------------------------------

    def of_robots_txt(self, fetch: FetchRobots, *, status: int, body: str) -> list[NewUrl]:
        """Return the sitemaps that a robots.txt names, to be inserted; where it names none, the URL where one may be."""
        if fetch.target_site == fetch.site:
            root = "/".join(fetch.url.split("/", 3)[:3])
        else:  # it was redirected
            root = parse(f"{fetch.scheme}://{fetch.site}/").text.rstrip("/")
        is_read = 200 <= status < 300
        if not (is_read or (400 <= status < 500 and status != HTTPStatus.TOO_MANY_REQUESTS)) or not self.are_read(f"{root}/"):
            return []
        named = sitemaps_named_in(body, base=f"{root}/robots.txt") if is_read else []
        for url in named:
            self._note_host(url.text, fetch.site)
        if not named:
            return self._guessed(f"{root}{_GUESS}", fetch.site)
        new, refused = self._admission.candidates(map(sitemap_candidate, named))
        for one in refused:
            logger.info("the robots.txt of %s names a sitemap that is not requested: %s", fetch.site, describe_refusal(one))
        return new

    def _guessed(self, url: str, site: str) -> list[NewUrl]:
        if not self._settings.guess or not self._checker.judge(url)[1].admitted or not self._robots.allows(url, site=site):
            return []
        return self._admission.candidates([sitemap_candidate(parse(url))])[0]

    def is_guess(self, state: UrlState) -> bool:
        """Return whether a URL was inserted because a sitemap may be there."""
        is_ours = (state.source, state.shift) == SITEMAP_QUEUE and state.depth == 0 and not state.depth_from
        is_ours = is_ours and state.url.endswith(_GUESS) and state.url.count("/") == 3 and state.url not in self._own
        return is_ours and not self._is_named_at(state.site, state.url)

    def checked_guess(self, state: UrlState, outcome: Outcome) -> Outcome:
        """Return the outcome of a URL that was only tried: if there is no sitemap, this is no evidence about the site."""
        if not self.is_guess(state) or outcome.kind is OutcomeKind.UNCHANGED or outcome.status == Status.SITEMAP:
            return outcome
        if (
            outcome.kind is OutcomeKind.FAILED
            or outcome.host_failure
            or outcome.status in (Status.SITEMAP_INDEX, Status.LOGGED_OUT)
        ):
            return outcome
        if outcome.redirect_to is not None and _LOOKS_LIKE_ONE.search(outcome.redirect_to):
            return outcome
        detail = f"{outcome.status}" if outcome.kind is OutcomeKind.GONE else "it is none"
        return replace(
            outcome,
            kind=OutcomeKind.EXCLUDED,
            status=int(Status.NO_SITEMAP),
            reason=None,
            detail=detail,
            document=None,
            links=[],
            redirect_to=None,
            canonical=None,
        )

    # --- what they name -------------------------------------------------------------------------------------------

    def outcome(self, state: UrlState, contents: SitemapContents) -> Outcome:
        """Return the outcome of a sitemap: its entries are the links of its URL, which is not indexed."""
        if contents.kind is None:
            return Outcome(
                state.id,
                state.url,
                OutcomeKind.FAILED,
                int(Status.UNREADABLE_FILE),
                detail=f"it is a sitemap or feed that cannot be read: {contents.fault}",
            )
        if contents.fault:
            logger.warning(
                "%s is a %s that is not in order: %s; URLs read: %d",
                state.url,
                contents.kind,
                contents.fault,
                len(contents.entries),
            )
        if contents.left_out:
            logger.warning(
                "%s has more than CRAWLSPACE_SITEMAP_MAX_ENTRIES (%d) entries: %d left out",
                state.url,
                self._settings.limits.max_entries,
                contents.left_out,
            )
        left_out: Counter[Reason] = Counter()
        if contents.left_out:
            left_out[Reason.SITEMAP_LIMIT] = contents.left_out
        hrefs = {entry.href: entry.modified for entry in contents.entries}
        links = list(hrefs) if contents.kind.is_feed else [*self._of_allowed_hosts(state, hrefs, left_out)]
        is_index = contents.kind is SitemapKind.INDEX
        if is_index:
            links = self._within_limits(state, links, left_out)
        named = NamedPages(
            [self._lastmod.packed_time(hrefs[href]) for href in links],
            hosts_of(links, state.url),
            is_whole=not (contents.fault or contents.left_out or contents.kind.is_feed or is_index),
        )
        return Outcome(
            state.id,
            state.url,
            OutcomeKind.REDIRECTED if is_index else OutcomeKind.EXCLUDED,
            int(Status.SITEMAP_INDEX if is_index else Status.SITEMAP),
            index=False,
            links=links,
            left_out=dict(left_out),
            named=named,
        )

    def _of_allowed_hosts(self, state: UrlState, hrefs: Iterable[str], left_out: Counter[Reason]) -> Iterator[str]:
        """Yield the entries of the sitemap's own host, and of those that it is allowed to name."""
        own = parse(state.url).host
        origins = tuple(f"{scheme}://{own}/" for scheme in ("https", "http"))
        allowed: dict[str, bool] = {own: True}
        is_trusted: bool | None = None
        for href in hrefs:
            if href.startswith(origins):
                yield href
                continue
            try:
                url = parse(join(state.url, href))
            except MalformedUrl:
                yield href  # refused as such
                continue
            if url.host not in allowed:
                is_trusted = self._is_of_settings(state) if is_trusted is None else is_trusted
                allowed[url.host] = is_trusted or self._is_named_by(state, url.host)
            if allowed[url.host]:
                yield href
            else:
                left_out[Reason.SITEMAP_HOST] += 1

    def _within_limits(self, state: UrlState, links: Sequence[str], left_out: Counter[Reason]) -> list[str]:
        """Return the sitemaps of an index file that are requested."""
        if redirects_before(state) >= MAX_NESTING:
            left_out[Reason.SITEMAP_LIMIT] += len(links)
            return []
        host = parse(state.url).host
        named = self._named.get(host) or set()
        self._named.put(host, named)
        taken = []
        for href in links:
            if len(named) < self._settings.max_per_host or hash(href) in named:
                named.add(hash(href))
                taken.append(href)
        if len(taken) < len(links):
            left_out[Reason.SITEMAP_LIMIT] += len(links) - len(taken)
        return taken

    def _chain(self, state: UrlState) -> Iterator[UrlState]:
        """Yield a sitemap, and the index files and redirects that led to it."""
        for _ in range(2 * MAX_NESTING):
            yield state
            before = self._store.get_by_id(state.depth_from) if state.depth_from else None
            if before is None:
                return
            state = before

    def _is_of_settings(self, state: UrlState) -> bool:
        return bool(self._own) and any(one.url in self._own for one in self._chain(state))

    def _is_named_by(self, state: UrlState, host: str) -> bool:
        """Return whether the robots.txt of a host names a sitemap, or an index file that it was found in."""
        for one in self._chain(state):
            sites = (self._store.get_meta(NAMED_ON_HOSTS + one.url) or "").split()
            for site in sites:
                if host_of(site) == host and self._is_named_at(site, one.url):
                    return True
        return False

    def _is_named_at(self, site: str, sitemap: str) -> bool:
        """Return whether the robots.txt of a site names a sitemap."""
        for scheme in ("http", "https"):
            entry = self._store.robots(site, scheme)
            named = [] if entry is None else sitemaps_named_in(entry.body, base=f"{scheme}://{site}/robots.txt")
            if any(url.text == sitemap for url in named):
                return True
        return False

    def _note_host(self, url: str, site: str) -> None:
        """Store that the robots.txt of a site names a sitemap of another host."""
        if parse(url).host == host_of(site):
            return
        before = (self._store.get_meta(NAMED_ON_HOSTS + url) or "").split()
        if site not in before:
            self._store.set_meta(NAMED_ON_HOSTS + url, " ".join([*before, site][-_MOST_HOSTS:]))


def sitemaps_named_in(body: str, *, base: str) -> list[Url]:
    """Return the sitemaps that a robots.txt names, each once."""
    lines = [line for line in body.removeprefix("\ufeff").splitlines() if _LINE.match(line)]
    found: dict[str, Url] = {}
    for written in Protego.parse("\n".join(lines[:_MOST_LINES])).sitemaps:
        try:
            url = parse(join(base, written))
        except MalformedUrl:
            continue
        if url.scheme in DEFAULT_PORTS:
            found[url.text] = url
    return list(found.values())


def hosts_of(links: Iterable[str], base: str) -> frozenset[str]:
    """Return the hosts of URLs, without `www.`, up to some hundred."""
    found = {bare_host(parse(base).host)}
    seen: set[str] = set()
    for href in links:
        written = href.split("/", 3)[2] if "://" in href[:8] else ""
        if written and written not in seen and len(seen) < _MOST_HOSTS:
            seen.add(written)
            with suppress(MalformedUrl):
                found.add(bare_host(parse(href).host))
    return frozenset(found)


def refused_sitemaps(collection: Collection, space: CrawlSpace) -> list[Refused]:
    """Return the sitemaps of CRAWLSPACE_SITEMAPS that the rules refuse."""
    decided = [
        (url, space.decide(url.text, base_host_as_written=url.host_as_written, depth=0)[1]) for url in collection.sitemaps.urls
    ]
    return [Refused("CRAWLSPACE_SITEMAPS", url.text, decision) for url, decision in decided if not decision.admitted]
