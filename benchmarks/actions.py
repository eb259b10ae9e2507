"""URLs decided a second with a rules.xml: `python -m benchmarks.actions [--urls 100000]`.

2,000 rules as on a grown intranet: domains, folders, extensions and queries, every other one with a regular expression, with And
and Not. The URLs are all different, on 200 hosts, and about a third of them match a rule. The cost of 2,000 rules is compared
with that of ten on the same URLs. Then twenty expressions that make a backtracking matcher explode are compared with twenty
harmless ones, where each tenth URL triggers them. All times are CPU times, the best of some runs, each with empty caches.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.measure import BenchmarkFailed, Row, finish, say
from crawlspace.decision import RuleRef
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import (
    Action,
    ActionKind,
    ActionRule,
    ActionRuleSet,
    And,
    Atom,
    Condition,
    Expression,
    Field,
    Kind,
    Norm,
    Not,
    Or,
    Range,
)
from crawlspace.urls import Url, parse

_RULES = 2_000
_HOSTS = 200
_RATE = 50_000
"""URLs/s that 2,000 rules must decide."""
_LEAST_RATIO = 0.8
"""What exploding expressions may leave of the speed that others leave."""
_REPEAT = 3

# Each of them takes a matcher that goes back, or an automaton without bound, from seconds to years on some text.
_EXPLODING = (
    "(a+)+$", "(a|aa)+$", "(a|a?)+$", "(.*a){12}$", "(a*)*$", "([a-z]+)*[0-9]$", "(x+x+)+y", "(.*,){11}P", "(a|b|ab)*c", "^(([a-z])+.)+[A-Z]$",
    "(aa|a)*b$", "((a{1,9}){1,9}){1,9}b", "(.+)+=$", "([^/]+/?)+!$", "(/?[a-z0-9]+)+$", "(?:a?){25}a{25}", "(a+a+)+z", "(.*.*)=(.*.*);", "(\\w+\\s?)*$",
    "(-+)+x$",
)  # fmt: skip
_HARMLESS = tuple(f"[0-9]{{3}}[a-z]{n}" for n in range(len(_EXPLODING)))
"""As the others, they have no literal text to search for first, so that each is tried on each URL."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the rules of a rules.xml.")
    parser.add_argument("--urls", type=int, default=100_000)
    options = parser.parse_args(arguments)
    urls = _urls(options.urls)
    rows: list[Row] = []

    def row(measure: str, value: str, target: str = "", *, met: bool | None = None) -> None:
        rows.append(Row("actions", measure, value, target, met))
        say(str(rows[-1]))

    rules = _rules(_RULES)
    building = _seconds(lambda: _compiled(rules))
    row("ms to compile 2,000 rules", f"{1000 * building:.0f}")
    compiled = _compiled(rules)
    matched = sum(bool(compiled.evaluate(url).applied) for url in urls) / len(urls)
    if not 0.25 < matched < 0.45:
        raise BenchmarkFailed(f"{matched:.0%} of the URLs match a rule, which is not about a third")
    row("of the URLs match a rule", f"{matched:.0%}")

    many, few = _rates([_asking(_rules(number)) for number in (_RULES, 10)], urls)
    row("URLs/s decided by 2,000 rules", f"{many:,.0f}", f">= {_RATE:,}", met=many >= _RATE)
    row("URLs/s decided by 10 rules", f"{few:,.0f}")
    row("2,000 rules / 10 rules", f"{many / few:.2f}")
    plain = _plain_rules(20_000)
    row("ms to compile 20,000 plain rules", f"{1000 * _seconds(lambda: _compiled(plain)):.0f}")
    row("URLs/s decided by 20,000 plain rules", f"{_rates([_asking(plain)], urls)[0]:,.0f}")

    without, with_rules = _rates([_deciding(actions) for actions in (None, rules)], urls)
    row("URLs/s, the whole decision without rules.xml", f"{without:,.0f}")
    row("URLs/s, the whole decision with 2,000 rules", f"{with_rules:,.0f}")

    set_off = _set_off(urls)
    exploding, harmless, none = _rates([_asking(_with(rules, more)) for more in (_EXPLODING, _HARMLESS, ())], set_off)
    ratio = exploding / harmless
    row("20 more expressions, exploding / harmless ones", f"{ratio:.2f}", f">= {_LEAST_RATIO}", met=ratio >= _LEAST_RATIO)
    row("URLs/s decided with the exploding ones", f"{exploding:,.0f}", f">= {_RATE:,}", met=exploding >= _RATE)
    row("2,000 rules with the exploding ones / without any", f"{exploding / none:.2f}")
    return rows


def _rules(count: int) -> ActionRuleSet:
    """Return rules in sets of ten, each with one rule of each shape."""
    return _numbered([_shape(number) for number in range(count)])


def _shape(n: int) -> tuple[Condition, tuple[Action, ...]]:
    site = _domain(f"site{n % (5 * _HOSTS) // 5}.example.com")
    match n % 10:
        case 0:
            return site, (Action(ActionKind.SOURCE, f"site{n}"),)
        case 1:
            return And((site, _path(f"/archive{n}/"))), (Action(ActionKind.IGNORE),)
        case 2:
            return _path(Expression(rf"/docs{n}/.*/old")), (Action(ActionKind.NO_INDEX),)
        case 3:
            return And((_ext(Expression(rf"\.do{n}[a-z]?")), Not(_inside("keep=yes")))), (Action(ActionKind.NO_INDEX),)
        case 4:
            return _inside(Expression(rf"(?:^|&)session{n}=[0-9a-f]+")), (Action(ActionKind.IGNORE),)
        case 5:
            return Atom(Field.URL, Kind.INSIDE, Expression(rf"/news{n}/20[0-9]{{2}}/[0-9]+")), (
                Action(ActionKind.PRIORITY, shift=-1),
            )
        case 6:
            return _inside(f"view{n}=print"), (Action(ActionKind.NO_INDEX), Action(ActionKind.NO_FOLLOW))
        case 7:
            return And((site, _ext(".pdf"), Not(_path(f"/public{n}/")))), (Action(ActionKind.ADD_META, "kind", "document"),)
        case 8:
            return And((Or((_path(f"/Team{n}/", Norm.NONE), _path(f"/team-{n}/"))), Not(_path(f"/team-{n}/open/")))), (
                Action(ActionKind.NO_FOLLOW),
            )
        case _:
            return And(
                (Atom(Field.PATH, Kind.INSIDE, Expression(rf"/\d+-item{n}[./]")), Atom(Field.QUERY, Kind.LENGTH, Range(1, None)))
            ), (Action(ActionKind.PRIORITY, shift=2),)


def _plain_rules(count: int) -> ActionRuleSet:
    rules: list[tuple[Condition, tuple[Action, ...]]] = []
    for n in range(count):
        condition: Condition = (_domain(f"dept{n}.site{n % _HOSTS}.example.com"), _path(f"/docs{n}/"), _inside(f"session{n}="))[
            n % 3
        ]
        rules.append((condition, (Action(ActionKind.NO_INDEX),)))
    return _numbered(rules)


def _with(rules: ActionRuleSet, expressions: Sequence[str]) -> ActionRuleSet:
    more: list[tuple[Condition, tuple[Action, ...]]] = [
        (
            Atom((Field.PATH, Field.QUERY)[n % 2], (Kind.INSIDE, Kind.EXACT, Kind.SUFFIX)[n % 3], Expression(source)),
            (Action(ActionKind.INDEX),),
        )
        for n, source in enumerate(expressions)
    ]
    return ActionRuleSet(rules.rules + _numbered(more).rules)


def _numbered(rules: Sequence[tuple[Condition, tuple[Action, ...]]]) -> ActionRuleSet:
    return ActionRuleSet(
        tuple(
            ActionRule(RuleRef("rules.xml", line, f"rule {line}"), condition, done)
            for line, (condition, done) in enumerate(rules, 1)
        )
    )


def _domain(name: str) -> Or:
    return Or((Atom(Field.HOST, Kind.SUFFIX, f".{name}"), Atom(Field.HOST, Kind.EXACT, name)))


def _path(start: str | Expression, norm: Norm = Norm.NORM) -> Atom:
    return Atom(Field.PATH, Kind.PREFIX, start, norm)


def _ext(end: str | Expression) -> Atom:
    return Atom(Field.PATH, Kind.SUFFIX, end)


def _inside(text: str | Expression) -> Atom:
    return Atom(Field.QUERY, Kind.INSIDE, text)


def _urls(count: int) -> list[Url]:
    """Return different URLs; every third is made for a rule, the others look alike but match none."""
    chosen = random.Random(7)
    made: list[Url] = []
    for number in range(count):
        n = chosen.randrange(_RULES)
        if number % 3:
            n += 1_000_000
        host = f"www.site{n % _HOSTS}.example.{'net' if number % 3 else 'com'}"
        made.append(parse(f"https://{host}{_rest(n, number)}"))
    return made


def _rest(n: int, number: int) -> str:
    return (
        f"/welcome/page-{number}.html",
        f"/archive{n}/{number}/index.html",
        f"/docs{n}/{number}/old/a.html",
        f"/app/{number}.do{n}?keep=no",
        f"/login?page={number}&session{n}=0123456789abcdef",
        f"/news{n}/2024/{number}",
        f"/page/{number}?view{n}=print",
        f"/library/{number}/report.pdf",
        f"/team-{n}/minutes/{number}.html",
        f"/shop/{number}-item{n}.html?colour=red",
    )[n % 10]


def _set_off(urls: Sequence[Url]) -> list[Url]:
    """Replace every tenth URL by one that many of the exploding expressions match or nearly match."""
    chosen = random.Random(11)
    made = list(urls)
    for number in range(0, len(made), 10):
        url = made[number]
        run = "".join(chosen.choice(("a", "aa", "ab", "x", "aaaaaaaa")) for _ in range(20))
        made[number] = parse(f"https://{url.host}/{run}{number}/{run}!?{run}{'a' * 30}{number}-")
    return made


def _compiled(rules: ActionRuleSet) -> CompiledActions:
    return CompiledActions(rules, accept=True, index=True, follow=True)


def _asking(rules: ActionRuleSet) -> Callable[[], Callable[[Url], object]]:
    return lambda: _compiled(rules).evaluate


def _deciding(rules: ActionRuleSet | None) -> Callable[[], Callable[[Url], object]]:
    return lambda: CrawlSpace(CrawlRules(), Limits(), [], actions=None if rules is None else _compiled(rules)).decide_url


def _rates(makers: Sequence[Callable[[], Callable[[Url], object]]], urls: Sequence[Url]) -> list[float]:
    """Return the URLs a second of each, run in turn; the object under test is created for each run, which is not timed."""
    best = [float("inf")] * len(makers)
    for _ in range(_REPEAT):
        for place, make in enumerate(makers):
            decide = make()
            began = time.process_time()
            for url in urls:
                decide(url)
            best[place] = min(best[place], time.process_time() - began)
    return [len(urls) / seconds for seconds in best]


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(finish(main))
