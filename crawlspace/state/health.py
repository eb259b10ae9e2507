"""How a site has answered of late: what tells a page that is gone from a host that is down.

Counted in fetches and not in seconds, so that a clock that is set back changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """`answers` counts normal answers since the site is known. `recent` holds the last fetches as bits, the newest lowest:
    1 for a failure; above the oldest stands a 1 that marks where they begin."""

    answers: int = 0
    recent: int = 1

    def after(self, *, failed: bool, window: int) -> Health:
        """Return the health after one more fetch, of which the last `window` count."""
        recent = self.recent << 1 | failed
        if recent.bit_length() > window + 1:
            recent = recent & ((1 << window) - 1) | 1 << window
        return Health(self.answers + (not failed), recent)

    @property
    def fetches(self) -> int:
        return self.recent.bit_length() - 1

    @property
    def failures(self) -> int:
        return self.recent.bit_count() - 1

    def is_failing(self, percent: int, *, own: int = 0) -> bool:
        """Whether at least so many of a hundred of the last fetches failed, `own` failures left out; so where there were none, too."""
        return max(0, self.failures - own) * 100 >= percent * max(0, self.fetches - own)


NEW_SITE = Health()
