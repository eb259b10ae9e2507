"""Parsing of one `<Rule>` of a rules.xml: its condition, its actions, and its text in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from crawlspace.decision import Conditional, MetaTag, Render, RuleRef
from crawlspace.document import OWN_FIELDS, packed
from crawlspace.errors import did_you_mean
from crawlspace.rules.xml.model import (
    Action,
    ActionKind,
    ActionRule,
    And,
    Atom,
    Condition,
    Expression,
    Field,
    Kind,
    Mode,
    Norm,
    Not,
    Or,
    RegexSyntax,
)
from crawlspace.rules.xml.positions import Element, Mistakes
from crawlspace.rules.xml.spelling import BadValue
from crawlspace.rules.xml.values import TooLarge, program_size, read_in, syntax_of
from crawlspace.text import quoted

SHORTCUTS = {
    "Domain": (Field.HOST, Kind.SUFFIX),
    "Host": (Field.HOST, Kind.EXACT),
    "Path": (Field.PATH, Kind.PREFIX),
    "Ext": (Field.PATH, Kind.SUFFIX),
    "Url": (Field.URL, Kind.EXACT),
    "Scheme": (Field.SCHEME, Kind.EXACT),
    "Query": (Field.QUERY, Kind.EXACT),
    "InQuery": (Field.QUERY, Kind.INSIDE),
    "Length": (Field.PATH, Kind.LENGTH),
}
COMBINED = ("And", "Or", "Not")
CONDITIONS = (*COMBINED, "Atom", *SHORTCUTS)
ACTIONS = tuple(kind.value for kind in ActionKind)
LABEL = "source"
"""The metadata field that Source sets."""
MAX_REF = 200
"""Maximal characters of a rule's text in one line."""
MAX_INSTRUCTIONS = 2_000_000
"""Maximal instructions of RE2's programs for the large expressions of a file: about a second of compilation."""
_ORDINARY = 200
"""An expression with more instructions is large; the file size limits the others."""
_LARGEST = 400_000
"""About the number of instructions generated before RE2 reports an expression as too large."""

Choice = TypeVar("Choice", bound=StrEnum)


class RuleReader:
    """Parses the rules of one file, and adds mistakes to `mistakes`."""

    def __init__(self, file: str, mistakes: Mistakes, *, syntax: RegexSyntax) -> None:
        self._file = file
        self._syntax = syntax
        self._mistakes = mistakes
        self._instructions = 0

    def rule(self, element: Element, *, group: str, key: str) -> ActionRule | None:
        """Return the rule of an element whose children are conditions and actions; None after recording its mistakes."""
        before = self._mistakes.count
        self._known(element, ())
        condition: Condition | None = None
        first: Element | None = None
        has_condition = any(child.name in CONDITIONS for child in element.children)
        actions: list[Action] = []
        seen: dict[tuple[ActionKind, str], Element] = {}
        for child in element.children:
            if child.name in ACTIONS:
                if first is None and has_condition and not actions:
                    self._mistakes.at(child, f"{child.name} is an action, and the condition comes before the actions")
                action = self._action(child)
                self._check_beside(child, action, seen)
                actions.append(action)
            elif first is None:
                first, condition = child, self._condition(child)
            else:
                self._mistakes.at(child, f"a Rule has one condition, and this one has {first.name}; put both into And or Or")
                self._condition(child)
        if not element.spoiled:
            self._check_complete(element, condition=first, actions=actions)
        if condition is None or self._mistakes.count > before:
            return None
        text = f"{_conditions_text(element.children)}: {', '.join(_action_text(action) for action in actions)}"
        ref = RuleRef(self._file, element.line, _one_line(text))
        return ActionRule(ref, condition, tuple(_with_all_values(actions)), group, key)

    # --- conditions ------------------------------------------------------------------------------------------------

    def _condition(self, element: Element) -> Condition | None:
        if element.name in COMBINED:
            return self._combined(element)
        if element.name == "Atom":
            return self._atom(element)
        return self._shortcut(element)

    def _combined(self, element: Element) -> Condition | None:
        self._known(element, ())
        parts = [part for child in element.children if (part := self._condition(child)) is not None]
        if not element.children and not element.spoiled:
            self._mistakes.at(
                element, f"{element.name} is empty; it holds {'a condition' if element.name == 'Not' else 'conditions'}"
            )
        if element.name == "Not":
            for child in element.children[1:]:
                self._mistakes.at(child, "Not holds one condition; put several into And or Or inside it")
        if not parts:
            return None
        if element.name == "Not":
            return Not(parts[0])
        return And(tuple(parts)) if element.name == "And" else Or(tuple(parts))

    def _atom(self, element: Element) -> Condition | None:
        self._known(element, ("field", "kind", "norm", "value", "literal", "litteral"))
        field = self._one_of(element, "field", Field)
        kind = self._one_of(element, "kind", Kind, Kind.EXACT)
        return self._compared(element, "value" if self._needs(element, "value") else "", field, kind)

    def _shortcut(self, element: Element) -> Condition | None:
        field: Field | None
        field, kind = SHORTCUTS[element.name]
        known: tuple[str, ...] = ("val", "value", "norm", "literal", "litteral")
        if element.name == "Length":
            known = ("field", *known)
            field = self._one_of(element, "field", Field, field)
        self._known(element, known)
        return self._compared(element, self._either(element, "val", "value"), field, kind)

    def _compared(self, element: Element, attribute: str, field: Field | None, kind: Kind | None) -> Condition | None:
        """Return the comparison with the value of an attribute; None if a part is wrong, which has been recorded."""
        norm = self._one_of(element, "norm", Norm, Norm.NORM)
        literal = self._literal(element)
        if field is None or kind is None or norm is None or not attribute:
            return None
        try:
            text, syntax = element.attributes[attribute], syntax_of(element.name, self._syntax)
            found, value = read_in(syntax, text, field, kind=kind, norm=norm, literal=literal)
            if isinstance(value, Expression):
                self._take_instructions(program_size(value), element)
            if element.name != "Domain":
                return Atom(field, found, value, norm)
            if found is not kind:
                raise BadValue(r"Domain is of whole host names; leave \^ off")
        except BadValue as error:
            where = f" (character {error.at + 1} of {attribute})" if error.at else ""
            self._mistakes.at(element, f"{error}{where}")
            if isinstance(error, TooLarge):
                self._take_instructions(_LARGEST, element)
            return None
        below = Expression(rf"\.(?:{value.source})") if isinstance(value, Expression) else f".{value}"
        return Or((Atom(field, Kind.SUFFIX, below, norm), Atom(field, Kind.EXACT, value, norm)))

    def _take_instructions(self, instructions: int, element: Element) -> None:
        """Count instructions. Raise RuleFileError when the large expressions of the file exceed the limit together."""
        self._instructions += instructions if instructions > _ORDINARY else 0
        if self._instructions > MAX_INSTRUCTIONS:
            message = (
                f"the large expressions up to here make more than {MAX_INSTRUCTIONS:,} instructions in RE2, which is the most of a file; "
                r"a count such as \{1000\} makes thousands of them, and \+ only a few"
            )
            raise self._mistakes.end_at(element, message)

    def _literal(self, element: Element) -> bool:
        attribute = self._either(element, "literal", "litteral", needed=False)
        if not attribute:
            return False
        value = element.attributes[attribute]
        if value not in {"true", "false"}:
            self._mistakes.at(element, f"{attribute} is true or false, not {quoted(value)}")
        return value == "true"

    # --- actions ---------------------------------------------------------------------------------------------------

    def _action(self, element: Element) -> Action:
        """Return the action with the attributes that could be parsed."""
        kind = ActionKind(element.name)
        name = value = ""
        shift = 0
        mode: Mode | None = None
        if kind is ActionKind.SOURCE:
            self._known(element, ("name",))
            name = self._name(element)
        elif kind is ActionKind.ADD_META:
            self._known(element, ("name", "value"))
            name = self._name(element)
            if name in OWN_FIELDS:
                message = f"{quoted(name)} is a field that every document has; AddMeta adds others than {', '.join(OWN_FIELDS)}"
                self._mistakes.at(element, message)
            elif name == LABEL:
                message = (
                    f'{quoted(name)} is the field that Source sets; write <Source name="…"/>, or give the field another name'
                )
                self._mistakes.at(element, message)
            if self._needs(element, "value"):
                value = element.attributes["value"]
        elif kind is ActionKind.PRIORITY:
            self._known(element, ("shift",))
            shift = self._shift(element)
        elif kind in _MODES:
            self._known(element, ("mode",))
            mode = self._mode(kind, element)
        else:
            self._known(element, ())
        return Action(kind, name, value, shift, mode, line=element.line, column=element.column)

    def _mode(self, kind: ActionKind, element: Element) -> Mode | None:
        if kind is ActionKind.RENDER:
            return self._one_of(element, "mode", Render, Render.ALWAYS)
        if kind is ActionKind.CONDITIONAL_GET:
            return self._one_of(element, "mode", Conditional, Conditional.NEVER)
        return self._one_of(element, "mode", MetaTag, MetaTag.IGNORE)

    def _name(self, element: Element) -> str:
        if not self._needs(element, "name"):
            return ""
        name = element.attributes["name"]
        if not name.strip():
            written = ' value="…"' if element.name == ActionKind.ADD_META else ""
            self._mistakes.at(
                element, f'the name of {element.name} is empty; write <{element.name} name="…"{written}/>, or leave it off'
            )
        return name

    def _shift(self, element: Element) -> int:
        if not self._needs(element, "shift"):
            return 0
        value = element.attributes["shift"]
        if not _SHIFT.fullmatch(value):
            message = f"the shift is a whole number from -2 (first) to 2 (last), not {quoted(value)}"
            self._mistakes.at(element, message)
            return 0
        return int(value)

    def _check_beside(self, element: Element, action: Action, others: dict[tuple[ActionKind, str], Element]) -> None:
        """Record a repeated or contradicting action. `others` are the actions before, by kind and name; add this one."""
        kind, name = action.kind, ""
        if kind is ActionKind.ADD_META:
            if not action.name:
                return
            name = f"{action.name}={action.value}"
        opposite = others.get((_OPPOSITES[kind], "")) if kind in _OPPOSITES else None
        if (kind, name) in others:
            what = (
                f"{kind} {quoted(action.name)} is twice in this rule with the same value"
                if name
                else f"{kind} is twice in this rule"
            )
            self._mistakes.at(element, what)
        elif opposite is not None:
            self._mistakes.at(element, f"{kind} contradicts {opposite.name} of line {opposite.line}; a rule does one of them")
        others.setdefault((kind, name), element)

    def _check_complete(self, element: Element, *, condition: Element | None, actions: list[Action]) -> None:
        if condition is None and not actions:
            self._mistakes.at(element, "this Rule is empty; it holds a condition, then actions")
        elif condition is None:
            self._mistakes.at(element, f"this Rule has no condition; known are {', '.join(CONDITIONS)}")
        elif not actions:
            self._mistakes.at(element, f"this Rule has no action; known are {', '.join(ACTIONS)}")

    # --- attributes ------------------------------------------------------------------------------------------------

    def _known(self, element: Element, known: tuple[str, ...]) -> None:
        check_attributes(element, known, self._mistakes)

    def _needs(self, element: Element, attribute: str) -> bool:
        if attribute in element.attributes:
            return True
        self._mistakes.at(element, f'{element.name} needs {attribute}="…"')
        return False

    def _either(self, element: Element, name: str, other: str, *, needed: bool = True) -> str:
        """Return which of two spellings of an attribute is present; empty if none."""
        if name in element.attributes and other in element.attributes:
            self._mistakes.at(element, f"{other} is another word for {name}; {element.name} has one of them")
            return ""
        if name in element.attributes or other in element.attributes:
            return name if name in element.attributes else other
        if needed:
            self._needs(element, name)
        return ""

    def _one_of(self, element: Element, attribute: str, choices: type[Choice], default: Choice | None = None) -> Choice | None:
        if attribute not in element.attributes and default is not None:
            return default
        if not self._needs(element, attribute):
            return None
        value = element.attributes[attribute]
        try:
            return choices(value)
        except ValueError:
            names = [choice.value for choice in choices]
            message = (
                f"{attribute} {quoted(value)} is not known; it is {', '.join(names[:-1])} or {names[-1]}{meant(value, names)}"
            )
            self._mistakes.at(element, message)
            return None


def check_attributes(element: Element, known: tuple[str, ...], mistakes: Mistakes) -> None:
    """Record attributes that are not known."""
    for attribute in element.attributes:
        if attribute not in known:
            name = attribute.rpartition(" ")[2]
            has = f"has {', '.join(known)}" if known else "has none"
            near = "" if mistakes.full else meant(name, known)
            mistakes.at(element, f"attribute {quoted(name)} is not known; {element.name} {has}{near}")


def meant(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" with the most similar known word; empty if none is similar."""
    question = did_you_mean(word, known, cutoff=0.7, is_quoted=False)
    return f"; {question}" if question else ""


_MODES = frozenset({ActionKind.RENDER, ActionKind.META_NO_INDEX, ActionKind.META_NO_FOLLOW, ActionKind.CONDITIONAL_GET})
_SHIFT = re.compile(r"[+-]?[012]")
_OPPOSITES = {
    ActionKind.ACCEPT: ActionKind.IGNORE,
    ActionKind.IGNORE: ActionKind.ACCEPT,
    ActionKind.INDEX: ActionKind.NO_INDEX,
    ActionKind.NO_INDEX: ActionKind.INDEX,
    ActionKind.FOLLOW: ActionKind.NO_FOLLOW,
    ActionKind.NO_FOLLOW: ActionKind.FOLLOW,
}


def _conditions_text(elements: Iterable[Element]) -> str:
    """Return conditions in one line, without actions."""
    return ", ".join(_condition_text(element) for element in elements if element.name not in ACTIONS)


def _condition_text(element: Element) -> str:
    if element.name in COMBINED:
        return f"{element.name}({_conditions_text(element.children)})"
    attributes = element.attributes
    words = [element.name, attributes.get("field", "")]
    if element.name == "Atom":
        words.append(attributes.get("kind", Kind.EXACT))
    words.append(attributes.get("val") or attributes.get("value") or "''")
    norm = attributes.get("norm", Norm.NORM)
    words += [norm] * (norm != Norm.NORM)
    words += ["literal"] * ("true" in {attributes.get("literal"), attributes.get("litteral")})
    return " ".join(word for word in words if word)


def _with_all_values(actions: Sequence[Action]) -> list[Action]:
    """Return actions with one AddMeta for each field, which has all values that are given for it."""
    values: dict[str, list[str]] = {}
    for action in actions:
        if action.kind is ActionKind.ADD_META:
            values.setdefault(action.name, []).append(action.value)
    found: list[Action] = []
    for action in actions:
        given = values.pop(action.name, []) if action.kind is ActionKind.ADD_META else [""]
        if len(given) > 1:
            found.append(replace(action, value=packed(given)))
        elif given:
            found.append(action)
    return found


def _action_text(action: Action) -> str:
    if action.kind is ActionKind.SOURCE:
        return f"Source {action.name}"
    if action.kind is ActionKind.ADD_META:
        return f"AddMeta {action.name}={action.value}"
    if action.kind is ActionKind.PRIORITY:
        return f"Priority {action.shift}"
    if action.mode is not None:
        return f"{action.kind} {action.mode}"
    return action.kind.value


def _one_line(text: str) -> str:
    text = " ".join(text[: 10 * MAX_REF].split())
    return text if len(text) <= MAX_REF else f"{text[: MAX_REF - 1]}…"
