"""Bounded caches with two generations: when the younger one is full, the older one is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Hold at most `2 * size` entries. No value may be None.

    `young` holds the newest entries: callers on the hot path look there first, which saves a method call.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self.young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        if len(self.young) >= self._size:
            self._age()
        self.young[key] = value

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield all entries, without making them newer."""
        yield from self.young.items()
        yield from ((key, value) for key, value in self._old.items() if key not in self.young)

    def drop(self, key: K) -> None:
        self.young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self.young.clear()
        self._old.clear()

    def _age(self) -> None:
        self._old = self.young
        self.young = {}


class RecentByWeight(Recent[K, V]):
    """A cache bounded by weight: a generation is full when its entries weigh `size` together."""

    def __init__(self, size: int, weigh: Callable[[K, V], int]) -> None:
        super().__init__(size)
        self._weigh = weigh
        self._weight = 0

    def put(self, key: K, value: V) -> None:
        if self._weight >= self._size:
            self._age()
            self._weight = 0
        self.young[key] = value
        self._weight += self._weigh(key, value)
