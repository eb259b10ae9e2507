"""A site whose index file names sitemaps with a million URLs: `python -m benchmarks.sitemaps`.

The crawl ends after some pages. Measured are how soon the first of them is fetched, how fast entries become URLs of the store, and its peak
of memory against a crawl of as many pages that reads no sitemaps, and finds as many URLs in links.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.collection import BenchCollection
from benchmarks.measure import Cost, Row, finish
from benchmarks.serve import PageServer, Reply

_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_FIRST_PAGE_S, _MORE_MB = 10, 60


class _Site:
    """Answers with pages, each with links to so many others, and with sitemaps that name all."""

    def __init__(self, files: int, entries: int, *, links: int) -> None:
        self.files, self.entries, self.links = files, entries, links
        self.origin = ""
        self._sitemaps: dict[str, bytes] = {}

    def build(self, origin: str) -> None:
        self.origin = origin
        self._sitemaps = {f"/s{number}.xml": self._sitemap(number) for number in range(self.files)}
        named = "".join(f"<sitemap><loc>{origin}{path}</loc></sitemap>" for path in self._sitemaps)
        self._sitemaps["/index.xml"] = f"<sitemapindex {_NS}>{named}</sitemapindex>".encode()

    def answer(self, site: str, path: str) -> Reply:
        if path == "/robots.txt":
            return 200, b"text/plain", f"User-agent: *\nSitemap: {self.origin}/index.xml\n".encode()
        if path in self._sitemaps:
            return 200, b"application/xml", self._sitemaps[path]
        number = int(path.rpartition("/")[2] or 0)
        first = self.links * number + 1
        links = "".join(f'<a href="/page/{other}">next</a>' for other in range(first, first + self.links))
        return 200, b"text/html", f"<title>{number}</title><p>words of page {number}</p>{links}".encode()

    def _sitemap(self, number: int) -> bytes:
        first = number * self.entries
        urls = "".join(
            f"<url><loc>{self.origin}/page/{first + at}</loc><lastmod>2026-05-01T12:00:00Z</lastmod></url>\n"
            for at in range(self.entries)
        )
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NS}>\n{urls}</urlset>'.encode()


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a crawl of large sitemaps.")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--entries", type=int, default=50_000)
    parser.add_argument("--pages", type=int, default=12_000)
    options = parser.parse_args(arguments)
    total = options.files * options.entries
    site = _Site(options.files, options.entries, links=total // options.pages + 1)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, PageServer(site.answer) as server:
        site.build(server.origins[0])
        without = _crawl(Path(folder) / "links", site, options.pages, {"CRAWLSPACE_FOLLOW": "links"})
        before = len(server.requests)
        cost = _crawl(Path(folder) / "sitemaps", site, options.pages, {})
        asked = [(request.at, request.path) for request in server.requests[before:]]
        known = len(BenchCollection(Path(folder) / "sitemaps").states())
    start = asked[0][0]
    pages = [at - start for at, path in asked if path.startswith("/page/")]
    named = [at - start for at, path in asked if path.endswith(".xml")]
    of_entries_s = max(cost.cpu_s - without.cpu_s, 0.001)
    more_mb = cost.peak_mb - without.peak_mb
    return [
        Row("sitemaps", "first page after", f"{pages[0]:.1f} s", f"at most {_FIRST_PAGE_S} s", pages[0] <= _FIRST_PAGE_S),
        Row("sitemaps", "last sitemap requested after", f"{max(named):.1f} s"),
        Row("sitemaps", "wall time", f"{cost.wall_s:.0f} s, {cost.wall_s / without.wall_s:.2f} of links; {known:,} URLs known"),
        Row("sitemaps", "CPU of an entry, beyond links", f"{of_entries_s / total * 1e6:.0f} µs"),
        Row("sitemaps", "entries/s, by that CPU", f"{total / of_entries_s:,.0f}"),
        Row("sitemaps", "memory", f"{cost.peak_mb:.0f} MB, {more_mb:+.0f} MB", f"at most +{_MORE_MB} MB", more_mb <= _MORE_MB),
    ]


def _crawl(folder: Path, site: _Site, pages: int, settings: Mapping[str, object]) -> Cost:
    collection = BenchCollection(folder)
    collection.write(start_urls=[f"{site.origin}/"], rules="", settings={"CLOSESPIDER_ITEMCOUNT": pages, **settings})
    return collection.crawl(may_fail=True)


if __name__ == "__main__":
    sys.exit(finish(main))
