"""A project made by `crawlspace init` of the wheel, in an environment that has the wheel and what it needs, and not this folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlspace import __version__
from tests.command_line import CompletedRun, run_scrapy
from tests.conftest import assert_same
from tests.notifications import LONGEST_WAIT_S
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
TYPED_SPIDER = """\
from __future__ import annotations

from crawlspace.content.page import Page
from crawlspace.document import Document
from scrapy.http import Response
from spiders.collection import CollectionSpider


class Lamps(CollectionSpider):
    name = "lamps"

    def document(self, response: Response, page: Page) -> Document | None:
        price: int = page.title
        return Document(url=response.url, title=page.title, text=page.text, fields={"price": str(price)})
"""
"""With one mistake, which the types of the package show."""
TYPED_PIPELINE = """\
from __future__ import annotations

from crawlspace.document import Document


class Prices:
    def process_item(self, item: Document) -> Document:
        item.fields = {**item.fields, "currency": "EUR"}
        return item
"""
TYPED_SINK = """\
from __future__ import annotations

from collections.abc import Sequence

from crawlspace.document import IndexOrder
from crawlspace.index.marks import BatchMark
from crawlspace.index.sink import ALL_DONE, Sent, Sink


class Counting:
    def __init__(self, name: str) -> None:
        self.name = name
        self.sent = 0

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        self.sent += len(orders)
        return ALL_DONE

    def close(self) -> None:
        pass


counting: Sink = Counting("counting")
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
    """A project as `crawlspace init` makes it."""
    assert run_init(environment, "project", cwd=tmp_path).returncode == 0
    return MadeProject(tmp_path / "project", str(environment / "bin" / "python"))


def run_init(environment: Path, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(environment / "bin" / "crawlspace"), "init", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)


def test_the_package_comes_from_the_wheel(made: MadeProject) -> None:
    """And the three folders from nowhere but the project; else the other tests would show nothing."""
    where = "from importlib.util import find_spec; print([s and s.origin for s in map(find_spec, ['crawlspace', 'spiders'])])"
    found = subprocess.run([made.python, "-P", "-c", where], cwd=made.folder, capture_output=True, text=True, check=True)
    package = next((Path(made.python).parent.parent / "lib").glob("python*/site-packages/crawlspace/__init__.py"))
    assert found.stdout.strip() == str([str(package), None])


def test_the_files_of_a_project(made: MadeProject) -> None:
    modules = ["spiders", "middlewares", "pipelines", "settings.py"]
    assert_same(
        (path.name for path in made.folder.iterdir()), [*modules, "scrapy.cfg", "collections", ".gitignore", ".crawlspace.json"]
    )
    assert made.scrapy("list").succeeded().stdout.split() == []


def test_a_project_of_another_version_is_reported(made: MadeProject) -> None:
    manifest = made.folder / ".crawlspace.json"
    as_made = manifest.read_text(encoding="utf-8")
    with serve(Site(SITE)) as server:
        made.scrapy("startcollection", "lamps", server.url("/")).succeeded()
        for version, way_out in (("0.0.9", "crawlspace init --upgrade"), ("999.1", "upgrade the package")):
            manifest.write_text(as_made.replace(__version__, version), encoding="utf-8")
            found = made.scrapy("lint", "lamps")
            assert (found.returncode, found.stdout.count("\n")) == (1, 1), found.stdout
            assert found.stdout.startswith(".crawlspace.json: warning: ")
            assert found.stdout.endswith("[project-version]\n")
            crawled = made.scrapy("crawl", "lamps", "-s", "DOWNLOAD_DELAY=0").succeeded()
            warned = [line for line in crawled.stderr.splitlines() if "WARNING" in line]
            assert len(warned) == 1, crawled.stderr
            for text in (found.stdout, warned[0]):
                assert (version in text, way_out in text) == (True, True), text
        upgraded = run_init(environment_of(made), "--upgrade", cwd=made.folder)
        assert (upgraded.returncode, "upgrade the package" in upgraded.stderr) == (1, True)
        manifest.write_text(as_made.replace(__version__, "0.0.9"), encoding="utf-8")
        assert run_init(environment_of(made), "--upgrade", cwd=made.folder).returncode == 0
        assert manifest.read_text(encoding="utf-8") == as_made
        assert made.scrapy("lint", "lamps").succeeded().stdout == "no findings\n"


def environment_of(made: MadeProject) -> Path:
    return Path(made.python).parent.parent


def test_a_missing_spider_file_is_written_again(made: MadeProject) -> None:
    (made.folder / "spiders" / "collection.py").unlink()
    (made.folder / "collections" / "lamps").mkdir()
    failed = made.scrapy("crawl", "lamps")
    assert (failed.returncode, "crawlspace init --upgrade" in failed.stderr) == (1, True), failed.stderr
    assert run_init(environment_of(made), "--upgrade", cwd=made.folder).stdout.startswith("written: spiders/collection.py\n")
    assert made.scrapy("list").succeeded().stdout == "lamps\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_full_disk_behind_the_output_is_a_sentence(environment: Path, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [environment / "bin" / "crawlspace", "init", "site"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=LONGEST_WAIT_S,
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("what was done cannot be printed: ")


def test_code_of_a_project_is_checked_against_the_types_of_the_wheel(made: MadeProject) -> None:
    made.write({"spiders/lamps.py": TYPED_SPIDER, "pipelines/prices.py": TYPED_PIPELINE, "sinks.py": TYPED_SINK})
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", made.python, "."]
    checked = subprocess.run(command, cwd=made.folder, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)
    errors = [
        line.partition(": ")[::2] for line in checked.stdout.splitlines() if "error" in line and not line.startswith("Found")
    ]
    line = 1 + TYPED_SPIDER.splitlines().index("        price: int = page.title")
    assert [place for place, _ in errors] == [f"spiders/lamps.py:{line}"], checked.stdout + checked.stderr


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
