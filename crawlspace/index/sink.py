"""The interface of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crawlspace.document import IndexOrder
from crawlspace.index.marks import BatchMark


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
