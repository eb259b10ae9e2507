"""The six sources: their weights as documented, what may be set, and how often each is picked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from crawlspace.errors import SettingError
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS, WeightedSources, read_weights
from crawlspace.model import PRIORITY_BASE, Source, priority, source_of

USER, REDIR, INDEX, BOTH, FOLLOW, REFRESH = Source

SOURCES = [
    # number, name, weight, Scrapy's priority without a shift
    (0, "user", 10_000, 50),
    (1, "redir", 2_000, 40),
    (2, "index", 1_000, 30),
    (3, "index_follow", 100, 20),
    (4, "follow", 10, 10),
    (5, "refresh", 1, 0),
]


def test_the_sources() -> None:
    assert [(int(one), one.label, DEFAULT_WEIGHTS[one], PRIORITY_BASE[one]) for one in Source] == SOURCES


LINKS = [
    # whether it is indexed, whether its links are followed, what it waits in
    (True, True, BOTH),
    (True, False, INDEX),
    (False, True, FOLLOW),
    (False, False, FOLLOW),
]


@pytest.mark.parametrize(("index", "follow", "source"), LINKS)
def test_what_a_link_waits_in(index: bool, follow: bool, source: Source) -> None:
    assert source_of(index=index, follow=follow) is source


def test_a_shift_never_crosses_sources() -> None:
    ordered = [priority(source, shift) for source in Source for shift in (-2, -1, 0, 1, 2)]
    assert ordered == sorted(set(ordered), reverse=True)


SET = [
    # setting, what differs from the defaults
    (None, {}),
    ("", {}),
    ({}, {}),
    ({"refresh": 10}, {REFRESH: 10}),
    ({"index_follow": 0, "follow": 1_000_000}, {BOTH: 0, FOLLOW: 1_000_000}),
    (dict.fromkeys(["redir", "index", "index_follow", "follow", "refresh"], 0), dict.fromkeys([REDIR, INDEX, BOTH, FOLLOW, REFRESH], 0)),
]  # fmt: skip


@pytest.mark.parametrize(("value", "differs"), SET)
def test_weights(value: object, differs: Mapping[Source, int]) -> None:
    assert read_weights(value) == {**DEFAULT_WEIGHTS, **differs}


NAME = "CRAWLSPACE_SOURCE_WEIGHTS"
WRONG = [
    # setting, the sentence begins with
    ("refresh", f"{NAME} is 'refresh'; it must be like {{"),
    ([], f"{NAME} is []; it must be like"),
    (0, f"{NAME} is 0; it must be like"),
    ({"refesh": 1}, f"{NAME} names an unknown source 'refesh': did you mean 'refresh'?"),
    ({"Refresh": 1}, f"{NAME} names an unknown source 'Refresh': did you mean 'refresh'?"),
    ({"queue": 1}, f"{NAME} names an unknown source 'queue': there are user, redir, index, index_follow, follow, refresh"),
    ({None: 1}, f"{NAME} names an unknown source None: there are user"),
    ({"refresh": -1}, f"{NAME}['refresh'] is -1; a weight is a whole number from 0 (paused) to 1,000,000"),
    ({"refresh": 1_000_001}, f"{NAME}['refresh'] is 1000001; a weight"),
    ({"refresh": 0.5}, f"{NAME}['refresh'] is 0.5; a weight"),
    ({"refresh": True}, f"{NAME}['refresh'] is True; a weight"),
    ({"refresh": "1"}, f"{NAME}['refresh'] is '1'; a weight"),
    ({"refresh": None}, f"{NAME}['refresh'] is None; a weight"),
    ({source.label: 0 for source in Source}, f"{NAME} pauses every source, so that nothing would be crawled; give one of them"),
]


@pytest.mark.parametrize(("value", "sentence"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong_weights(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_weights(value)
    assert str(caught.value).startswith(sentence)


PICKS: list[tuple[Mapping[Source, int], tuple[Source, ...], int, dict[Source, int]]] = [
    # weights, what has a URL ready all the time, picks, how often each is picked
    (DEFAULT_WEIGHTS, (INDEX, BOTH, FOLLOW), 11_100, {INDEX: 10_000, BOTH: 1_000, FOLLOW: 100}),
    (DEFAULT_WEIGHTS, tuple(Source), 13_111, {USER: 10_000, REDIR: 2_000, INDEX: 1_000, BOTH: 100, FOLLOW: 10, REFRESH: 1}),
    (DEFAULT_WEIGHTS, (FOLLOW, REFRESH), 1_100, {FOLLOW: 1_000, REFRESH: 100}),
    (DEFAULT_WEIGHTS, (REFRESH,), 7, {REFRESH: 7}),
    ({FOLLOW: 1, INDEX: 3}, (FOLLOW, INDEX), 400, {INDEX: 300, FOLLOW: 100}),
    ({**DEFAULT_WEIGHTS, REFRESH: 100}, (BOTH, REFRESH), 400, {BOTH: 200, REFRESH: 200}),
    ({**DEFAULT_WEIGHTS, BOTH: 0}, (BOTH, FOLLOW), 50, {FOLLOW: 50}),
]  # fmt: skip


@pytest.mark.parametrize(("weights", "ready", "picks", "expected"), PICKS)
def test_picks(weights: Mapping[Source, int], ready: tuple[Source, ...], picks: int, expected: dict[Source, int]) -> None:
    """Evenly spread: at no time is a source farther from its share than half a pick for each source there is."""
    sources = WeightedSources(weights)
    picked: Counter[Source] = Counter()
    for number in range(1, picks + 1):
        source = next(one for one in sources.order() if one in ready)
        sources.picked(source)
        picked[source] += 1
        assert all(abs(picked[one] - share * number / picks) <= len(ready) / 2 for one, share in expected.items()), picked
    assert all(abs(picked[one] - share) <= 1 for one, share in expected.items()), picked


def test_a_pick_of_which_nothing_came_does_not_count() -> None:
    sources = WeightedSources({Source.USER: 3, Source.FOLLOW: 1})
    fetched: Counter[Source] = Counter()
    for turn in range(400):
        source = sources.order()[0]
        sources.picked(source)
        if source is Source.USER and turn % 2:
            sources.not_picked(source)
        else:
            fetched[source] += 1
    assert fetched[Source.USER] == pytest.approx(3 * fetched[Source.FOLLOW], rel=0.05)


PAUSES: list[tuple[str, Mapping[Source, int], tuple[Source, ...], int]] = [
    # before all are full: weights, the sources that have something ready, picks
    ("only the lightest", DEFAULT_WEIGHTS, (REFRESH,), 50),
    ("all but the heaviest", DEFAULT_WEIGHTS, (REDIR, INDEX, BOTH, FOLLOW, REFRESH), 3_111),
    ("only the heaviest", DEFAULT_WEIGHTS, (USER,), 30_000),
    ("none", DEFAULT_WEIGHTS, (), 0),
    ("equal ones", dict.fromkeys(Source, 5), (INDEX,), 100),
]


@pytest.mark.parametrize(("name", "weights", "ready", "picks"), PAUSES, ids=[row[0] for row in PAUSES])
def test_a_source_catches_up_on_nothing(name: str, weights: Mapping[Source, int], ready: tuple[Source, ...], picks: int) -> None:
    """The proportions hold over any window in which all are full, from the first pick on."""
    sources = WeightedSources(weights)
    for _ in range(picks):
        sources.picked(next(one for one in sources.order() if one in ready))
    order = []
    for _ in range(2 * sum(weights.values())):
        order.append(sources.order()[0])
        sources.picked(order[-1])
    whole = sum(weights.values())
    for begin, end in [(0, 31), (0, 1_110), (0, whole), (whole // 3, whole), (whole // 2, whole * 3 // 2)]:
        picked = Counter(order[begin:end])
        shares = {source: weight * len(order[begin:end]) / whole for source, weight in weights.items()}
        assert all(abs(picked[source] - share) <= 4 for source, share in shares.items()), (begin, end, picked)
    assert order[0] is (REDIR if USER in ready and len(ready) == 1 else USER)


def test_a_source_that_seldom_has_something_ready_is_picked_all_the_same() -> None:
    """As where its only site has a delay: it waits for its share, but need not be ready all the time to get it."""
    sources = WeightedSources({USER: 100, REFRESH: 1})
    picked: Counter[Source] = Counter()
    for turn in range(10_100):
        ready = (USER, REFRESH) if turn % 10 == 0 else (USER,)
        source = next(one for one in sources.order() if one in ready)
        sources.picked(source)
        picked[source] += 1
    assert 90 <= picked[REFRESH] <= 100
