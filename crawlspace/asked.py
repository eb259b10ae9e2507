"""Who has a known URL fetched before it would be due by itself."""

from __future__ import annotations

from enum import IntEnum


class Asked(IntEnum):
    """It holds until the next fetch of the URL is complete. The numbers are stored."""

    NO = 0
    BY_PERSON = 1
    """It waits in source user."""
    BY_SCHEDULE = 2
    """A scheduled refresh: it waits in source index."""
