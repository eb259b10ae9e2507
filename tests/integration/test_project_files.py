"""A project made of the files in the wheel, in an environment that has the wheel and what it needs, and not this folder."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line import CompletedRun, run_scrapy
from tests.conftest import assert_same
from tests.sites import Site, page, serve

pytestmark = pytest.mark.full

SITE = {
    "/": page("Home", text="All our lamps", links=["/desk", "/floor", "/elsewhere.zip"]),
    "/desk": page("Desk lamp", text="For a desk"),
    "/floor": page("Floor lamp", text="For a floor"),
}
OWN_SPIDER = """\
from spiders.collection import CollectionSpider


class Lamps(CollectionSpider):
    name = "lamps"

    def document(self, response, page):
        return {"name": page.title}
"""
OWN_SETTINGS = """\
from crawlspace.settings import *

DOWNLOAD_DELAY = 0
ITEM_PIPELINES = {**ITEM_PIPELINES, "pipelines.prices.Prices": 950}
"""
OWN_PIPELINE = """\
class Prices:
    def process_item(self, item):
        return {**item, "price": 7}
"""


@dataclass(frozen=True, slots=True)
class MadeProject:
    """A folder with the files of a project, and the Python that has crawlspace installed."""

    folder: Path
    python: str

    def write(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            (self.folder / name).write_text(content, encoding="utf-8")

    def scrapy(self, *args: str) -> CompletedRun:
        """Run a command as the script `scrapy` does: without the working folder among the places of modules."""
        return run_scrapy(args, self.folder, env={"PYTHONSAFEPATH": "1"}, python=self.python)

    def exported(self, name: str, *options: str) -> list[dict[str, str]]:
        """Crawl a collection to the end and return the documents of its export."""
        self.scrapy("crawl", name, "-O", "items.jsonl", *options).succeeded()
        return [json.loads(line) for line in (self.folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def made(environment: Path, tmp_path: Path) -> MadeProject:
    """A project of nothing but the files in the wheel."""
    files = next(environment.glob("lib/python*/site-packages/crawlspace/project_files"))
    shutil.copytree(files, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    return MadeProject(tmp_path / "project", str(environment / "bin" / "python"))


def test_the_package_comes_from_the_wheel(made: MadeProject) -> None:
    """And the three folders from nowhere but the project; else the other tests would show nothing."""
    where = "from importlib.util import find_spec; print([s and s.origin for s in map(find_spec, ['crawlspace', 'spiders'])])"
    found = subprocess.run([made.python, "-P", "-c", where], cwd=made.folder, capture_output=True, text=True, check=True)
    package = next((Path(made.python).parent.parent / "lib").glob("python*/site-packages/crawlspace/__init__.py"))
    assert found.stdout.strip() == str([str(package), None])


def test_the_files_of_a_project(made: MadeProject) -> None:
    assert_same((path.name for path in made.folder.iterdir()), ["scrapy.cfg", "spiders", "middlewares", "pipelines"])
    assert made.scrapy("list").succeeded().stdout.split() == []


def test_a_project_of_the_files_in_the_wheel_crawls(made: MadeProject) -> None:
    with serve(Site(SITE)) as server:
        made.scrapy("startcollection", "lamps", server.url("/")).succeeded()
        assert made.scrapy("list").succeeded().stdout == "lamps\n"
        assert made.scrapy("lint", "lamps").succeeded().stdout == "no findings\n"
        documents = made.exported("lamps", "-s", "DOWNLOAD_DELAY=0")
        assert_same(
            ((document["url"], document["title"]) for document in documents),
            [(server.url("/"), "Home"), (server.url("/desk"), "Desk lamp"), (server.url("/floor"), "Floor lamp")],
        )
        assert "For a [desk]" in made.scrapy("search", "lamps", "desk").succeeded().stdout
    assert {path.name for path in made.folder.iterdir()} > {"collections", "data"}


def test_a_generated_spider_crawls_at_once(made: MadeProject) -> None:
    """Its template is in the wheel."""
    with serve(Site(SITE)) as server:
        made.scrapy("startcollection", "lamps", server.url("/")).succeeded()
        made.scrapy("genspider", "lamps").succeeded()
        assert made.scrapy("lint", "lamps").succeeded().stdout == "no findings\n"
        documents = made.exported("lamps", "-s", "DOWNLOAD_DELAY=0")
        assert_same(
            ((document["url"], document["heading"]) for document in documents),
            [(server.url("/"), "Home"), (server.url("/desk"), "Desk lamp"), (server.url("/floor"), "Floor lamp")],
        )


def test_settings_spider_and_pipeline_of_the_project_are_used(made: MadeProject) -> None:
    made.write(
        {
            "scrapy.cfg": "[settings]\ndefault = settings\n",
            "settings.py": OWN_SETTINGS,
            "spiders/lamps.py": OWN_SPIDER,
            "pipelines/prices.py": OWN_PIPELINE,
        }
    )
    with serve(Site(SITE)) as server:
        made.scrapy("startcollection", "lamps", server.url("/")).succeeded()
        (made.folder / "collections/lamps/settings.py").unlink()
        assert made.scrapy("lint", "lamps").succeeded().stdout == "no findings\n"
        documents = made.exported("lamps")
        expected = {"/": "Home", "/desk": "Desk lamp", "/floor": "Floor lamp"}
        assert_same(
            (tuple(document.items()) for document in documents),
            [(("name", name), ("url", server.url(path)), ("price", 7)) for path, name in expected.items()],
        )
