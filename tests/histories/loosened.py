"""Checks that admit more than before: what they refused must be found by the very next crawl, without anything else being due."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace

from crawlspace.model import State, UrlState
from tests.histories.configuration import Configuration, Rule
from tests.histories.oracle import fails
from tests.histories.web import Web, path_of

LOOSER: dict[str, Sequence[object]] = {
    "follow_queries": (False, True),
    "odd_extension": (False, True),
    "max_path_depth": (1, 2, None),
    "max_depth": (1, 2, 3, 4, 0),
    "max_length": (45, 2083),
    "max_repeats": (2, 3),
    "offsite": (False, True),
    "entire_site": (True, False),
    "plain": (False, True),
    "robots_obey": (True, False),
    "meta_robots": (True, False),
    "max_redirects": (1, 2, 10),
}
"""Settings with their values, each admitting more than those before it."""


def strict(configuration: Configuration, web: Web, chance: random.Random) -> Configuration:
    """A configuration that refuses something."""
    for name in chance.sample(sorted(LOOSER), chance.randint(1, 3)):
        configuration = replace(configuration, **{name: chance.choice(LOOSER[name][:-1])})  # type: ignore[arg-type]
    if chance.random() < 0.5:
        configuration = replace(configuration, rules=(_forbid(web, chance), *configuration.rules))
    return configuration


def loosened(configuration: Configuration, chance: random.Random) -> Configuration | None:
    """The same configuration, but for one check that admits more; None where all admit all."""
    wider = [
        replace(configuration, **{name: value})  # type: ignore[arg-type]
        for name, values in LOOSER.items()
        for value in values[_place(values, getattr(configuration, name)) + 1 :]
    ]
    wider += [
        replace(configuration, rules=tuple(one for one in configuration.rules if one != rule))
        for rule in configuration.rules
        if not rule.allow
    ]
    if configuration.sites and configuration.max_path_depth is None:
        wider.append(replace(configuration, sites={}))
    return chance.choice(wider) if wider else None


def with_starts(web: Web, starts: Iterable[str]) -> Web:
    """The same web, crawled from other start URLs."""
    other = copy(web)
    other.starts = list(starts)
    return other


def needless(
    asked: Iterable[str], known: Mapping[str, UrlState], before: Configuration, web: Web, *, starts: Iterable[str]
) -> Iterator[str]:
    """What was asked for though the former checks had refused nothing of it, and it is none of `starts`.

    `known` is what was known before the change, and the start URLs of `web` are those of before it: they decide what is offsite.
    """
    now_start = set(starts)
    for url in sorted(asked):
        state, page = known.get(url), web.page(url)
        is_as_before = state is not None and state.state is State.DONE and state.status == 200 and state.held is None
        if not is_as_before or page is None or fails(page) or url in now_start:
            continue
        if web.site_of(url).is_dead:  # its pages have been due for long, and its robots.txt kept them waiting
            continue
        links = [link for link in (*page.links, page.canonical, page.link_canonical) if link]
        if all(before.verdict(link, web=web, depth=None) is None for link in links):
            yield f"ASKED   {url}: it was not due, and all that it links was admitted before"


def _place(values: Sequence[object], value: object) -> int:
    return next((place for place, one in enumerate(values) if one == value and type(one) is type(value)), len(values))


def _forbid(web: Web, chance: random.Random) -> Rule:
    hosts = [*web.sites][1:]
    pages = [url for url in web.pages if path_of(url)[1] in "pq"]
    home = f"http://{chance.choice([*web.sites])}/"
    target = chance.choice((chance.choice(pages), f"{home}p/", f"{home}q/sub", f"{home}deep/"))
    return Rule(False, "domain", chance.choice(hosts)) if chance.random() < 0.4 else Rule(False, "prefix", target)
