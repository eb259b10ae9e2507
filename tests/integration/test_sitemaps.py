"""Crawls of sites with sitemaps and feeds: where they are found, what their entries become, and that none is indexed."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence

import pytest
from msgspec import structs

from crawlspace.clock import iso
from crawlspace.model import State, UrlState
from crawlspace.state.changes import Change
from tests.conftest import MakeProject, Project
from tests.http import Reply, Request
from tests.integration.stored import ARCHIVED, FAST, collection, indexed, make_due, opened, refusals, shared, states, statuses
from tests.sites import Answer, Server, Site, binary, html, page, redirect, serve, status, text

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
BOTH = FAST.replace("; CRAWLSPACE_SITEMAP_GUESS = False", "")


def sitemap(*urls: str, kind: str = "application/xml") -> Answer:
    return binary(f"<urlset {NS}>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>".encode(), kind)


def index(*urls: str) -> Answer:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return binary(f"<sitemapindex {NS}>{entries}</sitemapindex>".encode(), "text/xml")


def robots(*urls: str) -> Answer:
    return text("User-agent: *\nDisallow: /barred\n" + "".join(f"Sitemap: {url}\n" for url in urls))


def pages(server: Server, paths: Sequence[str]) -> None:
    server.site.update({path: page(path, text=f"words of {path}") for path in paths})


@pytest.mark.parametrize("is_shared", [False, True])
def test_where_sitemaps_are_found(project: MakeProject, *, is_shared: bool) -> None:
    """In robots.txt, an index file, a setting, a link, a feed that a page names, and as a start URL."""
    with serve(Site({})) as server:
        url = server.url
        found = ["/in-index", "/in-list", "/in-setting", "/in-feed", "/in-linked", "/in-start"]
        pages(server, found)
        feed = f"<rss><channel><item><link>{url('/in-feed')}</link></item></channel></rss>"
        server.site.update(
            {
                "/robots.txt": robots(url("/index.xml"), url("/list.txt")),
                "/": page("Home", links=["/linked.xml"], head='<link rel="alternate" type="application/rss+xml" href="/feed">'),
                "/index.xml": index(url("/one.xml.gz"), url("/index.xml"), "http://other.example/two.xml"),
                "/one.xml.gz": binary(gzip.compress(sitemap(url("/in-index"), url("/")).body), "application/gzip"),
                "/list.txt": text(url("/in-list") + "\n"),
                "/setting.xml": sitemap(url("/in-setting")),
                "/feed": binary(feed.encode(), "application/rss+xml"),
                "/linked.xml": sitemap(url("/in-linked")),
                "/start.txt": text(url("/in-start") + "\n"),
            }
        )
        settings = f"{BOTH}CRAWLSPACE_SITEMAPS = ['{url('/setting.xml')}']\n"
        demo = project(collection(f"{url('/')}\n{url('/start.txt')}", settings=settings))
        demo = shared(demo) if is_shared else demo
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted(["/", *found])
        known = states(demo)
        assert {path: (one.state, one.status) for path, one in known.items() if path not in ["/", *found]} == {
            "/index.xml": (State.REDIRECTED, 3021),
            **dict.fromkeys(
                ("/one.xml.gz", "/list.txt", "/setting.xml", "/feed", "/linked.xml", "/start.txt"), (State.EXCLUDED, 2005)
            ),
        }
        assert {path: known[path].depth for path in [*found, "/one.xml.gz", "/"]} == {
            **dict.fromkeys(["/in-index", "/in-list", "/in-setting", "/in-start"], 1),
            **dict.fromkeys(["/in-feed", "/in-linked"], 2),  # one link from a sitemap that is one link away
            **dict.fromkeys(["/one.xml.gz", "/"], 0),
        }
        assert refusals(demo) == {"sitemap_host": 1}
        assert server.counts()["/sitemap.xml"] == 0  # robots.txt names others


@pytest.mark.parametrize(
    ("answer", "is_followed"),
    [
        (sitemap("http://HOST/hidden"), True),
        (sitemap("http://HOST/hidden", kind="text/html"), True),
        (redirect("/sitemap_index.xml"), True),
        (redirect("/"), False),
        (redirect("/lost"), False),
        (status(404), False),
        (status(403), False),
        (html("<title>Not found</title>This page is not there."), False),
        (text("no list of URLs"), False),
    ],
    ids=["sitemap", "as HTML", "moved", "to the home page", "to an error page", "404", "403", "error page", "text"],
)
def test_the_usual_place_is_tried(project: MakeProject, answer: Answer, *, is_followed: bool) -> None:
    """Where robots.txt names none. Nothing is left of it if there is none."""
    with serve(Site({"/": page("Home")})) as server:
        pages(server, ["/hidden", "/lost"])
        here = Answer(answer.code, answer.headers, answer.body.replace(b"HOST", server.netloc.encode()))
        server.site.update({"/sitemap.xml": here, "/sitemap_index.xml": sitemap(server.url("/hidden"))})
        demo = project(collection(server.url("/"), settings=BOTH))
        crawl = demo.crawl("demo").succeeded()
        assert server.counts()["/sitemap.xml"] == 1
        assert indexed(demo) == (["/", "/hidden"] if is_followed else ["/"])
        assert ("/sitemap.xml" in states(demo)) is is_followed
        assert "errors" not in crawl.stderr


def test_no_guess_where_the_rules_or_robots_txt_forbid_it(project: MakeProject) -> None:
    for rules, robots_txt in (
        ("allow prefix http://127.0.0.1:PORT/docs/*\nforbid prefix http://127.0.0.1:PORT/*\n", ""),
        ("", "User-agent: *\nDisallow: /sitemap\n"),
    ):
        with serve(Site({"/docs/": page("Docs"), "/robots.txt": text(robots_txt)})) as server:
            demo = project(collection(server.url("/docs/"), rules=rules.replace("PORT", str(server.port)), settings=BOTH))
            demo.crawl("demo").succeeded()
            assert (indexed(demo), list(states(demo)), refusals(demo)) == (["/docs/"], ["/docs/"], {})


def test_a_sitemap_that_was_a_document_leaves_the_index(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/news.xml"])})) as server:
        pages(server, ["/hidden"])
        server.site["/news.xml"] = sitemap(server.url("/hidden"))
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_FOLLOW = 'links'\n"))
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/news.xml"]
        (demo.collections / "demo/settings.py").write_text(FAST)
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/hidden"]
        assert statuses(demo) == {"/": 200, "/news.xml": 2005, "/hidden": 200}


def test_by_the_sitemap_alone(project: MakeProject) -> None:
    """Links of pages are not followed, feeds that they name are."""
    with serve(Site({})) as server:
        pages(server, ["/linked", "/fed"])
        feed = f"<rss><channel><item><link>{server.url('/fed')}</link></item></channel></rss>"
        server.site.update(
            {
                "/robots.txt": robots(server.url("/s.xml")),
                "/": page("Home", links=["/linked"]),
                "/s.xml": sitemap(server.url("/named")),
                "/named": page(
                    "Named", links=["/linked"], head='<link rel="alternate" type="application/atom+xml" href="/feed">'
                ),
                "/feed": binary(feed.encode(), "text/xml"),
            }
        )
        settings = f"{BOTH}CRAWLSPACE_SITES = {{'127.0.0.1': {{'follow': 'sitemaps'}}}}\n"
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/fed", "/named"]


def test_none_are_read_where_links_alone_are_followed(project: MakeProject) -> None:
    with serve(Site({})) as server:
        pages(server, ["/", "/named"])
        server.site.update({"/robots.txt": robots(server.url("/s.xml")), "/s.xml": sitemap(server.url("/named"))})
        demo = project(collection(server.url("/"), settings=f"{BOTH}CRAWLSPACE_FOLLOW = 'links'\n"))
        demo.crawl("demo").succeeded()
        assert server.paths() == ["/robots.txt", "/"]


def test_what_leaves_a_sitemap_stays_in_the_index(project: MakeProject) -> None:
    """So does all of a sitemap that is gone: absence deletes nothing. What comes is found at the next refresh."""
    with serve(Site({"/": page("Home")})) as server:
        pages(server, ["/a", "/b", "/c"])
        server.site.update({"/robots.txt": robots(server.url("/s.xml")), "/s.xml": sitemap(server.url("/a"), server.url("/b"))})
        demo = project(collection(server.url("/"), settings=BOTH))
        demo.crawl("demo").succeeded()
        answers: list[tuple[Reply, list[str]]] = [
            (sitemap(server.url("/b"), server.url("/c")), ["/", "/a", "/b", "/c"]),
            (html("<title>Sorry</title>"), ["/", "/a", "/b", "/c", "/s.xml"]),
            (status(404), ["/", "/a", "/b", "/c"]),
        ]
        for answer, expected in answers:
            server.site["/s.xml"] = answer
            make_due(demo)
            demo.crawl("demo").succeeded()
            assert indexed(demo) == expected


@pytest.mark.parametrize(
    ("where", "named_by_other", "in_setting", "is_followed"),
    [("same", False, False, True), ("other", False, False, False), ("other", True, False, True), ("other", False, True, True)],
)
def test_urls_of_other_hosts(
    project: MakeProject, where: str, *, named_by_other: bool, in_setting: bool, is_followed: bool
) -> None:
    """They count where the robots.txt of their host, or a setting, names the sitemap, or the index file that it was found in."""
    with serve(Site({"/": page("Home")})) as server, serve(Site({"/": page("Other")}), host="127.0.0.2") as other:
        pages(server, ["/x"])
        pages(other, ["/x"])
        target = (server if where == "same" else other).url("/x")
        server.site.update({"/index.xml": index(server.url("/s.xml")), "/s.xml": sitemap(target)})
        server.site["/robots.txt"] = robots() if in_setting else robots(server.url("/index.xml"))
        other.site["/robots.txt"] = robots(server.url("/index.xml")) if named_by_other else robots()
        settings = FAST + (f"CRAWLSPACE_SITEMAPS = ['{server.url('/index.xml')}']\n" if in_setting else "")
        demo = project(collection(f"{other.url('/')}\n{server.url('/')}", settings=settings))
        demo.crawl("demo").succeeded()
        assert indexed(demo).count("/x") == is_followed
        assert refusals(demo) == ({} if is_followed else {"sitemap_host": 1})


def test_index_files_without_end(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        server.site["/robots.txt"] = robots(server.url("/0.xml"))
        server.site.update({f"/{level}.xml": index(server.url(f"/{level + 1}.xml")) for level in range(100)})
        demo = project(collection(server.url("/"), settings=BOTH))
        demo.crawl("demo").succeeded()
        assert [path for path in server.paths() if path.endswith(".xml")] == [f"/{level}.xml" for level in range(6)]
        assert refusals(demo) == {"sitemap_limit": 1}


def test_limits(project: MakeProject) -> None:
    """Of entries, of sitemaps of a host, and of URLs of a host, to which sitemaps do not count."""
    with serve(Site({"/": page("Home")})) as server:
        pages(server, [f"/{number}" for number in range(12)])
        server.site.update(
            {
                "/robots.txt": robots(server.url("/index.xml")),
                "/index.xml": index(*(server.url(f"/s{number}.xml") for number in range(4))),
                **{f"/s{n}.xml": sitemap(*(server.url(f"/{3 * n + i}") for i in range(3))) for n in range(4)},
            }
        )
        limits = "CRAWLSPACE_SITEMAP_MAX_ENTRIES = 3\nCRAWLSPACE_MAX_SITEMAPS_PER_HOST = 2\nCRAWLSPACE_MAX_URLS_PER_HOST = 5\n"
        demo = project(collection(server.url("/"), settings=BOTH + limits))
        crawl = demo.crawl("demo").succeeded()
        assert "/index.xml has more than CRAWLSPACE_SITEMAP_MAX_ENTRIES (3) entries: 1 left out" in crawl.stderr
        assert len([path for path in server.paths() if path.startswith("/s")]) == 2
        assert refusals(demo)["sitemap_limit"] == 2
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert len(indexed(demo)) == 5


def test_a_broken_one_is_read_as_far_as_possible(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        pages(server, ["/a", "/b"])
        body = f"<urlset {NS}><url><loc>{server.url('/a')}</loc></url><url><loc>{server.url('/b')}</loc></ur".encode()
        server.site.update(
            {
                "/robots.txt": robots(server.url("/s.xml"), server.url("/damaged.xml.gz")),
                "/s.xml": binary(body, "application/xml", headers={"ETag": '"1"'}),
                "/damaged.xml.gz": binary(gzip.compress(body)[:-9], "application/x-gzip"),
            }
        )
        demo = project(collection(server.url("/"), settings=BOTH))
        crawl = demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/a", "/b"]
        assert "/s.xml is a sitemap that is not in order: its XML is broken: " in crawl.stderr
        assert "/damaged.xml.gz is a sitemap that is not in order: it is compressed, and damaged" in crawl.stderr
        assert states(demo)["/s.xml"].etag is None  # a 304 must not hide the rest


def test_an_unchanged_sitemap_is_not_read_again(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        pages(server, ["/a"])
        of_one = sitemap(server.url("/a"))
        server.site.update(
            {"/robots.txt": robots(server.url("/s.xml")), "/s.xml": Answer(200, {**of_one.headers, "ETag": '"1"'}, of_one.body)}
        )
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        for _ in range(3):
            demo.crawl("demo").succeeded()
            make_due(demo)
        known = states(demo)
        assert (known["/s.xml"].status, known["/a"].depth, known["/a"].orphaned) == (2005, 1, None)
        demo.scrapy("reindex", "demo", "--extract").succeeded()
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/a"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("CRAWLSPACE_FOLLOW = 'sitemap'\n", "CRAWLSPACE_FOLLOW is 'sitemap'"),
        ("CRAWLSPACE_SITEMAPS = ['sitemap.xml']\n", "CRAWLSPACE_SITEMAPS has 'sitemap.xml', which is no URL"),
        (
            "CRAWLSPACE_FOLLOW = 'links'\nCRAWLSPACE_SITEMAPS = ['http://a.example/s.xml']\n",
            'and for its site CRAWLSPACE_FOLLOW is "links": write "both" or "sitemaps"',
        ),
        ("CRAWLSPACE_SITES = {'a.example': {'follow': 'nothing'}}\n", "['follow'] is 'nothing'"),
        ("CRAWLSPACE_SITEMAP_REFRESH = '90d'\n", "CRAWLSPACE_SITEMAP_REFRESH (7776000 s) is above CRAWLSPACE_REFRESH_MAX"),
    ],
)
def test_wrong_settings(project: MakeProject, settings: str, sentence: str) -> None:
    demo = project(collection("http://a.example/", settings=FAST + settings))
    crawl = demo.crawl("demo")
    assert crawl.returncode == 1
    assert sentence in crawl.stderr
    assert "Traceback" not in crawl.stderr


def test_sitemaps_outside_the_crawl_space(project: MakeProject) -> None:
    with serve(Site({"/docs/": page("Docs")})) as server:
        server.site["/robots.txt"] = robots(server.url("/s.xml"))
        rules = f"allow prefix {server.url('/docs/')}*\nforbid prefix {server.url('/')}*\n"
        settings = f"{BOTH}CRAWLSPACE_SITEMAPS = ['{server.url('/own.xml')}']\n"
        crawl = project(collection(server.url("/docs/"), rules=rules, settings=settings)).crawl("demo", "-L", "INFO").succeeded()
        assert (
            f"CRAWLSPACE_SITEMAPS: {server.url('/own.xml')} is refused: a prefix rule forbids the URL (crawl.rules:2"
            in crawl.stderr
        )
        assert f"names a sitemap that is not requested: {server.url('/s.xml')} is refused: a prefix rule" in crawl.stderr


def timed(times: dict[str, str]) -> Answer:
    entries = "".join(f"<url><loc>{url}</loc><lastmod>{time}</lastmod></url>" for url, time in times.items())
    return binary(f"<urlset {NS}>{entries}</urlset>".encode(), "application/xml")


def make_pages_old(project: Project) -> None:
    """Have all but the sitemaps be due by their age."""
    now = int(time.time())

    def older(state: UrlState) -> Change | None:
        if state.fetched_at is None or state.status == 2005:
            return None
        return Change(structs.replace(state, fetched_at=state.fetched_at - 4_000, next_fetch=now - 10))

    with opened(project) as store:
        store.revise([state.id for state in store.urls()], older, now=now)


@pytest.mark.parametrize("is_shared", [False, True])
def test_lastmod_decides_what_is_fetched_and_the_commands_show_it(project: MakeProject, *, is_shared: bool) -> None:
    paths = [f"/{number}" for number in range(1, 161)]
    with serve(Site({})) as server:
        url = server.url
        pages(server, [*paths, "/linked"])
        times = dict.fromkeys(map(url, paths), "2020-01-01T00:00:00Z")
        times |= {url("/gone"): "2020-01-01", url("/moved"): "", "http://b.example/x": "2020-01-01", url("/private/x"): ""}
        server.site.update(
            {
                "/robots.txt": robots(url("/sitemap.xml")),
                "/": page("Home", links=["/1", "/linked"]),
                "/gone": status(404),
                "/moved": redirect("/1"),
                "/sitemap.xml": timed(times),
            }
        )
        settings = f"{BOTH}CRAWLSPACE_REFRESH_MIN = CRAWLSPACE_REFRESH_MAX = '1h'\n"
        demo = project(collection(url("/"), rules=f"forbid prefix {url('/private/')}*\n", settings=settings))
        demo = shared(demo) if is_shared else demo
        demo.crawl("demo").succeeded()
        assert "not measured yet" in demo.scrapy("status", "demo").stdout

        def refreshed() -> int:
            """How many of the pages are requested when all are due, and the sitemap was read shortly before."""
            demo.scrapy("recrawl", "demo", url("/sitemap.xml")).succeeded()
            demo.crawl("demo").succeeded()
            before = sum(server.counts()[path] for path in paths)
            make_pages_old(demo)
            demo.crawl("demo").succeeded()
            return sum(server.counts()[path] for path in paths) - before

        measured = refreshed()
        assert measured >= 100
        assert refreshed() <= 20
        server.site["/sitemap.xml"] = timed(times | {url("/7"): iso(time.time())})
        server.site["/7"] = page("/7", text="other words")
        before = server.counts()
        assert refreshed() <= 20
        assert server.counts()["/7"] > before["/7"]
        shown = demo.scrapy("sitemaps", "demo").stdout
        assert "162 URLs, lastmod of 161, trusted 1.00; read " in shown
        assert "sitemap_host" in shown
        assert f"prefix crawl.rules:1  {url('/private/x')}" in shown
        found = json.loads(demo.scrapy("sitemaps", "demo", "--json").stdout)
        assert {name: one["total"] for name, one in found["differences"].items()} == {
            "not-linked": 160,
            "not-named": 2,
            "gone": 0,
            "redirected": 1,
        }
        assert found["forgotten"] == 1
        assert demo.scrapy("sitemaps", "demo", "--list", "redirected").stdout == f"{url('/moved')}\n"
        explained = demo.scrapy("explain", "demo", url("/2")).stdout
        assert f"named by {url('/sitemap.xml')}, lastmod 2020-01-01T00:00:00Z, trusted 1.00" in explained


def test_a_sitemap_behind_a_log_in(project: MakeProject) -> None:
    """It is shown as one that was not read; with the log-in of its site it is read."""
    with serve(Site({})) as server:
        pages(server, ["/hidden"])
        hidden = sitemap(server.url("/hidden"))

        def locked(request: Request) -> Answer:
            known = request.headers.get("authorization", "").startswith("Basic ")
            return hidden if known else Answer(401, {"WWW-Authenticate": 'Basic realm="x"'})

        server.site.update({"/": page("Home"), "/robots.txt": robots(server.url("/sitemap.xml")), "/sitemap.xml": locked})
        demo = project(collection(server.url("/"), settings=BOTH))
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/"]
        assert "not read: 401 Unauthorized" in demo.scrapy("sitemaps", "demo").stdout
        login = '{"127.0.0.1": {"login": {"type": "basic", "user": "x", "password": "env:HOME"}, "allow_plain_http": True}}'
        demo.write({"demo/settings.py": f"{BOTH}CRAWLSPACE_SITES = {login}\n"})
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/hidden"]
