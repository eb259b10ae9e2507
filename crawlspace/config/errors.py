"""Where an invalid setting stands, and all of them at once: an invalid one is replaced by its default, and the settings are read again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError, SettingError

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")

T = TypeVar("T")


def setting_named(error: SettingError) -> str:
    """Return the name of the setting in an error message; empty if there is none."""
    found = _NAME.search(str(error))
    return found[0] if found is not None else ""


def where_set(folder: Path, name: str) -> tuple[int, int]:
    """Return line and column where a collection's settings.py sets a setting, the last time; zeros if it is set elsewhere."""
    path = folder / "settings.py"
    try:
        text = read_bytes(path).decode("utf-8", "replace") if is_there(path) else ""
    except ConfigError:  # reported when the settings are read
        return 0, 0
    places = (
        (number, line.index(name) + 1) for number, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*{name}\b", line)
    )
    return max(places, default=(0, 0))


def placed(error: SettingError, folder: Path) -> SettingError:
    """Return an error with the line of a collection's settings.py that it is about, if it is about one."""
    name = setting_named(error)
    line, _ = where_set(folder, name) if name else (0, 0)
    return SettingError(f"{folder / 'settings.py'}:{line}: {error}") if line else error


def read_with_defaults(
    read: Callable[[Mapping[str, object]], T], settings: Mapping[str, object], defaults: Mapping[str, object]
) -> tuple[T | None, list[SettingError]]:
    """Return the result of `read` with defaults in place of invalid settings, and the error of each of these.

    None if that fails, too: an invalid setting has no default, or an error message has no name. An error about several settings counts once.
    """
    known = dict(settings)
    errors: list[SettingError] = []
    replaced: set[str] = set()
    while True:
        try:
            return read(known), errors
        except SettingError as error:
            names = _NAME.findall(str(error))
            if not replaced.intersection(names):  # else it may be true of a default only that stands for an invalid value
                errors.append(error)
            name = next((one for one in names if one not in replaced), "")
            if name not in defaults:
                return None, errors
            replaced.add(name)
            known[name] = defaults[name]
