"""Whole sites of a simulated web that fail for a while, or for good."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.histories.drawn import Drawn
from tests.histories.web import DEATHS, OUTAGES, REFUSALS, Web


class Outages:
    def __init__(self, web: Web, chance: random.Random, drawn: Drawn) -> None:
        self._web = web
        self._chance = chance
        self._drawn = drawn

    def outage(self, kinds: Sequence[str] = OUTAGES) -> str:
        """Have a whole site fail, or one that fails be well again."""
        down = [site for site in self._web.sites.values() if site.outage]
        if down and self._chance.random() < 0.4:
            site = self._chance.choice(down)
            site.outage, site.is_dead = "", False
            return f"{site.host} is well again"
        site = self._chance.choice(list(self._web.sites.values()))
        if self._drawn.refusals and self._chance.random() < 0.2:
            kinds = REFUSALS
        site.outage, site.is_dead = self._chance.choice(kinds), False
        site.robots_answers = self._chance.random() < 0.5
        return f"{site.host} fails: {site.outage}{', but for its robots.txt' if site.robots_answers else ''}"

    def death(self) -> str:
        """Have a host be dead for good, or live again; not the first, which leads to all others."""
        site = self._chance.choice(list(self._web.sites.values())[1:])
        if site.is_dead and self._chance.random() < 0.5:
            site.outage, site.is_dead = "", False
            return f"{site.host} lives again"
        site.outage, site.is_dead, site.robots_answers = self._chance.choice(DEATHS), True, False
        return f"{site.host} is dead for good: {site.outage}"
