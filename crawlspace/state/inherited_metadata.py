"""Metadata that URLs inherit from the pages that link to them: pure functions over stored data make all decisions.

All URLs that a page links to, except itself, inherit one JSON object of fields. The first page that links to a URL with metadata is its
source page, until a later fetch of that page changes this: its metadata is different, it does not link there any more, or it is gone.
Only then another page becomes the source page, at its next fetch. So two pages with different metadata for one URL do not alternate.

A document that was stored before its inherited metadata changed is due at once, but not twice a day under the same rules: otherwise pages
whose links differ from one fetch to the next would keep a crawl running for ever.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from crawlspace.document import STANDARD_FIELDS
from crawlspace.model import State, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.due_times import at_once
from crawlspace.status import LINKS_ONLY, OUT_OF_SPACE

DAY_S = 86_400
_RULES_BITS = 24


class LinkMetadataChange(NamedTuple):
    """The new metadata of a page, and the keys of the URLs that inherit it."""

    links: Sequence[int]
    link_metadata: str | None


NO_LINK_METADATA = LinkMetadataChange((), None)


@dataclass(slots=True)
class RecordedPage:
    """The changes of one page in a batch, combined."""

    id: int
    key: int
    rules: int = 0
    """The generation of rules of its last fetch."""
    change: LinkMetadataChange | None = None
    """The change for URLs that inherit from it; None without one."""
    is_unchanged: bool = False
    """It was fetched and is unchanged: its links inherit the same as before."""
    fetched_with: str | None = None
    """Metadata inherited when it was leased."""
    forgotten: bool = False


class InheritingUrl(NamedTuple):
    """A URL with its inherited metadata; `source_page` is an id or None."""

    id: int
    key: int
    inherited: str | None
    source_page: int | None


class StoredDocument(NamedTuple):
    """A URL with the fields of its document; `mark` encodes when it was last due because of inherited metadata (`due_at`)."""

    state: UrlState
    fields: Mapping[str, str]
    mark: int | None


class StoredMetadata(Protocol):
    """Inherited metadata in a store, before a batch. Ids that are not stored are left out."""

    def link_metadata(self, pages: Collection[int]) -> Mapping[int, str]:
        """Return the metadata that links of pages inherit, for those that have any."""

    def links(self, pages: Collection[int]) -> Mapping[int, Sequence[int]]:
        """Return the keys that pages link to."""

    def inherited(self, ids: Collection[int]) -> Mapping[int, str | None]: ...

    def with_source(self, pages: Collection[int]) -> Iterable[InheritingUrl]:
        """Yield the URLs that have one of these as their source page."""

    def without_source(self, keys: Collection[int]) -> Iterable[InheritingUrl]:
        """Yield the URLs with these keys that have no source page."""

    def documents(self, ids: Collection[int]) -> Iterable[StoredDocument]: ...


class DueAgain(NamedTuple):
    state: UrlState
    """As it was."""
    at: int
    mark: int | None
    """None: as it was."""


@dataclass(slots=True)
class MetadataChanges:
    """The changes that a store writes."""

    link_metadata: dict[int, str | None] = field(default_factory=dict)
    """By id of the page; None removes it."""
    inherited: dict[int, tuple[InheritingUrl, InheritingUrl]] = field(default_factory=dict)
    """URLs before and after, by id."""
    due: list[DueAgain] = field(default_factory=list)

    def add_to(self, effects: Effects) -> None:
        effects.due += [(one.state.site, one.state.queue, one.at) for one in self.due if one.mark is not None]


class _Outdated(NamedTuple):
    """Metadata that a URL inherited when its document was stored, and the generation of rules under which it has changed."""

    before: str | None
    rules: int


def recorded_pages(changes: Iterable[Change], keys: Mapping[int, int]) -> list[RecordedPage]:
    """Combine the changes of each page, in order. `keys` are those of the stored URLs, by id; changes of others are left out."""
    pages: dict[int, RecordedPage] = {}
    for change in changes:
        state = change.state
        key = keys.get(state.id)
        if key is None:
            continue
        page = pages.setdefault(state.id, RecordedPage(state.id, key))
        if page.forgotten:
            continue
        page.change = link_metadata_change_of(change) or page.change
        page.is_unchanged, page.forgotten = _is_unchanged(change), change.forget
        page.rules, page.fetched_with = state.rules, state.inherited
    return list(pages.values())


def link_metadata_change_of(change: Change) -> LinkMetadataChange | None:
    """Return the change for URLs that inherit from the page of a change; None without one.

    A page with noindex may be a source page, one outside the crawl space may not. If a change of the rules excludes many pages,
    `dropped` removes it for all of them at once."""
    if change.forget:
        return NO_LINK_METADATA
    if change.links is not None:
        metadata = change.link_metadata
        return NO_LINK_METADATA if metadata is None else LinkMetadataChange(change.links, metadata)
    state = change.state
    if state.state is State.REDIRECTED or (state.state is State.EXCLUDED and state.status not in LINKS_ONLY):
        return NO_LINK_METADATA
    return None


def metadata_changes(pages: Sequence[RecordedPage], stored: StoredMetadata, *, now: int) -> MetadataChanges:
    """Return the changes of inherited metadata, and the documents due because of them, after a batch was recorded."""
    changes = MetadataChanges()
    outdated: dict[int, _Outdated] = {}
    before = stored.link_metadata([page.id for page in pages])
    for page in pages:
        if page.change is not None and page.change.link_metadata != before.get(page.id):
            changes.link_metadata[page.id] = page.change.link_metadata

    def inherit(url: InheritingUrl, metadata: str | None, page: RecordedPage) -> None:
        now_is = url._replace(inherited=metadata, source_page=None if metadata is None else page.id)
        was = changes.inherited.get(url.id, (url, url))[0]
        changes.inherited[url.id] = was, now_is
        if metadata != url.inherited:
            outdated[url.id] = _Outdated(was.inherited, page.rules)

    changed = {page.id: page for page in pages if page.change is not None and page.id in before}
    reached = {id: frozenset(page.change.links) for id, page in changed.items() if page.change is not None}
    for url in stored.with_source(changed) if changed else ():
        page = changed[url.source_page or 0]
        metadata = page.change.link_metadata if page.change is not None and url.key in reached[page.id] else None
        if metadata is None or metadata != url.inherited:
            inherit(url, metadata, page)

    offers = _offers(pages, before, stored)
    freed = [url for _, url in changes.inherited.values() if url.source_page is None and url.key in offers]
    for url in (*freed, *(stored.without_source(offers) if offers else ())):
        metadata, page = offers[url.key]
        inherit(url, metadata, page)

    inherited = stored.inherited([page.id for page in pages if not page.forgotten])
    for page in pages:
        if not page.forgotten and page.id in inherited and inherited[page.id] != page.fetched_with:
            outdated[page.id] = _Outdated(page.fetched_with, page.rules)
    for document in stored.documents(sorted(outdated)) if outdated else ():
        changed_url = changes.inherited.get(document.state.id)
        metadata = document.state.inherited if changed_url is None else changed_url[1].inherited
        due = _due_again(document, outdated[document.state.id], metadata, now)
        if due is not None:
            changes.due.append(due)
    return changes


def dropped(urls: Iterable[InheritingUrl], source_pages: Mapping[int, int | None], stored: StoredMetadata) -> MetadataChanges:
    """Return the changes when these URLs lose metadata without a source page, or with one that the rules exclude.

    `source_pages` has the status of each stored source page. Documents with the metadata are due since their last fetch."""
    changes = MetadataChanges()
    for url in urls:
        if url.inherited is not None and (
            url.source_page is None or url.source_page not in source_pages or source_pages[url.source_page] in OUT_OF_SPACE
        ):
            changes.inherited[url.id] = url, url._replace(inherited=None, source_page=None)
    for state, _, _ in stored.documents(sorted(changes.inherited)) if changes.inherited else ():
        if (
            may_be_due(state)
            and state.fetched_at is not None
            and state.next_fetch is not None
            and state.fetched_at < state.next_fetch
        ):
            changes.due.append(DueAgain(state, state.fetched_at, None))
    return changes


def shows_other(fields: Mapping[str, str], before: str | None, inherited: str | None) -> bool:
    """Return whether a document with these fields, stored while its URL inherited `before`, would differ with its present inheritance.

    A field that is neither missing nor inherited is the document's own and always stays.
    """
    old, new = unpacked(before), unpacked(inherited)
    if any(name not in fields or fields[name] == old.get(name) != value for name, value in new.items()):
        return True
    return any(name not in new and fields.get(name) == value for name, value in old.items())


def compared_fields(fields: Mapping[str, str], inherited: str | None) -> Mapping[str, str]:
    """Return the fields of a document that a store has to keep for `shows_other`, where it keeps them apart from the document.

    The standard fields of a page are left out, because nearly each page has some: if its URL inherits one of them later, the page is
    fetched once to no effect.
    """
    own = STANDARD_FIELDS.intersection(fields)
    if not own:
        return fields
    known = unpacked(inherited)
    return {name: value for name, value in fields.items() if name not in own or known.get(name) == value}


def due_at(now: int, rules: int, last: int | None, fetched_at: int | None) -> tuple[int, int]:
    """Return when a URL is fetched again because its inherited metadata changed, and its new mark.

    `rules` is the generation of rules of the source page; `last` is the mark of the last time, which stays if that was the same day.
    """
    mark = (now // DAY_S << _RULES_BITS) + rules
    return (at_once(now, fetched_at), mark) if last is None or mark > last else ((now // DAY_S + 1) * DAY_S, last)


def may_be_due(state: UrlState) -> bool:
    """Return whether a URL has a document or passes metadata on, and is not in flight."""
    return state.state in (State.DONE, State.REDIRECTED) and state.lease_until is None and state.next_fetch is not None


def unpacked(inherited: str | None) -> dict[str, str]:
    return json.loads(inherited) if inherited else {}


def _is_unchanged(change: Change) -> bool:
    state = change.state
    has_links = state.state is State.DONE or (state.state is State.EXCLUDED and state.status in LINKS_ONLY)
    return has_links and state.rules > 0 and change.links is None


def _offers(
    pages: Iterable[RecordedPage], before: Mapping[int, str], stored: StoredMetadata
) -> dict[int, tuple[str, RecordedPage]]:
    """Return by key the metadata that a URL without a source page inherits, and the page: the first one that links to it."""
    offering: list[tuple[str, RecordedPage]] = []
    for page in pages:
        metadata = before.get(page.id) if page.change is None else page.change.link_metadata
        if metadata is not None and (page.change is not None or page.is_unchanged):
            offering.append((metadata, page))
    as_before = [page.id for _, page in offering if page.change is None]
    links = stored.links(as_before) if as_before else {}
    offers: dict[int, tuple[str, RecordedPage]] = {}
    for metadata, page in offering:
        for key in links.get(page.id, ()) if page.change is None else page.change.links:
            if key != page.key:
                offers.setdefault(key, (metadata, page))
    return offers


def _due_again(document: StoredDocument, outdated: _Outdated, inherited: str | None, now: int) -> DueAgain | None:
    """Return when a document, or a redirect that passes metadata on, is due because its inherited metadata has changed."""
    state = document.state
    if not may_be_due(state) or state.next_fetch is None:
        return None
    if state.state is State.REDIRECTED:
        differs = outdated.before != inherited
    else:
        differs = shows_other({} if state.checksum is None else document.fields, outdated.before, inherited)
    at, mark = due_at(now, outdated.rules, document.mark, state.fetched_at)
    return DueAgain(state, at, mark) if differs and at < state.next_fetch else None
