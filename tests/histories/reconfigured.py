"""Other settings and rules for a collection of a history, drawn by chance."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.histories.configuration import HOUR, LONGEST_CYCLE, Configuration, Rule
from tests.histories.web import Web, path_of


def reconfigured(configuration: Configuration, web: Web, chance: random.Random) -> Configuration:
    """Another configuration, in one respect. The first site's home page stays in the crawl space."""
    what = chance.randrange(16)
    if what < 4:
        return replace(configuration, rules=_rules(web, chance))
    if what < 8:
        return replace(configuration, rules=_toggled(configuration.rules, web, chance))
    if what < 10:
        rules = None if chance.random() < 0.2 else _global_rules(web, chance)
        return replace(configuration, global_rules=rules)
    if what < 13:
        return chance.choice(
            (
                replace(configuration, follow_queries=not configuration.follow_queries),
                replace(configuration, odd_extension=not configuration.odd_extension),
                replace(configuration, max_path_depth=chance.choice((None, 1, 2))),
                replace(configuration, max_depth=chance.choice((0, 1, 2, 3, 4))),
                replace(configuration, max_length=chance.choice((2083, 45))),
                replace(configuration, max_repeats=chance.choice((2, 3))),
                replace(configuration, offsite=not configuration.offsite),
                replace(configuration, entire_site=not configuration.entire_site),
                replace(configuration, sites={chance.choice(list(web.sites)).partition(":")[0]: chance.choice((1, 3))}),
            )
        )
    return chance.choice(
        (
            replace(configuration, plain=not configuration.plain),
            replace(configuration, robots_obey=not configuration.robots_obey, meta_robots=not configuration.robots_obey),
            replace(configuration, meta_robots=not configuration.meta_robots),
            replace(configuration, checksum_title=not configuration.checksum_title),
            replace(configuration, cut_off=chance.choice((0, 20))),
            replace(configuration, soft_errors=not configuration.soft_errors),
            replace(configuration, retry_times=chance.choice((0, 1, 2))),
            replace(configuration, max_temporary_errors=chance.choice((1, 2, 3))),
            replace(configuration, refresh_max=chance.choice((2 * HOUR, 8 * HOUR, 48 * HOUR))),
            replace(configuration, robots_ttl=chance.choice((HOUR, 24 * HOUR))),
            replace(configuration, cycle_minutes=chance.choice((0, 60, LONGEST_CYCLE // 60)), cycle_mode=_mode(chance)),
            replace(configuration, continuous=not configuration.continuous),
            replace(configuration, orphans_after=chance.choice((None, 1, 2, 5))),
        )
    )


def scheduled(configuration: Configuration, chance: random.Random) -> Configuration:
    """The same with everything fetched again by a schedule, with smart refresh or without."""
    return replace(configuration, smart=chance.random() < 0.4, schedule=chance.choice(("0 * * * *", "*/20 * * * *", "@hourly")))


def _mode(chance: random.Random) -> str:
    return chance.choice(("scratch", "append", "prioritized", "soft"))


def _rules(web: Web, chance: random.Random) -> tuple[Rule, ...]:
    first, *others = web.sites
    rules = [Rule(True, "domain", first)]
    for host in others:
        name, _, port = host.partition(":")
        pattern = chance.choice((host, name, f"{name[0]}*", f"{name}:{port or 80}", f"{name}:81"))
        if chance.random() < 0.6:
            rules.append(Rule(chance.random() < 0.5, "domain", pattern))
    if chance.random() < 0.3:
        rules.append(Rule(False, "domain", "*"))
    for _ in range(chance.randint(0, 2)):
        home = f"http://{chance.choice(list(web.sites))}/"
        pages = [page.url for page in web.pages.values() if path_of(page.url)[1] in "pq"]
        target = chance.choice((f"{home}p/", f"{home}q/sub", f"{home}deep/", f"{home}r/", "http://*/q/", chance.choice(pages)))
        rules.append(Rule(chance.random() < 0.3, "prefix", target))
    return tuple(rules)


def _toggled(rules: tuple[Rule, ...], web: Web, chance: random.Random) -> tuple[Rule, ...]:
    """The same rules, but for a host that goes or comes."""
    host = chance.choice(list(web.sites)[1:])
    forbid = Rule(False, "domain", host)
    if forbid in rules:
        return tuple(rule for rule in rules if rule != forbid)
    return (forbid, *rules)


def _global_rules(web: Web, chance: random.Random) -> tuple[Rule, ...]:
    hosts = [host.partition(":")[0] for host in web.sites]
    rules = [Rule(chance.random() < 0.8, "domain", host) for host in hosts if chance.random() < 0.6]
    return (*rules, Rule(True, "domain", "*")) if chance.random() < 0.2 else tuple(rules)
