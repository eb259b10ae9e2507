"""`scrapy import-fast` through the command line: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.unit.importers.fast_imports import CORPUS

FILES = ["crawl.rules", "rules.xml", "settings.py", "start_urls.txt"]
NEWS = """<CrawlerConfig>
  <DomainSpecification name="news">
    <attrib name="start_uris" type="list-string"> <member> http://www.contoso.com/ </member> </attrib>
    <attrib name="delay" type="real"> 5 </attrib>
    <section name="include_domains">
      <attrib name="exact" type="list-string"> <member> www.contoso.com </member> </attrib>
    </section>
  </DomainSpecification>
</CrawlerConfig>
"""


@pytest.fixture
def demo(project: MakeProject) -> Project:
    made = project({})
    copytree(CORPUS, made.folder / "fast")
    (made.folder / "news.xml").write_text(NEWS, encoding="utf-8")
    return made


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def test_a_collection_is_made_and_works(demo: Project, run: Run) -> None:
    made = run("import-fast", str(demo.folder / "news.xml")).succeeded()
    assert made.stdout.splitlines() == [
        "collection news:",
        "news.xml:3: start_uris: translated to http://www.contoso.com/ in start_urls.txt",
        "news.xml:4: delay: translated to DOWNLOAD_DELAY = 5",
        "news.xml:6: include_domains/exact: translated to `allow domain www.contoso.com` in crawl.rules",
        "3 options: 3 translated, 0 default, 0 no counterpart, 0 not there yet",
        f"{demo.collections / 'news'} is written; next: `scrapy lint news`, then `scrapy crawl news`",
    ]
    assert sorted(written(demo.collections / "news")) == FILES
    assert run("lint", "news").succeeded().stdout == "no findings\n"
    assert json.loads(run("explain", "news", "http://www.contoso.com/a", "--json").succeeded().stdout)["admitted"]
    assert not json.loads(run("explain", "news", "http://www.fabrikam.com/", "--json").succeeded().stdout)["admitted"]


def test_importing_again_changes_nothing_without_overwrite(demo: Project, run: Run) -> None:
    file, folder = demo.folder / "news.xml", demo.collections / "news"
    run("import-fast", str(file)).succeeded()
    before = written(folder)
    assert "differs" not in run("import-fast", str(file)).succeeded().stdout
    (folder / "settings.py").write_text(before["settings.py"] + "DEPTH_LIMIT = 3\n", encoding="utf-8")
    file.write_text(NEWS.replace("> 5 <", "> 7 <"), encoding="utf-8")
    changed = written(folder)
    again = run("import-fast", str(file))
    assert again.returncode == 1
    assert {"-DOWNLOAD_DELAY = 5", "+DOWNLOAD_DELAY = 7", "-DEPTH_LIMIT = 3"} <= set(again.stdout.splitlines())
    assert "it was left as it is; --overwrite replaces the files" in again.stdout
    assert written(folder) == changed
    run("import-fast", str(file), "--overwrite").succeeded()
    assert written(folder) == {**before, "settings.py": before["settings.py"].replace("DELAY = 5", "DELAY = 7")}


def test_a_dry_run_writes_nothing(demo: Project, run: Run) -> None:
    made = run("import-fast", str(demo.folder / "fast/contoso.xml"), "--dry-run").succeeded()
    assert "\nforbid domain test.contoso.com\n" in made.stdout
    assert "nothing was written (--dry-run)" in made.stdout
    assert [*demo.collections.iterdir()] == []


def test_what_has_no_counterpart_is_the_exit_status(demo: Project, run: Run) -> None:
    made = run("import-fast", str(demo.folder / "fast/every_option.xml"))
    assert made.returncode == 1
    assert "use_javascript: translated" in made.stdout
    assert sorted(written(demo.collections / "every_option")) == FILES


def test_the_report_for_programs(demo: Project, run: Run) -> None:
    found = json.loads(run("import-fast", str(demo.folder / "news.xml"), "other", "--json").succeeded().stdout)
    assert found["options"][1] == {
        "file": "news.xml",
        "line": 4,
        "option": "delay",
        "fate": "translated",
        "text": "DOWNLOAD_DELAY = 5",
        "by_best_knowledge": False,
    }
    assert {key: found[key] for key in ("collection", "lint", "files", "written")} == {
        "collection": "other",
        "lint": [],
        "files": {},
        "written": True,
    }
    assert sorted(written(demo.collections / "other")) == FILES


TWO = "<CrawlerConfig><DomainSpecification name='a'/><DomainSpecification name='b c'/></CrawlerConfig>"
# content, further arguments, exit status, part of the sentence
WRONG = [
    (TWO, ["d"], 2, "news.xml has no collection 'd': it has 'a', 'b c'"),
    (TWO, [], 2, "'b c' cannot name a collection"),
    (NEWS.replace('"news"', '"my news"'), [], 2, "give it another name: scrapy import-fast news.xml NAME"),
    (NEWS, ["../out"], 2, "'../out' cannot name a collection"),
    (TWO.replace("b c", "a"), [], 2, "news.xml has two collections of one name"),
    (NEWS.replace("</CrawlerConfig>", ""), [], 1, "news.xml:10:1: the file is not well-formed XML: no element found"),
    (NEWS, ["a", "b"], 2, "name the file, and a collection if need be"),
]


@pytest.mark.parametrize(("content", "arguments", "status", "sentence"), WRONG, ids=[row[3][:30] for row in WRONG])
def test_wrong_use(demo: Project, run: Run, content: str, arguments: list[str], status: int, sentence: str) -> None:
    file = demo.folder / "news.xml"
    file.write_text(content, encoding="utf-8")
    ended = run("import-fast", str(file), *arguments)
    assert (ended.returncode, sentence in ended.stderr, ended.stdout) == (status, True, ""), ended.stderr
    assert [*demo.collections.iterdir()] == []


def test_a_file_that_is_not_there(demo: Project, run: Run) -> None:
    ended = run("import-fast", "nowhere.xml")
    assert ended.returncode == 2
    assert ended.stderr == "there is no file 'nowhere.xml': name the XML file of FAST's configuration\n"
