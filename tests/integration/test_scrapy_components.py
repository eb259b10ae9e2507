"""Components of a user's own, one idea of Scrapy's documentation each: what they do, and that each page ends in one outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from tests.conftest import MakeProject, Project
from tests.integration import test_item_pipelines, test_own_requests, test_tutorials
from tests.integration.stored import FAST, collection, indexed, states, statuses
from tests.sites import Site, page, sequence, serve, status
from tests.sites import drop as drops

MINE = "tests.integration.scrapy_habits.components"
DELAY_S = 0.5
TICK_S = 0.03
"""How much nearer to each other two requests may arrive than they were sent."""
QUICK = FAST + "RETRY_TIMES = 1\n"
ROBOTS = {"/robots.txt": status(404)}
PAGES = {"/": page("Home", links=["/a"]), "/a": page("A page"), "/more": page("More"), "/elsewhere": page("Elsewhere"), **ROBOTS}


def settings(setting: str, component: str, order: int = 543) -> str:
    return f"{QUICK}{setting} = {{'{MINE}.{component}': {order}}}\n"


def titles(made: Project, lines: list[str]) -> list[str]:
    return sorted(str(json.loads(line)["title"]) for line in lines)


DOWNLOADER = [
    # downloader middleware; statuses; the paths asked for after robots.txt and /; titles exported; what is logged
    ("SetsHeader", {"/": 200, "/a": 200}, ["/a"], ["A page", "Home"], ""),
    ("AnswersItself", {"/": 200, "/a": 200}, [], ["Home", "Made up"], ""),
    ("ReplacesRequest", {"/": 200, "/a": 200}, ["/a"], ["A page", "Home"], ""),
    ("ReplacesRequestAlways", {"/": 200, "/a": 699}, [], ["Home"], "/a has no outcome (699): a middleware has requested it more than 10 times in a row"),
    ("ReplacesUrl", {"/": 200, "/a": 3020, "/elsewhere": 200}, ["/elsewhere"], ["Elsewhere", "Home"], "counts as a redirect (3020)"),
    ("StartsAnew", {"/": 200, "/a": 699, "/a?again": 200}, ["/a?again"], ["A page", "Home"], "/a has no outcome (699): a middleware has lost its request or response"),
    ("IgnoresRequest", {"/": 200, "/a": 699}, [], ["Home"], ""),
    ("ChangesBody", {"/": 200, "/a": 200}, ["/a"], ["Another page", "Home"], ""),
    ("IgnoresResponse", {"/": 200, "/a": 699}, ["/a"], ["Home"], ""),
    ("ReturnsNoResponse", {"/": 200, "/a": 699}, ["/a", "/a"], ["Home"], "must return Response or Request"),
    ("Breaks", {"/": 200, "/a": 699}, [], ["Home"], "/a ended unexpectedly (699): ValueError: a mistake in somebody's middleware"),
]  # fmt: skip


@pytest.mark.parametrize(("component", "found", "asked", "exported", "logged"), DOWNLOADER, ids=[row[0] for row in DOWNLOADER])
def test_downloader_middlewares(
    project: MakeProject, component: str, found: dict[str, int], asked: list[str], exported: list[str], logged: str
) -> None:
    with serve(Site(PAGES)) as server:
        made = project(collection(server.url("/"), settings=settings("DOWNLOADER_MIDDLEWARES", component)))
        crawl = made.crawl("demo", "-O", str(made.folder / "out.jsonl")).succeeded()
    assert statuses(made) == found
    assert server.paths()[2:] == asked
    assert titles(made, (made.folder / "out.jsonl").read_text().splitlines()) == exported
    assert logged in crawl.stderr
    assert "Traceback" not in crawl.stderr


def test_a_header_that_a_middleware_sets_is_sent_with_each_page(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        project(collection(server.url("/"), settings=settings("DOWNLOADER_MIDDLEWARES", "SetsHeader"))).crawl("demo").succeeded()
        assert [request.headers.get("x-token") for request in server.requests] == ["secret"] * 3


def test_a_page_that_is_not_ready_is_asked_for_again_and_keeps_the_delay(project: MakeProject) -> None:
    site = Site({**PAGES, "/a": sequence([page("A page", text="not ready"), page("A page", text="ready")])})
    with serve(site) as server:
        made = project(
            collection(
                server.url("/"),
                settings=settings("DOWNLOADER_MIDDLEWARES", "RetriesUnfinished") + f"DOWNLOAD_DELAY = {DELAY_S}\n",
            )
        )
        made.crawl("demo").succeeded()
        first, second = (request.at for request in server.requests if request.path == "/a")
    assert statuses(made) == {"/": 200, "/a": 200}
    assert second - first > DELAY_S - TICK_S


EXCEPTIONS = [
    # middleware; status of a page whose connection is closed; how often it is asked for
    ("AnswersExceptions", 200, 1),
    ("RetriesExceptions", 612, 4),  # twice in each of two tries
]


@pytest.mark.parametrize(("component", "code", "times"), EXCEPTIONS)
def test_exceptions_of_a_download(project: MakeProject, component: str, code: int, times: int) -> None:
    with serve(Site({**PAGES, "/a": drops(reset=True)})) as server:
        made = project(collection(server.url("/"), settings=settings("DOWNLOADER_MIDDLEWARES", component)))
        made.crawl("demo").succeeded()
        assert server.counts()["/a"] == times
    assert statuses(made) == {"/": 200, "/a": code}


SPIDER = [
    # spider middleware; statuses; paths of the index; titles exported; what is logged
    ("AddsField", {"/": 200, "/a": 200}, ["/", "/a"], ["A page", "Home"], ""),
    ("DropsItem", {"/": 200, "/a": 2004}, ["/"], ["Home"], ""),
    ("AddsItemAndRequest", {"/": 200, "/a": 200, "/more": 200}, ["/", "/a", "/more"], ["A page", "Extra", "Home", "More"], ""),
    ("YieldsText", {"/": 200, "/a": 699}, ["/"], ["Home"], "/a: a spider middleware put a str in place of its item, which is no item (699)"),
    ("FailsInOutput", {"/": 200, "/a": 699}, ["/"], ["Home"], "/a could not be parsed (699)"),
    ("RefusesInput", {"/": 200, "/a": 699}, ["/"], ["Home"], "/a ended unexpectedly (699): ValueError: no such input"),
    ("ReturnsInput", {"/": 200, "/a": 699}, ["/"], ["Home"], "/a has no outcome (699): _InvalidOutput"),
]  # fmt: skip


@pytest.mark.parametrize(("component", "found", "in_index", "exported", "logged"), SPIDER, ids=[row[0] for row in SPIDER])
def test_spider_middlewares(
    project: MakeProject, component: str, found: dict[str, int], in_index: list[str], exported: list[str], logged: str
) -> None:
    with serve(Site(PAGES)) as server:
        made = project(collection(server.url("/"), settings=settings("SPIDER_MIDDLEWARES", component)))
        crawl = made.crawl("demo", "-O", str(made.folder / "out.jsonl")).succeeded()
    lines = (made.folder / "out.jsonl").read_text().splitlines()
    assert statuses(made) == found
    assert indexed(made) == in_index
    assert titles(made, lines) == exported
    assert logged in crawl.stderr
    assert all(json.loads(line).get("section") == "news" for line in lines) is (component == "AddsField")


def test_links_are_followed_though_a_middleware_drops_the_item_and_sees_none(project: MakeProject) -> None:
    with serve(Site({**PAGES, "/a": page("A page", links=["/more"])})) as server:
        made = project(collection(server.url("/"), settings=settings("SPIDER_MIDDLEWARES", "DropsItem")))
        made.crawl("demo").succeeded()
    assert statuses(made) == {"/": 200, "/a": 2004, "/more": 200}


def test_a_request_of_a_middleware_is_a_link_further_than_its_page(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        made = project(collection(server.url("/"), settings=settings("SPIDER_MIDDLEWARES", "AddsItemAndRequest")))
        made.crawl("demo").succeeded()
    assert {path: state.depth for path, state in states(made).items()} == {"/": 0, "/a": 1, "/more": 2}


def test_two_spider_middlewares_see_what_the_other_left(project: MakeProject) -> None:
    both = f"{QUICK}SPIDER_MIDDLEWARES = {{'{MINE}.AddsField': 10, '{MINE}.DropsItem': 900}}\n"
    with serve(Site(PAGES)) as server:
        made = project(collection(server.url("/"), settings=both))
        made.crawl("demo").succeeded()
    assert statuses(made) == {"/": 200, "/a": 2004}


def test_an_exception_of_parsing_that_a_middleware_handles(project: MakeProject) -> None:
    """Its items are exported; the page itself has no document."""
    with serve(Site(PAGES)) as server:
        files = {
            "raising/start_urls.txt": server.url("/"),
            "raising/settings.py": settings("SPIDER_MIDDLEWARES", "HandlesException"),
        }
        made = project(files)
        crawl = made.crawl(
            "raising", "-s", "SPIDER_MODULES=tests.integration.scrapy_habits", "-O", str(made.folder / "out.jsonl")
        ).succeeded()
    assert statuses(made, "raising") == {"/": 200, "/a": 699}
    assert titles(made, (made.folder / "out.jsonl").read_text().splitlines()) == ["Failed: no price", "Home"]
    assert "a spider middleware handled the exception of its parsing" in crawl.stderr


def test_what_a_spider_starts_with_goes_through_its_middlewares(project: MakeProject) -> None:
    with serve(Site({**PAGES, "/b": page("B"), "/secret": page("Secret")})) as server:
        files = {"starter/start_urls.txt": server.url("/"), "starter/settings.py": settings("SPIDER_MIDDLEWARES", "FiltersStart")}
        made = project(files)
        made.crawl("starter", "-s", "SPIDER_MODULES=tests.integration.scrapy_habits", "-a", f"base={server.url('')}").succeeded()
    assert statuses(made, "starter") == {"/": 200, "/a": 200, "/b": 200}


def test_a_middleware_that_scrapy_refuses_is_one_sentence(project: MakeProject) -> None:
    made = project(collection("http://127.0.0.1:9/", settings=settings("SPIDER_MIDDLEWARES", "SyncOutput")))
    crawl = made.crawl("demo")
    assert crawl.returncode == 1
    assert "the crawl could not be set up: Middleware " in crawl.stderr
    assert "SyncOutput doesn't support asynchronous spider output" in crawl.stderr
    assert "Traceback" not in crawl.stderr


REFUSED = [
    # settings; what is said
    ("SCHEDULER = 'scrapy.core.scheduler.Scheduler'", "SCHEDULER is 'scrapy.core.scheduler.Scheduler', which applies no rules"),
    ("ITEM_PIPELINES = {'pipelines.state.RecordState': None}", "ITEM_PIPELINES has no pipelines.state.RecordState"),
    (
        "SPIDER_MIDDLEWARES = {'crawlspace.runtime.components.one_outcome.OneOutcome': None}",
        "SPIDER_MIDDLEWARES has no crawlspace.runtime.components.one_outcome.OneOutcome",
    ),
]


@pytest.mark.parametrize(("setting", "sentence"), REFUSED)
def test_what_a_crawl_cannot_do_without_is_refused_at_the_start(project: MakeProject, setting: str, sentence: str) -> None:
    crawl = project(collection("http://127.0.0.1:9/", settings=setting)).crawl("demo")
    assert crawl.returncode == 1
    assert sentence in crawl.stderr
    assert "Traceback" not in crawl.stderr


SIGNALS: Mapping[str, int] = {
    "engine_started": 1,
    "spider_opened": 1,
    "spider_idle": 1,
    "item_scraped": 2,
    "request_reached_downloader": 4,  # robots.txt, /, /a, and /gone
    "request_left_downloader": 4,
    "headers_received": 4,
    "response_received": 4,
    "response_downloaded": 4,
}


def stats_of(stderr: str, name: str) -> int:
    _, found, rest = stderr.partition(f"'{name}': ")
    return int(rest.partition(",")[0].partition("}")[0]) if found else 0


def test_signals_reach_an_extension(project: MakeProject) -> None:
    site = {**PAGES, "/": page("Home", links=["/a", "/gone"])}
    with serve(Site(site)) as server:
        made = project(collection(server.url("/"), settings=settings("EXTENSIONS", "Listens") + "STATS_DUMP = True\n"))
        crawl = made.crawl("demo").succeeded()
    assert {name: stats_of(crawl.stderr, f"mine/{name}") for name in SIGNALS} == SIGNALS
    assert "closed: finished" in crawl.stderr


def test_an_error_of_parsing_is_signalled_and_counted(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        files = {
            "raising/start_urls.txt": server.url("/"),
            "raising/settings.py": settings("EXTENSIONS", "Listens") + "STATS_DUMP = True\n",
        }
        crawl = project(files).crawl("raising", "-s", "SPIDER_MODULES=tests.integration.scrapy_habits").succeeded()
    found = [
        stats_of(crawl.stderr, name) for name in ("mine/spider_error", "spider_exceptions/count", "spider_exceptions/ValueError")
    ]
    assert found == [1, 1, 1]


def test_an_extension_may_ask_for_more_when_the_crawl_is_idle(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        late = f"LATE_URL = {server.url('/more')!r}\n"
        made = project(collection(server.url("/"), settings=settings("EXTENSIONS", "AddsWhenIdle") + late))
        made.crawl("demo").succeeded()
    assert statuses(made) == {"/": 200, "/a": 200, "/more": 200}


def test_an_extension_may_close_the_crawl(project: MakeProject) -> None:
    with serve(Site({**PAGES, "/a": page("A page", links=["/more"])})) as server:
        made = project(collection(server.url("/"), settings=settings("EXTENSIONS", "ClosesOnItem") + "STATS_DUMP = True\n"))
        crawl = made.crawl("demo").succeeded()
    assert "'finish_reason': 'seen_enough'" in crawl.stderr
    assert statuses(made)["/a"] == 200


def test_close_spider_raised_by_parsing(project: MakeProject) -> None:
    """The page at which it was raised is fetched by the next start."""
    with serve(Site(PAGES)) as server:
        files = {"closing/start_urls.txt": server.url("/"), "closing/settings.py": QUICK + "STATS_DUMP = True\n"}
        made = project(files)
        crawl = made.crawl("closing", "-s", "SPIDER_MODULES=tests.integration.scrapy_habits").succeeded()
    assert "'finish_reason': 'seen_enough'" in crawl.stderr
    assert statuses(made, "closing") == {"/": 200, "/a": None}


def test_a_component_downloads_by_itself_within_the_rules(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        made = project(collection(server.url("/"), settings=settings("ITEM_PIPELINES", "Downloads", 950)))
        crawl = made.crawl("demo").succeeded()
        assert sorted(server.paths()) == ["/", "/?detail", "/a", "/a?detail", "/robots.txt"]
    assert crawl.stderr.count("detail of http") == 2
    assert statuses(made) == {"/": 200, "/a": 200}


CLASSES = [
    # a setting; what the log has
    (f"LOG_FORMATTER = '{MINE}.Quiet'\nLOG_LEVEL = 'WARNING'", ["SCRAPED Home", "SCRAPED A page"]),
    (f"STATS_CLASS = '{MINE}.Stats'", ["STATS 2"]),
]


@pytest.mark.parametrize(("setting", "logged"), CLASSES)
def test_classes_of_ones_own(project: MakeProject, setting: str, logged: list[str]) -> None:
    with serve(Site(PAGES)) as server:
        crawl = project(collection(server.url("/"), settings=f"{QUICK}{setting}\n")).crawl("demo").succeeded()
    assert [line for line in logged if line not in crawl.stderr] == []


def test_a_download_handler_of_ones_own(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        made = project(collection(server.url("/"), settings=f"{QUICK}DOWNLOAD_HANDLERS = {{'http': '{MINE}.Handler'}}\n"))
        made.crawl("demo", "-O", str(made.folder / "out.jsonl")).succeeded()
    assert titles(made, (made.folder / "out.jsonl").read_text().splitlines()) == ["Handled", "Home"]


AS_IN_SCRAPY = "as in Scrapy"
WORKS: list[tuple[str, str, str, Callable[..., None]]] = [
    # component; what it does; what becomes of that in a collection; the test that shows it
    ("downloader middleware", "`process_request` changes the request", AS_IN_SCRAPY, test_a_header_that_a_middleware_sets_is_sent_with_each_page),
    ("", "`process_request` returns a response", "as in Scrapy; it is read like one that was downloaded", test_downloader_middlewares),
    ("", "`process_request`, `process_response` or `process_exception` returns a request for the same URL", "it is sent after the delay of the site, ten times in a row at most; then the page is 699", test_a_page_that_is_not_ready_is_asked_for_again_and_keeps_the_delay),
    ("", "… a request for another URL", "the page ends as redirected (3020), its target is a URL of its own, and the rules apply to it", test_downloader_middlewares),
    ("", "… a request without the `meta` of the page's", "it is a URL of its own; the page ends as 699, once nothing else is left to do", test_downloader_middlewares),
    ("", "raises `IgnoreRequest`", "the page ends as 699, without a retry; nothing of it is in the index", test_downloader_middlewares),
    ("", "`process_response` changes the response", AS_IN_SCRAPY, test_downloader_middlewares),
    ("", "`process_exception` returns a response", AS_IN_SCRAPY, test_exceptions_of_a_download),
    ("", "raises, or returns what Scrapy forbids", "the page ends as 699 and is fetched again when it is next due", test_downloader_middlewares),
    ("spider middleware", "`process_spider_output` changes or replaces the item of a page", "as in Scrapy; the item goes into the index", test_spider_middlewares),
    ("", "… drops it", "the page is kept out of the index (2004); its links are followed", test_links_are_followed_though_a_middleware_drops_the_item_and_sees_none),
    ("", "… adds items", "they go to item pipelines and exports, not into the index", test_spider_middlewares),
    ("", "… adds requests", "their URLs are candidates, a link further than the page", test_a_request_of_a_middleware_is_a_link_further_than_its_page),
    ("", "… yields what is no item, or raises", "the page ends as 699 and is fetched again when it is next due", test_spider_middlewares),
    ("", "… drops a request with a callback", "as in Scrapy; the page does not wait for it", test_own_requests.test_a_page_does_not_wait_for_requests_that_a_spider_middleware_drops),
    ("", "… is no asynchronous generator", "the crawl does not start, as in Scrapy", test_a_middleware_that_scrapy_refuses_is_one_sentence),
    ("", "`process_spider_input` raises", "the page ends as 699 and is fetched again when it is next due", test_spider_middlewares),
    ("", "`process_spider_exception` returns items", "they are exported; the page ends as 699 and is fetched again when it is next due", test_an_exception_of_parsing_that_a_middleware_handles),
    ("", "`process_start` filters or adds requests of `start()`", "as in Scrapy; start URLs of files do not come by there", test_what_a_spider_starts_with_goes_through_its_middlewares),
    ("", "sees links of a page", "no: links are taken without a request for each; rules decide on them", test_links_are_followed_though_a_middleware_drops_the_item_and_sees_none),
    ("extension", "signals of engine, spider, items, requests and responses", "as in Scrapy, but `request_scheduled` and `request_dropped`, which are sent only for requests that a component or `start()` yields", test_signals_reach_an_extension),
    ("", "`item_dropped`", "also sent for fetches without a document, such as redirects", test_signals_reach_an_extension),
    ("", "`spider_error`, and the stats `spider_exceptions/…`", AS_IN_SCRAPY, test_an_error_of_parsing_is_signalled_and_counted),
    ("", "`spider_idle` with `DontCloseSpider` and `engine.crawl()`", AS_IN_SCRAPY, test_an_extension_may_ask_for_more_when_the_crawl_is_idle),
    ("", "`engine.close_spider_async()`", "as in Scrapy; the next start continues", test_an_extension_may_close_the_crawl),
    ("item pipeline", "`process_item` changes or replaces the item of a page", "as in Scrapy; the item goes into the index", test_item_pipelines.test_what_a_pipeline_does_to_a_page),
    ("", "raises `DropItem`", "as in Scrapy; the page is kept out of the index (200), and its links are followed", test_item_pipelines.test_a_dropped_document_leaves_the_index_and_its_links_stay),
    ("", "raises anything else, or returns no item", "the page ends as 699 and is fetched again when it is next due", test_item_pipelines.test_what_a_pipeline_does_to_a_page),
    ("", "`open_spider`, `close_spider`", AS_IN_SCRAPY, test_tutorials.test_6_duplicates_and_a_file_of_items),
    ("`FilesPipeline`", "downloads what `file_urls` names", "as in Scrapy, within domain rules and robots.txt, but without the other rules for pages", test_item_pipelines.test_scrapys_files_pipeline),
    ("requests with callbacks", "`parse()` yields one, with `cb_kwargs`, headers, a form …", "it is sent as it is, and not remembered; the items of its callback belong to the page", test_tutorials.test_3_an_item_that_an_api_completes),
    ("", "fail", "as in Scrapy, with `errback`; without an item the page ends as 699 and is tried again", test_own_requests.test_a_request_that_fails),
    ("", "are refused by rules or robots.txt", "`errback` gets `IgnoreRequest`", test_own_requests.test_a_request_that_is_refused),
    ("", "are yielded by `start()`", "they are answered before the first page is fetched; their items are only exported", test_own_requests.test_a_log_in_comes_before_the_pages),
    ("any component", "`engine.download_async()`", "as in Scrapy, within the rules and robots.txt", test_a_component_downloads_by_itself_within_the_rules),
    ("`document()` or `parse()`", "raises `CloseSpider`", "as in Scrapy; the page is fetched by the next start", test_close_spider_raised_by_parsing),
    ("`LOG_FORMATTER`, `STATS_CLASS`", "a class of your own", AS_IN_SCRAPY, test_classes_of_ones_own),
    ("`DOWNLOAD_HANDLERS`", "a handler of your own", "as in Scrapy; the delay of a site counts from its turn", test_a_download_handler_of_ones_own),
    ("`SCHEDULER`, and our own components", "another one, or without them", "the crawl does not start, with a sentence", test_what_a_crawl_cannot_do_without_is_refused_at_the_start),
]  # fmt: skip
"""Rows of docs/scrapy.md."""
