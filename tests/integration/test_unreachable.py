"""Sites that give no answer, and servers that close a kept connection, over real connections."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from tests.conftest import MakeProject
from tests.http import Connection, Reply, Request
from tests.integration.stored import FAST, collection, indexed, shared, states, statuses, unreachable
from tests.sites import Site, page, serve, status, text
from tests.unit.test_docs import json_in


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_link_with_https_to_a_plain_port_stops_nothing_else(project: MakeProject, *, is_shared: bool) -> None:
    site = Site({})
    with serve(site) as server:
        https = server.url("/b").replace("http:", "https:")
        site["/"] = page("Home", text="Start here", links=[https, "/a"])
        site["/a"] = page("A", text="Another page")
        made = project(collection(server.url("/"), settings=f"{FAST}RETRY_TIMES = 1\n"))
        if is_shared:
            shared(made)
        reported = made.crawl("demo").stderr
    assert f"{server.netloc} is unreachable" in reported
    assert "its https URLs are not fetched until the next start; those of http are still tried" in reported
    assert indexed(made) == ["/", "/a"]
    assert states(made)["/b"].status == 741
    assert unreachable(made) == {}


def test_a_site_that_is_down_is_named_and_its_documents_wait_for_a_person(project: MakeProject) -> None:
    settings = f"{FAST}RETRY_TIMES = 0\nROBOTSTXT_OBEY = False\nCRAWLSPACE_MAX_TEMPORARY_ERRORS = 2\n"
    with serve(Site({"/": page("Home", text="Start here", links=["/a"]), "/a": page("A", text="Another page")})) as server:
        made = project(collection(server.url("/"), settings=settings))
        made.crawl("demo")
    found = []
    for _ in range(2):
        made.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        run = made.scrapy("crawl", "demo")
        assert run.returncode == 1
        assert f"demo: no start site could be reached: {server.netloc} (connection refused). " in run.stderr
        assert f"  unreachable: {server.netloc}: connection refused (612) since " in run.stderr
        numbers = json.loads(made.scrapy("status", "demo", "--json").succeeded().stdout)
        (site,) = numbers["unreachable"]
        found.append((site["site"], site["status"], site["runs"], site["documents"], site["held"], numbers["index"]["held"]))
    assert found == [(server.netloc, 612, 1, 2, False, 0), (server.netloc, 612, 2, 2, True, 2)]
    explained = made.scrapy("explain", "demo", server.url("/")).succeeded().stdout
    assert f"\nunreachable  {server.netloc}: connection refused (612) since " in explained
    listed = made.scrapy("deletions", "demo").succeeded()
    assert listed.stdout.split()[:2] == ["host", "612"]
    assert listed.stdout.rstrip().endswith(f"{server.netloc}: no answer since then, 2 documents")
    (line,) = made.scrapy("deletions", "demo", "--json").succeeded().stdout.splitlines()
    documented = json_in("docs/commands.md", "scrapy deletions")[1]
    assert isinstance(documented, dict)
    assert list(json.loads(line)) == list(documented)
    approved = made.scrapy("deletions", "demo", "--approve").succeeded()
    assert "2 deletions are approved" in approved.stdout
    assert indexed(made) == []


def test_a_site_that_the_rules_exclude_is_no_longer_reported(project: MakeProject) -> None:
    site = Site({"/": page("Home", text="Start here", links=["http://localhost:1/"])})
    with serve(site) as server:
        made = project(collection(server.url("/"), settings=f"{FAST}RETRY_TIMES = 0\n", rules="allow domain localhost:1\n"))
        made.crawl("demo")
        assert len(json.loads(made.scrapy("status", "demo", "--json").stdout)["unreachable"]) == 1
        made.write({"demo/crawl.rules": "forbid domain localhost\n"})
        made.crawl("demo").succeeded()
        assert json.loads(made.scrapy("status", "demo", "--json").stdout)["unreachable"] == []


RAISES = "ITEM_PIPELINES = {'tests.integration.own_spiders.pipelines.Raises': 100}\n"
FAULTS: list[tuple[str, Reply, str, str]] = [
    ("every page answers an error", status(500), "", "demo: every page of the run failed: 2 × 500. "),
    (
        "own code fails on every page",
        page("Home"),
        RAISES,
        "demo: every page that was parsed ended in an unexpected error (699), see the log. ",
    ),
]


@pytest.mark.parametrize(("reply", "settings", "first"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_a_run_that_did_nothing_reports_it(project: MakeProject, reply: Reply, settings: str, first: str) -> None:
    with serve(Site({"/": reply})) as server:
        made = project(collection(server.url("/"), settings=f"{FAST}RETRY_TIMES = 1\n{settings}"))
        run = made.scrapy("crawl", "demo")
    assert run.returncode == 1
    assert first in run.stderr


DEAD = [
    # what the only pages that are due answer, on a site that answers others
    [status(404)],
    [status(404), status(410)],
    [status(500)],
    [status(403)],
]


@pytest.mark.parametrize("replies", DEAD)
def test_statuses_of_pages_are_not_the_runs(project: MakeProject, replies: list[Reply]) -> None:
    well = {f"/{n}": page(f"Page {n}", text=f"the text of page {n}") for n in range(10)}
    failing = {f"/dead{n}": reply for n, reply in enumerate(replies)}
    with serve(Site({"/": page("Home", links=[*well, *failing]), **well, **failing})) as server:
        made = project(collection(server.url("/"), settings=f"{FAST}RETRY_TIMES = 0\n"))
        made.crawl("demo").succeeded()
        made.scrapy("recrawl", "demo", *map(server.url, failing)).succeeded()
        crawled = made.crawl("demo").succeeded()
        assert f"demo: done. {len(failing)} fetched" in crawled.stderr


DELAY_S = 0.05
TICK_S = 0.02
"""By so much the arrival of a request may be misjudged."""
PAGES = 30


@dataclass
class ClosesAfter:
    """Answers as `then` does on a connection's first requests; closes at the next one without a word, whichever page it asks for."""

    requests: int
    then: Reply
    closed: list[str] = field(default_factory=list)
    _answered: Counter[int] = field(default_factory=Counter)
    _connections: list[Connection] = field(default_factory=list)

    async def send(self, request: Request, connection: Connection) -> None:
        self._connections.append(connection)  # so that no other has its id
        self._answered[id(connection)] += 1
        if self._answered[id(connection)] > self.requests:
            self.closed.append(request.path)
            raise ConnectionAbortedError
        await self.then.send(request, connection)


@pytest.mark.full
def test_a_request_on_a_connection_that_is_being_closed_has_another_turn(project: MakeProject) -> None:
    closing = ClosesAfter(5, page("Page", links=[f"/{number}" for number in range(PAGES - 1)]))
    site = Site({"/robots.txt": ClosesAfter(5, text(""))}, otherwise=lambda request: numbered(closing, request))
    with serve(site) as server:
        settings = f"DOWNLOAD_DELAY = {DELAY_S}\nRETRY_TIMES = 0\nCRAWLSPACE_SITEMAP_GUESS = False\n"
        made = project(collection(server.url("/"), settings=settings))
        run = made.crawl("demo").succeeded()
        assert len(closing.closed) >= PAGES // 10
        assert Counter(server.paths()) == Counter([*statuses(made), *closing.closed, "/robots.txt"])
        gaps = [after.at - before.at for before, after in pairwise(server.requests)]
        assert min(gaps) > DELAY_S - TICK_S
    assert set(statuses(made).values()) == {200}
    assert len(indexed(made)) == PAGES
    assert f"{PAGES} fetched: {PAGES} with a document." in run.stderr


def numbered(closing: ClosesAfter, request: Request) -> Reply:
    """A page of its own text for each path."""
    closing.then = page(
        f"Page {request.path}", text=f"Words of {request.path}", links=[f"/{number}" for number in range(PAGES - 1)]
    )
    return closing
