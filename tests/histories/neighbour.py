"""A second collection that shares the index: which hosts and pages each of the two crawls, and how these move between them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from tests.histories.configuration import Configuration, Rule
from tests.histories.web import Web

NAME = "g"
_REST = Rule(False, "domain", "*")


def own_host(web: Web) -> str:
    """Return the host that the second collection always crawls, from its home page on."""
    return [*web.sites][1]


def configured_beside(first: Configuration, rules: tuple[Rule, ...]) -> Configuration:
    """Return the configuration of the second collection: settings and global rules are the project's, `rules` its own.

    How many links away a page is differs between the two, for each has start URLs of its own; so the second one has no limit for that.
    """
    return replace(first, rules=rules, max_depth=0)


def first_rules(web: Web, chance: random.Random) -> tuple[Rule, ...]:
    """Return the first rules of the second collection: its own host, and some others."""
    others = [host for host in [*web.sites][2:] if chance.random() < 0.3]
    return (*(Rule(True, "domain", host) for host in (own_host(web), *others)), _REST)


def moved(
    first: tuple[Rule, ...], second: tuple[Rule, ...], shared: tuple[Rule, ...] | None, web: Web, chance: random.Random
) -> tuple[tuple[Rule, ...], tuple[Rule, ...], tuple[Rule, ...] | None]:
    """Return the rules of both collections and the global ones after one change: a host or a folder is taken, given up, or named globally."""
    what = chance.random()
    host = chance.choice([*web.sites][1:])
    if what < 0.3:
        return _toggled(first, Rule(False, "domain", host)), second, shared
    if what < 0.5:
        if host == own_host(web):
            host = next(iter(web.sites))
        return first, _toggled(second, Rule(True, "domain", host)), shared
    if what < 0.65:
        folder = Rule(False, "prefix", f"http://{host}/{chance.choice('pq')}/")
        return (_toggled(first, folder), second, shared) if chance.random() < 0.5 else (first, _toggled(second, folder), shared)
    name = Rule(True, "domain", host.partition(":")[0])
    if shared is None or what > 0.95:
        return first, second, (*(Rule(True, "domain", one.partition(":")[0]) for one in web.sites),)
    return first, second, _toggled(shared, name)


def _toggled(rules: tuple[Rule, ...], rule: Rule) -> tuple[Rule, ...]:
    return tuple(one for one in rules if one != rule) if rule in rules else (rule, *rules)


def lost_to(*, before: Mapping[str, object], after: Mapping[str, object], owned: set[str]) -> set[str]:
    """Return the documents of the other collection that one may have deleted; `owned` is what it pushed last, before this crawl or in it.

    A document belongs to the collection that pushed it last. So a page that both crawl may leave the index with either: spec 4 has a host
    crawled by one of them, and `lint --all` warns of any other (`crawled-twice`).
    """
    return (before.keys() - after.keys()) & owned
