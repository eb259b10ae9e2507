"""How a site answered its last fetches: distinguishes a page that is gone from a host that is down or refuses everything.

Counted in fetches, not in seconds, so that a clock that is set back changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

REFUSALS = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS,
    }
)
"""Answers that concern the client rather than the page: a firewall or an expired password gives them to every request."""
MISSING = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
"""Answers that mean that a page is gone, as long as not most of the site answers so."""


@dataclass(frozen=True, slots=True)
class Health:
    """`answers` counts normal answers since the site is known. `recent` holds the last fetches as bits, the newest lowest:
    1 for a failure or a refusal; above the oldest stands a 1 that marks where they begin. `missing` holds the same fetches:
    1 for a 404 or 410, which is neither a failure nor a normal answer."""

    answers: int = 0
    recent: int = 1
    missing: int = 0

    def after(self, *, failed: bool = False, missing: bool = False, window: int) -> Health:
        """Return the health after one more fetch, of which the last `window` count."""
        recent = self.recent << 1 | failed
        pages = self.missing << 1 | missing
        if recent.bit_length() > window + 1:
            recent = recent & ((1 << window) - 1) | 1 << window
            pages &= (1 << window) - 1
        return Health(self.answers + (not failed and not missing), recent, pages)

    @property
    def fetches(self) -> int:
        return self.recent.bit_length() - 1

    @property
    def failures(self) -> int:
        return self.recent.bit_count() - 1

    @property
    def misses(self) -> int:
        """Return the number of the last fetches that were answered with 404 or 410."""
        return self.missing.bit_count()

    def is_failing(self, percent: int, *, own: int = 0) -> bool:
        """Whether at least so many of a hundred of the last fetches failed, `own` failures left out; so where there were none, too."""
        return max(0, self.failures - own) * 100 >= percent * max(0, self.fetches - own)

    def is_mostly_missing(self, window: int) -> bool:
        """Whether more than half of the last `window` fetches were answered with 404 or 410."""
        return self.misses * 2 > window

    def as_text(self) -> str:
        """Return it as `health_of` reads it."""
        return f"{self.answers} {self.recent} {self.missing}" if self.missing else f"{self.answers} {self.recent}"


NEW_SITE = Health()


def health_of(text: str | bytes) -> Health:
    """Return what `as_text` wrote, which leaves out a last number of 0."""
    return Health(*map(int, text.split()))
