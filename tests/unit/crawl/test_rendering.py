"""Which pages of a crawl are rendered, what is kept of it, and pages that could not be rendered (617)."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rendering import RENDERING, Rendering, learned_rendering
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Render
from crawlspace.errors import SettingError, StoreAway
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.error_policy import read_error_rules
from crawlspace.state.render_learning import MAX_GROUPS, Needs, RenderDecision, Rendered
from crawlspace.state.store import MetaStore
from crawlspace.status import Status
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.config.conftest import settings
from tests.unit.crawl.test_engine import DAY, crawl, engine

AUTO: dict[str, object] = {"CRAWLSPACE_RENDER": "auto"}
GAINED, IN_VAIN = Rendered(0, 500, 0, 20, 1.5, 4), Rendered(300, 300, 20, 20, 0.5, 2)
SITE = "https://a.example"


def rendering(
    folder: Path, store: MetaStore, own: dict[str, object], *, clock: FakeClock | None = None, rules: str = ""
) -> Rendering | None:
    (folder / "demo").mkdir(exist_ok=True)
    (folder / "demo" / "start_urls.txt").write_text("https://a.example/\n")
    if rules:
        (folder / "demo" / "rules.xml").write_text(f"<Rules>{rules}</Rules>")
    collection = load_collection("demo", settings(folder, **own))
    return Rendering.of(collection, build_space(collection), store, clock=clock or FakeClock())


def auto(folder: Path, store: MetaStore, clock: FakeClock | None = None) -> Rendering:
    found = rendering(folder, store, AUTO, clock=clock)
    assert found is not None
    return found


def test_there_is_none_where_nothing_is_rendered(tmp_path: Path) -> None:
    assert rendering(tmp_path, MemoryStore(), {}) is None


SITES: dict[str, object] = {"CRAWLSPACE_SITES": {"app.example": {"render": "always"}, "old.example": {"render": "never"}}}
RULES = '<Rule><Path val="/r/"/><Render/></Rule><Rule><Path val="/r/auto"/><Render mode="auto"/></Rule>'
MODES: list[tuple[dict[str, object], str, str, Render]] = [
    # settings, rules, URL, mode
    (SITES, "", "https://app.example/x", Render.ALWAYS),
    (SITES, "", "https://a.example/x", Render.NEVER),
    ({**SITES, **AUTO}, "", "https://a.example/x", Render.AUTO),
    ({**SITES, **AUTO}, "", "https://old.example/x", Render.NEVER),
    (SITES, RULES, "https://old.example/r/x", Render.ALWAYS),
    (SITES, RULES, "https://app.example/r/auto/x", Render.AUTO),
    (AUTO, '<Rule><Path val="/"/><Render mode="never"/></Rule>', "https://a.example/x", Render.NEVER),
]


@pytest.mark.parametrize(("own", "rules", "url", "mode"), MODES)
def test_modes(tmp_path: Path, own: dict[str, object], rules: str, url: str, mode: Render) -> None:
    found = rendering(tmp_path, MemoryStore(), own, rules=rules)
    assert found is not None
    assert found.mode(url) is mode
    turns = {
        Render.NEVER: (RenderDecision.NO, RenderDecision.NO),
        Render.ALWAYS: (RenderDecision.YES, RenderDecision.YES),
        Render.AUTO: (RenderDecision.YES, RenderDecision.NO),
    }
    assert tuple(found.decide(url, needs_browser=shell) for shell in (True, False)) == turns[mode]
    assert found.is_conditional(url) is (mode is not Render.ALWAYS)


def test_pages_are_requested_unconditionally_where_scripts_bring_their_content(tmp_path: Path) -> None:
    found = auto(tmp_path, MemoryStore())
    seen = [found.is_conditional(f"{SITE}/app/x")]
    for url, what in ((f"{SITE}/app/1", IN_VAIN), (f"{SITE}/app/2", GAINED)):
        assert found.decide(url, needs_browser=True) is RenderDecision.YES
        found.rendered(url, what)
        seen.append(found.is_conditional(f"{SITE}/app/x"))
    assert seen == [True, True, False]
    assert found.is_conditional(f"{SITE}/other/x")


def learn(found: Rendering, folder: str, number: int = 1, *, what: Rendered = GAINED) -> None:
    for place in range(number):
        url = f"{SITE}/{folder}/{place}"
        if found.decide(url, needs_browser=True) is not RenderDecision.NO:
            found.rendered(url, what)


def test_what_was_learned_is_there_in_the_next_run(tmp_path: Path) -> None:
    store = MemoryStore()
    one = auto(tmp_path, store)
    learn(one, "empty", 9, what=IN_VAIN)
    learn(one, "app", 2)
    one.failed(f"{SITE}/app/9", "time-out")
    one.keep()
    two = auto(tmp_path, store)
    assert two.decide(f"{SITE}/empty/x", needs_browser=True) is RenderDecision.NO
    assert not two.is_conditional(f"{SITE}/app/x")
    assert two.counts.pages == 0
    kept = learned_rendering(store)
    assert {name: group.needs for name, group in kept.groups.items()} == {
        "a.example:443/empty/": Needs.NONE,
        "a.example:443/app/": Needs.SHELLS,
    }
    assert kept.needing == 1
    assert (kept.counts.pages, kept.counts.failed, kept.counts.gained, kept.counts.requests, kept.counts.seconds) == (
        7,
        1,
        2,
        18,
        5.5,
    )


def test_it_is_written_when_it_decides_something_else_rarely(tmp_path: Path) -> None:
    store, clock = _Counting(), FakeClock()
    found = auto(tmp_path, store, clock)
    found.keep()
    learn(found, "app")
    found.keep()
    assert store.writes == 1  # the first that needs a browser
    for _ in range(100):
        learn(found, "app")
        found.keep()
    assert store.writes == 1
    clock.advance(301)
    found.keep()
    assert store.writes == 2
    found.keep(is_last=True)
    assert store.writes == 2
    learn(found, "app")
    found.keep(is_last=True)
    assert store.writes == 3


def test_two_workers_keep_what_both_have_learned(tmp_path: Path) -> None:
    store = MemoryStore()
    one, two = auto(tmp_path, store), auto(tmp_path, store)
    learn(one, "app", 3)
    learn(two, "shop", 2)
    learn(two, "app", 1)
    one.keep(is_last=True)
    two.keep(is_last=True)
    one.keep(is_last=True)
    kept = learned_rendering(store)
    assert {name: group.rendered for name, group in kept.groups.items()} == {"a.example:443/app/": 3, "a.example:443/shop/": 2}
    assert kept.counts.pages == 6
    assert not two.is_conditional(f"{SITE}/shop/x")


def test_a_store_that_is_away_costs_nothing(tmp_path: Path) -> None:
    store = _Away()
    found = auto(tmp_path, store)
    learn(found, "app")
    store.is_away = True
    found.keep()
    store.is_away = False
    found.keep()
    assert learned_rendering(store).counts.pages == 1


@pytest.mark.parametrize("written", ["", "{", "[]", '{"groups": {"x": [9]}}', '{"groups": 3}'])
def test_what_cannot_be_read_is_learned_again(tmp_path: Path, written: str) -> None:
    store = MemoryStore()
    store.set_meta(RENDERING, written)
    found = auto(tmp_path, store)
    learn(found, "app")
    found.keep()
    assert learned_rendering(store).needing == 1


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    store = MemoryStore()
    found = auto(tmp_path, store)
    names = ["".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in range(MAX_GROUPS + 10)]
    for name in [*names[:MAX_GROUPS], names[0], *names[MAX_GROUPS:]]:
        learn(found, name)
    for number in range(150):
        url = f"https://s{number}.example/"
        found.rendered(url, Rendered(1, 1, 1, 1, 1.0, 1, {f"cdn{host}.example" * 20: "x" * 999 for host in range(50)}))
    found.keep()
    kept = learned_rendering(store)
    assert len(kept.groups) == MAX_GROUPS
    assert [f"a.example:443/{name}/" in kept.groups for name in (names[0], names[1], names[-1])] == [True, False, True]
    assert len(kept.refused) == 100
    assert len(kept.refused["s149.example:443"]) == 20
    assert len(store.get_meta(RENDERING) or "") < 2_000_000


def test_what_was_refused_is_kept_by_site(tmp_path: Path) -> None:
    store = MemoryStore()
    found = auto(tmp_path, store)
    found.rendered(f"{SITE}/1", Rendered(1, 1, 1, 1, 1.0, 1, {"cdn.example": "domain", "api.example": "robots"}))
    found.rendered(f"{SITE}/2", Rendered(1, 1, 1, 1, 1.0, 1, {"cdn.example": "address"}))
    found.keep()
    assert learned_rendering(store).refused == {"a.example:443": {"cdn.example": "address", "api.example": "robots"}}


@pytest.mark.parametrize(("render", "asks_whole"), [("never", False), ("auto", False), ("always", True)])
def test_a_crawl_asks_for_pages_whole_where_scripts_bring_their_content(tmp_path: Path, render: str, asks_whole: bool) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    urls = ("http://a.example/1", "http://a.example/2")
    own = {"CRAWLSPACE_SITES": {"a.example": {"render": render}}}
    crawl(engine(tmp_path, store, clock, **own), dict.fromkeys(urls, "a"))
    for url in urls:
        state = store.get(url)
        assert state is not None
        state.etag = '"1"'
        store.record([Change(state)], now=int(clock.now()))
    clock.advance(40 * DAY)
    again = engine(tmp_path, store, clock, **own)
    fetch = again.next_fetch()
    assert isinstance(fetch, FetchPage)
    assert fetch.conditional is not asks_whole


def test_a_crawl_keeps_what_was_learned_when_it_ends(tmp_path: Path) -> None:
    store = MemoryStore(sinks=(EMBEDDED,))
    crawled = engine(tmp_path, store, FakeClock(), **AUTO)
    assert crawled.rendering is not None
    crawled.rendering.failed("http://a.example/1", "time-out")
    crawled.close()
    assert learned_rendering(store).counts.failed == 1
    assert engine(tmp_path, store, FakeClock()).rendering is None


PAGES = 10_000
LAYOUTS: dict[str, Callable[[int, random.Random], str]] = {
    "one folder": lambda number, _: f"/{number}",
    "slugs with a slash": lambda number, _: f"/post-{number}/",
    "folders of forty": lambda number, _: f"/section{chr(97 + number // 40 % 26)}{chr(97 + number // 1040)}/page-{number}",
    "a folder a page": lambda number, _: f"/item/{number}/view",
    "mixed": lambda number, drawn: f"/{drawn.choice('abcdefgh')}/{drawn.choice('stuvwxyz')}/{number}",
}


@pytest.mark.parametrize("noise", [0.0, 0.02], ids=["clear", "with noise"])
@pytest.mark.parametrize("layout", some(LAYOUTS, 2))
def test_of_a_site_with_a_tenth_of_script_pages_few_others_are_rendered(tmp_path: Path, layout: str, noise: float) -> None:
    """`noise`: the share of complete pages that gain something in a browser, such as a list of latest comments."""
    found, drawn = auto(tmp_path, MemoryStore()), random.Random(7)
    rendered = missed = 0
    for number in range(PAGES):
        url = f"{SITE}{LAYOUTS[layout](number, drawn)}"
        is_script = drawn.random() < 0.1
        if found.decide(url, needs_browser=is_script) is RenderDecision.NO:
            missed += is_script
            continue
        rendered += 1
        found.rendered(url, GAINED if is_script or drawn.random() < noise else IN_VAIN)
    assert missed == 0
    assert rendered <= 0.15 * PAGES


def test_of_a_part_of_a_site_whose_pages_only_seem_complete_all_are_rendered_soon(tmp_path: Path) -> None:
    found = auto(tmp_path, MemoryStore())
    rendered = 0
    for number in range(1_000):
        url = f"{SITE}/catalogue/{number}"
        if found.decide(url, needs_browser=False) is not RenderDecision.NO:
            found.rendered(url, Rendered(60, 400, 8, 40, 1.0, 3))
            rendered += 1
    assert rendered == 951
    assert all(found.decide(f"{SITE}/news/{number}", needs_browser=False) is RenderDecision.NO for number in range(49))


class _Counting(MemoryStore):
    writes = 0

    def set_meta(self, name: str, value: str) -> None:
        self.writes += name == RENDERING
        super().set_meta(name, value)


class _Away(MemoryStore):
    is_away = False

    def set_meta(self, name: str, value: str) -> None:
        if self.is_away:
            raise StoreAway("the server is away")
        super().set_meta(name, value)


# --- pages that were fetched and could not be rendered (617) --------------------------------------------------------


FIRST, SECOND = "http://a.example/1", "http://a.example/2"


def fetches(crawled: Engine) -> list[UrlState]:
    """Have all that is to be fetched not be rendered; return it as it was before."""
    found = []
    while (fetch := crawled.next_fetch()) is not None:
        assert isinstance(fetch, FetchPage)
        outcome = Outcome(fetch.state.id, fetch.state.url, OutcomeKind.FAILED, Status.NOT_RENDERED, detail="time-out")
        assert crawled.fetched(outcome)
        crawled.commit()
        found.append(fetch.state)
    return found


def row(store: MemoryStore, url: str) -> UrlState:
    found = store.get(url)
    assert found is not None
    return found


def test_a_new_page_waits_for_the_next_run(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawled = engine(tmp_path, store, clock)
    assert [state.url for state in fetches(crawled)] == [FIRST, SECOND]
    crawled.frontier.recheck_sites()
    assert fetches(crawled) == []
    assert crawled.is_done()
    assert crawled.progress.by_status == {617: 2}
    assert [(one.state, one.status, one.checksum) for one in (row(store, FIRST), row(store, SECOND))] == [
        (State.FAILED, 617, None)
    ] * 2
    clock.advance(5)
    again = engine(tmp_path, store, clock)
    assert crawl(again, {FIRST: "a", SECOND: "b"}) == 2
    assert row(store, FIRST).state is State.DONE


def test_however_often_it_fails_its_document_stays(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    assert crawl(engine(tmp_path, store, clock), {FIRST: "a", SECOND: "b"}) == 2
    before = row(store, FIRST)
    for _ in range(12):
        clock.advance(40 * DAY)
        crawled = engine(tmp_path, store, clock)
        assert len(fetches(crawled)) == 2
        assert crawled.is_done()
        assert not crawled.given_up_sites
        assert (crawled.progress.deletes, crawled.unanswered_sites()) == (0, {})
    after = row(store, FIRST)
    assert (after.state, after.status, after.errors, after.held, after.indexed) == (State.FAILED, 617, 0, None, True)
    assert (after.checksum, after.interval_s, after.etag) == (before.checksum, before.interval_s, before.etag)
    assert [order.op for order in store.orders(EMBEDDED, 10, now=int(clock.now()))] == ["push", "push"]
    clock.advance(1)
    assert crawl(engine(tmp_path, store, clock), {FIRST: "a", SECOND: "b"}) == 2
    assert row(store, FIRST).status == 200


def test_what_was_held_before_is_neither_confirmed_nor_dropped(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawl(engine(tmp_path, store, clock), {FIRST: "a", SECOND: "b"})
    for _ in range(6):
        clock.advance(40 * DAY)
        crawled = engine(tmp_path, store, clock, RETRY_TIMES=0)
        while (fetch := crawled.next_fetch()) is not None:
            assert isinstance(fetch, FetchPage)
            crawled.fetched(Outcome(fetch.state.id, fetch.state.url, OutcomeKind.FAILED, 503, host_failure=True))
        crawled.commit()
    held = row(store, FIRST)
    assert (held.held, held.errors) == (Held.HOST, 6)
    clock.advance(40 * DAY)
    fetches(engine(tmp_path, store, clock))
    after = row(store, FIRST)
    assert (after.held, after.held_mark, after.errors, after.status) == (Held.HOST, held.held_mark, 6, 617)


def test_many_in_a_row_are_no_failure_of_the_site(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawled = engine(tmp_path, store, clock, CRAWLSPACE_START_URLS=[f"http://a.example/{number}" for number in range(60)])
    assert len(fetches(crawled)) == 60
    assert not crawled.given_up_sites


def test_a_crawl_that_does_not_end_tries_again_after_a_while(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawled = engine(tmp_path, store, clock, CRAWLSPACE_CONTINUOUS=True)
    assert len(fetches(crawled)) == 2
    clock.advance(60)
    assert fetches(crawled) == []
    clock.advance(3_600)
    assert len(fetches(crawled)) == 2


@pytest.mark.parametrize("code", [616, 617])
def test_no_setting_makes_it_delete(code: int) -> None:
    with pytest.raises(SettingError, match="which names no error"):
        read_error_rules({str(code): "DELETE"})
