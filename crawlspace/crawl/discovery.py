"""Convert a page's links to admitted, unknown URLs: the hottest path of the crawl.

The links of a site repeat from page to page, so two bounded caches are used: from the text of a link, within a folder, to its URL
and decision; and from a URL to the smallest depth with which the store knows it. A missing entry costs time only, because the
store has the known URLs.
"""

from __future__ import annotations

import logging
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import structs

from crawlspace.cache import Recent
from crawlspace.crawl.inherited_metadata import MAX_INHERITED, fitting
from crawlspace.crawl.refused_sample import RefusedSample
from crawlspace.decision import Decision, Reason
from crawlspace.model import Candidate, NewUrl, Source, UrlState, source_of
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.duplicates import rank_of
from crawlspace.urls import Url, url_key

logger = logging.getLogger(__name__)

_OF_THE_PAGE = re.compile(r"(?:https?:)?(?:[?#]|$)", re.IGNORECASE)
"""The beginning of a link relative to the whole base, not its folder, with or without the page's own scheme."""
_SPACE = "".join(map(chr, range(0x21)))
"""URL parsers remove these at both ends of a link, and the next ones anywhere in it (WHATWG URL Standard, "basic URL parser")."""
_DROPPED = dict.fromkeys(map(ord, "\t\n\r"))


@dataclass(slots=True)
class LinkTarget:
    """The target of a link, independent of its page; without a URL if it is not admitted."""

    decision: Decision
    key: int = 0
    url: Url | None = None
    source: Source = Source.INDEX_FOLLOW
    counted: bool = False
    """Its refusal has been counted."""
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
    """Those links, if the page passes on metadata, which applies to the known ones among them."""
    refused: dict[Reason, int] = field(default_factory=dict)
    """The number of its links that are refused, by reason."""


class CandidateChecker:
    """Checks candidates; `refused` counts each refused link once, by reason, until the caller clears it."""

    def __init__(self, space: CrawlSpace, *, memory: int = 25_000) -> None:
        self._space = space
        self._targets: Recent[tuple[str, str], LinkTarget] = Recent(memory)
        self._known: Recent[int, int] = Recent(4 * memory)
        self._admitted: Recent[int, Decision] = Recent(memory)
        self.refused: Counter[Reason] = Counter()
        self.sample = RefusedSample()
        """For the page of which `links` are checked; its user begins and takes it."""
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
                if not target.counted or again:
                    self._note(target, href, base, base_host_as_written)
                continue
            if deepest is not None and depth > deepest:
                refused[Reason.LINK_DEPTH] = refused.get(Reason.LINK_DEPTH, 0) + 1
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
        return Found(keys, new, too_deep, refused)

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
        """Return the decision for an absolute URL that is not to be inserted."""
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
