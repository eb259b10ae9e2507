"""When known URLs are due, in Redis: changes to many of them, by `lua/queue.lua`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from crawlspace.model import Queue
from crawlspace.state.hastening import AT_ONCE, Hastened, hastened
from crawlspace.state.redis.encoding import understood


class RedisDueTimes(ABC):
    """The part of the store that changes the times of many URLs."""

    @abstractmethod
    def _write(self, operation: str, **args: object) -> Any: ...

    def hasten(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> Hastened:
        return self._changed("hasten", latest=latest, after=after, limit=limit, fetched_by=fetched_by, before=until)

    def hasten_retries(self, latest: int) -> int:
        total = 0
        while count := self._write("hasten_retries", latest=latest):
            total += count
        return total

    def schedule(self, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> Hastened:
        return self._changed("schedule", latest=at, after=after, limit=limit, fetched_by=fetched_by)

    def set_age_counts(self, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> Hastened:
        return self._changed("set_age_counts", counts=counts, latest=latest, after=after, limit=limit)

    def _changed(self, operation: str, **args: object) -> Hastened:
        count, last, places = self._write(operation, **args)
        with understood("the names of its sites"):
            return hastened(count, last, ((site.decode(), Queue.of_index(int(index)), int(at)) for site, index, at in places))
