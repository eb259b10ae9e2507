"""The small web over a store of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.state.store import Store
from tests.unit.crawl.timed.web import RefreshedWeb


@pytest.fixture
def web(tmp_path: Path, store: Store) -> RefreshedWeb:
    return RefreshedWeb(tmp_path, store)
