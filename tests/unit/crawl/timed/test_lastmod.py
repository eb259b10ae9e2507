"""What sitemaps say about changes: which pages are due or spared because of it, and how far it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from crawlspace.clock import iso
from crawlspace.config.sinks import EMBEDDED
from crawlspace.content.sitemaps import SitemapContents, SitemapEntry, SitemapKind
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.timed.lastmod import READ, TO_CHECK, PageTimes, Trust, bounds_of, packed_time, read_record
from crawlspace.crawl.timed.steps import STEP_EVERY_S
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import DAY, HOME, Web

SITEMAP = f"{HOME}sitemap.xml"
NOW = 1_750_000_000  # 2025-06-15 15:06:40


class Site(Web):
    """Pages that a sitemap names, each with what it says of its last change: what it should say, unless `says` has something else."""

    def __init__(self, folder: Path, store: Store, pages: int, **settings: object) -> None:
        super().__init__(folder, store, CRAWLSPACE_SITEMAPS=[SITEMAP], **{"CRAWLSPACE_REFRESH_MAX": "10d", **settings})
        self.pages[HOME] = "home"
        self.changed: dict[str, float] = {}
        self.kind, self.fault, self.etag = SitemapKind.SITEMAP, "", ""
        self.named = [f"{HOME}{number}" for number in range(pages)]
        self.says: Mapping[str, str] | None = None
        for url in self.named:
            self.change(url, ago_s=30 * DAY)

    def change(self, *urls: str, ago_s: float = 0) -> None:
        for url in urls:
            self.changed[url] = self.clock.now() - ago_s
            self.pages[url] = f"{url.rpartition('/')[2]} {self.changed[url]:.0f}"

    def work(self, engine: Engine) -> None:
        self.engine = engine
        while True:
            super().work(engine)
            if not engine.has_steps:
                return
            self.clock.advance(STEP_EVERY_S)

    def _answer(self, fetch: FetchPage) -> Outcome:
        if fetch.state.url != SITEMAP or isinstance(self.pages.get(SITEMAP), int):
            return super()._answer(fetch)
        if self.etag and fetch.conditional and fetch.state.etag == self.etag:
            return Outcome(fetch.state.id, SITEMAP, OutcomeKind.UNCHANGED, 304, conditional=True)
        says = {url: iso(at) for url, at in self.changed.items()} if self.says is None else self.says
        entries = [SitemapEntry(url, says.get(url, "")) for url in self.named]
        outcome = self.engine.sitemaps.outcome(fetch.state, SitemapContents(self.kind, entries, fault=self.fault))
        outcome.etag = self.etag or None
        return outcome

    def fetched(self, *, after: int) -> set[str]:
        """The pages that a crawl requests, that many days later."""
        self.crawl(after=after)
        return {url for url, _ in self.asked} - {HOME, SITEMAP}

    @property
    def trust(self) -> Trust:
        record = read_record(self.store, SITEMAP)
        assert record is not None
        return record.reading.trust


def site(folder: Path, pages: int = 4, **settings: object) -> Site:
    found = Site(folder, MemoryStore(sinks=(EMBEDDED,)), pages, **settings)
    found.crawl()
    return found


@pytest.mark.parametrize(
    ("written", "first", "last"),
    [
        ("2025-06-15T15:00:00Z", NOW - 400, NOW - 398),
        ("2025-06-15T17:00:00+02:00", NOW - 400, NOW - 398),
        ("2025-06-15T15:00:00", NOW - 400, NOW - 398),
        ("2025-06-15T15:00:01Z", NOW - 400, NOW - 398),
        ("2025-06-15", 1_749_945_600, 1_749_945_600 + DAY),
        ("2025-06-16", 1_750_032_000, 1_750_032_000 + DAY),
        ("2025-06-17", None, None),
        ("2025-06-16T15:06:42Z", None, None),
        ("9999-12-31", None, None),
        ("1969-12-31", None, None),
        ("2025-06", None, None),
        ("2025", None, None),
        ("yesterday", None, None),
        ("", None, None),
    ],
)
def test_what_a_time_may_mean(written: str, first: int | None, last: int | None) -> None:
    """A day means all of it. More than a day in the future means nothing, as clocks and time zones do not explain it."""
    packed = packed_time(written, now=NOW)
    assert (bounds_of(packed) if packed else (None, None)) == (first, last)


def test_times_by_key() -> None:
    pages = PageTimes.of({5: 8, -3: 0, 7: 9})
    assert [pages.time(key) for key in (-3, 5, 7, 6, 99)] == [0, 8, 9, None, None]
    assert pages.differences({5: 8, 7: 11, 6: 2, 1: 0}) == [7, 6]
    assert pages.without({5: 8}) == [-3, 7]


@pytest.mark.parametrize(
    ("called", "others", "of_called", "of_changed", "is_ignored", "spares"),
    [
        ((19, 0), (0, 99), None, None, False, False),
        ((20, 0), (0, 100), 1.0, 1.0, False, True),
        ((0, 0), (0, 100), None, 1.0, False, True),
        ((10, 10), (0, 0), 0.5, None, False, False),
        ((9, 11), (0, 0), 0.45, None, True, False),
        ((0, 300), (0, 100), 0.0, 1.0, True, True),
        ((8, 12), (1, 99), 0.4, 0.9, True, True),
        ((20, 0), (10, 90), 1.0, 21 / 31, False, False),
        ((0, 0), (1, 99), None, 0.5, False, False),
    ],
)
def test_trust(
    called: tuple[int, int],
    others: tuple[int, int],
    of_called: float | None,
    of_changed: float | None,
    *,
    is_ignored: bool,
    spares: bool,
) -> None:
    """`called` and `others`: how many of the pages, called changed or not, had changed, and had not."""
    trust = Trust()
    for is_called, (changed, unchanged) in ((True, called), (False, others)):
        for _ in range(changed):
            trust.count(called=is_called, changed=True)
        for _ in range(unchanged):
            trust.count(called=is_called, changed=False)
    assert trust.of_called == pytest.approx(of_called)
    assert trust.of_changed == pytest.approx(of_changed)
    assert (trust.is_ignored, trust.spares) == (is_ignored, spares)


def test_the_last_few_hundred_pages_count() -> None:
    trust = Trust()
    for changed in [True] * 5_000 + [False] * 400:
        trust.count(called=True, changed=changed)
    assert trust.is_ignored


def test_a_newer_time_makes_a_page_due(tmp_path: Path) -> None:
    demo = site(tmp_path)
    demo.clock.advance(DAY)
    demo.change(demo.named[2])
    assert demo.fetched(after=1) == {demo.named[2]}
    assert demo.fetched(after=1) == set()


def test_a_time_before_the_last_fetch_makes_none_due(tmp_path: Path) -> None:
    demo = site(tmp_path)
    demo.says = {url: iso(demo.clock.now() - 60) for url in demo.named}
    assert demo.fetched(after=2) == set()


def test_a_page_that_leaves_the_sitemap_is_due_and_stays_if_it_is_there(tmp_path: Path) -> None:
    demo = site(tmp_path)
    left = demo.named.pop()
    assert demo.fetched(after=2) == {left}
    assert demo.of(left).indexed
    assert demo.fetched(after=2) == set()


@pytest.mark.parametrize("why", ["broken", "feed", "gone", "unreadable"])
def test_a_page_is_not_due_because_a_sitemap_is_incomplete(tmp_path: Path, why: str) -> None:
    demo = site(tmp_path)
    demo.named.pop()
    demo.fault = "it is broken" if why == "broken" else ""
    demo.kind = SitemapKind.RSS if why == "feed" else SitemapKind.SITEMAP
    if why in ("gone", "unreadable"):
        demo.pages[SITEMAP] = 404 if why == "gone" else 613
    assert demo.fetched(after=2) == set()


def test_a_sitemap_that_comes_later_makes_known_pages_due(tmp_path: Path) -> None:
    demo = Site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 3)
    demo.settings, named = {"CRAWLSPACE_REFRESH_MAX": "10d"}, demo.settings
    demo.links[HOME] = demo.named
    demo.crawl()
    demo.settings = named
    demo.clock.advance(DAY)
    demo.change(demo.named[0])
    demo.crawl(after=1)
    assert [url for url, _ in demo.asked] == [SITEMAP, demo.named[0]]


def test_a_page_fetched_in_the_run_is_due_in_the_next(tmp_path: Path) -> None:
    """A day without a time may mean an hour after the fetch."""
    demo = site(tmp_path)
    demo.says = {demo.named[0]: iso(demo.clock.now() + DAY)[:10]}
    assert demo.fetched(after=1) == {demo.named[0]}
    assert demo.fetched(after=1) == set()


def big(folder: Path, pages: int = 1_500, **settings: object) -> Site:
    demo = Site(folder, SqliteStore(folder / "urls.db", sinks=(EMBEDDED,)), pages, CRAWLSPACE_REFRESH_MIN="2d", **settings)
    demo.crawl()
    return demo


def changing(demo: Site, *, after: int = 10, every: int = 50, at: int = 0) -> tuple[int, int]:
    """Change some pages, and crawl; return how many pages were requested, and how many of the changed ones were not."""
    changed = demo.named[at::every]
    demo.clock.advance(DAY)
    demo.change(*changed)
    fetched = demo.fetched(after=after - 1)
    return len(fetched), len(set(changed) - fetched)


def test_a_right_sitemap_spares_the_other_pages(tmp_path: Path) -> None:
    demo = big(tmp_path)
    requested, missed = changing(demo)
    assert (requested < 400, missed) == (True, 0)
    for at in range(1, 4):
        requested, missed = changing(demo, at=at)
        assert (30 <= requested <= 90, missed) == (True, 0)
    assert demo.trust.value == pytest.approx(1.0)


def test_a_page_fetched_before_the_clock_was_set_back_is_not_spared(tmp_path: Path) -> None:
    """When it was fetched is not known any more: the sitemap says truly that it has changed since, with a time before that."""
    demo = big(tmp_path)
    for at in range(2):
        changing(demo, at=at)
    assert demo.trust.spares
    demo.clock.set(demo.clock.now() - 7_200)
    demo.crawl()
    demo.change(demo.named[1])
    assert demo.named[1] in demo.fetched(after=10)
    assert len(demo.fetched(after=10)) < 90


def test_a_clock_set_back_is_noticed_in_a_crawl(tmp_path: Path) -> None:
    demo = site(tmp_path)
    engine = demo.open().engine
    before = engine.generation
    demo.clock.set(demo.clock.now() - 7_200)
    demo.clock.advance(301)
    engine._update()
    assert engine.generation == before + 1
    engine.close()


def test_what_the_sitemap_says_is_known_where_it_has_not_changed(tmp_path: Path) -> None:
    """A 304 says that it is as before."""
    demo = big(tmp_path)
    changing(demo)
    demo.etag = "v1"
    demo.fetched(after=10)
    demo.etag = "v1"
    assert len(demo.fetched(after=10)) < 90


def test_a_sitemap_that_never_changes_spares_nothing(tmp_path: Path) -> None:
    demo = big(tmp_path)
    demo.says = {url: iso(demo.clock.now() - 9 * DAY) for url in demo.named}
    _, first = changing(demo)
    assert first <= 15
    for at in (1, 2):
        requested, missed = changing(demo, at=at)
        assert (requested, missed) == (1_500, 0)


def test_a_sitemap_that_calls_all_changed_is_ignored(tmp_path: Path) -> None:
    demo = big(tmp_path)
    requested = []
    for _ in range(7):
        demo.says = {url: iso(demo.clock.now() + 2 * DAY - 1) for url in demo.named}
        requested.append(len(demo.fetched(after=2)))
    assert requested == [1_500, 0, 0, 0, 0, 1_500, 0]  # then after their interval of 9 days
    assert demo.trust.is_ignored


def test_a_sitemap_that_begins_to_lie_is_found_out(tmp_path: Path) -> None:
    demo = big(tmp_path)
    changing(demo)
    changing(demo, at=1)
    assert demo.trust.spares
    demo.says = {url: iso(at) for url, at in demo.changed.items()}
    for at in (2, 3):
        changing(demo, at=at, every=20)
    assert not demo.trust.spares
    assert changing(demo, at=4) == (1_500, 0)


@pytest.mark.parametrize("set_back_s", [0, 100 * DAY])
def test_what_is_to_be_checked_survives_a_kill(tmp_path: Path, set_back_s: int) -> None:
    """It is stored before the outcome of the sitemap is. A page that was fetched in what is the future now is due at once, too."""
    demo = site(tmp_path)
    demo.etag = "v2"
    demo.clock.advance(2 * DAY)
    demo.change(demo.named[1])
    engine = demo.open().engine
    demo.engine = engine
    fetch = engine.next_fetch()
    assert isinstance(fetch, FetchPage)
    assert fetch.state.url == SITEMAP
    engine.fetched(demo._answer(fetch))
    engine.commit()  # and no step is made
    assert demo.store.get_meta(TO_CHECK + SITEMAP)
    demo.clock.set(demo.clock.now() - set_back_s)
    assert demo.fetched(after=0) == {demo.named[1]}
    assert not demo.store.get_meta(TO_CHECK + SITEMAP)


def test_a_sitemap_that_is_gone_says_nothing(tmp_path: Path) -> None:
    demo = big(tmp_path, pages=300)
    changing(demo)
    demo.pages[SITEMAP] = 404
    assert len(demo.fetched(after=15)) == 300
    assert '"at":0' in (demo.store.get_meta(READ + SITEMAP) or "")


def test_a_sitemap_stays_before_other_pages_after_a_change_of_the_rules(tmp_path: Path) -> None:
    demo = site(tmp_path)
    before = demo.of(SITEMAP).queue
    demo.write(start=HOME, rules=f"forbid prefix {HOME}1*\n")
    (tmp_path / "demo" / "rules.xml").write_text('<Rules><Rule><Path val="/2"/><Priority shift="1"/></Rule></Rules>')
    demo.fetched(after=2)
    assert demo.of(SITEMAP).queue == before
    assert demo.of(demo.named[1]).status == 760
    assert demo.of(demo.named[2]).shift == 1
