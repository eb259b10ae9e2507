"""Collections that tests open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components.opened import OpenCrawl

MakeCrawl = Callable[..., OpenCrawl]


@pytest.fixture
def open_crawl(tmp_path: Path) -> Iterator[MakeCrawl]:
    """A function that opens a collection with these start URLs and settings."""
    made: list[OpenCrawl] = []

    def make(*starts: str, **settings: Any) -> OpenCrawl:
        made.append(OpenCrawl(tmp_path / str(len(made)), *starts, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()
