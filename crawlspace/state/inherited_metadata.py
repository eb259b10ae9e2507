"""What pages hand to the URLs they lead to: what every store must agree on, as plain functions.

A page hands one JSON object to all URLs it leads to, but to itself. The first page that hands anything to a URL is the one whose word
holds there, until a later fetch of that same page says otherwise: it hands something else, leads there no more, or is gone. Only then
another page's word counts, from its next fetch on. So two pages that hand different fields to one URL do not take turns.

A document that was stored before what is handed to its URL changed is due at once, but not twice on a day under the same rules: pages
whose links differ from one fetch to the next would else keep a crawl going for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawlspace.model import State, Status
from crawlspace.state.changes import Change
from crawlspace.state.once_a_run import at_once

DAY_S = 86_400
_RULES_BITS = 24


class LinkMetadataChange(NamedTuple):
    """What a page hands from now on, and to the URLs with which keys."""

    links: Sequence[int]
    link_metadata: str | None


NO_LINK_METADATA = LinkMetadataChange((), None)


def link_metadata_change_of(change: Change) -> LinkMetadataChange | None:
    """Return what a change says of what its page hands; None where it says nothing of it.

    A page that is not to be indexed may lead on, one that is outside the crawl space may not. Where a change of the rules excludes
    many pages, `drop_handed` takes it back for all of them at once."""
    if change.forget:
        return NO_LINK_METADATA
    if change.links is not None:
        return LinkMetadataChange(change.links, change.link_metadata)
    state = change.state
    if state.state is State.REDIRECTED or (state.state is State.EXCLUDED and state.status != Status.NOINDEX):
        return NO_LINK_METADATA
    return None


def repeats(change: Change) -> bool:
    """Whether a page has been found as it was: then it hands again what it handed, to the links it had."""
    state = change.state
    incarnation = state.state is State.DONE or (state.state is State.EXCLUDED and state.status == Status.NOINDEX)
    return incarnation and state.rules > 0 and change.links is None


def shows_other(fields: Mapping[str, str], before: str | None, inherited: str | None) -> bool:
    """Whether a document with these fields, made while `before` was handed to its URL, would have others with what is handed now.

    A field that is neither missing nor as it was handed is the URL's own: it stays, whatever is handed.
    """
    old, new = unpacked(before), unpacked(inherited)
    if any(name not in fields or fields[name] == old.get(name) != value for name, value in new.items()):
        return True
    return any(name not in new and fields.get(name) == value for name, value in old.items())


def due_at(now: int, rules: int, last: int | None, fetched_at: int | None) -> tuple[int, int | None]:
    """Return when a URL is to be fetched again for what is handed to it, and its mark from then on.

    `rules` is the generation under which that was said; `last` is the mark of the last time, which stays where that is not long ago.
    """
    mark = (now // DAY_S << _RULES_BITS) + rules
    return (at_once(now, fetched_at), mark) if last is None or mark > last else ((now // DAY_S + 1) * DAY_S, last)


def unpacked(inherited: str | None) -> dict[str, str]:
    return json.loads(inherited) if inherited else {}
