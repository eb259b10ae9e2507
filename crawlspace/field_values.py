"""Fields of a document with several values: a list of texts, which is stored as JSON and is a list in an index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

Values = str | list[str]


def packed(values: Sequence[str]) -> str:
    """Return several values as one text."""
    return json.dumps(list(values), ensure_ascii=False)


def values_of(text: str) -> Values:
    """Return the values that a text stands for; the text itself if it is one value."""
    if text.startswith('["') and text.endswith('"]'):
        try:
            return msgspec.json.decode(text, type=list[str])
        except (msgspec.MsgspecError, RecursionError):
            pass
    return text


def with_values(fields: Mapping[str, str]) -> dict[str, Values]:
    """Return the fields of a document as an index gets them."""
    return {name: values_of(value) for name, value in fields.items()}
