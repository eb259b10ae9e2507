"""The paces of sites, where a test sets them."""

from __future__ import annotations

from math import inf

from crawlspace.frontier.site_queue import Pace


class FixedDelays:
    """One pace of all sites; `changes` is when another one holds."""

    changes = inf

    def __init__(self, delay_s: float = 0.0, concurrency: int = 1) -> None:
        self.pace = Pace(delay_s, concurrency)

    def of(self, site: str) -> Pace:
        return self.pace

    def change_at(self) -> float:
        return self.changes

    def phase(self) -> Pace:
        return self.pace
