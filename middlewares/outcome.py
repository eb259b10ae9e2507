"""Ensures that every fetch ends in exactly one outcome, even when a spider's own parsing fails."""

from __future__ import annotations

from crawlspace.runtime.middlewares.outcome import BaseOneOutcome


class OneOutcome(BaseOneOutcome):
    """Records a page whose parsing raised as 699, so that it is tried again and not lost."""
