"""The health of a site by its last fetches: distinguishes a page that is gone from a host that is down or refuses everything.

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
"""Responses about the client rather than the page: a firewall or an expired password causes them for every request."""
MISSING = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
"""Responses that mean that a page is gone, unless most of the site returns them."""


@dataclass(frozen=True, slots=True)
class Health:
    """`answers` counts normal answers since the site is known. `recent` holds the last fetches as bits, the newest lowest:
    1 for a failure or a refusal; a 1 above the oldest marks the beginning. `missing` holds the same fetches:
    1 for a 404 or 410, which is neither a failure nor a normal answer. `shown` holds what the last fetches of documents showed
    instead of them, the newest last: the signature of another page or text (`crawl/redirects.py`), else 0; it is empty where all are 0."""

    answers: int = 0
    recent: int = 1
    missing: int = 0
    shown: tuple[int, ...] = ()

    def after(
        self,
        *,
        failed: bool = False,
        missing: bool = False,
        answered: bool = True,
        shown: int | None = None,
        window: int,
    ) -> Health:
        """Return the health after one more fetch, of which the last `window` count.

        `answered`: whether a fetch that neither failed nor was missing is a normal answer. `shown`: the signature shown instead of a document,
        0 for none; None if the URL had no document.
        """
        recent = self.recent << 1 | failed
        pages = self.missing << 1 | missing
        if recent.bit_length() > window + 1:
            recent = recent & ((1 << window) - 1) | 1 << window
            pages &= (1 << window) - 1
        signatures = self.shown
        if shown or (shown is not None and signatures):
            signatures = (*signatures, shown)[-window:]
            signatures = signatures if any(signatures) else ()
        return Health(self.answers + (answered and not failed and not missing), recent, pages, signatures)

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
        """Return whether at least `percent` of the last fetches failed, without `own` failures; True if there were none."""
        return max(0, self.failures - own) * 100 >= percent * max(0, self.fetches - own)

    def is_mostly_missing(self, window: int) -> bool:
        """Whether more than half of the last `window` fetches were answered with 404 or 410."""
        return self.misses * 2 > window

    def mostly_shows(self, signature: int, window: int) -> bool:
        """Whether more than half of the last `window` fetches of documents showed the same page or text instead."""
        return self.shown.count(signature) * 2 > window

    @property
    def shown_as_text(self) -> str:
        """Return `shown` as `signatures_of` reads it."""
        return ",".join(map(str, self.shown))

    def as_text(self) -> str:
        """Return it as `health_of` reads it."""
        numbers = f"{self.answers} {self.recent}"
        if self.shown:
            return f"{numbers} {self.missing} {self.shown_as_text}"
        return f"{numbers} {self.missing}" if self.missing else numbers


NEW_SITE = Health()


def health_of(text: str | bytes) -> Health:
    """Return what `as_text` wrote, which leaves out last values of 0. Raises ValueError."""
    answers, recent, *more = text.split()
    missing, shown = (*more, b"", b"")[:2]
    return Health(int(answers), int(recent), int(missing or 0), signatures_of(shown))


def signatures_of(text: str | bytes) -> tuple[int, ...]:
    """Return what `shown_as_text` wrote. Raises ValueError."""
    written = text.decode() if isinstance(text, bytes) else text
    return tuple(map(int, written.split(","))) if written else ()
