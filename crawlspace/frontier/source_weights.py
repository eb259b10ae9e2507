"""Choose the next source in proportion to weight, among those with a URL ready to fetch.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): each pick advances its source by the inverse of its weight, and the source
that is farthest behind goes first. So a source with a hundredth of the weight is picked a hundredth as often, evenly spread, and
none starves. A source that had nothing ready continues at the position of the last pick: it doesn't catch up.
"""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.errors import SettingError, did_you_mean
from crawlspace.model import Source
from crawlspace.parsing import table
from crawlspace.text import quoted

NAME = "CRAWLSPACE_SOURCE_WEIGHTS"

DEFAULT_WEIGHTS: Mapping[Source, int] = {
    Source.USER: 10_000,
    Source.REDIR: 2_000,
    Source.INDEX: 1_000,
    Source.INDEX_FOLLOW: 100,
    Source.FOLLOW: 10,
    Source.REFRESH: 1,
}

_HEAVIEST = 1_000_000


def read_weights(value: object) -> Mapping[Source, int]:
    """Read CRAWLSPACE_SOURCE_WEIGHTS over the default weights. Raises SettingError."""
    weights = dict(DEFAULT_WEIGHTS)
    by_label = {source.label: source for source in Source}
    for label, weight in table(NAME, value, example='{"refresh": 10, "follow": 0}').items():
        source = by_label.get(str(label))
        if source is None:
            meant = did_you_mean(str(label), by_label, f"there are {', '.join(by_label)}")
            raise SettingError(f"{NAME} names an unknown source {quoted(label)}: {meant}")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= _HEAVIEST:
            raise SettingError(
                f"{NAME}[{quoted(label)}] is {quoted(weight)}; a weight is a whole number from 0 (paused) to {_HEAVIEST:,}"
            )
        weights[source] = weight
    if not any(weights.values()):
        raise SettingError(f"{NAME} pauses every source, so that nothing would be crawled; give one of them a weight above 0")
    return weights


class WeightedSources:
    """Orders the sources by weighted round robin. A weight of 0 pauses a source."""

    def __init__(self, weights: Mapping[Source, int]) -> None:
        self._strides = {source: 1 / weights[source] for source in Source if weights.get(source, 0) > 0}
        self._positions = {source: stride / 2 for source, stride in self._strides.items()}
        self._now = 0.0
        """Position of the last pick; a source that was always ready is not behind it."""

    @property
    def running(self) -> frozenset[Source]:
        """The sources that are not paused."""
        return frozenset(self._strides)

    def order(self) -> list[Source]:
        """Return the sources that are not paused, in the order of their next slots; of equal ones, in the order of `Source`."""
        return sorted(self._positions, key=self._position_of)

    def picked(self, source: Source) -> None:
        position = self._position_of(source)
        self._now = max(self._now, position)
        self._positions[source] = position + self._strides[source]

    def not_picked(self, source: Source) -> None:
        """Take back the last pick of a source."""
        self._positions[source] -= self._strides[source]

    def _position_of(self, source: Source) -> float:
        return max(self._positions[source], self._now)
