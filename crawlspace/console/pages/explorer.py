"""The explorer: the known URLs of a collection as a tree of hosts and folders, and as lists selected by filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from crawlspace.admin.refused import REASONS, refused_by_reason
from crawlspace.admin.report import LEASED, STATE_LABELS, UrlReport, label_of, reports
from crawlspace.admin.url_changes import Selection
from crawlspace.admin.url_lines import Rows, csv_lines, json_lines, status_range
from crawlspace.console.routes import Asked, Done, FileDownload, Routes, View, action, page
from crawlspace.console.snapshot.file import Filters, SnapshotFile
from crawlspace.console.snapshot.folders import LEASED as LEASED_LABEL
from crawlspace.console.snapshot.folders import FolderCounts, Mark, parents_of
from crawlspace.console.snapshot.taking import Pass
from crawlspace.console.templates import link, path_part
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.errors import StoreError, UsageError
from crawlspace.model import State
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, lost_documents
from crawlspace.runtime.session.url_requests import forget, recrawl
from crawlspace.text import counted, printable, quoted

ROWS = 100
"""Rows of a page."""
LONGEST_URL = 4_000
_AT_ONCE = 500
_MOST_REFUSED = 1_000

COLUMNS = (
    ("urls", "URLs"),
    ("indexed", "Indexed"),
    ("waiting", "Waiting"),
    ("done", "Done"),
    ("redirected", "Redirected"),
    ("errors", "Errors"),
    ("excluded", "Excluded"),
    ("overdue", "Overdue"),
)
"""Fields of FolderCounts, and what their columns are called."""
OF_COLUMN: Mapping[str, Mapping[str, str]] = {
    "urls": {},
    "indexed": {"is": "indexed"},
    "waiting": {"state": "waiting"},
    "done": {"state": "done"},
    "redirected": {"state": "redirected"},
    "errors": {"state": "errors"},
    "excluded": {"state": "excluded"},
    "overdue": {"is": "overdue"},
}
"""By column, what selects its URLs in the list."""
_GROUPS = {"waiting": ("pending", LEASED), "errors": (State.GONE.label, State.FAILED.label)}
STATES = (*STATE_LABELS, *_GROUPS)
_NUMBERS = {LEASED: LEASED_LABEL, **{state.label: int(state) for state in State}}
MARKS = {
    "indexed": (Mark.INDEXED, "in the index"),
    "overdue": (Mark.OVERDUE, "overdue"),
    "held": (Mark.HELD, "deletion held"),
    "duplicate": (Mark.DUPLICATE, "duplicate"),
    "orphaned": (Mark.ORPHANED, "orphaned"),
}
SORTS = {"url": ("position", False), "-url": ("position", True), "found": ("id", False), "-found": ("id", True)}
"""By value of `sort`: the field, and whether it descends."""


@contextmanager
def _opened(asked: Asked) -> Iterator[tuple[CollectionPaths, OpenStore | None]]:
    paths = asked.console.paths(asked.name)
    with paths.store.reading() as opened:
        yield paths, opened


# --- tree ----------------------------------------------------------------------------------------------------------


def show(asked: Asked) -> View:
    """Show the folders in a folder, or all hosts, with the numbers of their URLs."""
    prefix = _text(asked, "prefix")
    with _opened(asked) as (paths, opened):
        if opened is None:
            return _view("explorer.html", was_crawled=False)
        with asked.console.snapshots.open(paths, opened) as (snapshot, progress):
            if snapshot is None:
                return _view("explorer.html", progress=progress)
            folder = snapshot.folder(prefix)
            if folder is None and not prefix.endswith("/"):
                folder, prefix = snapshot.folder(f"{prefix}/"), f"{prefix}/"
            shown = _Folder(prefix, folder, asked, snapshot).shown() if folder is not None else {}
            rows: Sequence[UrlReport] = ()
            if folder is not None and prefix:
                ids = list(snapshot.ids(Filters(prefix=prefix, direct=True), most=ROWS))
                rows = list(_reports(paths, opened, ids))
            return _view(
                "explorer.html",
                prefix=prefix,
                folder=folder,
                rows=rows,
                about=snapshot.about,
                progress=progress,
                **shown,
            )


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder as its page has it."""

    prefix: str
    counts: FolderCounts
    asked: Asked
    snapshot: SnapshotFile

    def shown(self) -> dict[str, object]:
        sort = self.asked.query.get("sort") or "-urls"
        order = sort.removeprefix("-")
        if order not in ("name", *(name for name, _ in COLUMNS)):
            raise UsageError(f"a table of folders is not sorted by {quoted(order)}")
        number = self.asked.page_number()
        containing = _text(self.asked, "find").lower()
        folders = self.snapshot.children(
            self.counts,
            order=order,
            descending=sort.startswith("-"),
            first=(number - 1) * ROWS,
            most=ROWS + 1,
            containing=containing,
        )
        parents = parents_of(self.prefix)
        return {
            "above": parents[:-1],
            "own_name": parents[-1][1] if parents else "",
            "folders": folders[:ROWS],
            "has_more": len(folders) > ROWS,
            "number": number,
            "find": containing,
            "columns": COLUMNS,
            "of_column": OF_COLUMN,
            "rule": f"forbid prefix {self.prefix}" if self.prefix else "",
        }


def _view(template: str, **shown: object) -> View:
    nothing = {"was_crawled": True, "about": None, "progress": Pass(), "folder": None, "prefix": "", "rows": ()}
    return View(template, {**nothing, **shown})


# --- lists ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """What a list is selected by, as its form has it. `is_`: one of MARKS."""

    state: str = ""
    status: str = ""
    host: str = ""
    prefix: str = ""
    is_: str = ""
    direct: str = ""
    sort: str = "url"

    @property
    def filters(self) -> Filters:
        """Raises UsageError."""
        statuses = None
        if self.status:
            statuses = status_range(self.status)
            if statuses is None:
                raise UsageError(f"{quoted(self.status)} is no status code; write one like 404, or a class like 4xx")
        return Filters(
            labels=[_NUMBERS[one] for one in self.labels],
            statuses=statuses,
            host=self.host,
            prefix=self.prefix,
            marks=MARKS[self.is_][0] if self.is_ else 0,
            direct=bool(self.direct and self.prefix),
        )

    @property
    def labels(self) -> Sequence[str]:
        return _GROUPS.get(self.state, (self.state,)) if self.state else ()

    @property
    def selection(self) -> Selection | None:
        """The same for the commands that change URLs; None where they select by less, or where it selects all."""
        errors = self.state == "errors"
        if (self.state and not errors) or self.is_ or self.direct or not (self.status or self.host or self.prefix or errors):
            return None
        filters = self.filters
        return Selection(self.prefix or None, self.host or None, filters.statuses, errors=errors)

    @property
    def is_empty(self) -> bool:
        return replace(self, sort="url") == Choice()


def choice_of(values: Mapping[str, str]) -> Choice:
    """Return what a query or a form selects. Raises UsageError."""
    for name, allowed in (("state", STATES), ("is", tuple(MARKS)), ("sort", tuple(SORTS))):
        if values.get(name, "") not in ("", *allowed):
            raise UsageError(f"{name} is one of {', '.join(allowed)}")
    if any(len(value) > LONGEST_URL for value in values.values()):
        raise UsageError(f"a value has at most {LONGEST_URL:,} characters")
    return Choice(
        values.get("state", ""),
        values.get("status", "").strip(),
        values.get("host", "").strip().lower(),
        values.get("prefix", "").strip(),
        values.get("is", ""),
        values.get("direct", ""),
        values.get("sort") or "url",
    )


def show_urls(asked: Asked) -> View:
    """Show the URLs that the filters select."""
    if asked.query.get("reason"):
        return _show_refused(asked)
    choice = choice_of(asked.query)
    number = asked.page_number()
    form = {"choice": choice, "states": STATES, "marks": MARKS, "number": number, "total": 0, "has_more": False, "changed": 0}
    with _opened(asked) as (paths, opened):
        if opened is None:
            return _view("explorer_urls.html", **form, was_crawled=False)
        with asked.console.snapshots.open(paths, opened) as (snapshot, progress):
            if snapshot is None:
                return _view("explorer_urls.html", **form, progress=progress)
            filters = choice.filters
            by, descending = SORTS[choice.sort]
            ids = list(snapshot.ids(filters, first=(number - 1) * ROWS, most=ROWS, by=by, descending=descending))
            rows = [one for one in _reports(paths, opened, ids) if _fits(one, choice, asked.console.clock.now())]
            total = snapshot.count(filters)
            form.update(total=total, has_more=number * ROWS < total, changed=len(ids) - len(rows))
            return _view("explorer_urls.html", **form, rows=rows, about=snapshot.about, progress=progress)


def _reports(paths: CollectionPaths, opened: OpenStore, ids: Sequence[int]) -> Iterator[UrlReport]:
    """Yield the reports of URLs as they are stored now, in the order of their ids."""
    sites = {one.row.site: one for one in paths.unreachable(opened.store)}
    with lost_documents(paths, opened) as lost:
        for first in range(0, len(ids), _AT_ONCE):
            some = ids[first : first + _AT_ONCE]
            states = {state.id: state for state in opened.store.get_by_ids(some)}
            for known in reports((states[id] for id in some if id in states), opened.store, sites):
                yield replace(known, lost=True) if known.state.indexed and lost.is_lost(known.state.url) else known


def _fits(known: UrlReport, choice: Choice, now: float) -> bool:
    """Whether a URL is selected as it is now: it may have changed since the snapshot."""
    filters, state = choice.filters, known.state
    if choice.state and label_of(state) not in choice.labels:
        return False
    if filters.statuses is not None and known.status not in filters.statuses:
        return False
    is_marked: Mapping[str, Callable[[], bool]] = {
        "indexed": lambda: state.indexed,
        "overdue": lambda: state.next_fetch is not None and state.next_fetch <= now and state.state is not State.PENDING,
        "held": lambda: known.held is not None,
        "duplicate": lambda: state.duplicate_of is not None,
        "orphaned": lambda: state.orphaned is not None,
    }
    return not choice.is_ or is_marked[choice.is_]()


def _show_refused(asked: Asked) -> View:
    """Show links that were refused for a reason: a sample, because their URLs are not known."""
    reason, host = _reason(asked.query["reason"]), _text(asked, "host").lower()
    form = {"choice": Choice(host=host), "reason": reason, "reasons": REASONS, "refused": None}
    with _opened(asked) as (paths, opened):
        if opened is None:
            return _view("explorer_refused.html", **form, was_crawled=False)
        space = build_space(asked.console.collection(paths))
        found = refused_by_reason(opened.store, space, reason=reason, host=host or None, most=ROWS)
        form["refused"] = found[0] if found else None
        return _view("explorer_refused.html", **form)


def _reason(text: str) -> Reason:
    if text not in {reason.value for reason in REASONS}:
        raise UsageError(f"{quoted(text)} is no reason for which links are refused: these are {', '.join(REASONS)}")
    return Reason(text)


# --- download ------------------------------------------------------------------------------------------------------


def download_csv(asked: Asked) -> FileDownload:
    """Send all that the filters select as CSV."""
    return FileDownload("text/csv; charset=utf-8", csv_lines(_rows(asked)), f"{asked.name}-urls.csv")


def download_json(asked: Asked) -> FileDownload:
    """Send all that the filters select as JSON lines."""
    return FileDownload("application/x-ndjson", json_lines(_rows(asked)), f"{asked.name}-urls.jsonl")


def _rows(asked: Asked) -> Rows:
    choice = choice_of(asked.query)
    filters = choice.filters
    by, descending = SORTS[choice.sort]
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.reading()) as opened, asked.console.snapshots.open(paths, opened) as (snapshot, _):
        if snapshot is None:
            raise StoreError("The URLs are being counted for the first time: try again when the explorer shows them.")
        ids = iter(snapshot.ids(filters, by=by, descending=descending))
        now = asked.console.clock.now()
        while some := list(islice(ids, _AT_ONCE)):
            yield from ((one, None) for one in _reports(paths, opened, some) if _fits(one, choice, now))


# --- actions -------------------------------------------------------------------------------------------------------


def recrawl_selected(asked: Asked) -> Done:
    """Make the selected URLs due now."""
    choice = choice_of(asked.form)
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.changing()) as opened:
        done = recrawl(paths, opened, asked.changes(opened), (), _selection(choice))
    return Done(_sentences(done.sentence, done.notes), _back(asked, choice), {"urls": done.made.changed})


def forget_selected(asked: Asked) -> Done:
    """Forget the selected URLs."""
    choice = choice_of(asked.form)
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.changing()) as opened:
        done = forget(paths, opened, asked.changes(opened), (), _selection(choice))
    return Done(_sentences(done.sentence, done.notes), _back(asked, choice), {"urls": done.made.changed})


def _selection(choice: Choice) -> Selection:
    selection = choice.selection
    if selection is None:
        raise UsageError("name a folder, a host, or status codes: what these select is fetched again, or forgotten")
    return selection


def _sentences(first: str, others: Iterable[str]) -> str:
    return ". ".join((first, *others)) + "."


def _back(asked: Asked, choice: Choice) -> str:
    if asked.form.get("from") == "folder":
        return link(f"/c/{path_part(asked.name)}/explorer", prefix=choice.prefix)
    query = {"state": choice.state, "status": choice.status, "host": choice.host, "prefix": choice.prefix}
    return link(f"/c/{path_part(asked.name)}/explorer/urls", query)


def _text(asked: Asked, name: str) -> str:
    text = asked.query.get(name, "").strip()
    if len(text) > LONGEST_URL:
        raise UsageError(f"{name} has at most {counted(LONGEST_URL, 'character')}, and not as {printable(text[:100])}")
    return text


ROUTES: Routes = (
    page("/c/{name}/explorer", show),
    page("/c/{name}/explorer/urls", show_urls),
    page("/c/{name}/explorer/urls.csv", download_csv),
    page("/c/{name}/explorer/urls.jsonl", download_json),
    action("/c/{name}/explorer/recrawl", recrawl_selected),
    action("/c/{name}/explorer/forget", forget_selected),
)
