"""Settings of single sites (CRAWLSPACE_SITES) in a crawl of two sites, of which one has its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from crawlspace.content.mime import DOCX
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, collection, opened
from tests.sites import Route, Server, Site, binary, html, page, redirect, serve, text
from tests.unit.content.documents.made_files import docx, para

LONG = "word " * 1_000
PAGES: Mapping[str, Route] = {
    "/robots.txt": text("User-agent: partnerbot\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"),
    "/": page("Home", links=["/a", "/b", "/hidden", "/moved", "/long", "/file", "/notes.log"]),
    "/a": page("A"),
    "/b": page("B"),
    "/from": page("From elsewhere"),
    "/hidden": html("<title>Hidden</title><meta name=partnerbot content=noindex>text"),
    "/long": page("Long", text=LONG),
    "/file": binary(docx(para(LONG)), DOCX),
    "/notes.log": text("notes"),
}
RULES = "allow domain 127.0.0.*\nforbid domain *\n"


@pytest.fixture
def usual() -> Iterator[Server]:
    with serve(Site(PAGES), host="127.0.0.2") as server:
        yield server


@pytest.fixture
def own() -> Iterator[Server]:
    with serve(Site(PAGES)) as server:
        yield server


def crawled(project: MakeProject, usual: Server, own: Server, entry: Mapping[str, object]) -> Project:
    usual.site["/moved"], own.site["/moved"] = redirect(own.url("/from")), redirect(usual.url("/from"))
    settings = f"{FAST}CRAWLSPACE_SITES = {{'127.0.0.1': {entry!r}}}\n"
    demo = project(collection(f"{usual.url()}\n{own.url()}", rules=RULES, settings=settings))
    demo.crawl("demo").succeeded()
    return demo


def status_of(demo: Project, url: str) -> int | None:
    """The status of a URL; None where it is not known."""
    with opened(demo) as store:
        state = store.get(url)
        return None if state is None else state.status


def test_a_user_agent_of_its_own_is_sent_and_looked_for_in_robots_txt_and_directives(
    project: MakeProject, usual: Server, own: Server
) -> None:
    agent = "partnerbot/2.0 (+https://www.example.com/)"
    demo = crawled(project, usual, own, {"user_agent": agent})
    assert {request.headers["user-agent"] for request in own.requests} == {agent}
    assert {request.headers["user-agent"] for request in usual.requests} == {"crawlspace/0.1"}
    both = ["/", "/file", "/from", "/hidden", "/long", "/moved", "/notes.log", "/robots.txt"]
    assert_same(own.paths(), [*both, "/b"])
    assert_same(usual.paths(), [*both, "/a"])
    assert [status_of(demo, server.url("/hidden")) for server in (own, usual)] == [2004, 200]
    explained = demo.scrapy("explain", "demo", own.url("/a")).stdout
    assert "robots.txt forbids the URL" in explained


LIMITS: list[tuple[dict[str, object], str, int | None, int]] = [
    # the entry, a path, the status of its URL at this site, and at others
    ({"download_maxsize": 2_000}, "/long", 615, 200),
    ({"download_maxsize": 2_000}, "/a", 200, 200),
    ({"file_maxsize": 100}, "/file", 782, 200),
    ({"mime_types": ["text/html"]}, "/notes.log", 780, 200),
    ({"exclude_extensions": "+log"}, "/notes.log", None, 200),
    ({"exclude_extensions": "+log"}, "/a", 200, 200),
]


@pytest.mark.parametrize(("entry", "path", "here", "elsewhere"), LIMITS, ids=[f"{next(iter(row[0]))}-{row[1]}" for row in LIMITS])
def test_limits_of_its_own(
    project: MakeProject, usual: Server, own: Server, entry: dict[str, object], path: str, here: int | None, elsewhere: int
) -> None:
    demo = crawled(project, usual, own, entry)
    assert [status_of(demo, server.url(path)) for server in (own, usual)] == [here, elsewhere]
