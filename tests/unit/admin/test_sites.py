"""Reports on the sites of a collection, and pausing them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from crawlspace.access.login_states import WAITING
from crawlspace.admin.sites import (
    SiteDetails,
    SiteList,
    SiteOrder,
    pause_host,
    read_pattern,
    resume_host,
    sitemap_lines,
    sites_as_json,
)
from crawlspace.clock import FakeClock, local_time
from crawlspace.config.collection import load_collection
from crawlspace.crawl.timed.lastmod import ALL, READ
from crawlspace.document import Document
from crawlspace.errors import UsageError
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.site_health import Health
from crawlspace.state.site_pauses import MOST_PAUSES, SitePause
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.setting_tables import defaults

NOW = 1_750_000_000
PAUSE = SitePause("ada", NOW - 60, "moves")
A, B, C, D, E, F = (f"{letter}.example:80" for letter in "abcdef")


def filled() -> MemoryStore:
    """Six sites: one with nothing special, one that waits, one that fails, one with a log-in, one due later, one never."""
    store = MemoryStore()
    for url in ("a.example/1", "a.example/2", "b.example/1", "c.example/1", "d.example/1", "e.example/1", "f.example/1"):
        parsed = parse(f"http://{url}")
        store.discover([NewUrl(parsed.key, parsed.text, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)
    for url, next_fetch in (("e.example/1", NOW + 300), ("f.example/1", None)):
        state = store.get(f"http://{url}")
        assert state is not None
        done = structs.replace(state, state=State.DONE, status=200, checksum=url.encode(), next_fetch=next_fetch)
        store.record([Change(done, Document(state.url))], now=NOW)
    store.wait_site(B, NOW + 120, wait_s=120)
    store.record([], now=NOW, health={C: Health(3, 0b10011, 0b0100)})
    store.set_unreachable(C, UnreachableSite(C, 612, since=NOW - 60, runs=1, counted_at=NOW))
    store.set_meta(WAITING, '{"d.example": {"since": 1, "why": "no answer"}}')
    return store


def listed(tmp_path: Path, store: MemoryStore, **settings: Any) -> SiteList:
    folder = tmp_path / "collections" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "start_urls.txt").write_text("http://a.example/", encoding="utf-8")
    login = {"d.example": {"login": {"type": "basic", "user": "ada", "password": "env:HOME"}, "allow_plain_http": True}}
    given: Mapping[str, Any] = {**defaults(), "CRAWLSPACE_COLLECTIONS_DIR": str(folder.parent), "CRAWLSPACE_SITES": login}
    return SiteList(store, load_collection("demo", {**given, **settings}), FakeClock(NOW))


def one_of(sites: SiteList, site: str) -> SiteDetails:
    return sites.details([one for one in sites.states if one.site == site])[0]


# site -> what it waits for, beginnings of sentences; when it is requested next, in seconds from now
WAITS = [
    (A, [], 0),
    (B, [f"waits until {local_time(NOW + 120)}"], 120),
    (C, [], 0),
    (D, ["nobody could log in by CRAWLSPACE_SITES['d.example']"], None),
    (E, [], 300),
    (F, [], None),
]


@pytest.mark.parametrize(("site", "waits", "after_s"), WAITS)
def test_when_and_why_a_site_waits(tmp_path: Path, site: str, waits: list[str], after_s: int | None) -> None:
    store = filled()
    state = one_of(listed(tmp_path, store), site).state
    assert [sentence[: len(begin)] for sentence, begin in zip(state.waits, waits, strict=True)] == waits
    assert state.next_at == (None if after_s is None else NOW + after_s)
    store.set_site_pause("*.example", PAUSE)
    paused = one_of(listed(tmp_path, store), site).state
    assert (paused.next_at, paused.waits[0]) == (None, f"paused by ada since {local_time(NOW - 60)}: moves (*.example)")
    assert paused.waits[1:] == state.waits


# what is selected -> the sites, in order
SELECTED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [A, B, C, D, E, F]),
    ({"order": SiteOrder.NAME}, [A, B, C, D, E, F]),
    ({"order": SiteOrder.DOCUMENTS}, [E, F, A, B, C, D]),
    ({"order": SiteOrder.ERRORS}, [C, A, B, D, E, F]),
    ({"errors": True}, [C, D]),
    ({"waiting": True}, [A, B, D]),
    ({"paused": True}, [A]),
    ({"host": "b.example"}, [B]),
    ({"host": "b.example:81"}, []),
    ({"host": "*.example", "waiting": True}, [A, B, D]),
]


@pytest.mark.parametrize(("wanted", "sites"), SELECTED)
def test_selected_sites(tmp_path: Path, wanted: dict[str, Any], sites: list[str]) -> None:
    store = filled()
    store.set_site_pause(A, PAUSE)
    assert [one.site for one in listed(tmp_path, store).select(**wanted)] == sites


# settings, robots.txt of a.example -> its delay
DELAYS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "", "1 s, one request at a time (DOWNLOAD_DELAY)"),
    ({"DOWNLOAD_DELAY": 0}, "", "none, up to 8 requests at a time (DOWNLOAD_DELAY)"),
    ({}, "User-agent: *\nCrawl-delay: 5", "5 s, one request at a time (robots.txt)"),
    ({"ROBOTSTXT_OBEY": False}, "User-agent: *\nCrawl-delay: 5", "1 s, one request at a time (DOWNLOAD_DELAY)"),
    ({"DOWNLOAD_DELAY": 9}, "User-agent: *\nCrawl-delay: 5", "9 s, one request at a time (DOWNLOAD_DELAY)"),
    ({"CRAWLSPACE_SITES": {"a.example": {"delay": 2}}}, "", "2 s, one request at a time (CRAWLSPACE_SITES)"),
    ({"CRAWLSPACE_VARIABLE_DELAY": {"Mon-Sun 00:00-24:00": 20}}, "", "20 s, one request at a time (CRAWLSPACE_VARIABLE_DELAY)"),
    (
        {"AUTOTHROTTLE_ENABLED": True},
        "",
        "1 s, one request at a time (DOWNLOAD_DELAY); AutoThrottle follows how fast it answers, and never goes below",
    ),
]


@pytest.mark.parametrize(("settings", "robots_txt", "sentence"), DELAYS)
def test_a_delay_and_what_it_comes_from(tmp_path: Path, settings: dict[str, Any], robots_txt: str, sentence: str) -> None:
    store = filled()
    store.save_robots(RobotsEntry(A, "http", 200, robots_txt, NOW - 60))
    assert one_of(listed(tmp_path, store, **settings), A).delay_sentence == sentence


def test_a_suspension_is_named(tmp_path: Path) -> None:
    sites = listed(tmp_path, filled(), CRAWLSPACE_VARIABLE_DELAY={"Mon-Sun 00:00-24:00": "suspend"})
    assert one_of(sites, A).state.waits == ["all requests are suspended by CRAWLSPACE_VARIABLE_DELAY"]
    assert [one.site for one in sites.select(waiting=True)] == [A, B, C, D]


def test_errors_of_a_site(tmp_path: Path) -> None:
    state = one_of(listed(tmp_path, filled()), C).state
    assert state.errors_sentence == "2 of the last 4 fetches failed; 1 of the last 4 fetches found nothing (404, 410)"
    assert state.unreachable is not None


def sites_json(tmp_path: Path) -> dict[str, object]:
    """The answer of `scrapy sites` for a site with one of everything."""
    store = filled()
    store.save_robots(RobotsEntry(A, "http", 200, "User-agent: *\n", NOW - 60))
    store.set_site_pause("shop.example.com", PAUSE)
    store.set_site_pause(A, PAUSE)
    url = "http://a.example/sitemap.xml"
    store.set_meta(ALL, url)
    store.set_meta(READ + url, f'{{"at": {NOW}, "entries": 12, "timed": 0}}')
    sites = listed(tmp_path, store)
    pauses = {"shop.example.com": sites.pauses["shop.example.com"]}
    return sites_as_json("demo", [one_of(sites, A)], total=1, pauses=pauses)


def test_what_belongs_to_a_site_alone(tmp_path: Path) -> None:
    answer: Any = sites_json(tmp_path)
    (site,) = answer["sites"]
    assert (site["pending"], site["due"], site["urls_of_host"]) == (2, 0, 2)
    robots = {"scheme": "http", "status": 200, "read": "2025-06-15T15:05:40Z", "bytes": 14, "obeyed": True}
    assert (site["robots"], site["login"]) == ([robots], None)
    sitemap = {"url": "http://a.example/sitemap.xml", "entries": 12, "read": "2025-06-15T15:06:40Z", "trust": None}
    assert site["sitemaps"] == [sitemap]
    details = one_of(listed(tmp_path, filled()), D)
    assert details.login.endswith("(CRAWLSPACE_SITES['d.example'])")
    assert "ada" in details.login
    assert list(sitemap_lines(details)) == []


# text -> pattern, or a part of the error
PATTERNS = [
    ("www.example.com", "www.example.com", ""),
    ("WWW.Example.com", "www.example.com", ""),
    ("www.example.com:8080", "www.example.com:8080", ""),
    ("www.example.com:80", "www.example.com:80", ""),
    ("*.example.com", "*.example.com", ""),
    ("*.example.com:8080", "*.example.com:8080", ""),
    ("bücher.example", "xn--bcher-kva.example", ""),
    ("[2001:DB8::7]", "[2001:db8::7]", ""),
    ("[2001:db8::7]:81", "[2001:db8::7]:81", ""),
    ("", "", "is no host"),
    ("*", "", "is no host"),
    ("*.", "", "is no host"),
    ("www.*.com", "", "is no host"),
    ("http://www.example.com/", "", "write one as in www.example.com, www.example.com:8080 or *.example.com"),
    ("www.example.com/a", "", "is no host"),
    ("me@www.example.com", "", "is no host"),
    ("www.example.com:99999", "", "is no host"),
]


@pytest.mark.parametrize(("text", "pattern", "error"), PATTERNS)
def test_patterns(text: str, pattern: str, error: str) -> None:
    if not error:
        assert read_pattern(text) == pattern
        return
    with pytest.raises(UsageError) as raised:
        read_pattern(text)
    assert error in str(raised.value)


def test_pausing_and_resuming() -> None:
    store, later = filled(), SitePause("bob", NOW)
    assert pause_host(store, "a.example", PAUSE, collection="demo") is None
    assert pause_host(store, "a.example", later, collection="demo") == PAUSE
    assert store.site_pauses() == {"a.example": later}
    assert resume_host(store, "a.example", collection="demo") == later
    assert store.site_pauses() == {}


# what is called with which pattern, when *.example is paused -> the sentence
REFUSED = [
    (pause_host, "nowhere.test", "nowhere.test is no host that demo knows: `scrapy sites demo` lists them"),
    (pause_host, "a.example:81", "a.example:81 is no host that demo knows"),
    (resume_host, "a.example", "a.example is not paused by itself; *.example is: --resume '*.example'"),
    (resume_host, "a.example:80", "a.example:80 is not paused by itself; *.example is"),
    (resume_host, "nowhere.test", "nowhere.test is not paused; `scrapy sites demo --paused` lists what is"),
]


@pytest.mark.parametrize(("call", "pattern", "sentence"), REFUSED)
def test_what_cannot_be_paused_or_resumed(call: Any, pattern: str, sentence: str) -> None:
    store = filled()
    store.set_site_pause("*.example", PAUSE)
    with pytest.raises(UsageError) as raised:
        call(store, pattern, *([PAUSE] if call is pause_host else []), collection="demo")
    assert sentence in str(raised.value)
    assert store.site_pauses() == {"*.example": PAUSE}


def test_as_many_hosts_as_workers_can_look_at_are_paused() -> None:
    store = filled()
    for number in range(MOST_PAUSES):
        store.set_site_pause(f"{number}.test", PAUSE)
    with pytest.raises(UsageError, match="pause a domain, as"):
        pause_host(store, "a.example", PAUSE, collection="demo")
