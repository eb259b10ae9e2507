"""The sinks of a collection: what waits for each, what it refuses, and what can be done about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crawlspace.admin.sink_report import SinkReport, sink_reports
from crawlspace.config.sinks import EMBEDDED, is_rebuildable, tells_what_it_has
from crawlspace.console import crawls
from crawlspace.console.routes import Asked, Done, NoSuchThing, Routes, View, action, page
from crawlspace.console.templates import link, path_part
from crawlspace.document import IndexOrder
from crawlspace.errors import UsageError
from crawlspace.index.marks import BatchMark, stored_mark
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.runtime.session.rebuilding import indexes_of
from crawlspace.runtime.session.reindexing import send_parked
from crawlspace.state.store import Store
from crawlspace.text import counted, quoted

ROWS = 100
"""Parked documents of a page."""
SENT_HERE = 2_000
"""Orders that the console sends by itself, while the browser waits."""
COMMANDS = ("audit", "repair", "reindex")
"""What can be started here, as processes of their own."""


@dataclass(frozen=True, slots=True)
class _Sink:
    """A sink as its page has it."""

    report: SinkReport
    oldest: IndexOrder | None
    """The order that is sent next."""
    mark: BatchMark | None
    """What was sent last."""
    notes: Sequence[str]
    is_comparable: bool
    """Whether an audit can compare it."""
    has_indexes: bool
    """Whether it is a server with an alias that leads to one of several indexes."""


def show(asked: Asked) -> View:
    """Show all sinks."""
    paths = asked.console.paths(asked.name)
    with paths.store.reading() as opened:
        now = int(asked.console.clock.now())
        found = (
            [] if opened is None else [_sink(paths, opened.store, one, now) for one in sink_reports(opened.store, paths.sinks)]
        )
        return View(
            "sinks.html",
            {
                "was_crawled": opened is not None,
                "is_crawled": opened is not None and bool(opened.crawlers()),
                "sinks": found,
                "running": [one for one in ("audit", "reindex") if crawls.is_running(asked.console, asked.name, one)],
                "logs": [log for one in ("audit", "reindex") if (log := crawls.last_log(asked.console, asked.name, one))],
            },
        )


def _sink(paths: CollectionPaths, store: Store, report: SinkReport, now: int) -> _Sink:
    oldest = store.orders(report.name, 1, now=now, most_bytes=1) if report.waiting else ()
    options = [one for one in paths.sinks.options if one.name == report.name]
    return _Sink(
        report,
        oldest[0] if oldest else None,
        stored_mark(store, report.name),
        list(report.sentences(paths.name)),
        any(map(tells_what_it_has, options)),
        any(map(is_rebuildable, options)),
    )


def show_indexes(asked: Asked) -> View:
    """Show which indexes a sink has on its server, which is asked for them."""
    paths = asked.console.paths(asked.name)
    sink = _named(asked, [one.name for one in paths.sinks.options if is_rebuildable(one)])
    return View("sink_indexes.html", {"sink": sink, "found": indexes_of(paths, sink)})


def show_parked(asked: Asked) -> View:
    """Show the documents that a sink refuses."""
    number, reason = asked.page_number(), asked.query.get("reason", "")
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.reading()) as opened:
        sink = _named(asked, [one.name for one in sink_reports(opened.store, paths.sinks)])
        parked = opened.store.parked(sink)
    by_reason = Counter(why for _, _, why in parked)
    fitting = [one for one in parked if reason in ("", one[2])]
    first = (number - 1) * ROWS
    return View(
        "parked.html",
        {
            "sink": sink,
            "is_former": sink not in paths.sinks.names,
            "by_reason": by_reason.most_common(ROWS),
            "reasons": len(by_reason),
            "reason": reason,
            "rows": fitting[first : first + ROWS],
            "total": len(parked),
            "fitting": len(fitting),
            "number": number,
            "has_more": len(fitting) > first + ROWS,
        },
    )


def _named(asked: Asked, names: Sequence[str]) -> str:
    sink = asked.match.get("sink", "")
    if sink not in names:
        raise NoSuchThing(f"{asked.name} has no sink {quoted(sink)}")
    return sink


# --- actions -------------------------------------------------------------------------------------------------------


def send_again(asked: Asked) -> Done:
    """Send a sink again what it has refused; the orders wait for a crawl if there are many."""
    paths = asked.console.paths(asked.name)
    sink = _named(asked, paths.sinks.names)
    back = link(f"/c/{path_part(asked.name)}/sinks")
    with paths.crawled(paths.store.changing()) as opened:
        waiting = opened.store.backlog(sink) + len(opened.store.parked(sink))
        if waiting > SENT_HERE and not opened.crawlers():
            number = opened.store.unpark(sink)
            sentence = (
                f"{sink}: {counted(number, 'order waits', 'orders wait')} to be sent again by the next crawl, or by `scrapy reindex "
                f"{paths.name} --sink {sink}`"
            )
            return Done(f"{sentence}.", back, {"orders": number})
        for sent in send_parked(paths, opened, [sink]):
            return Done(f"{sent.sentence(paths.name)}.", back, {"orders": sent.number, "refused": sent.refused})
    return Done(f"{sink} refuses nothing any more.", back)


def start(asked: Asked) -> Done:
    """Start an audit, a repair, or a reindex of a sink, as a process of its own."""
    paths = asked.console.paths(asked.name)
    sink, what = _named(asked, paths.sinks.names), asked.form.get("command", "")
    if what not in COMMANDS:
        raise UsageError(f"command is one of {', '.join(COMMANDS)}")
    with paths.crawled(paths.store.reading()):
        pass
    command, options = ("audit", ["--repair"]) if what == "repair" else (what, [])
    if command == "audit" and not any(one.name == sink and tells_what_it_has(one) for one in paths.sinks.options):
        raise UsageError(f"the sink {sink} cannot list its contents, so that there is nothing to compare")
    log = crawls.start_command(asked.console, paths, command, *options, "--sink", sink)
    return Done(
        f"scrapy {' '.join((command, *options))} begins for {'the index' if sink == EMBEDDED else sink}: what it finds is in its log below.",
        link(f"/c/{path_part(asked.name)}/sinks"),
        {"log": log.name},
    )


ROUTES: Routes = (
    page("/c/{name}/sinks", show),
    page("/c/{name}/sinks/{sink}/parked", show_parked),
    page("/c/{name}/sinks/{sink}/indexes", show_indexes),
    action("/c/{name}/sinks/{sink}/send-again", send_again),
    action("/c/{name}/sinks/{sink}/start", start),
)
