"""`scrapy import-exalead` through the command line: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import collection
from tests.sites import Site, page, serve
from tests.unit.importers.exalead_imports import CORPUS

FILES = ["crawl.rules", "rules.xml", "settings.py", "start_urls.txt"]
NEWS = """<CrawlConfig>
  <Crawler name="news" throttleTimeMS="5000" defaultAccept="true">
    <Root url="http://www.foo.com/"/>
    <Rules group="example"><Rule><Path val="/a.*"/><Ignore/></Rule></Rules>
  </Crawler>
</CrawlConfig>
"""
REMINDER = "if its home page redirects to another site, or to https, name that site too"
FINDING = (
    "rules.xml:6:1: warning: '/a.*' is plain text, and matches only this very text; if an expression is meant, write '/a\\.\\*', or set "
    "CRAWLSPACE_RULES_XML_REGEX = \"standard\", with which it would match '/ax', in 'Path /a.*: Ignore' [xml-expression]"
)


@pytest.fixture
def demo(project: MakeProject) -> Project:
    made = project({})
    copytree(CORPUS, made.folder / "exalead")
    (made.folder / "news.xml").write_text(NEWS, encoding="utf-8")
    return made


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def is_admitted(run: Run, name: str, url: str) -> bool:
    return bool(json.loads(run("explain", name, url, "--json").succeeded().stdout)["admitted"])


def test_a_collection_is_made_and_works(demo: Project, run: Run) -> None:
    made = run("import-exalead", str(demo.folder / "news.xml")).succeeded()
    assert made.stdout.splitlines() == [
        "collection news:",
        "news.xml:2: name: translated to the name of the collection, unless another one is given",
        "news.xml:2: throttleTimeMS: translated to DOWNLOAD_DELAY = 5",
        "news.xml:2: defaultAccept: equal to the default: CRAWLSPACE_DEFAULT_ACCEPT = True",
        "news.xml:3: Root/site: translated to rules of crawl.rules: only what begins with http://www.foo.com/; " + REMINDER,
        "news.xml:3: Root: translated to http://www.foo.com/ in start_urls.txt",
        "news.xml:4: Rules example: translated to 1 rule of rules.xml",
        "6 options: 5 translated, 1 default, 0 no counterpart, 0 not there yet",
        f"{demo.collections / 'news'} is written; next: `scrapy lint news`, then `scrapy crawl news`",
        "lint finds in it:",
        FINDING,
    ]
    assert sorted(written(demo.collections / "news")) == FILES
    assert [is_admitted(run, "news", url) for url in ("http://www.foo.com/ax", "http://foo.com/")] == [True, False]


def test_values_are_read_as_asked_for(demo: Project, run: Run) -> None:
    made = run("import-exalead", str(demo.folder / "news.xml"), "--regex", "standard").succeeded()
    assert "xml-expression" not in made.stdout
    assert '\nCRAWLSPACE_RULES_XML_REGEX = "standard"\n' in written(demo.collections / "news")["settings.py"]
    assert [is_admitted(run, "news", url) for url in ("http://www.foo.com/ax", "http://www.foo.com/b")] == [False, True]
    explained = run("explain", "news", "http://www.foo.com/ax").stdout
    assert "Path /a.*: Ignore" in explained


def test_importing_again_changes_nothing_without_overwrite(demo: Project, run: Run) -> None:
    file, folder = demo.folder / "news.xml", demo.collections / "news"
    run("import-exalead", str(file)).succeeded()
    before = written(folder)
    assert "differs" not in run("import-exalead", str(file)).succeeded().stdout
    file.write_text(NEWS.replace("5000", "7000"), encoding="utf-8")
    again = run("import-exalead", str(file))
    assert (again.returncode, written(folder)) == (1, before)
    assert {"-DOWNLOAD_DELAY = 5", "+DOWNLOAD_DELAY = 7"} <= set(again.stdout.splitlines())
    run("import-exalead", str(file), "--overwrite").succeeded()
    assert written(folder) == {**before, "settings.py": before["settings.py"].replace("DELAY = 5", "DELAY = 7")}


def test_a_dry_run_writes_nothing(demo: Project, run: Run) -> None:
    made = run("import-exalead", str(demo.folder / "exalead/intranet.xml"), "--dry-run").succeeded()
    assert "\nallow prefix http://wiki.example.com/public/\n" in made.stdout
    assert "nothing was written (--dry-run)" in made.stdout
    assert [*demo.collections.iterdir()] == []


def test_what_has_no_counterpart_is_the_exit_status(demo: Project, run: Run) -> None:
    made = run("import-exalead", str(demo.folder / "exalead/listings.xml"))
    assert made.returncode == 1
    assert "listings.xml:2: buildGroup: no counterpart, because" in made.stdout
    assert sorted(written(demo.collections / "listings")) == FILES
    assert run("lint", "listings").succeeded().stdout == "no findings\n"


def test_rules_only_need_a_name_and_start_urls(demo: Project, run: Run) -> None:
    file = str(demo.folder / "exalead/groups.xml")
    ended = run("import-exalead", file)
    assert (ended.returncode, ended.stderr) == (
        2,
        "groups.xml has rules only, and no name: scrapy import-exalead groups.xml NAME\n",
    )
    assert run("import-exalead", file, "foo").returncode == 1
    (demo.collections / "foo" / "start_urls.txt").write_text("http://www.foo.com/\n", encoding="utf-8")
    assert "error" not in run("lint", "foo").stdout
    assert [is_admitted(run, "foo", url) for url in ("http://foo.com/watch", "http://foo.com/a.gif")] == [True, False]


TWO = "<CrawlConfig><Crawler name='a'/><Crawler name='b c'/></CrawlConfig>"
# content, further arguments, exit status, part of the sentence
WRONG = [
    (TWO, ["d"], 2, "news.xml has no collection 'd': it has 'a', 'b c'"),
    (TWO, [], 2, "'b c' cannot name a collection"),
    (NEWS.replace('"news"', '"my news"'), [], 2, "give it another name: scrapy import-exalead news.xml NAME"),
    (NEWS, ["../out"], 2, "'../out' cannot name a collection"),
    (TWO.replace("b c", "a"), [], 2, "news.xml has two collections of one name"),
    (NEWS.replace("</CrawlConfig>", ""), [], 1, "news.xml:7:1: the file is not well-formed XML: no element found"),
    (NEWS.replace('/a.*"', "/a.*"), [], 1, 'news.xml:4:34: the value of val has no " at its end; write <Path val="/a.*"/>'),
    (NEWS, ["a", "b"], 2, "name the file, and a collection if need be"),
    ("", [], 1, "news.xml:1:1: the file is not well-formed XML: no element found"),
]


@pytest.mark.parametrize(("content", "arguments", "status", "sentence"), WRONG, ids=[row[3][:30] for row in WRONG])
def test_wrong_use(demo: Project, run: Run, content: str, arguments: list[str], status: int, sentence: str) -> None:
    file = demo.folder / "news.xml"
    file.write_text(content, encoding="utf-8")
    ended = run("import-exalead", str(file), *arguments)
    assert (ended.returncode, sentence in ended.stderr, ended.stdout) == (status, True, ""), ended.stderr
    assert [*demo.collections.iterdir()] == []


def test_a_file_that_is_not_there(demo: Project, run: Run) -> None:
    ended = run("import-exalead", "nowhere.xml")
    assert ended.returncode == 2
    assert ended.stderr == "there is no file 'nowhere.xml': name the CrawlConfig.xml of Exalead CloudView\n"


@pytest.mark.parametrize(
    ("value", "status", "sentence"),
    [
        ("false", 1, "rules.xml:2:3: defaultAccept='false' of Crawler has no effect here, so that more would be crawled"),
        ("true", 0, "rules.xml: of an export of Exalead CloudView only the rules are read, without throttleTimeMS of Crawler"),
    ],
)
def test_an_export_that_is_laid_down_as_it_is(project: MakeProject, value: str, status: int, sentence: str) -> None:
    with serve(Site({"/": page("Home")})) as server:
        files = collection(server.url("/"), rules=f"allow domain {server.netloc}\nforbid domain *\n")
        made = project({**files, "demo/rules.xml": NEWS.replace('defaultAccept="true"', f'defaultAccept="{value}"')})
        ended = made.crawl("demo")
    assert (ended.returncode, sentence in ended.stderr, "Traceback" in ended.stderr) == (status, True, False), ended.stderr
    assert (server.paths() == []) is (status == 1)
