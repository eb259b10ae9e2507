"""Sections of FAST's configuration whose options together are one setting: errors, delays by the time of the week, link tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from crawlspace.errors import SettingError
from crawlspace.frontier.delay_schedule import read_timetable
from crawlspace.importers.fast.xml import FastOption, FastSection
from crawlspace.importers.outcomes import Defaults, Translation, WrongValue, lost, number, one_value, yes_or_no
from crawlspace.importers.report import Fate
from crawlspace.state.error_policy import read_error_rules
from crawlspace.text import printable

Rows = tuple[Sequence[tuple[FastOption, Translation]], Mapping[str, object]]
"""What becomes of each option, and the setting of all that were translated."""

_TAGS = {"a": "a", "area": "area", "frame": "frame", "iframe": "iframe", "link": "link", "meta": "meta", "meta_refresh": "meta"}
"""Those whose links can be followed, by FAST's names."""


def _errors(section: FastSection, _: Defaults) -> Rows:
    name = "CRAWLSPACE_HTTP_ERRORS"

    def read(option: FastOption, found: Mapping[str, object]) -> object:
        value = _values(option)
        read_error_rules({**found, option.name: value})
        return value

    return _each(section, name, read)


def _delays(section: FastSection, _: Defaults) -> Rows:
    name = "CRAWLSPACE_VARIABLE_DELAY"

    def read(option: FastOption, found: Mapping[str, object]) -> object:
        text = _values(option)
        value: object = "suspend" if text.lower() == "suspend" else number([text])
        read_timetable(name, {**found, option.name: value}, zone=None)
        return value

    return _each(section, name, read)


def _each(section: FastSection, name: str, read: Callable[[FastOption, Mapping[str, object]], object]) -> Rows:
    found: dict[str, object] = {}
    rows: list[tuple[FastOption, Translation]] = []
    for option in section.options:
        try:
            value = read(option, found)
        except (WrongValue, SettingError) as error:
            rows.append((option, lost(f"it cannot be used: {error}")))
            continue
        found[option.name] = value
        rows.append((option, Translation(Fate.TRANSLATED, f"{printable(option.name)!r}: {value!r} in {name}")))
    return rows, {name: found} if found else {}


def _values(option: FastOption) -> str:
    return one_value([value.text for value in option.values])


def _link_tags(section: FastSection, defaults: Defaults) -> Rows:
    name = "CRAWLSPACE_LINK_TAGS"
    usual = defaults[name]
    assert isinstance(usual, list)
    tags: dict[str, bool] = {}
    rows: list[tuple[FastOption, Translation]] = []
    for option in section.options:
        tag = _TAGS.get(option.name.lower())
        try:
            wanted = yes_or_no([value.text for value in option.values])
        except WrongValue as error:
            rows.append((option, lost(f"its value cannot be used: {error}")))
            continue
        if tag is None:
            reason = "no link is taken from it" if option.name.lower() != "base" else "it is obeyed, and is no link"
            rows.append((option, lost(reason) if wanted else Translation(Fate.DEFAULT, reason)))
            continue
        tags[tag] = tags.get(tag, False) or wanted
        is_usual = wanted == (tag in usual)
        text = f"{tag} {'is' if wanted else 'is not'} in {name}"
        rows.append((option, Translation(Fate.DEFAULT if is_usual else Fate.TRANSLATED, text)))
    kept = [tag for tag in usual if tags.get(tag, True)]
    return rows, {} if kept == usual else {name: kept}


READERS: Mapping[str, Callable[[FastSection, Defaults], Rows]] = {
    "http_errors": _errors,
    "variable_delay": _delays,
    "link_extraction": _link_tags,
}
