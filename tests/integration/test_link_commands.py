"""`scrapy links`, `refused` and `urls --with-referrers`: which pages lead where, after a crawl of a small site."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.command_line import CompletedRun
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.servers import emptied, redis_server
from tests.sites import Server, Site, page, redirect, serve, status

RULES = "forbid prefix {home}/private/\n"


@pytest.fixture
def server() -> Iterator[Server]:
    site = Site(
        {
            "/": page("Home", links=["/a", "/b", "/gone", "/moved", "/away"]),
            "/a": page("A", links=["/", "/gone", "/lost"]),
            "/b": page("B", links=["/a", "/private/x", "/private/y?password=secret", "/gone"]),
            "/gone": status(404),
            "/lost": status(404),
            "/moved": redirect("/a"),
            "/away": redirect("/private/z"),
        }
    )
    with serve(site) as running:
        yield running


@pytest.fixture
def demo(project: MakeProject, server: Server) -> Project:
    """A collection that was crawled."""
    files = {
        "demo/start_urls.txt": server.url("/"),
        "demo/crawl.rules": RULES.format(home=server.url("")),
        "demo/settings.py": "DOWNLOAD_DELAY = 0\n",
    }
    made = project(files)
    made.crawl("demo").succeeded()
    return made


# arguments -> (path, decision, state, status) of the links out, and of the pages that lead there
LINKS: list[tuple[str, list[str], list[str]]] = [
    ("/", ["/a", "/b", "/gone", "/moved", "/away"], ["/a"]),
    ("/a", ["/", "/gone", "/lost"], ["/", "/b", "/moved"]),
    ("/b", ["/a", "/gone"], ["/"]),
    ("/moved", ["/a"], ["/"]),
    ("/away", [], ["/"]),
    ("/gone", [], ["/", "/a", "/b"]),
    ("/private/x", [], []),
    ("/never-seen", [], []),
]


def test_links_of_each_page(demo: Project, server: Server, run: Run) -> None:
    for path, out, incoming in LINKS:
        found = answer(run("links", "demo", server.url(path), "--json"))
        assert [one["url"] for one in found["links_out"]["urls"]] == [server.url(to) for to in out], path
        assert [one["url"] for one in found["links_in"]["urls"]] == [server.url(page) for page in incoming], path
        assert (found["links_out"]["total"], found["links_in"]["total"]) == (len(out), len(incoming))


def test_what_is_printed(demo: Project, server: Server, run: Run) -> None:
    assert run("links", "demo", server.url("/a")).succeeded().stdout.splitlines() == [
        server.url("/a"),
        "admitted     the URL is in the crawl space",
        "known        done, status 200 OK; 1 link from a start URL",
        "",
        "links out    3 URLs",
        f"  done          200     0  admitted                         {server.url('/')}",
        f"  gone          404     1  admitted                         {server.url('/gone')}",
        f"  gone          404     2  admitted                         {server.url('/lost')}",
        "",
        "links in     3 pages",
        f"  done          200     0  admitted                         {server.url('/')}",
        f"  done          200     1  admitted                         {server.url('/b')}",
        f"  redirected    302     1  admitted                         {server.url('/a')}".replace("/a", "/moved"),
    ]
    only = run("links", "demo", server.url("/a"), "--in").succeeded().stdout
    assert ("links in" in only, "links out" in only) == (True, False)


def test_decisions_are_those_of_the_rules_on_disk(demo: Project, server: Server, run: Run) -> None:
    demo.write({"demo/crawl.rules": f"# changed\nforbid prefix {server.url('/b')}\n"})
    found = answer(run("links", "demo", server.url("/a"), "--json"))
    by_url = {one["url"]: (one["admitted"], one["reason"], one["rule"]) for one in found["links_in"]["urls"]}
    assert by_url[server.url("/b")] == (False, "prefix", "crawl.rules:2")
    assert by_url[server.url("/")] == (True, "admitted", None)
    assert "prefix (crawl.rules:2)" in run("links", "demo", server.url("/")).succeeded().stdout


def test_who_links_to_a_page_that_is_forgotten(demo: Project, server: Server, run: Run) -> None:
    run("forget", "demo", server.url("/gone")).succeeded()
    found = answer(run("links", "demo", server.url("/gone"), "--json"))
    assert (found["state"], found["links_in"]["total"]) == (None, 3)
    assert answer(run("links", "demo", server.url("/b"), "--json"))["links_out"]["forgotten"] == 1


def test_broken_pages_with_who_links_to_them(demo: Project, server: Server, run: Run) -> None:
    lines = run("urls", "demo", "--status", "404", "--with-referrers").succeeded().stdout.splitlines()
    assert [line.split(maxsplit=3)[-1] if line[0] != " " else line.strip() for line in lines] == [
        server.url("/gone"),
        *(f"linked from {server.url(path)}" for path in ("/", "/a", "/b")),
        server.url("/lost"),
        f"linked from {server.url('/a')}",
    ]
    listed = run("urls", "demo", "--with-referrers", "--json").succeeded().stdout.splitlines()
    referrers = {one["url"]: (one["referrers"], one["referrers_total"]) for one in map(json.loads, listed)}
    assert referrers == {
        server.url(path): ([server.url(page) for page in incoming], len(incoming))
        for path, _, incoming in [*LINKS[:6], ("/lost", [], ["/a"])]
    }
    table = csv.DictReader(run("urls", "demo", "--with-referrers", "--format", "csv").succeeded().stdout.splitlines())
    assert {row["url"]: (row["referrers"].split(), int(row["referrers_total"])) for row in table} == referrers


def test_lists_are_cut_unless_all_is_wanted(project: MakeProject, server: Server) -> None:
    server.site.clear()
    server.site["/"] = page("Home", links=[f"/{n}" for n in range(150)])
    for n in range(150):
        server.site[f"/{n}"] = page(f"Page {n}", links=["/", "/gone"])
    big = project({"demo/start_urls.txt": server.url("/"), "demo/settings.py": "DOWNLOAD_DELAY = 0\n"})
    big.crawl("demo").succeeded()
    shown = big.scrapy("links", "demo", server.url("/")).succeeded().stdout
    assert shown.count("  and 50 more (--all)\n") == 2
    assert len(shown.splitlines()) == 3 + 2 * (2 + 100 + 1)
    assert len(big.scrapy("links", "demo", server.url("/"), "--all").succeeded().stdout.splitlines()) == 3 + 2 * (2 + 150)
    assert "and from 140 more" in big.scrapy("urls", "demo", "--with-referrers", "--status", "404").succeeded().stdout


def test_refused_links_with_page_and_rule(demo: Project, server: Server, run: Run) -> None:
    private = server.url("/private/")
    assert run("refused", "demo").succeeded().stdout.splitlines() == [
        "prefix                         3   a prefix rule forbids the URL",
        f"  crawl.rules:1        {private}x  on {server.url('/b')}",
        f"  crawl.rules:1        {private}y?password=…  on {server.url('/b')}",
        f"  crawl.rules:1        {private}z  on {server.url('/away')}",
    ]
    for arguments, number in ((("--reason", "prefix"), 3), (("--host", "127.0.0.1"), 3), (("--host", "127.0.0.2"), 0)):
        found = answer(run("refused", "demo", "--json", *arguments))["refused"]
        assert sum(len(one["links"]) for one in found.values()) == number
    assert run("refused", "demo", "--reason", "domain").succeeded().stdout == "no refused links\n"


def test_of_one_host_the_sample_may_not_have_all(project: MakeProject, server: Server) -> None:
    server.site.clear()
    server.site["/"] = page("Home", links=[f"/private/{n}" for n in range(30)])
    demo = project({"demo/start_urls.txt": server.url("/"), "demo/crawl.rules": f"forbid prefix {server.url('/private/')}\n"})
    demo.crawl("demo").succeeded()
    *links, last = demo.scrapy("refused", "demo", "--host", "127.0.0.1").succeeded().stdout.splitlines()
    assert last == "  and perhaps others: of each host the last 20 are kept, and the others are counted by reason only"
    assert len(links) == 1 + 20
    assert demo.scrapy("refused", "demo").succeeded().stdout.endswith("  and 10 others\n")


def test_where_a_refused_url_was_seen(demo: Project, server: Server, run: Run) -> None:
    for path, page_ in (("/private/x", "/b"), ("/private/z", "/away")):
        for command in ("links", "explain"):
            assert f"seen on      {server.url(page_)}\n" in run(command, "demo", server.url(path)).succeeded().stdout
            assert answer(run(command, "demo", server.url(path), "--json"))["seen_on"] == [server.url(page_)]
    assert "seen on" not in run("explain", "demo", server.url("/private/never")).succeeded().stdout
    shown = run("links", "demo", server.url("/b")).succeeded().stdout
    assert "links out    2 URLs; refused: prefix 2\n" in shown
    assert f"  -               -     -  prefix (crawl.rules:1)           {server.url('/private/x')}\n" in shown
    assert "secret" not in shown


def test_after_a_page_has_lost_its_links(demo: Project, server: Server, run: Run) -> None:
    server.site["/b"] = page("B, without", links=["/private/x"])
    run("recrawl", "demo", server.url("/b")).succeeded()
    demo.crawl("demo").succeeded()
    listed = answer(run("refused", "demo", "--json"))["refused"]["prefix"]
    assert listed["total"] == 2
    assert {(one["url"], one["page"]) for one in listed["links"]} == {
        (server.url("/private/x"), server.url("/b")),
        (server.url("/private/z"), server.url("/away")),
    }


def test_on_a_shared_store(demo: Project, server: Server, run: Run) -> None:
    shutil.rmtree(demo.data / "demo")
    emptied().close()
    demo.store_url = f"redis://127.0.0.1:{redis_server().port}/0"
    demo.crawl("demo").succeeded()
    assert answer(run("refused", "demo", "--json"))["refused"]["prefix"]["total"] == 3
    assert f"{server.url('/private/z')}  on {server.url('/away')}" in run("refused", "demo").succeeded().stdout
    assert answer(run("links", "demo", server.url("/private/x"), "--json"))["seen_on"] == [server.url("/b")]
    found = answer(run("links", "demo", server.url("/a"), "--json"))
    assert {one["url"] for one in found["links_in"]["urls"]} == {server.url(path) for path in ("/", "/b", "/moved")}
    assert "linked from" in run("urls", "demo", "--status", "404", "--with-referrers").succeeded().stdout


def test_a_collection_that_was_never_crawled(demo: Project, server: Server, run: Run) -> None:
    demo.write({"new/start_urls.txt": server.url("/"), "new/crawl.rules": f"forbid prefix {server.url('/private/')}\n"})
    shown = run("links", "new", server.url("/private/x")).succeeded().stdout
    assert shown.endswith("new has never been crawled: `scrapy crawl new` does\n")
    assert "by           crawl.rules:1: forbid prefix" in shown
    assert answer(run("links", "new", server.url("/"), "--json"))["links_in"] == {"total": 0, "urls": []}


def test_a_url_without_scheme(demo: Project, run: Run) -> None:
    assert "\nhint         write it with http:// or https://\n" in run("links", "demo", "www.example.com").succeeded().stdout


def answer(run: CompletedRun) -> Any:
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
