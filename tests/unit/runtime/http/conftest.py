"""What all tests of the download handler have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.runtime.http.fetching import asyncio_is_there


@pytest.fixture(autouse=True)
def asyncio_available(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with asyncio_is_there(monkeypatch):
        yield
