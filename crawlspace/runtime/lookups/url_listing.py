"""The known URLs of a collection that are selected, for `scrapy urls`, the console and its JSON interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from crawlspace.admin.report import UrlReport, known_urls
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, archive_reader, lost_documents


@dataclass(frozen=True, slots=True)
class UrlFilter:
    """A selection of known URLs by all that is given, see `known_urls`."""

    label: str | None = None
    statuses: range | None = None
    host: str | None = None
    held: bool = False
    orphaned: bool = False
    not_archived: bool = False
    """Only URLs whose document has no record in the archive on this machine."""


def listed_urls(
    paths: CollectionPaths, opened: OpenStore, selected: UrlFilter, *, by_url: bool, after: int = 0
) -> Iterator[UrlReport]:
    """Yield the selected URLs in alphabetical order, or else in that of their discovery, from the one after an id on. Raises StoreError."""
    with ExitStack() as stack:
        has_record = stack.enter_context(closing(archive_reader(paths, opened))).has if selected.not_archived else None
        lost = stack.enter_context(lost_documents(paths, opened))
        for known in known_urls(
            opened.store,
            label=selected.label,
            statuses=selected.statuses,
            host=selected.host,
            held=selected.held,
            orphaned=selected.orphaned,
            has_record=has_record,
            sites=paths.unreachable(opened.store),
            by_url=by_url,
            after=after,
        ):
            yield replace(known, lost=True) if known.state.indexed and lost.is_lost(known.state.url) else known
