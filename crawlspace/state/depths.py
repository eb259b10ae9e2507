"""Link depths in a store, and the values written when they are settled (`crawl/depths/settlement.py`).

A URL keeps the page that gave it its depth (`UrlState.depth_from`). When that page loses the link or is deleted,
or when a forgotten URL is found again at a larger depth, the store marks its key: its depth may be wrong.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from crawlspace.model import State
from crawlspace.status import LINKS_ONLY

ANY_PAGE = 0
"""Value of `DepthMark.page`: the mark does not depend on the page that gave the depth."""

LOWERED = "depths_lowered"
"""Meta: written in each transaction that lowers the depth of URLs that were crawled (`Effects.lowered`). Their links follow in another
transaction; the next start completes it after a kill between the two, and removes the note."""


class DepthMark(NamedTuple):
    """Why the depth of a URL may be wrong."""

    page: int
    """The page that does not link to it any more; the mark is obsolete if another page gives the depth. ANY_PAGE: see `depth`."""
    depth: int = -1
    """With ANY_PAGE: the depth that it had when it was forgotten; a larger one may be wrong."""

    def concerns(self, depth: int, depth_from: int) -> bool:
        """Return whether a URL with that depth, given by that page, must be settled."""
        return depth > self.depth if self.page == ANY_PAGE else depth_from == self.page


def merged(before: DepthMark | None, mark: DepthMark) -> DepthMark:
    """Return the combination of an existing mark with a new one, which keeps all reasons for doubt."""
    if before is None or before.page != ANY_PAGE:
        return mark
    return DepthMark(ANY_PAGE, min(before.depth, mark.depth) if mark.page == ANY_PAGE else -1)


class UrlDepth(NamedTuple):
    """The depth of a URL, and the values that it depends on."""

    id: int
    key: int
    state: int
    status: int | None
    depth: int
    depth_from: int
    orphaned: int | None
    has_document: bool
    folded: bool
    """Whether it is folded into another URL that its document waits for (`Held.FOLDED`), and that has its links."""

    @property
    def leads_on(self) -> bool:
        """Whether its links count."""
        return leads_on(self.state, self.status) and not self.folded


class PageLinks(NamedTuple):
    """A page whose links count, and the keys that it links to."""

    id: int
    reach: int
    """The depth of its links."""
    targets: array[int]


class NewDepth(NamedTuple):
    """The new depth of a URL. It is written only if the URL is not leased, and `depth_before` is still its depth."""

    id: int
    depth_before: int
    depth: int
    depth_from: int
    orphaned: int | None
    """As in UrlState."""


LEADING = frozenset({State.PENDING, State.DONE, State.REDIRECTED, State.FAILED})

UNANSWERED = frozenset({State.FAILED, State.PENDING})
"""States of URLs whose last request, if any, has failed: they have the links of an earlier answer."""


def leads_on(state: int, status: int | None) -> bool:
    """Return whether the stored links of a URL count: not if it is gone, forbidden, or outside the crawl space."""
    return state in LEADING or (state == State.EXCLUDED and status in LINKS_ONLY)


def leads_again(before: int, status_before: int | None, now: int, status: int | None) -> bool:
    """Return whether the links of a URL count again: it may give them a smaller depth than any other page."""
    return leads_on(now, status) and not leads_on(before, status_before)


def may_redirect(state: int, *, has_document: bool) -> bool:
    """Return whether a URL is a redirect, or may have been one before it failed or was excluded, and has not answered since."""
    return state == State.REDIRECTED or (state in UNANSWERED and not has_document)


def is_deeper(before: int, now: int, *, had_document: bool) -> bool:
    """Return whether the links of a URL are deeper in the second state: a redirect has become a page."""
    return may_redirect(before, has_document=had_document) and now != State.REDIRECTED and now not in UNANSWERED


def reach_of(depth: int, state: int) -> int:
    """Return the depth of a URL's links: a redirect adds nothing."""
    return depth if state == State.REDIRECTED else depth + 1


def least_reach(depth: int, state: int, *, has_document: bool) -> int:
    """Return the same for a settlement. A site that is down must not increase depths; URLs for which `is_deeper` are found again."""
    return depth if may_redirect(state, has_document=has_document) else depth + 1
