"""The interfaces that the frontier needs beside the store: the other workers, and the source of delays."""

from __future__ import annotations

from typing import Protocol

from crawlspace.frontier.site_queue import Pace


class OtherWorkers(Protocol):
    """The other workers of a shared crawl."""

    def give_up(self, site: str) -> None:
        """Have none of them fetch anything of the site in this run."""

    def resume(self, site: str) -> None:
        """Have them fetch a site again that was given up."""


class DelaySource(Protocol):
    """The current pace of sites."""

    def of(self, site: str) -> Pace: ...

    def change_at(self) -> float:
        """Return when the phase may change, in seconds since 1970; infinite if it won't."""

    def phase(self) -> object:
        """Return the state common to all sites. While it is equal, a site's pace changes only with its robots.txt."""
