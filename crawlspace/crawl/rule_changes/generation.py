"""The generation of the rules for reading pages: its number grows when each page needs one unconditional GET."""

from __future__ import annotations

from typing import Protocol

from crawlspace.state.metadata import get_integer

_NAME = "rules_generation"


class Notes(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


def generation(store: Notes) -> int:
    """Return the present generation. A page fetched under another one is not requested conditionally."""
    return get_integer(store, _NAME) or 1


def set_generation(store: Notes, number: int) -> None:
    store.set_meta(_NAME, str(number))


def begin_generation(store: Notes) -> None:
    """Start a new generation: the next fetch of each page is an unconditional GET."""
    set_generation(store, generation(store) + 1)
