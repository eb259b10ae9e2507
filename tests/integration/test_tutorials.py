"""Ten short programs as Scrapy's documentation and tutorials have them, adapted to a collection: what their user sees."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.conftest import MakeProject, Project, assert_same
from tests.http import Reply, Request
from tests.integration.stored import FAST, indexed, make_due, statuses
from tests.sites import Route, Server, Site, binary, html, page, redirect, serve, status

OWN = ("-s", "SPIDER_MODULES=tests.integration.tutorials", "-L", "INFO")
WAY_OUT = "to index a page that is linked, yield its item in parse(), which is called for each"
COMPONENTS = "tests.integration.tutorials.components"
IN_ORDER = "CONCURRENT_REQUESTS_PER_DOMAIN = 1\n"


def collected(
    project: MakeProject, server: Server, name: str, *options: str, settings: str = ""
) -> tuple[Project, list[dict[str, Any]], str]:
    """Crawl a collection with the spider of this name; return the project, the items exported, and the log."""
    made = project({f"{name}/start_urls.txt": server.url("/"), f"{name}/settings.py": FAST + settings})
    items, logged = crawled(made, name, *options, "-s", f"SITE={server.url('/')}")
    return made, items, logged


def crawled(made: Project, name: str, *options: str) -> tuple[list[dict[str, Any]], str]:
    out = made.folder / "items.jsonl"
    logged = made.crawl(name, *OWN, *options, "-O", str(out)).succeeded().stderr
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    return [json.loads(line) for line in lines], logged


def found(made: Project, name: str, words: str) -> list[tuple[str, Mapping[str, str]]]:
    """Path and further fields of the documents that a search finds."""
    hits = json.loads(made.scrapy("search", name, words, "--json").succeeded().stdout)["hits"]
    return sorted((urlsplit(hit["url"]).path, hit["fields"]) for hit in hits)


# --- 1: a page after the other ------------------------------------------------------------------------------------

ARTICLES = """
from spiders.collection import CollectionSpider  # was: import scrapy


class ArticlesSpider(CollectionSpider):  # was: scrapy.Spider
    name = "articles"
    start_urls = ["{start}"]

    def parse(self, response):
        yield {{
            "title": response.css("h1::text").get(),
            "author": response.css("small.author::text").get(),
        }}
        next_page = response.css("li.next a::attr(href)").get()
        if next_page is not None:
            yield response.follow(next_page, self.parse)
"""


def article(title: str, author: str, following: str = "") -> Reply:
    link = f'<ul><li class="next"><a href="{following}">Next</a></li></ul>' if following else ""
    return html(f'<title>{title}</title><h1>{title}</h1><p>words <small class="author">{author}</small>{link}')


def test_1_an_item_a_page_and_the_next_page(project: MakeProject, tmp_path: Path) -> None:
    """A file of its own, as a user writes it; the collection has no other than its rules."""
    site = Site({"/": article("One", "Ann", "/2"), "/2": article("Two", "Bob", "/3"), "/3": article("Three", "Cem")})
    folder = tmp_path / "my_spiders"
    folder.mkdir()
    (folder / "__init__.py").touch()
    with serve(site) as server:
        (folder / "articles.py").write_text(ARTICLES.format(start=server.url("/")), encoding="utf-8")
        made = project({"articles/settings.py": FAST})
        made.env["PYTHONPATH"] = str(tmp_path)
        items, logged = crawled(made, "articles", "-s", "SPIDER_MODULES=my_spiders")
        assert server.paths() == ["/robots.txt", "/", "/2", "/3"]
    authors = ["Ann", "Bob", "Cem"]
    assert [item["author"] for item in items] == authors
    assert [fields["author"] for _, fields in sorted(found(made, "articles", "words"))] == authors
    assert "WARNING" not in logged


# --- 2: a list, and details with a callback of their own ----------------------------------------------------------


def author(name: str, born: str) -> Reply:
    return html(f'<title>x</title><h1> {name} </h1><i class="born">{born}</i><p class="about">{name} wrote words.')


AUTHORS: dict[str, Route] = {
    "/": html('<title>List</title><p>a list<a class="author" href="/ann">Ann</a><a class="next" href="/page/2">next</a>'),
    "/page/2": html('<title>List</title><p>more<a class="author" href="/bob">Bob</a><a class="author" href="/cem">Cem</a>'),
    "/ann": author("ann", "1901"),
    "/bob": author("bob", "1902"),
    "/cem": author("cem", "1903"),
}


def test_2_details_of_a_list(project: MakeProject) -> None:
    with serve(Site(AUTHORS)) as server:
        made, items, logged = collected(project, server, "authors")
        assert_same(server.paths(), ["/robots.txt", *AUTHORS])
    assert_same([(item["name"], item["born"]) for item in items], [("Ann", "1901"), ("Bob", "1902"), ("Cem", "1903")])
    assert [(path, fields["name"]) for path, fields in found(made, "authors", "wrote")] == [
        ("/ann", "Ann"),
        ("/bob", "Bob"),
        ("/cem", "Cem"),
    ]
    assert indexed(made, "authors") == ["/ann", "/bob", "/cem"]
    assert "WARNING" not in logged


def test_2_without_a_change_of_its_parsing(project: MakeProject) -> None:
    """All items are exported; each list is the document of its first, and the warning says what to do."""
    with serve(Site(AUTHORS)) as server:
        made, items, logged = collected(project, server, "unchanged_authors", settings=IN_ORDER)
        start = server.url("/")
        assert server.counts()["/ann"] == 2, "once for the callback, once as a page"
    assert_same([item["name"] for item in items], ["Ann", "Bob", "Cem"])
    assert indexed(made, "unchanged_authors") == ["/", "/page/2"]
    assert logged.count(WAY_OUT) == 2
    assert f"the document of {start} is the item of a callback for {start}ann" in logged
    assert f"{start}page/2 gives more than one item" in logged


# --- 3: a partial item that another request completes -------------------------------------------------------------


def test_3_an_item_that_an_api_completes(project: MakeProject) -> None:
    def stock(request: Request) -> Reply:
        assert (request.method, request.headers["content-type"]) == ("POST", "application/json")
        return binary(json.dumps({"stock": len(json.loads(request.body)["sku"])}).encode(), "application/json")

    products = {f"/{sku}": html(f'<h1>Lamp {sku}</h1><p data-sku="{sku}">words') for sku in ("a", "bb")}
    with serve(Site({"/": page("Lamps", links=list(products)), **products, "/api/stock": stock})) as server:
        made, items, logged = collected(project, server, "products")
        assert server.counts() == {"/robots.txt": 1, "/": 1, "/a": 1, "/bb": 1, "/api/stock": 2}
    assert_same([(item["title"], item["stock"]) for item in items], [("Lamp a", 1), ("Lamp bb", 2)])
    assert found(made, "products", "lamp") == [("/a", {"sku": "a", "stock": "1"}), ("/bb", {"sku": "bb", "stock": "2"})]
    assert "WARNING" not in logged


# --- 4: a log-in --------------------------------------------------------------------------------------------------


def members_only(request: Request) -> Reply:
    if "session=42" not in request.headers.get("cookie", ""):
        return redirect("/login")
    return html('<h1>Members</h1><p>words <i class="user">john</i><a href="/news">news</a>')


def session(request: Request) -> Reply:
    sent = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
    if sent != {"csrf": "abc", "username": "john", "password": "secret"}:
        return html("<p>authentication failed")
    return status(303, headers={"Location": "/welcome", "Set-Cookie": "session=42"})


FORM = html("<form method=post action=/session><input type=hidden name=csrf value=abc><input name=username><input name=password>")
CLUB: dict[str, Route] = {
    "/login": FORM,
    "/session": session,
    "/welcome": page("Welcome"),
    "/": members_only,
    "/news": members_only,
}


def test_4_a_log_in(project: MakeProject) -> None:
    with serve(Site(CLUB)) as server:
        made, items, _ = collected(project, server, "members")
        assert server.paths() == ["/robots.txt", "/login", "/session", "/welcome", "/", "/news"]
    assert [item["user"] for item in items] == ["john", "john"]
    assert indexed(made, "members") == ["/"], "the other is equal"
    assert found(made, "members", "words") == [("/", {"user": "john"})]


def test_4_a_log_in_that_fails(project: MakeProject) -> None:
    with serve(Site({**CLUB, "/session": html("<p>authentication failed")})) as server:
        made, items, logged = collected(project, server, "members", "-s", "STATS_DUMP=True")
        assert server.paths() == ["/robots.txt", "/login", "/session"]
    assert items == []
    assert "'finish_reason': 'login failed'" in logged
    assert statuses(made, "members") == {"/": None}


def test_4_without_cookies_the_log_says_why_it_fails(project: MakeProject) -> None:
    with serve(Site(CLUB)) as server:
        _, items, logged = collected(project, server, "members", "-s", "COOKIES_ENABLED=False")
        form = server.url("/session")
    assert "john" not in [item["user"] for item in items]
    assert logged.count(f"and it is not kept, because COOKIES_ENABLED is False: {form}") == 1


def test_4_without_a_change_of_its_requests(project: MakeProject) -> None:
    """The form is then the page that the items belong to."""
    site = {**CLUB, "/session": status(303, headers={"Location": "/welcome", "Set-Cookie": "session=42"})}
    with serve(Site(site)) as server:
        made = project({"unchanged_members/start_urls.txt": server.url("/login"), "unchanged_members/settings.py": FAST})
        items, logged = crawled(made, "unchanged_members")
        expected = f"the document of {server.url('/login')} is the item of a callback for {server.url('/')}"
    assert [item["user"] for item in items] == ["john"]
    assert indexed(made, "unchanged_members") == ["/login"]
    assert expected in logged
    assert WAY_OUT in logged


# --- 5 and 6: item pipelines --------------------------------------------------------------------------------------


def product(name: str, number: int, price: str = "", *, headers: Mapping[str, str] | None = None) -> Reply:
    tag = f'<b class="price">{price}</b>' if price else ""
    return html(
        f'<title>{name}</title><h1>{name}</h1><div class="product" data-id="{number}">{tag}<p>words of {name}</div>',
        headers=headers,
    )


GOODS = {"/lamp": product("Lamp", 1, "€ 10.00"), "/chair": product("Chair", 2), "/lamp-again": product("Same lamp", 1, "€ 10.00")}
SHOP = {"/": page("Shop", links=list(GOODS)), **GOODS}


def pipelines(**order: int) -> str:
    return f"ITEM_PIPELINES = { ({f'{COMPONENTS}.{name}': number for name, number in order.items()}) }\n"


def test_5_a_pipeline_that_cleans_and_drops(project: MakeProject) -> None:
    with serve(Site(SHOP)) as server:
        made, items, logged = collected(project, server, "shop", settings=pipelines(PricePipeline=300))
    assert_same([(item["name"], item["price"]) for item in items], [("Lamp", 12.0), ("Same lamp", 12.0)])
    assert indexed(made, "shop") == ["/lamp", "/lamp-again"]
    assert ("/lamp", {"id": "1", "name": "Lamp", "price": "12.0"}) in found(made, "shop", "lamp")
    assert "Dropped: no price in Chair" in logged
    explained = made.scrapy("explain", "shop", server.url("/chair")).stdout
    assert "an item pipeline dropped the document" in explained


def test_6_duplicates_and_a_file_of_items(project: MakeProject, tmp_path: Path) -> None:
    written = tmp_path / "items.jl"
    settings = pipelines(DuplicatesPipeline=300, JsonWriterPipeline=800) + f"ITEMS_FILE = {str(written)!r}\n" + IN_ORDER
    with serve(Site(SHOP)) as server:
        made, items, logged = collected(project, server, "shop", settings=settings)
        assert [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()] == items
        assert_same([item["name"] for item in items], ["Lamp", "Chair"])
        assert indexed(made, "shop") == ["/chair", "/lamp"]
        assert "Dropped: item ID already seen: 1" in logged


UNCHANGED = "DOWNLOADER_MIDDLEWARES = {'crawlspace.runtime.components.middlewares.ConditionalGet': None}\n"


@pytest.mark.parametrize(("settings", "in_index"), [("", ["/chair", "/lamp", "/lamp-again"]), (UNCHANGED, ["/chair", "/lamp"])])
def test_6_what_a_pipeline_remembers_is_of_one_run(project: MakeProject, settings: str, in_index: list[str]) -> None:
    """A page that has not changed does not come to it again, unless there are no conditional requests."""
    lamp = product("Lamp", 1, "€ 10.00", headers={"ETag": '"1"'})
    with serve(Site({**SHOP, "/lamp": lamp})) as server:
        made, _, _ = collected(project, server, "shop", settings=pipelines(DuplicatesPipeline=300) + IN_ORDER + settings)
        assert indexed(made, "shop") == ["/chair", "/lamp"]
        make_due(made, "shop")
        crawled(made, "shop")
    assert indexed(made, "shop") == in_index


# --- 7: files -----------------------------------------------------------------------------------------------------


FILES = [
    # the linked file; settings; how often it is downloaded
    ("/lamp.zip", "", 1),  # an extension that is not crawled
    ("/lamp.pdf", "", 2),  # once as a page, of a type that is not taken
    ("/lamp.pdf", "CRAWLSPACE_EXCLUDE_EXTENSIONS = 'pdf'\n", 1),
]


@pytest.mark.parametrize(("path", "settings", "times"), FILES)
def test_7_files_that_are_linked(project: MakeProject, tmp_path: Path, path: str, settings: str, times: int) -> None:
    manual = html(f'<title>Manual</title><h1>Manual</h1><p>words <a class="download" href="{path}">File</a>')
    with serve(
        Site({"/": page("Home", links=["/manual"]), "/manual": manual, path: binary(b"%PDF-1.4", "application/pdf")})
    ) as server:
        made, items, _ = collected(project, server, "manuals", settings=f"{settings}FILES_STORE = {str(tmp_path / 'files')!r}\n")
        assert server.counts() == {"/robots.txt": 1, "/": 1, "/manual": 1, path: times}
    ((file,),) = (item["files"] for item in items)
    assert file["url"] == server.url(path)
    assert (tmp_path / "files" / file["path"]).read_bytes() == b"%PDF-1.4"
    ((found_path, fields),) = found(made, "manuals", "words")
    assert found_path == "/manual"
    assert json.loads(fields["files"])[0]["path"] == file["path"]


# --- 8: downloader middlewares ------------------------------------------------------------------------------------


def test_8_a_header_from_settings_and_another_user_agent(project: MakeProject) -> None:
    def for_friends(request: Request) -> Reply:
        return page("Friends", text="words") if request.headers["user-agent"] == "Friend/2" else status(403)

    settings = (
        f"DOWNLOADER_MIDDLEWARES = {{'{COMPONENTS}.TokenMiddleware': 543, '{COMPONENTS}.AnotherAgentMiddleware': 560}}\n"
        "API_TOKEN = 'abc'\nUSER_AGENT = 'Crawler'\nUSER_AGENTS = ['Friend/1', 'Friend/2']\n"
    )
    with serve(Site({"/": page("Home", text="home", links=["/friends"]), "/friends": for_friends})) as server:
        made, _, _ = collected(project, server, "plain", settings=settings)
        asked = [request for request in server.requests if request.path == "/friends"]
        assert [request.headers["user-agent"] for request in asked] == ["Crawler", "Friend/1", "Friend/2"]
        assert {request.headers.get("x-api-token") for request in server.requests} == {"abc"}
    assert [path for path, _ in found(made, "plain", "words")] == ["/friends"]
    assert statuses(made, "plain") == {"/": 200, "/friends": 200}


# --- 9: an extension ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_on", [True, False])
def test_9_an_extension_that_counts_items(project: MakeProject, is_on: bool) -> None:
    settings = f"EXTENSIONS = {{'{COMPONENTS}.SpiderOpenCloseLogging': 500}}\nMYEXT_ENABLED = {is_on}\nMYEXT_ITEMCOUNT = 2\n"
    with serve(Site({"/": page("Home", text="home", links=["/a", "/gone"]), "/a": page("A", text="a")})) as server:
        _, _, logged = collected(project, server, "plain", settings=settings)
    lines = [line.partition("] INFO: ")[2] for line in logged.splitlines() if f"[{COMPONENTS}]" in line]
    assert lines == (["opened spider plain", "scraped 2 items", "closed spider plain after 2 items"] if is_on else [])


# --- 10: arguments, an export of its own, an errback and closed() -------------------------------------------------


def test_10_arguments_feeds_errback_and_closed(project: MakeProject, tmp_path: Path) -> None:
    tags = {f"/tag/{tag}": html(f"<h1>{tag}</h1><p>words of {tag}") for tag in ("all", "humor")}
    with serve(Site({"/": html("<h1>Home</h1><p>home"), **tags, "/unavailable": status(404)})) as server:
        made = project({"tagged/start_urls.txt": server.url("/"), "tagged/settings.py": FAST})
        given = ("-s", f"SITE={server.url('/')}", "-a", "tag=humor", "-a", f"folder={tmp_path}")
        logged = made.crawl("tagged", *OWN, *given).succeeded().stderr
        assert f"the errback of {server.url('/broken')} has no effect; give it a callback of its own" in logged
    with (tmp_path / "humor.csv").open(newline="", encoding="utf-8") as file:
        rows = [tuple(row) for row in csv.reader(file)]
    assert rows[0] == ("title", "tag")
    assert_same(rows[1:], [("Home", "humor"), ("humor", "humor")])
    assert [path for path, _ in found(made, "tagged", "words")] == ["/tag/humor"]
    assert f"closed: finished; broken: ['404 {server.url('/unavailable')}']" in logged


def test_10_another_argument_goes_on_with_the_same_collection(project: MakeProject, tmp_path: Path) -> None:
    """What an earlier run found stays in the index."""
    tags = {f"/tag/{tag}": html(f"<h1>{tag}</h1><p>words of {tag}") for tag in ("love", "humor")}
    with serve(Site({"/": html("<h1>Home</h1><p>home"), **tags})) as server:
        made = project({"tagged/start_urls.txt": server.url("/"), "tagged/settings.py": FAST})
        for tag in ("humor", "love"):
            given = ("-s", f"SITE={server.url('/')}", "-a", f"tag={tag}", "-a", f"folder={tmp_path}")
            made.crawl("tagged", *OWN, *given).succeeded()
        assert server.counts()["/tag/humor"] == 1
    assert [(path, fields["tag"]) for path, fields in found(made, "tagged", "words")] == [
        ("/tag/humor", "humor"),
        ("/tag/love", "love"),
    ]


def test_10_an_export_of_the_command_line_takes_the_place_of_feeds(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site({"/": html("<h1>Home</h1><p>home")})) as server:
        _, items, _ = collected(project, server, "tagged", "-a", f"folder={tmp_path}")
    assert [item["title"] for item in items] == ["Home"]
    assert not (tmp_path / "all.csv").exists()


def test_10_a_spider_with_requests_of_start_only_is_told_to_name_a_start_url(project: MakeProject) -> None:
    made = project({"tagged/settings.py": FAST})
    crawl = made.crawl("tagged", *OWN, "-s", "SITE=http://127.0.0.1:9/")
    assert crawl.returncode == 1
    assert "collection 'tagged' has no start URL: write one a line into" in crawl.stderr


LINKS = "Needs no change, and may be left out: links are followed as the rules allow."
ADAPTIONS: list[tuple[str, str, Callable[..., None]]] = [
    # in a tutorial; what it needs in a collection, and what is different; the test that shows it
    ("`class Spider(scrapy.Spider)`", "`class Spider(CollectionSpider)`, with the `name` of the collection. Nothing else must be changed.", test_1_an_item_a_page_and_the_next_page),
    ("`start_urls`", "As it is, or in `start_urls.txt`.", test_1_an_item_a_page_and_the_next_page),
    ("`start()` yields the first requests", "As it is; a collection needs a start URL beside them.", test_10_a_spider_with_requests_of_start_only_is_told_to_name_a_start_url),
    ("`response.follow(href, self.parse)`", LINKS, test_1_an_item_a_page_and_the_next_page),
    ("`response.follow_all(css=…, callback=self.parse_author)` for pages", "Do in `parse()` what the callback does, where `response.css(…)` finds what only such a page has. `parse()` is called for each linked page.", test_2_details_of_a_list),
    ("… without that change", "All items are exported, but the first one becomes the document of the list, and each page is fetched twice. A warning says so.", test_2_without_a_change_of_its_parsing),
    ("a second request that completes an item (`cb_kwargs`, `JsonRequest`)", "As it is.", test_3_an_item_that_an_api_completes),
    ("a log-in with the form as start URL", "Request the form in `start()`, and set `COOKIES_ENABLED = True`. Pages are fetched after it.", test_4_a_log_in),
    ("`DropItem` in a pipeline", "As it is; the page leaves the index.", test_5_a_pipeline_that_cleans_and_drops),
    ("a pipeline that drops duplicates", "As it is, but a page that has not changed (304) does not come to it again: take out `crawlspace.runtime.components.middlewares.ConditionalGet`.", test_6_what_a_pipeline_remembers_is_of_one_run),
    ("`FilesPipeline`", "As it is. A linked file is fetched as a page too, unless its extension is one of `CRAWLSPACE_EXCLUDE_EXTENSIONS`, as archives and images are by default.", test_7_files_that_are_linked),
    ("a downloader middleware, an extension", "As it is.", test_8_a_header_from_settings_and_another_user_agent),
    ("`-a tag=humor`", "As it is. A run with another argument goes on with the same collection: what earlier ones found stays in the index.", test_10_another_argument_goes_on_with_the_same_collection),
    ("`FEEDS` in `custom_settings`, `errback`, `closed()`", "As they are; but a request with `callback=self.parse` is one for a page, and has no `errback`. A warning says so.", test_10_arguments_feeds_errback_and_closed),
]  # fmt: skip
"""Rows of docs/scrapy.md."""
