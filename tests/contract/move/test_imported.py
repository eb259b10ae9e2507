"""What was imported from a pending file moves with its collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.move.stores import WAYS, Stores, looking
from tests.contract.pending_files import Importer, drawn, exported


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_realms_and_times_move_with_their_collection(stores: Stores, tmp_path: Path, here: str, there: str) -> None:
    text = drawn(100)
    with looking(stores, here) as store:
        Importer(store, tmp_path)(text)
    stores.move(here, there)
    with looking(stores, there) as store:
        assert exported(store) == text
