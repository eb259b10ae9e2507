"""The page of held deletions: numbers, samples, and what approving and discarding do."""

from __future__ import annotations

import html
import re
from contextlib import closing

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.model import Held, NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.urls import parse
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, Got, served
from tests.draining import drain_all
from tests.integration.stored import indexed, opened, shared, states, worker_of

NOW = 1_750_000_000
A, B = "http://a.example", "http://b.example"
PAGE = "/c/demo/deletions"
HOSTILE = f"{A}/%3Cscript%3Ealert(1)%3C/script%3E?q={{{{7*7}}}}"
URLS: list[tuple[str, Held | None]] = [
    (f"{A}/", None),
    (f"{A}/down", Held.HOST),
    (f"{A}/many", Held.MANY),
    (HOSTILE, Held.MANY),
    (f"{B}/rules", Held.RULES),
    (f"{B}/many", Held.MANY),
]


@pytest.fixture(params=["file", "server"])
def demo(project: MakeProject, request: pytest.FixtureRequest) -> Project:
    """A collection with held deletions; the index has their documents."""
    files = {"demo/start_urls.txt": f"{A}/\n", "demo/crawl.rules": "allow domain *.example\nforbid domain *\n"}
    demo = shared(project(files)) if request.param == "server" else project(files)
    (demo.data / "demo").mkdir()
    if demo.store_url:
        worker_of(demo).leave()
    with (
        opened(demo, clock=FakeClock(NOW)) as store,
        closing(EmbeddedIndex(demo.data / "demo" / "index.db", owner="demo")) as index,
    ):
        for number, (url, held) in enumerate(URLS):
            parsed = parse(url)
            store.discover([NewUrl(parsed.key, parsed.text, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)
            row = store.get(parsed.text)
            assert row is not None
            row.state, row.status, row.held, row.fetched_at, row.interval_s = State.DONE, 404 if held else 200, held, NOW, 86_400
            row.checksum = bytes([number]) * 16
            store.record([Change(row, document=Document(url, title="A"))], now=NOW)
        drain_all(Drain(store, index, FakeClock(NOW)))
    return demo


def decided(browser: Browser, action: str, number: int, *, reason: str = "", host: str = "") -> Got:
    return browser.post(f"{PAGE}/{action}", {"number": str(number), "reason": reason, "host": host})


def urls_on(got: Got) -> list[str]:
    """The URLs of the table, shortened."""
    links = re.findall(r'href="/c/demo/url\?url=([^"]*)"', got.text)
    return [re.sub(r"http%3A%2F%2F(.)\.example%2F", r"\1/", html.unescape(link)) for link in links]


def test_what_is_held(demo: Project) -> None:
    with served(demo) as browser:
        shown = browser.get(PAGE)
        assert "5 deletions are held" in shown.words
        assert "many the run has deleted as many documents as it may 3" in shown.words
        assert "a.example 1 2 3" in shown.words
        assert urls_on(shown)[:2] == ["a/down", "a/many"]
        assert len(urls_on(shown)) == 5
        assert urls_on(browser.get(f"{PAGE}?reason=many&host=b.example")) == ["b/many"]
        assert urls_on(browser.get(f"{PAGE}?host=b.example")) == ["b/rules", "b/many"]
        assert "None is held for the reason host on 'b.example'" in browser.get(f"{PAGE}?reason=host&host=b.example").words
        assert browser.get(f"{PAGE}?reason=mood").status == 400
        assert "No host fits." in browser.get(f"{PAGE}?find=c.example").words
        hosts = re.findall(r'host=(\w)\.example#urls">', browser.get(f"{PAGE}?sort=-host").text)
        assert hosts == ["b", "a"]
        for text in (shown.text, browser.get(f"{PAGE}?host=%3Cscript%3Ealert(1)&find=%3Cscript%3E&sort=%3Cscript%3E").text):
            assert "<script>alert" not in text
            assert "<script>" not in text.replace("<script src", "")


def test_approving(demo: Project) -> None:
    with served(demo) as browser:
        assert "1 deletion is approved" in decided(browser, "approve", 1, reason="many", host="b.example").words
        assert [path for path in indexed(demo) if path in ("/many", "/rules")] == ["/many", "/rules"], (
            "that of the other host is left"
        )
        assert len(indexed(demo)) == 5
        assert "2 deletions are approved" in decided(browser, "approve", 2, reason="many").words
        assert "2 deletions are approved" in decided(browser, "approve", 2).words
        assert indexed(demo) == ["/"]
        assert "Nothing is held" in browser.get(PAGE).words
        again = decided(browser, "approve", 2)
        assert (again.status, "no deletion of demo is held" in again.words) == (400, True)
        log = browser.get("/audit-log").words
        assert ("approve number: 1 reason: many host: b.example changed: 1" in log, "2 deletions are approved" in log) == (
            True,
            True,
        )


def test_discarding(demo: Project) -> None:
    with served(demo) as browser:
        words = decided(browser, "discard", 2, host="b.example").words
        assert "2 deletions are discarded: the documents stay in the index" in words
        assert "What the rules exclude is held again by the next start" in words
        assert len(indexed(demo)) == 6
        assert [url for url, state in states(demo).items() if state.held] == [
            "/down",
            "/many",
            parse(HOSTILE).text.removeprefix(A),
        ]


def test_more_than_was_agreed_to(demo: Project) -> None:
    with served(demo) as browser:
        for number in ("4", "", "-5", "all"):
            answer = browser.post(f"{PAGE}/approve", {"number": number})
            assert answer.status >= 400
        assert "5 deletions of demo are held now, and not 4" in decided(browser, "approve", 4).words
        assert len(indexed(demo)) == 6


def test_a_site_that_cannot_be_reached(demo: Project) -> None:
    with opened(demo) as store:
        store.set_unreachable("a.example:80", UnreachableSite("a.example:80", 612, NOW, 100, NOW))
    with served(demo) as browser:
        shown = browser.get(PAGE)
        assert "6 deletions are held" in shown.words, "all documents of the site, and two others"
        assert "a.example:80 612" in shown.words
        assert urls_on(shown) == ["b/rules", "b/many"]
        assert "4 deletions are approved" in decided(browser, "approve", 4, reason="host").words
        assert indexed(demo) == ["/many", "/rules"]


def test_before_the_first_crawl(project: MakeProject) -> None:
    with served(project({"demo/start_urls.txt": f"{A}/\n"})) as browser:
        assert "demo was never crawled" in browser.get(PAGE).words
        assert decided(browser, "approve", 1).status == 400
