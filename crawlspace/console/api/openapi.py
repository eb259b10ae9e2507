"""The OpenAPI document of the JSON interface, made of the declarations that it is served by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus

import msgspec

from crawlspace import __version__
from crawlspace.console.api.answers import Failure
from crawlspace.console.api.operations import BASE, JSON, LINES, MARKDOWN, Operation, list_names, properties, required
from crawlspace.console.api.routes import OPERATIONS
from crawlspace.console.users import Role

_REF = "#/components/schemas/{name}"
_ALWAYS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_MEANINGS = {
    HTTPStatus.BAD_REQUEST: "A parameter is wrong.",
    HTTPStatus.UNAUTHORIZED: "The token is missing or not known.",
    HTTPStatus.FORBIDDEN: "The role does not allow this, or a change was asked for without a token.",
    HTTPStatus.NOT_FOUND: "There is no such collection, document or sink.",
    HTTPStatus.CONFLICT: "This is not possible at this moment.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The request is too large.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many tokens from this address were not known.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The configuration, the store or the index has a fault, or does not answer.",
}


@cache
def openapi_document() -> Mapping[str, object]:
    """Return the document as JSON has it."""
    bodies = [one.takes for one in OPERATIONS if one.method == "POST"]
    _, components = msgspec.json.schema_components([*(one.answers for one in OPERATIONS), *bodies, Failure], ref_template=_REF)
    paths: dict[str, dict[str, object]] = {}
    for one in OPERATIONS:
        paths.setdefault(f"{BASE}{one.path}", {})[one.method.lower()] = _described(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "crawlspace",
            "version": __version__,
            "description": "The collections of a crawlspace project: the same use-cases as the commands and the pages of the console.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "made by `scrapy console --token NAME`"},
            },
        },
        "security": [{"token": []}],
    }


def _described(one: Operation) -> dict[str, object]:
    who = "Role: operator. It is kept in the audit log." if one.role is Role.OPERATOR else "Role: viewer."
    found: dict[str, object] = {
        "operationId": one.name,
        "summary": one.summary,
        "description": who,
        "tags": ["collections"],
        "parameters": list(_parameters(one)),
        "responses": _responses(one),
    }
    if one.method == "POST":
        is_needed = bool(required(one.takes))
        found["requestBody"] = {"required": is_needed, "content": {JSON: {"schema": _ref(one.takes)}}}
    return found


def _parameters(one: Operation) -> Iterator[dict[str, object]]:
    if "{name}" in one.path:
        yield _of_path("name", "the name of a collection")
    for name, meaning in one.path_parameters.items():
        yield _of_path(name, meaning)
    if one.method != "GET":
        return
    needed, lists = required(one.takes), list_names(one.takes)
    for name, declared in properties(one.takes).items():
        schema = dict(declared)
        described = {"description": schema.pop("description")} if "description" in schema else {}
        repeated = {"style": "form", "explode": True} if name in lists else {}
        yield {"name": name, "in": "query", "required": name in needed, **described, "schema": schema, **repeated}


def _of_path(name: str, meaning: str) -> dict[str, object]:
    return {"name": name, "in": "path", "required": True, "description": meaning, "schema": {"type": "string", "minLength": 1}}


def _responses(one: Operation) -> dict[str, object]:
    answers: dict[str, object] = {media: {"schema": _schema_of(media, one)} for media in one.media}
    meaning = "The answer." if LINES not in one.media else "The answer, a JSON object a line, sent while it is made."
    found: dict[str, object] = {"200": {"description": meaning, "content": answers}}
    codes: Sequence[HTTPStatus] = sorted({*_ALWAYS, *one.errors})
    for code in codes:
        found[str(int(code))] = {"description": _MEANINGS[code], "content": {JSON: {"schema": _ref(Failure)}}}
    return found


def _schema_of(media: str, one: Operation) -> Mapping[str, object]:
    if media == LINES:
        lines = {"type": "array", "items": _ref(one.answers)}
        return {"type": "string", "contentMediaType": LINES, "contentSchema": lines}
    return {"type": "string"} if media == MARKDOWN else _ref(one.answers)


def _ref(struct: type[msgspec.Struct]) -> dict[str, object]:
    return {"$ref": _REF.format(name=struct.__name__)}
