"""Refreshes of a site whose sitemap tells what has changed, rightly or not: `python -m benchmarks.lastmod`.

Two of a hundred pages change before each refresh, at which all are due by their age. Counted are the requests for pages, and the changed pages
that were not requested; for sitemaps that lie, against a crawl that reads none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.collection import BenchCollection
from benchmarks.measure import Row, finish
from benchmarks.serve import PageServer, Reply
from crawlspace.clock import iso

_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_INTERVAL_S = 60
_EVERY = 50
_REFRESHES = 3
_MOST = 0.05


class _Site:
    """Pages, each with the time of its last change, and a sitemap that says of each what `says` returns for that time."""

    def __init__(self, pages: int, says: Callable[[float], float]) -> None:
        self.changed = [time.time() - 86_400.0] * pages
        self.origin = ""
        self._says = says

    def change(self, first: int) -> set[str]:
        """Change one of fifty pages, and return their paths."""
        numbers = range(first, len(self.changed), _EVERY)
        for number in numbers:
            self.changed[number] = time.time()
        return {f"/page/{number}" for number in numbers}

    def answer(self, site: str, path: str) -> Reply:
        if path == "/robots.txt":
            return 200, b"text/plain", f"User-agent: *\nSitemap: {self.origin}/sitemap.xml\n".encode()
        if path == "/sitemap.xml":
            return 200, b"application/xml", self._sitemap()
        if path == "/":
            links = "".join(f'<a href="/page/{number}">page</a>' for number in range(len(self.changed)))
            return 200, b"text/html", f"<title>Home</title><p>all pages</p>{links}".encode()
        number = int(path.rpartition("/")[2])
        return 200, b"text/html", f"<title>{number}</title><p>words of page {number} {self.changed[number]}</p>".encode()

    def _sitemap(self) -> bytes:
        urls = "".join(
            f"<url><loc>{self.origin}/page/{number}</loc><lastmod>{iso(self._says(at))}</lastmod></url>\n"
            for number, at in enumerate(self.changed)
        )
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NS}>\n{urls}</urlset>'.encode()


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure refreshes of a site with a sitemap.")
    parser.add_argument("--pages", type=int, default=20_000)
    pages = parser.parse_args(arguments).pages
    few, began = pages // 4, time.time() - 2 * 86_400
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        right = _refreshed(Path(folder) / "right", pages, lambda at: at)
        never = _refreshed(Path(folder) / "never", few, lambda _: began)
        always = _refreshed(Path(folder) / "always", few, lambda _: time.time())
        without = _refreshed(Path(folder) / "without", few, lambda at: at, CRAWLSPACE_FOLLOW="links")
    asked, missed = right[-1]
    expected = without[-1][0]
    return [
        *(
            Row("lastmod", f"right, refresh {number}: requests a page, changed pages missed", f"{asked / pages:.3f}, {missed}")
            for number, (asked, missed) in enumerate(right[:-1], 1)
        ),
        Row("lastmod", "right: requests a page", f"{asked / pages:.3f}", f"at most {_MOST}", asked <= _MOST * pages),
        Row("lastmod", "right: changed pages missed", f"{missed} of {len(range(0, pages, _EVERY))}", "0", missed == 0),
        *_of_a_liar("never changes", never, few, expected),
        *_of_a_liar("always new", always, few, expected),
    ]


def _of_a_liar(name: str, found: Sequence[tuple[int, int]], pages: int, expected: int) -> list[Row]:
    first, (asked, missed) = found[0], found[-1]
    return [
        Row("lastmod", f"{name}, refresh 1: requests a page, changed pages missed", f"{first[0] / pages:.3f}, {first[1]}"),
        Row("lastmod", f"{name}: requests, of those without a sitemap", f"{asked / expected:.3f}", "1", asked == expected),
        Row("lastmod", f"{name}: changed pages missed", f"{missed}", "0", missed == 0),
    ]


def _refreshed(folder: Path, pages: int, says: Callable[[float], float], **settings: object) -> list[tuple[int, int]]:
    """Crawl a site, and refresh it some times; return of each refresh the requests for pages, and the changed pages not requested."""
    site = _Site(pages, says)
    collection, found = BenchCollection(folder), []
    with PageServer(site.answer) as server:
        site.origin = server.origins[0]
        intervals = {"CRAWLSPACE_REFRESH_MIN": _INTERVAL_S, "CRAWLSPACE_REFRESH_MAX": _INTERVAL_S}
        limits = {"CRAWLSPACE_MAX_LINKS": pages, "CRAWLSPACE_ARCHIVE": False}
        collection.write(start_urls=[f"{site.origin}/"], rules="", settings={**intervals, **limits, **settings})
        collection.crawl()
        for number in range(_REFRESHES):
            time.sleep(1)  # whole seconds count
            changed = site.change(number)
            time.sleep(_INTERVAL_S)
            before = len(server.requests)
            collection.crawl()
            asked = [request.path for request in server.requests[before:] if request.path.startswith("/page/")]
            found.append((len(asked), len(changed - set(asked))))
    return found


if __name__ == "__main__":
    sys.exit(finish(main))
