"""The first page: all collections, and what needs attention in each; start and stop of crawls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawlspace.console import crawls
from crawlspace.console.attention import Notice, notices
from crawlspace.console.console import Console
from crawlspace.console.routes import Asked, Done, Routes, View, action, page
from crawlspace.console.templates import link, path_part
from crawlspace.console.users import Role
from crawlspace.errors import CrawlspaceError
from crawlspace.runtime.session.collection_status import CollectionStatus, status_of
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore

AUDIT_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class _CollectionRow:
    """A collection. `status` is None where its store or its settings cannot be read, which `fault` says."""

    name: str
    status: CollectionStatus | None
    notices: list[Notice]
    fault: str = ""
    age_s: float | None = None
    """Half of the documents were fetched within so many seconds; None while that has not been counted."""


def show(asked: Asked) -> View:
    """Show all collections."""
    return View("collections.html", {"rows": [_row(asked.console, name) for name in asked.console.names()]})


def _row(console: Console, name: str) -> _CollectionRow:
    try:
        paths = console.paths(name)
        with paths.store.reading() as opened:
            found = view_of(paths, opened)
            totals = None if opened is None else console.snapshots.totals(paths, opened)
    except CrawlspaceError as error:
        return _CollectionRow(name, None, [], str(error))
    half = None if totals is None else totals[0].fetched_at.get("0.5")
    return _CollectionRow(name, found.status, found.notices, age_s=None if half is None else max(0.0, console.clock.now() - half))


class CollectionView(NamedTuple):
    """The state of a collection, and what needs attention there."""

    status: CollectionStatus
    notices: list[Notice]


def looked_up(console: Console, name: str) -> CollectionView:
    """Read the state of a collection. Raises CrawlspaceError."""
    paths = console.paths(name)
    with paths.store.reading() as opened:
        return view_of(paths, opened)


def view_of(paths: CollectionPaths, opened: OpenStore | None) -> CollectionView:
    """Return the state of a collection whose store is open. Raises CrawlspaceError."""
    status = status_of(paths, opened, with_rules=True)
    return CollectionView(status, list(notices(status)))


def start(asked: Asked) -> Done:
    """Start a crawl."""
    log = crawls.start(asked.console, asked.console.paths(asked.name))
    return Done(f"The crawl of {asked.name} begins.", link(f"/c/{path_part(asked.name)}/"), {"log": log.name})


def stop(asked: Asked) -> Done:
    """Stop a crawl as Ctrl-C does."""
    processes = crawls.stop(asked.console.paths(asked.name))
    return Done(
        f"The crawl of {asked.name} ends as soon as its requests in flight are answered.",
        link(f"/c/{path_part(asked.name)}/"),
        {"processes": processes},
    )


def show_audit_log(asked: Asked) -> View:
    """Show who has changed what."""
    name = asked.query.get("collection", "")
    entries = asked.console.audit_log.last(
        AUDIT_ENTRIES, fits=lambda entry: entry.get("result") != "begun" and name in ("", entry.get("collection"))
    )
    return View("audit_log.html", {"entries": entries, "names": asked.console.names(), "chosen": name})


ROUTES: Routes = (
    page("/", show),
    page("/audit-log", show_audit_log, role=Role.OPERATOR),
    action("/c/{name}/start", start),
    action("/c/{name}/stop", stop),
)
