"""Typed access to values that a store keeps by name."""

from __future__ import annotations

import json

from crawlspace.errors import StoreDamaged
from crawlspace.state.store import MetaStore


def get_integer(store: MetaStore, name: str) -> int | None:
    """Return a number; None where there is none. Raises StoreDamaged."""
    value = store.get_meta(name)
    if not value:
        return None
    try:
        return int(value)
    except ValueError as error:
        raise damaged(name, value) from error


def get_integers(store: MetaStore, name: str) -> set[int]:
    """Return numbers that are separated by spaces. Raises StoreDamaged."""
    value = store.get_meta(name) or ""
    try:
        return {int(number) for number in value.split()}
    except ValueError as error:
        raise damaged(name, value) from error


def get_table(store: MetaStore, name: str) -> dict[str, object] | None:
    """Return a JSON object; None where there is none. Raises StoreDamaged."""
    value = store.get_meta(name)
    if not value:
        return None
    try:
        table = json.loads(value)
    except ValueError as error:
        raise damaged(name, value) from error
    if not isinstance(table, dict):
        raise damaged(name, value)
    return table


def damaged(name: str, value: str) -> StoreDamaged:
    return StoreDamaged(
        f"what the store keeps as {name} is damaged ({value[:80]!r}): put a copy of the store back, or move it and the index away and crawl again"
    )
