"""The sinks of a collection and their waiting orders, for `scrapy status` and `scrapy sinks`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from crawlspace.clock import iso, local_time
from crawlspace.config.sinks import EMBEDDED, SQLITE, SinkSettings
from crawlspace.crawl.sinks.deliveries import known_sinks, lacks_documents
from crawlspace.index.login_exclusion import LoginExclusion
from crawlspace.index.notes import Standstill, noted_server, noted_standstill, server_meta, standstill_meta
from crawlspace.state.store import Store
from crawlspace.text import counted, printable


@dataclass(frozen=True, slots=True)
class SinkReport:
    """State of a sink."""

    name: str
    type: str
    waiting: int
    """Orders that it has not accepted yet."""
    parked: int
    """Documents that it refuses."""
    lacks_documents: bool
    """Whether all documents are being sent to it."""
    is_former: bool
    """Whether it is no longer in the settings; orders are kept for it."""
    server: str = ""
    """Name and version of the server that answered last; empty if unknown."""
    server_warning: str = ""
    """A sentence, if that version is untested."""
    standstill: Standstill | None = None
    """Since when it accepts nothing, and why."""
    left_out: int = 0
    """Documents that it does not get, because their pages are behind a log-in."""

    def sentences(self, collection: str) -> Iterator[str]:
        """Yield sentences about it in addition to its numbers."""
        if self.is_former:
            yield (
                f"CRAWLSPACE_SINKS does not name it any more, and orders are kept for it: `scrapy sinks {collection} --forget {self.name}` ends that"
            )
        elif self.lacks_documents:
            yield "it lacks documents, which a crawl sends"
        if self.standstill is not None:
            yield f"it accepts nothing since {local_time(self.standstill.since)}: {printable(self.standstill.why)}"
        if self.left_out:
            yield f"{counted(self.left_out, 'document of a page behind a log-in is', 'documents of pages behind a log-in are')} left out of it"
        if self.parked:
            yield f"it refuses {counted(self.parked, 'document')}: `scrapy sinks {collection} --parked {self.name}` lists them"
        if self.server_warning:
            yield self.server_warning


def sink_reports(store: Store, sinks: SinkSettings) -> list[SinkReport]:
    """Return the sinks of the settings, and then former ones."""
    types = {one.name: one.type for one in sinks.options}
    former = {name: kind for name, kind in sorted(known_sinks(store).items()) if name not in types}
    left_out = 0 if sinks.exclusion is None else _left_out(store, sinks.exclusion)
    return [
        _report(
            store,
            name,
            kind,
            is_former=name in former,
            left_out=0 if sinks.exclusion_of(name) is None else left_out,
        )
        for name, kind in {**types, **former}.items()
    ]


def _left_out(store: Store, exclusion: LoginExclusion) -> int:
    """Return the number of documents of sites behind a log-in."""
    behind = [
        one.site for one in store.sites() if any(exclusion.has(f"{scheme}://{one.site}/") for scheme in store.schemes(one.site))
    ]
    return sum(store.documents(behind).values())


def _report(store: Store, name: str, kind: str, *, is_former: bool, left_out: int) -> SinkReport:
    server = noted_server(store.get_meta(server_meta(name)))
    return SinkReport(
        name,
        kind,
        store.backlog(name),
        store.backlog(name, parked=True),
        lacks_documents=lacks_documents(store, name),
        is_former=is_former,
        server="" if server is None else server.product,
        server_warning="" if server is None else server.warning,
        standstill=noted_standstill(store.get_meta(standstill_meta(name))),
        left_out=left_out,
    )


def is_plain(reports: list[SinkReport]) -> bool:
    """Return whether the embedded index is the only sink, and accepts its orders."""
    return [(one.name, one.type, one.standstill) for one in reports] == [(EMBEDDED, SQLITE, None)]


def lines_of(reports: list[SinkReport], collection: str) -> Iterator[str]:
    """Yield a table of sinks."""
    yield f"{'Sinks':<20}{'waiting':>12}{'parked':>10}   type"
    for one in reports:
        server = f" ({one.server})" if one.server else ""
        yield f"  {one.name:<18}{one.waiting:>12,}{one.parked:>10,}   {one.type}{server}"
        yield from (f"    {sentence}" for sentence in one.sentences(collection))


def as_json(reports: list[SinkReport]) -> list[dict[str, object]]:
    return [{**asdict(one), "standstill": _as_json(one.standstill)} for one in reports]


def _as_json(standstill: Standstill | None) -> dict[str, str] | None:
    return None if standstill is None else {"since": iso(standstill.since), "why": standstill.why}
