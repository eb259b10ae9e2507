"""Traps: which patterns of URLs are named, with which rule, and which are not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b

import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.findings import RunFindings, kept_findings, kept_routes, kept_traps
from crawlspace.crawl.traps import CHAIN, PATTERNS, WINDOW, Trap, TrapWatch, patterns_of, stopping_rule, without_dates
from crawlspace.decision import Reason
from crawlspace.document import Document
from crawlspace.model import State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.url_options import NO_OPTIONS, UrlFolding
from crawlspace.urls import Url
from tests.contract.conftest import NOW, Known
from tests.contract.memory.store import MemoryStore

HOST = "http://a.example"
MONTHS = "January February March April May June July August September October November December".split()
Pages = Iterator[tuple[str, str, int]]
"""Paths, texts and link depths."""


def calendar(path: str) -> Pages:
    for number in range(300):
        month = f"{MONTHS[number % 12]} {2026 + number // 12}"
        yield (
            path.format(year=2026 + number // 12, month=number % 12 + 1),
            f"Events. {month}. Mo Tu We 1 2 3 4. No events. Next month",
            number,
        )


def same(path: str, *, depth: int = 1) -> Pages:
    for number in range(300):
        yield path.format(number), "Welcome, here is all we have", depth


def stacked() -> Pages:
    for number in range(300):
        yield f"/help/{'faq/' * (number % 2 + 2)}{'x' * number}/more/", "The same help page", number


def ids_all_over() -> Pages:
    for number in range(2_000):
        yield f"/{'abcdefgh'[number % 8]}?sid={number * 7919}f", f"page {'abcdefgh'[number % 8]}", 1 + number % 3


def ids_in_all_paths() -> Pages:
    for number in range(2_000):
        yield f"/{'abcdefgh'[number % 8]}/x;zid={word(number * 7919)}", f"page {'abcdefgh'[number % 8]}", 1 + number % 3


def tickets() -> Pages:
    for number in range(300):
        yield f"/(Z({word(number)}))/start", "Welcome, here is all we have", 1


def archive() -> Pages:
    for number in range(1_000):
        yield f"/news/page/{number}", f"Older news: {word(number)} {word(number + 1)} and {word(number + 2)}", number


def shop() -> Pages:
    for number in range(1_000):
        yield f"/product.php?id={number}", f"Our shop. Menu, cart, terms. {word(number)} for {number % 97} EUR", 3


def lists_in_every_order() -> Pages:
    for number in range(1_000):
        yield f"/list?page={number // 2}&sort={'ud'[number % 2]}", f"{word(number // 2)} and more", 2


def tables_of_numbers() -> Pages:
    for number in range(1_000):
        yield f"/stations/{number}", f"Station {number}. Rain {number * 3} mm, wind {number * 5} km/h", 3


def links_between_articles() -> Pages:
    for number in range(500):
        yield f"/articles/{number}", f"{word(number)} {word(number * 3)} is told here, on {number % 28 + 1} March", number


def in_languages() -> Pages:
    for number in range(600):
        yield f"/{'de' if number % 2 else 'en'}/doc/{number // 2}", f"text {word(number // 2)}", 2


def word(number: int) -> str:
    """A word without digits for each number."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


# what, its pages -> pattern and what would stop it; None: it is no trap
TABLE = [
    ("a calendar, page by page", calendar("/calendar/{year}/{month}"), "/calendar/#/#", "forbid prefix http://a.example/calendar/"),
    ("a calendar by parameters", calendar("/cal.php?year={year}&month={month}"), "/cal.php?month=*&year=*", "forbid prefix http://a.example/cal.php?"),
    ("session ids", same("/start?sid={}x"), "/start?sid=*", "CRAWLSPACE_URL_DROP_PARAMETERS = ['sid']"),
    ("session ids on many pages", ids_all_over(), "/…?sid=*", "CRAWLSPACE_URL_DROP_PARAMETERS = ['sid']"),
    ("session ids in the path", same("/start;zid={}x"), "/start;zid=*", "'zid' added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"),
    ("session ids in many paths", ids_in_all_paths(), "/…;zid=*", "'zid' added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"),
    ("session ids in segments", tickets(), "/(*)/start", "'(S())' added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"),
    ("ids in the path", same("/s/1a2b3c4d5e6f7a8b{}c/home"), "/s/*/home", "forbid prefix http://a.example/s/"),
    ("ids at the root", same("/{}-start"), "/#-start", "forbid prefix http://a.example/*-start"),
    ("empty pages", same("/tag/{}"), "/tag/#", "forbid prefix http://a.example/tag/"),
    ("a paginated archive", archive(), None, ""),
    ("a shop", shop(), None, ""),
    ("lists in two orders", lists_in_every_order(), None, ""),
    ("pages with tables of numbers, found through a list", tables_of_numbers(), None, ""),
    ("articles that link to the next one", links_between_articles(), None, ""),
    ("the same texts in two languages", in_languages(), None, ""),
]  # fmt: skip


def fetched(path: str, text: str, depth: int, **more: object) -> tuple[UrlState, Outcome]:
    state = UrlState(1, 1, HOST + path, "a.example:80", depth=depth)
    document = Document(state.url, title="Title", text=text)
    checksum = blake2b(text.encode(), digest_size=16).digest()
    outcome = Outcome(1, state.url, OutcomeKind.DOCUMENT, 200, document=document, checksum=checksum, **more)  # type: ignore[arg-type]
    return state, outcome


def found(pages: Pages) -> list[Trap]:
    watch = TrapWatch()
    return [trap for page in pages if (trap := watch.page(*fetched(*page))) is not None]


@pytest.mark.parametrize(("what", "pages", "pattern", "stopped_by"), TABLE, ids=[row[0] for row in TABLE])
def test_which_are_named(what: str, pages: Pages, pattern: str | None, stopped_by: str) -> None:
    traps = found(pages)
    if pattern is None:
        assert traps == []
    else:
        assert [(trap.pattern.removeprefix(HOST), trap.stopped_by) for trap in traps][:1] == [(pattern, stopped_by)]
        assert len({trap.pattern for trap in traps}) == len(traps)
        assert all(trap.example.startswith(HOST) and trap.pages in (WINDOW, WINDOW + 1) for trap in traps)


def test_relative_links_that_stack_up() -> None:
    pages = [(f"/help/{'faq/more/' * number}page.html", "The same help page", number) for number in range(2, 300)]
    trap = found(iter(pages))[0]
    assert trap.pattern == f"{HOST}/help/faq/more/page.html/…"
    assert trap.stopped_by.startswith("CRAWLSPACE_MAX_REPEATED_SEGMENTS = ")


PATTERNS_OF = [
    ("/", ["/"]),
    ("/a/b.html", ["/a/b.html"]),
    ("/2026/11/27/x-12.html", ["/#/#/#/x-#.html"]),
    ("/a/b/a/b/c", ["/a/b/c/…"]),
    ("/s/1a2b3c4d5e6f7a8b9c/x", ["/s/*/x"]),
    ("/x?b=2&a=1&b=3", ["/x?a=*&b=*", "/…?a=*&b=*"]),
    ("/x?", ["/x"]),
    ("/a//b", ["/a//b"]),
    ("/a1;zid=x2/b;2;c=?d=1", ["/a#;zid=*/b;#;c=*?d=*", "/…;zid=*;c=*?d=*"]),
    ("/(A(x)B(2))/(c)/d", ["/(*)/(c)/d", "/…/(*)"]),
]


@pytest.mark.parametrize(("path", "patterns"), PATTERNS_OF)
def test_patterns(path: str, patterns: list[str]) -> None:
    assert [pattern.removeprefix(HOST) for pattern in patterns_of(HOST + path)][: len(patterns)] == patterns or path.startswith(
        "/2026"
    )


RULES = [
    ("/a/1", "/a/2", "forbid prefix http://a.example/a/"),
    ("/a/2026/1", "/a/2026/2", "forbid prefix http://a.example/a/"),
    ("/1", "/2", "forbid prefix http://a.example/*"),
    ("/x?a=1&sid=1", "/x?a=1&sid=2", "CRAWLSPACE_URL_DROP_PARAMETERS = ['sid']"),
    ("/x?month=1", "/x?month=2", "forbid prefix http://a.example/x?"),
    ("/x;zid=a", "/x;zid=b", "'zid' added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"),
    ("/x;v=1;zid=a?y=1", "/z;v=1;zid=b?y=1", "'zid' added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"),
    ("/x;v=1/1", "/x;v=1/2", "forbid prefix http://a.example/x;v=*/*"),
    ("/x;page=1", "/x;page=2", "forbid prefix http://a.example/x;page=*"),
    ("/(Z(a))/x", "/(Z(b))/x", "'(S())' added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"),
    ("/a/a/x", "/a/a/a/x", "CRAWLSPACE_MAX_REPEATED_SEGMENTS = 2"),
]


@pytest.mark.parametrize(("first", "last", "rule"), RULES)
def test_what_stops_them(first: str, last: str, rule: str) -> None:
    assert stopping_rule(HOST + first, HOST + last) == rule


def test_numbers_and_dates_count_for_nothing_in_a_chain_only() -> None:
    assert without_dates("Events on 3rd March 2026, Mo 12:00") == "events on"
    near = [(f"/cal/{number}", f"nothing on {number} May", CHAIN - 1) for number in range(500)]
    assert found(iter([("/cal/0", "start", 0), *near])) == []


def test_pages_that_need_a_browser_and_known_ones_are_not_counted() -> None:
    store = MemoryStore(sinks=())
    run = RunFindings(store, FakeClock(NOW))
    for path, text, depth in same("/app/{}"):
        run.document(*fetched(path, text, depth, left_out={Reason.NEEDS_BROWSER: 1}))
        state, outcome = fetched(path, text, depth)
        state.state = State.DONE
        run.document(state, outcome)
    run.keep(is_last=True)
    assert kept_findings(store).traps == {}


def test_memory_is_bounded() -> None:
    watch = TrapWatch()
    for number in range(3 * PATTERNS):
        watch.page(*fetched(f"/{word(number)}/", word(number), 1))
    assert len(watch._patterns.young) + len(watch._patterns._old) <= PATTERNS
    trap = [watch.page(*fetched(f"/{'y' * 5_000}{number}", "same", 1)) for number in range(2 * WINDOW)]
    assert [len(one.pattern) < 300 for one in trap if one is not None] == [True]


def test_a_trap_is_shown_until_the_rules_exclude_it(caplog: pytest.LogCaptureFixture) -> None:
    known = Known(MemoryStore(sinks=()))
    run = RunFindings(known.store, FakeClock(NOW))
    for path, text, depth in same("/tag/{}"):
        run.document(*fetched(path, text, depth))
    assert len(caplog.messages) == 1
    sentence = caplog.messages[0]
    assert sentence.startswith(f"{HOST}/tag/# may be a trap: ")
    assert "this stops it: forbid prefix http://a.example/tag/" in sentence
    run.keep(is_last=True)
    assert kept_traps(known.store) == [], "its example is not known"
    example = next(iter(kept_findings(known.store).traps.values())).example
    known.discover(example)
    known.record(known.page(example, "one"))
    assert [trap.example for trap in kept_traps(known.store)] == [example]
    known.record(known.change(example, state=State.EXCLUDED, status=760, checksum=None))
    assert kept_traps(known.store) == []


ROUTES = [
    (["#/about", "#/about", "/#/news"], 2),
    (["#!/about", "index.html#!news"], 2),
    (["#top", "#", "#!", "#/", "#!/", "/a/b", "/x?y=#z"], 0),
    (["http://b.example/#/about", "http://user:secret@a.example/#/x"], 0),
    ([f"#/{number}" for number in range(5_000)], 1_000),
]


KEPT = [
    # routes that are not followed in one run after the other, of the site itself; None: all are followed; what is shown then
    ([2, 3, 1], 3),
    ([2, None], 0),
    ([None, 2], 2),
    ([2, None, 1], 1),
]


@pytest.mark.parametrize(("runs", "shown"), KEPT)
def test_routes_that_are_followed_are_not_shown(runs: list[int | None], shown: int) -> None:
    store = MemoryStore(sinks=())
    for number in runs:
        follows = partial(_is_followed, is_followed=number is None)
        folding = UrlFolding(lambda *_: NO_OPTIONS, of_hosts="", of_the_rest="", follows_routes=follows)
        run = RunFindings(store, FakeClock(NOW), folding=folding)
        run.document(*fetched("/", "home", 0, links=[f"#/{route}" for route in range(number or 5)]))
        run.keep(is_last=True)
    assert {site: one.count for site, one in kept_routes(store).items()} == ({"a.example:80": shown} if shown else {})


def _is_followed(_: Url, *, is_followed: bool) -> bool:
    return is_followed


def test_routes_are_no_trap() -> None:
    run = RunFindings(MemoryStore(sinks=()), FakeClock(NOW))
    for number in range(300):
        run.document(*fetched(f"/#/tag/{number}", "Welcome, here is all we have", 1))
    assert run.found.traps == {}


@pytest.mark.parametrize(("links", "count"), ROUTES)
def test_routes_behind_a_hash_are_counted(links: list[str], count: int) -> None:
    store = MemoryStore(sinks=())
    run = RunFindings(store, FakeClock(NOW))
    for _ in range(2):
        run.document(*fetched("/", "home", 0, links=links))
    run.keep(is_last=True)
    routes = kept_findings(store).routes
    assert (routes["a.example:80"].count if routes else 0) == count
    RunFindings(store, FakeClock(NOW)).keep(is_last=True)
    assert kept_findings(store).routes == routes
