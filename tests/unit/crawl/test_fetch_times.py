"""The histogram of how long fetches take, and the slowest sites."""

from __future__ import annotations

import pytest

from crawlspace.crawl.fetch_times import BOUNDS_S, MOST_SITES, FetchTimes, Histogram

# times -> the numbers by bucket that are not 0, the sum, the median, the time of 95 %
ROWS: list[tuple[list[float], dict[float | None, int], float, float, float]] = [
    ([], {}, 0.0, 0.0, 0.0),
    ([0.05], {0.05: 1}, 0.05, 0.025, 0.0475),
    ([0.0, 0.051], {0.05: 1, 0.1: 1}, 0.051, 0.05, 0.095),
    ([0.2] * 10, {0.25: 10}, 2.0, 0.175, 0.2425),
    ([0.2] * 5 + [3.0] * 5, {0.25: 5, 5.0: 5}, 16.0, 0.25, 4.75),
    ([61.0], {None: 1}, 61.0, 60.0, 60.0),
    ([0.3] * 9 + [100.0], {0.5: 9, None: 1}, 102.7, 0.25 + 0.25 * 5 / 9, 60.0),
]


@pytest.mark.parametrize(("times", "buckets", "total", "median", "most"), ROWS)
def test_a_histogram(times: list[float], buckets: dict[float | None, int], total: float, median: float, most: float) -> None:
    histogram = Histogram()
    for seconds in times:
        histogram.add(seconds)
    found = {bound: count for bound, count in zip([*BOUNDS_S, None], histogram.counts, strict=True) if count}
    assert found == buckets
    assert [histogram.count, histogram.sum_s] == pytest.approx([len(times), total])
    assert [histogram.quantile_s(0.5), histogram.quantile_s(0.95)] == pytest.approx([median, most])
    twice = histogram.plus(histogram)
    assert [twice.count, twice.sum_s] == pytest.approx([2 * len(times), 2 * total])


def test_the_slowest_sites_come_first() -> None:
    times = FetchTimes()
    for site, seconds in [("a.example:80", 0.2), ("b.example:80", 3.0), ("c.example:80", 1.0), ("a.example:80", 0.4)]:
        times.add(site, seconds)
    assert [(one.site, one.count, one.mean_s) for one in times.slowest(2)] == [("b.example:80", 1, 3.0), ("c.example:80", 1, 1.0)]
    assert times.all.count == 4


def test_the_sites_are_bounded() -> None:
    times = FetchTimes()
    for number in range(5 * MOST_SITES):
        times.add(f"{number}.example:80", 1.0)
    assert len(times.slowest(10 * MOST_SITES)) <= 2 * MOST_SITES
    assert times.all.count == 5 * MOST_SITES
