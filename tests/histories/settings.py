"""Settings and rules drawn by chance: any, those that admit more than before, and those that fit the focus of a history."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace

from crawlspace.model import State, UrlState
from tests.histories import folded
from tests.histories.configuration import HOUR, LONGEST_CYCLE, Configuration, Rule
from tests.histories.drawn import Drawn
from tests.histories.web import Web, fails, path_of


def reconfigured(configuration: Configuration, web: Web, chance: random.Random) -> Configuration:
    """Return a configuration that differs in one respect. The first site's home page stays in the crawl space."""
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
    """Return the same configuration with a refresh schedule, with smart refresh or without."""
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
    """Return the same rules with a host added or removed."""
    host = chance.choice(list(web.sites)[1:])
    forbid = Rule(False, "domain", host)
    if forbid in rules:
        return tuple(rule for rule in rules if rule != forbid)
    return (forbid, *rules)


def _global_rules(web: Web, chance: random.Random) -> tuple[Rule, ...]:
    hosts = [host.partition(":")[0] for host in web.sites]
    rules = [Rule(chance.random() < 0.8, "domain", host) for host in hosts if chance.random() < 0.6]
    return (*rules, Rule(True, "domain", "*")) if chance.random() < 0.2 else tuple(rules)


# --- loosened ------------------------------------------------------------------------------------------------------


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
    """Return a configuration that refuses something."""
    for name in chance.sample(sorted(LOOSER), chance.randint(1, 3)):
        configuration = replace(configuration, **{name: chance.choice(LOOSER[name][:-1])})  # type: ignore[arg-type]
    if chance.random() < 0.5:
        configuration = replace(configuration, rules=(_forbid(web, chance), *configuration.rules))
    return configuration


def loosened(configuration: Configuration, chance: random.Random) -> Configuration | None:
    """Return the same configuration, but for one check that admits more; None where all admit all."""
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
    """Return the same web with other start URLs."""
    other = copy(web)
    other.starts = list(starts)
    return other


def needless(
    asked: Iterable[str], known: Mapping[str, UrlState], before: Configuration, web: Web, *, starts: Iterable[str]
) -> Iterator[str]:
    """Yield the URLs that were requested though the former checks had refused none of their links, and that are none of `starts`.

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
        assert state is not None
        if web.sitemaps is not None and web.sitemaps.may_call_changed(url, since=state.fetched_at or 0):
            continue  # its last fetch was before that, or it is never shown; a sitemap that a redirect was refused to is read only now
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


# --- focus ---------------------------------------------------------------------------------------------------------


def choose_focus(drawn: Drawn, chance: random.Random) -> str:
    """Choose the focus of a history; a third have none."""
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
    """Return a configuration under which the focus can happen."""
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
    """Make one change to the settings that the focus depends on."""
    if focus == "folding":
        new = folded.changed(configuration, chance)
        folded.have_folded(web, new, chance)
        web.led_to |= set(map(configuration.folded, web.led_to))  # a page that was found there keeps the number of its redirects
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
