"""What a history dwells on: most faults need two or three things one after the other, which chance alone seldom brings together."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.histories import folded
from tests.histories.configuration import Configuration, Rule
from tests.histories.drawn import Drawn
from tests.histories.loosened import strict
from tests.histories.web import Web


def choose_focus(drawn: Drawn, chance: random.Random) -> str:
    """What a history dwells on; every third on nothing."""
    focuses = [
        name
        for name in (
            "starts",
            "clock",
            "decisions",
            "refusals",
            "dead",
            "copies",
            "headers",
            "fields",
            "orphans",
            "loosened",
            "two",
            "folding",
            "archive",
            "files",
        )
        if getattr(drawn, name)
    ]
    return chance.choice(focuses) if focuses and chance.random() < 0.67 else ""


def fit_focus(focus: str, configuration: Configuration, web: Web, chance: random.Random) -> Configuration:
    """A configuration under which what the history dwells on can happen."""
    if focus == "starts":
        return replace(configuration, max_depth=chance.choice((1, 1, 2, 3)))
    if focus == "clock":
        return replace(configuration, delay=chance.choice((0.0, 0.0, 2.0)))
    if focus == "fields":
        configuration = replace(configuration, field="old")
    if focus == "loosened":
        return strict(configuration, web, chance)
    if focus == "orphans":
        return replace(configuration, orphans_after=chance.choice((None, 1, 1, 2)), max_depth=chance.choice((0, 0, 2, 3)))
    if focus in ("decisions", "fields", "orphans", "two"):
        return replace(configuration, max_deletions=chance.choice((0, 1, 2)), max_deletions_percent=0)
    return configuration


def change_focus(focus: str, configuration: Configuration, web: Web, chance: random.Random) -> Configuration:
    """One change of what decides about it."""
    if focus == "folding":
        new = folded.changed(configuration, chance)
        folded.have_folded(web, new, chance)
        return new
    if focus == "starts":
        return chance.choice(
            (
                replace(configuration, max_depth=chance.choice((0, 1, 2, 3))),
                replace(configuration, offsite=not configuration.offsite),
                replace(configuration, entire_site=not configuration.entire_site),
            )
        )
    if focus == "loosened":
        return strict(configuration, web, chance)
    if focus == "orphans":
        return chance.choice(
            (
                replace(configuration, orphans_after=chance.choice((None, 1, 2))),
                replace(configuration, max_depth=chance.choice((0, 2, 3))),
                replace(configuration, follow_queries=not configuration.follow_queries),
                replace(configuration, plain=not configuration.plain),
            )
        )
    if focus == "fields" and chance.random() < 0.2:
        return replace(configuration, field=chance.choice(("old", "new")))
    if focus in ("decisions", "fields"):
        hosts = [*web.sites][1:]
        page = chance.choice([*web.pages])
        target = Rule(False, "domain", chance.choice(hosts)) if chance.random() < 0.6 else Rule(False, "prefix", page)
        if target in configuration.rules or any(rule.kind == target.kind and not rule.allow for rule in configuration.rules):
            return replace(configuration, rules=tuple(rule for rule in configuration.rules if rule.allow))
        return replace(configuration, rules=(target, *configuration.rules))
    return configuration
