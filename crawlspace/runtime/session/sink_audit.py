"""Compare the sinks of a collection with its stored state, and repair them, for `scrapy audit`, the console and its JSON interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from crawlspace.admin.audit import Audit, Difference, DifferenceKind, Repair
from crawlspace.admin.delivery import open_sink
from crawlspace.clock import Clock
from crawlspace.config.sinks import EMBEDDED, SinkOptions, tells_what_it_has
from crawlspace.crawl.sinks.deliveries import lacks_documents
from crawlspace.errors import CrawlspaceError, StoreError, UsageError
from crawlspace.index.marks import forget_mark
from crawlspace.index.sink import Inventory
from crawlspace.index.versions import Versions
from crawlspace.runtime.session.paths import (
    CollectionPaths,
    OpenStore,
    archive_reader,
    refuse_index_elsewhere,
    refuse_missing_index,
)
from crawlspace.text import counted, printable, quoted


def audit_sinks(
    paths: CollectionPaths,
    opened: OpenStore,
    sinks: Sequence[SinkOptions],
    *,
    clock: Clock,
    most: int | None,
    repairs: bool,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[SinkAudit]:
    """Compare sinks with the stored state; with `repairs` order what is needed. `most`: differences that are named for each, None: all.

    Raises StoreError, also if a sink cannot be compared.
    """
    found = []
    for options in sinks:
        found.append(SinkAudit(options.name, most=most))
        _compare(paths, opened, options, found[-1], clock=clock, repairs=repairs, progress=progress)
    return found


def sinks_to_audit(paths: CollectionPaths, name: str | None) -> list[SinkOptions]:
    """Return the requested sink, or all. Raises UsageError."""
    found = [one for one in paths.sinks.options if name in (None, one.name)]
    if not found:
        raise UsageError(f"CRAWLSPACE_SINKS has no sink {quoted(str(name))}: it has {', '.join(paths.sinks.names)}")
    able = [one for one in found if tells_what_it_has(one)]
    if not able and name is not None:
        raise UsageError(f"the sink {name} is of type {found[0].type}, whose contents cannot be listed")
    if not able:
        raise UsageError(f"none of the sinks of {paths.name} can list its contents: {', '.join(paths.sinks.names)}")
    return able


class SinkAudit:
    """The result for a sink."""

    def __init__(self, sink: str, *, most: int | None) -> None:
        self.sink = sink
        self.counts: Counter[DifferenceKind] = Counter()
        self.shown: list[Difference] = []
        self.audit: Audit | None = None
        self.is_filled = False
        self.fetched = 0
        self._most = most

    def add(self, differences: Sequence[Difference]) -> None:
        for one in differences:
            self.counts[one.kind] += 1
            if self._most is None or len(self.shown) < self._most:
                self.shown.append(one)

    def is_wrong(self, *, repaired: bool) -> bool:
        return bool(self.fetched if repaired else self.counts.total())

    def lines(self, collection: str, *, repaired: bool) -> list[str]:
        assert self.audit is not None
        tallies = self.audit.tallies
        name = "the index" if self.sink == EMBEDDED else f"the sink {self.sink}"
        found = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in DifferenceKind if self.counts[kind])
        lines = [f"{one.kind.value:<8}  {printable(one.url)}" for one in self.shown]
        if len(self.shown) < self.counts.total():
            lines.append(f"and {self.counts.total() - len(self.shown):,} more (--all names them)")
        done = " (ordered to be repaired)" if repaired and found else ""
        lines.append(f"{name}: {counted(tallies.documents, 'document')} compared, {found or 'no difference'}{done}")
        if self.fetched:
            lines.append(
                f"  {counted(self.fetched, 'has', 'have')} no record in the archive: the next crawl fetches and sends them"
            )
        if tallies.waiting:
            lines.append(f"  {counted(tallies.waiting, 'order waits', 'orders wait')} to be sent, which is no difference")
        if tallies.refused:
            lines.append(
                f"  it refuses {counted(tallies.refused, 'document')}: `scrapy sinks {collection} --parked {self.sink}` lists them"
            )
        if tallies.left_out:
            left_out = counted(tallies.left_out, "document of a page behind a log-in", "documents of pages behind a log-in")
            lines.append(f"  {left_out} left out of it")
        if tallies.of_others:
            lines.append(
                f"  {counted(tallies.of_others, 'belongs', 'belong')} to another collection there, which pushed the same URL later"
            )
        if self.is_filled:
            lines.append("  it is being sent all documents by the crawl: what is missing may be on its way")
        if found and not repaired:
            option = "" if self.sink == EMBEDDED else f" --sink {self.sink}"
            lines.append(f"  `scrapy audit {collection}{option} --repair` repairs that")
        return lines

    def as_json(self) -> dict[str, object]:
        assert self.audit is not None
        tallies = self.audit.tallies
        return {
            "sink": self.sink,
            "documents": tallies.documents,
            **{kind.value: self.counts[kind] for kind in DifferenceKind},
            "waiting": tallies.waiting,
            "refused": tallies.refused,
            "of_others": tallies.of_others,
            "left_out": tallies.left_out,
            "fetched": self.fetched,
            "differences": [{"kind": one.kind.value, "url": one.url} for one in self.shown],
        }


def _compare(
    paths: CollectionPaths,
    opened: OpenStore,
    options: SinkOptions,
    report: SinkAudit,
    *,
    clock: Clock,
    repairs: bool,
    progress: Callable[[int, int], None],
) -> None:
    if options.name == EMBEDDED:
        refuse_index_elsewhere(paths, opened)
        refuse_missing_index(paths)
    with ExitStack() as stack:
        sink = stack.enter_context(closing(open_sink(options, paths.sinks, owner=paths.name)))
        assert isinstance(sink, Inventory), options.type
        report.is_filled = lacks_documents(opened.store, options.name)
        report.audit = audit = Audit(
            opened.store,
            options.name,
            sink,
            Versions(opened.store, options.name, clock),
            paths.name,
            progress,
            exclusion=paths.sinks.exclusion_of(options.name),
            archive=(archive := stack.enter_context(closing(archive_reader(paths, opened)))),
        )
        repair = None
        if repairs:
            repair = Repair(opened.store, archive, options.name, int(clock.now()))
        try:
            for differences in audit.differences():
                report.add(differences)
                if repair is not None:
                    repair.order(differences)
                    report.fetched = repair.fetched
            if repairs and options.name != EMBEDDED:
                forget_mark(opened.store, options.name)  # what is ordered is all that was missing there
        except StoreError:
            raise
        except CrawlspaceError as error:
            raise StoreError(f"the sink {options.name} cannot be compared: {error}") from error
