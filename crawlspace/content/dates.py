"""Times of HTTP headers and of the metadata of pages and files, in ISO 8601."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ISO = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?(?:[T ](\d\d):(\d\d)(?::(\d\d))?(?:\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?")
_DAY = re.compile(r"(\d{4})(?:([/.])(\d\d?)\2(\d\d?)|(\d\d)(\d\d))(?![\d:])")
_DAY_FIRST = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})(?![\d.])")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)\.?"
)
_ENGLISH = re.compile(
    rf"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
    rf"(?:{_MONTH} (\d\d?)(?:st|nd|rd|th)?|(\d\d?)(?:st|nd|rd|th)? {_MONTH}),? (\d{{4}})"
    r"(?:,?(?: at)? (\d\d?):(\d\d)(?::(\d\d))?(?: ?([ap])\.?m\.?)?)?",
    re.IGNORECASE,
)
"""A day with the English name of its month, and perhaps a time."""
_BASIC = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)?(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?")
"""ISO 8601 without separators."""
_PDF = re.compile(r"(?:D:)?\s*(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?\s*(Z|[+-]\d\d'?(?:\d\d)?)?")


def http_time(text: str) -> str:
    """Return an HTTP date (RFC 9110, 5.6.7) as 2024-05-01T12:00:00Z; empty for anything else."""
    if text[26:] == "GMT" and text[8:11] in _MONTHS:
        when = f"{text[12:16]}-{_MONTHS.index(text[8:11]) + 1:02}-{text[5:7]}T{text[17:25]}Z"
        with suppress(ValueError):
            datetime.fromisoformat(when)
            return when
    try:
        other = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return ""
    return _time((*map(str, other.timetuple()[:6]), other.strftime("%z") or None))


def written_time(text: str) -> str:
    """Return a time as pages write it; empty for anything else.

    That is in ISO 8601, as a day (2024/5/1, 20240501, 1.5.2024, May 1, 2024, 1 May 2024), a year, or as in HTTP.
    """
    text = text.strip()
    if re.fullmatch(r"[12]\d{3}", text):
        return text
    if (match := _BASIC.fullmatch(text)) is not None:
        return _time(match.groups())
    if (match := _ENGLISH.fullmatch(" ".join(text.split()))) is not None:
        return _english_time(match)
    if (match := _DAY_FIRST.match(text)) is not None:
        text = f"{match[3]}-{match[2]:0>2}-{match[1]:0>2}"
    elif (match := _DAY.match(text)) is not None:
        text = f"{match[1]}-{match[3] or match[5]:0>2}-{match[4] or match[6]:0>2}"
    return iso_time(text) or http_time(text)


def _english_time(match: re.Match[str]) -> str:
    """Return the time of a match of `_ENGLISH`; a day where it has none."""
    month, day = _MONTHS.index((match[1] or match[4])[:3].title()) + 1, match[2] or match[3]
    if match[6] is None:
        return iso_time(f"{match[5]}-{month:02}-{day:0>2}")
    hour = int(match[6])
    if match[9]:
        hour = hour % 12 + (12 if match[9] in "pP" else 0)
    return _time((match[5], str(month), day, str(hour), match[7], match[8], None))


def iso_time(text: str) -> str:
    """Return a time in ISO 8601 in UTC, as 2024-05-01T12:00:00Z; a day unchanged; empty for anything else."""
    match = _ISO.match(text.strip())
    if match is None:
        return ""
    time = _time(match.groups())
    return match[0].strip() if time and match[4] is None else time


def pdf_time(text: str) -> str:
    """Return a time of a PDF (ISO 32000, 7.9.4) in UTC; empty for anything else."""
    match = _PDF.match(text.strip())
    return _time(match.groups()) if match is not None else ""


def _time(parts: tuple[str | None, ...]) -> str:
    year, month, day, hour, minute, second, zone = parts
    try:
        when = datetime(
            int(year or 0), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=_zone(zone)
        )
        return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return ""


def _zone(text: str | None) -> timezone:
    digits = re.sub(r"\D", "", text or "")
    if not digits:
        return UTC
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4] or 0))
    return timezone(-offset if text and text.startswith("-") else offset)
