"""The index is never wrong: random histories of a web, a configuration and crawls that are killed, against an oracle.

A failure shows the seed, all steps, and what is MISSING or EXTRA; `python -m benchmarks.histories` runs as many as one likes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.history import run_history

SEEDS_A_TEST = 10


@pytest.mark.parametrize("first", range(0, 100, SEEDS_A_TEST))
def test_after_every_history_the_index_and_what_is_remembered_are_as_the_oracle_says(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + SEEDS_A_TEST):
        told = run_history(seed, tmp_path / str(seed), steps=20)
        assert not told.differences, str(told)
        assert told.checks >= 2


def test_a_history_is_the_same_each_time(tmp_path: Path) -> None:
    once, again = (run_history(7, tmp_path / name, steps=20) for name in ("once", "again"))
    assert once.steps == again.steps
