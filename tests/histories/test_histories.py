"""The index is never wrong: random histories of a web, a configuration and crawls that are killed, against an oracle.

A failure shows the seed, all steps, and what is MISSING or EXTRA; `make test-histories` runs more of them, and `python -m tests.long.histories` as many as one likes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.state.redis.store import RedisStore
from tests.histories.history import run_history
from tests.memory import folder_in_memory
from tests.quick import some
from tests.servers import client_of_pool, emptied

SEEDS_WITH_A_SEARCH_SERVER = {"file": [1, 13, 14], "redis": [1], "team": [1]}
"""Pages are being fetched when the server is to be sent their documents, which the archive does not have."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, and gone when the test ends, as `tmp_path` is not where it fails."""
    with tempfile.TemporaryDirectory(dir=folder_in_memory()) as made:
        yield Path(made)


@pytest.mark.parametrize("seed", some(range(20), 1))
def test_after_every_history_the_index_and_what_is_remembered_are_as_the_oracle_says(folder: Path, seed: int) -> None:
    report = run_history(seed, folder, steps=20)
    assert not report.differences, str(report)
    assert report.checks >= 2


@pytest.mark.parametrize("seed", some(range(4), 1))
def test_so_they_are_over_redis(folder: Path, seed: int) -> None:
    emptied().close()
    report = run_history(seed, folder, steps=20, on_server=on_server)
    assert not report.differences, str(report)
    assert report.checks >= 2


@pytest.mark.full
@pytest.mark.parametrize("seed", some(range(4), 1))
def test_so_they_are_with_several_workers(folder: Path, seed: int) -> None:
    emptied().close()
    report = run_history(seed, folder, steps=20, on_server=on_server, team=True)
    assert not report.differences, str(report)
    assert report.checks >= 2


@pytest.mark.full
@pytest.mark.parametrize("kind", some(["file", "redis", "team"], 2))
def test_so_is_a_search_server_that_fails(folder: Path, kind: str) -> None:
    if kind != "file":
        emptied().close()
    for seed in SEEDS_WITH_A_SEARCH_SERVER[kind]:
        opens = None if kind == "file" else on_server
        report = run_history(seed, folder / str(seed), steps=10, on_server=opens, team=kind == "team", search=True)
        assert not report.differences, str(report)
        assert report.checks >= 2
        assert report.met["documents on the search server"]


def on_server(name: str) -> RedisStore:
    return RedisStore(client_of_pool(), name, sinks=(EMBEDDED,))


def test_a_history_is_the_same_each_time(folder: Path) -> None:
    once, again = (run_history(7, folder / name, steps=20) for name in ("once", "again"))
    assert once.steps == again.steps
