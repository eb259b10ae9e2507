"""What an input may cost: measured here for the fuzzer, for repeating what it found, and for the corpus alike."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import process_time

LONGEST = 100_000
"""Bytes of an input."""
MOST_S = 1.0
"""Seconds of processor time for the longest input; a shorter one has its share of them, over what the shortest may have."""
LEAST_S = 0.5
"""A short rules.xml may take this long: its expressions have a bound of their own."""
MOST_MEMORY = 100
"""Bytes of memory for each byte of the input, over what the shortest may have: caches are filled, tables are laid out."""
LEAST_MEMORY = 2 << 20

REFERENCE_S = 0.013
"""Seconds of processor time that `_reference` takes on a machine that the bounds are for."""

Run = Callable[[bytes], object]


class Finding(Exception):
    """An input that costs too much."""


def in_time(run: Run, data: bytes) -> None:
    """Run a target. Raises Finding when it takes too long, on a slow machine by as much more, and what the target raises."""
    began = process_time()
    run(data)
    taken = process_time() - began
    most = LEAST_S + (MOST_S - LEAST_S) * len(data) / LONGEST
    if taken > most and taken > (most := most * slowness()):
        raise Finding(f"took {taken:.2f} s of processor time for {len(data):,} bytes; {most:.2f} s is the most")


def slowness() -> float:
    """Return how many times longer than it should this machine takes at present, at least 1."""
    began = process_time()
    _reference()
    return max(1.0, (process_time() - began) / REFERENCE_S)


def _reference() -> None:
    lengths: dict[str, int] = {}
    for number in range(100_000):
        word = str(number % 1_000)
        lengths[word] = lengths.get(word, 0) + len(word)


def in_memory(run: Run, data: bytes) -> None:
    """Run a target. Raises Finding when it needs too much memory, and what the target raises."""
    tracemalloc.start()
    try:
        run(data)
        _, taken = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    most = LEAST_MEMORY + MOST_MEMORY * len(data)
    if taken > most:
        raise Finding(f"took {taken:,} bytes of memory for {len(data):,} bytes; {most:,} is the most")
