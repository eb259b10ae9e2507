"""Time passes in a simulated crawl when there is nothing to ask for at the moment."""

from __future__ import annotations

from collections.abc import Callable

from crawlspace.clock import FakeClock
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.timed.steps import STEP_EVERY_S
from tests.histories.fate import Stuck

_A_WHILE_S = 300.0
"""The longest sleep of a crawl that goes on, which looks then whether a refresh is to be made."""


def wait(engine: Engine, clock: FakeClock, *, until: float, send: Callable[[], None]) -> bool:
    """Let time pass until there may be something to ask for; False when that is not worth waiting for."""
    if engine.deliveries.hold_up:
        send()
        clock.advance(1)
        return True
    rest = engine.wake_in()
    if engine.has_steps:
        rest = STEP_EVERY_S if rest is None else min(rest, STEP_EVERY_S)
    if engine.collection.continuous and engine.collection.refresh.schedule is not None:
        rest = _A_WHILE_S if rest is None else min(rest, _A_WHILE_S)
    if rest is None and engine.collection.continuous and engine.is_idle():
        return False  # nothing is known any more that could ever be due
    if rest is None:
        raise Stuck("nothing to ask for, nothing under way, nothing to wait for, and not done")
    if engine.collection.continuous and rest > 1 and clock.now() + rest > until:
        return False
    clock.advance(max(rest, 0.01))
    return True
