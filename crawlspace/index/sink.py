"""The interface of an index, and what an index may be able to do besides accepting orders."""

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
    """The order that was sent."""
    reason: str
    """Why, as a person is shown it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of orders that were sent; those in neither list are done."""

    refused: Sequence[Refusal] = ()
    """Orders that the index will never accept: they are parked."""
    later: Sequence[IndexOrder] = ()
    """Orders that the index has not accepted and may accept later."""
    why_later: str = ""
    """Why it has not, as a person is shown it."""
    is_slow: bool = False
    """The index answers, and accepts no more at a time: smaller batches may pass."""
    above: int = 0
    """The version of a document in the index that is not below that of its order: later orders must have larger ones. 0: none."""


ALL_DONE = Sent()


class Sink(Protocol):
    """An index that accepts orders. Sending an order twice is harmless, because ids depend on the URL alone."""

    name: str
    """The sink's name in the outbox."""

    def mark(self) -> BatchMark | None:
        """Return the mark of the last batch; None without one."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Commit the orders, and return the result: once this returns, what is done is durable.

        No two of them have the same URL. The mark of their batch is stored in the same transaction, if it `may_follow` the present one. A
        batch may come in parts. Raises IndexUnavailable if the index cannot be used: nothing is acknowledged then.
        """

    def close(self) -> None:
        """End connections. Nothing is sent afterwards."""


def index_place(file: Path) -> str:
    """Return host name and path of a file."""
    return f"{socket.gethostname()}:{real_path(file)}"


def place_of(sink: Sink) -> str:
    """Return host name and path of a sink that has a file, its attribute `path`; empty for a server, to which any host may send."""
    path = getattr(sink, "path", None)
    return index_place(path) if isinstance(path, Path) else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A document in an index."""

    url: str
    version: int
    """The version of the order that it came with; 0 if the index does not know."""
    owner: str
    """The collection that it belongs to; empty if the index does not know."""


@runtime_checkable
class Inventory(Protocol):
    """An index that can list its documents. All methods raise IndexUnavailable."""

    def look_up(self, urls: Sequence[str]) -> Mapping[str, Entry]:
        """Return the present entries of those URLs that have a document, of any owner."""

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection, a page at a time, in bounded memory.

        What is written meanwhile may be missing; all else is there once.
        """


@dataclass(frozen=True, slots=True)
class Copies:
    """The indexes of a sink on its server, by name; empty if there is none."""

    present: str
    """The index that is searched."""
    next: str
    """The index that is being built: all orders go there, too."""
    previous: str
    """The index that was searched before the last switch."""


class BuiltCopy(Inventory, Protocol):
    """An index that is being built while another one is searched."""

    def send(self, orders: Sequence[IndexOrder]) -> Sent:
        """Write documents, each with the version of its order; a document with a later version stays as it is."""

    def carry_over(self, urls: Sequence[str]) -> None:
        """Copy documents from the searched index, with their versions; missing ones are left out."""

    def remove(self, entries: Sequence[Entry]) -> None:
        """Delete documents, unless they have a later version by now."""

    def count(self, *, owner: str | None) -> int:
        """Return the number of documents of a collection, or of all."""

    def entries_of_others(self, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield the entries of all other collections."""


@runtime_checkable
class Rebuildable(Inventory, Protocol):
    """An index of which a new one can be built while it is searched. All methods raise IndexUnavailable."""

    def copies(self) -> Copies: ...

    def begin_next(self, *, on_previous: bool = False) -> None:
        """Send all orders, of every process, to another index, too: to a new one, or to the one before the last switch."""

    def next_copy(self) -> BuiltCopy: ...

    def count(self, *, owner: str | None) -> int:
        """Return the number of documents of a collection, or of all, in the searched index."""

    def entries_of_others(self, owner: str) -> Iterator[Sequence[Entry]]: ...

    def duplicates_of(self, urls: Sequence[str]) -> Mapping[str, list[str]]:
        """Return the duplicates stored with documents of the searched index."""

    def switch(self) -> None:
        """Let the next index be searched, in one step, and keep the present one as the previous."""

    def give_up_next(self) -> None:
        """Send no more orders to the next index, and delete it, unless it is the previous one."""


class Options(Protocol):
    """The options of a sink, as written in the settings. All methods raise SettingError for a value of another kind."""

    @property
    def name(self) -> str:
        """The name of the sink in the settings."""

    @property
    def collection(self) -> str:
        """The name of the collection."""

    @property
    def data_folder(self) -> Path:
        """The folder of the collection's data."""

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that isn't blank; without `default` it is required."""

    def secret(self, key: str) -> str:
        """Return a text, read from the environment or a file if it refers to one; empty if it is missing."""

    def secret_of(self, key: str, name: str) -> str:
        """Return a text of a dict of texts, read like `secret`."""

    def integer(self, key: str, default: int, *, low: int, high: int | None = None) -> int:
        """Return a whole number within its bounds."""

    def seconds(self, key: str, default: float, *, low: float) -> float:
        """Return a number of seconds, or of a text such as `"5m"`; at least `low`."""

    def table(self, key: str) -> Mapping[str, object]:
        """Return a dict; empty if it is missing."""

    def file(self, key: str) -> Path | None:
        """Return an existing file; None if it is missing."""

    def url(self, key: str) -> str:
        """Return an http or https URL without a slash at its end."""

    def where(self, key: str) -> str:
        """Return the name of an option in messages."""
