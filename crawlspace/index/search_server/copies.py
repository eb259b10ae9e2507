"""What is the same wherever an index is built anew beside the one that is searched."""

from __future__ import annotations

from dataclasses import replace

from crawlspace.errors import IndexUnavailable
from crawlspace.index.inventory import Copies
from crawlspace.index.sink import Sent


def may_begin(copies: Copies, where: str, *, on_previous: bool) -> bool:
    """Return whether to begin; False where that was done before. `where` is the index. Raises IndexUnavailable for what is in the way."""
    if copies.next and on_previous is not (copies.next == copies.previous):
        what = "an index is being built" if on_previous else "the return to the previous index is under way"
        raise IndexUnavailable(f"{what} beside {where} ({copies.next}): end that first, or give it up with --discard")
    if not copies.next and on_previous and not copies.previous:
        raise IndexUnavailable(f"there is no previous index of {where} to go back to")
    return not copies.next


def together(sent: Sent, behind: Sent) -> Sent:
    """Return what became of orders that went to two indexes; what only the one that is being built refuses is found by comparing."""
    known = {order.sequence for order in sent.later} | {refusal.order.sequence for refusal in sent.refused}
    more = [order for order in behind.later if order.sequence not in known]
    return replace(
        sent,
        later=[*sent.later, *more],
        why_later=sent.why_later or behind.why_later,
        is_slow=sent.is_slow or behind.is_slow,
    )
