"""Which pages of a group are rendered, step by step, and what belongs to a group."""

from __future__ import annotations

import pytest

from crawlspace.state.render_learning import CHECK_EVERY, Needs, RenderDecision, Rendered, RenderGroup, group_of
from crawlspace.urls import parse

GROUPS = [
    # URL, its group
    ("http://a.example/", "a.example:80/"),
    ("https://a.example/page", "a.example:443/"),
    ("https://a.example/slug/", "a.example:443/"),
    ("https://a.example/shop/lamp", "a.example:443/shop/"),
    ("https://a.example/shop/lamps/red?x=/1/2/3", "a.example:443/shop/lamps/"),
    ("https://a.example/shop/lamps/red/large/", "a.example:443/shop/lamps/"),
    ("https://a.example/2024/05/a-title/", "a.example:443/0/0/"),
    ("https://a.example/item/4711/view", "a.example:443/item/0/"),
    ("https://a.example//shop//lamp", "a.example:443/shop/"),
    (f"https://a.example/{'x' * 300}/page", f"a.example:443/{'x' * 185}/"),
]


@pytest.mark.parametrize(("url", "group"), GROUPS)
def test_groups(url: str, group: str) -> None:
    assert group_of(parse(url)) == group


GAINS = [
    # words and links before, after; whether the page gains
    ((0, 0), (20, 0), True),
    ((0, 0), (5, 0), True),
    ((4, 1), (4, 2), True),
    ((0, 0), (4, 0), False),
    ((5, 0), (24, 2), False),
    ((100, 5), (149, 7), False),
    ((100, 5), (150, 5), True),
    ((30, 5), (49, 5), False),
    ((5_000, 40), (5_000, 43), True),
    ((5_000, 40), (0, 0), False),
]


@pytest.mark.parametrize(("before", "after", "gains"), GAINS)
def test_what_is_a_gain(before: tuple[int, int], after: tuple[int, int], gains: bool) -> None:
    assert Rendered(before[0], after[0], before[1], after[1], 1.0, 0).gains is gains


def shells(number: int, *, gain: bool) -> list[tuple[bool, bool]]:
    return [(True, gain)] * number


def pages(number: int, *, gain: bool) -> list[tuple[bool, bool]]:
    return [(False, gain)] * number


STEPS = [
    # what comes: whether it looks like a shell, whether it would gain; how many of them are rendered; what the group needs then
    ([], 0, Needs.SHELLS),
    (shells(4, gain=False), 4, Needs.SHELLS),
    (shells(5, gain=False), 5, Needs.NONE),
    (shells(5 + 49, gain=False), 5, Needs.NONE),
    (shells(5 + 50, gain=False), 6, Needs.NONE),
    ([*shells(5 + 49, gain=False), *shells(1, gain=True)], 6, Needs.SHELLS),
    ([*shells(1, gain=True), *shells(19, gain=False)], 20, Needs.SHELLS),
    ([*shells(1, gain=True), *shells(20, gain=False)], 21, Needs.NONE),
    ([*shells(19, gain=False)[:4], *shells(1, gain=True), *shells(4, gain=False)], 9, Needs.SHELLS),
    (pages(49, gain=True), 0, Needs.SHELLS),
    (pages(50, gain=True), 1, Needs.ALL),
    (pages(60, gain=True), 11, Needs.ALL),
    (pages(100, gain=False), 2, Needs.SHELLS),
    ([*pages(50, gain=True), *pages(9, gain=False)], 10, Needs.ALL),
    ([*pages(50, gain=True), *pages(10, gain=False)], 11, Needs.SHELLS),
    ([*pages(50, gain=True), *pages(10, gain=False), *pages(49, gain=False)], 11, Needs.SHELLS),
    ([*pages(50, gain=True), *pages(9, gain=False), *pages(1, gain=True), *pages(9, gain=False)], 20, Needs.ALL),
    # shells that gain do not show that other pages need it
    ([*pages(50, gain=True), *(shells(1, gain=True) + pages(1, gain=False)) * 10], 21, Needs.SHELLS),
    ([*shells(5, gain=False), *pages(50, gain=True)], 6, Needs.ALL),
]


@pytest.mark.parametrize(("steps", "rendered", "needs"), STEPS)
def test_a_group_learns(steps: list[tuple[bool, bool]], rendered: int, needs: Needs) -> None:
    group = RenderGroup()
    for is_shell, gains in steps:
        if group.decide(is_shell=is_shell) is not RenderDecision.NO:
            group.learn(is_shell=is_shell, gains=gains)
    assert (group.rendered, group.needs) == (rendered, needs)


def test_samples_are_marked() -> None:
    group = RenderGroup()
    turns = [group.decide(is_shell=False) for _ in range(2 * CHECK_EVERY)]
    assert [place for place, decide in enumerate(turns, 1) if decide is RenderDecision.CHECK] == [50, 100]
    assert set(turns) == {RenderDecision.NO, RenderDecision.CHECK}
    assert group.decide(is_shell=True) is RenderDecision.YES


def test_it_says_what_others_should_know() -> None:
    group = RenderGroup()
    assert [group.learn(is_shell=True, gains=gains) for gains in (False, True, True)] == [False, True, False]
    assert group.needs_browser
