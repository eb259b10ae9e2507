"""Link depths after a run are those of the stored links, whatever was lost, forgotten and found again before; in every store."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from crawlspace.crawl.depths.settlement import ANY_GIVER, find, write
from crawlspace.model import State
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.depths import DepthMark, NewDepth, leads_on
from crawlspace.state.store import Store
from crawlspace.status import OUT_OF_SPACE
from tests.contract.conftest import NOW, new
from tests.quick import examples
from tests.stores import KINDS, new_store

START = "s"
NAMES = (START, *"abcdefgh")
STARTS = frozenset({new(START).key})


class LinkedPages:
    """Pages that link to each other, as a crawl records them in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.start()

    def start(self) -> None:
        self.store.discover([new(START, depth=0)], now=NOW)

    def fetch(self, name: str, links: str) -> None:
        """A page is found to lead to these."""
        state = self.store.get(new(name).url)
        if state is None or state.status in OUT_OF_SPACE:
            return
        self._record(state.id, State.DONE, 200, links)

    def redirect(self, name: str, to: str) -> None:
        state = self.store.get(new(name).url)
        if state is not None and state.status not in OUT_OF_SPACE:
            self._record(state.id, State.REDIRECTED, 301, to)

    def _record(self, id: int, state: State, status: int, links: str) -> None:
        was = self.store.get_by_id(id)
        assert was is not None
        depth = was.depth + (state is not State.REDIRECTED)
        found = [structs.replace(new(link, depth=depth), depth_from=id) for link in links]
        now = structs.replace(was, state=state, status=status, next_fetch=NOW + 10)
        self.store.record([Change(now, links=[one.key for one in found], discovered=found)], now=NOW)

    def fail(self, name: str) -> None:
        """A URL gives no answer for a while; what it led to is kept."""
        state = self.store.get(new(name).url)
        if state is not None and leads_on(state.state, state.status):
            self.store.record([Change(structs.replace(state, state=State.FAILED, status=503, next_fetch=NOW + 10))], now=NOW)

    def forget(self, name: str) -> None:
        state = self.store.get(new(name).url)
        if state is not None and name != START:
            self.store.record([Change(state, forget=True)], now=NOW)

    def forbid(self, name: str) -> None:
        """robots.txt forbids a page, whose links are kept."""
        state = self.store.get(new(name).url)
        if state is not None:
            self.store.record([Change(structs.replace(state, state=State.EXCLUDED, status=740))], now=NOW)

    def exclude(self, name: str) -> None:
        """The rules exclude a page."""
        state = self.store.get(new(name).url)
        if state is not None and name != START:
            self.store.reclassify(Reclassified(excluded=[state.id]), now=NOW)
            self.store.set_meta(ANY_GIVER, "1")

    def take_back(self, name: str) -> None:
        """The rules admit a page again."""
        state = self.store.get(new(name).url)
        if state is not None and state.status in OUT_OF_SPACE:
            self.store.reclassify(Reclassified(returned=[state.id]), now=NOW)
            self.store.set_meta(ANY_GIVER, "1")

    def settle(self, run: int = 1) -> None:
        write(self.store, find(self.store, starts=STARTS, run=run), now=NOW)

    def depths(self) -> dict[str, int | None]:
        """By name; None for an orphan."""
        known = {state.url: state for state in self.store.urls()}
        return {
            name: None if state.orphaned is not None else state.depth
            for name in NAMES
            if (state := known.get(new(name).url)) is not None and state.status not in OUT_OF_SPACE
        }

    def true_depths(self, *, may_redirect: bool = False) -> dict[str, int | None]:
        """The same by walking along all links; what fails may be a redirect or not."""
        names = {new(name).key: name for name in NAMES}
        states = {names[state.key]: state for state in self.store.urls()}
        links = self.store.links_of([state.id for state in states.values()])
        found: dict[str, int] = {START: 0}
        queue = deque([START])
        while queue:
            name = queue.popleft()
            state = states[name]
            for key in links.get(state.id, ()) if leads_on(state.state, state.status) else ():
                target = names[key]
                is_redirect = state.state is State.REDIRECTED or (may_redirect and state.state in (State.FAILED, State.PENDING))
                depth = found[name] + (not is_redirect)
                if target in states and depth < found.get(target, 99) and states[target].status not in OUT_OF_SPACE:
                    found[target] = depth
                    queue.append(target)
        return {name: found.get(name) for name in NAMES if name in states and states[name].status not in OUT_OF_SPACE}


@contextmanager
def store_in_new_folder(kind: str) -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, new_store(kind, Path(folder), sinks=()) as store:
        yield store


@pytest.fixture(params=KINDS)
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LinkedPages]:
    with new_store(request.param, tmp_path, sinks=()) as store:
        yield LinkedPages(store)


def assert_true_depths(web: LinkedPages) -> None:
    depths, least, most = web.depths(), web.true_depths(may_redirect=True), web.true_depths()
    assert depths.keys() == most.keys()
    for name, depth in depths.items():
        nearest, farthest = least[name], most[name]
        if depth is None or nearest is None or farthest is None:
            assert (depth, nearest, farthest) == (None, None, None), name
        else:
            assert nearest <= depth <= farthest, name


def steps_of(web: LinkedPages) -> dict[str, Callable[[str, str], None]]:
    return {
        "fetch": web.fetch,
        "redirect": lambda name, links: web.redirect(name, links[:1]),
        "fail": lambda name, _: web.fail(name),
        "forget": lambda name, _: web.forget(name),
        "forbid": lambda name, _: web.forbid(name),
        "exclude": lambda name, _: web.exclude(name),
        "take back": lambda name, _: web.take_back(name),
        "settle": lambda _, __: web.settle(),
    }


names = st.sampled_from(NAMES)
kinds = st.sampled_from(["fetch"] * 6 + ["redirect", "fail", "forget", "forbid", "exclude", "take back", "settle"])
histories = st.lists(st.tuples(kinds, names, st.lists(names, max_size=4, unique=True).map("".join)), max_size=40)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@given(history=histories)
@settings(max_examples=examples(300))
def test_depths_are_those_of_the_links(kind: str, history: list[tuple[str, str, str]]) -> None:
    with store_in_new_folder(kind) as store:
        web = LinkedPages(store)
        for step, name, links in history:
            steps_of(web)[step](name, links)
        web.settle()
        assert_true_depths(web)
        before = list(store.urls())
        web.settle()
        assert list(store.urls()) == before


@given(history=histories)
@settings(max_examples=examples(40))
def test_depths_are_those_of_the_links_in_redis(history: list[tuple[str, str, str]]) -> None:
    with store_in_new_folder("redis") as store:
        web = LinkedPages(store)
        for step, name, links in history:
            steps_of(web)[step](name, links)
        web.settle()
        assert_true_depths(web)


def chain(web: LinkedPages) -> None:
    """s - a - b - c - d, and s - e - c."""
    for name, links in (("s", "ae"), ("a", "b"), ("b", "c"), ("c", "d"), ("e", "c"), ("d", "")):
        web.fetch(name, links)


def test_what_a_redirect_leads_to_is_no_farther_while_it_fails(web: LinkedPages) -> None:
    for name, links in (("s", "ae"), ("a", "e")):
        web.fetch(name, links)
    web.redirect("e", "c")
    web.fetch("c", "d")
    web.fail("e")
    web.settle()
    assert web.depths() == {"s": 0, "a": 1, "e": 1, "c": 1, "d": 2}
    web.fetch("s", "a")  # the page that gave the redirect its depth changes meanwhile
    web.settle()
    assert web.depths() == {"s": 0, "a": 1, "e": 2, "c": 2, "d": 3}
    web.fetch("e", "c")  # it is a page now
    web.settle()
    assert web.depths() == {"s": 0, "a": 1, "e": 2, "c": 3, "d": 4}


def test_a_lost_link_costs_what_depends_on_it_and_no_more(web: LinkedPages) -> None:
    chain(web)
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": 2, "d": 3, "e": 1}
    web.fetch("e", "")
    found = find(web.store, starts=STARTS, run=1)
    assert (found.checked, found.orphaned, found.deepest()) == (2, 0, 4)
    web.settle()
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": 1}
    assert web.store.depth_marks() == {}


def test_a_link_of_a_page_that_did_not_give_the_depth_marks_nothing(web: LinkedPages) -> None:
    chain(web)
    web.fetch("b", "")
    assert web.store.depth_marks() == {}


def test_orphans_have_no_way_from_a_start_url_and_are_found_again(web: LinkedPages) -> None:
    chain(web)
    web.fetch("s", "a")
    web.fetch("b", "")
    web.settle(run=7)
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": None, "d": None, "e": None}
    assert [one.orphaned for one in web.store.orphans()] == [7, 7, 7]
    assert web.store.counts().orphaned == 3
    web.settle(run=8)
    assert [one.orphaned for one in web.store.orphans()] == [7, 7, 7], "since when, not until when"
    web.fetch("a", "bd")
    web.settle(run=9)
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": None, "d": 2, "e": None}


def test_what_an_orphan_leads_to_is_nearer_again_when_a_way_leads_to_the_orphan(web: LinkedPages) -> None:
    for name, links in (("s", "ae"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "f"), ("e", "f"), ("f", "g")):
        web.fetch(name, links)
    web.fetch("s", "a")
    web.settle()
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": None, "f": 5, "g": 6}
    web.fetch("a", "be")
    web.settle(run=2)
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": 2, "f": 3, "g": 4}
    assert web.store.depth_marks() == {}


def test_a_redirect_does_not_give_itself_its_depth(web: LinkedPages) -> None:
    web.fetch("s", "ab")
    web.redirect("b", "b")
    web.fetch("a", "c")
    web.fetch("s", "a")
    web.settle()
    web.fetch("c", "b")
    web.settle(run=2)
    assert web.depths()["b"] == 3
    web.fetch("c", "")
    web.settle(run=3)
    assert web.depths()["b"] is None


def test_a_page_that_came_back_by_a_long_way_has_the_depth_of_the_short_one(web: LinkedPages) -> None:
    chain(web)
    web.forget("e")
    web.fetch("d", "e")  # while s, which leads there too, answers 304
    assert web.depths()["e"] == 5 - 1
    web.settle()
    assert web.depths() == {"s": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": 1}
    assert web.store.depth_marks() == {}


def test_the_mark_of_a_forgotten_url_stays_while_a_page_leads_there(web: LinkedPages) -> None:
    chain(web)
    web.forget("d")
    web.fetch("e", "")
    web.settle()
    assert web.store.depth_marks() == {new("d").key: DepthMark(0, 3)}
    web.fetch("c", "")
    web.fetch("a", "")
    web.settle()
    assert web.store.depth_marks() == {}


def test_a_forgotten_url_is_as_far_as_the_link_of_a_page_that_came_nearer(web: LinkedPages) -> None:
    for name, links in ("s", "ad"), ("a", "b"), ("b", "c"), ("c", "e"), ("d", "f"):
        web.fetch(name, links)
    web.forget("e")
    web.store.discover([new("c", depth=0)], now=NOW)  # a start URL now, and it does not answer
    web.fetch("f", "e")
    assert web.depths()["e"] == 3
    web.settle()
    assert web.depths()["e"] == 1


def test_a_forgotten_url_is_as_far_as_the_link_of_a_page_that_robots_txt_allows_again(web: LinkedPages) -> None:
    for name, links in ("s", "ad"), ("a", "e"), ("d", "f"):
        web.fetch(name, links)
    web.forbid("a")
    web.forget("e")
    web.store.set_depth_marks({new("e").key: None})  # as a settlement does, since no link that counts leads there
    state = web.store.get(new("a").url)
    assert state is not None
    web.store.record([Change(structs.replace(state, state=State.FAILED, status=503))], now=NOW)
    web.fetch("f", "e")
    assert web.depths()["e"] == 3
    web.settle()
    assert_true_depths(web)


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("settles", [False, True])
def test_links_of_a_page_that_the_rules_admit_again_count_though_it_does_not_answer(
    web: LinkedPages, forgets: bool, settles: bool
) -> None:
    for name, links in ("s", "ad"), ("a", "e"), ("d", "f"), ("f", "e"), ("e", "g"):
        web.fetch(name, links)
    web.exclude("a")
    web.settle()
    assert web.depths() == {"s": 0, "d": 1, "f": 2, "e": 3, "g": 4}
    if forgets:
        web.forget("e")
        web.store.set_depth_marks({new("e").key: None})
    web.take_back("a")
    if settles:
        web.settle()
    web.fetch("f", "e")
    web.settle()
    assert_true_depths(web)
    if not (forgets and settles):  # else it is computed anew, and may be as near as behind a redirect
        assert web.depths()["e"] == 2, "the page is not taken for a redirect"


def test_an_orphan_outside_the_crawl_space_costs_no_scan_of_links(web: LinkedPages, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(web)
    web.fetch("c", "")
    web.settle()
    web.exclude("d")
    web.settle()
    assert [one.key for one in web.store.orphans()] == [new("d").key]
    monkeypatch.setattr(web.store, "scan_links", lambda *_: pytest.fail("the links of all pages are read"))
    web.settle()


def test_a_start_url_that_was_removed_is_as_far_as_its_links_say(web: LinkedPages) -> None:
    web.store.discover([new("a", depth=0)], now=NOW)
    web.fetch("s", "b")
    web.fetch("b", "a")
    web.fetch("a", "")
    web.settle()
    assert web.depths()["a"] == 0
    web.store.set_depth_marks({new("a").key: DepthMark(0)})
    web.settle()
    assert web.depths() == {"s": 0, "a": 2, "b": 1}


def test_what_was_outside_is_as_far_as_the_page_that_leads_there_is_now(web: LinkedPages) -> None:
    for name, links in ("s", "ac"), ("c", "a"), ("a", "e"), ("e", ""):
        web.fetch(name, links)
    web.exclude("e")
    web.fetch("s", "c")
    web.settle()
    web.take_back("e")
    web.settle()
    assert web.depths() == {"s": 0, "c": 1, "a": 2, "e": 3}


def test_a_leased_url_keeps_its_depth(web: LinkedPages) -> None:
    chain(web)
    state = web.store.get(new("e").url)
    assert state is not None
    web.store.record([Change(structs.replace(state, next_fetch=NOW))], now=NOW)
    assert [one.id for one in web.store.lease(state.site, 9, now=NOW, until=NOW + 9)] != []
    assert web.store.set_depths([NewDepth(state.id, 1, 5, 0, None)]) == [state.id]
    assert web.depths()["e"] == 1


def test_a_leased_url_is_settled_once_it_is_back(web: LinkedPages) -> None:
    chain(web)
    state = web.store.get(new("e").url)
    assert state is not None
    web.store.record([Change(structs.replace(state, next_fetch=NOW))], now=NOW)
    web.fetch("s", "c")
    (leased,) = web.store.lease(state.site, 9, now=NOW, until=NOW + 9)
    web.settle()
    assert web.depths()["e"] == 1
    assert set(web.store.depth_marks()) == {state.key}
    web.store.release([leased.id])
    web.settle()
    assert web.depths() == web.true_depths()
    assert web.store.depth_marks() == {}


class KilledError(Exception):
    """The process was killed."""


@pytest.mark.parametrize("steps", range(6))
def test_killed_half_way(web: LinkedPages, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(web)
    for name in "fgh":
        web.fetch("d", name)
        web.fetch(name, "d")
    web.fetch("e", "")
    web.fetch("s", "e")
    expected = web.true_depths()
    monkeypatch.setattr("crawlspace.crawl.depths.settlement.BATCH", 1)
    left = steps
    whole: Callable[..., list[int]] = web.store.set_depths

    def set_depths(new: list[NewDepth]) -> list[int]:
        nonlocal left
        if not left:
            raise KilledError
        left -= 1
        return whole(new)

    monkeypatch.setattr(web.store, "set_depths", set_depths)
    try:
        web.settle()
    except KilledError:
        left = 99
        web.settle()
    assert web.depths() == expected
