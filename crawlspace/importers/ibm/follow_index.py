"""`followindex.rules`: which pages are indexed, and whose links are followed.

    rule = allow | forbid   follow | index   prefix | domain   URL prefix or host, with `*`

There are two lists, one for follow and one for index, and in each the first rule that applies decides. In rules.xml all rules are
applied and a later one overrides an earlier one, so the lists are reversed there. An `allow` keeps the rules below it off, and
overrides a page's own META robots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.importers.expressions import atom, expression_atom
from crawlspace.importers.files import any_of, xml_comment, xml_rule
from crawlspace.rules.crawl_rules import MAX_MISTAKES, DomainRule, PrefixRule, RuleAction, parse_crawl_rules
from crawlspace.rules.xml.model import Field, Kind, Norm
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS

SUBJECTS = ("index", "follow")
_ACTIONS = {
    ("index", RuleAction.ALLOW): "Index",
    ("index", RuleAction.FORBID): "NoIndex",
    ("follow", RuleAction.ALLOW): "Follow",
    ("follow", RuleAction.FORBID): "NoFollow",
}
_META = {"index": "MetaNoIndex", "follow": "MetaNoFollow"}
_SECOND = re.compile(r"\s*\S+\s+(\S+)")
MOST_RULES = 10_000
"""Maximal rules of a file: rules.xml has its own limit."""


@dataclass(frozen=True, slots=True)
class FollowIndexRule:
    subject: str
    """`index` or `follow`."""
    rule: PrefixRule | DomainRule
    text: str
    """As written."""

    @property
    def line(self) -> int:
        return self.rule.ref.line

    @property
    def is_forbid(self) -> bool:
        return self.rule.action is RuleAction.FORBID

    def actions(self, *, keeps_off: bool) -> tuple[str, ...]:
        """Return the actions of rules.xml; `keeps_off`: whether rules below an `allow` could apply otherwise."""
        own = _ACTIONS[self.subject, self.rule.action]
        if self.is_forbid:
            return (own,)
        return (own, _META[self.subject]) if keeps_off else (_META[self.subject],)


def parse_follow_index(text: str, *, file: str) -> list[FollowIndexRule]:
    """Return the rules of a file. Raises RuleFileError with all mistakes.

    Without their second word the rules are those of crawl.rules, and are read as such.
    """
    written = text.split("\n")
    lines = written.copy()
    subjects: dict[int, str] = {}
    mistakes: list[Mistake] = []
    for number, line in enumerate(written, 1):
        if len(mistakes) >= MAX_MISTAKES:
            break
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _SECOND.match(line)
        word = found[1] if found else ""
        if found is None or word.lower() not in SUBJECTS:
            mistakes.append(Mistake(file, number, found.start(1) + 1 if found else len(line) + 1, _expected(word), line))
            lines[number - 1] = ""
            continue
        subjects[number] = word.lower()
        lines[number - 1] = f"{line[: found.start(1)]}{' ' * len(word)}{line[found.end(1) :]}"
    rules: Sequence[PrefixRule | DomainRule] = ()
    try:
        read = parse_crawl_rules("\n".join(lines), file=file)
    except RuleFileError as error:
        mistakes += [replace(mistake, text=written[mistake.line - 1]) for mistake in error.mistakes]
    else:
        rules = sorted((*read.prefix, *read.domain), key=lambda rule: rule.ref.line)
        for other in read.address:
            message = "a rule about follow or index has a prefix or a domain"
            mistakes.append(Mistake(file, other.ref.line, other.column, message, other.ref.text))
    if len(rules) > MOST_RULES:
        message = f"the file has {len(rules):,} rules, and {MOST_RULES:,} is the most; a * in a rule can take the place of many"
        mistakes.append(Mistake(file, 1, 1, message, ""))
    if mistakes:
        raise RuleFileError(sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column)))
    return [FollowIndexRule(subjects[rule.ref.line], rule, written[rule.ref.line - 1].strip()) for rule in rules]


def _expected(word: str) -> str:
    example = "as in 'forbid index prefix http://www.example.com/a/'"
    if not word:
        return f"expected follow or index, then prefix and a URL, {example}"
    return f"expected follow or index after the action, not {quoted(word)}: {did_you_mean(word, SUBJECTS, example)}"


def with_effect(rules: Sequence[FollowIndexRule]) -> list[FollowIndexRule]:
    """Return the rules without each `allow` that no `forbid` of its list follows: it keeps no rule off."""
    last = {
        subject: max((n for n, one in enumerate(rules) if one.subject == subject and one.is_forbid), default=-1)
        for subject in SUBJECTS
    }
    return [one for number, one in enumerate(rules) if one.is_forbid or number < last[one.subject]]


Written = tuple[FollowIndexRule, str, tuple[str, ...]]
"""A rule with its condition and its actions in rules.xml."""


def xml_lines(rules: Sequence[Written], *, file: str) -> list[str]:
    """Return the lines of rules.xml: each list reversed, successive rules with the same actions as one rule."""
    lines: list[str] = []
    for subject in SUBJECTS:
        backwards = [one for one in reversed(rules) if one[0].subject == subject]
        for actions, group in groupby(backwards, key=lambda one: one[2]):
            lines += _xml_rule(list(group), [f"<{action}/>" for action in actions], file=file)
    return lines


def _xml_rule(rules: Sequence[Written], actions: Sequence[str], *, file: str) -> list[str]:
    origins = [f"{file}:{one.line}: {one.text}" for one, _, _ in rules]
    if len(rules) == 1:
        return xml_rule(origins, rules[0][1], actions)
    parts = [f"      {xml_comment(origin)}\n      {condition}" for origin, (_, condition, _) in zip(origins, rules, strict=True)]
    return xml_rule([], "\n".join(["<Or>", *parts, "    </Or>"]), actions)


def condition(rule: PrefixRule | DomainRule) -> str:
    """Return the condition for a rule. Raises Untranslatable."""
    return _of_pattern(rule.pattern) if isinstance(rule, PrefixRule) else _of_host(rule.host.lower(), rule.port)


def _of_host(host: str, port: int | None) -> str:
    """Return the condition for the URLs of a host, which may have a *, on one port or on all."""
    if port is None:
        if "*" in host:
            return expression_atom(Field.HOST, Kind.EXACT, _value(host), Norm.NORM)
        return atom(Field.HOST, Kind.EXACT, host, Norm.NORM)
    written = host.replace("\\", r"\\").replace("*", r"\[\^/\]\*")
    schemes = [f"{scheme}://{written}{'' if port == usual else f':{port}'}/" for scheme, usual in DEFAULT_PORTS.items()]
    make = expression_atom if "*" in host else atom
    return any_of([make(Field.URL, Kind.PREFIX, start, Norm.NORM) for start in schemes])


def _of_pattern(pattern: str) -> str:
    """Return the condition for the pattern of a prefix rule: the host is compared without regard to case.

    With a * in the host, the path may match elsewhere. Raises Untranslatable.
    """
    scheme, _, rest = pattern.partition("://")
    authority, slash, tail = rest.partition("/")
    if "*" not in authority:
        host = _prefix(Field.URL, f"{scheme}://{authority}{slash}{'' if '*' in tail else tail}", Norm.NORM)
        return _both(host, _path(scheme, tail) if slash else "")
    return _both(_prefix(Field.URL, pattern, Norm.NORM), _prefix(Field.URL, f"{scheme}://*/{tail}", Norm.NONE) if tail else "")


def _path(scheme: str, tail: str) -> str:
    """Return the case-sensitive comparison of the part after the host; empty if there is none."""
    if not tail:
        return ""
    if "*" in tail:
        return expression_atom(Field.URL, Kind.PREFIX, rf"{scheme}://\[\^/\]\+/{_value(tail)}", Norm.NONE)
    path, mark, query = tail.partition("?")
    if not mark:
        return atom(Field.PATH, Kind.PREFIX, f"/{path}", Norm.NONE)
    whole = atom(Field.PATH, Kind.EXACT, f"/{path}", Norm.NONE)
    return f"{whole} {atom(Field.QUERY, Kind.PREFIX, query, Norm.NONE)}" if query else f"{whole} {_ANY_QUERY}"


_ANY_QUERY = '<Not> <Query val=""/> </Not>'


def _both(one: str, other: str) -> str:
    return f"<And> {one} {other} </And>" if other else one


def _prefix(field: Field, pattern: str, norm: Norm) -> str:
    if "*" in pattern:
        return expression_atom(field, Kind.PREFIX, _value(pattern), norm)
    return atom(field, Kind.PREFIX, pattern, norm)


def _value(pattern: str) -> str:
    """Return a pattern as a value of rules.xml."""
    return pattern.replace("\\", r"\\").replace("*", r"\.\*")
