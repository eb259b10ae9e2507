"""What an address of the JSON interface is: a declaration from which it is served and described."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from crawlspace.console.routes import Asked
from crawlspace.console.users import Role
from crawlspace.errors import UsageError

BASE = "/api/v1"
JSON, LINES, MARKDOWN = "application/json", "application/jsonl", "text/markdown"


@dataclass(frozen=True, slots=True)
class Lines:
    """An answer that is a JSON value a line, sent while it is made."""

    lines: Iterator[str]


@dataclass(frozen=True, slots=True)
class MarkdownText:
    """An answer in Markdown."""

    body: bytes
    etag: str


Reply: TypeAlias = Struct | Lines | MarkdownText
Taken = TypeVar("Taken", bound=Struct)

_NOT_FOUND = (HTTPStatus.NOT_FOUND,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An address with a method. `takes` is the query of a GET, the body of a POST; `answers` the JSON of 200, of one line where it is lines."""

    method: str
    path: str
    """Below BASE; `{name}` is a collection."""
    name: str
    """In the description, and for functions of generated clients."""
    summary: str
    takes: type[Struct]
    answers: type[Struct]
    call: Callable[[Asked, object], Reply]
    """Takes the parameters as plain values. Raises UsageError for wrong ones."""
    role: Role
    media: Sequence[str] = (JSON,)
    errors: Sequence[HTTPStatus] = ()
    """Besides those that every operation may end with."""
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    """Those besides `name`, with their meaning."""


def reads(
    path: str,
    name: str,
    function: Callable[[Asked, Taken], Reply],
    *,
    takes: type[Taken],
    answers: type[Struct],
    summary: str,
    media: Sequence[str] = (JSON,),
    path_parameters: Mapping[str, str] | None = None,
    errors: Sequence[HTTPStatus] = (),
) -> Operation:
    """Return the operation of a GET, which changes nothing."""
    return Operation(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        takes=takes,
        answers=answers,
        call=lambda asked, values: function(asked, converted(values, takes, is_text=True)),
        role=Role.VIEWER,
        media=media,
        errors=(*(_NOT_FOUND if "{" in path else ()), *errors),
        path_parameters=path_parameters or {},
    )


def posts(
    path: str,
    name: str,
    function: Callable[[Asked, Taken], Reply],
    *,
    takes: type[Taken],
    answers: type[Struct],
    summary: str,
    role: Role = Role.OPERATOR,
    errors: Sequence[HTTPStatus] = (),
) -> Operation:
    """Return the operation of a POST: one that changes something is for operators, and is kept in the audit log."""
    return Operation(
        method="POST",
        path=path,
        name=name,
        summary=summary,
        takes=takes,
        answers=answers,
        call=lambda asked, values: function(asked, converted(values, takes, is_text=False)),
        role=role,
        errors=(*_NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, *errors),
    )


def converted(values: object, takes: type[Taken], *, is_text: bool) -> Taken:
    """Return parameters as they are declared; `is_text`: numbers and truth values are texts. Raises UsageError."""
    try:
        return msgspec.convert(values, takes, strict=not is_text)
    except msgspec.ValidationError as error:
        raise UsageError(_sentence(str(error), takes)) from error


def list_names(takes: type[Struct]) -> frozenset[str]:
    """Return the names of the parameters that may be given several times."""
    return frozenset(name for name, schema in properties(takes).items() if schema.get("type") == "array")


def properties(takes: type[Struct]) -> Mapping[str, Mapping[str, object]]:
    """Return the JSON Schema of each field."""
    _, components = msgspec.json.schema_components([takes])
    found: Mapping[str, Mapping[str, object]] = components[takes.__name__]["properties"]
    return found


def required(takes: type[Struct]) -> frozenset[str]:
    """Return the fields that must be given."""
    return frozenset(one.encode_name for one in msgspec.structs.fields(takes) if one.required)


_TYPES: Mapping[str, str] = {
    "`int`": "a whole number",
    "`float`": "a number",
    "`bool`": "true or false",
    "`str`": "a text",
    "`array`": "a list",
    "`object`": "a JSON object",
    "`null`": "null",
}


def _sentence(message: str, takes: type[Struct]) -> str:
    """Return a message of msgspec as a sentence for whoever has sent the request."""
    what, _, place = message.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    name = what.rpartition(" ")[2].strip("`")
    if "missing required field" in what:
        return f"the parameter {name} is missing: send it"
    if "unknown field" in what:
        names = ", ".join(properties(takes))
        return f"there is no parameter {name}: " + (f"there are {names}" if names else "this address has none")
    if what.startswith("Invalid enum value"):
        allowed = properties(takes).get(place, {}).get("enum")
        choices = [str(one) for one in allowed if one] if isinstance(allowed, list) else []
        return f"{place} is {name}: send one of {', '.join(choices)}, or leave it out"
    for written, meant in _TYPES.items():
        what = what.replace(written, meant)
    if "matching regex" in what:
        return f"{place} is wrong: send {properties(takes).get(place, {}).get('description', 'another text')}"
    expected, _, got = what.removeprefix("Expected ").partition(", got ")
    return f"{place or 'the request'} is {got or 'wrong'}: send {expected}"
