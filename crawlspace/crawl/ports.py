"""What a running crawl reads and writes for each page: the store itself, or a view of it where several workers share the crawl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from crawlspace.crawl.batch import RecordStore
from crawlspace.frontier.ports import LeaseStore, OtherWorkers
from crawlspace.frontier.robots.cache import RobotsStore
from crawlspace.state.once_a_run import RunStore
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import UnreachableSite


class ResultStore(RecordStore, RobotsStore, RunStore, Protocol):
    """Where the results of a crawl are kept."""

    def health(self, site: str) -> Health: ...
    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None: ...
    def count_refusals(self, by_reason: Mapping[str, int]) -> None: ...
    def version(self) -> int: ...


class SharedLeases(LeaseStore, OtherWorkers, Protocol):
    """The sites of one worker."""


class WorkerView(ResultStore, Protocol):
    """How one of several workers uses the store."""

    @property
    def sites(self) -> SharedLeases: ...
