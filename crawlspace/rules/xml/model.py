"""The rules of a rules.xml as values, between parsing and compiling.

All rules are applied to each URL in order; a later one overrides an earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from crawlspace.decision import Conditional, MetaTag, Render, RuleRef

NAMESPACE = "exa:com.exalead.actionrules.v21"
"""Of rules and actions; another one that begins with `exa:` does as well, or none."""


class Field(StrEnum):
    """The part of a URL that is compared."""

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
    """Treatment of case."""

    NORM = "norm"
    """Case-insensitive."""
    LOWER = "lower"
    """The URL's part in lower case, the value as written."""
    NONE = "none"
    """Case-sensitive, with the host as written in the link."""


class RegexSyntax(StrEnum):
    """Syntax in which a value is read as a regular expression: CRAWLSPACE_RULES_XML_REGEX."""

    ESCAPED = "escaped"
    """A backslash gives a special character its meaning: `/a\\.\\*b`."""
    STANDARD = "standard"
    """As in RE2, where a backslash takes it away: `/a.*b`. Only in `STANDARD_ELEMENTS`."""


STANDARD_ELEMENTS = frozenset({"Atom", "Path", "Url", "Query", "InQuery"})
"""The conditions whose values are usual expressions with RegexSyntax.STANDARD; those of the others are names and texts."""


class Expression(NamedTuple):
    """A value with a regular expression in RE2's syntax; the kind of comparison adds anchors, the norm a flag for case."""

    source: str


class Range(NamedTuple):
    """Lengths in characters, both ends included; `high` None means no upper end."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison. `value` is plain text, an Expression, or for kind length a Range."""

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
    """The actions, by the names of their elements."""

    ACCEPT = "Accept"
    IGNORE = "Ignore"
    INDEX = "Index"
    NO_INDEX = "NoIndex"
    FOLLOW = "Follow"
    NO_FOLLOW = "NoFollow"
    SOURCE = "Source"
    ADD_META = "AddMeta"
    PRIORITY = "Priority"
    RENDER = "Render"
    META_NO_INDEX = "MetaNoIndex"
    META_NO_FOLLOW = "MetaNoFollow"
    CONDITIONAL_GET = "ConditionalGet"


Mode = Render | MetaTag | Conditional
"""What the `mode` of an action may be."""


@dataclass(frozen=True, slots=True)
class Action:
    """`name` belongs to Source and AddMeta, `value` to AddMeta, `shift` to Priority, `mode` to the last four; line and column count from 1."""

    kind: ActionKind
    name: str = ""
    value: str = ""
    shift: int = 0
    mode: Mode | None = None
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ActionRule:
    """`ref.text` is the rule in one line: `Domain foo.com: NoIndex, Follow`."""

    ref: RuleRef
    condition: Condition
    actions: tuple[Action, ...]
    group: str = ""
    key: str = ""


class NotRead(NamedTuple):
    """An element of an exported configuration around or next to the rules; `text` is its line."""

    line: int
    column: int
    element: str
    attributes: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class ActionRuleSet:
    rules: tuple[ActionRule, ...] = ()
    around: tuple[NotRead, ...] = ()
    """The elements that enclose the rules of an exported configuration."""
    siblings: tuple[NotRead, ...] = ()
    """The topmost elements of one that contain no rules."""
    syntax: RegexSyntax = RegexSyntax.ESCAPED
    """Syntax in which the values were read."""
