"""The rules.xml of an imported collection, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from crawlspace.text import escaped

_HYPHENS = re.compile("-(?=-)")
"""A comment has no two in a row."""


def comment(text: str) -> str:
    """Return a comment; what must not be in one is changed."""
    safe = _HYPHENS.sub("- ", escaped(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<!-- {safe} -->"


def rule(places: Sequence[str], condition: str, actions: Iterable[str], *, indent: str = "  ") -> list[str]:
    """Return the lines of a rule, below the places that it comes from; condition and actions are elements."""
    comments = [f"{indent}{comment(place)}" for place in dict.fromkeys(places)]
    return [*comments, f"{indent}<Rule>", *(f"{indent}  {element}" for element in (condition, *actions)), f"{indent}</Rule>"]


def document(heading: str, lines: Iterable[str]) -> str:
    """Return the file with these lines inside Rules."""
    inner = "".join(f"{line}\n" for line in lines)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{comment(heading)}\n<Rules>\n{inner}</Rules>\n'
