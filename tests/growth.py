"""How work grows with how much of it there is, told from processor time: no machine is slow at one size and fast at the other for long."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

_TRIES = 3
_MORE_TRIES = 10
"""Of the larger size: a busy machine slows it down more, and the first try that is fast enough is the last."""


def is_linear(work: Callable[[int], object], size: int) -> bool:
    """Whether four times as much takes less than eight times as long: four where each thing is looked at once, sixteen where with each other."""
    once = min(_seconds(work, size) for _ in range(_TRIES))
    return any(_seconds(work, 4 * size) < 8 * once for _ in range(_MORE_TRIES))


def _seconds(work: Callable[[int], object], size: int) -> float:
    """Without the collector of garbage, which would look through all that the tests before have left: that takes half a second."""
    gc.disable()
    try:
        began = process_time()
        work(size)
        return process_time() - began
    finally:
        gc.enable()
