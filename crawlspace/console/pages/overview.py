"""The overview of a collection."""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.admin.run_numbers import KINDS, latency, shown_run
from crawlspace.admin.runs import kept_runs
from crawlspace.console import crawls
from crawlspace.console.pages.collections import view_of
from crawlspace.console.routes import Asked, Routes, View, page
from crawlspace.console.snapshot.ages import read_ages
from crawlspace.runtime.session.collection_status import CollectionStatus
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore

RUNS = 30
"""Runs whose documents are shown."""


def show(asked: Asked) -> View:
    """Show a collection in numbers."""
    paths = asked.console.paths(asked.name)
    with paths.store.reading() as opened:
        found = view_of(paths, opened)
        plots = _NO_PLOTS if opened is None else _plots(asked, paths, opened, found.status)
    return View(
        "overview.html",
        {
            "status": found.status,
            "numbers": found.status.numbers,
            "notices": found.notices,
            "log": crawls.last_log(asked.console, asked.name),
            "kinds": KINDS,
            **plots,
        },
    )


_NO_PLOTS: Mapping[str, object] = {"run": None, "points": (), "latency": (), "documents": (), "ages": (), "left_s": None}


def _plots(asked: Asked, paths: CollectionPaths, opened: OpenStore, status: CollectionStatus) -> Mapping[str, object]:
    """Return what the plots are drawn of: the run that crawls or was last, documents over runs, and the ages of documents."""
    runs = kept_runs(opened.store, opened.crawlers())[: RUNS + 1]
    with asked.console.snapshots.open(paths, opened) as (snapshot, _):
        about = None if snapshot is None else snapshot.about
    ages = [] if about is None else read_ages(about.ages)
    shown = [shown_run(one) for one in runs]
    newest = shown[0] if shown else None
    waiting = status.numbers.urls["pending"] + status.numbers.urls["leased"]
    return {
        "run": newest,
        "points": () if newest is None else newest.points(),
        "latency": () if newest is None else latency(newest.numbers.times),
        "documents": [
            (str(one.kept.run), one.documents_in_index) for one in reversed(shown) if one.documents_in_index is not None
        ],
        "ages": ages if any(count for _, count in ages) else (),
        "counted_at": None if about is None else about.taken_at,
        "left_s": None if newest is None else newest.left_s(waiting),
    }


ROUTES: Routes = (page("/c/{name}/", show),)
