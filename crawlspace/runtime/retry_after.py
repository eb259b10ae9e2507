"""The Retry-After header in both its forms (RFC 9110 section 10.2.3)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


def retry_after_s(value: str, *, now: float) -> float | None:
    """Return the seconds to wait, from a number of seconds or an HTTP date; None when it is neither."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return max(0.0, moment - now)
