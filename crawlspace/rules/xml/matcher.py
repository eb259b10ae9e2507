"""The compiled rules of a rules.xml: the combined actions for a URL.

All matching rules are applied in order; a later one overrides an earlier one. Few URLs match a new combination of comparisons, so
the result is cached by the set of matching comparisons and shared by all URLs with the same set.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, cast

from crawlspace.cache import RecentByWeight
from crawlspace.decision import Actions, Applied, Render, RuleRef
from crawlspace.rules.xml.comparisons import AtomMatcher
from crawlspace.rules.xml.conditions import Conditions
from crawlspace.rules.xml.model import Action, ActionKind, ActionRule, ActionRuleSet
from crawlspace.urls import Url

_CACHED = 100_000
"""Maximal numbers of atoms and rules in each generation of a cache; each takes about 100 bytes."""


class Setting(NamedTuple):
    """The effect of an action. `aspect` is what a later action overrides: a flag, the shift, the label, the mode of rendering, or a field by name."""

    aspect: tuple[str, ...]
    value: bool | int | str
    words: str
    """Text for users."""


def setting(action: Action) -> Setting:
    """Return the effect of an action."""
    kind = action.kind
    if kind in _FLAGS:
        aspect, on = _FLAGS[kind]
        return Setting((aspect,), on, f"{aspect} {'on' if on else 'off'}")
    if kind is ActionKind.PRIORITY:
        return Setting(("priority",), action.shift, f"priority {action.shift}")
    if kind is ActionKind.SOURCE:
        return Setting(("source",), action.name, f"source {action.name}")
    if kind is ActionKind.RENDER:
        return Setting(_RENDER, action.mode or "", f"render {action.mode}")
    return Setting((_FIELD, action.name), action.value, f"{action.name} = {action.value}")


_ACCEPT = ("accept",)
_RENDER = ("render",)
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
    """Immutable but for caches."""

    def __init__(
        self, rules: ActionRuleSet, *, accept: bool, index: bool, follow: bool, host_case_sensitive: bool = True
    ) -> None:
        """`accept`, `index` and `follow` are the values before the first rule; `host_case_sensitive` is for values compared as written."""
        self.rules = rules
        self.accept = accept
        self._before: dict[tuple[str, ...], bool | int | str] = {
            _ACCEPT: accept,
            ("index",): index,
            ("follow",): follow,
            ("priority",): 0,
            ("source",): "",
            _RENDER: "",
        }
        self.renders = any(action.mode not in (None, Render.NEVER) for rule in rules.rules for action in rule.actions)
        """Whether any rule has pages rendered."""
        conditions = Conditions()
        roots = [conditions.add(rule.condition) for rule in rules.rules]
        self.content_hash = _content_hash(rules.rules, roots, conditions, defaults=(accept, index, follow))
        """Hexadecimal; changes whenever a result may change."""
        self.accept_hash = _hash(
            {"before": accept, "rules": _settings(rules.rules, roots, conditions, aspects=frozenset(_ACCEPT))}
        )
        """As `content_hash`, but of which URLs are accepted."""
        self.fields_hash = _fields_hash(rules.rules, roots, conditions)
        """As `content_hash`, but of the metadata added to documents; empty if there is none."""
        if not host_case_sensitive:
            self.content_hash, self.accept_hash = (
                _hash([own, "host in any case"]) for own in (self.content_hash, self.accept_hash)
            )
        self._atoms = AtomMatcher(conditions.atoms, host_case_sensitive=host_case_sensitive)
        self._nodes = conditions.nodes
        self._compiled = [
            _Compiled(rule.ref, root, conditions.below(root), tuple(map(setting, rule.actions)))
            for rule, root in zip(rules.rules, roots, strict=True)
        ]
        values = conditions.without_atoms()
        self._without_atoms = frozenset(place for place, root in enumerate(roots) if values.get(root, False))
        """The rules that match when no atom holds."""
        triggers = conditions.triggers(Counter(atom for root in roots for atom in conditions.atoms_of(root)))
        self._triggered_by: dict[int, list[int]] = {}
        """By atom, the rules to evaluate when it holds: they may begin or cease to match."""
        for place, root in enumerate(roots):
            for atom in triggers[root]:
                self._triggered_by.setdefault(atom, []).append(place)
        self._by_atoms: RecentByWeight[frozenset[int], Actions] = RecentByWeight(
            _CACHED, lambda atoms, actions: 1 + len(atoms) + len(actions.applied)
        )
        self._by_rules: RecentByWeight[tuple[int, ...], Actions] = RecentByWeight(_CACHED, lambda rules, _: 1 + 2 * len(rules))

    def evaluate(self, url: Url) -> Actions:
        """Return the actions for a URL; the same object for URLs with the same matching atoms, while it is cached."""
        atoms = self._atoms.matching(url)
        actions = self._by_atoms.get(atoms)
        if actions is None:
            matched = self._matched(atoms)
            actions = self._by_rules.get(matched)
            if actions is None:
                actions = self._applied(matched)
                self._by_rules.put(matched, actions)
            self._by_atoms.put(atoms, actions)
        return actions

    def _matched(self, atoms: frozenset[int]) -> tuple[int, ...]:
        """Return the indices of the rules that match, in order."""
        triggered_by = self._triggered_by
        triggered = {place for atom in atoms if atom in triggered_by for place in triggered_by[atom]}
        if not triggered:
            return tuple(sorted(self._without_atoms))
        values = dict.fromkeys(atoms, True)
        nodes = self._nodes
        matched = set(self._without_atoms - triggered)
        for place in triggered:
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
            render=Render(str(now[_RENDER])) if now[_RENDER] else None,
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
    """Return the hash of the rules without places, groups, keys, the order of parts, and overridden actions of the same rule."""
    return _hash({"format": 1, "before": defaults, "rules": _settings(rules, roots, conditions)})


def _fields_hash(rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions) -> str:
    content = _settings(rules, roots, conditions, aspects=frozenset({_FIELD, "source"}))
    return _hash({"format": 1, "rules": content}) if content else ""


def _settings(
    rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions, *, aspects: frozenset[str] | None = None
) -> list[object]:
    """Return each rule's condition and effects; only of `aspects`, if given."""
    digests = conditions.digests()
    content: list[object] = []
    for rule, root in zip(rules, roots, strict=True):
        last = {one.aspect: one.value for one in map(setting, rule.actions) if aspects is None or one.aspect[0] in aspects}
        if last:
            content.append([digests[root], sorted([list(aspect), value] for aspect, value in last.items())])
    return content


def _hash(content: object) -> str:
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
