"""What the frontier needs beside the store: the other workers, and how fast sites may be asked."""

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
    """How fast sites may be asked at present."""

    def of(self, site: str) -> Pace: ...

    def change_at(self) -> float:
        """When the phase may become another, in seconds since 1970; infinite where it won't."""

    def phase(self) -> object:
        """What holds for all sites at present. While it is the same, a site's pace changes only with its robots.txt."""
