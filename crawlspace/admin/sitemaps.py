"""What sitemaps and feeds name, compared with the links of pages and with what became of the URLs, from the store alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.admin.refused import SeenLink, seen_links
from crawlspace.clock import iso, local_time
from crawlspace.crawl.timed.lastmod import ALL, Reading, bounds_of, listed, listed_host, naming, readings
from crawlspace.decision import OF_PAGES, Reason
from crawlspace.model import SITEMAP_QUEUE, State, UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.refused_links import by_letter, by_reason
from crawlspace.state.store import MetaStore, Store
from crawlspace.state.views import KnownUrl
from crawlspace.status import SITEMAPS
from crawlspace.text import MESSAGE, counted, printable

DIFFERENCES = {
    "not-linked": "in a sitemap, and linked from no page",
    "not-named": "documents of hosts that have sitemaps, in none of them",
    "gone": "in a sitemap, and gone (404, 410 …)",
    "redirected": "in a sitemap, and redirected",
}
"""What differs between sitemaps and pages, by the name of the option, with what it means."""
_SOME = 500
"""URLs, or pages with links, that are read at once."""
_FEW = 5
"""Refused URLs that are shown of each sitemap."""


@dataclass(slots=True)
class NamedSitemap:
    """A sitemap or feed as it was read last."""

    state: UrlState
    reading: Reading | None
    refused: Mapping[Reason, int]
    """Its entries that were refused, by reason."""
    examples: Sequence[SeenLink] = ()

    @property
    def url(self) -> str:
        return printable(self.state.url, most=MESSAGE)

    def as_json(self) -> dict[str, object]:
        reading = self.reading
        return {
            "url": self.url,
            "status": self.state.status,
            "read": None if reading is None else iso(reading.at),
            "names_sitemaps": reading is not None and reading.names_sitemaps,
            "entries": 0 if reading is None else reading.entries,
            "with_lastmod": 0 if reading is None else reading.timed,
            "trust": None if reading is None or reading.trust.value is None else round(reading.trust.value, 2),
            "refused": {reason.value: count for reason, count in self.refused.items()},
            "examples": [one.as_json() for one in self.examples],
        }

    @property
    def sentence(self) -> str:
        """What it names, and how far its times are trusted; empty for one that was not read."""
        if self.reading is None:
            return ""
        what = counted(self.reading.entries, "sitemap" if self.reading.names_sitemaps else "URL")
        return f"{what}, {trust_sentence(self.reading)}; read {local_time(self.reading.at)}"


@dataclass(slots=True)
class SitemapReport:
    """`found` has the first URLs of each kind of difference, `totals` their numbers."""

    sitemaps: list[NamedSitemap]
    totals: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[str]] = field(default_factory=dict)
    forgotten: int = 0
    """URLs in a sitemap that were gone for so long that the collection has forgotten them."""

    def as_json(self) -> dict[str, object]:
        return {
            "sitemaps": [one.as_json() for one in self.sitemaps],
            "differences": {
                name: {"total": self.totals[name], "urls": [printable(url, most=MESSAGE) for url in self.found.get(name, ())]}
                for name in DIFFERENCES
            },
            "forgotten": self.forgotten,
        }


def trust_sentence(reading: Reading) -> str:
    """Return how far the times of a sitemap are trusted, and what follows from it."""
    trust = reading.trust
    if reading.names_sitemaps:
        return f"lastmod of {reading.timed:,}" if reading.timed else "without lastmod"
    if not reading.timed:
        return "without lastmod"
    if trust.value is None:
        return f"lastmod of {reading.timed:,}, not measured yet"
    if trust.is_ignored:
        return f"lastmod of {reading.timed:,}, trusted {trust.value:.2f}: ignored, as most pages that it calls changed had not changed"
    spares = "" if trust.spares else ", so that no request is spared for it"
    return f"lastmod of {reading.timed:,}, trusted {trust.value:.2f}{spares}"


def named_by(store: MetaStore, state: UrlState) -> list[str]:
    """Return sentences about the sitemaps that name a page."""
    found = []
    for record, time in naming(store, state):
        says = "without lastmod"
        if time:
            first, _ = bounds_of(time)
            says = f"lastmod {iso(first)[:10] if time & 1 else iso(first)}"
            trust = record.reading.trust
            says += ", not measured yet" if trust.value is None else f", trusted {trust.value:.2f}"
            says += ", ignored" if trust.is_ignored else ""
        found.append(f"named by {printable(record.url, most=MESSAGE)}, {says}")
    return found


def trust_counts(store: MetaStore) -> dict[str, int]:
    """Return the number of sitemaps with times, by how far these are trusted; of the first MOST_LISTED that were read."""
    counts: Counter[str] = Counter()
    for _, reading in readings(store, listed(store, ALL)):
        if reading.timed and not reading.names_sitemaps:
            trust = reading.trust
            counts["ignored" if trust.is_ignored else "not measured yet" if trust.value is None else "trusted"] += 1
    return dict(counts)


def sitemap_report(store: Store, space: CrawlSpace, *, most: int | None) -> SitemapReport:
    """Return all sitemaps, and what differs between them and the pages: `most` URLs of each kind, None for all.

    Needs one pass over all links and one over all URLs; memory for the keys of both.
    """
    states = {state.id: state for status in sorted(SITEMAPS) for state in store.urls(status=status)}
    known = dict(readings(store, [*dict.fromkeys([*listed(store, ALL), *(state.url for state in states.values())])]))
    failed = filter(None, map(store.get, known))  # which have another status since
    states |= {state.id: state for state in failed}
    report = SitemapReport([_sitemap(state, known.get(state.url), store, space) for state in states.values()])
    named, linked = _keys(store, set(states))
    hosts = {listed_host(state.site) for state in states.values()}
    missing, unread = set(named), []
    for url in _scan(store):
        missing.discard(url.key)
        if (url.source, url.shift) == SITEMAP_QUEUE and url.id not in states and not url.has_document:
            unread.append(url.id)
            continue
        if url.id in states:
            continue
        for name in _differences(url, is_named=url.key in named, is_linked=url.key in linked, has_sitemaps=hosts):
            report.totals[name] += 1
            if most is None or report.totals[name] <= most:
                report.found.setdefault(name, []).append(url.url)
    report.forgotten = len(missing)
    report.sitemaps += [_sitemap(state, None, store, space) for state in store.get_by_ids(unread)]
    return report


def _sitemap(state: UrlState, reading: Reading | None, store: Store, space: CrawlSpace) -> NamedSitemap:
    refused = {reason: count for reason, count in by_reason(by_letter(state.refused)).items() if reason not in OF_PAGES}
    seen = seen_links(store.refused_links(page=state.id), space=space, store=store) if refused else iter(())
    return NamedSitemap(state, reading, refused, [one for one, _ in zip(seen, range(_FEW), strict=False)])


def _keys(store: Store, sitemaps: set[int]) -> tuple[set[int], set[int]]:
    """Return the keys that sitemaps name, and those that other pages link to."""
    named: set[int] = set()
    linked: set[int] = set()
    last = 0
    while pages := store.scan_links(last, _SOME):
        for page in pages:
            (named if page.id in sitemaps else linked).update(page.targets)
        last = pages[-1].id
    return named, linked


def _scan(store: Store) -> Iterator[KnownUrl]:
    last = 0
    while urls := store.scan(last, _SOME):
        yield from urls
        last = urls[-1].id


def _differences(url: KnownUrl, *, is_named: bool, is_linked: bool, has_sitemaps: set[str]) -> Iterator[str]:
    if not is_named:
        if url.has_document and listed_host(url.site) in has_sitemaps:
            yield "not-named"
        return
    if not is_linked and url.depth > 0:
        yield "not-linked"
    if url.state == State.GONE:
        yield "gone"
    elif url.state == State.REDIRECTED:
        yield "redirected"
