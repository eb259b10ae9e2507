"""`scrapy add`: URLs, links and folders that a person names, before and after a crawl."""

from __future__ import annotations

import json

import pytest

from crawlspace.model import Source, State
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.conftest import Run
from tests.integration.stored import shared, states
from tests.quick import some
from tests.sites import Site, page, redirect, serve, status

FILES = {
    "demo/start_urls.txt": "http://a.example/\n",
    "demo/crawl.rules": "forbid prefix http://a.example/private/\n",
}


@pytest.fixture(params=["file", "server"])
def demo(project: MakeProject, request: pytest.FixtureRequest) -> Project:
    return shared(project(FILES)) if request.param == "server" else project(FILES)


# arguments -> a part of the sentence
WRONG = [
    (("add", "demo"), "name a collection and URLs, as in: scrapy add demo http"),
    (("add", "dmeo", "http://a.example/"), "no collection 'dmeo'"),
    (("add", "demo", "a.example/x"), "is not a valid URL"),
    (("add", "demo", "http://a.example/", "--links", "--site"), "choose --links or --site, not both"),
    (("add", "demo", "http://a.example/", "--list", "--take", "1"), "choose --list or --take, not both"),
    (("add", "demo", "http://a.example/", "http://a.example/b", "--list"), "for the links of one page: name one URL"),
    (("add", "demo", "http://a.example/", "--json"), "--json is for --list"),
    (("add", "demo", "http://a.example/", "--take", "0"), "'0' is no number of a link; write them as in 1,3-5"),
    (("add", "demo", "http://a.example/", "--take", "3-1"), "'3-1' is no number of a link"),
    (("add", "demo", "http://a.example/", "--take", "1,,2"), "'' is no number of a link"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_use(demo: Project, run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr


def test_a_url_is_entered_before_the_first_crawl(demo: Project, run: Run) -> None:
    ended = run("add", "demo", "http://a.example/x", "http://a.example/private/")
    assert (ended.returncode, ended.stdout) == (1, "1 URL is due now, 1 of them new: the next crawl fetches it\n")
    assert "http://a.example/private/ is refused: a prefix rule forbids the URL (crawl.rules:1:" in ended.stderr
    state = states(demo)["/x"]
    assert (state.state, state.source, state.depth) == (State.PENDING, Source.USER, 0)


def test_an_imported_error_is_added_again(demo: Project, run: Run) -> None:
    file = demo.data / "pending.txt"
    file.write_text("http://a.example/x R 2\n")
    run("import-pending", "demo", str(file)).succeeded()
    assert run("add", "demo", "http://a.example/x").succeeded().stdout == "1 URL is due now: the next crawl fetches it\n"
    assert states(demo)["/x"].requested_by


def test_what_has_no_effect_is_named(demo: Project, run: Run) -> None:
    run("add", "demo", "http://a.example/x").succeeded()
    again = run("add", "demo", "http://a.example/x").succeeded()
    assert again.stdout == "0 URLs are due now\n"
    assert again.stderr == "1 URL waits to be fetched for the first time, in source user, and is due already\n"
    within = run("add", "demo", "http://a.example/docs/", "--site").succeeded()
    assert (within.stdout, within.stderr) == ("1 URL is due now, 1 of them new: the next crawl fetches it\n", "")
    for option in ("--list", "--links"):
        ended = run("add", "demo", "http://a.example/x", option)
        assert ended.returncode == 1
        assert "has not been fetched: `scrapy add demo http://a.example/x`, then `scrapy crawl demo`" in ended.stderr
    ended = run("add", "demo", "http://a.example/private/", "--list")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "http://a.example/private/ is refused: a prefix rule forbids the URL (crawl.rules:1:" in ended.stderr


def test_links_and_folders(project: MakeProject) -> None:
    site = Site(
        {
            "/": page("Home", links=["/docs/a", "/docs/b/c", "/other"]),
            "/docs/a": page("A"),
            "/docs/b/c": page("C"),
            "/other": page("Other"),
        }
    )
    with serve(site) as server:
        demo = project({"demo/start_urls.txt": server.url("/"), "demo/settings.py": "DOWNLOAD_DELAY = 0\n"})
        demo.crawl("demo").succeeded()
        server.forget()
        assert demo.scrapy("add", "demo", "--links", server.url("/")).succeeded().stdout.startswith("3 URLs are due now")
        demo.crawl("demo").succeeded()
        assert asked(server.paths()) == ["/docs/a", "/docs/b/c", "/other"]
        server.forget()
        assert (
            demo.scrapy("add", "demo", "--site", server.url("/docs/a?x=1/2"))
            .succeeded()
            .stdout.startswith("3 URLs are due now, 1")
        )
        demo.crawl("demo").succeeded()
        assert asked(server.paths()) == ["/docs/a", "/docs/a", "/docs/b/c"]
        ended = demo.scrapy("add", "demo", "--links", server.url("/new"))
        assert ended.returncode == 1
        assert "has not been fetched: `scrapy add demo" in ended.stderr
        ended = demo.scrapy("add", "demo", "--links", server.url("/other"))
        assert (ended.returncode, ended.stdout) == (1, "0 URLs are due now\n")
        assert "/other leads to no known URL, as it was last fetched" in ended.stderr


# path, what a person who chooses sees of it, status code, decision
CHOICES = [
    ("/a", "indexed", 200, "admitted"),
    ("/gone", "error", 404, "admitted"),
    ("/moved", "redirected", 302, "admitted"),
    ("/private/x", "refused", None, "prefix"),
    ("/private/y", "refused", None, "prefix"),
    ("/new", "waiting", None, "admitted"),
]
CHOSEN = Site(
    {
        "/": page("Home", links=["/a", "/gone#x", "/moved", "/private/x", "/private/y", "/a", "/new"]),
        "/a": page("A", links=["/", "/far"]),
        "/gone": status(404),
        "/moved": redirect("/a"),
        "/new": page("New"),
        "/far": page("Far"),
    }
)


@pytest.mark.parametrize("kind", ["file", "server"])
@pytest.mark.parametrize("archive", some([True, False], 1))
def test_the_links_of_a_page_are_listed_to_choose_from(project: MakeProject, kind: str, archive: bool) -> None:
    with serve(CHOSEN) as server:
        settings = f"DOWNLOAD_DELAY = 0\nDEPTH_LIMIT = 1\nCRAWLSPACE_ARCHIVE = {archive}\n"
        rules = f"forbid prefix {server.url('/private/')}\n"
        demo = project({"demo/start_urls.txt": server.url("/"), "demo/crawl.rules": rules, "demo/settings.py": settings})
        demo = shared(demo) if kind == "server" else demo
        demo.crawl("demo").succeeded()
        demo.scrapy("forget", "demo", server.url("/new")).succeeded()
        demo.scrapy("add", "demo", server.url("/new")).succeeded()
        listed = json.loads(demo.scrapy("add", "demo", server.url("/"), "--list", "--json").succeeded().stdout)
        shown = [(one["url"], one["choice"], one["status"], one["reason"]) for one in listed["links"]]
        expected = [(server.url(path), *rest) for path, *rest in CHOICES]
        assert shown == expected if archive else sorted(shown) == sorted(expected)
        assert [one["number"] for one in listed["links"]] == [1, 2, 3, 4, 5, 6]
        out = json.loads(demo.scrapy("links", "demo", server.url("/"), "--out", "--json").succeeded().stdout)["links_out"]
        by_links = [*out["urls"], *out["refused_urls"]]
        assert_same(
            [(one["url"], one["reason"], one["rule"]) for one in listed["links"]],
            [(one["url"], one["reason"], one["rule"]) for one in by_links],
        )

        lines = demo.scrapy("add", "demo", server.url("/"), "--list").succeeded().stdout.splitlines()
        assert lines[0].startswith(f"{server.url('/')}: 6 links, as fetched at ")
        assert lines[1].split() == ["1", "indexed", "200", "admitted", server.url("/a")]
        assert lines[-1] == f"to enter some of them: scrapy add demo {server.url('/')} --take NUMBERS, as in --take 1,3-5"
        deep = demo.scrapy("add", "demo", server.url("/a"), "--list").succeeded().stdout
        assert [line.split()[1:4:2] for line in deep.splitlines()[1:3]] == [["indexed", "link_depth"], ["refused", "link_depth"]]

        places = {one["url"]: one["number"] for one in listed["links"]}
        wanted = f"{places[server.url('/a')]},{places[server.url('/private/x')]}"
        taken = demo.scrapy("add", "demo", server.url("/"), "--take", wanted)
        assert taken.returncode == 1
        assert "1 URL is due now: the next crawl fetches it\n" in taken.stdout
        assert f"taken: {server.url('/a')}\n" in taken.stdout
        assert f"{server.url('/private/x')} is refused: a prefix rule" in taken.stderr
        assert states(demo)["/a"].requested_by
        assert not states(demo)["/gone"].requested_by
        beyond = demo.scrapy("add", "demo", server.url("/"), "--take", "2-7")
        assert (beyond.returncode, beyond.stderr) == (2, "--take has 7, and the page has 6 links: --list shows them\n")


def test_links_that_are_not_followed_are_listed_and_entered(project: MakeProject) -> None:
    """As FDSE does it: a page is fetched, and a person chooses what is followed."""
    with serve(CHOSEN) as server:
        settings = "DOWNLOAD_DELAY = 0\nCRAWLSPACE_DEFAULT_FOLLOW = False\nCRAWLSPACE_SITEMAP_GUESS = False\n"
        demo = project({"demo/start_urls.txt": server.url("/"), "demo/settings.py": settings})
        demo.crawl("demo").succeeded()
        assert asked(server.paths()) == ["/"]
        listed = demo.scrapy("add", "demo", server.url("/"), "--list").succeeded().stdout.splitlines()
        assert [line.split()[1] for line in listed[1:7]] == ["new"] * 6
        demo.scrapy("add", "demo", server.url("/"), "--take", "1,6").succeeded()
        server.forget()
        demo.crawl("demo").succeeded()
        assert asked(server.paths()) == ["/a", "/new"]


def asked(paths: list[str]) -> list[str]:
    return sorted(path.partition("?")[0] for path in paths if path != "/robots.txt")
