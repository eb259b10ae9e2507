"""Documents that a run loses although their pages are there: between hosts, and within one; without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.crawl.run import FetchPage
from crawlspace.document import Document
from crawlspace.model import Held, State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from tests.draining import drain_all
from tests.unit.crawl.test_engine import DAY, HOME, Web
from tests.unit.crawl.test_redirects import MONTH, RedirectingWeb, To, make_due, site

OTHER = "http://b.example/"
LIMIT = 3
PAGES = 10


class TwoHosts(Web):
    """Pages on two hosts; `canonicals` are what they name."""

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder, store, CRAWLSPACE_MAX_DELETIONS=LIMIT, CRAWLSPACE_MAX_DELETIONS_PERCENT=0)
        self.canonicals: dict[str, str] = {}
        self.delays: dict[str, int] = {}
        self.write(start=f"{HOME}\n{OTHER}")
        self.theirs = [f"{HOME}folder/{number}.html" for number in range(PAGES)]
        self.copies = [f"{OTHER}{number}" for number in range(PAGES)]
        self.pages = {HOME: "home", OTHER: "other", **{url: f"text {number}" for number, url in enumerate(self.theirs)}}
        self.links = {HOME: self.theirs, OTHER: self.copies}

    def _answer(self, fetch: FetchPage) -> Outcome:
        self.clock.advance(self.delays.get(fetch.state.url, 0))
        outcome = super()._answer(fetch)
        outcome.canonical = self.canonicals.get(outcome.url)
        if outcome.kind is OutcomeKind.UNCHANGED and outcome.canonical is not None:
            outcome.kind, outcome.status = OutcomeKind.DOCUMENT, 200
            answer = self.pages[outcome.url]
            assert isinstance(answer, str)
            outcome.checksum, outcome.document = answer.ljust(16).encode(), Document(outcome.url, title=answer, text=answer)
        return outcome

    @property
    def there(self) -> set[str]:
        """What is indexed of the first host, but for its home page."""
        return set(self.sink.documents) & set(self.theirs)

    def approve(self) -> int:
        made = UrlChanges(self.store, clock=FakeClock(self.clock.now())).approve()
        drain_all(self.open().engine.deliveries.drains[0])
        return made.changed


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> TwoHosts:
    made = TwoHosts(tmp_path, local_store)
    made.crawl()
    assert made.there == set(made.theirs)
    return made


@pytest.mark.parametrize("names_itself", [False, True])
def test_copies_on_another_host_take_nothing_over(web: TwoHosts, *, names_itself: bool) -> None:
    web.pages |= {copy: f"text {number}" for number, copy in enumerate(web.copies)}
    web.canonicals = {copy: copy for copy in web.copies} if names_itself else {}
    for _ in range(3):
        web.crawl(after=30)
        assert (web.there, web.held()) == (set(web.theirs), {})
        assert not set(web.sink.documents) & set(web.copies)


def test_pages_that_name_another_host_give_way_up_to_the_limit(web: TwoHosts) -> None:
    """It may be a slip in a template; so a person is asked, and until then the documents stay."""
    web.pages |= {copy: f"text {number}" for number, copy in enumerate(web.copies)}
    web.crawl(after=30)
    web.canonicals = dict(zip(web.theirs, web.copies, strict=True))
    web.crawl(after=30)
    assert (len(web.there), list(web.held().values())) == (PAGES - LIMIT, [Held.MANY] * (PAGES - LIMIT))
    assert len(set(web.sink.documents) & set(web.copies)) == LIMIT
    web.crawl(after=30)
    assert len(web.there) == PAGES - LIMIT, "what is held does not go bit by bit with the next runs"
    assert (web.approve(), web.there) == (PAGES - LIMIT, set())
    web.crawl(after=30)
    assert (web.there, set(web.copies) - set(web.sink.documents)) == (set(), set())


def test_a_log_in_page_at_every_address(web: TwoHosts) -> None:
    """A log-in page with status 200 at each address, and the pages again later."""
    before = dict(web.pages)
    web.pages |= dict.fromkeys(web.theirs, "please log in")
    engine = web.crawl(after=30)
    assert len(web.held()) == PAGES - LIMIT - 1, "one stands for those that have the text"
    assert (len(web.there), engine.deleted) == (PAGES - LIMIT, LIMIT)
    web.crawl(after=30)
    assert len(web.held()) == PAGES - LIMIT - 1
    web.pages = before
    web.crawl(after=30)
    assert (web.there, web.held()) == (set(web.theirs), {})


def test_a_canonical_link_to_the_front_page_everywhere(web: TwoHosts) -> None:
    web.canonicals = dict.fromkeys(web.theirs, HOME)
    web.crawl(after=30)
    assert (len(web.there), len(web.held())) == (PAGES - LIMIT, PAGES - LIMIT)
    web.canonicals = {}
    for url in web.theirs:
        web.pages[url] = f"new {web.pages[url]}"
    web.crawl(after=30)
    assert (web.there, web.held()) == (set(web.theirs), {})


def test_equal_pages_that_change_together_lose_nothing(web: TwoHosts) -> None:
    """The index has one document of both before and after, also where the duplicates are fetched first."""
    copies = [f"{HOME}folder/print/{number}.html" for number in range(PAGES)]
    web.links[HOME] = [*web.theirs, *copies]
    web.pages |= {HOME: "home, with more links", **{copy: f"text {number}" for number, copy in enumerate(copies)}}
    web.crawl(after=30)
    web.crawl(after=30)
    assert (web.there, web.held()) == (set(web.theirs), {})
    pages = {url: f"new {number}" for urls in (web.theirs, copies) for number, url in enumerate(urls)}
    web.pages |= pages
    web.clock.advance(30 * DAY)
    first = int(web.clock.now()) - 40 * DAY
    ids = [web.of(copy).id for copy in copies]
    web.store.revise(ids, lambda state: Change(structs.replace(state, next_fetch=first)), now=int(web.clock.now()))
    engine = web.crawl()
    urls = [url for url in web.urls() if url in pages]
    assert urls[:PAGES] == copies, "the duplicates come first"
    assert len(urls) == 2 * PAGES, "and nothing is doubted"
    assert (web.there, web.held()) == (set(web.theirs), {})
    assert not set(web.sink.documents) & set(copies)
    assert {document.text for document in web.sink.documents.values()} == {"home, with more links", "other", *pages.values()}
    assert engine.withheld == 0


def test_a_page_loses_nothing_to_an_equal_one_that_names_another_as_canonical(web: TwoHosts) -> None:
    copies = [f"{HOME}folder/print/{number}.html" for number in range(PAGES)]
    web.links[HOME] = [*web.theirs, *copies]
    web.pages |= {HOME: "home, with more links", **{copy: f"text {number}" for number, copy in enumerate(copies)}}
    web.canonicals = dict.fromkeys(copies, HOME)
    web.crawl(after=30)
    web.crawl(after=30)
    web.pages |= {url: f"new {number}" for urls in (web.theirs, copies) for number, url in enumerate(urls)}
    web.clock.advance(30 * DAY)
    now = int(web.clock.now())
    urls = [url for pair in zip(copies, web.theirs, strict=True) for url in pair]  # in one transaction
    due = {web.of(url).id: now - 40 * DAY + at for at, url in enumerate(urls)}
    web.store.revise(due, lambda state: Change(structs.replace(state, next_fetch=due[state.id])), now=now)
    engine = web.crawl()
    assert [url for url in web.urls() if url in urls] == urls
    assert (web.there, web.held(), engine.withheld) == (set(web.theirs), {}, 0)
    assert {web.sink.documents[url].text for url in web.theirs} == {f"new {number}" for number in range(PAGES)}


@pytest.mark.parametrize("is_missing", [False, True])
def test_other_pages_leave_up_to_the_limit_where_three_equal_pages_change_together(web: TwoHosts, *, is_missing: bool) -> None:
    """Each of the three is recorded in a transaction of its own, the last one together with a page that leaves."""
    changing, others = web.theirs[:4], web.theirs[4:]
    copies = [[f"{HOME}folder/{name}/{number}.html" for number in range(4)] for name in ("print", "text")]
    equal = [*zip(changing, *copies, strict=True)]
    web.links[HOME] = [*web.theirs, *copies[0], *copies[1]]
    web.pages |= {HOME: "home, with more links", **{url: f"text {number}" for number, urls in enumerate(equal) for url in urls}}
    web.crawl(after=30)
    web.crawl(after=30)
    assert web.there == set(web.theirs)
    web.pages |= {url: f"new {number}" for number, urls in enumerate(equal) for url in urls}
    web.pages |= dict.fromkeys(others, "please log in")
    for url in others if is_missing else ():
        del web.pages[url]
    web.clock.advance(30 * DAY)
    web.delays = dict.fromkeys([*copies[0], *changing, *copies[1]], 60)
    now = int(web.clock.now())
    steps = [*copies[0], *changing, *(url for pair in zip(copies[1], others, strict=False) for url in pair), *others[4:]]
    due = {web.of(url).id: now - 40 * DAY + step for step, url in enumerate(steps)}
    web.store.revise(due, lambda state: Change(structs.replace(state, next_fetch=due[state.id])), now=now)
    web.crawl()
    assert [url for url in web.urls() if url in steps] == steps
    texts = [document.text for document in web.sink.documents.values()]
    assert sorted(text for text in texts if text.startswith("new")) == [f"new {number}" for number in range(4)]
    assert set(changing) <= web.there
    assert len(web.there & set(others)) == len(others) - LIMIT


def test_a_text_that_the_index_had_before_is_not_that_of_pages_that_change_together(web: TwoHosts) -> None:
    copies = [f"{HOME}folder/print/{number}.html" for number in range(PAGES)]
    web.links[HOME] = [*web.theirs, *copies]
    web.pages |= {HOME: "home, with more links", **{copy: f"text {number}" for number, copy in enumerate(copies)}}
    web.crawl(after=30)
    web.pages |= dict.fromkeys([*web.theirs, *copies], "please log in")
    web.crawl(after=30)
    assert len(web.there) >= PAGES - LIMIT


def test_documents_displaced_by_others_count_too(web: TwoHosts) -> None:
    """Pages of one host that appear again under a better address take its place; what is deleted beside that is held the sooner."""
    shorter = [f"{HOME}{number}" for number in range(2)]
    web.links[HOME] = [*web.theirs, *shorter]
    web.pages |= {HOME: "home, with more links", **{url: f"text {number}" for number, url in enumerate(shorter)}}
    web.crawl(after=30)
    assert len(web.there) == PAGES - 2
    for url in web.theirs[2:6]:
        web.pages[url] = "text 9"
    engine = web.crawl(after=30)
    assert (engine.deleted, engine.withheld, len(web.there)) == (LIMIT, 1, PAGES - 2 - LIMIT)


def test_changed_pages_are_not_held_where_nothing_is_lost(web: TwoHosts) -> None:
    """However many there are."""
    for url in web.theirs:
        web.pages[url] = f"new {web.pages[url]}"
    engine = web.crawl(after=30)
    assert (web.there, web.held(), engine.deleted) == (set(web.theirs), {}, 0)
    assert {web.sink.documents[url].text for url in web.theirs} == {f"new text {number}" for number in range(PAGES)}


@pytest.mark.parametrize("missing_first", [False, True])
def test_missing_pages_and_lost_documents_of_one_transaction_count_together(web: TwoHosts, *, missing_first: bool) -> None:
    lost, missing = web.theirs[:4], web.theirs[4:]
    if missing_first:
        lost, missing = web.theirs[6:], web.theirs[:6]
    web.pages |= dict.fromkeys(lost, "please log in")
    for url in missing:
        del web.pages[url]
    engine = web.crawl(after=30)
    assert (engine.deleted, len(web.there)) == (LIMIT, PAGES - LIMIT)


def test_missing_pages_leave_up_to_the_limit_where_pages_only_changed(web: TwoHosts) -> None:
    web.pages |= {url: f"new {web.pages[url]}" for url in web.theirs[:6]}
    for url in web.theirs[6:8]:
        del web.pages[url]
    engine = web.crawl(after=30)
    assert (engine.deleted, web.held()) == (2, {})


@pytest.mark.parametrize("fails", [False, True], ids=["well", "failed in between"])
def test_the_links_of_a_page_are_read_while_a_person_is_to_decide_on_its_document(
    tmp_path: Path, store: Store, *, fails: bool
) -> None:
    """Its text is believed as that of a page whose document has left, so that its site is crawled as ever."""
    web = site(tmp_path, store, 60, CRAWLSPACE_MAX_DELETIONS=0, CRAWLSPACE_MAX_DELETIONS_PERCENT=0)
    page, new = HOME + "003", HOME + "new"
    web.pages[page] = web.pages[HOME + "004"]
    for _ in range(2):
        web.crawl(after=30)
    assert web.held() == {"003": Held.MANY}
    if fails:
        web.shows = lambda url: 500 if url == page else None
        web.crawl(after=30)
        web.shows = lambda url: None
        web.crawl(after=30)
    web.pages[new], web.links[page] = "a new page", [new]
    for _ in range(2):
        web.crawl(after=30)
    assert "new" in web.indexed
    assert (web.of(page).state, web.held(), web.asked_for(page)) == (State.DONE, {"003": Held.MANY}, 1)
    assert {document.title for document in web.sink.documents.values()} >= {"003", "004"}


@pytest.mark.parametrize(("first", "fails"), [("target", False), ("page", False), ("target", True)])
def test_a_page_moves_to_one_that_has_its_text_now_though_that_one_was_lost_to_it_beyond_the_deletion_limit(
    tmp_path: Path, store: Store, *, first: str, fails: bool
) -> None:
    """The text is not missing until the target is due: that is a document again as soon as the page has left.

    `fails`: the target does at first, so that the page waits for it.
    """
    web = site(tmp_path, store, 5, CRAWLSPACE_MAX_DELETIONS=0, CRAWLSPACE_MAX_DELETIONS_PERCENT=0)
    page, target = HOME + "003", HOME + "002"
    web.pages[target] = web.pages[page]

    def shown(url: str) -> To | int | None:
        if url == page:
            web.clock.advance(3)  # the retry of the target comes first
            return To(target)
        return 500 if url == target and fails and web.asked_for(target) == 1 else None

    web.shows = shown
    make_due(web, first=target if first == "target" else page)
    web.crawl()
    assert page not in web.sink.documents
    assert (web.sink.documents[target].text, web.held()) == ("003", {})
    assert (web.asked_for(page), web.of(page).state, web.asked_for(target)) == (1, State.REDIRECTED, 2 + fails)
    web.shows = lambda url: To(target) if url == page else None
    web.crawl(after=MONTH)
    assert (len(web.sink.documents), web.held(), web.asked_for(target)) == (4, {}, 1)


def test_a_target_that_was_lost_to_another_page_is_not_requested_again(tmp_path: Path, store: Store) -> None:
    web = site(tmp_path, store, 5, CRAWLSPACE_MAX_DELETIONS=0, CRAWLSPACE_MAX_DELETIONS_PERCENT=0)
    page, target = HOME + "002", HOME + "003"
    web.pages[target] = web.pages[HOME + "001"]
    web.shows = lambda url: To(target) if url == page else None
    make_due(web, first=target)
    web.crawl()
    assert (web.held(), web.asked_for(target)) == ({"003": Held.MANY}, 1)


def with_duplicates(folder: Path, store: Store) -> RedirectingWeb:
    """A site of a home page and five pages, each at two URLs of which the longer one is fetched later; one deletion is allowed a run."""
    web = RedirectingWeb(folder, store, CRAWLSPACE_MAX_DELETIONS=1, CRAWLSPACE_MAX_DELETIONS_PERCENT=0)
    web.write(start=HOME, rules="forbid domain elsewhere.example\nallow domain *")
    names = [f"{HOME}{number}" for number in range(5)]
    web.pages = {HOME: "home", **{f"{name}{end}": name[-1] for end in ("", "-longer") for name in names}}
    web.links = {HOME: [url for url in web.pages if url != HOME]}
    web.crawl()
    assert web.indexed == {"", *"01234"}
    return web


def test_pages_that_move_to_duplicates_that_leave_in_the_same_run_are_counted_by_the_deletion_limit(
    tmp_path: Path, store: Store
) -> None:
    web = with_duplicates(tmp_path, store)
    outside = To("http://elsewhere.example/")
    web.shows = lambda url: None if url == HOME else outside if url.endswith("-longer") else To(f"{url}-longer")
    for left in (5, 4, 3):
        web.crawl(after=MONTH)
        assert len(web.indexed) >= left
        assert web.indexed <= {"", *"01234"}


def test_pages_that_move_to_their_duplicates_are_replaced_in_the_same_run(tmp_path: Path, store: Store) -> None:
    web = with_duplicates(tmp_path, store)
    web.shows = lambda url: None if url == HOME or url.endswith("-longer") else To(f"{url}-longer")
    web.crawl(after=MONTH)
    assert web.indexed == {"", *(f"{number}-longer" for number in range(5))}
    assert web.held() == {}
