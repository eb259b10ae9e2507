"""Has all known URLs of a store be due."""

from __future__ import annotations

from crawlspace.state.store import RuleChangeStore


def make_all_due_by(store: RuleChangeStore, latest: int) -> int:
    """Make every known URL that is due later than `latest` due then, in many transactions; return their number."""
    total, after, has_more = 0, 0, True
    while has_more:
        number, after, _ = store.make_due_by(latest, after=after)
        total, has_more = total + number, after > 0
    return total
