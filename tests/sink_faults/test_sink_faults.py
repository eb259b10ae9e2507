"""After any faults of the network and the server, and kills of the process that sends, the index equals the state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quick import some
from tests.sink_faults.history import run_history


@pytest.mark.parametrize("seed", some(range(20), 1))
def test_the_index_equals_the_state(tmp_path: Path, seed: int) -> None:
    told = run_history(seed, tmp_path, steps=24, most_kills=2)
    assert not told.wrong, str(told)
