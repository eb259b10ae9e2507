"""Read values as their types declare them, and report a wrong one in a sentence: the place, the value, the rule, the way out.

Values on the command line are text, and are converted as Scrapy does. A setting that is an `object` is read by its own function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, ValidationError, convert, inspect, structs

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError, SettingError, did_you_mean
from crawlspace.parsing import boolean, choice_of, duration, integer, one_of, positive, text, words
from crawlspace.text import quoted

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_STEP = re.compile(r"\.(\w+)|\[(\d*)(?:\.\.\.)?\]")

T = TypeVar("T")
S = TypeVar("S", bound=Struct)


def read(
    section: type[S], settings: Mapping[str, object], *, places: Mapping[str, str] | None = None, default: S | None = None
) -> S:
    """Return the settings of a section; `default` has those that are not there. Raises SettingError for the first that is wrong.

    `places` has the places in messages of settings that are set elsewhere, as for a single site.
    """
    given = {
        attribute: _value((places or {}).get(name, name), settings[name], kind)
        for attribute, name, kind in _fields(section)
        if name in settings
    }
    return structs.replace(section() if default is None else default, **given)


def converted(place: str, value: object, to: type[T], *, parse: Callable[[type, object], object] | None = None) -> T:
    """Return a struct for a dict of the settings. Raises SettingError; no value that may be a secret is shown."""
    try:
        return convert(value, to, dec_hook=parse)
    except ValidationError as error:
        raise SettingError(_sentence(place, value, inspect.type_info(to), str(error))) from None


@cache
def _fields(section: type[Struct]) -> list[tuple[str, str, inspect.Type]]:
    """Return the attributes of a section, the settings they are of, and their types."""
    info = inspect.type_info(section)
    assert isinstance(info, inspect.StructType)
    return [(field.name, field.encode_name, field.type) for field in info.fields]


def _value(place: str, value: object, kind: inspect.Type, extra: Mapping[str, object] | None = None) -> object:
    """Return the value of a setting. Raises SettingError."""
    match kind:
        case inspect.Metadata(type=inner, extra=extra):
            return _value(place, value, inner, extra)
        case inspect.UnionType(types=types):
            is_none = value is None or (isinstance(value, str) and value.strip().lower() in {"none", ""})
            return None if is_none else _value(place, value, next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.BoolType():
            return boolean(place, value)
        case inspect.IntType(ge=low, le=high):
            return integer(place, value, low=low, high=high)
        case inspect.FloatType(ge=low) if extra:
            return duration(place, value, low=low)
        case inspect.FloatType():
            return positive(place, value)
        case inspect.StrType(min_length=least):
            return text(place, value) if least or not isinstance(value, str | Path | None) else str(value or "").strip()
        case inspect.LiteralType(values=allowed):
            if isinstance(allowed[0], int):
                return _number_among(place, value, allowed)
            return one_of(place, value, [str(one) for one in allowed])
        case inspect.VarTupleType(item_type=inspect.LiteralType(values=allowed)):
            return tuple(choice_of(place, value, [str(one) for one in allowed]))
        case inspect.VarTupleType():
            return tuple(words(place, value or (), separators=str((extra or {})["separators"])))
    return value


def _number_among(place: str, value: object, allowed: Iterable[object]) -> int:
    """Return a number, or text that is one, which is among `allowed`. Raises SettingError."""
    numbers = {str(one): one for one in allowed if isinstance(one, int)}
    found = None if isinstance(value, bool) else numbers.get(str(value).strip())
    if found is None:
        raise SettingError(f"{place} is {quoted(value)}; it must be one of {', '.join(numbers)}")
    return found


def _sentence(place: str, value: object, kind: inspect.Type, error: str) -> str:
    """Return what a ValidationError of msgspec is about, with the place in the settings."""
    message, path = _error(error)
    example, kind = "", _chosen(kind, value)
    for name, number in _STEP.findall(path):
        if isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
            example = getattr(kind.cls, "example", example)
            kind = next((field.type for field in kind.fields if field.name == name), inspect.AnyType())
            key: object = name
        elif isinstance(kind, inspect.DictType) and isinstance(value, Mapping):  # all of texts; msgspec does not name the key
            key = next((key for key, one in value.items() if not (isinstance(key, str) and isinstance(one, str))), "")
            kind = kind.value_type
        elif isinstance(value, Iterable) and number.isdigit():
            members: dict[object, object] = dict(enumerate(value))
            key, value, kind = int(number), members, getattr(kind, "item_type", inspect.AnyType())
        elif message.startswith("Expected"):
            return f"{place}[{quoted(name)}] must be a text"
        else:  # the type is that of no member of a union
            break
        place, value = f"{place}[{quoted(key)}]", value[key]
        kind = _chosen(kind, value)
    structs_of = [one for one in (kind, *getattr(kind, "types", ())) if isinstance(one, inspect.StructType)]
    return f"{place} {_rule(message, value, kind, getattr(structs_of[0].cls, 'example', '') if structs_of else example)}"


def _error(error: str) -> tuple[str, str]:
    """Return the message and the path of msgspec's error."""
    found = re.fullmatch(r"(?P<message>.*?)(?: - at `(?:key` in `)?\$(?P<path>[^`]*)`)?", error, re.DOTALL)
    assert found is not None
    return found["message"], f"{found['path'] or ''}{'[...]' if 'at `key` in `' in error else ''}"


def _chosen(kind: inspect.Type, value: object) -> inspect.Type:
    """Return the member of a union that a value is meant to be, by its "type" where there are several."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if not isinstance(kind, inspect.UnionType):
        return kind
    members = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
    tag = value.get("type") if isinstance(value, Mapping) else None
    tagged = [one for one in members if isinstance(one, inspect.StructType) and one.tag == tag]
    if tagged:
        return tagged[0]
    return members[0] if len(members) == 1 else kind


def _rule(message: str, value: object, kind: inspect.Type, example: str) -> str:
    """Return what is wrong and the way out, in words for those of msgspec; a message of our own stays as it is."""
    if unknown := re.fullmatch("Object contains unknown field `(.*)`", message, re.DOTALL):
        keys = [field.name for field in kind.fields] if isinstance(kind, inspect.StructType) else []
        meant = did_you_mean(unknown[1], keys, f"it may have {', '.join(keys)}")
        return f"has an unknown key {quoted(unknown[1])}: {meant}"
    if missing := re.fullmatch("Object missing required field `(.*)`", message):
        return f"has no {'type' if missing[1] == 'type' else quoted(missing[1])}; it must be like {example}"
    if unknown := re.fullmatch("Invalid value '(.*)'", message, re.DOTALL):
        tags = [str(one.tag) for one in getattr(kind, "types", ()) if isinstance(one, inspect.StructType)]
        meant = did_you_mean(unknown[1], tags, f"it may be {', '.join(map(quoted, tags))}")
        return f"has the unknown type {quoted(unknown[1])}: {meant}"
    if not message.startswith(("Expected", "Invalid enum")):
        return message
    if message.endswith("of length >= 1"):
        return f"is empty; it must be like {example}"
    match kind:
        case inspect.LiteralType(values=allowed):
            return f"is {quoted(value)}; it may be {' or '.join(map(quoted, allowed))}"
        case inspect.IntType(ge=low, le=high):
            return f"is {quoted(value)}; it must be a whole number from {low} to {high}"
        case inspect.StrType():
            return "must be a text"
        case inspect.DictType() | inspect.StructType() | inspect.UnionType():
            return f"must be a dict, as in {example}" if example else "must be a dict"
    item = getattr(kind, "item_type", None)
    members = "dicts" if isinstance(item, inspect.StructType) else "numbers" if isinstance(item, inspect.IntType) else "texts"
    return f"must be a list of {members}"


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
