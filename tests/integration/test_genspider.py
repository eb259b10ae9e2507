"""`scrapy genspider`: a spider class for a collection, which works as it is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlspace.commands.genspider import _module
from tests.command_line import ROOT, CompletedRun
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import collection
from tests.quick import some

EXISTS = "# written by hand\n"


@dataclass(frozen=True, slots=True)
class Spiders:
    """A package for new spiders of one test."""

    folder: Path
    run_command: Run

    def genspider(self, *arguments: str) -> CompletedRun:
        name = self.folder.name
        return self.run_command("genspider", *arguments, "-s", f"NEWSPIDER_MODULE={name}", "-s", f"SPIDER_MODULES=spiders,{name}")

    def files(self) -> list[str]:
        return sorted(file.name for file in self.folder.glob("*.py") if file.stem != "__init__")


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project({**collection("http://www.example.com/"), "collection/start_urls.txt": "http://www.example.com/\n"})


@pytest.fixture
def spiders(demo: Project, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spiders:
    folder = tmp_path / f"spiders_of_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    return Spiders(folder, run)


def test_the_class_has_the_name_of_the_collection(spiders: Spiders) -> None:
    written = spiders.genspider("demo").succeeded()
    assert written.stdout == f"Created spider 'demo' using template 'collection' in module:\n  {spiders.folder.name}.demo\n"
    assert spiders.files() == ["demo.py"]
    code = (spiders.folder / "demo.py").read_text(encoding="utf-8")
    assert "class DemoSpider(CollectionSpider):" in code
    assert '    name = "demo"\n' in code


@pytest.mark.parametrize("check", some(["ruff check", "ruff format --check", "mypy"], 2))
def test_the_class_passes_the_checks_of_a_project(spiders: Spiders, check: str) -> None:
    spiders.genspider("demo").succeeded()
    tool, *arguments = check.split()
    options = ["--isolated", "--select=ALL", "--ignore=D203,D213,INP001,CPY001"] if arguments == ["check"] else []
    command = [sys.executable, "-m", tool, *arguments, *options, str(spiders.folder / "demo.py")]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_known_pages_are_not_read_again_at_once(demo: Project, spiders: Spiders) -> None:
    (demo.data / "demo").mkdir()
    (demo.data / "demo" / "state.db").touch()
    written = spiders.genspider("demo").succeeded().stdout
    assert "Known pages are read with it when they are due; `scrapy recrawl demo --host HOST` makes" in written


MODULES = [
    ("handbook", "handbook"),
    ("hand-book", "hand_book"),
    ("HR", "hr"),
    ("1st", "a1st"),
    ("hand book.2", "hand_book_2"),
    ("class", "class_spider"),
    ("collection", "collection_spider"),  # the module of the class that all derive from
]


@pytest.mark.parametrize(("name", "module"), MODULES)
def test_the_module_of_a_collection(name: str, module: str) -> None:
    assert _module(name) == module


URLS = [
    # the argument, and what is said of it
    ("http://www.example.com/", ""),
    ("www.example.com", ""),
    (
        "http://other.example.com/",
        "other.example.com is the host of no start URL: write http://other.example.com/ into {}/demo/start_urls.txt to have it crawled\n",
    ),
]


@pytest.mark.parametrize(("url", "note"), URLS)
def test_a_url_may_be_given_as_scrapy_wants_it(demo: Project, spiders: Spiders, url: str, note: str) -> None:
    written = spiders.genspider("demo", url).succeeded().stdout
    assert written.partition(".demo\n")[2] == note.format(demo.collections)


REFUSED = [
    (["nope"], "no collection 'nope' in {}: make it with `scrapy startcollection nope URL`, then its spider"),
    (["nope", "http://a/"], "no collection 'nope' in {}: make it with `scrapy startcollection nope http://a/`, then its spider"),
    ([], "name one collection, as in: scrapy genspider demo"),
    (["demo", "http://a/", "b"], "name one collection"),
    (["demo", "http://"], "write one like http://www.example.com/"),
    (["demo", "-t", "crawl"], "the template 'crawl' is Scrapy's, and its spider could not crawl a collection"),
    (["demo", "-t", "nope"], "there is no template 'nope': --list shows those there are"),
    (["-d", "nope"], "there is no template 'nope'"),
    (["collection"], "collection_spider.py exists already: --force overwrites it"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED)
def test_refusals(demo: Project, spiders: Spiders, arguments: list[str], sentence: str) -> None:
    (spiders.folder / "collection_spider.py").write_text(EXISTS)
    refused = spiders.genspider(*arguments)
    assert refused.returncode == 2
    assert sentence.format(demo.collections) in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert spiders.files() == ["collection_spider.py"]
    assert (spiders.folder / "collection_spider.py").read_text() == EXISTS


def test_a_spider_that_exists_is_overwritten_with_force_only(spiders: Spiders) -> None:
    own = "from spiders.collection import CollectionSpider\n\n\nclass Mine(CollectionSpider):\n    name = 'demo'\n"
    (spiders.folder / "demo.py").write_text(own)
    refused = spiders.genspider("demo")
    there = f"{spiders.folder.name}.demo"
    assert (refused.returncode, refused.stderr) == (
        2,
        f"spider 'demo' exists already, in module {there}: --force writes it again\n",
    )
    assert (spiders.folder / "demo.py").read_text() == own
    spiders.genspider("demo", "--force").succeeded()
    assert "class DemoSpider" in (spiders.folder / "demo.py").read_text()


def test_a_second_class_for_a_collection_is_refused_even_with_force(spiders: Spiders) -> None:
    own = "from spiders.collection import CollectionSpider\n\n\nclass Mine(CollectionSpider):\n    name = 'demo'\n"
    (spiders.folder / "all_spiders.py").write_text(own)
    refused = spiders.genspider("demo", "--force")
    there = f"{spiders.folder.name}.all_spiders"
    assert (refused.returncode, refused.stderr) == (2, f"spider 'demo' exists already, in module {there}: edit it there\n")
    assert spiders.files() == ["all_spiders.py"]


def test_templates_of_the_project(spiders: Spiders, tmp_path: Path) -> None:
    folder = tmp_path / "templates" / "spiders"
    folder.mkdir(parents=True)
    (folder / "short.tmpl").write_text("# $project_name $ProjectName $module $name $url $domain $classname\n")
    (folder / "wrong.tmpl").write_text("# $nope\n")
    own = ("-s", f"TEMPLATES_DIR={folder.parent}")
    assert spiders.genspider("-l", *own).succeeded().stdout == "Available templates:\n  collection\n  short\n  wrong\n"
    assert (
        spiders.genspider("-d", "short", *own).succeeded().stdout
        == "# $project_name $ProjectName $module $name $url $domain $classname\n"
    )
    spiders.genspider("demo", "www.example.com", "-t", "short", *own).succeeded()
    filled = "# crawlspace Crawlspace demo demo https://www.example.com/ www.example.com DemoSpider\n"
    assert (spiders.folder / "demo.py").read_text() == filled
    spiders.genspider("demo", "www.example.com", "-t", str(folder / "short.tmpl"), "--force").succeeded()
    assert (spiders.folder / "demo.py").read_text() == filled
    wrong = spiders.genspider("demo", "-t", "wrong", "--force", *own)
    assert (wrong.returncode, "wrong.tmpl has $nope; there are $project_name, $ProjectName" in wrong.stderr) == (1, True)
    assert (spiders.folder / "demo.py").read_text() == filled


@pytest.mark.parametrize(("editor", "exit_status"), [("true", 0), ("false", 1), ("/nope", 1)])
def test_an_editor_is_started(spiders: Spiders, editor: str, exit_status: int) -> None:
    assert spiders.genspider("demo", "-e", "-s", f"EDITOR={editor}").returncode == exit_status
    assert spiders.files() == ["demo.py"]
