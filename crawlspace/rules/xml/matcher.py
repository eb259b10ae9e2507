"""The compiled rules of a rules.xml: the combined actions for a URL.

All matching rules are applied in order; a later one overrides an earlier one. Few URLs match a new combination of comparisons, so
the result is cached by the set of matching comparisons and shared by all URLs with the same set.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple, cast

from crawlspace.cache import RecentByWeight
from crawlspace.decision import Actions, Applied, Conditional, MetaTag, Render, RuleRef
from crawlspace.rules.xml.comparisons import AtomMatcher
from crawlspace.rules.xml.model import Action, ActionKind, ActionRule, ActionRuleSet, And, Atom, Condition, Kind, Norm, Not, Or
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
    if kind in _MODES:
        return Setting((_MODES[kind],), action.mode or "", f"{_MODES[kind]} {action.mode}")
    return Setting((_FIELD, action.name), action.value, f"{action.name} = {action.value}")


_ACCEPT = ("accept",)
_RENDER = ("render",)
_FIELD = "field"
_MODES = {
    ActionKind.META_NO_INDEX: "noindex of pages",
    ActionKind.META_NO_FOLLOW: "nofollow of pages",
    ActionKind.CONDITIONAL_GET: "conditional requests",
}
_OF_PAGES = frozenset({_MODES[ActionKind.META_NO_INDEX], _MODES[ActionKind.META_NO_FOLLOW]})
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
            **{(aspect,): "" for aspect in _MODES.values()},
        }
        self.renders = any(
            action.kind is ActionKind.RENDER and action.mode is not Render.NEVER
            for rule in rules.rules
            for action in rule.actions
        )
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
        of_pages = _settings(rules.rules, roots, conditions, aspects=_OF_PAGES)
        self.meta_hash = _hash(of_pages) if of_pages else ""
        """As `content_hash`, but of which robots directives of pages have no effect; empty if all have."""
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
        self._without_atoms = frozenset(position for position, root in enumerate(roots) if values.get(root, False))
        """The rules that match when no atom holds."""
        triggers = conditions.triggers(Counter(atom for root in roots for atom in conditions.atoms_of(root)))
        self._triggered_by: dict[int, list[int]] = {}
        """By atom, the rules to evaluate when it holds: they may begin or cease to match."""
        for position, root in enumerate(roots):
            for atom in triggers[root]:
                self._triggered_by.setdefault(atom, []).append(position)
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
        triggered = {position for atom in atoms if atom in triggered_by for position in triggered_by[atom]}
        if not triggered:
            return tuple(sorted(self._without_atoms))
        values = dict.fromkeys(atoms, True)
        nodes = self._nodes
        matched = set(self._without_atoms - triggered)
        for position in triggered:
            rule = self._compiled[position]
            for number in rule.nodes:
                if number not in values:
                    values[number] = nodes[number].holds(values)
            if values.get(rule.root, False):
                matched.add(position)
        return tuple(sorted(matched))

    def _applied(self, matched: Sequence[int]) -> Actions:
        now = dict(self._before)
        deciding: RuleRef | None = None
        applied: list[Applied] = []
        for position in matched:
            rule = self._compiled[position]
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
            ignores_noindex=now["noindex of pages",] == MetaTag.IGNORE,
            ignores_nofollow=now["nofollow of pages",] == MetaTag.IGNORE,
            conditional=Conditional(str(now["conditional requests",])) if now["conditional requests",] else None,
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


# --- Conditions as one graph without duplicates, so that a rule is evaluated only when a URL may match it ----------
# Each different comparison and combination is one node, whatever the order of its parts. Each node has a set of trigger atoms:
# while none of them holds, the node has the same value as when no atom holds at all. For an `And` that is false then, the triggers
# of any one of its false parts are enough. A rule is evaluated only when one of its trigger atoms holds.


class Joint(Enum):
    AND = "and"
    OR = "or"
    NOT = "not"


class Node(NamedTuple):
    """A combination of nodes with smaller numbers, in their order."""

    joint: Joint
    parts: tuple[int, ...]

    def holds(self, values: Mapping[int, bool]) -> bool:
        """Return the value of the node for the values of its parts; a missing one is false."""
        if self.joint is Joint.AND:
            return all(values.get(part, False) for part in self.parts)
        if self.joint is Joint.OR:
            return any(values.get(part, False) for part in self.parts)
        return not values.get(self.parts[0], False)


class Conditions:
    """Nodes by number. Conditions can only be added; there is no recursion, so they may have any depth."""

    def __init__(self) -> None:
        self.atoms: dict[int, Atom] = {}
        self.nodes: dict[int, Node] = {}
        self._numbers: dict[Atom | Node, int] = {}

    def add(self, condition: Condition) -> int:
        """Return the number of a condition; conditions equal but for the order of parts, or irrelevant case, share one."""
        numbered: list[int] = []
        waiting: list[tuple[Condition, bool]] = [(condition, False)]
        while waiting:
            this, parts_numbered = waiting.pop()
            if isinstance(this, Atom):
                numbered.append(self._number(_plain(this)))
                continue
            parts = (this.part,) if isinstance(this, Not) else this.parts
            if not parts_numbered:
                waiting.append((this, True))
                waiting += [(part, False) for part in parts]
                continue
            start = len(numbered) - len(parts)
            own = numbered[start:]
            del numbered[start:]
            numbered.append(self._negated(own[0]) if isinstance(this, Not) else self._joined(this, own))
        return numbered[0]

    def below(self, root: int) -> tuple[int, ...]:
        """Return the combinations that a node consists of, itself included, each after its parts."""
        found: set[int] = set()
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number in self.nodes and number not in found:
                found.add(number)
                waiting += self.nodes[number].parts
        return tuple(sorted(found))

    def atoms_of(self, root: int) -> set[int]:
        """Return the atoms that a node consists of."""
        if root in self.atoms:
            return {root}
        return {part for number in self.below(root) for part in self.nodes[number].parts if part in self.atoms}

    def without_atoms(self) -> dict[int, bool]:
        """Return the value of each combination when no atom holds."""
        values: dict[int, bool] = {}
        for number, node in self.nodes.items():
            values[number] = node.holds(values)
        return values

    def triggers(self, uses: Mapping[int, int]) -> dict[int, frozenset[int]]:
        """Return the trigger atoms of each node (see the module), as few and as rarely used ones as possible.

        `uses` is the number of rules that use an atom.
        """
        values = self.without_atoms()
        triggers = {number: frozenset({number}) for number in self.atoms}
        for number, node in self.nodes.items():
            deciding = node.joint is Joint.OR  # a part with this value decides
            settling = [part for part in node.parts if node.joint is not Joint.NOT and values.get(part, False) is deciding]
            if settling:
                triggers[number] = min((triggers[part] for part in settling), key=lambda atoms: sum(uses[atom] for atom in atoms))
            else:
                triggers[number] = frozenset().union(*(triggers[part] for part in node.parts))
        return triggers

    def digests(self) -> dict[int, str]:
        """Return for each node a text that is equal for equal conditions, whatever the order of adding."""
        digests = {number: _digest(repr((*map(str, atom_key(atom)),))) for number, atom in self.atoms.items()}
        for number, node in self.nodes.items():
            digests[number] = _digest(f"{node.joint.value} {' '.join(sorted(digests[part] for part in node.parts))}")
        return digests

    def _joined(self, this: And | Or, own: Iterable[int]) -> int:
        joint = Joint.AND if isinstance(this, And) else Joint.OR
        parts: set[int] = set()
        for number in own:
            node = self.nodes.get(number)
            parts.update(node.parts if node is not None and node.joint is joint else (number,))
        if len(parts) == 1:
            return parts.pop()
        return self._number(Node(joint, tuple(sorted(parts))))

    def _negated(self, number: int) -> int:
        node = self.nodes.get(number)
        if node is not None and node.joint is Joint.NOT:
            return node.parts[0]
        return self._number(Node(Joint.NOT, (number,)))

    def _number(self, this: Atom | Node) -> int:
        number = self._numbers.get(this)
        if number is None:
            number = self._numbers[this] = len(self._numbers)
            if isinstance(this, Atom):
                self.atoms[number] = this
            else:
                self.nodes[number] = this
        return number


def atom_key(atom: Atom) -> Sequence[object]:
    """Return the values that identify an atom."""
    return (atom.field.value, atom.kind.value, atom.norm.value, type(atom.value).__name__, atom.value)


def _plain(atom: Atom) -> Atom:
    """Return the atom as compared: plain text without case in lower case, and lengths without a norm."""
    if atom.kind is Kind.LENGTH:
        return Atom(atom.field, atom.kind, atom.value, Norm.NONE)
    if isinstance(atom.value, str) and atom.norm is Norm.NORM:
        return Atom(atom.field, atom.kind, atom.value.lower(), Norm.NORM)
    return atom


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
