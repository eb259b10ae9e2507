"""One crawl of a site in which everything happens that can come of a fetch."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from pathlib import Path

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project, assert_same
from tests.http import Reply
from tests.integration.stored import FAST, collection, indexed, make_due, refusals, states, unreachable
from tests.sites import (
    Answer,
    Server,
    Site,
    binary,
    cut_short,
    drip,
    drop,
    gzip_bomb,
    hang,
    html,
    page,
    redirect,
    sequence,
    serve,
    status,
    text,
    wrong_charset,
)

DEEP = 5_000
ROBOTS = "User-agent: *\nDisallow: /barred/\n"

TABLE: list[tuple[str, Reply, State, int, bool]] = [
    # path, what it answers, state, status, indexed
    ("/page", page("Page", text="A page like any other"), State.DONE, 200, True),
    ("/plain.txt", text("Plain words"), State.DONE, 200, True),
    ("/missing", status(404), State.GONE, 404, False),
    ("/gone", status(410), State.GONE, 410, False),
    ("/secret", status(403), State.GONE, 403, False),
    ("/broken", status(500), State.GONE, 500, False),
    ("/no-such-status", status(761), State.GONE, 500, False),
    ("/busy", status(503, headers={"Retry-After": "0"}), State.FAILED, 503, False),
    ("/many", status(429, headers={"Retry-After": "0"}), State.FAILED, 429, False),
    ("/twice", sequence([status(503, headers={"Retry-After": "0"}), page("Twice", text="well again")]), State.DONE, 200, True),
    ("/unasked", status(304), State.GONE, 304, False),
    ("/moved", redirect("/page", 301), State.REDIRECTED, 301, False),
    ("/soft", html("x", headers={"Location": "/page"}), State.REDIRECTED, 3020, False),
    ("/soft-itself", html("<p>soft and itself", headers={"Location": "/soft-itself#top"}), State.DONE, 200, True),
    ("/soft-broken", html("<p>soft and broken", headers={"Location": "http://[/"}), State.DONE, 200, True),
    ("/soft-nowhere", html("<p>soft and nowhere", headers={"Location": ""}), State.DONE, 200, True),
    ("/created", Answer(201, {"Location": "/page", "Content-Type": "text/html"}, b"<p>created"), State.DONE, 201, True),
    ("/refresh", html("<p>soon another page", headers={"Refresh": "5; url='/from-refresh'"}), State.DONE, 200, True),
    ("/refresh-at-once", html('<meta http-equiv="refresh" content="0;url=/page">'), State.REDIRECTED, 3020, False),
    ("/refresh-header-at-once", html("<title>Wait</title>", headers={"Refresh": "0;/page"}), State.REDIRECTED, 3020, False),
    ("/refresh-itself", html('<title>Clock</title><meta http-equiv="refresh" content="0">'), State.DONE, 200, True),
    ("/choices", Answer(300, {"Content-Type": "text/html"}, b'<a href="/from-choices">one</a>'), State.GONE, 690, False),
    ("/itself", redirect("/itself#top"), State.FAILED, 691, False),
    ("/nowhere", redirect("http://[/"), State.GONE, 690, False),
    ("/no-location", status(302), State.GONE, 690, False),
    ("/loop1", redirect("/loop2"), State.REDIRECTED, 302, False),
    ("/out", redirect("http://other.example/"), State.REDIRECTED, 302, False),
    ("/noindex", page("No", text="hidden", links=["/from-noindex"], head='<meta name="robots" content="noindex">'), State.EXCLUDED, 2004, False),
    ("/header-noindex", page("No", text="hidden too", headers={"X-Robots-Tag": "noindex"}), State.EXCLUDED, 2004, False),
    ("/nofollow", page("No", text="no links", links=["/never"], head='<meta name="robots" content="nofollow">'), State.DONE, 200, True),
    ("/barred/x", page("Barred"), State.EXCLUDED, 740, False),
    ("/image", binary(b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png"), State.EXCLUDED, 780, False),
    ("/liar", binary(b"\x89PNG\r\n\x1a\n" + bytes(100), "text/html"), State.EXCLUDED, 780, False),
    ("/reset", drop(reset=True), State.FAILED, 612, False),
    ("/closed", drop(), State.FAILED, 612, False),
    ("/endless", drip(b"x" * 65_536, every_s=0.001), State.GONE, 615, False),
    ("/cut", cut_short("<p>half of it", missing=100), State.GONE, 615, False),
    ("/bomb", gzip_bomb(50_000_000), State.GONE, 615, False),
    ("/wrong-charset", wrong_charset("<title>Müller</title>", declared="utf-8", actual="windows-1252"), State.DONE, 200, True),
    ("/deep", html("<div>" * DEEP + '<a href="/from-deep">x</a>' + "</div>" * DEEP), State.DONE, 200, True),
    ("/one-line", html("<p>" + "word " * 200_000 + '<a href="/from-one-line">x</a>'), State.DONE, 200, True),
    ("/many-links", html("".join(f'<a href="/page?{n}">x</a>' for n in range(100_000))), State.DONE, 200, True),
    ("/empty", html(""), State.DONE, 200, True),
    ("/empty-as-well", html(""), State.DONE, 200, False),
    ("/no-content", Answer(204), State.EXCLUDED, 204, False),
    ("/reset-content", Answer(205), State.EXCLUDED, 205, False),
    ("/c", page("Canon", text="words of c", head='<link rel="canonical" href="canonical-one">'), State.DONE, 200, False),
    ("/canonical-one", page("Canon", text="words of c"), State.DONE, 200, True),
    ("/twin-a", page("Twin", text="the same words"), State.DONE, 200, True),
    ("/twin-longer-path", page("Twin", text="the same words"), State.DONE, 200, False),
]  # fmt: skip

FOUND_ON_PAGES = ["/from-refresh", "/from-choices", "/from-noindex", "/from-deep", "/from-one-line"]
ODD_LINKS = [
    "http://nohost.invalid/", "http://127.0.0.1:1/refused", "http://h:" + "9" * 1000 + "/", "http://%/\udcff", "mailto:x@y", "/a.zip", "javascript:x()",
    "http://user:password@other.example/",
]  # fmt: skip
SETTINGS = FAST + "REDIRECT_MAX_TIMES = 3\nDOWNLOAD_MAXSIZE = 5_000_000\nCRAWLSPACE_FOLLOW_QUERY_STRINGS = False\n"
RULES = "allow domain 127.0.0.1\nallow domain nohost.invalid\nforbid domain *\n"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Server, str]:
    site = Site({path: answer for path, answer, *_ in TABLE})
    site.update({path: page(path, text=path) for path in FOUND_ON_PAGES})
    site["/loop2"] = redirect("/loop1")
    site.update({f"/hop{n}": redirect(f"/hop{n + 1}") for n in range(6)})
    site["/robots.txt"] = text(ROBOTS)
    links = ["/hop0", *(path for path, *_ in TABLE)] + [link.encode("utf-8", "replace").decode() for link in ODD_LINKS]
    site["/"] = page("Home", text="Start here", links=links)
    with serve(site) as server:
        project = Project(tmp_path_factory.mktemp("outcomes"), collection(server.url("/"), rules=RULES, settings=SETTINGS))
        run = project.crawl("demo", "-O", str(project.folder / "items.jsonl"))
        assert run.returncode == 0, run.stderr
        return project, server, run.stderr


def test_every_fetch_ends_in_its_outcome(crawled: tuple[Project, Server, str]) -> None:
    known = states(crawled[0])
    found = {(path, known[path].state, known[path].status) for path, *_ in TABLE if path in known}
    assert_same(found, {(path, state, code) for path, _, state, code, _ in TABLE})


def test_a_redirect_without_a_target_says_what_it_is(crawled: tuple[Project, Server, str]) -> None:
    known = states(crawled[0])
    assert {path: known[path].detail for path in ("/choices", "/nowhere", "/no-location")} == {
        "/choices": "it offers several pages (300) and prefers none: its links are followed",
        "/nowhere": "http://[/",
        "/no-location": "it redirects (302) without naming a target",
    }


def test_the_index_holds_what_it_should(crawled: tuple[Project, Server, str]) -> None:
    assert_same(indexed(crawled[0]), ["/", *FOUND_ON_PAGES, *(path for path, _, _, _, wanted in TABLE if wanted)])


def test_links_of_hosts_that_do_not_answer(crawled: tuple[Project, Server, str]) -> None:
    known = states(crawled[0])
    assert known["http://nohost.invalid/"].status in (680, None)  # None where the name service gives no answer at all
    assert known["http://127.0.0.1:1/refused"].state is State.PENDING  # its robots.txt could not be asked for
    assert unreachable(crawled[0])["127.0.0.1:1"] == (612, 1)


def test_refusals_have_reasons(crawled: tuple[Project, Server, str]) -> None:
    assert {"malformed": 2, "domain": 1, "extension": 1, "query_string": 10_000}.items() <= refusals(crawled[0]).items()


def test_a_chain_of_redirects_ends_where_the_limit_is(crawled: tuple[Project, Server, str]) -> None:
    assert refusals(crawled[0])["redirects"] == 1
    assert {"/hop3"} <= set(crawled[1].paths())
    assert "/hop4" not in crawled[1].paths()


def test_forbidden_urls_get_no_request(crawled: tuple[Project, Server, str]) -> None:
    asked = set(crawled[1].paths())
    assert asked.isdisjoint({"/barred/x", "/never", "/a.zip"})
    assert crawled[1].counts()["/robots.txt"] == 1


def test_a_page_is_requested_once_and_a_failure_three_times(crawled: tuple[Project, Server, str]) -> None:
    counts = crawled[1].counts()
    asked = {path: counts[path] for path in ("/", "/page", "/missing", "/moved", "/broken", "/busy", "/twice")}
    assert asked == {"/": 1, "/page": 1, "/missing": 1, "/moved": 1, "/broken": 3, "/busy": 3, "/twice": 2}


@pytest.mark.full
def test_a_page_without_an_answer_is_given_up_three_times(project: MakeProject) -> None:
    """By a time-out so short that other answers would fail by it, too; it may end while the connection is made."""
    with serve(Site({"/hang": hang()})) as server:
        demo = project(collection(server.url("/hang"), settings=FAST + "DOWNLOAD_TIMEOUT = 0.5\nROBOTSTXT_OBEY = False\n"))
        given_up = demo.crawl("demo")
        assert set(server.paths()) <= {"/hang"}
    state = states(demo)["/hang"]
    assert (state.state, state.status) == (State.FAILED, 613)
    assert "errors: 3 × 613\n" in given_up.stderr


def test_the_twin_is_noted(crawled: tuple[Project, Server, str]) -> None:
    known = states(crawled[0])
    assert known["/twin-longer-path"].duplicate_of == known["/twin-a"].id


def test_items_are_exported(crawled: tuple[Project, Server, str]) -> None:
    lines = Path(crawled[0].folder / "items.jsonl").read_text(encoding="utf-8").splitlines()
    items = {json.loads(line)["url"].split("/", 3)[3]: json.loads(line) for line in lines}
    assert items["page"]["title"] == "Page"
    assert items["wrong-charset"]["title"].startswith("M")
    assert "missing" not in items


def test_the_end_is_a_short_summary_without_tracebacks(crawled: tuple[Project, Server, str]) -> None:
    assert "Traceback" not in crawled[2]
    assert "demo: done." in crawled[2]
    assert "password" not in crawled[2]


def test_a_second_run_has_nothing_to_do(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/a"]), "/a": page("A")})
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        server.forget()
        shown = demo.crawl("demo").succeeded().stderr
        assert "demo: done. 0 fetched.\n  in the index: 2 documents (0 pushed, 0 deleted in this run)\n" in shown
        assert re.search(
            r"nothing was due: the next page is on \d{4}-\d\d-\d\d \d\d:\d\d  \(scrapy recrawl demo --host 127.0.0.1 makes all of that host due\)",
            shown,
        )
        assert server.paths() == []


# setting -> status of the URL that redirects, and whether its target on another host is fetched, though a link leads there later
OFFSITE = [(True, True), (False, False)]


@pytest.mark.parametrize(("follows", "is_fetched"), OFFSITE)
def test_redirects_to_other_hosts_are_followed_if_that_is_set(follows: bool, is_fetched: bool, project: MakeProject) -> None:
    with serve(Site({"/near": page("Near"), "/far": page("Far"), "/linked": page("Linked")})) as server:
        elsewhere = server.url().replace("127.0.0.1", "localhost")
        server.site["/"] = page("Home", links=["/a", "/b", "/c", f"{elsewhere}linked"])
        server.site["/a"] = redirect(f"{elsewhere}far")
        server.site["/b"] = redirect("/near")
        server.site["/c"] = redirect(f"{elsewhere}linked")
        rules = "allow domain 127.0.0.1\nallow domain localhost\nforbid domain *\n"
        settings = f"{FAST}CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS = {follows}\n"
        demo = project(collection(server.url(), rules=rules, settings=settings))
        demo.crawl("demo").succeeded()
        assert ("/far" in server.paths(), "/near" in server.paths(), "/linked" in server.paths()) == (is_fetched, True, True)
        assert refusals(demo).get("offsite_redirect", 0) == (0 if follows else 2)
        if not follows:
            demo.crawl("demo", "-s", "CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS=True").succeeded()
            assert "/far" in server.paths(), "a redirect that was refused is due at once when it is allowed"


_WORDS = random.Random(1)
LONG = (
    "<title>Long</title><p>first words</p>"
    + "".join(f"<p>{_WORDS.randbytes(20).hex()}</p>" for _ in range(5_000))
    + '<p>last words</p><a href="/last">last</a>'
)
"""Longer than is read when it is compressed, too."""
ENCODED = {
    "": lambda body: body,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_page_that_is_too_long_is_cut_if_that_is_set(encoding: str, project: MakeProject) -> None:
    body = ENCODED[encoding](LONG.encode())
    headers = {"Content-Type": "text/html", **({"Content-Encoding": encoding} if encoding else {})}
    answer = Answer(200, headers, body)
    with serve(Site({"/": answer, "/last": page("Last")})) as server:
        settings = f"{FAST}DOWNLOAD_MAXSIZE = 10_000\nCRAWLSPACE_ARCHIVE = True\n"
        demo = project(collection(server.url(), settings=settings))
        demo.crawl("demo")
        assert states(demo)["/"].status == 615
        make_due(demo)
        demo.write({"demo/settings.py": f"{settings}CRAWLSPACE_TRUNCATE_PAGES = True\nRETRY_TIMES = 0\n"})
        cut = demo.crawl("demo").succeeded()
        assert states(demo)["/"].status == 200
        assert "/last" not in server.paths()
        assert "is longer than DOWNLOAD_MAXSIZE: it is read and indexed up to there" in cut.stderr
        assert "Long" in demo.scrapy("search", "demo", "first").stdout
        assert "Long" not in demo.scrapy("search", "demo", "last").stdout
        exported = demo.scrapy("export", "demo", "-o", "-:jsonl").succeeded().stdout
        [document] = map(json.loads, exported.splitlines())
        assert document["fields"]["text_status"] == "cut"
        demo.scrapy("reindex", "demo", "--extract").succeeded()
        assert demo.scrapy("export", "demo", "-o", "-:jsonl").succeeded().stdout == exported, "the archive says that it is cut"
