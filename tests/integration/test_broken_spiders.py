"""A project whose `spiders/collection.py` is missing or broken: one sentence with the file and what to do, and no traceback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.command_line import ROOT, CompletedRun, run_scrapy

MISSING = "spiders/collection.py is missing in {folder}, so no collection can be crawled: restore the file, for instance from"
NO_CLASS = "spiders/collection.py in {folder} has no class CollectionSpider derived from crawlspace.runtime.components.spider.FrontierSpider"
CORRECT = "; nothing can be crawled until the spider is corrected"

BROKEN = [
    # content of spiders/collection.py; the sentence of `scrapy crawl`; whether `scrapy list` fails too
    ("missing",          None,                              MISSING,                                                    False),
    ("no class",         "x = 1\n",                         NO_CLASS,                                                   False),
    ("another class",    "class CollectionSpider: pass\n",  NO_CLASS,                                                   False),
    ("missing import",   "\nimport nosuch\n",               "collection.py:2: ModuleNotFoundError: No module named 'nosuch'" + CORRECT, True),
    ("undefined name",   "x = y\n",                         "collection.py:1: NameError: name 'y' is not defined" + CORRECT, True),
    ("any error",        "raise OSError('no\\nfile')\n",    "collection.py:1: OSError: no file" + CORRECT,              True),
    ("a wrong syntax",   "class Coll(\n",                   "collection.py:1: '(' was never closed" + CORRECT,          True),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of its own, with the collection `demo`."""
    for name in ("spiders", "middlewares", "pipelines"):
        shutil.copytree(ROOT / name, tmp_path / "project" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "scrapy.cfg", tmp_path / "project")
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "crawlspace").symlink_to(ROOT / "crawlspace")
    (tmp_path / "project" / "collections" / "demo").mkdir(parents=True)
    (tmp_path / "project" / "collections" / "demo" / "start_urls.txt").write_text("http://127.0.0.1:9/\n")
    return tmp_path / "project"


def scrapy(folder: Path, *args: str) -> CompletedRun:
    """Run a command in the project, which finds the package crawlspace and none of the repository's own spiders."""
    return run_scrapy(args, folder, env={"PYTHONPATH": str(folder.parent / "packages"), "PYTHONSAFEPATH": "1"})


def assert_one_sentence(run: CompletedRun, sentence: str) -> None:
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (1, "", 1), run.stderr
    assert sentence in run.stderr


@pytest.mark.parametrize(("content", "sentence", "list_fails"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_collection_spider(folder: Path, content: str | None, sentence: str, *, list_fails: bool) -> None:
    file = folder / "spiders" / "collection.py"
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    expected = sentence.format(folder=os.path.realpath(folder))
    assert_one_sentence(scrapy(folder, "crawl", "demo"), expected)
    listed = scrapy(folder, "list")
    if list_fails:
        assert_one_sentence(listed, expected)
    else:
        assert listed.succeeded().stdout == "demo\n"


def test_the_folder_of_the_spiders_is_missing(folder: Path) -> None:
    shutil.rmtree(folder / "spiders")
    expected = MISSING.format(folder=os.path.realpath(folder))
    assert_one_sentence(scrapy(folder, "crawl", "demo"), expected)
    assert_one_sentence(scrapy(folder, "list"), expected)


def test_a_setting_names_spiders_that_are_missing(folder: Path) -> None:
    run = scrapy(folder, "crawl", "demo", "-s", "SPIDER_MODULES=elsewhere")
    assert_one_sentence(
        run, "SPIDER_MODULES is ['elsewhere'], which cannot be imported (ModuleNotFoundError: No module named 'elsewhere')"
    )
