"""What a user has set and nothing in a collection reads: settings of Scrapy without effect, misspelt ones, attributes of a spider class.

`scrapy lint` lists these as warnings, and a start logs them.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlspace.config.collection import PREFIX, collection_folder, read_settings_file
from crawlspace.config.scrapy_effects import KNOWN, OF_COMPONENTS, OF_THE_PROCESS, SPIDER_ATTRIBUTES, WITHOUT_EFFECT
from crawlspace.config.sentences import where_set
from crawlspace.errors import nearest
from crawlspace.lint.finding import Finding
from crawlspace.runtime.components.loader import custom_settings_of, default_values

MOST_LOGGED = 5
NEARNESS = 0.9
"""From which on a name counts as misspelt: below it, names of other people's components would be reported."""
_NOT_OF_THE_USER = ("scrapy", "crawlspace", "builtins")


@dataclass(frozen=True, slots=True)
class UserSetting:
    """A setting that a user has set. `file` is where, as a finding names it; line and column are 0 where there is none."""

    name: str
    value: object
    file: str
    line: int = 0
    column: int = 0
    is_of_collection: bool = False
    """It is set in the collection's file, or by its class."""
    is_text: bool = False
    """It comes from the command line, where every value is text."""


def without_effect(spider: type[Spider] | None, settings: BaseSettings, name: str) -> list[Finding]:
    """Return a finding for everything that a user has set for a collection, and that has no effect in it.

    `settings` are the collection's. Raises ConfigError.
    """
    folder = collection_folder(name, settings)
    own = read_settings_file(folder)
    set_by_user = list(_set_by_user(settings, own, folder, spider))
    found = [
        *_settings_without_effect(set_by_user, settings),
        *_two_lists_of_codes(set_by_user),
        *_set_twice(spider, own, folder),
        *_attributes_without_effect(spider),
    ]
    return sorted(found, key=lambda one: (one.file, one.line))


def sentences(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines that a start logs of findings: the first, and how many more there are."""
    for finding in findings[:MOST_LOGGED]:
        yield f"{finding.file}:{finding.line}: {finding.message}" if finding.line else f"{finding.file}: {finding.message}"
    if len(findings) > MOST_LOGGED:
        yield f"and {len(findings) - MOST_LOGGED} more settings or attributes without effect: `scrapy lint` lists them"


def _set_by_user(
    settings: BaseSettings, own: Mapping[str, object], folder: Path, spider: type[Spider] | None
) -> Iterator[UserSetting]:
    """Yield what is not as Scrapy and the project's template have it, each with the place that applies."""
    custom, defaults = custom_settings_of(spider), default_values()
    for name in settings:
        priority = settings.getpriority(name) or 0
        if priority >= SETTINGS_PRIORITIES["cmdline"] and name != "DOWNLOAD_SLOTS":  # that is filled by throttle_other_requests
            yield UserSetting(name, settings[name], "-s", is_text=True)
        elif name in own:
            yield UserSetting(name, own[name], "settings.py", *where_set(folder, name), is_of_collection=True)
        elif name in custom and spider is not None:
            yield UserSetting(name, custom[name], *_place(spider, "custom_settings", name), is_of_collection=True)
        elif priority >= SETTINGS_PRIORITIES["project"] and priority < SETTINGS_PRIORITIES["spider"]:
            value = settings[name]
            if name not in defaults or value != defaults[name]:
                yield UserSetting(name, value, "settings of the project")


def _settings_without_effect(found: Sequence[UserSetting], settings: BaseSettings) -> Iterator[Finding]:
    for one in found:
        if one.name in WITHOUT_EFFECT:
            effect = WITHOUT_EFFECT[one.name]
            if effect.is_reported(one.value):
                yield _finding(one, "no-effect", f"{one.name} has no effect in a collection: {effect.instead}")
        elif one.name in OF_THE_PROCESS:
            if one.is_of_collection:
                message = f"{one.name} has no effect here, because it is read before the collection: set it in the project's settings or with -s"
                yield _finding(one, "no-effect", message)
        elif one.name not in KNOWN | OF_COMPONENTS and not one.name.startswith(PREFIX):
            meant = nearest(one.name, KNOWN, cutoff=NEARNESS)
            if meant is not None and (one.is_text or _alike(one.value, settings.get(meant))):
                message = f"there is no setting {one.name}, so it has no effect: did you mean {meant}?"
                yield _finding(one, "misspelt-setting", message)


def _two_lists_of_codes(found: Sequence[UserSetting]) -> Iterator[Finding]:
    both = {one.name: one for one in found if one.name in ("RETRY_HTTP_CODES", "CRAWLSPACE_HTTP_ERRORS") and one.value}
    if len(both) == 2:
        message = "where RETRY_HTTP_CODES and CRAWLSPACE_HTTP_ERRORS name the same code, CRAWLSPACE_HTTP_ERRORS applies: keep one of them"
        yield _finding(both["RETRY_HTTP_CODES"], "set-twice", message)


def _set_twice(spider: type[Spider] | None, own: Mapping[str, object], folder: Path) -> Iterator[Finding]:
    """Yield the settings of a spider class that have no effect because the collection's file has other values."""
    for name, value in custom_settings_of(spider).items():
        if spider is not None and name in own and own[name] != value and not isinstance(value, dict):
            line, _ = where_set(folder, name)
            message = (
                f"{name} of custom_settings has no effect: line {line} of settings.py in the collection's folder sets it too"
            )
            yield _finding(UserSetting(name, value, *_place(spider, "custom_settings", name)), "set-twice", message)


def _attributes_without_effect(spider: type[Spider] | None) -> Iterator[Finding]:
    seen: set[str] = set()
    for cls in spider.__mro__ if spider is not None else ():
        if cls.__module__.partition(".")[0] in _NOT_OF_THE_USER:
            continue
        for name in SPIDER_ATTRIBUTES.keys() & vars(cls).keys() - seen:
            seen.add(name)
            if vars(cls)[name]:
                message = f"{cls.__name__}.{name} has no effect in a collection: {SPIDER_ATTRIBUTES[name]}"
                yield _finding(UserSetting(name, None, *_place(cls, name)), "no-effect", message)


def _finding(one: UserSetting, code: str, message: str) -> Finding:
    return Finding(one.file, one.line, one.column, "warning", code, message)


def _place(cls: type, *names: str) -> tuple[str, int, int]:
    """Return the file of a class, relative to the working folder if it is below it, and line and column of the last name in it."""
    try:
        lines, first = inspect.getsourcelines(cls)
        file = os.path.relpath(inspect.getsourcefile(cls) or "")
    except (OSError, TypeError, ValueError):  # made by a program
        return f"{cls.__module__}.{cls.__qualname__}", 0, 0
    file = file if not file.startswith(os.pardir) else Path(file).name
    at = 0
    for name in names:
        at = next((number for number in range(at, len(lines)) if re.search(rf"\b{name}\b", lines[number])), at)
    return file, first + at, max(lines[at].find(names[-1]), 0) + 1


def _alike(value: object, other: Any) -> bool:
    """Whether a value is of the kind of another: a list of USER_AGENTS is not meant as the text USER_AGENT."""
    kinds: tuple[type | tuple[type, ...], ...] = (str, (bool, int, float), Mapping, (list, tuple, set, frozenset))
    if value is None or other is None:
        return True
    return any(isinstance(value, kind) and isinstance(other, kind) for kind in kinds)
