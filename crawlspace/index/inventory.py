"""What a sink may be able to do besides taking orders: tell what it has, and be built anew beside what is searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as an index has it."""

    url: str
    version: int
    """That of the order that it came with; 0 where the index does not know."""
    owner: str
    """The collection that it belongs to; empty where the index does not know."""


@runtime_checkable
class Inventory(Protocol):
    """An index that tells what it has. All raise IndexUnavailable."""

    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        """Return the entries of those URLs that have a document, whoever owns it, as they are at this moment."""

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection, a page at a time, in bounded memory.

        What is written meanwhile may be there or not; all else is there once.
        """
