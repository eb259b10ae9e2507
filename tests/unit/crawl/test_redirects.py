"""Redirects: a site that sends every URL to one page keeps its documents, a page or a site that moves is replaced, loops are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.document import Document
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.lifecycle import excluded
from crawlspace.state.store import Store
from crawlspace.status import NO_CONTENT, Status
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.crawl.test_engine import HOME, Web

MONTH = 31
SECURE = "https://a.example/"
OTHER = "http://b.example/"


@dataclass(frozen=True)
class To:
    """A redirect; `cookie`: it sets one."""

    target: str
    cookie: bool = False


class RedirectingWeb(Web):
    """What a site answers is a function of the URL: None is as before, text is a page with that text, a number an error, else a redirect.

    `gate`: the redirect of a URL to a client that sends the cookie of the site, or does not; None: the page.
    """

    def __init__(self, folder: Path, store: Store, **settings: object) -> None:
        super().__init__(folder, store, **settings)
        self.shows: Callable[[str], To | str | int | None] = lambda url: None
        self.gate: Callable[[str, bool], To | None] | None = None
        self.has_cookie = False
        self.canonical: dict[str, str] = {}

    def crawl(self, *, after: int = 0) -> Engine:
        self.has_cookie = False
        return super().crawl(after=after)

    def _answer(self, fetch: FetchPage) -> Outcome:
        state, url = fetch.state, fetch.state.url
        shown = self.shows(url)
        if self.gate is not None:
            shown = self.gate(url, self.has_cookie)
        if isinstance(shown, To):
            self.has_cookie = self.has_cookie or (shown.cookie and bool(self.settings.get("COOKIES_ENABLED")))
            outcome = Outcome(state.id, url, OutcomeKind.REDIRECTED, 302, redirect_to=shown.target)
            outcome.sets_cookie = shown.cookie
            return outcome
        if shown in NO_CONTENT:
            return Outcome(state.id, url, OutcomeKind.EXCLUDED, int(str(shown)), detail="no content")
        if isinstance(shown, int):
            return Outcome(state.id, url, OutcomeKind.GONE, shown, host_failure=shown >= 500)
        if shown is None:
            page = super()._answer(fetch)
            page.canonical = self.canonical.get(url)
            return page
        outcome = Outcome(state.id, url, OutcomeKind.DOCUMENT, 200, checksum=shown[:16].ljust(16).encode())
        outcome.document, outcome.links = Document(url, title=shown, text=shown), []
        return outcome

    def states(self) -> dict[str, UrlState]:
        return {state.url: state for state in self.store.urls()}


def site(folder: Path, store: Store, pages: int, *, root: str = HOME, **settings: object) -> RedirectingWeb:
    """A site of so many documents, crawled once."""
    web = RedirectingWeb(folder, store, **settings)
    names = [f"{root}{number:03}" for number in range(pages - 1)]
    web.write(start=root)
    web.pages = {root: "home", **{name: name[-3:] for name in names}}
    web.links = {root: names}
    web.crawl()
    assert len(web.sink.documents) == pages
    return web


def path(url: str) -> str:
    return parse(url).path


LOOP = "its URLs"
WHOLE_SITE = [
    # title, what each URL shows, whether the home page is as ever
    ("itself", lambda url: To(url), False),
    ("itself, with a fragment", lambda url: To(url + "#top"), False),
    ("a page of maintenance", lambda url: None if path(url) == "/maintenance" else To("/maintenance"), False),
    ("a page of maintenance, but the home page", lambda url: None if path(url) in ("/", "/maintenance") else To("/maintenance"), True),
    ("a log-in that repeats the URL", lambda url: "log in" if path(url) == "/login" else To(f"/login?back={path(url)}"), False),
    ("a log-in that names the URL", lambda url: f"log in for {url[-20:]}" if path(url) == "/login" else To(f"/login?back={path(url)}"), False),
    ("a log-in with a text of its own each time", lambda url: f"log in {hash(url)}" if path(url) == "/login" else To(f"/login?n={hash(url)}"), False),
    ("a log-in with a number", lambda url: "log in" if path(url) == "/login" else To(f"/login?state={hash(url)}"), False),
    ("each URL with another query", lambda url: "log in" if "?" in url else To(f"{path(url)}?log-in"), False),
    ("a log-in in the path", lambda url: "log in" if "/login/" in url else To(f"/login{path(url)}"), False),
    ("a log-in of another host", lambda url: "log in" if OTHER in url else To(f"{OTHER}login?back={url}"), False),
    ("a host outside", lambda url: To("http://sso.example/"), False),
    ("its home page", lambda url: None if path(url) == "/" else To("/"), True),
    ("its home page, over another URL", lambda url: None if path(url) == "/" else To("/" if path(url) == "/go" else f"/go?to={url}"), True),
    ("a target that is missing", lambda url: 404 if path(url) == "/error" else To("/error"), False),
    ("a target that fails", lambda url: 500 if path(url) == "/error" else To("/error"), False),
    ("a text", lambda url: "maintenance", False),
    ("nothing", lambda url: 204, False),
    ("nothing, but the home page", lambda url: None if path(url) == "/" else 204, True),
    ("a text, but the home page", lambda url: None if path(url) == "/" else "maintenance", True),
]  # fmt: skip


@pytest.mark.parametrize("pages", some([60, 300], 1))
@pytest.mark.parametrize(("title", "shows", "has_home"), WHOLE_SITE, ids=[row[0] for row in WHOLE_SITE])
def test_a_site_that_shows_one_thing_for_every_url_keeps_its_documents(
    tmp_path: Path, title: str, shows: Callable[[str], To | str | int | None], has_home: bool, pages: int
) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), pages, CRAWLSPACE_MAX_DELETIONS=pages)
    web.write(start=HOME, rules="forbid domain sso.example\nallow domain *")
    web.pages[HOME + "maintenance"] = "closed for maintenance"
    well = set(web.indexed)
    web.shows = shows
    for number in range(3):
        if has_home:
            web.pages[HOME] = f"welcome {number}"
        web.crawl(after=MONTH)
        assert well <= web.indexed, f"in run {number + 1}"
        assert len(web.asked) <= 3 * pages + 50
    web.shows = lambda url: None
    for _ in range(3):
        web.crawl(after=MONTH)
    assert well <= web.indexed
    assert {name: held for name, held in web.held().items() if name in well} == {}


def test_a_site_that_moves_to_one_text_loses_one_document_at_most(tmp_path: Path) -> None:
    """That of the first page, which has the same address there."""
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 60)
    web.shows = lambda url: "log in" if url.startswith(SECURE) else To(SECURE + url.removeprefix(HOME))
    for _ in range(3):
        web.crawl(after=MONTH)
        assert (len(web.indexed), SECURE in web.indexed) == (60, True)


def test_one_fault_after_the_other_confirms_nothing(tmp_path: Path) -> None:
    """What is held for one fault must not be confirmed by the first page that shows the next one."""
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 60, CRAWLSPACE_MAX_DELETIONS=60)
    well = set(web.indexed)
    web.write(start=HOME, rules="forbid domain sso*\nallow domain *")
    web.pages |= {HOME + "maintenance": "closed", HOME + "m1": "closed 1", HOME + "m2": "closed 2"}
    faults: list[Callable[[str], To | str | int | None]] = [
        lambda url: None if path(url) == "/maintenance" else To("/maintenance"),
        lambda url: "closed",
        lambda url: "closed" if path(url) == "/login" else To(f"/login?back={path(url)}"),
        lambda url: 403,
        lambda url: To(url),
        lambda url: "no service",
        lambda url: 204,
        lambda url: None if path(url) in ("/", "/m1") else To("/m1"),
        lambda url: None if path(url) in ("/", "/m1", "/m2") else To("/m2"),
        lambda url: None if path(url) == "/" else To("http://sso.example/"),
        lambda url: None if path(url) == "/" else To("http://sso2.example/"),
        lambda url: To(url) if path(url)[1:2].isdigit() else None,
    ]
    for number, fault in enumerate(faults):
        web.shows = fault
        web.pages[HOME] = f"welcome {number}"
        web.crawl(after=MONTH)
        assert well <= web.indexed
    web.shows = lambda url: None
    for _ in range(2):
        web.crawl(after=MONTH)
    assert well <= web.indexed
    assert well.isdisjoint(web.held())


def test_both_stores_keep_them(tmp_path: Path, store: Store) -> None:
    web = site(tmp_path, store, 60, CRAWLSPACE_MAX_DELETIONS=60)
    well = set(web.indexed)
    web.pages[HOME + "maintenance"] = "closed for maintenance"
    web.shows = lambda url: None if path(url) == "/maintenance" else To("/maintenance")
    for _ in range(2):
        web.crawl(after=MONTH)
        assert well <= web.indexed
        assert {name: held for name, held in web.held().items() if name in well} == dict.fromkeys(well, Held.HOST)
    web.shows = lambda url: None
    web.crawl(after=MONTH)
    assert (well <= web.indexed, web.held()) == (True, {})


@pytest.mark.parametrize("pages", [60, 300])
def test_pages_that_are_due_one_at_a_time_are_kept_too(tmp_path: Path, pages: int) -> None:
    """The first redirects look like those of pages that have moved."""
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), pages)
    well = set(web.indexed)
    web.shows = lambda url: None if path(url) == "/maintenance" else To("/maintenance")
    web.pages[HOME + "maintenance"] = "closed for maintenance"
    for state in list(web.store.urls())[:30]:
        now = int(web.clock.now())
        web.store.revise([state.id], lambda state: Change(structs.replace(state, next_fetch=now)), now=now)  # noqa: B023
        web.crawl()
        assert well <= web.indexed


MOVES = [
    # title, pages of the site, where each page goes, whether its text is another one there
    ("to https", 60, lambda url: SECURE + url.removeprefix(HOME), False),
    ("to https, with other texts", 60, lambda url: SECURE + url.removeprefix(HOME), True),
    ("to a new host", 60, lambda url: OTHER + url.removeprefix(HOME), False),
    ("to new addresses", 60, lambda url: HOME + "new/" + url.removeprefix(HOME), False),
    ("of a small site", 12, lambda url: SECURE + url.removeprefix(HOME), False),
    ("of a small site to new addresses, with other texts", 12, lambda url: HOME + "new/n" + url.removeprefix(HOME), True),
    ("of 300 pages", 300, lambda url: SECURE + url.removeprefix(HOME), False),
]  # fmt: skip


@pytest.mark.parametrize(("title", "pages", "there", "other_text"), MOVES, ids=[row[0] for row in MOVES])
def test_a_site_that_moves_leaves_nothing_behind_and_needs_no_approval(
    tmp_path: Path, store: Store, title: str, pages: int, there: Callable[[str], str], other_text: bool
) -> None:
    web = site(tmp_path, store, pages, CRAWLSPACE_MAX_DELETIONS=5, CRAWLSPACE_MAX_DELETIONS_PERCENT=1)
    old = dict(web.pages)
    web.pages |= {there(url): f"new {text}" if other_text else text for url, text in old.items() if isinstance(text, str)}
    web.shows = lambda url: To(there(url)) if url in old else None
    engine = web.crawl(after=MONTH)
    assert set(web.sink.documents) == {there(url) for url in old}
    assert web.held() == {}
    assert sum(engine.progress.moves.values()) == pages
    assert {state.state for url, state in web.states().items() if url in old} == {State.REDIRECTED}


def test_a_page_that_moves_for_itself_is_replaced(tmp_path: Path, store: Store) -> None:
    web = site(tmp_path, store, 60)
    web.pages[HOME + "moved"] = "another text"
    web.shows = lambda url: To("/moved") if path(url) == "/007" else None
    web.crawl(after=MONTH)
    assert "007" not in web.indexed
    assert "moved" in web.indexed
    assert len(web.indexed) == 60


def test_a_section_that_leads_to_one_page_leaves_when_the_site_is_well(tmp_path: Path) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 300)
    web.pages[HOME + "section"] = "closed"
    web.shows = lambda url: To("/section") if path(url)[1:2] == "2" and path(url)[2:3] in "012" else None
    web.crawl(after=MONTH)
    web.crawl(after=MONTH)
    assert len(web.indexed) == 300 - 30 + 1
    assert web.held() == {}


@pytest.mark.parametrize("text", ["a page", "another text"])
def test_the_other_pages_of_a_site_still_answer_where_one_leads_to_its_path_without_a_query(
    tmp_path: Path, store: Store, text: str
) -> None:
    """The target may be the same for every URL as far as it repeats their paths, but not every page of the site is that target."""
    web = site(tmp_path, store, 60)
    web.pages |= {HOME: "the home page", HOME + "page?v=1": "a page"}
    web.links = {HOME: [*web.links[HOME], HOME + "page?v=1"]}
    web.crawl(after=MONTH)
    assert HOME + "page?v=1" in web.sink.documents
    web.pages[HOME + "page"] = text
    web.shows = lambda url: To("/page") if url.endswith("?v=1") else None
    web.crawl(after=MONTH)
    web.shows = lambda url: To("/page") if url.endswith("?v=1") else 403 if path(url) == "/007" else None
    for _ in range(2):
        web.crawl(after=MONTH)
    assert web.held() == {}
    assert {HOME + "page?v=1", HOME + "007"}.isdisjoint(web.sink.documents)
    assert len(web.indexed) == 60


def over(url: str, has_cookie: bool, *, first: bool = False) -> To | None:
    """A wall: a client without its cookie is sent to a second URL that sets it and sends it back."""
    if "?set=" in url:
        return To(url.partition("?set=")[2], cookie=True)
    return None if has_cookie else To(f"/?set={path(url)}", cookie=first)


def test_what_leads_to_one_page_is_counted_by_the_deletion_limit(tmp_path: Path) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 300, CRAWLSPACE_MAX_DELETIONS=5, CRAWLSPACE_MAX_DELETIONS_PERCENT=1)
    web.pages[HOME + "section"] = "closed"
    web.shows = lambda url: To("/section") if path(url)[1:2] == "2" and path(url)[2:3] in "012" else None
    for _ in range(2):
        engine = web.crawl(after=MONTH)
        assert engine.progress.deletes <= 5 + 1
    assert Held.MANY in web.held().values()


def test_what_is_held_for_approval_is_not_confirmed_by_a_redirect(tmp_path: Path) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 60, CRAWLSPACE_MAX_DELETIONS=5, CRAWLSPACE_MAX_DELETIONS_PERCENT=1)
    web.write(start=HOME, rules="forbid domain sso.example\nallow domain *")
    gone = [f"{HOME}{number:03}" for number in range(10)]
    web.shows = lambda url: 404 if url in gone else None
    web.crawl(after=MONTH)
    assert list(web.held().values()) == [Held.MANY] * 5
    web.shows = lambda url: To("http://sso.example/") if url in gone else None
    for _ in range(2):
        web.crawl(after=MONTH)
    assert list(web.held().values()) == [Held.MANY] * 5


@pytest.mark.parametrize(
    "target", ["ftp://b.example/", "mailto:a@b.example", "javascript:void(0)", "about:blank", "tel:1", "ws://b.example/"]
)
@pytest.mark.parametrize("pages", [5, 60])
def test_a_redirect_to_what_is_no_page_of_the_web(tmp_path: Path, target: str, pages: int) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), pages)
    web.shows = lambda url: To(target) if path(url) == "/003" else None
    web.crawl(after=MONTH)
    assert (len(web.indexed), web.held()) == (pages - 1, {})


@pytest.mark.parametrize("pages", [5, 60])
def test_a_page_that_has_no_content_any_more_leaves(tmp_path: Path, pages: int) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), pages)
    web.shows = lambda url: 204 if path(url) == "/003" else None
    web.crawl(after=MONTH)
    assert (len(web.indexed), web.held()) == (pages - 1, {})
    left = web.states()[f"{HOME}003"]
    assert (left.state, left.status) == (State.EXCLUDED, 204)


def test_a_page_that_leads_to_one_that_goes_at_the_same_time_has_not_moved(tmp_path: Path) -> None:
    web = site(tmp_path, MemoryStore(sinks=(EMBEDDED,)), 60)
    web.pages[f"{HOME}004"] = web.pages[f"{HOME}003"]
    web.shows = lambda url: 404 if path(url) == "/003" else To("/003") if path(url) == "/004" else None
    assert web.crawl(after=MONTH).progress.moves.total() == 0


def test_a_redirect_that_is_turned_round_is_no_loop(tmp_path: Path, store: Store) -> None:
    web = site(tmp_path, store, 5)
    there = {SECURE + url.removeprefix(HOME): text for url, text in web.pages.items()}
    web.pages |= there
    web.shows = lambda url: To(SECURE + url.removeprefix(HOME)) if url.startswith(HOME) else None
    web.crawl(after=MONTH)
    assert set(web.sink.documents) == set(there)
    web.shows = lambda url: To(HOME + url.removeprefix(SECURE)) if url.startswith(SECURE) else None
    for _ in range(2):
        web.crawl(after=MONTH)
    assert all(url.startswith(HOME) for url in web.sink.documents)
    assert len(web.sink.documents) == 5


LOOPS = [
    # title, cookies kept, what each URL shows without a cookie, how often the home page is requested, what is known of it
    ("a redirect to itself", False, lambda url, has: To(url), 1, (State.FAILED, 691)),
    ("a redirect to itself that sets a cookie", True, lambda url, has: None if has else To(url, cookie=True), 2, (State.DONE, 200)),
    ("the same, without cookies", False, lambda url, has: None if has else To(url, cookie=True), 1, (State.FAILED, 691)),
    ("a second URL, and the first sets a cookie", True, lambda url, has: over(url, has, first=True), 2, (State.DONE, 200)),
    ("a second URL that sets a cookie", True, lambda url, has: over(url, has), 2, (State.DONE, 200)),
    ("the same, without cookies", False, lambda url, has: over(url, has), 1, (State.REDIRECTED, 302)),
    ("a second URL and back", True, lambda url, has: To("/?set=/") if url == HOME else To("/"), 1, (State.REDIRECTED, 302)),
]  # fmt: skip


@pytest.mark.parametrize(("title", "cookies", "gate", "times", "expected"), LOOPS, ids=[f"{row[0]} {row[1]}" for row in LOOPS])
def test_a_redirect_that_leads_back_is_requested_once_more_if_it_sets_a_cookie(
    tmp_path: Path,
    store: Store,
    title: str,
    cookies: bool,
    gate: Callable[[str, bool], To | None],
    times: int,
    expected: tuple[State, int],
) -> None:
    web = RedirectingWeb(tmp_path, store, COOKIES_ENABLED=cookies)
    web.pages = {HOME: "home"}
    web.gate = gate
    web.crawl()
    state = web.states()[HOME]
    assert (state.state, state.status) == expected
    assert web.asked_for(HOME) == times


def make_due(web: RedirectingWeb, *, first: str) -> None:
    """Let a month pass, and have all URLs be due, one of them before the others."""
    web.clock.advance(MONTH * 86_400)
    now = int(web.clock.now())
    ids = [state.id for state in web.states().values()]
    web.store.revise(ids, lambda state: Change(structs.replace(state, next_fetch=now - 60 * (state.url == first))), now=now)


def test_a_loop_costs_no_document_where_the_page_was_found_by_the_last_redirect_that_is_followed(
    tmp_path: Path, store: Store
) -> None:
    """Whichever of its URLs is fetched first."""
    page, door = HOME + "page", HOME + "door"
    web = RedirectingWeb(tmp_path, store, REDIRECT_MAX_TIMES=1)
    web.write(start=f"{HOME}\n{door}")
    web.pages[page] = "page"
    web.shows = lambda url: None if url == page else To(page)
    web.crawl()
    web.shows = lambda url: To(door if url == page else page)
    for first in (door, page, page, door):
        make_due(web, first=first)
        web.crawl()
        assert web.indexed == {"page"}


def test_a_page_that_moves_to_its_alternate_with_the_text_of_another_is_counted_by_the_deletion_limit(
    tmp_path: Path, store: Store
) -> None:
    web = site(tmp_path, store, 3, CRAWLSPACE_MAX_DELETIONS=0)
    web.write(start=HOME, rules="allow domain *")
    old, new = HOME + "000", OTHER + "000"
    web.pages |= {HOME: "home again", new: web.pages[HOME + "001"]}
    web.links[HOME] = [*web.links[HOME], new]
    web.canonical = {new: old}
    web.crawl(after=MONTH)
    web.shows = lambda url: To(new) if url == old else None
    web.crawl(after=MONTH)
    assert web.indexed == {"", "000", "001"}


def test_a_cookie_that_does_not_help_is_sent_once(tmp_path: Path, store: Store) -> None:
    web = RedirectingWeb(tmp_path, store, COOKIES_ENABLED=True)
    web.shows = lambda url: To(url, cookie=True)
    web.crawl()
    assert web.asked_for(HOME) == 2
    assert web.states()[HOME].status == Status.REDIRECT_LOOP


@pytest.mark.parametrize("pages", [5, 60])
def test_a_wall_of_cookies_costs_no_document_in_later_runs(tmp_path: Path, store: Store, pages: int) -> None:
    web = site(tmp_path, store, pages, COOKIES_ENABLED=True)
    web.gate = over
    pushed = len(web.sink.documents)
    for number in range(3):
        web.pages = {url: f"{text} {number}" for url, text in web.pages.items()}
        engine = web.crawl(after=MONTH)
        assert (len(web.indexed), engine.progress.deletes) == (pushed, 0)
        fresh = sum(document.title.endswith(f" {number}") for document in web.sink.documents.values())
        assert fresh >= (pushed if pages == 5 else 10)


def walls_of_pages(*, over_a_second_url: bool = False) -> Callable[[str, bool], To | None]:
    """Return the gate of a site where each page wants a cookie of its own."""
    had: set[str] = set()

    def shows(url: str, _: bool) -> To | None:
        if url in had:
            return None
        if "?set=" in url:
            return over(url, False)
        had.add(url)
        return over(url, False, first=True) if over_a_second_url else To(url, cookie=True)

    return shows


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_retry_that_was_left_to_the_next_run_wants_a_cookie_again(tmp_path: Path, store: Store, runs: int) -> None:
    """The cookies of a run are gone with it."""
    web = RedirectingWeb(tmp_path, store, COOKIES_ENABLED=True)
    web.pages, web.links = {HOME: "home", HOME + "1": "one"}, {HOME: [HOME + "1"]}
    web.gate = lambda url, has: None if has else To(url, cookie=True)
    web.write(start=HOME)
    for _ in range(runs):
        ended = web.open().engine
        fetch = ended.next_fetch()
        assert isinstance(fetch, FetchPage)
        ended.fetched(web._answer(fetch))
        ended.close()
        web.has_cookie = False
        web.clock.advance(60)
    web.crawl()
    assert {state.state for state in web.states().values()} == {State.DONE}


def test_the_redirect_of_a_page_that_wants_a_cookie_is_no_failure_of_its_site(tmp_path: Path, store: Store) -> None:
    web = site(tmp_path, store, 60, COOKIES_ENABLED=True, CRAWLSPACE_HOST_FETCHES=6, RETRY_TIMES=0)
    broken = HOME + "007"
    web.pages[broken] = 500
    for _ in range(2):
        pages = walls_of_pages()
        web.gate = lambda url, has, pages=pages: pages(url, has) if url != broken else None
        last = int(web.clock.now()) + (MONTH - 1) * 86_400  # it is requested when all others have wanted a cookie
        id = web.states()[broken].id
        web.store.revise([id], lambda state: Change(structs.replace(state, next_fetch=last)), now=last)  # noqa: B023
        web.crawl(after=MONTH)
    assert "007" not in web.indexed
    assert web.held() == {}


@pytest.mark.parametrize("over_a_second_url", [False, True])
def test_a_text_of_another_page_is_confirmed_though_each_run_wants_a_cookie_first(
    tmp_path: Path, store: Store, over_a_second_url: bool
) -> None:
    web = site(tmp_path, store, 60, COOKIES_ENABLED=True)
    web.pages[HOME + "007"] = web.pages[HOME + "008"]
    for _ in range(3):
        web.gate = over if over_a_second_url else walls_of_pages()
        web.crawl(after=MONTH)
    assert web.held() == {}
    assert web.states()[HOME + "007"].state is State.DONE


def test_the_second_url_of_a_wall_is_not_said_to_lead_back_when_the_cookie_helps(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    web = site(tmp_path, store, 30, COOKIES_ENABLED=True)
    for _ in range(3):
        web.gate = walls_of_pages(over_a_second_url=True)
        web.crawl(after=MONTH)
        doors = [state for url, state in web.states().items() if "?set=" in url]
        assert {state.status for state in doors} == {302}
        first = int(web.clock.now()) + 60  # they are due before their pages
        ids = [state.id for state in doors]
        web.store.revise(ids, lambda state: Change(structs.replace(state, next_fetch=first)), now=first)  # noqa: B023
    assert "691" not in caplog.text


def test_a_target_that_redirected_in_an_earlier_run_is_requested_though_it_is_not_due(tmp_path: Path, store: Store) -> None:
    web = site(tmp_path, store, 5)
    old = OTHER + "old"
    web.pages[HOME + "new"] = "new"
    web.pages[HOME], web.links[HOME] = "home again", [*web.links[HOME], old]
    web.shows = lambda url: To(HOME + "new") if url == old else None
    web.crawl(after=MONTH)
    web.pages[old] = web.pages[HOME + "001"]
    web.shows = lambda url: To(old) if path(url) == "/001" else None
    (page,) = (state for state in web.store.urls() if state.url == HOME + "001")
    now = int(web.clock.now())
    web.clock.advance(60)
    web.store.revise([page.id], lambda state: Change(structs.replace(state, next_fetch=now)), now=now)
    web.crawl()
    assert web.asked_for(old) == 1
    assert web.states()[HOME + "001"].state is State.REDIRECTED
    assert old in web.indexed


def test_a_site_that_moves_to_pages_which_all_name_one_as_canonical_is_counted_by_the_deletion_limit(
    tmp_path: Path, store: Store
) -> None:
    web = site(tmp_path, store, 60, CRAWLSPACE_MAX_DELETIONS=5, CRAWLSPACE_MAX_DELETIONS_PERCENT=1)
    old = dict(web.pages)
    web.pages |= {OTHER + url.removeprefix(HOME): text for url, text in old.items()}
    web.canonical = {url: OTHER for url in web.pages if url.startswith(OTHER) and url != OTHER}
    web.shows = lambda url: To(OTHER + url.removeprefix(HOME)) if url in old else None
    for _ in range(2):
        web.crawl(after=MONTH)
    assert len(web.indexed) >= 60 - 5 - 1


WHY = [
    # cookies kept, what the URL shows, the end of the sentence
    (False, To(HOME), "it redirects to itself"),
    (True, To(HOME, cookie=True), "it redirects to itself, and sets a cookie each time"),
    (False, To(HOME, cookie=True), "COOKIES_ENABLED = True keeps cookies"),
]


@pytest.mark.parametrize(("cookies", "shows", "end"), WHY)
def test_the_loop_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture, cookies: bool, shows: To, end: str) -> None:
    web = RedirectingWeb(tmp_path, MemoryStore(sinks=(EMBEDDED,)), COOKIES_ENABLED=cookies)
    web.shows = lambda url: shows
    web.crawl()
    assert f"{end} (691)" in caplog.text


def test_a_redirect_to_a_url_that_was_out_of_the_space_is_not_trusted_at_once(tmp_path: Path, store: Store) -> None:
    """The rules admit its target by now, so that it may have a document as soon as it is fetched."""
    web = site(tmp_path, store, 5)
    new = HOME + "new"
    web.pages |= {HOME: "home again", new: "new"}
    web.links[HOME] = [*web.links[HOME], new]
    web.crawl(after=MONTH)
    change = Change(excluded(web.states()[new], Status.EXCLUDED))
    web.store.revise([change.state.id], lambda _: change, now=int(web.clock.now()))
    web.links[HOME] = web.links[HOME][:-1]
    web.shows = lambda url: To(new) if path(url) == "/001" else None
    web.crawl(after=MONTH)
    assert "001" in web.indexed
    for _ in range(10):
        web.crawl(after=MONTH)
    assert "001" not in web.indexed, "it is as long as other temporary errors"
