"""Encoding of the keys of the URLs that a page links to: eight bytes each, little-endian."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from sys import byteorder


def pack_keys(keys: Iterable[int]) -> bytes:
    """Return keys in their stored form."""
    packed = array("q", keys)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_keys(targets: bytes) -> array[int]:
    """Return stored keys. Raises ValueError for bytes that are not a whole number of keys."""
    keys = array("q")
    keys.frombytes(targets)
    if byteorder == "big":
        keys.byteswap()
    return keys


def folded_links(pages: Sequence[tuple[int, bytes]], into: Mapping[int, int]) -> list[tuple[bytes, int]]:
    """Return the changed links of pages, with their ids, after each key of `into` is replaced by its value.

    Duplicate keys are removed. All keys are looked up at once: page by page it takes twice as long.
    """
    before = unpack_keys(b"".join(targets for _, targets in pages))
    after = pack_keys(map(into.get, before, before))
    end, changed = 0, []
    for id, targets in pages:
        start, end = end, end + len(targets)
        new = after[start:end]
        if new != targets:
            keys = unpack_keys(new)
            changed.append((new if len(set(keys)) == len(keys) else pack_keys(dict.fromkeys(keys)), id))
    return changed


def moved_links(links: Mapping[int, Sequence[int]], into: Mapping[int, int | None]) -> dict[int, list[int]]:
    """Return the new links, by id, of pages whose links become those of others, and of those others. `links` has those of all of them."""
    moved: dict[int, dict[int, None]] = {}
    for id, page in into.items():
        if page is not None and links.get(id):
            if page not in moved:
                moved[page] = dict.fromkeys(links.get(page, ()))
            moved[page].update(dict.fromkeys(links[id]))
    return {**{id: list(keys) for id, keys in moved.items()}, **{id: [] for id in into if id in links}}
