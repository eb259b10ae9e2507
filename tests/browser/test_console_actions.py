"""Every action of the console as people do it in a real browser: wide and narrow, with scripts and without."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from crawlspace.console.guard import Access
from crawlspace.console.pages.routes import PAGES as ROUTES
from crawlspace.console.users import Role, Users
from tests.browser.test_console import Watched, browsing
from tests.conftest import MakeProject, Project
from tests.consoles import served
from tests.integration.stored import ARCHIVED, collection, states
from tests.integration.test_console_sinks import order_all
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Server, Site, held, page, serve, status

PASSWORD = "correct horse battery"
LIMIT = "CRAWLSPACE_MAX_DELETIONS = 1\nCRAWLSPACE_MAX_DELETIONS_PERCENT = 0\n"
PAGES = {
    "/": page("Home", text="home of the pump", links=["/a", "/b", "/c", "/d"]),
    **{f"/{name}": page(f"Page {name}", text=f"the pump {name}") for name in "abcd"},
    "/robots.txt": status(404),
}


@dataclass
class Administrator:
    """Somebody with a browser, a collection that has been crawled, and its site."""

    watched: Watched
    demo: Project
    server: Server
    done: set[str]
    """The paths of the actions that were done."""

    @property
    def page(self) -> Page:
        return self.watched.page

    def open(self, name: str) -> None:
        self.watched.open(f"/c/demo/{name}")

    def press(self, button: str, *, within: str = "main") -> None:
        self.page.locator(within).get_by_role("button", name=button).first.click()

    def sees(self, text: str) -> None:
        expect(self.page.locator("body")).to_contain_text(re.compile(text))

    def sees_at_last(self, text: str) -> None:
        """Load the page again until it has a text, for what a process of its own does."""
        give_up_at = time.monotonic() + LONGEST_WAIT_S
        while not re.search(text, self.page.locator("body").inner_text()):
            assert time.monotonic() < give_up_at, self.page.locator("body").inner_text()
            self.page.reload()

    def url(self, path: str) -> str:
        return self.server.url(path)


@pytest.fixture(
    params=[(1400, True), (1400, False), (360, True), (360, False)],
    ids=["wide", "wide, no scripts", "narrow", "narrow, no scripts"],
)
def anna(project: MakeProject, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Administrator]:
    width, scripts = request.param
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + LIMIT))
        demo.crawl("demo").succeeded()
        for name, value in demo.env.items():  # of the crawls that the console starts
            monkeypatch.setenv(name, value)
        with served(demo, public=["demo"]) as console, browsing(console.base, width=width, scripts=scripts) as watched:
            watched.page.set_default_timeout(LONGEST_WAIT_S * 1000)
            expect.set_options(timeout=LONGEST_WAIT_S * 1000)
            watched.page.on("dialog", lambda dialog: dialog.accept())
            done = set[str]()
            watched.page.on("request", lambda sent: done.add(_route(sent.url)) if sent.method == "POST" else None)
            yield Administrator(watched, demo, server, done)
            assert [fault for fault in watched.faults if "404" not in fault] == []


def _route(url: str) -> str:
    return re.sub(r"^http://[^/]+", "", url).partition("?")[0]


def test_every_action(anna: Administrator) -> None:
    for act in (one_url, crawls, many_urls, rules, deletions, old_versions, sites, sinks, missing_pages):
        act(anna)
    actions = {route.path.format(name="demo", sink="embedded") for route in ROUTES if route.changes}
    assert actions - anna.done == set()


def crawls(anna: Administrator) -> None:
    anna.server.site["/a"] = late = held(page("Page a", text="the pump a"))
    anna.server.forget()
    anna.watched.open("/")
    anna.press("Start")
    anna.sees("The crawl of demo begins")
    anna.demo.until(lambda: "/a" in anna.server.paths())
    anna.open("")
    anna.sees_at_last("is being crawled|crawling since|crawling")
    anna.press("Stop the crawl")
    anna.sees("ends as soon as its requests in flight are answered")
    late.release()
    anna.sees_at_last("not crawling")


def one_url(anna: Administrator) -> None:
    anna.open(f"url?url={anna.url('/a')}")
    anna.sees("It is in the index")
    anna.press("Fetch again")
    anna.sees("1 URL is due now")
    anna.open(f"url?url={anna.url('/new')}")
    anna.press("Add to the crawl")
    anna.sees("new")
    anna.press("Forget")
    anna.sees("1 URL is forgotten")
    assert anna.url("/new") not in {state.url for state in states(anna.demo).values()}


def many_urls(anna: Administrator) -> None:
    anna.open(f"explorer/urls?prefix={anna.url('/b')}")
    anna.press("Fetch all again")
    anna.sees("1 URL is due now")
    anna.press("Forget all")
    anna.sees("1 URL is forgotten")


def rules(anna: Administrator) -> None:
    anna.open("rules")
    editor = anna.page.locator("textarea").first
    before = editor.input_value()
    editor.fill(f"{before}forbid prefix {anna.url('/c')}\n")
    anna.page.locator("#urls").fill(anna.url("/c"))
    anna.press("Try them")
    anna.sees("1 URL is decided differently")
    anna.press("Plan: what would it do?")
    anna.sees("Of 4 known URLs")
    anna.open("rules")
    anna.page.locator("textarea").first.fill(f"{before}forbid prefix {anna.url('/c')}\nforbid prefix {anna.url('/d')}\n")
    anna.press("Save")
    anna.sees("crawl.rules is saved")


def deletions(anna: Administrator) -> None:
    anna.demo.crawl("demo").succeeded()
    anna.open("deletions")
    anna.sees("2 deletions are held")
    anna.press("Keep them")
    anna.sees("Nothing is held")
    anna.demo.crawl("demo").succeeded()
    anna.open("deletions")
    anna.press("Delete 2 documents")
    anna.sees("Nothing is held")


def old_versions(anna: Administrator) -> None:
    anna.open("rules")
    anna.page.get_by_role("link", name="Compare").first.click()
    anna.press("Restore it")
    anna.sees("crawl.rules is")
    anna.open("rules?file=rules.xml")
    anna.page.locator("textarea").first.fill("<Rules></Rules>")
    anna.press("Save")
    anna.sees("rules.xml is")
    anna.press("Remove rules.xml")
    anna.sees("rules.xml is removed")


def sites(anna: Administrator) -> None:
    anna.open("sites")
    anna.page.locator("#pause-host").fill("127.0.0.1")
    anna.page.locator("#reason").fill("it moves")
    anna.press("Pause")
    anna.sees("1 host is paused")
    anna.press("Resume")
    anna.sees("127.0.0.1")
    expect(anna.page.locator("body")).not_to_contain_text("1 host is paused")


def sinks(anna: Administrator) -> None:
    order_all(anna.demo, why_refused="no room")
    anna.open("sinks")
    anna.press("Send refused ones again")
    anna.sees("refuses nothing|are sent|is sent")
    anna.press("Audit")
    anna.sees("begins")


def missing_pages(anna: Administrator) -> None:
    anna.watched.open("/find?q=nothing-like-it")
    anna.page.get_by_role("link", name="Tell us").click()
    anna.page.locator("#url").fill(anna.url("/c"))
    anna.press("Report it")
    anna.open("search?q=pump")
    anna.sees("Pages that users miss")
    anna.press("Remove")
    anna.sees("The report is removed")


def test_log_in_and_log_out(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    users = Users(demo.data / "console-users")
    users.set_password("anna", PASSWORD, Role.OPERATOR)
    access = Access(users, hosts=frozenset(), is_local=False)
    with served(demo, access=access) as console, browsing(console.base) as watched:
        watched.open("/")
        here = watched.page
        here.get_by_label("Name").fill("anna")
        here.get_by_label("Password").fill("wrong")
        here.get_by_role("button", name="Log in").click()
        expect(here.get_by_role("alert")).to_be_visible()
        here.get_by_label("Name").fill("anna")
        here.get_by_label("Password").fill(PASSWORD)
        here.get_by_role("button", name="Log in").click()
        expect(here.locator("body")).to_contain_text("anna (operator)")
        here.get_by_role("button", name="Log out").click()
        watched.open("/c/demo/")
        expect(here.get_by_label("Password")).to_be_visible()
