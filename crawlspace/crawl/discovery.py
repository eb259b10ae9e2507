"""From a page's links to admitted, unknown URLs: the hottest path of the crawl.

The links of a site repeat from page to page, so what a link means is remembered: first from the text of the link, seen from one folder,
to the URL and its decision; then from the URL to the smallest depth at which the store already knows it. Both memories are bounded,
and forgetting something costs time, never correctness: the store itself knows what is known.
"""

from __future__ import annotations

import logging
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from crawlspace.cache import Recent
from crawlspace.crawl.inherited_metadata import MOST_HANDED, fitting
from crawlspace.decision import Decision, Reason
from crawlspace.model import Candidate, NewUrl, Source, UrlState, source_of
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import Url, url_key

logger = logging.getLogger(__name__)

_OF_THE_PAGE = re.compile(r"(?:https?:)?(?:[?#]|$)", re.IGNORECASE)
"""Begins a link that means the whole base, not its folder; a scheme without a host says nothing where it is the page's own."""
_SPACE = "".join(map(chr, range(0x21)))
"""URL parsers drop these at both ends of a link, and the next ones anywhere in it (WHATWG URL Standard, "basic URL parser")."""
_DROPPED = dict.fromkeys(map(ord, "\t\n\r"))


@dataclass(slots=True)
class Target:
    """What a link leads to, whatever page it stands on; without a URL where that is not admitted."""

    decision: Decision
    key: int = 0
    url: Url | None = None
    source: Source = Source.INDEX_FOLLOW
    counted: bool = False
    """Its refusal has been counted."""


@dataclass(slots=True)
class Found:
    """The links of one page, checked. `keys` are those of all admitted ones, `new` those the store may not know yet or not so near.

    Where the page hands anything, each of `new` carries it, and there is one at least, known or not: so the store learns of it.
    """

    keys: Sequence[int]
    new: list[NewUrl]
    depth_refused: bool = False
    """A link was left out for the link depth alone."""
    too_deep: Sequence[NewUrl] = ()
    """Those links, where the page passes metadata on: it is for those that are known."""


class Discovery:
    """Checks candidates; `refused` counts each refused link once, by reason, for whoever takes it."""

    def __init__(self, space: CrawlSpace, *, memory: int = 25_000) -> None:
        self._space = space
        self._targets: Recent[tuple[str, str], Target] = Recent(memory)
        self._known: Recent[int, int] = Recent(4 * memory)
        self._admitted: Recent[int, Decision] = Recent(memory)
        self.refused: Counter[Reason] = Counter()
        self._told_of_too_many = False

    def links(
        self, hrefs: Sequence[str], *, base: str, base_host_as_written: str | None, depth: int, inherited: str | None = None
    ) -> Found:
        """Check the links of a page at `base` that lie at `depth` (the page's own plus one); `handed` is what the page hands along."""
        if inherited is not None:
            inherited = self._fitting(inherited, base)
        known_one: tuple[Url, Target] | None = None
        folder, origin = _folder_and_origin(base)
        if base_host_as_written is not None:
            folder, origin = f"{folder} {base_host_as_written}", f"{origin} {base_host_as_written}"
        keys = array("q")
        new: list[NewUrl] = []
        depth_refused = False
        too_deep: list[NewUrl] = []
        known = self._known
        targets = self._targets
        deepest = self._space.limits.max_link_depth
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
                if not target.counted:
                    target.counted = True
                    self.refused[target.decision.reason] += 1
                continue
            if deepest is not None and depth > deepest:
                depth_refused = True
                if not target.counted:
                    target.counted = True
                    self.refused[Reason.LINK_DEPTH] += 1
                if inherited is not None:
                    too_deep.append(_new_url(url, target, depth=depth, redirects=0, source=None, inherited=inherited))
                continue
            keys.append(target.key)
            least = known.young.get(target.key) or known.get(target.key)
            if least is not None and least - 1 <= depth:
                if inherited is not None:
                    known_one = url, target
                continue
            known.put(target.key, depth + 1)  # one more, so that no value is 0
            new.append(_new_url(url, target, depth=depth, redirects=0, source=None, inherited=inherited))
        if inherited is not None and known_one is not None:
            new.append(_new_url(*known_one, depth=depth, redirects=0, source=None, inherited=inherited))
        return Found(keys, new, depth_refused, too_deep)

    def candidate(self, candidate: Candidate) -> tuple[NewUrl | None, Url | None, Decision]:
        """Check one candidate by itself: a start URL or a redirect target."""
        url, decision = self._space.decide(
            candidate.href, base=candidate.base, base_host_as_written=candidate.base_host_as_written, depth=candidate.depth
        )
        if url is None or not decision.admitted:
            self.refused[decision.reason] += 1
            return None, url, decision
        target = Target(decision, url.key, url)
        self._known.put(target.key, candidate.depth + 1)
        inherited = None if candidate.inherited is None else self._fitting(candidate.inherited, candidate.base)
        new = _new_url(
            url, target, depth=candidate.depth, redirects=candidate.redirects, source=candidate.source, inherited=inherited
        )
        if candidate.shift:
            new = structs.replace(new, shift=candidate.shift)
        return new, url, decision

    def judge(self, text: str) -> tuple[Url | None, Decision]:
        """The decision for an absolute URL that is not to be entered."""
        return self._space.decide(text)

    def recheck(self, state: UrlState) -> Decision:
        """The decision for a stored URL, by the rules as they are now."""
        decision = self._admitted.get(state.key)
        if decision is None:
            decision = self._resolve(state.url, "", state.host_as_written).decision
        return self._space.at_depth(decision, state.depth, None)

    def is_known(self, key: int) -> bool:
        """Whether the store is remembered to know that URL; False where it may all the same."""
        return self._known.get(key) is not None

    def forget(self, key: int) -> None:
        """The store does not know that URL any more."""
        self._known.drop(key)

    def forget_known(self) -> None:
        """The store may know less than is remembered here."""
        self._known.clear()

    def _fitting(self, inherited: str, base: str) -> str | None:
        """What the page at `base` may hand along; the first time that is not all, it is said."""
        taken, left_out = fitting(inherited)
        if left_out and not self._told_of_too_many:
            self._told_of_too_many = True
            logger.warning(
                "%s has more fields from rules.xml than are inherited along links (%s characters): where it leads, documents lack %s; "
                "so it may be with other pages, which is not said again in this run",
                base,
                f"{MOST_HANDED:,}",
                ", ".join(left_out),
            )
        return taken

    def _resolve(self, href: str, base: str, host_as_written: str | None) -> Target:
        url, decision = self._space.decide(href, base=base, base_host_as_written=host_as_written)
        if url is None or not decision.admitted:
            return Target(decision)
        key = url_key(url.text)
        self._admitted.put(key, decision)
        return Target(decision, key, url, source_of(index=decision.index, follow=decision.follow))


def _new_url(url: Url, target: Target, *, depth: int, redirects: int, source: Source | None, inherited: str | None) -> NewUrl:
    written = url.host_as_written if url.host_as_written != url.host else None
    return NewUrl(
        key=target.key,
        url=url.text,
        site=url.site,
        source=target.source if source is None else source,
        shift=target.decision.shift,
        depth=depth,
        redirects=redirects,
        path_length=len(url.text) - url.text.index("/", 8),  # the query counts: of two equal pages the plain one is the better
        host_as_written=written,
        inherited=inherited,
    )


def _folder_and_origin(base: str) -> tuple[str, str]:
    """`http://h/a/b?c` -> (`http://h/a/`, `http://h`)."""
    start = base.find("/", base.find("://") + 3)
    if start < 0:
        return base + "/", base
    end = len(base)
    for mark in "?#":
        at = base.find(mark, start)
        if 0 <= at < end:
            end = at
    return base[: base.rfind("/", 0, end) + 1], base[:start]
