"""What a later crawl makes of a site that has changed since: real crawls of a declared site, one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from msgspec import structs

from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from tests.conftest import MakeProject, Project, assert_same
from tests.http import Reply
from tests.integration.stored import FAST, collection, indexed, make_due, opened, shared, states, statuses
from tests.quick import some
from tests.sites import Answer, Server, Site, drop, page, redirect, serve, status

SETTINGS = FAST + "RETRY_TIMES = 1\nCRAWLSPACE_REFRESH_MIN = 1\n"
HOME = page("Home", links=["/changes", "/other", "/third"], headers={"ETag": '"home"'})
BEFORE = page(
    "Changes", text="as it was", links=["/below"], headers={"ETag": '"1"', "Last-Modified": "Mon, 02 Jun 2025 08:00:00 GMT"}
)
OTHERS: Mapping[str, Reply] = {
    "/": HOME,
    "/other": page("Other", text="stays"),
    "/third": page("Third", text="stays, too"),
    "/below": page("Below", text="below what changes"),
}
GONE = "forgotten"


@pytest.mark.full
def test_a_run_fetches_each_page_once_however_short_its_interval(project: MakeProject) -> None:
    links = [f"/{n}" for n in range(8)]
    site = Site(
        {"/": page("Home", links=[*links, "/old"]), "/old": redirect("/7"), **{link: page(link, links=links) for link in links}}
    )
    with serve(site) as server:
        settings = FAST + "DOWNLOAD_DELAY = 0.25\nCRAWLSPACE_REFRESH_MIN = 1\nCRAWLSPACE_REFRESH_MAX = 1\n"
        demo = project(collection(server.url(), settings=settings))
        for _ in range(2):
            server.forget()
            demo.crawl("demo").succeeded()
            assert_same([path for path in server.paths() if path != "/robots.txt"], ["/", "/old", *links])
            let_pass(demo, 10)


def let_pass(demo: Project, seconds: int) -> None:
    """Have everything been fetched so much longer ago."""

    def earlier(state: UrlState) -> Change:
        assert state.fetched_at is not None
        assert state.next_fetch is not None
        return Change(structs.replace(state, fetched_at=state.fetched_at - seconds, next_fetch=state.next_fetch - seconds))

    with opened(demo) as store:
        store.revise([state.id for state in store.urls()], earlier, now=0)


TABLE: list[tuple[str, Reply, int | str, bool, list[str]]] = [
    # what becomes of the page                 it answers                                   status then  indexed  asked again in the second crawl
    ("unchanged",                              BEFORE,                                      200,         True,    ["/changes"]),
    ("changed",                                page("Changes", text="new", links=["/more"]), 200,        True,    ["/changes"]),
    ("gone",                                   status(404),                                 GONE,        False,   ["/changes"]),
    ("gone for good",                          status(410),                                 GONE,        False,   ["/changes"]),
    ("forbidden",                              status(403),                                 GONE,        False,   ["/changes", "/changes"]),
    ("moved",                                  redirect("/moved", 301),                     301,         False,   ["/changes"]),
    ("moved to nowhere",                       redirect("http://[/"),                       GONE,        False,   ["/changes"]),
    ("moved to itself",                        redirect("/changes"),                        691,         True,    ["/changes"]),
    ("not to be indexed",                      page("Changes", head='<meta name="robots" content="noindex">'), 2004, False, ["/changes"]),
    ("not to be indexed, by its header",       page("Changes", headers={"X-Robots-Tag": "noindex"}), 2004, False,  ["/changes"]),
    ("another type",                           page("x", headers={"Content-Type": "image/png"}), 780,    False,   ["/changes"]),
    ("broken, while its site is well",         status(500),                                 GONE,        False,   ["/changes", "/changes"]),
    ("no answer, while its site is well",      drop(reset=True),                            612,         True,    []),  # Twisted sends it once more
    ("busy",                                   status(503, headers={"Retry-After": "0"}),   503,         True,    ["/changes", "/changes"]),
    ("a soft error page",                      page("Sorry, the page has gone"),            GONE,        False,   ["/changes"]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "reply", "then", "stays", "asked"), TABLE, ids=[row[0] for row in TABLE])
def test_a_second_crawl(project: MakeProject, what: str, reply: Reply, then: int | str, stays: bool, asked: list[str]) -> None:
    soft = 'CRAWLSPACE_SOFT_ERRORS = [("*", "Sorry, the page*", "*", 404)]\n'
    soft += "RETRY_TIMES = 0\n" if what == "moved" else ""  # else it may be tried again before its target was fetched
    with serve(Site({**OTHERS, "/changes": BEFORE, "/moved": page("Moved"), "/more": page("More")})) as server:
        demo = project(collection(server.url(), settings=SETTINGS + soft))
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/changes", "/other", "/third", "/below"])
        server.site["/changes"] = reply
        make_due(demo)
        server.forget()
        demo.crawl("demo").succeeded()
        after = statuses(demo)
        assert after.get("/changes", GONE) == then
        assert ("/changes" in indexed(demo)) is stays
        if asked:
            assert [path for path in server.paths() if path == "/changes"] == asked
        assert {"/", "/other", "/third", "/below"} <= set(indexed(demo)), "what else there is stays"


def test_a_page_with_validators_is_requested_conditionally(project: MakeProject) -> None:
    with serve(Site({**OTHERS, "/changes": BEFORE})) as server:
        demo = project(collection(server.url(), settings=SETTINGS))
        demo.crawl("demo")
        make_due(demo)
        server.forget()
        demo.crawl("demo")
        asked = {request.path: request.headers for request in server.requests}
        assert asked["/changes"]["if-none-match"] == '"1"'
        assert asked["/changes"]["if-modified-since"] == "Mon, 02 Jun 2025 08:00:00 GMT"
        assert "if-none-match" not in asked["/other"], "it has named none"
        before = states(demo)["/changes"].interval_s
        make_due(demo)
        demo.write({"demo/crawl.rules": "forbid prefix http://elsewhere.example/"})
        server.forget()
        demo.crawl("demo")
        asked = {request.path: request.headers for request in server.requests}
        assert "if-none-match" not in asked["/changes"], "the rules have changed: its links must be seen again"
        assert before is not None


def outage(site: Site, server: Server, demo: Project, reply: Reply, *, rounds: int) -> None:
    """The whole site fails, robots.txt but for it, for some crawls; then it is as it was."""
    before = dict(site)
    site.update(dict.fromkeys(before, reply))
    site["/robots.txt"] = status(404)
    for _ in range(rounds):
        make_due(demo)
        demo.crawl("demo")
    site.update(before)


@pytest.mark.parametrize(
    "reply", some([status(500), drop(), status(503), drop(reset=True)], 1), ids=["500", "closed", "503", "reset"]
)
def test_an_outage_costs_no_document_and_what_has_gone_meanwhile_leaves(project: MakeProject, reply: Reply) -> None:
    site = Site({**OTHERS, "/changes": BEFORE})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=SETTINGS + "CRAWLSPACE_MAX_TEMPORARY_ERRORS = 1\n"))
        demo.crawl("demo")
        outage(site, server, demo, reply, rounds=3)
        assert len(indexed(demo)) == 5
        listed = demo.scrapy("deletions", "demo")
        assert "5 deletions are held" in listed.stderr, "all are held, none is deleted"
        site["/other"] = status(404)
        make_due(demo)
        demo.crawl("demo")
        assert_same(indexed(demo), ["/", "/changes", "/third", "/below"])
        assert demo.scrapy("deletions", "demo").stdout == "", "who answers is not held any more"


def test_a_page_that_was_forgotten_and_is_there_again_is_found_though_what_links_it_has_not_changed(project: MakeProject) -> None:
    site = Site({**OTHERS, "/changes": BEFORE})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=SETTINGS))
        demo.crawl("demo")
        site["/changes"] = status(404)
        make_due(demo)
        demo.crawl("demo")
        assert "/changes" not in indexed(demo)
        site["/changes"] = BEFORE
        for _ in range(2):
            make_due(demo)
            demo.crawl("demo")
        assert "/changes" in indexed(demo)


def test_a_redirect_that_is_a_page_again_and_one_that_leads_on(project: MakeProject) -> None:
    site = Site(
        {**OTHERS, "/changes": redirect("/second"), "/second": redirect("/last"), "/last": page("Last", text="at the end")}
    )
    with serve(site) as server:
        demo = project(collection(server.url(), settings=SETTINGS))
        demo.crawl("demo")
        assert_same(indexed(demo), ["/", "/other", "/third", "/last"])
        site["/second"] = page("Second", text="a page again")
        make_due(demo)
        demo.crawl("demo")
        assert_same(indexed(demo), ["/", "/other", "/third", "/last", "/second"])
        assert statuses(demo)["/changes"] == 302


def test_the_canonical_page_represents_the_others_until_it_is_gone(project: MakeProject) -> None:
    naming = page("Print", text="other words", head='<link rel="canonical" href="/other">')
    site = Site({**OTHERS, "/changes": naming})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=SETTINGS))
        demo.crawl("demo")
        assert_same(indexed(demo), ["/", "/other", "/third"])
        site["/other"] = status(404)
        make_due(demo)
        demo.crawl("demo")
        assert_same(indexed(demo), ["/", "/changes", "/third"])


SHOWN = page("Before", text="the same text", head='<meta name="description" content="before">')
SHOWN_BY = [
    # what changes besides the text, whether the title is part of the checksum, what the page answers then
    ("title", False, page("After", text="the same text", head='<meta name="description" content="before">')),
    ("description", True, page("Before", text="the same text", head='<meta name="description" content="after">')),
    ("description", False, page("Before", text="the same text", head='<meta name="description" content="after">')),
    ("language", True, page("Before", text="the same text", head='<meta name="description" content="before">', lang="de")),
]  # fmt: skip


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize(("what", "with_title", "after"), some(SHOWN_BY, 1), ids=[f"{row[0]}-{row[1]}" for row in SHOWN_BY])
def test_what_a_document_is_shown_by_follows_the_next_fetch(
    project: MakeProject, what: str, after: Answer, *, with_title: bool, is_shared: bool
) -> None:
    """Although its text is the same, so that it counts as unchanged."""
    # the heading of such a page is part of its text, so the title alone is another one
    same_heading = [replace(one, body=one.body.replace(b"<h1>After", b"<h1>Before")) for one in (SHOWN, after)]
    with serve(Site({"/": same_heading[0]})) as server:
        demo = project(collection(server.url(), settings=f"{FAST}CRAWLSPACE_CHECKSUM_TITLE = {with_title}\n"))
        if is_shared:
            shared(demo)
        demo.crawl("demo").succeeded()
        first, known = document(demo), states(demo)["/"]
        server.site["/"] = same_heading[1]
        for pushed in ("1 pushed", "0 pushed"):
            make_due(demo)
            assert pushed in demo.crawl("demo").succeeded().stderr
        second, later = document(demo), states(demo)["/"]
        assert {name for name, value in second.items() if first.get(name) != value} == {what}
        assert (later.checksum, later.interval_s) == (known.checksum, known.interval_s)


def document(demo: Project) -> dict[str, object]:
    (line,) = demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout.splitlines()
    found: dict[str, object] = json.loads(line)
    del found["fetched"]
    return found
