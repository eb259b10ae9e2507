"""The Retry-After header in both its forms (RFC 9110 section 10.2.3)."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from scrapy.http import Response

LONGEST = 100
"""Characters that are looked at; a date has some thirty."""


def retry_after_of(response: Response, *, now: float) -> float | None:
    """Return the seconds to wait that a response asks for, if it does."""
    value = response.headers.get(b"Retry-After")
    return retry_after_s(value.decode("latin-1"), now=now) if value is not None else None


def retry_after_s(value: str, *, now: float) -> float | None:
    """Return the seconds to wait, from a number of seconds or an HTTP date; None when it is neither.

    A date without a zone is in UTC, as are all HTTP dates (RFC 9110 section 5.6.7).
    """
    text = value.strip()[:LONGEST]
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
        moment = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return max(0.0, moment - now)
