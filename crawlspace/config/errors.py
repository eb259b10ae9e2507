"""All faulty settings at once: a faulty one is replaced by its default, and the settings are read again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from crawlspace.errors import SettingError

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")

T = TypeVar("T")


def setting_named(error: SettingError) -> str:
    """Return the name of the setting that an error is about; empty if it names none."""
    found = _NAME.search(str(error))
    return found[0] if found is not None else ""


def read_with_defaults(
    read: Callable[[Mapping[str, object]], T], settings: Mapping[str, object], defaults: Mapping[str, object]
) -> tuple[T | None, list[SettingError]]:
    """Return what `read` makes of the settings, with the defaults in place of the faulty ones, and the error of each of these.

    None where that cannot be read either: a setting without a default is faulty, or an error names none.
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
