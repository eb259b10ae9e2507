"""Translation of an option of an imported configuration, and the report of all options that every importer prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from crawlspace.errors import ConfigError, SettingError, did_you_mean
from crawlspace.parsing import duration
from crawlspace.rules.limits import changes_of_built_in
from crawlspace.text import printable, printable_message, quoted


class Fate(StrEnum):
    """The fate of an option."""

    TRANSLATED = "translated"
    DEFAULT = "default"
    NO_COUNTERPART = "no counterpart"

    @property
    def is_lost(self) -> bool:
        """Whether the collection lacks the option's effect."""
        return self is Fate.NO_COUNTERPART


_SENTENCES = {
    Fate.TRANSLATED: "translated to",
    Fate.DEFAULT: "equal to the default:",
    Fate.NO_COUNTERPART: "no counterpart, because",
}


@dataclass(frozen=True, slots=True)
class ReportedOption:
    """The fate of one option. `line` 0 is the whole file. `is_recalled`: its meaning is known by experience, and not from documentation."""

    line: int
    option: str
    fate: Fate
    text: str
    is_recalled: bool = False
    file: str = ""

    @property
    def sentence(self) -> str:
        ending = " (by our best knowledge)" if self.is_recalled else ""
        return printable_message(f"{_SENTENCES[self.fate]} {self.text}{ending}")

    def as_json(self) -> dict[str, object]:
        return {
            "file": self.file,
            "line": self.line,
            "option": printable(self.option),
            "fate": self.fate.value,
            "text": printable_message(self.text),
            "by_best_knowledge": self.is_recalled,
        }


class ImportReport:
    """The options of one imported collection, in the order of its file or files."""

    def __init__(self, file: str) -> None:
        """`file` is the name in messages, for options without their own file."""
        self.file = printable(file)
        self._options: list[ReportedOption] = []

    def add(self, line: int, option: str, fate: Fate, text: str, *, is_recalled: bool = False, file: str = "") -> None:
        self._options.append(ReportedOption(line, option, fate, text, is_recalled, printable(file) if file else self.file))

    def add_translation(
        self, line: int, option: str, translation: Translation, *, is_recalled: bool = True, file: str = ""
    ) -> None:
        """Add the fate of an option; `is_recalled` counts only if the translation relies on undocumented behaviour."""
        recalled = is_recalled and translation.is_recalled
        self.add(line, option, translation.fate, translation.text, is_recalled=recalled, file=file)

    @property
    def options(self) -> list[ReportedOption]:
        files = {file: index for index, file in enumerate(dict.fromkeys(one.file for one in self._options))}
        return sorted(self._options, key=lambda one: (files[one.file], one.line))

    @property
    def lost(self) -> int:
        """Number of options that have no counterpart, or not yet."""
        return sum(one.fate.is_lost for one in self._options)

    def lines(self) -> Iterator[str]:
        """Yield a line for each option, and a last one with the numbers."""
        for one in self.options:
            origin = f"{one.file}:{one.line}" if one.line else one.file
            yield f"{origin}: {printable(one.option)}: {one.sentence}"
        numbers = [f"{sum(one.fate is fate for one in self._options):,} {fate.value}" for fate in Fate]
        yield f"{len(self._options):,} options: {', '.join(numbers)}"


# --- The translation of one option: settings to write, and the line of the report ----------------------------------

_EXCLUDE_EXTENSIONS = "CRAWLSPACE_EXCLUDE_EXTENSIONS"
_NO_EXTENSION = re.compile(r"[^\w+~-]")
NO_LIMIT_OF_REPEATED_SEGMENTS = 1_000
"""CRAWLSPACE_MAX_REPEATED_SEGMENTS, if another crawler has no such limit: more than a URL of the usual length can have."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The fate of an option, why, and the resulting settings."""

    fate: Fate
    text: str
    settings: Mapping[str, object] = field(default_factory=dict)
    is_recalled: bool = True
    """Whether it relies on a meaning known by experience, unless the option is documented."""


class WrongValue(ValueError):
    """An invalid value of an option; the message names the valid ones."""


Defaults = Mapping[str, object]
Translate = Callable[[Sequence[str], Defaults], Translation]
"""Translates the values of an option. Raises WrongValue and SettingError."""


def lost(reason: str) -> Translation:
    return Translation(Fate.NO_COUNTERPART, reason)


def unknown(name: str, known: Iterable[str]) -> Translation:
    """Return the translation of an option that is in no table."""
    reason = f"{quoted(name)} is not known: {did_you_mean(name, known, 'it may be of another version')}"
    return Translation(Fate.NO_COUNTERPART, reason, is_recalled=False)


def translated(translate: Translate, values: Sequence[str], defaults: Defaults) -> Translation:
    """Return the translation of an option, even for an invalid value."""
    try:
        return translate(values, defaults)
    except (WrongValue, ConfigError) as error:
        return lost(f"its value cannot be used: {error}")


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
    """Translate the excluded extensions; into changes of the built-in list if that is shorter."""
    found = {value: value.lower().lstrip("*").lstrip(".") for value in values}
    unusable = [quoted(value) for value, name in found.items() if _NO_EXTENSION.search(name) or not name]
    names = [name for name in found.values() if name and not _NO_EXTENSION.search(name)]
    changes = changes_of_built_in(frozenset(names))
    nearest = changes if len(changes) < len(names) else names
    translation = setting(defaults, _EXCLUDE_EXTENSIONS, nearest or ("" if names else "none"))
    if not unusable:
        return translation
    reason = f"{', '.join(unusable)}: an extension follows the last dot of the path; write a rule of rules.xml with Ext"
    return Translation(Fate.NO_COUNTERPART, f"{reason}; the others: {translation.text}", translation.settings)


def as_whole(name: str, *, low: int = 0, note: str = "") -> Translate:
    return lambda values, defaults: setting(defaults, name, whole(values, low=low), note=note)


def as_number(name: str, *, note: str = "") -> Translate:
    return lambda values, defaults: setting(defaults, name, number(values), note=note)


def as_switch(name: str) -> Translate:
    return lambda values, defaults: setting(defaults, name, yes_or_no(values))


def sitemaps(values: Sequence[str], defaults: Defaults) -> Translation:
    """Return the translation of a switch that has sitemaps read."""
    return setting(defaults, "CRAWLSPACE_FOLLOW", "both" if yes_or_no(values) else "links")


def near_duplicates(values: Sequence[str], defaults: Defaults) -> Translation:
    """Return the translation of a switch that has near duplicates found."""
    distance, note = (6, "; pages of which about 1 % of the words differ") if yes_or_no(values) else (0, "")
    return setting(defaults, "CRAWLSPACE_NEAR_DUPLICATES", distance, note=note)


def as_text(name: str) -> Translate:
    return lambda values, defaults: setting(defaults, name, one_value(values))


def always(*, usual: bool, same: str, otherwise: str = "") -> Translate:
    """Return a translation of a switch without a setting here: equal in one position, lost in the other."""

    def translate(values: Sequence[str], _: Defaults) -> Translation:
        return Translation(Fate.DEFAULT, same) if yes_or_no(values) is usual else lost(otherwise or same)

    return translate


def never(reason: str) -> Translate:
    return lambda _, __: lost(reason)


def _is_equal(name: str, default: object, value: object) -> bool:
    if isinstance(default, list) and isinstance(value, list):
        return sorted(map(str, default)) == sorted(map(str, value))
    if isinstance(default, str) and isinstance(value, str | int | float) and default:
        try:
            return duration(name, default, low=0) == duration(name, value, low=0)
        except SettingError:
            return default == value
    return (type(default) is not bool and type(value) is not bool and default == value) or default is value
