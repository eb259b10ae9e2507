"""What becomes of the entries of a sitemap, and which sitemaps a robots.txt names, without a crawl."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.content.sitemaps import SitemapContents, SitemapEntry, SitemapKind
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.sitemaps import MAX_NESTING, sitemaps_named_in
from crawlspace.decision import Reason
from crawlspace.model import SITEMAP_QUEUE, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import engine

INDEX = "http://a.example/index.xml"


def crawl(folder: Path, **settings: object) -> Engine:
    return engine(folder, MemoryStore(sinks=(EMBEDDED,)), FakeClock(), **settings)


def found(*hrefs: str, kind: SitemapKind = SitemapKind.SITEMAP) -> SitemapContents:
    return SitemapContents(kind, [SitemapEntry(href) for href in hrefs])


def state(url: str = INDEX, **values: object) -> UrlState:
    source, shift = SITEMAP_QUEUE
    return structs.replace(UrlState(1, 1, url, "a.example:80", source=source, shift=shift), **values)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("Sitemap: http://a.example/s.xml", ["http://a.example/s.xml"]),
        (
            "\ufeffSITEMAP :http://a.example/s.xml # here\r\nsitemap: /t.xml\n",
            ["http://a.example/s.xml", "http://a.example/t.xml"],
        ),
        ("Sitemap: http://a.example/s.xml\nUser-agent: x\nSitemap: http://A.example:80/s.xml", ["http://a.example/s.xml"]),
        ("Sitemap: http://[/\nSitemap: mailto:a@b\nSitemap:\nNo-Sitemap: /x\n# Sitemap: /y\n", []),
        ("\n".join(f"Sitemap: /{number}" for number in range(5_000)), [f"http://a.example/{number}" for number in range(1_000)]),
    ],
    ids=["one", "spellings", "twice", "none", "too many"],
)
def test_what_a_robots_txt_names(body: str, named: list[str]) -> None:
    assert [url.text for url in sitemaps_named_in(body, base="http://a.example/robots.txt")] == named


def test_sitemaps_of_a_host_are_counted_once(tmp_path: Path) -> None:
    """However often an index file is read, as in a crawl that goes on for months."""
    sitemaps = crawl(tmp_path, CRAWLSPACE_MAX_SITEMAPS_PER_HOST=3).sitemaps
    names = [f"http://a.example/{number}.xml" for number in range(5)]
    for _ in range(3):
        outcome = sitemaps.outcome(state(), found(*names, kind=SitemapKind.INDEX))
        assert (outcome.links, outcome.left_out) == (names[:3], {Reason.SITEMAP_LIMIT: 2})
    assert sitemaps.outcome(state(), found(names[4], names[0], kind=SitemapKind.INDEX)).links == [names[0]]


@pytest.mark.parametrize(("redirects", "are_taken"), [(0, True), (MAX_NESTING - 1, True), (MAX_NESTING, False)])
def test_nesting(tmp_path: Path, redirects: int, *, are_taken: bool) -> None:
    contents = found("http://a.example/s.xml", kind=SitemapKind.INDEX)
    outcome = crawl(tmp_path).sitemaps.outcome(state(redirects=redirects), contents)
    assert bool(outcome.links) is are_taken
    assert outcome.left_out == ({} if are_taken else {Reason.SITEMAP_LIMIT: 1})


def test_feeds_may_name_any_host(tmp_path: Path) -> None:
    sitemaps = crawl(tmp_path).sitemaps
    hrefs = ["http://a.example/1", "/2", "https://A.example/3", "http://b.example/4", "http://[/"]
    of_feed = sitemaps.outcome(state(), found(*hrefs, kind=SitemapKind.RSS))
    assert (of_feed.kind, of_feed.status, of_feed.links, of_feed.left_out) == (OutcomeKind.EXCLUDED, 2005, hrefs, {})
    of_sitemap = sitemaps.outcome(state(), found(*hrefs))
    assert of_sitemap.links == [href for href in hrefs if "b.example" not in href]
    assert of_sitemap.left_out == {Reason.SITEMAP_HOST: 1}


def test_one_that_cannot_be_read_keeps_what_it_named(tmp_path: Path) -> None:
    outcome = crawl(tmp_path).sitemaps.outcome(state(), SitemapContents(None, fault="timed out"))
    assert (outcome.kind, outcome.status, outcome.links) == (OutcomeKind.FAILED, 782, None)
    assert outcome.detail == "it is a sitemap or feed that cannot be read: timed out"


@pytest.mark.parametrize(
    ("values", "is_guess"),
    [
        ({"url": "http://a.example/sitemap.xml"}, True),
        ({"url": "http://a.example/a/sitemap.xml"}, False),
        ({"url": "http://a.example/sitemap.xml", "depth_from": 7}, False),
        ({"url": "http://a.example/sitemap.xml", "depth": 1}, False),
        ({"url": "http://a.example/sitemap.xml", "shift": 0}, False),
        ({"url": INDEX}, False),
    ],
)
def test_what_was_only_tried(tmp_path: Path, values: dict[str, object], *, is_guess: bool) -> None:
    """Of such a URL nothing is left where it is no sitemap; an error that may pass is tried again."""
    sitemaps = crawl(tmp_path).sitemaps
    tried = structs.replace(state(), **values)
    assert sitemaps.is_guess(tried) is is_guess
    for kind, status, stays in [
        (OutcomeKind.GONE, 404, False),
        (OutcomeKind.DOCUMENT, 200, False),
        (OutcomeKind.FAILED, 613, True),
        (OutcomeKind.EXCLUDED, 2005, True),
        (OutcomeKind.REDIRECTED, 3021, True),
        (OutcomeKind.UNCHANGED, 304, True),
    ]:
        outcome = sitemaps.checked_guess(tried, Outcome(1, tried.url, kind, status))
        assert outcome.status == (status if stays or not is_guess else 2006)
