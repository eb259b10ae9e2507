"""The interface of an index."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from crawlspace.document import IndexOrder
from crawlspace.index.marks import BatchMark
from crawlspace.private_files import real_path


@dataclass(frozen=True, slots=True)
class Refusal:
    """An order that the index refuses; sending it again would not help."""

    order: IndexOrder
    reason: str


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of orders that were sent; those that are named nowhere here are done."""

    refused: Sequence[Refusal] = ()
    later: Sequence[IndexOrder] = ()
    """Orders that the index has not taken and may take later."""
    why_later: str = ""
    is_slow: bool = False
    """It answers, and takes no more at a time: smaller batches may pass."""
    above: int = 0
    """A version that the index has of one of them and that is not below its own: later orders must have larger ones. 0: none."""


ALL_DONE = Sent()


class Sink(Protocol):
    """An index that accepts orders. Sending an order twice is harmless, because ids depend on the URL alone."""

    name: str
    """The sink's name in the outbox."""

    def mark(self) -> BatchMark | None:
        """Return the mark of the last batch; None without one."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Commit the orders, and return what became of them: once this returns, what is done is durable.

        No two of them are of one URL. The mark of their batch is stored in the same transaction, if it `may_follow` the present one. A
        batch may come in parts. Raises IndexUnavailable if the index cannot be used: nothing is acknowledged then.
        """

    def close(self) -> None: ...


class Options(Protocol):
    """The options of a sink, as they are written in the settings. All raise SettingError for a value that is none of that kind."""

    @property
    def name(self) -> str: ...
    @property
    def collection(self) -> str: ...
    @property
    def data_folder(self) -> Path:
        """Of the collection."""

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that isn't blank; without `default` it must be there."""

    def secret(self, key: str) -> str:
        """Return a text, read from the environment or a file if it refers to one; empty where it is not given."""

    def secret_of(self, key: str, name: str) -> str:
        """Return a text of a dict of texts, read like `secret`."""

    def integer(self, key: str, default: int, *, low: int, high: int | None = None) -> int: ...
    def seconds(self, key: str, default: float, *, low: float) -> float: ...
    def boolean(self, key: str, *, default: bool) -> bool: ...
    def table(self, key: str) -> Mapping[str, object]:
        """Return a dict; empty where it is not given."""

    def file(self, key: str) -> Path | None:
        """Return a file that is there; None where none is given."""

    def url(self, key: str) -> str:
        """Return an http or https URL without a slash at its end."""

    def where(self, key: str) -> str:
        """Return how an option is called in a message."""


# --- inventory -----------------------------------------------------------------------------------------------------


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


# --- places --------------------------------------------------------------------------------------------------------


def index_place(file: Path) -> str:
    """Return where a file on this machine is."""
    return f"{socket.gethostname()}:{real_path(file)}"


def place_of(sink: Sink) -> str:
    """Return where a sink is that has a file, its attribute `path`; empty for a server, to which any machine may send."""
    path = getattr(sink, "path", None)
    return index_place(path) if isinstance(path, Path) else ""
