"""Metadata that URLs inherit from the pages that link to them: the decisions that all stores share, as pure functions.

All URLs that a page links to, except itself, inherit one JSON object of fields. The first page that links to a URL with metadata is its
source page, until a later fetch of that same page changes this: its metadata is different, it does not link there any more, or it is gone.
Only then another page becomes the source page, at its next fetch. So two pages with different metadata for one URL do not alternate.

A document that was stored before its inherited metadata changed is due at once, but not twice a day under the same rules: otherwise pages
whose links differ from one fetch to the next would keep a crawl running for ever.
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
    """The metadata of a page from now on, and the keys of the URLs that inherit it."""

    links: Sequence[int]
    link_metadata: str | None


NO_LINK_METADATA = LinkMetadataChange((), None)


def link_metadata_change_of(change: Change) -> LinkMetadataChange | None:
    """Return what changes for the URLs that inherit from the page of a change; None where nothing does.

    A page with noindex may be a source page, one outside the crawl space may not. Where a change of the rules excludes many pages,
    `drop_inherited` removes it for all of them at once."""
    if change.forget:
        return NO_LINK_METADATA
    if change.links is not None:
        return LinkMetadataChange(change.links, change.link_metadata)
    state = change.state
    if state.state is State.REDIRECTED or (state.state is State.EXCLUDED and state.status != Status.NOINDEX):
        return NO_LINK_METADATA
    return None


def repeats(change: Change) -> bool:
    """Whether a page was found unchanged: its links inherit what they inherited before."""
    state = change.state
    incarnation = state.state is State.DONE or (state.state is State.EXCLUDED and state.status == Status.NOINDEX)
    return incarnation and state.rules > 0 and change.links is None


def shows_other(fields: Mapping[str, str], before: str | None, inherited: str | None) -> bool:
    """Whether a document with these fields, made while its URL inherited `before`, would have others with what it inherits now.

    A field that is neither missing nor as it was inherited is the document's own: it stays, whatever is inherited.
    """
    old, new = unpacked(before), unpacked(inherited)
    if any(name not in fields or fields[name] == old.get(name) != value for name, value in new.items()):
        return True
    return any(name not in new and fields.get(name) == value for name, value in old.items())


def due_at(now: int, rules: int, last: int | None, fetched_at: int | None) -> tuple[int, int | None]:
    """Return when a URL is fetched again because its inherited metadata changed, and its mark from then on.

    `rules` is the generation of rules of the source page; `last` is the mark of the last time, which stays if that was the same day.
    """
    mark = (now // DAY_S << _RULES_BITS) + rules
    return (at_once(now, fetched_at), mark) if last is None or mark > last else ((now // DAY_S + 1) * DAY_S, last)


def unpacked(inherited: str | None) -> dict[str, str]:
    return json.loads(inherited) if inherited else {}
