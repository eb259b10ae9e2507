"""Values of extraction rules as their types have them: numbers, dates, URLs and truth values, from text as people write it.

Every function returns an empty text for what doesn't fit, or could mean two things: a field is better missing than wrong.
"""

from __future__ import annotations

import json
import re

from crawlspace.content.dates import written_time
from crawlspace.content.extraction_rules import ValueType
from crawlspace.content.metadata import absolute

_MAX_DIGITS = 30
_MAX_READ = 100
"""Characters of a text that may be a number or a time."""
_TRUE = frozenset({"yes", "true", "1", "on"})
_FALSE = frozenset({"no", "false", "0", "off"})

_BLANKS = " \u00a0\u2009\u202f"
_APOSTROPHES = "'\u2019"
_RUN = re.compile(rf"[0-9](?:[.,{_APOSTROPHES}{_BLANKS}]?[0-9])*|[.,][0-9]+")
"""Digits, with single characters between them that may separate groups or decimals."""
_SIGNS = {"-": "-", "\u2212": "-", "+": ""}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


def typed(text: str, kind: ValueType, *, base: str, is_element: bool = False, is_exact: bool = False) -> str:
    """Return a value of this type; empty for what is none. `text` has its words separated by single spaces.

    `base` is what URLs are relative to. `is_element`: the text is that of an element, which is there even without one. `is_exact`: the
    text comes from data and not from prose, where a dot can only be a decimal point.
    """
    if kind == "number":
        return written_number(text, is_exact=is_exact)
    if kind == "date":
        return written_time(text[:_MAX_READ])
    if kind == "url":
        return absolute(base, text)
    if kind == "bool":
        return written_bool(text) or ("true" if is_element else "")
    return text


def written_bool(text: str) -> str:
    """Return `true` or `false` for the words that mean it, in any case."""
    word = text.strip().casefold()
    return "true" if word in _TRUE else "false" if word in _FALSE else ""


def written_number(text: str, *, is_exact: bool = False) -> str:
    """Return the one number in a text as JSON writes it: `1,234.50`, `1.234,50 €` and `1 234,5` are 1234.5.

    Of two different separators the last is that of the decimals. A separator that is repeated, and a blank or an apostrophe, separate
    groups of three digits. A single dot or comma is that of the decimals, unless three digits follow one to three: `1.234` may be
    either, and is no number here, but for `is_exact`, and 0.234. A text with two numbers, or with a letter just before its number, has
    none.
    """
    text = text.strip()
    if len(text) > _MAX_READ:
        return ""
    if _JSON_NUMBER.fullmatch(text) and (is_exact or "e" in text.lower()):
        return _canonical(json.loads(text)) if "e" in text.lower() else _plain(*text.partition(".")[::2])
    runs = list(_RUN.finditer(text))
    if len(runs) != 1:
        return ""
    run = runs[0]
    before = text[: run.start()]
    if before[-1:] == "(" and text[run.end() :].startswith(")"):
        return ""  # −5 in a balance, and 5 elsewhere
    sign = _SIGNS.get(before[-1:]) if before else ""
    if sign is not None and before:
        before = before[:-1]
        if before and not (before[-1].isspace() or before[-1] in "(~≈$€£¥"):
            return ""  # the dash of a name, as in A-5
    if before[-1:].isalnum():
        return ""
    number = _read(run[0])
    return f"{sign or ''}{number}" if number not in {"", "0"} else number


def _read(run: str) -> str:
    for blank in _BLANKS:
        run = run.replace(blank, " ")
    run = run.replace("\u2019", "'")
    separators = [one for one in run if not one.isdigit()]
    if not separators:
        return _plain(run, "")
    last = separators[-1]
    whole, _, decimals = run.rpartition(last)
    if last in ".," and separators.count(last) == 1:
        others = set(separators[:-1])
        if len(others) > 1:
            return ""
        if others:
            return _plain(_ungrouped(whole, others.pop()), decimals, is_needed=True)
        if len(decimals) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0":
            return ""  # thousands, or thousandths
        return _plain(whole, decimals)
    return _plain(_ungrouped(run, last), "", is_needed=True) if set(separators) == {last} else ""


def _ungrouped(text: str, separator: str) -> str:
    """Return the digits of groups of three, or as in India with two and then three; empty for other groups."""
    first, *groups = text.split(separator)
    is_indian = separator == "," and len(groups) > 1 and all(len(group) == 2 for group in groups[:-1]) and len(groups[-1]) == 3
    is_usual = all(len(group) == 3 for group in groups)
    return "".join([first, *groups]) if 1 <= len(first) <= 3 - is_indian and (is_usual or is_indian) else ""


def _plain(whole: str, decimals: str, *, is_needed: bool = False) -> str:
    """Return a number without needless zeros; empty if it is too long, or has no digits before its decimals where these are needed."""
    if (is_needed and not whole) or len(whole) + len(decimals) > _MAX_DIGITS:
        return ""
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    digits, decimals = digits.lstrip("0") or "0", decimals.rstrip("0")
    number = f"{digits}.{decimals}" if decimals else digits
    return number if number == "0" else sign + number


def _canonical(value: float) -> str:
    """Return a number that was written with an exponent; empty if it is out of range."""
    if value in {float("inf"), float("-inf")}:
        return ""
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else repr(value)
