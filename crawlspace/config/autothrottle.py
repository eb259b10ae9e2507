"""Scrapy's AUTOTHROTTLE_ settings, read as Scrapy's AutoThrottle extension reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace.errors import SettingError
from crawlspace.parsing import boolean, duration
from crawlspace.text import quoted


@dataclass(frozen=True, slots=True)
class ThrottleSettings:
    """How the delay of a site follows its latency."""

    start_delay_s: float
    """The delay until a site has answered."""
    max_delay_s: float
    target_concurrency: float
    """Requests to a site that are to be in flight on average."""
    debug: bool
    """Whether each change is logged."""


def read_throttle(settings: Mapping[str, object]) -> ThrottleSettings | None:
    """Read the settings; None where delays do not follow the latency. Raises SettingError."""
    if not boolean("AUTOTHROTTLE_ENABLED", settings.get("AUTOTHROTTLE_ENABLED", False)):
        return None
    name = "AUTOTHROTTLE_TARGET_CONCURRENCY"
    value = settings.get(name, 1.0)
    target = duration(name, value, low=0)
    if not target:
        raise SettingError(f"{name} is {quoted(value)}; it must be above 0")
    return ThrottleSettings(
        start_delay_s=duration("AUTOTHROTTLE_START_DELAY", settings.get("AUTOTHROTTLE_START_DELAY", 5.0), low=0),
        max_delay_s=duration("AUTOTHROTTLE_MAX_DELAY", settings.get("AUTOTHROTTLE_MAX_DELAY", 60.0), low=0),
        target_concurrency=target,
        debug=boolean("AUTOTHROTTLE_DEBUG", settings.get("AUTOTHROTTLE_DEBUG", False)),
    )
