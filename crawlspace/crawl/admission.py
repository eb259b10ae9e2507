"""Admit URLs to the store: start URLs, a page's links and redirect targets, within rules and limits.

Checking the links of a page is the hottest path of the crawl. The links of a site repeat from page to page, so two bounded caches are
used: from the text of a link, within a folder, to its URL and decision; and from a URL to the smallest depth with which the store knows
it. A missing entry costs time only, because the store has the known URLs.
"""

from __future__ import annotations

import logging
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import structs

from crawlspace.cache import Recent
from crawlspace.config.collection import Collection
from crawlspace.config.files import StartUrl
from crawlspace.crawl.inherited_metadata import MAX_INHERITED, fitting, packed
from crawlspace.crawl.redirects import redirects_before, target_candidate, target_url
from crawlspace.crawl.run import Refused, describe_refusal
from crawlspace.crawl.sites import HostRoom
from crawlspace.decision import Decision, Reason, RuleRef
from crawlspace.errors import ConfigError
from crawlspace.model import SITEMAP_QUEUE, Candidate, NewUrl, Source, State, UrlState, source_of
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change
from crawlspace.state.duplicates import host_of, rank_of
from crawlspace.state.lifecycle import remembered
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST, RefusedLink
from crawlspace.state.store import Store
from crawlspace.text import cut, printable, quoted
from crawlspace.urls import MalformedUrl, Url, join, url_key, without_route

logger = logging.getLogger(__name__)

_STARTS_AT_ONCE = 1_000
_OF_THE_PAGE = re.compile(r"(?:https?:)?(?:[?#]|$)", re.IGNORECASE)
"""The beginning of a link relative to the whole base, not its folder, with or without the page's scheme."""
_SPACE = "".join(map(chr, range(0x21)))
"""URL parsers remove these at both ends of a link, and the next ones anywhere in it (WHATWG URL Standard, "basic URL parser")."""
_DROPPED = dict.fromkeys(map(ord, "\t\n\r"))
MAX_URL = 2_083
"""Characters of a URL that are stored; a longer one is cut off with an ellipsis."""
_MOST_FORGOTTEN = 100_000
_WARNINGS = 20
"""Maximal sites with a warning about unsuitable URL options."""


class PageUrls(NamedTuple):
    """The URLs that a page leads to: those that may be unknown to the store, the keys of all, and the refused ones: numbers by reason, a sample.

    `keys` and `refused` are None if those of the last fetch remain.
    """

    new: list[NewUrl]
    keys: Sequence[int] | None
    refused: Mapping[Reason, int] | None
    sample: Sequence[RefusedLink] = ()


class FoldedRedirects:
    """Redirects to a spelling that the URL options fold into the URL of the page itself, so that it cannot be fetched."""

    def __init__(self, collection: Collection) -> None:
        self._folding = collection.url_folding
        self._warned_of: set[str] = set()

    def leads_back(self, state: UrlState, href: str) -> bool:
        """Return whether a target is such a spelling; warn once for each site."""
        try:
            into = self._folding.folded(self._folding.parse(join(state.url, href), host_as_written=state.host_as_written))
        except MalformedUrl:
            return False
        if into is None or into.text != state.url:
            return False
        self._warn(state, href)
        return True

    def _warn(self, state: UrlState, target: str) -> None:
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


class Admission:
    """Checks candidates and returns what the store must insert."""

    def __init__(self, collection: Collection, discovery: CandidateChecker, store: Store) -> None:
        self._collection = collection
        self._discovery = discovery
        self._store = store
        self._folded_redirects = FoldedRedirects(collection)
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
        """Yield the admitted start URLs, and the sitemaps of the settings, in batches, each after the previous one was inserted."""
        starts = self._collection.start_urls
        for first in range(0, len(starts), _STARTS_AT_ONCE):
            yield self.candidates(start_candidates(starts[first : first + _STARTS_AT_ONCE]))[0]
        if self._collection.sitemaps.urls:
            yield self.candidates(map(sitemap_candidate, self._collection.sitemaps.urls))[0]

    def page_urls(self, state: UrlState, outcome: Outcome) -> PageUrls:
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
                depth=state.depth if outcome.names_sitemaps else state.depth + 1,
                page=state.id,
                inherited=packed(outcome.link_metadata) if outcome.link_metadata else None,
            )
            known = self._known(found.too_deep)
            keys, new = [*found.keys, *(url.key for url in known)] if known else found.keys, [*known, *found.new]
            refused = {**found.refused, **outcome.left_out}
            if outcome.named is not None:
                outcome.named.times = found.by_key(outcome.named.of_links)
            if outcome.names_sitemaps:
                (source, shift), redirects = SITEMAP_QUEUE, redirects_before(state) + 1
                new = [structs.replace(one, source=source, shift=shift, redirects=redirects) for one in new]
        if outcome.redirect_to is not None:
            leads_back = self._folded_redirects.leads_back(state, outcome.redirect_to)
            if leads_back and state.checksum is not None:  # its document does not change
                outcome.kind, outcome.conditional = OutcomeKind.UNCHANGED, True
                return PageUrls([], None, None)
            target, reason = self._redirect_target(state, outcome)
            refused = {} if target is not None else {reason: 1}
            new, keys = ([], []) if target is None else ([target], [target.key])
        if new:
            kept, unknown = self.within_host_limit(new)
            self.room.inserting(unknown)
            if len(kept) < len(new) and keys is not None:  # URLs over the limit are not stored as links, which would look lost
                left_out = {url.key: url for url in new}
                for url in kept:
                    left_out.pop(url.key, None)
                for url in left_out.values():
                    sample.note_known(Reason.URLS_PER_HOST, url)
                keys = [key for key in keys if key not in left_out]
                outcome.etag = outcome.last_modified = None  # so that no 304 hides the refused links
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
            return None  # of a route: the page's template names the page itself, and all routes would be that page
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
            if most is not None and not self.room.is_inserting(url) and self._store.get(url.url) is None:
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
        """Return the target of a redirect as a new candidate, to which all rules apply. None if it is refused, and the reason."""
        if redirects_before(state) >= self._collection.max_redirects:
            self._discovery.refused[Reason.REDIRECTS] += 1
            self._discovery.sample.note(Reason.REDIRECTS, target_url(state, outcome), outcome.redirect_to or "")
            return None, Reason.REDIRECTS
        candidate = target_candidate(state, outcome, self._discovery.recheck(state).actions)
        admitted, url, decision = self._discovery.candidate(candidate)
        is_offsite = admitted is not None and host_of(admitted.site) != host_of(state.site)
        if admitted is not None and is_offsite and not self._collection.follows_offsite_redirects:
            self._discovery.forget(admitted.key)
            self._discovery.refused[Reason.OFFSITE_REDIRECT] += 1
            admitted, decision = None, replace(decision, reason=Reason.OFFSITE_REDIRECT, rule=None)
        if admitted is None:
            self._discovery.sample.note(decision.reason, url, candidate.href, decision.rule)
        if admitted is None and state.source is Source.USER:
            shown = url.text if url is not None else outcome.redirect_to or ""
            logger.warning("a start URL leads outside: %s", describe_refusal(Refused(state.url, f"its target {shown}", decision)))
        return admitted, decision.reason


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


def sitemap_candidate(url: Url) -> Candidate:
    return Candidate(url.text, SITEMAP_QUEUE.source, base_host_as_written=url.host_as_written, shift=SITEMAP_QUEUE.shift)


@dataclass(slots=True)
class LinkTarget:
    """The target of a link, independent of its page; without a URL if it is not admitted."""

    decision: Decision
    key: int = 0
    url: Url | None = None
    source: Source = Source.INDEX_FOLLOW
    counted: bool = False
    """Whether its refusal has been counted."""
    refused: Url | None = None
    """Its URL, if it is refused and that has not been counted."""


@dataclass(slots=True)
class Found:
    """The checked links of one page. `keys` are those of all admitted ones, `new` those that may be new to the store, or its depth.

    If the page passes on metadata, each of `new` has it, and `new` has one URL at least, known or not, so that the store gets it.
    """

    keys: Sequence[int]
    new: list[NewUrl]
    too_deep: Sequence[NewUrl] = ()
    """Links that are too deep, if the page passes on metadata, which applies to the known ones among them."""
    refused: dict[Reason, int] = field(default_factory=dict)
    """The number of its links that are refused, by reason."""
    gaps: Sequence[int] = ()
    """For each refused or too deep link, how many keys there are before it."""

    def by_key(self, values: Sequence[int]) -> dict[int, int]:
        """Return the values of the admitted links by key; `values` has one for each link, of which the largest counts."""
        found: dict[int, int] = {}
        skipped = Counter(self.gaps)
        left_out = 0
        for at, key in enumerate(self.keys):
            left_out += skipped[at]
            found[key] = max(found.get(key, 0), values[at + left_out])
        return found


class CandidateChecker:
    """Checks candidates; `refused` counts each refused link once, by reason, until the caller clears it."""

    def __init__(self, space: CrawlSpace, *, memory: int = 25_000) -> None:
        self._space = space
        self._targets: Recent[tuple[str, str], LinkTarget] = Recent(memory)
        self._known: Recent[int, int] = Recent(4 * memory)
        self._admitted: Recent[int, Decision] = Recent(memory)
        self.refused: Counter[Reason] = Counter()
        self.sample = RefusedSample()
        """For the page whose links are checked; the caller calls `begin` and `take`."""
        self._warned_of_length = False

    def links(
        self,
        hrefs: Sequence[str],
        *,
        base: str,
        base_host_as_written: str | None,
        depth: int,
        page: int = 0,
        inherited: str | None = None,
    ) -> Found:
        """Check the links of a page; `depth` is the page's plus one, `page` its id, `inherited` the metadata that it passes on."""
        if inherited is not None:
            inherited = self._fitting(inherited, base)
        known_one: tuple[Url, LinkTarget] | None = None
        folder, origin = _folder_and_origin(base)
        if base_host_as_written is not None:
            folder, origin = f"{folder} {base_host_as_written}", f"{origin} {base_host_as_written}"
        keys = array("q")
        new: list[NewUrl] = []
        too_deep: list[NewUrl] = []
        refused: dict[Reason, int] = {}
        gaps: list[int] = []
        known = self._known
        targets = self._targets
        deepest = self._space.limits.max_link_depth
        again = self.sample.reads_again
        for href in hrefs:
            scope = (origin if href[1:2] != "/" else folder) if href[:1] == "/" else folder
            place = scope, href
            target = targets.young.get(place) or targets.get(place)
            if target is None:
                target = self._resolve(href, base, base_host_as_written)
                if not _OF_THE_PAGE.match(href.strip(_SPACE).translate(_DROPPED)):
                    targets.put(place, target)
            url = target.url
            if url is None:
                reason = target.decision.reason
                refused[reason] = refused.get(reason, 0) + 1
                gaps.append(len(keys))
                if not target.counted or again:
                    self._note(target, href, base, base_host_as_written)
                continue
            if deepest is not None and depth > deepest:
                refused[Reason.LINK_DEPTH] = refused.get(Reason.LINK_DEPTH, 0) + 1
                gaps.append(len(keys))
                if not target.counted or again:
                    self._count(target, Reason.LINK_DEPTH)
                    self.sample.note(Reason.LINK_DEPTH, url, href)
                if inherited is not None:
                    too_deep.append(_new_url(url, target, depth=depth, redirects=0, source=None, inherited=inherited, page=page))
                continue
            keys.append(target.key)
            least = known.young.get(target.key) or known.get(target.key)
            if least is not None and least - 1 <= depth:
                if inherited is not None:
                    known_one = url, target
                continue
            known.put(target.key, depth + 1)  # plus one, so that no value is 0
            new.append(_new_url(url, target, depth=depth, redirects=0, source=None, inherited=inherited, page=page))
        if inherited is not None and known_one is not None:
            new.append(_new_url(*known_one, depth=depth, redirects=0, source=None, inherited=inherited, page=page))
        return Found(keys, new, too_deep, refused, gaps)

    def candidate(self, candidate: Candidate) -> tuple[NewUrl | None, Url | None, Decision]:
        """Check a single candidate: a start URL or a redirect target."""
        url, decision = self._space.decide(
            candidate.href, base=candidate.base, base_host_as_written=candidate.base_host_as_written, depth=candidate.depth
        )
        if url is None or not decision.admitted:
            self.refused[decision.reason] += 1
            return None, url, decision
        target = LinkTarget(decision, url.key, url)
        self._known.put(target.key, candidate.depth + 1)
        inherited = None if candidate.inherited is None else self._fitting(candidate.inherited, candidate.base)
        new = _new_url(
            url,
            target,
            depth=candidate.depth,
            redirects=candidate.redirects,
            source=candidate.source,
            inherited=inherited,
            page=candidate.depth_from,
        )
        if candidate.shift:
            new = structs.replace(new, shift=candidate.shift)
        return new, url, decision

    def judge(self, text: str) -> tuple[Url | None, Decision]:
        """Return the decision for an absolute URL, without inserting it."""
        return self._space.decide(text)

    def recheck(self, state: UrlState) -> Decision:
        """Return the decision for a stored URL by the present rules."""
        decision = self._admitted.get(state.key)
        if decision is None:
            decision = self._resolve(state.url, "", state.host_as_written).decision
        return self._space.at_depth(decision, state.depth, None)

    def is_known(self, key: int) -> bool:
        """Return whether the URL is cached as known to the store; if False, it may still be known."""
        return self._known.get(key) is not None

    def forget(self, key: int) -> None:
        """Remove a URL that the store no longer knows from the cache."""
        self._known.drop(key)

    def forget_known(self) -> None:
        """Clear the cache, because the store may have forgotten URLs."""
        self._known.clear()

    def _fitting(self, inherited: str, base: str) -> str | None:
        """Return the metadata that fits the limit; warn the first time that some is left out."""
        taken, left_out = fitting(inherited)
        if left_out and not self._warned_of_length:
            self._warned_of_length = True
            logger.warning(
                "%s has more fields from rules.xml than are inherited along links (%s characters): the pages it links to lack %s; "
                "the same may apply to other pages, for which this warning is not repeated in this run",
                base,
                f"{MAX_INHERITED:,}",
                ", ".join(left_out),
            )
        return taken

    def _note(self, target: LinkTarget, href: str, base: str, host_as_written: str | None) -> None:
        """Count a refused link, and note it for the sample."""
        decision = target.decision
        url, target.refused = target.refused, None
        if target.counted:
            url = self._space.decide(href, base=base, base_host_as_written=host_as_written)[0]
        self._count(target, decision.reason)
        self.sample.note(decision.reason, url, href, decision.rule)

    def _count(self, target: LinkTarget, reason: Reason) -> None:
        if not target.counted:
            target.counted = True
            self.refused[reason] += 1

    def _resolve(self, href: str, base: str, host_as_written: str | None) -> LinkTarget:
        url, decision = self._space.decide(href, base=base, base_host_as_written=host_as_written)
        if url is None or not decision.admitted:
            return LinkTarget(decision, refused=url)
        key = url_key(url.text)
        self._admitted.put(key, decision)
        return LinkTarget(decision, key, url, source_of(index=decision.index, follow=decision.follow))


class RefusedSample:
    """The refused links that this process has noted, by a hash of their URL."""

    def __init__(self) -> None:
        self.reads_again = False
        """The present page has entries from its last fetch: all of its refused links are noted again."""
        self._page = 0
        self._noted: dict[Reason, dict[str, set[int]]] = {reason: {} for reason in LETTERS}
        self._of_page: defaultdict[int, list[tuple[Reason, str, int]]] = defaultdict(list)
        self._new: list[RefusedLink] = []

    def begin(self, page: int) -> None:
        """Start with the links of the page with this id."""
        self._page, self._new = page, []
        before = self._of_page.pop(page, ())
        self.reads_again = bool(before)
        for reason, host, hashed in before:
            self._noted[reason][host].discard(hashed)

    def note(self, reason: Reason, url: Url | None, href: str, rule: RuleRef | None = None) -> None:
        """Note a refused link of the present page, if there is room. `url` is None where it is malformed."""
        host = "" if url is None else url.host
        if self._has_room(reason, host):
            self._add(reason, host, as_stored(url, href), None if rule is None else str(rule))

    def note_known(self, reason: Reason, url: NewUrl) -> None:
        """Note a link of the present page that the rules admit, and a limit refuses."""
        host = url.site.rpartition(":")[0]
        if self._has_room(reason, host):
            self._add(reason, host, cut(url.url, MAX_URL), None)

    def take(self) -> list[RefusedLink]:
        """Return what was noted of the present page."""
        new, self._new = self._new, []
        return new

    def _has_room(self, reason: Reason, host: str) -> bool:
        hosts = self._noted[reason]
        of_host = hosts.get(host)
        return len(hosts) < HOSTS_OF_REASON if of_host is None else len(of_host) < LINKS_OF_HOST

    def _add(self, reason: Reason, host: str, text: str, rule: str | None) -> None:
        of_host, hashed = self._noted[reason].setdefault(host, set()), hash(text)
        if hashed not in of_host:
            of_host.add(hashed)
            self._of_page[self._page].append((reason, host, hashed))
            self._new.append(RefusedLink(reason, host, text, self._page, rule))


def as_stored(url: Url | None, href: str) -> str:
    """Return a URL in normal form, except for the host, which is as written, because rules may depend on it. Without credentials."""
    if url is None or not url.host:
        return printable(href.strip() if url is None else url.text, most=MAX_URL)
    head = f"{url.scheme}://{url.host}"
    if url.host_as_written == url.host or not url.text.startswith(head):
        return cut(url.text, MAX_URL)
    return cut(f"{url.scheme}://{url.host_as_written}{url.text[len(head) :]}", MAX_URL)


class EndedUrls:
    """The forgotten URLs of one run; without `run_ends`, the run is continuous and forgets none. `starts` are the start URLs."""

    def __init__(self, discovery: CandidateChecker, *, run_ends: bool, starts: Iterable[Url]) -> None:
        self._discovery = discovery
        self._starts = frozenset[str]() if run_ends else frozenset(url.text for url in starts)
        self._keys: Recent[int, int] | None = Recent(_MOST_FORGOTTEN) if run_ends else None

    def follow(self, change: Change, *, policy: RecrawlPolicy, now: int) -> Change:
        """Record a URL that is to be forgotten, and return the change to make.

        The store may insert it again, by a link on a page of the same batch, or of another worker.
        """
        if not change.forget:
            return change
        if change.state.url in self._starts:
            return replace(change, state=remembered(change.state, policy=policy, now=now), links=(), forget=False)
        self._discovery.forget(change.state.key)
        if self._keys is not None:
            self._keys.put(change.state.key, 1)
        return change

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Forget a leased URL again if a link has inserted it; return whether it was."""
        if (
            self._keys is None
            or state.state is not State.PENDING
            or state.source is Source.USER
            or self._keys.get(state.key) is None
        ):
            return False
        changes.append(Change(state, forget=True))
        return True


def _new_url(
    url: Url, target: LinkTarget, *, depth: int, redirects: int, source: Source | None, inherited: str | None, page: int
) -> NewUrl:
    written = url.host_as_written if url.host_as_written != url.host else None
    return NewUrl(
        key=target.key,
        url=url.text,
        site=url.site,
        source=target.source if source is None else source,
        shift=target.decision.shift,
        depth=depth,
        redirects=redirects,
        rank=rank_of(redirects, url.text),
        host_as_written=written,
        inherited=inherited,
        depth_from=page,
    )


def _folder_and_origin(base: str) -> tuple[str, str]:
    """Return folder and origin: `http://h/a/b?c` -> (`http://h/a/`, `http://h`)."""
    start = base.find("/", base.find("://") + 3)
    if start < 0:
        return base + "/", base
    end = len(base)
    for mark in "?#":
        at = base.find(mark, start)
        if 0 <= at < end:
            end = at
    return base[: base.rfind("/", 0, end) + 1], base[:start]
