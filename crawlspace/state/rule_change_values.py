"""What a change of the rules writes to a URL, as values by field of UrlState: the stores write it to many URLs in one statement."""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.model import Asked, Held, State

Values = Mapping[str, int | None]

EXCLUDED: Values = {
    "state": State.EXCLUDED,
    "next_fetch": None,
    "interval_s": None,
    "retries": 0,
    "errors": 0,
    "lease_until": None,
    "etag": None,
    "last_modified": None,
    "checksum": None,
    "canonical": None,
    "held": None,
    "held_mark": 0,
    "asked": Asked.NO,
    "fields_mark": 0,
    "refused": None,
    "detail": None,
}
"""With its status. Nothing of the page is kept; it is never due, but for its links (DUE)."""
DUE: Values = {"rules": 0}
"""With `next_fetch`: the next GET is unconditional."""
HELD: Values = {"held": Held.RULES, "next_fetch": None, "retries": 0}
"""With `held_mark`. All else stays as it is."""
HELD_FOLDED: Values = {**HELD, "held": Held.FOLDED}
"""The same for a URL that is folded into another one."""
NOT_HELD: Values = {"held": None, "held_mark": 0}
PENDING_AGAIN: Values = {**NOT_HELD, **DUE, "state": State.PENDING, "status": None, "next_fetch": None, "interval_s": None}
"""A URL that was outside the crawl space."""
