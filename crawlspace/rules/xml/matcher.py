"""The rules of a rules.xml compiled: what all of them together say of a URL.

Every rule that matches is applied in its order, and a later one overrides what an earlier one set. Few URLs match a new combination of
comparisons, so the answer is remembered for the comparisons that hold, and shared by all URLs that are alike in them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, cast

from crawlspace.cache import RecentByWeight
from crawlspace.decision import Actions, Applied, RuleRef
from crawlspace.rules.xml.comparisons import AtomMatcher
from crawlspace.rules.xml.conditions import Conditions
from crawlspace.rules.xml.model import Action, ActionKind, ActionRule, ActionRuleSet
from crawlspace.urls import Url

_REMEMBERED = 100_000
"""So many numbers of atoms and rules are kept in mind at a time, twice over; each costs about 100 bytes."""


class Setting(NamedTuple):
    """What an action sets. `aspect` is what it overrides an earlier one of: a flag, the shift, the label, or a field by name."""

    aspect: tuple[str, ...]
    value: bool | int | str
    words: str
    """As a person would say it."""


def setting(action: Action) -> Setting:
    """Return what an action sets."""
    kind = action.kind
    if kind in _FLAGS:
        aspect, on = _FLAGS[kind]
        return Setting((aspect,), on, f"{aspect} {'on' if on else 'off'}")
    if kind is ActionKind.PRIORITY:
        return Setting(("priority",), action.shift, f"priority {action.shift}")
    if kind is ActionKind.SOURCE:
        return Setting(("source",), action.name, f"source {action.name}")
    return Setting((_FIELD, action.name), action.value, f"{action.name} = {action.value}")


_ACCEPT = ("accept",)
_FIELD = "field"
_FLAGS = {
    ActionKind.ACCEPT: ("accept", True),
    ActionKind.IGNORE: ("accept", False),
    ActionKind.INDEX: ("index", True),
    ActionKind.NO_INDEX: ("index", False),
    ActionKind.FOLLOW: ("follow", True),
    ActionKind.NO_FOLLOW: ("follow", False),
}


class CompiledActions:
    """Compiled once; what it remembers changes no answer."""

    def __init__(self, rules: ActionRuleSet, *, accept: bool, index: bool, follow: bool) -> None:
        """The flags are what holds before the first rule."""
        self.rules = rules
        self.accept = accept
        self._before: dict[tuple[str, ...], bool | int | str] = {
            _ACCEPT: accept,
            ("index",): index,
            ("follow",): follow,
            ("priority",): 0,
            ("source",): "",
        }
        conditions = Conditions()
        roots = [conditions.add(rule.condition) for rule in rules.rules]
        self.content_hash = _content_hash(rules.rules, roots, conditions, defaults=(accept, index, follow))
        """Hexadecimal; another value means that some answer could be another."""
        self.fields_hash = _fields_hash(rules.rules, roots, conditions)
        """As `content_hash`, of what is added to documents alone; empty where nothing is."""
        self._atoms = AtomMatcher(conditions.atoms)
        self._nodes = conditions.nodes
        self._compiled = [
            _Compiled(rule.ref, root, conditions.below(root), tuple(map(setting, rule.actions)))
            for rule, root in zip(rules.rules, roots, strict=True)
        ]
        values = conditions.without_atoms()
        self._without_atoms = frozenset(place for place, root in enumerate(roots) if values.get(root, False))
        """The rules that match where no atom holds."""
        turning = conditions.turning(Counter(atom for root in roots for atom in conditions.atoms_of(root)))
        self._turned_by: dict[int, list[int]] = {}
        """By atom, the rules that may be turned by it: from matching to not matching, or the other way."""
        for place, root in enumerate(roots):
            for atom in turning[root]:
                self._turned_by.setdefault(atom, []).append(place)
        self._by_atoms: RecentByWeight[frozenset[int], Actions] = RecentByWeight(
            _REMEMBERED, lambda atoms, said: 1 + len(atoms) + len(said.applied)
        )
        self._by_rules: RecentByWeight[tuple[int, ...], Actions] = RecentByWeight(
            _REMEMBERED, lambda rules, _: 1 + 2 * len(rules)
        )

    def evaluate(self, url: Url) -> Actions:
        """Return what the rules say of a URL; the same object for URLs of which the same atoms hold, while it is remembered."""
        atoms = self._atoms.matching(url)
        said = self._by_atoms.get(atoms)
        if said is None:
            matched = self._matched(atoms)
            said = self._by_rules.get(matched)
            if said is None:
                said = self._applied(matched)
                self._by_rules.put(matched, said)
            self._by_atoms.put(atoms, said)
        return said

    def _matched(self, atoms: frozenset[int]) -> tuple[int, ...]:
        """The places of the rules that match, in their order."""
        turned_by = self._turned_by
        turned = {place for atom in atoms if atom in turned_by for place in turned_by[atom]}
        if not turned:
            return tuple(sorted(self._without_atoms))
        values = dict.fromkeys(atoms, True)
        nodes = self._nodes
        matched = set(self._without_atoms - turned)
        for place in turned:
            rule = self._compiled[place]
            for number in rule.nodes:
                if number not in values:
                    values[number] = nodes[number].holds(values)
            if values.get(rule.root, False):
                matched.add(place)
        return tuple(sorted(matched))

    def _applied(self, matched: Sequence[int]) -> Actions:
        now = dict(self._before)
        deciding: RuleRef | None = None
        applied: list[Applied] = []
        for place in matched:
            rule = self._compiled[place]
            changed: list[str] = []
            without_effect: list[str] = []
            for aspect, value, words in rule.settings:
                (without_effect if now.get(aspect) == value else changed).append(words)
                now[aspect] = value
                if aspect == _ACCEPT:
                    deciding = rule.ref
            applied.append(Applied(rule.ref, tuple(changed), tuple(without_effect)))
        return Actions(
            accept=bool(now[_ACCEPT]),
            index=bool(now["index",]),
            follow=bool(now["follow",]),
            shift=cast("int", now["priority",]),
            rule=deciding,
            label=str(now["source",]),
            fields=tuple(sorted((aspect[1], str(value)) for aspect, value in now.items() if aspect[0] == _FIELD)),
            applied=tuple(applied),
        )


class _Compiled(NamedTuple):
    ref: RuleRef
    root: int
    nodes: tuple[int, ...]
    settings: tuple[Setting, ...]


def _content_hash(
    rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions, *, defaults: tuple[bool, bool, bool]
) -> str:
    """Places, groups, keys and the order of parts don't count, nor does an action that a later one of its rule overrides."""
    return _hash({"format": 1, "before": defaults, "rules": _settings(rules, roots, conditions)})


def _fields_hash(rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions) -> str:
    content = _settings(rules, roots, conditions, aspects=frozenset({_FIELD, "source"}))
    return _hash({"format": 1, "rules": content}) if content else ""


def _settings(
    rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions, *, aspects: frozenset[str] | None = None
) -> list[object]:
    """What each rule sets, where; only of these aspects, if any are named."""
    digests = conditions.digests()
    content: list[object] = []
    for rule, root in zip(rules, roots, strict=True):
        last = {one.aspect: one.value for one in map(setting, rule.actions) if aspects is None or one.aspect[0] in aspects}
        if last:
            content.append([digests[root], sorted([list(aspect), value] for aspect, value in last.items())])
    return content


def _hash(content: object) -> str:
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
