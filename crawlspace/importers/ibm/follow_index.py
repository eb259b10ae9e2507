"""`followindex.rules`: which pages are indexed, and whose links are followed.

    rule = allow | forbid   follow | index   prefix   URL prefix with `*`

There are two lists, one for follow and one for index, and in each the first rule that applies decides. In rules.xml all rules are
applied and a later one overrides an earlier one, so the lists are reversed there. An `allow` also overrides a page's own META
robots; that has no counterpart, and the remaining effect is that the rules below don't apply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.importers.expressions import atom, expression_atom
from crawlspace.importers.files import xml_comment, xml_rule
from crawlspace.rules.crawl_rules import MAX_MISTAKES, AddressRule, DomainRule, PrefixRule, RuleAction, parse_crawl_rules
from crawlspace.rules.xml.model import Field, Kind, Norm
from crawlspace.text import quoted

SUBJECTS = ("index", "follow")
_ACTIONS = {
    ("index", RuleAction.ALLOW): "Index",
    ("index", RuleAction.FORBID): "NoIndex",
    ("follow", RuleAction.ALLOW): "Follow",
    ("follow", RuleAction.FORBID): "NoFollow",
}
_SECOND = re.compile(r"\s*\S+\s+(\S+)")
MOST_RULES = 10_000
"""Maximal rules of a file: rules.xml has its own limit."""


@dataclass(frozen=True, slots=True)
class FollowIndexRule:
    subject: str
    """`index` or `follow`."""
    rule: PrefixRule
    text: str
    """As written."""

    @property
    def line(self) -> int:
        return self.rule.ref.line

    @property
    def is_forbid(self) -> bool:
        return self.rule.action is RuleAction.FORBID

    @property
    def action(self) -> str:
        """The action of rules.xml."""
        return _ACTIONS[self.subject, self.rule.action]


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
    rules: Sequence[PrefixRule] = ()
    try:
        read = parse_crawl_rules("\n".join(lines), file=file)
    except RuleFileError as error:
        mistakes += [replace(mistake, text=written[mistake.line - 1]) for mistake in error.mistakes]
    else:
        rules = read.prefix
        others: tuple[DomainRule | AddressRule, ...] = (*read.domain, *read.address)
        for other in others:
            mistakes.append(
                Mistake(file, other.ref.line, other.column, "a rule about follow or index has a prefix", other.ref.text)
            )
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
    """Return the rules without each `allow` that no `forbid` of its list follows: everything is allowed there anyway."""
    last = {
        subject: max((n for n, one in enumerate(rules) if one.subject == subject and one.is_forbid), default=-1)
        for subject in SUBJECTS
    }
    return [one for number, one in enumerate(rules) if one.is_forbid or number < last[one.subject]]


def xml_lines(rules: Sequence[tuple[FollowIndexRule, str]], *, file: str) -> list[str]:
    """Return the lines of rules.xml for rules and their conditions: each list reversed, successive rules with one action as one rule."""
    lines: list[str] = []
    for subject in SUBJECTS:
        backwards = [one for one in reversed(rules) if one[0].subject == subject]
        for action, group in groupby(backwards, key=lambda one: one[0].action):
            lines += _xml_rule(list(group), action, file=file)
    return lines


def _xml_rule(rules: Sequence[tuple[FollowIndexRule, str]], action: str, *, file: str) -> list[str]:
    origins = [f"{file}:{one.line}: {one.text}" for one, _ in rules]
    if len(rules) == 1:
        return xml_rule(origins, rules[0][1], [f"<{action}/>"])
    parts = [f"      {xml_comment(origin)}\n      {condition}" for origin, (_, condition) in zip(origins, rules, strict=True)]
    return xml_rule([], "\n".join(["<Or>", *parts, "    </Or>"]), [f"<{action}/>"])


def condition(pattern: str) -> str:
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
