"""What tests of the parser of rules.xml share: a text that is read, a condition that is shown, and a rule."""

from __future__ import annotations

import pytest

from crawlspace.errors import Mistake, RuleFileError
from crawlspace.rules.xml.model import ActionRuleSet, And, Condition, Expression, Not, Or, Range, RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml


def read(text: str | bytes, syntax: RegexSyntax = RegexSyntax.ESCAPED) -> ActionRuleSet:
    return parse_rules_xml(text if isinstance(text, bytes) else text.encode(), file="rules.xml", syntax=syntax)


def mistakes(text: str | bytes, syntax: RegexSyntax = RegexSyntax.ESCAPED) -> tuple[Mistake, ...]:
    with pytest.raises(RuleFileError) as caught:
        read(text, syntax)
    return caught.value.mistakes


def shown(condition: Condition) -> str:
    """`host suffix .foo.com`; an expression stands between slashes, an empty value is ''."""
    if isinstance(condition, And | Or):
        return f"{type(condition).__name__}({', '.join(map(shown, condition.parts))})"
    if isinstance(condition, Not):
        return f"Not({shown(condition.part)})"
    value = condition.value
    if isinstance(value, Expression):
        text = f"/{value.source}/"
    elif isinstance(value, Range):
        text = f"{value.low}..{'' if value.high is None else value.high}"
    else:
        text = value or "''"
    norm = f" {condition.norm}" if condition.norm != "norm" else ""
    return f"{condition.field} {condition.kind} {text}{norm}"


# --- the file as a whole ----------------------------------------------------------------------------------------------

RULE = '<Rule><Path val="/a"/><Index/></Rule>'
