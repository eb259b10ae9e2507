"""What becomes of one option: settings to write, and the line of the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.errors import SettingError
from crawlspace.importers.report import Fate
from crawlspace.parsing import duration
from crawlspace.rules.limits import changes_of_built_in
from crawlspace.text import quoted

_EXCLUDE_EXTENSIONS = "CRAWLSPACE_EXCLUDE_EXTENSIONS"
_NO_EXTENSION = re.compile(r"[^\w+~-]")
NO_LIMIT_OF_REPEATED_SEGMENTS = 1_000
"""CRAWLSPACE_MAX_REPEATED_SEGMENTS, where another crawler has no such limit: more than a URL of the usual length can have."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The fate of an option, why, and the settings that come of it."""

    fate: Fate
    text: str
    settings: Mapping[str, object] = field(default_factory=dict)
    is_recalled: bool = True
    """Whether it rests on a meaning of the option that is known by experience, unless the option is documented."""


class WrongValue(ValueError):
    """A value that the option can't have; the message says what it can have."""


Defaults = Mapping[str, object]
Translate = Callable[[Sequence[str], Defaults], Translation]
"""Translates the values of an option. Raises WrongValue and SettingError."""


def lost(reason: str) -> Translation:
    return Translation(Fate.NO_COUNTERPART, reason)


def setting(defaults: Defaults, name: str, value: object, *, note: str = "") -> Translation:
    """Return the translation to one setting, or that its default is equal."""
    if _is_equal(name, defaults.get(name), value):
        return Translation(Fate.DEFAULT, f"{name} = {quoted(value)}")
    return Translation(Fate.TRANSLATED, f"{name} = {quoted(value)}{note}", {name: value})


def one_value(values: Sequence[str]) -> str:
    if len(values) != 1:
        raise WrongValue("it has one value")
    return values[0]


def whole(values: Sequence[str], *, low: int = 0) -> int:
    text = one_value(values)
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= 10**12:
        raise WrongValue(f"it is a whole number from {low} on, not {quoted(text)}")
    return int(text)


def number(values: Sequence[str]) -> int | float:
    text = one_value(values)
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 10**9:
        raise WrongValue(f"it is a number from 0 on, not {quoted(text)}")
    return int(found) if found.is_integer() else found


def yes_or_no(values: Sequence[str]) -> bool:
    text = one_value(values).lower()
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if text not in known:
        raise WrongValue(f"it is yes or no, not {quoted(text)}")
    return known[text]


def mime_types(values: Sequence[str], defaults: Defaults) -> Translation:
    """Translate the types that are accepted."""
    return setting(defaults, "CRAWLSPACE_MIME_TYPES", [value.lower() for value in values])


def extensions(values: Sequence[str], defaults: Defaults) -> Translation:
    """Translate the extensions that are excluded; into changes of the built-in list where that is shorter."""
    found = {value: value.lower().lstrip("*").lstrip(".") for value in values}
    unusable = [quoted(value) for value, name in found.items() if _NO_EXTENSION.search(name) or not name]
    names = [name for name in found.values() if name and not _NO_EXTENSION.search(name)]
    changes = changes_of_built_in(frozenset(names))
    nearest = changes if len(changes) < len(names) else names
    translation = setting(defaults, _EXCLUDE_EXTENSIONS, nearest or ("" if names else "none"))
    if not unusable:
        return translation
    reason = f"{', '.join(unusable)}: an extension is what is behind the last dot of the path; write a rule of rules.xml with Ext"
    return Translation(Fate.NO_COUNTERPART, f"{reason}; the others: {translation.text}", translation.settings)


def as_whole(name: str, *, low: int = 0, note: str = "") -> Translate:
    return lambda values, defaults: setting(defaults, name, whole(values, low=low), note=note)


def as_number(name: str, *, note: str = "") -> Translate:
    return lambda values, defaults: setting(defaults, name, number(values), note=note)


def as_switch(name: str) -> Translate:
    return lambda values, defaults: setting(defaults, name, yes_or_no(values))


def as_text(name: str) -> Translate:
    return lambda values, defaults: setting(defaults, name, one_value(values))


def always(*, usual: bool, same: str, otherwise: str) -> Translate:
    """Return a translation of a switch that can't be set here: equal in one position, lost in the other."""

    def translate(values: Sequence[str], _: Defaults) -> Translation:
        return Translation(Fate.DEFAULT, same) if yes_or_no(values) is usual else lost(otherwise)

    return translate


def never(reason: str) -> Translate:
    return lambda _, __: lost(reason)


def planned(*, same: str, otherwise: str) -> Translate:
    """Return a translation of a switch that can't be on here yet."""
    return lambda values, _: Translation(Fate.NOT_YET, otherwise) if yes_or_no(values) else Translation(Fate.DEFAULT, same)


def later(reason: str) -> Translate:
    return lambda _, __: Translation(Fate.NOT_YET, reason)


def _is_equal(name: str, default: object, value: object) -> bool:
    if isinstance(default, list) and isinstance(value, list):
        return sorted(map(str, default)) == sorted(map(str, value))
    if isinstance(default, str) and isinstance(value, str | int | float) and default:
        try:
            return duration(name, default, low=0) == duration(name, value, low=0)
        except SettingError:
            return default == value
    return (type(default) is not bool and type(value) is not bool and default == value) or default is value
