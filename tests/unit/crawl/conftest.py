"""Stores of each kind in turn, whose orders go to an embedded index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.state.store import Store
from tests.stores import KINDS, LOCAL, new_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture(params=LOCAL)
def local_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """In memory and in a file: for what the engine alone decides."""
    with new_store(request.param, tmp_path) as store:
        yield store
