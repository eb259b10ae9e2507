"""Holds answers of the JSON interface to its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema

from crawlspace.console.api.openapi import openapi_document
from tests.consoles import Got

Schema = dict[str, Any]


def document() -> Schema:
    made: Schema = json.loads(json.dumps(openapi_document()))
    return made


def strict(schema: object) -> object:
    """A schema by which an object has no field that isn't declared."""
    if isinstance(schema, dict):
        closed = {"additionalProperties": False} if "properties" in schema else {}
        return {**{name: strict(inner) for name, inner in schema.items()}, **closed}
    return [strict(one) for one in schema] if isinstance(schema, list) else schema


def hold(got: Got, path: str, method: str = "get") -> object:
    """Assert that an answer is one that the document has for an address; return its value, or the values of its lines."""
    operation = document()["paths"][path][method]
    declared: Mapping[str, Any] = operation["responses"].get(str(got.status), {})
    media = got.headers.get_content_type()
    assert media in declared.get("content", {}), (path, got.status, media, got.text[:500])
    schema = declared["content"][media]["schema"]
    if media == "text/markdown":
        return got.text
    if media == "application/jsonl":
        value: object = [json.loads(line) for line in got.text.splitlines()]
        schema = schema["contentSchema"]
    else:
        value = got.json()
    jsonschema.validate(value, strict({**schema, "components": document()["components"]}))
    return value
