"""What the frontier asks of the store, and of those who know how fast a site may be asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from crawlspace.frontier.site_queue import Pace
from crawlspace.model import Queue, UrlState
from crawlspace.state.store import Site


class LeaseStore(Protocol):
    def sites(self) -> Iterator[Site]: ...
    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]: ...
    def release(self, ids: Iterable[int]) -> None: ...
    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]: ...
    def due(self, site: str) -> list[tuple[Queue, int]]: ...
    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None: ...


class OtherWorkers(Protocol):
    """The other workers of a shared crawl."""

    def give_up(self, site: str) -> None:
        """Have none of them fetch anything of the site in this run."""

    def resume(self, site: str) -> None:
        """Have them fetch a site again that was given up."""


class DelaySource(Protocol):
    """How fast sites may be asked at present."""

    def of(self, site: str) -> Pace: ...

    def change_at(self) -> float:
        """When the phase may become another, in seconds since 1970; infinite where it won't."""

    def phase(self) -> object:
        """What holds for all sites at present. While it is the same, a site's pace changes only with its robots.txt."""
