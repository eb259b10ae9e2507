"""How long fetches take: a histogram of all of them, and one for each site, in bounded space."""

from __future__ import annotations

from bisect import bisect_left
from heapq import nlargest

import msgspec

from crawlspace.cache import Recent

BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets, included, as Prometheus has them; the last bucket has what takes longer."""
MOST_SITES = 1_000
"""Sites of a generation of the cache, so that the times of twice as many are known at most: those fetched last."""


class Histogram(msgspec.Struct):
    """Numbers of fetches by the time that they took."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    """One for each bucket, not cumulated."""
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def mean_s(self) -> float:
        return self.sum_s / (self.count or 1)

    def quantile_s(self, share: float) -> float:
        """Return the time within which that share of the fetches ended: within a bucket they are taken to be evenly spread.

        That is what Prometheus's `histogram_quantile` computes; at most the largest bound. 0.0 without any fetch.
        """
        rank = share * self.count
        below = 0
        for number, bound in enumerate(BOUNDS_S):
            count = self.counts[number]
            if count and below + count >= rank:
                lower = BOUNDS_S[number - 1] if number else 0.0
                return lower + (bound - lower) * (rank - below) / count
            below += count
        return BOUNDS_S[-1] if below < self.count else 0.0

    def plus(self, other: Histogram) -> Histogram:
        return Histogram([one + more for one, more in zip(self.counts, other.counts, strict=True)], self.sum_s + other.sum_s)


class SiteTimes(msgspec.Struct, frozen=True):
    """How long the fetches of one site take."""

    site: str
    count: int
    mean_s: float
    p50_s: float
    p95_s: float


class FetchTimes:
    """The times of the fetches of one process."""

    def __init__(self) -> None:
        self.all = Histogram()
        self._by_site: Recent[str, Histogram] = Recent(MOST_SITES)

    def add(self, site: str, seconds: float) -> None:
        self.all.add(seconds)
        of_site = self._by_site.young.get(site) or self._by_site.get(site)
        if of_site is None:
            of_site = Histogram()
            self._by_site.put(site, of_site)
        of_site.add(seconds)

    def slowest(self, most: int) -> list[SiteTimes]:
        """Return the sites whose fetches take longest on average, the slowest first."""
        found = nlargest(most, self._by_site.items(), key=lambda item: item[1].mean_s)
        return [
            SiteTimes(site, of.count, round(of.mean_s, 3), round(of.quantile_s(0.5), 3), round(of.quantile_s(0.95), 3))
            for site, of in found
        ]
