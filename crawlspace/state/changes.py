"""Changes of URLs that are written to a store, and the effects of a batch of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crawlspace.document import Document
from crawlspace.model import Held, NewUrl, Queue, Requester, State, UrlState
from crawlspace.state.refused_links import RefusedLink

NOWHERE = 0
"""No location in an archive."""


class Fetch(NamedTuple):
    """The fetch that a change follows from, as the events of a run have it."""

    shows_document: bool
    """The page has a document, a new one or that of the last fetch."""
    took_s: float | None
    body_bytes: int


@dataclass(slots=True)
class Change:
    """The effect of one outcome, which is written atomically.

    `state` replaces the stored row of that id, including `held` and `held_mark`, except for constant and computed fields (`FOUND` and
    `COMPUTED` in `fields.py`), `archived`, and the depth, of which the smaller one is kept. `state.checksum` decides whether the document
    belongs in the index, and in which group: None removes it; a new checksum needs its `document`, and so does a new `canonical` or `simhash`.
    Without a document the stored checksum, canonical and simhash stay.
    """

    state: UrlState
    document: Document | None = None
    """The document, if it is new or changed and must be pushed. None: the stored one stays."""
    links: Sequence[int] | None = None
    """Keys of all admitted URLs that the page links to; None where the stored ones stay.

    For a redirected URL: its target, which has the same depth. Links alone lower no depth: a URL whose depth may be lower now is among
    `discovered`."""
    discovered: Sequence[NewUrl] = ()
    forget: bool = False
    """Remove the URL; `state` only names it. Its document is deleted from the index."""
    keep_in_index: bool = False
    """The document leaves this collection but not the index, because another collection has it: no delete order is given, and a waiting order
    of the URL stays.

    The store remembers this until a later change of the URL ends it (`stays_in_index` in `duplicates.py`); then the document is deleted, unless
    it is pushed. Ignored for a URL that is forgotten."""

    refused_links: Sequence[RefusedLink] = ()
    """Its refused links for the sample; only with `links`, and where `state.refused` counts them."""
    archived: int | None = None
    """The location of new records of the URL in the archive; None: the stored one stays; NOWHERE: it has none any more."""
    together_with: int | None = None
    """Id of a URL whose change is recorded in the same batch before this one. A worker that has lost that URL changes neither."""
    before: UrlState | None = field(default=None, compare=False)
    """The state before; None where the change concerns no document, or forgets a URL that is as `state` has it."""
    fetch: Fetch | None = field(default=None, compare=False)
    """None where another URL was fetched, or none."""

    @property
    def link_metadata(self) -> str | None:
        """The metadata that all of `links` inherit from the page, a JSON object: each of `discovered` carries it, and there is at least one."""
        return self.discovered[-1].inherited if self.discovered else None

    @property
    def drops_refused_links(self) -> bool:
        """Whether entries of the page in the sample are out of date."""
        return self.forget or self.links is not None or self.state.refused is None


@dataclass(slots=True)
class Effects:
    """The effects of a batch of changes, for the frontier and the counters."""

    discovered: int = 0
    """URLs inserted."""
    ids: dict[str, int] = field(default_factory=dict, compare=False)
    """Their ids by URL; a store may leave some out, which callers must look up."""
    pending_sites: dict[str, int] = field(default_factory=dict)
    """New pending URLs by site: inserted ones, and those that a change made pending again. 0 for a site of which known URLs only moved to
    another queue."""
    lowered: list[tuple[int, int, int]] = field(default_factory=list)
    """(id, old depth, new depth) of crawled URLs whose depth is lower now, by id.

    One whose depth was lowered while it was fetched is reported when its outcome is recorded: its links were checked with the old depth."""
    due: list[tuple[str, Queue, int]] = field(default_factory=list)
    """(site, queue, time) of known URLs that are due sooner than before, because their inherited metadata changed."""
    pushes: int = 0
    """Orders given to each sink, at most one a URL."""
    deletes: int = 0
    displaced: int = 0
    """Documents that left the index because another page represents their group now."""


@dataclass(slots=True)
class Reclassified:
    """Ids of URLs by the effect of a rule change; an id is in one list at most."""

    excluded: Sequence[int] = ()
    """Become excluded with status 760 and are never due; their documents leave the index."""
    given_up: Sequence[int] = ()
    """Become excluded with status 761 and are never due; their documents stay in the index for another collection
    (see `Change.keep_in_index`)."""
    held: Sequence[int] = ()
    """Stay as they are, held for Held.RULES, and are never due."""
    returned: Sequence[int] = ()
    """Those with status 760 or 761 become pending as if they were new; the others are held no longer and are due at once,
    with an unconditional GET (`rules` 0)."""
    unindexed: Sequence[int] = ()
    """Become excluded with status 2004 and are due at once, for their links; their documents leave the index."""
    held_unindexed: Sequence[int] = ()
    """As `held`; when the deletion is approved they become as `unindexed`."""
    forgotten: Sequence[int] = ()
    """Are removed; their documents leave the index."""
    held_folded: Sequence[int] = ()
    """As `held`, for Held.FOLDED; their documents stay in their groups."""
    due: Sequence[int] = ()
    """Known URLs that are due at once, with an unconditional GET, unless they are pending or never due."""
    moved: Sequence[tuple[int, Queue]] = ()
    """Ids with their new source and shift; they may be in another list, too."""


Values = Mapping[str, int | None]
"""Values that a change of the rules writes to many URLs at once, by field of UrlState."""

EXCLUDED: Values = {
    "state": State.EXCLUDED,
    "next_fetch": None,
    "interval_s": None,
    "retries": 0,
    "errors": 0,
    "lease_until": None,
    "etag": None,
    "last_modified": None,
    "checksum": None,
    "canonical": None,
    "simhash": None,
    "held": None,
    "held_mark": 0,
    "requested_by": Requester.NOBODY,
    "fields_mark": 0,
    "refused": None,
    "detail": None,
}
"""With its status. No data of the page is kept; it is never due, except for its links (DUE)."""
DUE: Values = {"rules": 0}
"""With `next_fetch`: the next GET is unconditional."""
HELD: Values = {"held": Held.RULES, "next_fetch": None, "retries": 0}
"""With `held_mark`. Other fields stay."""
HELD_FOLDED: Values = {**HELD, "held": Held.FOLDED}
"""The same for a URL that is folded into another one."""
NOT_HELD: Values = {"held": None, "held_mark": 0}
PENDING_AGAIN: Values = {**NOT_HELD, **DUE, "state": State.PENDING, "status": None, "next_fetch": None, "interval_s": None}
"""A URL that was outside the crawl space."""
