"""Scripts and data that several pages load, fetched once."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple

SHORT_S = 60.0
"""How long data without a word about that is kept."""
LONG_S = 3600.0
"""The same of scripts and styles, and the longest of all."""
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})")
_CODE = ("javascript", "ecmascript", "text/css", "wasm")


class Resource(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class CachedResources:
    """Answers by key, of `most_bytes` together; who asks for what is being loaded waits for it."""

    def __init__(self, most_bytes: int, clock: Callable[[], float] = monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[float, Resource]] = OrderedDict()
        self._loading: dict[str, asyncio.Task[Resource | None]] = {}

    async def get(self, key: str, load: Callable[[], Awaitable[Resource | None]]) -> Resource | None:
        """Return what is kept, else what `load` returns, which is kept as long as its headers allow."""
        kept = self._kept.get(key)
        if kept is not None:
            if kept[0] > self._clock():
                self._kept.move_to_end(key)
                return kept[1]
            self._drop(key)
        others = self._loading.get(key)
        if others is not None and (found := await asyncio.shield(others)) is not None:
            return found
        task = self._loading.get(key)  # those who waited with this one may be loading it by now
        if task is None:
            task = self._loading[key] = asyncio.ensure_future(self._load(key, load))
        return await asyncio.shield(task)

    async def _load(self, key: str, load: Callable[[], Awaitable[Resource | None]]) -> Resource | None:
        try:
            found = await load()
        finally:
            del self._loading[key]
        lasts_s = 0.0 if found is None else fresh_for_s(found)
        if found is not None and lasts_s and len(found.body) * 4 < self._most_bytes:
            self._kept[key] = self._clock() + lasts_s, found
            self._bytes += len(found.body)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))
        return found

    def _drop(self, key: str) -> None:
        self._bytes -= len(self._kept.pop(key)[1].body)


def fresh_for_s(answer: Resource) -> float:
    """Return for how many seconds an answer may be used again (RFC 9111, 4.2; heuristic where it says nothing)."""
    headers = {name.lower(): value.lower() for name, value in answer.headers.items()}
    control = headers.get("cache-control", "")
    if answer.status != 200 or "set-cookie" in headers or headers.get("vary", "").strip() == "*":
        return 0.0
    if "no-store" in control or "no-cache" in control or headers.get("pragma", "") == "no-cache":
        return 0.0
    age = _MAX_AGE.search(control)
    if age is not None:
        return min(float(age[1]), LONG_S)
    return LONG_S if any(kind in headers.get("content-type", "") for kind in _CODE) else SHORT_S
