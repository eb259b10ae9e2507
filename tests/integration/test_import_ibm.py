"""`scrapy import-ibm` through the command line: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.unit.importers.ibm_imports import CORPUS

FILES = ["crawl.rules", "global.rules", "rules.xml", "settings.py", "start_urls.txt"]


@pytest.fixture
def demo(project: MakeProject) -> Project:
    made = project({})
    copytree(CORPUS, made.folder / "ibm")
    return made


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def test_a_collection_is_made_and_works(demo: Project, run: Run) -> None:
    made = run("import-ibm", str(demo.folder / "ibm/partition")).succeeded()
    assert made.stdout.splitlines() == [
        "collection partition:",
        "crawl.rules:1: rules: translated to 4 rules in crawl.rules, in the same words and order",
        "global.rules:1: rules: translated to 3 rules in global.rules, in the same words and order",
        "start_urls.txt: start URLs: translated to 1 entry of start_urls.txt",
        "3 options: 3 translated, 0 default, 0 no counterpart, 0 not there yet",
        f"{demo.collections / 'partition'} is written; next: `scrapy lint partition`, then `scrapy crawl partition`",
    ]
    assert sorted(written(demo.collections / "partition")) == FILES
    assert run("lint", "partition").succeeded().stdout == "no findings\n"
    assert json.loads(run("explain", "partition", "http://w3.ibm.com/a", "--json").succeeded().stdout)["admitted"]
    assert not json.loads(run("explain", "partition", "http://research.ibm.com/", "--json").succeeded().stdout)["admitted"]


def test_importing_again_changes_nothing_without_overwrite(demo: Project, run: Run) -> None:
    source, folder = demo.folder / "ibm/partition", demo.collections / "partition"
    run("import-ibm", str(source)).succeeded()
    before = written(folder)
    assert "differs" not in run("import-ibm", str(source)).succeeded().stdout
    (source / "global.rules").unlink()
    with (source / "crawl.rules").open("a", encoding="utf-8") as file:
        file.write("forbid prefix http://w3.ibm.com/old/\n")
    again = run("import-ibm", str(source))
    assert again.returncode == 1
    assert {"+forbid prefix http://w3.ibm.com/old/", "-allow domain *.lotus.com"} <= set(again.stdout.splitlines())
    assert "it was left as it is; --overwrite replaces the files" in again.stdout
    assert written(folder) == before
    run("import-ibm", str(source), "--overwrite").succeeded()
    assert sorted(written(folder)) == [name for name in FILES if name != "global.rules"]
    assert "forbid prefix http://w3.ibm.com/old/\n" in written(folder)["crawl.rules"]


def test_a_large_configuration(demo: Project, run: Run) -> None:
    """What has no counterpart makes the exit status 1; the report for programs has the file of each entry."""
    made = run("import-ibm", str(demo.folder / "ibm/intranet"), "wide", "--json", "--logged-out", "wiki.ibm.com=Please log in")
    assert made.returncode == 1
    found = json.loads(made.stdout)
    assert (found["collection"], found["written"]) == ("wide", True)
    assert [one["code"] for one in found["lint"]] == ["star-crosses-slashes", "unused-login"]
    assert found["options"][0] == {
        "file": "crawl.rules",
        "line": 1,
        "option": "rules",
        "fate": "translated",
        "text": "25 rules in crawl.rules, in the same words and order",
        "by_best_knowledge": False,
    }
    assert sorted(written(demo.collections / "wide")) == FILES
    assert '"SID"' not in (settings := written(demo.collections / "wide")["settings.py"])
    assert '"LtpaToken2": "env:WIDE_WIKI_IBM_COM_LTPATOKEN2"' in settings


def test_a_dry_run_writes_nothing(demo: Project, run: Run) -> None:
    made = run("import-ibm", str(demo.folder / "ibm/seeds"), "seeds", "--dry-run")
    assert made.returncode == 1  # www.ibm.com is no start URL
    assert "\nforbid http://sales.ibm.com/*fs/*\n" in made.stdout
    assert "nothing was written (--dry-run)" in made.stdout
    assert [*demo.collections.iterdir()] == []


def test_start_urls_of_another_file(demo: Project, run: Run) -> None:
    (demo.folder / "urls").write_text("http://other.ibm.com/\n", encoding="utf-8")
    run("import-ibm", str(demo.folder / "ibm/partition"), "--start-urls", str(demo.folder / "urls")).succeeded()
    starts = written(demo.collections / "partition")["start_urls.txt"]
    assert "# urls:1: start URL\nhttp://other.ibm.com/\n" in starts
    assert "# start_urls.txt:1: start URL\nhttp://w3.ibm.com/\n" in starts


# arguments, exit status, part of the sentence
WRONG = [
    ([], 2, "name the folder, and a collection if need be"),
    (["ibm/partition", "a", "b"], 2, "name the folder, and a collection if need be"),
    (["nowhere"], 2, "there is no folder"),
    (["ibm/partition/crawl.rules"], 2, "is a file: name the folder that it is in"),
    (["ibm"], 2, "has folders of crawlers in it ('follow_index', 'intranet', 'partition', 'seeds'): import each of them"),
    (["ibm/partition", "../out"], 2, "'../out' cannot name a collection"),
    (["dotted.WEB1"], 2, "give it another name: scrapy import-ibm"),
    (["ibm/partition", "--start-urls", "nowhere"], 2, "name the file with the start URLs"),
    (
        ["ibm/partition", "--logged-out", "a"],
        2,
        "--logged-out is a site and a text, as in wiki.example.com='Please log in', not 'a'",
    ),
    (
        ["ibm/partition", "--logged-out", "a=b"],
        2,
        "--logged-out names 'a', of which there are no cookies; the folder has none",
    ),
    (["broken"], 1, "crawl.rules:1:1: expected 'allow' or 'forbid', not 'alow'; did you mean 'allow'?"),
]


@pytest.mark.parametrize(("arguments", "status", "sentence"), WRONG, ids=[row[2][:30] for row in WRONG])
def test_wrong_use(demo: Project, run: Run, arguments: list[str], status: int, sentence: str) -> None:
    for name, rules in (("broken", "alow domain a\n"), ("dotted.WEB1", "")):
        (demo.folder / name).mkdir()
        (demo.folder / name / "crawl.rules").write_text(rules, encoding="utf-8")
    named = [str(demo.folder / arguments[0]), *arguments[1:]] if arguments else []
    ended = run("import-ibm", *named)
    assert (ended.returncode, sentence in ended.stderr, ended.stdout) == (status, True, ""), ended.stderr
    assert [*demo.collections.iterdir()] == []
