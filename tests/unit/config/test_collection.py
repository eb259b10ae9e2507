"""How a collection is read: its settings, its sites, and which values are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.config.collection import RefreshMode, load_collection
from crawlspace.config.refresh import CycleTimes, RefreshTimes
from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.content.html import LINK_TAGS
from crawlspace.crawl.startup import build_rediscovery, build_space, hash_of
from crawlspace.decision import Reason
from crawlspace.errors import CrawlspaceError, SettingError
from crawlspace.parsing import duration, integer
from crawlspace.rules.loosened import loosened
from crawlspace.settings import sections
from crawlspace.state.error_policy import ErrorRule
from crawlspace.urls import parse
from tests.command_line import ROOT
from tests.unit.config.conftest import settings


def test_a_collection_is_read(collections: Path) -> None:
    demo = load_collection("demo", settings(collections, DEPTH_LIMIT="3", CRAWLSPACE_REFRESH_MIN="12h"))
    assert [(start.url.text, start.shift, start.where) for start in demo.start_urls] == [
        ("http://a.example/", -1, "start_urls.txt:2"),
        ("http://[2001:db8::1]:8080/x", 0, "start_urls.txt:4"),
    ]
    assert demo.limits.max_link_depth == 3
    assert demo.policy.refresh_min_s == 43_200
    assert demo.store_file == collections / "data" / "demo" / "state.db"


def test_links_are_taken_from_all_tags_that_a_page_is_read_for(collections: Path) -> None:
    assert load_collection("demo", settings(collections)).content.link_tags == LINK_TAGS


def test_how_errors_deletions_and_refreshes_are_set(collections: Path) -> None:
    demo = load_collection("demo", settings(collections))
    assert (demo.continuous, demo.refresh, demo.refresh_mode) == (
        False,
        RefreshTimes(due_by_age=True, cycle=None, schedule=None),
        RefreshMode.APPEND,
    )
    assert (demo.max_deletions, demo.max_deletions_percent) == (100, 10)
    assert (demo.policy.host_fetches, demo.policy.host_failed_percent) == (20, 50)
    assert demo.policy.error_rules.of(404) is None
    assert not demo.soft_errors
    own = {
        "CRAWLSPACE_CONTINUOUS": "true",
        "CRAWLSPACE_REFRESH_MODE": "Soft",
        "CRAWLSPACE_MAX_DELETIONS": 0,
        "CRAWLSPACE_MAX_DELETIONS_PERCENT": "100",
        "CRAWLSPACE_HOST_FETCHES": 60,
        "CRAWLSPACE_HOST_FAILURES_PERCENT": 1,
        "CRAWLSPACE_HTTP_ERRORS": {"4xx": "DELETE:2"},
        "CRAWLSPACE_SOFT_ERRORS": [("*/x", "", "", 404)],
    }
    demo = load_collection("demo", settings(collections, **own))
    assert (demo.continuous, demo.refresh_mode) == (True, RefreshMode.SOFT)
    assert (demo.max_deletions, demo.max_deletions_percent) == (0, 100)
    assert (demo.policy.host_fetches, demo.policy.host_failed_percent) == (60, 1)
    assert demo.policy.error_rules.of(404) == ErrorRule(keep=False, after=2)
    assert demo.soft_errors.status_of("http://a/x", title="", text="") == 404


@pytest.mark.parametrize("value", [0.5, "0.5", 30, "30", 1e-3])
def test_a_time_out_is_a_number_of_seconds_as_for_scrapy(collections: Path, value: object) -> None:
    load_collection("demo", settings(collections, DOWNLOAD_TIMEOUT=value))


CYCLES = [(0, 0), (30, 1800), ("30", 1800), (0.5, 30), ("90s", 90), ("30m", 1800), ("12h", 43_200)]


@pytest.mark.parametrize(("minutes", "seconds"), CYCLES)
def test_a_cycle_is_minutes_or_has_a_unit(collections: Path, minutes: object, seconds: int) -> None:
    cycle = load_collection("demo", settings(collections, CRAWLSPACE_REFRESH_CYCLE=minutes)).refresh.cycle
    assert cycle == (CycleTimes(seconds) if seconds else None)


YIELDS = [
    # setting, value; whether a page that has not changed may yield something else with it
    ("CRAWLSPACE_LINK_TAGS", ["a"], True),
    ("CRAWLSPACE_LINK_TAGS", ["meta", "link", "iframe", "frame", "area", "a"], False),
    ("CRAWLSPACE_LINK_TAGS", ["a", "area", "frame", "iframe", "link", "meta", "img@src"], True),
    ("CRAWLSPACE_LINK_TAGS", ["a@href", "area@href", "frame", "iframe", "link", "meta"], False),
    ("CRAWLSPACE_MAX_LINKS", 3, True),
    ("CRAWLSPACE_META_FIELDS", {"a": "b"}, True),
    ("CRAWLSPACE_META_FIELDS", "{}", False),
    ("CRAWLSPACE_EXCLUSION_MARKS", ["noindex"], True),
    ("CRAWLSPACE_EXCLUSION_MARKS", [*reversed(EXCLUSION_MARKS)], False),
    ("CRAWLSPACE_MAIN_CONTENT", "main", True),
    ("CRAWLSPACE_MAIN_CONTENT", "All", False),
    ("CRAWLSPACE_CHECKSUM_CUT_OFF", 3, True),
    ("CRAWLSPACE_CHECKSUM_TITLE", False, True),
    ("CRAWLSPACE_NEAR_DUPLICATES", 3, True),
    ("CRAWLSPACE_META_ROBOTS", False, True),
    ("CRAWLSPACE_META_ROBOTS", True, False),
    ("ROBOTSTXT_OBEY", False, True),
    ("USER_AGENT", "other/1", True),
    ("USER_AGENT", "crawlspace/99 (+http://www.example.com/)", False),
    ("CRAWLSPACE_SOFT_ERRORS", [("", "a", "", 404)], True),
    ("CRAWLSPACE_HTTP_ERRORS", {"404": "KEEP"}, False),
    ("CRAWLSPACE_REFRESH_MIN", "2d", False),
    ("CRAWLSPACE_SITES", {"b.example": {"user_agent": "other/1"}}, True),
    ("CRAWLSPACE_SITES", {"b.example": {"file_maxsize": 9}}, True),
    ("CRAWLSPACE_SITES", {"b.example": {"delay": 9, "refresh_min": "2d", "download_maxsize": 9}}, False),
    ("DOWNLOAD_DELAY", 9, False),
]


@pytest.mark.parametrize(("name", "value", "differs"), YIELDS, ids=[f"{row[0]}-{row[1]}" for row in YIELDS])
def test_the_content_hash_differs_where_pages_may_yield_something_else(
    collections: Path, name: str, value: object, differs: bool
) -> None:
    before = load_collection("demo", settings(collections)).content_hash
    after = load_collection("demo", settings(collections, **{name: value})).content_hash
    assert (after != before) is differs


SITES = {
    "slow.example": {"delay": 2, "concurrency": 1},
    "*.example:8080": {"max_path_depth": 6},
    "*.example": {"concurrency": 3},
}


PACES = [
    # host, port, delay, concurrency, path depth
    ("slow.example", 80, 2, 1, None),
    ("fast.example", 80, 0, 3, None),
    ("fast.example", 8080, 0, 8, 6),
    ("other.test", 80, 0, 8, None),
]


@pytest.mark.parametrize(("host", "port", "delay", "concurrency", "depth"), PACES)
def test_sites_first_match(collections: Path, host: str, port: int, delay: float, concurrency: int, depth: int | None) -> None:
    site = load_collection("demo", settings(collections, CRAWLSPACE_SITES=SITES)).sites.of(host, port)
    assert (site.delay_s, site.concurrency, site.limits.max_path_depth) == (delay, concurrency, depth)


def test_a_delay_means_one_request_at_a_time(collections: Path) -> None:
    demo = load_collection("demo", settings(collections, DOWNLOAD_DELAY="500"))
    assert demo.sites.of("a.example", 80).concurrency == 1


OWN_TYPES: dict[str, object] = {
    "CRAWLSPACE_SITES": {
        "files.example": {"mime_types": ["application/pdf"], "exclude_extensions": "none"},
        "logs.example": {"exclude_extensions": "+log"},
    },
    "CRAWLSPACE_CONVERTERS": {"image/png": "ocr {file}"},
}
TYPES = [
    # URL, type of its answer; why it is refused, None: it is not
    ("http://files.example/a.css", "application/pdf", None),
    ("http://files.example/a", "text/html", Reason.MIME_TYPE),
    ("http://files.example/a.png", "image/png", None),
    ("http://logs.example/a.log", "text/html", Reason.EXTENSION),
    ("http://logs.example/a.css", "text/html", Reason.EXTENSION),
    ("http://other.example/a.log", "text/html", None),
    ("http://other.example/a.css", "text/html", Reason.EXTENSION),
    ("http://other.example/a", "image/gif", Reason.MIME_TYPE),
]


@pytest.mark.parametrize(("text", "kind", "reason"), TYPES, ids=[row[0] for row in TYPES])
def test_types_and_extensions_of_sites(collections: Path, text: str, kind: str, reason: Reason | None) -> None:
    space = build_space(load_collection("demo", settings(collections, **OWN_TYPES)))
    url = parse(text)
    decisions = [space.decide_url(url), space.at_headers(kind, site=url.site)]
    assert next((one.reason for one in decisions if not one.admitted), None) is reason


BOUNDS: list[tuple[dict[str, object], str, tuple[int, int, int | None] | None]] = [
    # an entry of a.example, a site; its shortest and longest interval and that of its start URLs, None: those of the collection
    ({"refresh_min": "1h", "refresh_max": "2h"}, "a.example:80", (3_600, 7_200, 7_200)),
    ({"refresh_min": "1h", "refresh_max": "2h"}, "b.example:80", None),
    ({"refresh_min": "2d"}, "a.example:80", (172_800, 864_000, 172_800)),
    ({"refresh_max": "5d"}, "a.example:80", (86_400, 432_000, 86_400)),
    ({"delay": 1}, "a.example:80", None),
]


@pytest.mark.parametrize(("entry", "site", "expected"), BOUNDS)
def test_intervals_of_sites(
    collections: Path, entry: dict[str, object], site: str, expected: tuple[int, int, int | None] | None
) -> None:
    own = {"CRAWLSPACE_REFRESH_MAX": "10d", "CRAWLSPACE_SITES": {"a.example": entry}}
    policy = load_collection("demo", settings(collections, **own)).policy
    found = policy.of(site)
    assert (None if found is policy else (found.refresh_min_s, found.refresh_max_s, found.start_refresh_s)) == expected


LOOSENING: list[tuple[dict[str, object], dict[str, object], set[Reason]]] = [
    # an entry at the last start, the entry now, which checks admit more
    ({"delay": 1}, {"delay": 2}, set()),
    ({}, {"exclude_extensions": "+log"}, {Reason.EXTENSION}),
    ({"mime_types": "text/html"}, {}, {Reason.MIME_TYPE}),
    ({"mime_types": "text/html"}, {"mime_types": "text/html", "delay": 1}, set()),
    ({}, {"max_path_depth": 1}, {Reason.PATH_DEPTH, Reason.QUERY_STRING, Reason.URLS_PER_HOST}),
]


@pytest.mark.parametrize(("before", "now", "reasons"), LOOSENING)
def test_which_checks_of_a_site_admit_more(
    collections: Path, before: dict[str, object], now: dict[str, object], reasons: set[Reason]
) -> None:
    found = [load_collection("demo", settings(collections, CRAWLSPACE_SITES={"a.example": own})) for own in (before, now)]
    checks = [build_rediscovery(one, build_space(one)).checks for one in found]
    assert loosened(*checks) == reasons


FOLDED_SITES = {"www.shop.example": {"url_fold_www": "keep"}, "*.shop.example": {"url_drop_parameters": ["sid"]}}


def test_url_options_of_sites_take_the_place_of_those_of_the_collection(collections: Path) -> None:
    demo = load_collection("demo", settings(collections, CRAWLSPACE_SITES=FOLDED_SITES, CRAWLSPACE_URL_FOLD_WWW="remove"))
    assert demo.url_folding is not None
    folded = [
        demo.url_folding.fold(parse(f"http://{host}/?utm_a=1&sid=2")).text
        for host in ("www.shop.example", "www.x.shop.example", "www.h.example")
    ]
    assert folded == [
        "http://www.shop.example/?utm_a=1&sid=2",
        "http://x.shop.example/?utm_a=1",
        "http://h.example/?utm_a=1&sid=2",
    ]


def test_without_url_options_nothing_is_folded(collections: Path) -> None:
    demo = load_collection("demo", settings(collections, CRAWLSPACE_SITES=SITES, CRAWLSPACE_URL_DROP_PATH_PARAMETERS=[]))
    assert demo.url_folding.description == []
    assert demo.url_folding.fold(parse("http://a.example/a;jsessionid=1/?b&a")).text == "http://a.example/a;jsessionid=1/?b&a"


NAMES = "CRAWLSPACE_URL_DROP_PATH_PARAMETERS"
SESSIONS: list[tuple[dict[str, object], str, str]] = [
    # settings, path, path as it is folded at www.shop.example
    ({}, "/a;jsessionid=1", "/a"),
    ({}, "/a;JSESSIONID=1/b;v=2;sid=3", "/a/b;v=2"),
    ({}, "/a;phpsessid=1;cfid=2;cftoken=3", "/a"),
    ({}, "/(S(lit3py55))/a", "/a"),
    ({}, "/a;v=1", "/a;v=1"),
    ({"CRAWLSPACE_URL_DROP_PATH_PARAMETERS": []}, "/a;jsessionid=1", "/a;jsessionid=1"),
    ({"CRAWLSPACE_URL_DROP_PATH_PARAMETERS": "V | (S())"}, "/(S(1))/a;v=1;sid=2", "/a;sid=2"),
    ({"CRAWLSPACE_SITES": {"*.shop.example": {"url_drop_path_parameters": []}}}, "/a;jsessionid=1", "/a;jsessionid=1"),
    ({"CRAWLSPACE_SITES": {"*.shop.example": {"url_sort_query": True}}}, "/a;jsessionid=1?b&a", "/a?a&b"),
]


@pytest.mark.parametrize(("own", "path", "folded"), SESSIONS)
def test_session_ids_in_paths(collections: Path, own: dict[str, object], path: str, folded: str) -> None:
    demo = load_collection("demo", settings(collections, **own))
    url = parse(f"http://www.shop.example{path}")
    assert demo.url_folding.fold(url).text == f"http://www.shop.example{folded}"


HASH_ROUTES = "CRAWLSPACE_HASH_ROUTES"
LIVE = "<Rules><Rule><Path val='/live/'/><Render/></Rule><Rule><Path val='/live/print/'/><Render mode='never'/></Rule></Rules>"
FOLLOWED: list[tuple[dict[str, object], str, list[str], int]] = [
    # settings, rules.xml, paths of app.example whose routes are followed, the places in the settings that have no effect
    ({}, "", [], 0),
    ({"CRAWLSPACE_RENDER": "always"}, "", [], 0),
    ({HASH_ROUTES: True}, "", [], 1),
    ({HASH_ROUTES: True, "CRAWLSPACE_RENDER": "auto"}, "", ["/", "/live/", "/live/print/"], 0),
    ({HASH_ROUTES: True, "CRAWLSPACE_RENDER": "always"}, LIVE, ["/", "/live/"], 0),
    ({HASH_ROUTES: True}, LIVE, ["/live/"], 0),
    ({HASH_ROUTES: True, "CRAWLSPACE_SITES": {"app.example": {"render": "auto"}}}, "", ["/", "/live/", "/live/print/"], 0),
    ({"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_SITES": {"app.example": {"hash_routes": True}}}, LIVE, ["/", "/live/"], 0),
    ({"CRAWLSPACE_SITES": {"app.example": {"hash_routes": True}}}, "", [], 1),
    ({HASH_ROUTES: True, "CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_SITES": {"app.example": {"render": "never"}}}, "", [], 0),
    ({HASH_ROUTES: True, "CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_SITES": {"app.example": {"hash_routes": False}}}, "", [], 0),
]


@pytest.mark.parametrize(("own", "rules", "followed", "in_vain"), FOLLOWED)
def test_routes_are_followed_where_pages_are_rendered(
    collections: Path, own: dict[str, object], rules: str, followed: list[str], in_vain: int
) -> None:
    if rules:
        (collections / "demo" / "rules.xml").write_text(rules)
    (collections / "demo" / "start_urls.txt").write_text("https://app.example/#/start\n")
    demo = load_collection("demo", settings(collections, **own))
    space = build_space(demo)
    urls = {path: space.decide(f"https://app.example{path}#/a")[0] for path in ("/", "/live/", "/live/print/")}
    assert [path for path, url in urls.items() if url is not None and url.fragment] == followed
    assert [start.url.fragment for start in demo.start_urls] == ["/start" if "/" in followed else ""]
    by_rules = demo.action_rules is not None and demo.action_rules.renders
    assert len(list(demo.sites.routes_without_effect(rendered_by_rules=by_rules))) == in_vain


def test_what_follows_routes_has_the_rules_applied_and_pages_fetched_whole(collections: Path) -> None:
    choices: list[dict[str, object]] = [
        {"CRAWLSPACE_RENDER": "auto"},
        {"CRAWLSPACE_RENDER": "auto", HASH_ROUTES: True},
        {"CRAWLSPACE_RENDER": "never", HASH_ROUTES: True},
        {"CRAWLSPACE_RENDER": "never"},
    ]
    found = [load_collection("demo", settings(collections, **choice)) for choice in choices]
    hashes = [hash_of(one, build_space(one)) for one in found]
    assert hashes[0] == hashes[3]
    assert len(set(hashes)) == 3
    assert len({one.content_hash for one in found[:2]}) == 2


def test_the_built_in_names_alone_have_no_page_fetched_again(collections: Path) -> None:
    """As after an update from a version that has none of them; the hash of the rules differs, so that known URLs are folded."""
    choices: list[dict[str, object]] = [{NAMES: []}, {}, {NAMES: ["sid"]}]
    none, built_in, own = (load_collection("demo", settings(collections, **choice)) for choice in choices)
    assert len({hash_of(one, build_space(one)) for one in (none, built_in, own)}) == 3
    described = [build_rediscovery(one, build_space(one)).checks for one in (none, built_in, own)]
    assert described[0] == described[1] != described[2]


WRONG = [
    # setting, value, what the sentence says
    ("CRAWLSPACE_NONSENSE", 1, "unknown setting CRAWLSPACE_NONSENSE: docs/settings.md lists them all"),
    ("CRAWLSPACE_SITEMAP", 1, "unknown setting CRAWLSPACE_SITEMAP: did you mean CRAWLSPACE_SITEMAPS?"),
    ("CRAWLSPACE_MAX_PATH_DEEPTH", 3, "unknown setting CRAWLSPACE_MAX_PATH_DEEPTH: did you mean CRAWLSPACE_MAX_PATH_DEPTH?"),
    ("CRAWLSPACE_QQQQQQQQQQQQQQQQQQQQQQQQ", 3, "unknown setting CRAWLSPACE_QQQQQQQQQQQQQQQQQQQQQQQQ: docs/settings.md lists them all"),
    ("CRAWLSPACE_MAX_PATH_DEPTH", -1, "CRAWLSPACE_MAX_PATH_DEPTH is -1; it must be at least 0"),
    ("CRAWLSPACE_MAX_PATH_DEPTH", "deep", "CRAWLSPACE_MAX_PATH_DEPTH is 'deep'; it must be a whole number at least 0"),
    ("CRAWLSPACE_ARCHIVE", "perhaps", "CRAWLSPACE_ARCHIVE is 'perhaps'; it must be True or False"),
    ("CRAWLSPACE_ARCHIVE_MAX_BYTES", "10GB", "CRAWLSPACE_ARCHIVE_MAX_BYTES is '10GB'; it must be a whole number at least 1000000"),
    ("CRAWLSPACE_ARCHIVE_MAX_BYTES", 5, "CRAWLSPACE_ARCHIVE_MAX_BYTES is 5; it must be at least 1000000"),
    ("URLLENGTH_LIMIT", 5, "URLLENGTH_LIMIT is 5; it must be from 16 to 65536"),
    ("CRAWLSPACE_LEASE_S", "soon", "CRAWLSPACE_LEASE_S is 'soon'; it must be seconds, or text like"),
    ("DOWNLOAD_DELAY", "-1", "DOWNLOAD_DELAY is '-1'; it must be at least 0 s"),
    ("CRAWLSPACE_REFRESH_MIN", "60d", "CRAWLSPACE_REFRESH_MIN (5184000 s) is above CRAWLSPACE_REFRESH_MAX (2592000 s)"),
    ("CRAWLSPACE_SCHEMES", ["http", "ftp"], "CRAWLSPACE_SCHEMES is ['http', 'ftp']; it may hold http, https"),
    ("ROBOTSTXT_OBEY", "perhaps", "ROBOTSTXT_OBEY is 'perhaps'; it must be True or False"),
    ("CRAWLSPACE_SITES", {"a": {"dely": 1}}, "CRAWLSPACE_SITES['a'] has an unknown key 'dely': did you mean 'delay'?"),
    ("CRAWLSPACE_SITES", {"a": 3}, "CRAWLSPACE_SITES['a'] is 3; it must be like"),
    ("CRAWLSPACE_SITES", "a", "CRAWLSPACE_SITES is 'a'; it must be like"),
    ("CRAWLSPACE_SITES", {"a": {"delay": -1}}, "CRAWLSPACE_SITES['a']['delay'] is -1; it must be at least 0 s"),
    (
        "CRAWLSPACE_SITES",
        {"a": {"url_trailing_slashes": "add"}},
        "CRAWLSPACE_SITES['a'] has an unknown key 'url_trailing_slashes': did you mean 'url_trailing_slash'?",
    ),
    ("CRAWLSPACE_SITES", {"a": {"url_fold_www": True}}, "CRAWLSPACE_SITES['a']['url_fold_www'] is True; it must be one of add,"),
    ("CRAWLSPACE_SITES", {"a": {"mime_types": 3}}, "CRAWLSPACE_SITES['a']['mime_types'] is 3; it must be a list of words"),
    (
        "CRAWLSPACE_SITES",
        {"a": {"exclude_extensions": "+log pdf"}},
        "CRAWLSPACE_SITES['a']['exclude_extensions'] has '+log' with a sign and 'pdf' without one; write all with + or -",
    ),
    (
        "CRAWLSPACE_SITES",
        {"a": {"variable_delay": {"Mom 9-17": 5}}},
        "CRAWLSPACE_SITES['a']['variable_delay']['Mom 9-17'] has an unknown day 'Mom': did you mean 'Mon'?",
    ),
    ("CRAWLSPACE_SITES", {"a": {"user_agent": ""}}, "CRAWLSPACE_SITES['a']['user_agent'] is ''; it must be a text"),
    ("CRAWLSPACE_SITES", {"a": {"download_maxsize": -1}}, "CRAWLSPACE_SITES['a']['download_maxsize'] is -1; it must be at least 0"),
    ("CRAWLSPACE_SITES", {"a": {"file_maxsize": 0}}, "CRAWLSPACE_SITES['a']['file_maxsize'] is 0; it must be at least 1"),
    ("CRAWLSPACE_SITES", {"a": {"refresh_min": "soon"}}, "CRAWLSPACE_SITES['a']['refresh_min'] is 'soon'; it must be seconds"),
    (
        "CRAWLSPACE_SITES",
        {"a": {"refresh_min": "60d"}},
        "CRAWLSPACE_SITES['a']['refresh_min'] (5184000 s) is above CRAWLSPACE_REFRESH_MAX (2592000 s); make it smaller",
    ),
    (
        "CRAWLSPACE_SITES",
        {"a": {"refresh_min": "2h", "refresh_max": "1h"}},
        "CRAWLSPACE_SITES['a']['refresh_min'] (7200 s) is above CRAWLSPACE_SITES['a']['refresh_max'] (3600 s)",
    ),
    ("CRAWLSPACE_URL_SORT", True, "unknown setting CRAWLSPACE_URL_SORT: did you mean CRAWLSPACE_URL_SORT_QUERY?"),
    ("CRAWLSPACE_URL_SORT_QUERY", "up", "CRAWLSPACE_URL_SORT_QUERY is 'up'; it must be True or False"),
    ("CRAWLSPACE_URL_TRAILING_SLASH", "strip", "CRAWLSPACE_URL_TRAILING_SLASH is 'strip'; it must be one of add, keep, remove"),
    ("CRAWLSPACE_HASH_ROUTES", "some", "CRAWLSPACE_HASH_ROUTES is 'some'; it must be True or False"),
    ("CRAWLSPACE_SITES", {"a": {"hash_routes": 3}}, "CRAWLSPACE_SITES['a']['hash_routes'] is 3; it must be True or False"),
    ("CRAWLSPACE_PARTS", "sections", "CRAWLSPACE_PARTS is 'sections'; it must be 'headings', or empty for none"),
    ("CRAWLSPACE_NEAR_DUPLICATES", 4, "CRAWLSPACE_NEAR_DUPLICATES is 4; it must be one of 0, 3, 6"),
    ("CRAWLSPACE_NEAR_DUPLICATES", True, "CRAWLSPACE_NEAR_DUPLICATES is True; it must be one of 0, 3, 6"),
    ("CRAWLSPACE_NEAR_DUPLICATES", "many", "CRAWLSPACE_NEAR_DUPLICATES is 'many'; it must be one of 0, 3, 6"),
    ("CRAWLSPACE_BOILERPLATE", True, "CRAWLSPACE_BOILERPLATE is True; it must be 'site', or empty for none"),
    ("CRAWLSPACE_URL_FOLD_WWW", True, "CRAWLSPACE_URL_FOLD_WWW is True; it must be one of add, keep, remove"),
    ("CRAWLSPACE_URL_DROP_PARAMETERS", 3, "CRAWLSPACE_URL_DROP_PARAMETERS is 3; it must be a list of words"),
    ("CRAWLSPACE_URL_DROP_PARAMETERS", ["a=1"], "CRAWLSPACE_URL_DROP_PARAMETERS has 'a=1'; it must hold names of parameters"),
    ("CRAWLSPACE_URL_DROP_PATH_PARAMETERS", ["a;b"], "CRAWLSPACE_URL_DROP_PATH_PARAMETERS has 'a;b'; it must hold names of parameters in"),
    ("CRAWLSPACE_URL_DROP_PATH_PARAMETERS", ["(S)"], "CRAWLSPACE_URL_DROP_PATH_PARAMETERS has '(S)'; it must hold names of parameters in"),
    ("ITEM_PIPELINES", {}, "ITEM_PIPELINES has no pipelines.dedupe.Fingerprint, without which nothing is recorded"),
    ("ITEM_PROCESSOR", "my.Own", "ITEM_PROCESSOR is 'my.Own', through which nothing is recorded: remove that setting"),
    ("CONCURRENT_REQUESTS", "many", "CONCURRENT_REQUESTS is 'many'; it must be a whole number at least 1"),
    ("DOWNLOAD_TIMEOUT", 0, "DOWNLOAD_TIMEOUT is 0; it must be a number above 0, without a unit"),
    ("DOWNLOAD_TIMEOUT", "30s", "DOWNLOAD_TIMEOUT is '30s'; it must be a number above 0"),
    ("DOWNLOAD_TIMEOUT", float("inf"), "DOWNLOAD_TIMEOUT is inf; it must be a number above 0"),
    ("DOWNLOAD_TIMEOUT", True, "DOWNLOAD_TIMEOUT is True; it must be a number above 0"),
    ("USER_AGENT", "", "USER_AGENT is ''; it must be a text"),
    ("CRAWLSPACE_HTTP_ERRORS", {"5xx": "RETRY"}, "CRAWLSPACE_HTTP_ERRORS['5xx'] is 'RETRY'; it must be like"),
    ("CRAWLSPACE_SOFT_ERRORS", [("a", 404)], "row 1 of CRAWLSPACE_SOFT_ERRORS is ('a', 404); it must be a URL pattern"),
    ("CRAWLSPACE_CONTINUOUS", "always", "CRAWLSPACE_CONTINUOUS is 'always'; it must be True or False"),
    ("CRAWLSPACE_REFRESH_CYCLE", -1, "CRAWLSPACE_REFRESH_CYCLE is -1; it must be at least 0"),
    ("CRAWLSPACE_REFRESH_CYCLE", "daily", "CRAWLSPACE_REFRESH_CYCLE is 'daily'; it must be minutes, or text like"),
    ("CRAWLSPACE_REFRESH_MODE", "hard", "CRAWLSPACE_REFRESH_MODE is 'hard'; it must be one of append, prioritized, scratch, soft"),
    ("CRAWLSPACE_REFRESH_MODE", None, "CRAWLSPACE_REFRESH_MODE is None; it must be one of"),
    ("CRAWLSPACE_MAX_DELETIONS", -1, "CRAWLSPACE_MAX_DELETIONS is -1; it must be at least 0"),
    ("CRAWLSPACE_MAX_DELETIONS_PERCENT", 101, "CRAWLSPACE_MAX_DELETIONS_PERCENT is 101; it must be from 0 to 100"),
    ("CRAWLSPACE_HOST_FETCHES", 61, "CRAWLSPACE_HOST_FETCHES is 61; it must be from 1 to 60"),
    ("CRAWLSPACE_HOST_FAILURES_PERCENT", 0, "CRAWLSPACE_HOST_FAILURES_PERCENT is 0; it must be from 1 to 100"),
    ("CRAWLSPACE_GLOBAL_RULES", "no/such.rules", "CRAWLSPACE_GLOBAL_RULES is 'no/such.rules', and there is no such file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG, ids=[f"{row[0]}-{row[1]}" for row in WRONG])
def test_wrong_settings(collections: Path, name: str, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{name: value}))
    assert sentence in str(caught.value)


DURATIONS = [
    (90, 90.0),
    ("90", 90.0),
    ("90s", 90.0),
    ("30m", 1800.0),
    ("12h", 43_200.0),
    ("7d", 604_800.0),
    ("1.5 h", 5400.0),
    (0.25, 0.25),
]


@pytest.mark.parametrize(("value", "seconds"), DURATIONS)
def test_durations(value: object, seconds: float) -> None:
    assert duration("X", value) == seconds


@pytest.mark.parametrize("value", ["", "5 parsecs", None, True, "nan", float("nan"), float("inf"), []])
def test_no_durations(value: object) -> None:
    with pytest.raises(CrawlspaceError, match="X is "):
        duration("X", value)


@pytest.mark.parametrize("value", ["", "5.5", None, True, 5.5, [], "５x"])
def test_no_whole_numbers(value: object) -> None:
    with pytest.raises(CrawlspaceError, match="X is "):
        integer("X", value)


def test_every_setting_of_ours_is_read() -> None:
    readers = [path for path in (ROOT / "crawlspace").rglob("*.py") if path.name != "settings.py"]
    source = "".join(path.read_text(encoding="utf-8") for path in readers)
    ours = [field for section in sections for field in structs.fields(section) if field.encode_name.startswith("CRAWLSPACE_")]
    assert [field.name for field in ours if not re.search(rf'[."]{field.name}\b', source)] == []
