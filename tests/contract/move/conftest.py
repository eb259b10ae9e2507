"""The stores of a move."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.move.stores import WAYS, Stores, fill, looking
from tests.servers import emptied


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    emptied().close()
    return Stores(tmp_path)


@pytest.fixture(params=WAYS, ids="-".join)
def filled(request: pytest.FixtureRequest, stores: Stores) -> tuple[str, str]:
    """From where to where; there is something in the first store."""
    with looking(stores, request.param[0]) as store:
        fill(store)
    here, there = request.param
    return here, there
