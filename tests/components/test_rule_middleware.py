"""The rule middleware in both of its bindings: the project's and the add-on's give one answer to one question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
import scrapy
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.exceptions import IgnoreRequest, NotConfigured, StopDownload
from scrapy.http import Headers, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.test import get_crawler

from crawlspace import settings as defaults
from crawlspace.addon import CrawlSpaceRules
from crawlspace.clock import local_time
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.decision import Reason
from crawlspace.model import Source, UrlState, priority
from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.components.addon_rules import LinksWithinRules, OutsideRefused
from crawlspace.runtime.components.requests import OWN, RESOURCE, OfPage, page_request, robots_request
from crawlspace.runtime.components.robots import RobotsTxt
from crawlspace.runtime.components.rule_middleware import RULES, RuleMiddleware
from crawlspace.runtime.session.session import Session
from crawlspace.state.site_pauses import SitePause
from crawlspace.urls import parse
from middlewares.crawl_space import CrawlSpaceGuard
from spiders.collection import CollectionSpider

START = "http://shop.example/docs/"
OTHER_START = "http://www.news.example/"
CRAWL_RULES = """\
allow domain shop.example
allow domain *.news.example
allow domain partly.example
allow domain many.example
forbid domain *
allow prefix http://partly.example/open/
forbid prefix http://partly.example/
forbid prefix http://shop.example/cart
"""
RULES_XML = """\
<Rules xmlns="exa:com.exalead.actionrules.v21" group="shop" key="1">
  <Rule><Path val="/ignored/"/><Ignore/></Rule>
  <Rule><Path val="/hub/"/><NoIndex/></Rule>
  <Rule><Path val="/leaf/"/><NoFollow/><Source name="leaves"/><AddMeta name="kind" value="leaf"/></Rule>
  <Rule><Path val="/late/"/><Priority shift="2"/></Rule>
</Rules>
"""
LIMITS = {
    "URLLENGTH_LIMIT": 100,
    "CRAWLSPACE_FOLLOW_QUERY_STRINGS": False,
    "CRAWLSPACE_MAX_PATH_DEPTH": 5,
    "CRAWLSPACE_MIME_TYPES": ["text/html", "application/pdf"],
    "TWISTED_REACTOR_ENABLED": False,  # nothing is sent
}


class Binding(Protocol):
    middleware: RuleMiddleware

    def counted(self) -> dict[str, int]: ...


class Demo(CollectionSpider):
    name = "demo"


class OwnParse(Demo):
    """Takes a link by itself."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield from super().parse(response)
        yield scrapy.Request(START)


class Shop(scrapy.Spider):
    name = "shop"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [START, OTHER_START]


class OfProject:
    """The middleware of a collection, asked about requests that do not come from its frontier."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        files = folder / "collections" / "demo"
        files.mkdir(parents=True)
        (files / "start_urls.txt").write_text(f"{START}\n{OTHER_START}\n")
        (files / "crawl.rules").write_text(CRAWL_RULES)
        (files / "rules.xml").write_text(RULES_XML)
        project = {name: value for name, value in vars(defaults).items() if name.isupper()}
        folders = {"CRAWLSPACE_COLLECTIONS_DIR": str(files.parent), "CRAWLSPACE_DATA_DIR": str(folder / "data")}
        both = {**project, **folders, "ROBOTSTXT_OBEY": False, **settings}
        self.session = Session.open("demo", both)
        self.crawler = get_crawler(Demo, both)
        self.spider = self.crawler.spider = Demo.from_crawler(self.crawler, session=self.session)
        self.middleware = CrawlSpaceGuard.from_crawler(self.crawler)
        self.session.engine.take_refused()  # of start URLs

    def counted(self) -> dict[str, int]:
        """Return what was refused since the last call, by reason."""
        return {reason.value: count for reason, count in self.session.engine.take_refused().items()}


class OfAddon:
    """The middleware of a project with a spider of its own."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        rules = folder / "rules"
        rules.mkdir(parents=True)
        (rules / "crawl.rules").write_text(CRAWL_RULES)
        (rules / "rules.xml").write_text(RULES_XML)
        own = {"ADDONS": {CrawlSpaceRules: 500}, "CRAWLSPACE_RULES_DIR": str(rules), "TELNETCONSOLE_ENABLED": False, **settings}
        self.crawler = AsyncCrawlerRunner(own).create_crawler(Shop)  # `get_crawler` knows no spider when it asks the add-ons
        self.crawler.spider = Shop.from_crawler(self.crawler)
        self.crawler._apply_settings()
        self.middleware = OutsideRefused.from_crawler(self.crawler)
        self.links = LinksWithinRules.from_crawler(self.crawler)

    def counted(self) -> dict[str, int]:
        prefix = "crawlspace/refused/"
        stats = self.crawler.stats.get_stats()
        return {name.removeprefix(prefix): value for name, value in stats.items() if name.startswith(prefix)}


class Both:
    """One crawl in each binding, by the same rules."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.opened: list[OfProject] = []

    def __call__(self, **settings: Any) -> tuple[OfProject, OfAddon]:
        project = OfProject(self._folder / "project", {**LIMITS, **settings})
        self.opened.append(project)
        return project, OfAddon(self._folder / "elsewhere", {**LIMITS, **settings})


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    made = Both(tmp_path)
    yield made
    for project in made.opened:
        project.session.close()


def refusal(binding: Binding, request: scrapy.Request) -> str:
    """Why a request is refused; empty where it is not."""
    try:
        binding.middleware.process_request(request)
    except IgnoreRequest as error:
        return str(error)
    return ""


REQUESTS = [
    # URL                                                reason                     rule
    (START,                                              Reason.ADMITTED,           ""),
    ("http://shop.example/docs/a.html",                  Reason.ADMITTED,           ""),
    ("https://www.news.example/",                        Reason.ADMITTED,           ""),
    ("http://a.b.news.example/",                         Reason.ADMITTED,           ""),
    ("http://partly.example/open/1",                     Reason.ADMITTED,           ""),
    ("http://partly.example/shut/1",                     Reason.PREFIX,             "crawl.rules:7"),
    ("http://shop.example/cart/1",                       Reason.PREFIX,             "crawl.rules:8"),
    ("http://other.example/",                            Reason.DOMAIN,             "crawl.rules:5"),
    ("http://news.example/",                             Reason.DOMAIN,             "crawl.rules:5"),
    ("http://shop.example/ignored/1",                    Reason.ACTIONS,            "rules.xml:2"),
    ("ftp://shop.example/a",                             Reason.SCHEME,             ""),
    ("http://shop.example/" + "a" * 100,                 Reason.URL_LENGTH,         ""),
    ("http://shop.example/a?b=c",                        Reason.QUERY_STRING,       ""),
    ("http://shop.example/a.zip",                        Reason.EXTENSION,          ""),
    ("http://shop.example/1/2/3/4/5/6/7",                Reason.PATH_DEPTH,         ""),
    ("http://shop.example/a/a/a/a/",                     Reason.REPEATED_SEGMENTS,  ""),
    ("http://me:word@shop.example/",                     Reason.CREDENTIALS,        ""),
    ("http://1.2.3.256/",                                 Reason.MALFORMED,          ""),
]  # fmt: skip


def test_requests(both: Both) -> None:
    """Also those of redirects, which are requests like any other. A URL is counted once."""
    for binding in both():
        for url, reason, rule in REQUESTS:
            sentence = f"{reason.sentence} ({rule})" if rule else reason.sentence
            expected = "" if reason is Reason.ADMITTED else sentence
            asked = [scrapy.Request(url), scrapy.Request(url, meta={"redirect_urls": [START]})]
            assert [refusal(binding, request) for request in asked] == [expected, expected], (binding, url)
        assert binding.counted() == {reason.value: 1 for _, reason, _ in REQUESTS if reason is not Reason.ADMITTED} | {
            "prefix": 2,
            "domain": 2,
        }


SCOPES = [
    ({"CRAWLSPACE_FOLLOW_OFFSITE_LINKS": False}, "http://many.example/",       Reason.OFFSITE),
    ({"CRAWLSPACE_FOLLOW_OFFSITE_LINKS": False}, "http://www.news.example/a",  Reason.ADMITTED),
    ({"CRAWLSPACE_INDEX_ENTIRE_SITE": True},     "http://shop.example/a",      Reason.FOLDER),
    ({"CRAWLSPACE_INDEX_ENTIRE_SITE": True},     "http://shop.example/docs/a", Reason.ADMITTED),
    ({"CRAWLSPACE_SITES": {"shop.example": {"max_path_depth": 0}}}, "http://shop.example/a/b",     Reason.PATH_DEPTH),
    ({"CRAWLSPACE_SITES": {"shop.example": {"max_path_depth": 0}}}, "http://www.news.example/a/b", Reason.ADMITTED),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "url", "reason"), SCOPES)
def test_limits_by_start_urls_and_sites(both: Both, settings: dict[str, Any], url: str, reason: Reason) -> None:
    for binding in both(**settings):
        assert refusal(binding, scrapy.Request(url)) == ("" if reason is Reason.ADMITTED else reason.sentence)


PDF, PNG, PAGE = b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n", b"<!doctype html><p>Text</p>"
DOCUMENTS = [
    # status, Content-Type,               body, flags               stopped at the header, refused,   outcome of a page
    (200, "text/html",                    PAGE, [],                 False,                 False,     (OutcomeKind.DOCUMENT, 200)),
    (200, "text/html; charset=utf-8",     PAGE, [],                 False,                 False,     (OutcomeKind.DOCUMENT, 200)),
    (200, "image/png",                    PNG,  [],                 True,                  True,      (OutcomeKind.EXCLUDED, 780)),
    (200, "text/html, image/png",         b"",  [],                 True,                  True,      (OutcomeKind.EXCLUDED, 780)),
    (200, "text/html",                    PNG,  [],                 False,                 True,      (OutcomeKind.EXCLUDED, 780)),
    (200, None,                           PNG,  [],                 False,                 True,      (OutcomeKind.EXCLUDED, 780)),
    (200, None,                           PAGE, [],                 False,                 False,     (OutcomeKind.DOCUMENT, 200)),
    (200, "application/octet-stream",     PNG,  [],                 False,                 True,      (OutcomeKind.EXCLUDED, 780)),
    (200, "text/html",                    PAGE, ["download_stopped"], False,               False,     (OutcomeKind.GONE, 615)),
    (200, "image/png",                    b"",  ["download_stopped"], True,                True,      (OutcomeKind.EXCLUDED, 780)),
    (404, "text/html",                    PAGE, [],                 False,                 False,     (OutcomeKind.GONE, 404)),
    (404, "image/png",                    PNG,  [],                 True,                  False,     (OutcomeKind.GONE, 404)),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "body", "flags", "stopped", "refused", "outcome"), DOCUMENTS)
def test_documents(
    both: Both,
    status: int,
    kind: str | None,
    body: bytes,
    flags: list[str],
    *,
    stopped: bool,
    refused: bool,
    outcome: tuple[OutcomeKind, int],
) -> None:
    headers = Headers({} if kind is None else {"Content-Type": kind})
    project, addon = both()
    for binding in (project, addon):
        request = scrapy.Request(START)
        assert refusal(binding, request) == ""
        assert is_stopped(binding, headers, request) is stopped
        response = Response(START, status, headers=headers, body=body, flags=flags, request=request)
        assert is_refused(binding, request, response) is refused
        assert binding.counted() == ({"mime_type": 1} if refused else {})
    page = project.session.engine.next_fetch()
    assert isinstance(page, FetchPage)
    leased = page_request(page.state, callback=None, errback=None)
    project.middleware.process_request(leased)
    assert is_stopped(project, headers, leased) is stopped
    response = Response(START, status, headers=headers, body=body, flags=flags, request=leased)
    assert project.middleware.process_response(leased, response) is response
    (fetched,) = project.spider.parse(response)
    assert (fetched.outcome.kind, int(fetched.outcome.status)) == outcome


def is_stopped(binding: Binding, headers: Headers, request: scrapy.Request) -> bool:
    """Whether the download is stopped at its headers; then the cache does not keep it either."""
    try:
        binding.middleware.headers_received(headers, request)
    except StopDownload as error:
        return not error.fail and request.meta["dont_cache"] is True
    return False


def is_refused(binding: Binding, request: scrapy.Request, response: Response) -> bool:
    try:
        return binding.middleware.process_response(request, response) is not response
    except IgnoreRequest as error:
        return str(error) == Reason.MIME_TYPE.sentence


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 205)])
def test_what_has_no_body_has_no_type(both: Both, method: str, status: int) -> None:
    for binding in both():
        request = scrapy.Request(START, method=method)
        assert not is_refused(binding, request, Response(START, status, request=request))


ACTIONS = [
    # URL                           index   follow  source               shift  label     fields
    ("http://shop.example/a",       True,   True,   Source.INDEX_FOLLOW, 0,     "",       {}),
    ("http://shop.example/hub/1",   False,  True,   Source.FOLLOW,       0,     "",       {}),
    ("http://shop.example/leaf/1",  True,   False,  Source.INDEX,        0,     "leaves", {"kind": "leaf"}),
    ("http://shop.example/late/1",  True,   True,   Source.INDEX_FOLLOW, 2,     "",       {}),
]  # fmt: skip


@pytest.mark.parametrize(("url", "index", "follow", "source", "shift", "label", "fields"), ACTIONS)
def test_actions(
    both: Both, url: str, source: Source, shift: int, label: str, fields: dict[str, str], *, index: bool, follow: bool
) -> None:
    """What the rules set is in the request's meta in both; neither takes links of a page that is not to be followed."""
    expected = {"index": index, "follow": follow, "shift": shift, "source": source.label, "label": label, "fields": fields}
    project, addon = both()
    for binding in (project, addon):
        request = scrapy.Request(url)
        assert refusal(binding, request) == ""
        assert request.meta[RULES] == expected
    link = addon.links.get_processed_request(scrapy.Request(url), Response(START, request=scrapy.Request(START)))
    assert link is not None
    assert link.priority == priority(source, shift)
    of_page = addon.links.get_processed_request(scrapy.Request(START), Response(url, request=scrapy.Request(url)))
    assert (of_page is not None) is follow
    assert bool(asyncio.run(requests_of_own_parse(project, url))) is follow


async def requests_of_own_parse(project: OfProject, url: str) -> list[scrapy.Request]:
    spider = OwnParse.from_crawler(project.crawler, session=project.session)
    parsed = parse(url)
    request = page_request(UrlState(1, parsed.key, url, parsed.site), callback=None, errback=None)
    response = Response(url, headers={"Content-Type": "text/html"}, body=PAGE, request=request)
    return [one async for one in spider.page_parser()(response) if isinstance(one, scrapy.Request)]


def test_an_exempt_request(both: Both) -> None:
    """No rule applies to it, and none to its document."""
    headers = Headers({"Content-Type": "image/png"})
    for binding in both():
        request = scrapy.Request("http://other.example/a.zip", meta={RULES: False})
        assert refusal(binding, request) == ""
        assert not is_stopped(binding, headers, request)
        assert not is_refused(binding, request, Response(request.url, headers=headers, body=PNG, request=request))
        assert binding.counted() == {}


ROBOTS_REDIRECTS = [
    # from robots.txt of shop.example to                    followed
    ("http://shop.example/robots.txt/",                     True),
    ("http://shop.example/cart/robots.zip?a=b",             True),
    ("https://shop.example/robots.txt",                     True),
    ("http://www.news.example/robots.txt",                  True),
    ("http://www.news.example/robots.zip",                  True),
    ("http://partly.example/robots.txt",                    True),  # some of its pages may be crawled
    ("http://other.example/robots.txt",                     False),
]  # fmt: skip


@pytest.mark.parametrize(("target", "followed"), ROBOTS_REDIRECTS)
def test_redirects_of_robots_txt(both: Both, target: str, *, followed: bool) -> None:
    project, addon = both()
    origin = "http://shop.example/robots.txt"
    fetch = robots_request(FetchRobots("shop.example:80", "http", origin), callback=None, errback=None)
    assert refusal(project, fetch) == ""
    moved = Response(origin, 301, headers={"Location": target}, request=fetch)
    assert isinstance(RobotsTxt.from_crawler(project.crawler).process_response(fetch, moved), scrapy.Request) is followed
    of_scrapy = scrapy.Request(target, callback=NO_CALLBACK, meta={"dont_obey_robotstxt": True, "redirect_urls": [origin]})
    assert (refusal(addon, of_scrapy) == "") is followed


def test_the_limit_of_a_host(both: Both) -> None:
    """Two different counts by spec: known URLs of a collection, where the frontier takes them in, and requests of the add-on."""
    project, addon = both(CRAWLSPACE_MAX_URLS_PER_HOST=1)
    asked = [scrapy.Request(f"http://many.example/{number}") for number in range(2)]
    assert [refusal(project, request) for request in asked] == ["", ""]
    assert [refusal(addon, request) for request in asked] == ["", Reason.URLS_PER_HOST.sentence]
    assert addon.counted() == {"urls_per_host": 1}


def test_robots_txt_of_the_project(both: Both) -> None:
    """In the add-on that is the part of Scrapy's own middleware. Exempt requests obey it too."""
    project, _ = both(ROBOTSTXT_OBEY=True)
    fetch = FetchRobots("shop.example:80", "http", "http://shop.example/robots.txt")
    project.session.engine.robots_read(fetch, status=200, body="User-agent: *\nDisallow: /no\n", retry_after_s=None, detail="")
    exempt = scrapy.Request("http://shop.example/no", meta={RULES: False})
    free = scrapy.Request("http://shop.example/no", meta={"dont_obey_robotstxt": True})
    asked = [scrapy.Request(START), scrapy.Request("http://shop.example/no"), exempt, free]
    assert [refusal(project, request) for request in asked] == ["", Reason.ROBOTS.sentence, Reason.ROBOTS.sentence, ""]
    assert project.counted() == {"robots": 2}


def test_nothing_is_sent_to_a_host_that_a_person_has_paused(both: Both) -> None:
    """No request of a spider's own, and no file that a page needs, from the next look at the store on."""
    project, _ = both()
    requests = [
        scrapy.Request(START),
        scrapy.Request(START, callback=NO_CALLBACK),
        scrapy.Request(START, meta={OWN: None}),
        scrapy.Request(
            START, meta={RESOURCE: OfPage("http://www.news.example/", is_named=False, is_own=False, may_be_read_elsewhere=False)}
        ),
    ]
    for pattern in ("www.news.example", "*.example"):
        assert [refusal(project, request) for request in requests] == ["", "", "", ""]
        project.session.store.set_site_pause(pattern, SitePause("ada", 1_750_000_000, "moves"))
        project.session.frontier.recheck_sites()
    sentence = f"*.example is paused by ada since {local_time(1_750_000_000)}: moves"
    assert [refusal(project, request) for request in requests] == [sentence] * 4


def test_a_leased_request_is_not_checked_again(both: Both) -> None:
    project, _ = both()
    page = project.session.engine.next_fetch()
    assert isinstance(page, FetchPage)
    request = page_request(page.state, callback=None, errback=None)
    assert refusal(project, request) == ""
    assert RULES not in request.meta


def test_a_spider_without_rules_has_no_middleware() -> None:
    for middleware in (CrawlSpaceGuard, OutsideRefused):
        crawler = get_crawler(settings_dict={"TWISTED_REACTOR_ENABLED": False})
        crawler.spider = scrapy.Spider("plain")
        with pytest.raises(NotConfigured):
            middleware.from_crawler(crawler)
