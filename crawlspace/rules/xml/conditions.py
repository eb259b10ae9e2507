"""Conditions as one graph without duplicates, so that a rule is evaluated only when a URL may match it.

Each different comparison and combination is one node, whatever the order of its parts. Each node has a set of trigger atoms:
while none of them holds, the node has the same value as when no atom holds at all. For an `And` that is false then, the triggers
of any one of its false parts are enough. A rule is evaluated only when one of its trigger atoms holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

from crawlspace.rules.xml.model import And, Atom, Condition, Kind, Norm, Not, Or


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
