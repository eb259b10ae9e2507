"""Report all invalid settings at once: replace an invalid one by its default, and read the settings again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from crawlspace.errors import SettingError

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")

T = TypeVar("T")


def setting_named(error: SettingError) -> str:
    """Return the name of the setting in an error message; empty if there is none."""
    found = _NAME.search(str(error))
    return found[0] if found is not None else ""


def read_with_defaults(
    read: Callable[[Mapping[str, object]], T], settings: Mapping[str, object], defaults: Mapping[str, object]
) -> tuple[T | None, list[SettingError]]:
    """Return the result of `read` with defaults in place of invalid settings, and the error of each of these.

    None if that fails, too: an invalid setting has no default, or an error message has no name.
    """
    known = dict(settings)
    errors: list[SettingError] = []
    replaced: set[str] = set()
    while True:
        try:
            return read(known), errors
        except SettingError as error:
            errors.append(error)
            name = setting_named(error)
            if name in replaced or name not in defaults:
                return None, errors
            replaced.add(name)
            known[name] = defaults[name]
