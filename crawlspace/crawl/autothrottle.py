"""The delay of a site that follows its latency, by the formula of Scrapy's AutoThrottle extension (scrapy/extensions/throttle.py).

Scrapy changes the delay of its download slots. Here the frontier keeps the delays, so the formula is applied to those.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from crawlspace.cache import Recent
from crawlspace.config.autothrottle import ThrottleSettings

logger = logging.getLogger(__name__)

SITES = 50_000
"""Sites whose delay is remembered, at least; others begin with the start delay again."""


class AutoThrottle:
    """The delays of the sites of this process. `least_s` is what settings, time of the week and robots.txt ask for."""

    def __init__(self, settings: ThrottleSettings) -> None:
        self._settings = settings
        self._delays: Recent[str, float] = Recent(SITES)

    def delay_s(self, site: str, *, least_s: float) -> float:
        """Return the delay of a site."""
        delay_s = self._delays.get(site)
        return max(least_s, self._settings.start_delay_s if delay_s is None else delay_s)

    def answered(self, site: str, *, latency_s: float, status: int, least_s: float) -> bool:
        """Take the latency of a response. Returns whether the delay of the site has changed."""
        settings = self._settings
        before_s = self.delay_s(site, least_s=least_s)
        target_s = latency_s / settings.target_concurrency
        after_s = max(target_s, (before_s + target_s) / 2)
        after_s = max(least_s, min(after_s, settings.max_delay_s))
        if status != HTTPStatus.OK and after_s < before_s:  # errors are fast, and would make a failing site be asked more often
            after_s = before_s
        self._delays.put(site, after_s)
        if settings.debug:
            logger.info(
                "%s: delay %d ms (%+d), latency %d ms, status %d",
                site,
                after_s * 1000,
                (after_s - before_s) * 1000,
                latency_s * 1000,
                status,
            )
        return after_s != before_s
