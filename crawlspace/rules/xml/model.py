"""The rules of a rules.xml as values: what is read from the file, and what is compiled.

All rules are applied to each URL in their order; what a later one sets overrides what an earlier one set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from crawlspace.decision import RuleRef


class Field(StrEnum):
    """The part of a URL that is looked at."""

    URL = "url"
    SCHEME = "scheme"
    HOST = "host"
    PATH = "path"
    QUERY = "query"
    FRAGMENT = "fragment"
    """Always empty: a crawled URL has none."""


class Kind(StrEnum):
    EXACT = "exact"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    INSIDE = "inside"
    LENGTH = "length"


class Norm(StrEnum):
    """How capitals are taken."""

    NORM = "norm"
    """Without case, on both sides."""
    LOWER = "lower"
    """The URL's part in lower case, the value as it is."""
    NONE = "none"
    """As written, the host too."""


class Expression(NamedTuple):
    """A value with a regular expression in it, in RE2's syntax and without anchors, case and groups of its own."""

    source: str


class Range(NamedTuple):
    """Lengths in characters, both ends included; `high` None: no upper end."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison. `value` is a plain text, or an Expression, or for kind length a Range."""

    field: Field
    kind: Kind
    value: str | Expression | Range
    norm: Norm = Norm.NORM


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


Condition = Atom | And | Or | Not


class ActionKind(StrEnum):
    """Each as its element is named."""

    ACCEPT = "Accept"
    IGNORE = "Ignore"
    INDEX = "Index"
    NO_INDEX = "NoIndex"
    FOLLOW = "Follow"
    NO_FOLLOW = "NoFollow"
    SOURCE = "Source"
    ADD_META = "AddMeta"
    PRIORITY = "Priority"


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is of a Source or an AddMeta, `value` of an AddMeta, `shift` of a Priority; line and column count from 1."""

    kind: ActionKind
    name: str = ""
    value: str = ""
    shift: int = 0
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ActionRule:
    """`ref.text` is the rule in one line, as a person would say it: `Domain foo.com: NoIndex, Follow`."""

    ref: RuleRef
    condition: Condition
    actions: tuple[Action, ...]
    group: str = ""
    key: str = ""


class PassedOver(NamedTuple):
    """An element of an exported configuration that is no rule, and so is not read."""

    line: int
    column: int
    element: str


@dataclass(frozen=True, slots=True)
class ActionRuleSet:
    rules: tuple[ActionRule, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
