"""The conditions of a rules.xml, as text."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from crawlspace.importers.regexps import Untranslatable
from crawlspace.rules.xml.model import Field, Kind, Norm
from crawlspace.rules.xml.spelling import BadValue
from crawlspace.rules.xml.values import read_value


def atom(field: Field, kind: Kind, text: str, norm: Norm) -> str:
    """Return the comparison of a part of the URL with a text. Raises Untranslatable."""
    _check(text, field, kind, norm, literal=True)
    literal = ' literal="true"' if "\\" in text else ""
    return f'<Atom field="{field.value}" kind="{kind.value}" norm="{norm.value}"{literal} value={quoteattr(text)}/>'


def expression_atom(field: Field, kind: Kind, value: str, norm: Norm) -> str:
    """Return the comparison of a part of the URL with a value in which backslashes make expressions. Raises Untranslatable."""
    _check(value, field, kind, norm, literal=False)
    return f'<Atom field="{field.value}" kind="{kind.value}" norm="{norm.value}" value={quoteattr(value)}/>'


def _check(value: str, field: Field, kind: Kind, norm: Norm, *, literal: bool) -> None:
    try:
        read_value(value, field, kind=kind, norm=norm, literal=literal)
    except BadValue as error:
        raise Untranslatable(str(error)) from None
