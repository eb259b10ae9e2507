"""What a sink may be able to do besides taking orders: tell what it has, and be built anew beside what is searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from crawlspace.document import IndexOrder
from crawlspace.index.sink import Sent


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


@dataclass(frozen=True, slots=True)
class Copies:
    """The indexes that a sink has on its server, by name; empty where there is none."""

    present: str
    """The one that is searched."""
    next: str
    """One that is being built: all that is sent goes there too."""
    previous: str
    """The one that was searched before the last switch."""


class BuiltCopy(Inventory, Protocol):
    """An index that is being built beside the one that is searched."""

    def send(self, orders: Sequence[IndexOrder]) -> Sent:
        """Write documents, each with the version of its order; what has a later version there stays as it is."""

    def carry_over(self, urls: Sequence[str]) -> None:
        """Copy documents from the index that is searched, with their versions; what is not there is left out."""

    def remove(self, entries: Sequence[Entry]) -> None:
        """Delete documents, unless they have a later version by now."""

    def count(self, *, owner: str | None) -> int:
        """Return how many documents it has of a collection, or of all."""

    def entries_of_others(self, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield what it has of other collections than that one."""


@runtime_checkable
class Rebuildable(Inventory, Protocol):
    """An index that can be built anew while the present one is searched. All raise IndexUnavailable."""

    def copies(self) -> Copies: ...

    def begin_next(self, *, on_previous: bool = False) -> None:
        """Have all that is sent from now on, by whomever, go to another index too: a new one, or that of before the last switch."""

    def next_copy(self) -> BuiltCopy: ...

    def count(self, *, owner: str | None) -> int:
        """Return how many documents the index that is searched has of a collection, or of all."""

    def entries_of_others(self, owner: str) -> Iterator[Sequence[Entry]]: ...

    def duplicates_of(self, urls: Sequence[str]) -> Mapping[str, list[str]]:
        """Return the duplicates that are noted on documents, of those that the index that is searched has."""

    def switch(self) -> None:
        """Have the next index be the one that is searched, in one step, and keep the present one as the previous."""

    def give_up_next(self) -> None:
        """Send nothing to the next index any more, and delete it, unless it is the previous one."""
