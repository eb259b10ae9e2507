"""The generation of what decides how a page is read: its number grows when each page is to be asked for whole once, changed or not."""

from __future__ import annotations

from typing import Protocol

from crawlspace.state.metadata import get_integer

_NAME = "rules_generation"


class Notes(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


def generation(store: Notes) -> int:
    """Return the present one. A page that was fetched under another is not asked for conditionally."""
    return get_integer(store, _NAME) or 1


def set_generation(store: Notes, number: int) -> None:
    store.set_meta(_NAME, str(number))


def begin_generation(store: Notes) -> None:
    """Have each page be asked for whole with its next fetch."""
    set_generation(store, generation(store) + 1)
