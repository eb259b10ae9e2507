"""Parsing of setting values (Python values, or text from the command line) to typed values. Raises SettingError."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Literal

from crawlspace.errors import SettingError
from crawlspace.text import quoted

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([smhdw]?)\s*", re.IGNORECASE)
_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}


def integer(name: str, value: object, *, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number within the bounds (both included). Raises SettingError."""
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None:
        raise SettingError(f"{name} is {quoted(value)}; it must be a whole number{_bounds(low, high)}")
    _check(name, number, value, low, high)
    return number


def positive(name: str, value: object) -> float:
    """Return a number above 0, without a unit, as in Scrapy's settings. Raises SettingError."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        number = 0.0
    if not (isfinite(number) and number > 0):
        raise SettingError(f"{name} is {quoted(value)}; it must be a number above 0, without a unit")
    return number


def duration(name: str, value: object, *, low: float | None = None, bare: Literal["s", "m"] = "s") -> float:
    """Return seconds, from a number or text such as "90s", "30m", "12h", "7d". Raises SettingError.

    `bare` is the unit of a number without a unit.
    """
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) * _UNITS[bare]
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        seconds = float(match[1]) * _UNITS[match[2].lower() or bare]
    if seconds is None or not isfinite(seconds):
        numbers = "seconds" if bare == "s" else "minutes"
        raise SettingError(f'{name} is {quoted(value)}; it must be {numbers}, or text like "90s", "30m", "12h" or "7d"')
    _check(name, seconds, value, low, None, unit=" s")
    return seconds


def table(name: str, value: object, *, example: str) -> Mapping[object, object]:
    """Return a dict; text is parsed as JSON, as in Scrapy. None and empty text give an empty one. Raises SettingError."""
    if value is None or value == "":
        return {}
    found = value
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except ValueError:
            found = None
    if not isinstance(found, Mapping):
        raise SettingError(f"{name} is {quoted(value)}; it must be like {example}")
    return found


def boolean(name: str, value: object) -> bool:
    """Return a truth value, from a bool, 1 or 0, or text such as "yes". Raises SettingError."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise SettingError(f"{name} is {quoted(value)}; it must be True or False")


def optional_boolean(name: str, value: object) -> bool | None:
    """As `boolean`; None, "none" and empty text mean not set."""
    if value is None or (isinstance(value, str) and value.strip().lower() in {"none", ""}):
        return None
    return boolean(name, value)


def text(name: str, value: object) -> str:
    """Return text that isn't blank. Raises SettingError."""
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{name} is {quoted(value)}; it must be a text")
    return value


def words(name: str, value: object, *, separators: str = ",") -> list[str]:
    """Return a list of words, from a list or from text split at any of `separators`. Raises SettingError."""
    if isinstance(value, str):
        for separator in separators[1:]:
            value = value.replace(separator, separators[0])
        return [word.strip() for word in value.split(separators[0]) if word.strip()]
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        found = list(value)
        if all(isinstance(word, str) for word in found):
            return [word.strip() for word in found if word.strip()]
    raise SettingError(f"{name} is {quoted(value)}; it must be a list of words")


def choice_of(name: str, value: object, allowed: Sequence[str]) -> list[str]:
    """Return words in lower case, at least one and all among `allowed`. Raises SettingError."""
    found = [word.lower() for word in words(name, value, separators=", |")]
    wrong = [word for word in found if word not in allowed]
    if wrong or not found:
        raise SettingError(f"{name} is {quoted(value)}; it may hold {', '.join(allowed)}")
    return found


def one_of(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return a word in lower case that is among `allowed`; None is the empty word. Raises SettingError."""
    given = "" if value is None else value
    if not isinstance(given, str) or (word := given.strip().lower()) not in allowed:
        raise SettingError(f"{name} is {quoted(value)}; it must be {_choices(allowed)}")
    return word


def _check(name: str, number: float, value: object, low: float | None, high: float | None, *, unit: str = "") -> None:
    if (low is not None and number < low) or (high is not None and number > high):
        raise SettingError(f"{name} is {quoted(value)}; it must be{_bounds(low, high, unit)}")


def _bounds(low: float | None, high: float | None, unit: str = "") -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}{unit}"
    if low is not None:
        return f" at least {low}{unit}"
    if high is not None:
        return f" at most {high}{unit}"
    return ""


def _choices(allowed: Sequence[str]) -> str:
    """Return what a setting may be, as it is said; an empty value is off."""
    named = [one for one in allowed if one]
    said = f"one of {', '.join(named)}" if len(named) > 1 else quoted(named[0])
    return said if len(named) == len(allowed) else f"{said}, or empty for none"
