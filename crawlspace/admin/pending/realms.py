"""The realm of imported URLs, and the time at which the older crawler indexed them, kept as named values of the store.

One value has BLOCK ids, which no store gives out twice, as runs of URLs with the same realm and time: URLs that are not imported cost
nothing, and imported ones a few bytes, because a file has few realms and many URLs of each run. All stores have named values, and
`move-store` carries them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

import msgspec

from crawlspace.state.metadata import damaged
from crawlspace.state.store import MetaStore

BLOCK = 1_024
NAME = "imported:"
"""The beginning of the names; the number of the block follows."""


class Origin(NamedTuple):
    """The origin of an imported URL."""

    realm: str | None = None
    """URL-encoded; None: that of the collection."""
    indexed_at: int = 0
    """Unix time; 0: it was not indexed."""


class _Block(msgspec.Struct, array_like=True):
    """The imported URLs of a block."""

    realms: list[str]
    runs: list[tuple[int, int, int, int]]
    """First id within the block, length, index of the realm (-1: that of the collection), time."""


NO_ORIGIN = Origin()


class Origins:
    """Reads and writes the origins of URLs by id. Raises StoreError and its kinds. Ids in ascending order are read fast."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._number = -1
        self._value: str | None = None
        self._block: dict[int, Origin] = {}

    def of(self, id: int) -> Origin:
        """Return the origin of a URL; that of one that was not imported is NO_ORIGIN."""
        self._read(id // BLOCK)
        return self._block.get(id % BLOCK, NO_ORIGIN)

    def of_all(self, ids: Iterable[int]) -> dict[int, Origin]:
        """Return the origin of each of some URLs, in any order."""
        places = [(number, list(some)) for number, some in groupby(sorted(ids), lambda id: id // BLOCK)]
        names = [f"{NAME}{number}" for number, _ in places]
        found = dict[int, Origin]()
        for (_, some), name, value in zip(places, names, self._store.get_metas(names), strict=True):
            block = _decoded(name, value)
            found.update((id, block.get(id % BLOCK, NO_ORIGIN)) for id in some)
        return found

    def write(self, origins: Mapping[int, Origin]) -> None:
        """Replace the origins of these ids."""
        for number, ids in groupby(sorted(origins), lambda id: id // BLOCK):
            self._number = -1  # another process may have written
            self._read(number)
            encoded = _encoded({**self._block, **{id % BLOCK: origins[id] for id in ids}})
            self._number = -1
            if encoded != (self._value or _encoded({})):
                self._store.set_meta(f"{NAME}{number}", encoded)

    def _read(self, number: int) -> None:
        if number != self._number:
            name = f"{NAME}{number}"
            self._value = self._store.get_meta(name)
            self._block = _decoded(name, self._value)
            self._number = number


def _encoded(block: Mapping[int, Origin]) -> str:
    realms: dict[str, int] = {}
    runs: list[tuple[int, int, int, int]] = []
    first = length = 0
    of_run = NO_ORIGIN
    for place in (*sorted(block), BLOCK):
        origin = block.get(place)
        if origin == of_run and place == first + length:
            length += 1
            continue
        if of_run != NO_ORIGIN:
            realm, indexed_at = of_run
            runs.append((first, length, -1 if realm is None else realms.setdefault(realm, len(realms)), indexed_at))
        first, length, of_run = place, 1, origin or NO_ORIGIN
    return msgspec.json.encode(_Block(list(realms), runs)).decode()


def _decoded(name: str, value: str | None) -> dict[int, Origin]:
    if not value:
        return {}
    try:
        block = msgspec.json.decode(value, type=_Block)
        return dict(_origins(block))
    except (msgspec.MsgspecError, LookupError, ValueError) as error:
        raise damaged(name, value) from error


def _origins(block: _Block) -> Iterable[tuple[int, Origin]]:
    for first, length, own, indexed_at in block.runs:
        if not 0 <= first < first + length <= BLOCK:
            raise ValueError("a run is outside its block")
        origin = Origin(None if own < 0 else block.realms[own], indexed_at)
        yield from ((place, origin) for place in range(first, first + length))
