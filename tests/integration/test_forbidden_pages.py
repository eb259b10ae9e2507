"""Pages that are not for the user of a session, and sessions that end: a request to a page that was shown tells which of the two it is."""

from __future__ import annotations

import json

import pytest

from tests.conftest import MakeProject, assert_same
from tests.door import PASSWORD, USER, Door
from tests.http import Reply
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.integration.workers import MakeTeam
from tests.quick import some
from tests.sites import Server, page, redirect, serve, status

FORM = {"type": "form", "fields": {"user": USER, "password": "env:WIKI_PASSWORD"}}
PAGES = 12
ONE_BY_ONE = "DOWNLOAD_DELAY = 0.05\nCONCURRENT_REQUESTS_PER_DOMAIN = 1\n"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)


def settings(server: Server, more: str = "", **login: object) -> str:
    entry = {"login": {**FORM, "url": server.url("/login"), **login}, "allow_plain_http": True}
    return f"{FAST}{more}CRAWLSPACE_SITES = {{{server.netloc!r}: {entry!r}}}\n"


def wiki(forbidden: dict[str, Reply], **values: object) -> Door:
    """A wiki whose home page links to what is forbidden first, and then to pages that link to nothing."""
    links = [*forbidden, *(f"/{n}" for n in range(PAGES))]
    pages = {"/": page("Home", text="the home page", links=links)}
    pages.update({f"/{n}": page(f"Page {n}", text=f"the text of page {n}") for n in range(PAGES)})
    door = Door(pages, **values)  # type: ignore[arg-type]
    door.site.update(forbidden)
    return door


SHOWN = ["/", *(f"/{n}" for n in range(PAGES))]
FORBIDDEN: list[tuple[str, dict[str, Reply], str, list[str]]] = [
    # what is forbidden, its answers, settings, how the site shows that nobody is logged in
    ("one page", {"/secret": status(403)}, "", ["401"]),
    ("one page, at a delay", {"/secret": status(403)}, ONE_BY_ONE, ["401"]),
    ("401 for one page", {"/secret": status(401)}, ONE_BY_ONE, ["redirect"]),
    ("many pages", {f"/secret{n}": status(403) for n in range(30)}, "", ["form"]),
    ("many pages, at a delay", {f"/secret{n}": status(403) for n in range(6)}, ONE_BY_ONE, ["form"]),
]


@pytest.mark.parametrize(("forbidden", "more", "how"), some([row[1:] for row in FORBIDDEN], 2), ids=[row[0] for row in FORBIDDEN])
def test_what_is_forbidden_concerns_its_own_page_alone(
    project: MakeProject, forbidden: dict[str, Reply], more: str, how: list[str]
) -> None:
    door = wiki(forbidden, how=how)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server, more)))
        first = demo.crawl("demo").succeeded()
        assert (door.logins, "is refused" in first.stderr) == (1, False)
        assert_same(indexed(demo), SHOWN)
        expected = {path: reply.code for path, reply in forbidden.items()}  # type: ignore[attr-defined]
        assert {path: code for path, code in statuses(demo).items() if code != 200} == expected
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        again = demo.crawl("demo").succeeded()
        assert (door.logins, "is refused" in again.stderr) == (1, False)
        assert_same(indexed(demo), SHOWN)


def test_a_forbidden_page_that_is_the_only_one_due(project: MakeProject) -> None:
    door = wiki({"/secret": status(403)})
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo").succeeded()
        server.forget()
        demo.scrapy("recrawl", "demo", server.url("/secret")).succeeded()
        crawled = demo.crawl("demo").succeeded()
        assert (door.logins, "is refused" in crawled.stderr) == (1, False)
        assert server.paths().count("/secret") == 1
        assert statuses(demo).get("/secret") in (403, None), "it is forgotten: it was never a page"


def test_a_page_that_becomes_forbidden(project: MakeProject) -> None:
    """The page of an earlier run by which the session would be found alive, among others."""
    door = wiki({})
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo").succeeded()
        for path in SHOWN[:4]:
            door.site[path] = status(403)
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        crawled = demo.crawl("demo").succeeded()
        assert "is refused" not in crawled.stderr
        assert door.logins <= 3
        known, there = statuses(demo), indexed(demo)
        assert {path: code for path, code in known.items() if code != 200} == {path: 403 for path in SHOWN[:4] if path in known}
        assert_same(there, [path for path in SHOWN if path in known])  # held, or gone where the retry came after other pages


@pytest.mark.full
@pytest.mark.parametrize("more", some(["", ONE_BY_ONE], 1), ids=["at once", "at a delay"])
@pytest.mark.parametrize("forbidden", [status(403), redirect("/login?next=/secret")], ids=["403", "redirect"])
def test_a_home_page_for_everybody_tells_nothing(project: MakeProject, more: str, forbidden: Reply) -> None:
    """It is shown with a session that has ended, too; pages behind the log-in tell."""
    door = wiki({"/secret": forbidden}, how=["401"])
    door.site["/"] = page("Home", text="the home page", links=["/secret", *SHOWN[1:]])
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server, more)))
        crawled = demo.crawl("demo").succeeded()
        assert "is refused" not in crawled.stderr
        assert door.logins <= 2
        assert_same(indexed(demo), SHOWN)
        door.end_all()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo").succeeded()
        assert {code for path, code in statuses(demo).items() if path != "/secret"} == {200}
        assert_same(indexed(demo), SHOWN)


@pytest.mark.full
def test_a_page_that_is_named_to_find_out_by(project: MakeProject) -> None:
    door = wiki({"/secret": status(403)}, how=["401"])
    door.site["/"] = page("Home", text="the home page", links=["/secret", *SHOWN[1:]])
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server, ONE_BY_ONE, check=server.url("/3"))))
        demo.crawl("demo").succeeded()
        assert door.logins == 1
        assert statuses(demo)["/secret"] == 403
        assert_same(indexed(demo), SHOWN)


def test_a_start_url_that_is_forbidden(project: MakeProject) -> None:
    door = wiki({"/secret": status(403)}, how=["401"])
    with serve(door.site) as server:
        files = collection(server.url("/secret"), settings=settings(server, ONE_BY_ONE))
        files["demo/start_urls.txt"] += f"{server.url('/')}\n"
        demo = project(files)
        demo.crawl("demo").succeeded()
        assert door.logins == 1
        assert statuses(demo)["/secret"] == 403
        assert_same(indexed(demo), SHOWN)


@pytest.mark.full
@pytest.mark.parametrize("key", some(["", "env:SESSION_KEY"], 1))
def test_workers_that_meet_forbidden_pages(team: MakeTeam, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("SESSION_KEY", "a key")
    door = wiki({f"/secret{n}": status(403) for n in range(10)})
    with serve(door.site) as server:
        shared = team(server.url("/"), settings=f"{settings(server)}CRAWLSPACE_SESSION_KEY = {key!r}\n")
        for _ in range(3):
            shared.start()
        shared.wait()
        states = {url.removeprefix(server.url("")): state for url, state in shared.states().items()}
    assert door.logins <= (1 if key else 3)
    assert {state.status for url, state in states.items() if "secret" in url} == {403}
    assert_same([url for url, state in states.items() if state.indexed], SHOWN)


@pytest.mark.full
def test_log_ins_that_succeed_are_bounded(project: MakeProject) -> None:
    door = wiki({}, lasts=[2], how=["401"])  # for the page that the log-in leads to, and one more
    with serve(door.site) as server:
        files = collection(server.url("/"), settings=settings(server, ONE_BY_ONE))
        door.site.update({f"/more{n}": door.site["/0"] for n in range(20)})
        files["demo/start_urls.txt"] += "".join(f"{server.url(path)}\n" for path in door.site if path[1:] and "log" not in path)
        demo = project(files)
        crawls = [demo.crawl("demo") for _ in range(2)]
        assert door.logins <= 20
        assert "has logged in 20 times within an hour" in crawls[1].stderr
        last = demo.crawl("demo")
        assert (last.returncode, "nothing was due" in last.stderr) == (1, False)
        assert (
            f"demo: {server.netloc} waits for its log-in: CRAWLSPACE_SITES['{server.netloc}'] has logged in 20 times"
            in last.stderr
        )
        assert "has logged in 20 times within an hour" in demo.scrapy("status", "demo").succeeded().stdout
        (one,) = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["sessions"]
        assert one["next_log_in"] is not None
