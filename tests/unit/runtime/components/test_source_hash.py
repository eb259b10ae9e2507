"""The hash of a spider's code: what changes it, and what does not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.runtime.components.loader import source_hash
from spiders.collection import CollectionSpider

SPIDER = "from spiders.collection import CollectionSpider\n\n\nclass Demo(CollectionSpider):\n    name = 'demo'\n    size = 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("hashed_spider", None)


def hash_of(folder: Path, source: str) -> str:
    (folder / "hashed_spider.py").write_text(source, encoding="utf-8")
    sys.modules.pop("hashed_spider", None)
    importlib.invalidate_caches()
    return source_hash(importlib.import_module("hashed_spider").Demo)


@pytest.mark.parametrize(
    ("source", "differs"),
    [
        (SPIDER, False),
        (SPIDER.replace("    size", "    # a comment\n    size"), False),
        (SPIDER.replace("'demo'", '"demo"'), False),
        (SPIDER.replace("size = 1", "size = 2"), True),
        (SPIDER + "\n\ndef helper() -> int:\n    return 1\n", True),
    ],
)
def test_what_changes_the_hash(folder: Path, source: str, differs: bool) -> None:
    first = hash_of(folder, SPIDER)
    assert first
    assert (hash_of(folder, source) != first) is differs


def test_the_generic_spider_has_the_hash_of_the_projects_file() -> None:
    made = type("CollectionSpider", (CollectionSpider,), {"name": "demo", "__module__": "crawlspace.runtime.components.loader"})
    assert source_hash(made) == source_hash(CollectionSpider) != ""


def test_a_class_without_a_file_has_none() -> None:
    space: dict[str, object] = {"__name__": "of_no_file"}
    exec("class Demo(Base):\n    pass\n", {**space, "Base": CollectionSpider}, space)
    made = space["Demo"]
    assert isinstance(made, type)
    made.__module__ = "of_no_file"
    assert source_hash(made) == ""
