"""The setting CRAWLSPACE_ORPHANS: what becomes of URLs to which no way leads any more from a start URL."""

from __future__ import annotations

from crawlspace.errors import SettingError
from crawlspace.text import quoted


def read_orphans(value: object) -> int | None:
    """Return after how many runs orphans are deleted; None for "keep". Raises SettingError."""
    if value == "keep":
        return None
    what, _, number = value.partition(":") if isinstance(value, str) else ("", "", "")
    if what == "delete" and number.isascii() and number.isdigit() and int(number) >= 1:
        return int(number)
    shown = quoted(value) if isinstance(value, str) else repr(value)
    raise SettingError(f'CRAWLSPACE_ORPHANS is {shown}: write "keep", or "delete:3" to delete them after three runs')
