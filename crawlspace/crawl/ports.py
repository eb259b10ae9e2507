"""What a running crawl reads and writes for each page: the store itself, or a view of it where several workers share the crawl."""

from __future__ import annotations

from typing import Protocol

from crawlspace.crawl.batch import RecordStore
from crawlspace.frontier.ports import OtherWorkers
from crawlspace.frontier.robots.cache import RobotsStore
from crawlspace.state.site_health import Health
from crawlspace.state.store import LeaseStore, RunStore
from crawlspace.state.unreachable import UnreachableSite


class PageStore(RecordStore, RobotsStore, RunStore, Protocol):
    """What does not wait for the server where several workers share the crawl."""

    def health(self, site: str) -> Health: ...
    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None: ...
    def version(self) -> int: ...


class SharedLeases(LeaseStore, OtherWorkers, Protocol):
    """The sites of one worker."""


class WorkerView(PageStore, Protocol):
    """How one of several workers uses the store."""

    @property
    def sites(self) -> SharedLeases: ...
