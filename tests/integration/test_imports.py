"""`scrapy import-fast`, `import-ibm` and `import-exalead` through the command line: their output, files and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import collection
from tests.sites import Site, page, serve
from tests.unit.importers import exalead_imports, fast_imports, ibm_imports

FILES = ["crawl.rules", "rules.xml", "settings.py", "start_urls.txt"]
FILES_OF_IBM = ["crawl.rules", "global.rules", "rules.xml", "settings.py", "start_urls.txt"]
FAST = """<CrawlerConfig>
  <DomainSpecification name="news">
    <attrib name="start_uris" type="list-string"> <member> http://www.contoso.com/ </member> </attrib>
    <attrib name="delay" type="real"> 5 </attrib>
    <section name="include_domains">
      <attrib name="exact" type="list-string"> <member> www.contoso.com </member> </attrib>
    </section>
  </DomainSpecification>
</CrawlerConfig>
"""
EXALEAD = """<CrawlConfig>
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
    """The corpora in folders, and a file of FAST's and one of Exalead's."""
    made = project({})
    for corpus in (fast_imports.CORPUS, ibm_imports.CORPUS, exalead_imports.CORPUS):
        copytree(corpus, made.folder / corpus.name)
    (made.folder / "fast.xml").write_text(FAST, encoding="utf-8")
    (made.folder / "exalead.xml").write_text(EXALEAD, encoding="utf-8")
    return made


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def is_admitted(run: Run, name: str, url: str) -> bool:
    return bool(json.loads(run("explain", name, url, "--json").succeeded().stdout)["admitted"])


# command, what is imported, its collection, the report, the files, what lint finds, a URL that is admitted, one that is refused
WORKING = [
    (
        "import-fast",
        "fast.xml",
        "news",
        [
            "fast.xml:3: start_uris: translated to http://www.contoso.com/ in start_urls.txt",
            "fast.xml:4: delay: translated to DOWNLOAD_DELAY = 5",
            "fast.xml:6: include_domains/exact: translated to `allow domain www.contoso.com` in crawl.rules",
            "3 options: 3 translated, 0 default, 0 no counterpart",
        ],
        FILES,
        [],
        ("http://www.contoso.com/a", "http://www.fabrikam.com/"),
    ),
    (
        "import-ibm",
        "ibm/partition",
        "partition",
        [
            "crawl.rules:1: rules: translated to 4 rules in crawl.rules, in the same words and order",
            "global.rules:1: rules: translated to 3 rules in global.rules, in the same words and order",
            "start_urls.txt: start URLs: translated to 1 entry of start_urls.txt",
            "3 options: 3 translated, 0 default, 0 no counterpart",
        ],
        FILES_OF_IBM,
        [],
        ("http://w3.ibm.com/a", "http://research.ibm.com/"),
    ),
    (
        "import-exalead",
        "exalead.xml",
        "news",
        [
            "exalead.xml:2: name: translated to the name of the collection, unless another one is given",
            "exalead.xml:2: throttleTimeMS: translated to DOWNLOAD_DELAY = 5",
            "exalead.xml:2: defaultAccept: equal to the default: CRAWLSPACE_DEFAULT_ACCEPT = True",
            "exalead.xml:3: Root/site: translated to rules of crawl.rules: only what begins with http://www.foo.com/; "
            + REMINDER,
            "exalead.xml:3: Root: translated to http://www.foo.com/ in start_urls.txt",
            "exalead.xml:4: Rules example: translated to 1 rule of rules.xml",
            "6 options: 5 translated, 1 default, 0 no counterpart",
        ],
        FILES,
        ["lint finds in it:", FINDING],
        ("http://www.foo.com/ax", "http://foo.com/"),
    ),
]


@pytest.mark.parametrize(
    ("command", "source", "name", "report", "files", "findings", "urls"), WORKING, ids=[row[0] for row in WORKING]
)
def test_a_collection_is_made_and_works(
    demo: Project,
    run: Run,
    command: str,
    source: str,
    name: str,
    report: list[str],
    files: list[str],
    findings: list[str],
    urls: tuple[str, str],
) -> None:
    made = run(command, str(demo.folder / source)).succeeded()
    assert made.stdout.splitlines() == [
        f"collection {name}:",
        *report,
        f"{demo.collections / name} is written; next: `scrapy lint {name}`, then `scrapy crawl {name}`",
        *findings,
    ]
    assert sorted(written(demo.collections / name)) == files
    if not findings:
        assert run("lint", name).succeeded().stdout == "no findings\n"
    assert [is_admitted(run, name, url) for url in urls] == [True, False]


@pytest.mark.parametrize(("command", "file", "change"), [
    ("import-fast", "fast.xml", ("> 5 <", "> 7 <")),
    ("import-exalead", "exalead.xml", ("5000", "7000")),
])  # fmt: skip
def test_importing_again_changes_nothing_without_overwrite(
    demo: Project, run: Run, command: str, file: str, change: tuple[str, str]
) -> None:
    source, folder = demo.folder / file, demo.collections / "news"
    run(command, str(source)).succeeded()
    before = written(folder)
    assert "differs" not in run(command, str(source)).succeeded().stdout
    (folder / "settings.py").write_text(before["settings.py"] + "DEPTH_LIMIT = 3\n", encoding="utf-8")
    source.write_text(source.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    changed = written(folder)
    again = run(command, str(source))
    assert again.returncode == 1
    assert {"-DOWNLOAD_DELAY = 5", "+DOWNLOAD_DELAY = 7", "-DEPTH_LIMIT = 3"} <= set(again.stdout.splitlines())
    assert "it was left as it is; --overwrite replaces the files" in again.stdout
    assert written(folder) == changed
    run(command, str(source), "--overwrite").succeeded()
    assert written(folder) == {**before, "settings.py": before["settings.py"].replace("DELAY = 5", "DELAY = 7")}


def test_importing_a_folder_again_changes_nothing_without_overwrite(demo: Project, run: Run) -> None:
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
    assert sorted(written(folder)) == [name for name in FILES_OF_IBM if name != "global.rules"]
    assert "forbid prefix http://w3.ibm.com/old/\n" in written(folder)["crawl.rules"]


# command, arguments, exit status, a line of what would be written
DRY_RUNS = [
    ("import-fast", ["fast/contoso.xml"], 0, "forbid domain test.contoso.com"),
    ("import-ibm", ["ibm/seeds", "seeds"], 1, "forbid http://sales.ibm.com/*fs/*"),  # www.ibm.com is no start URL
    ("import-exalead", ["exalead/intranet.xml"], 0, "allow prefix http://wiki.example.com/public/"),
]


@pytest.mark.parametrize(("command", "arguments", "status", "line"), DRY_RUNS, ids=[row[0] for row in DRY_RUNS])
def test_a_dry_run_writes_nothing(demo: Project, run: Run, command: str, arguments: list[str], status: int, line: str) -> None:
    made = run(command, str(demo.folder / arguments[0]), *arguments[1:], "--dry-run")
    assert made.returncode == status
    assert f"\n{line}\n" in made.stdout
    assert "nothing was written (--dry-run)" in made.stdout
    assert [*demo.collections.iterdir()] == []


# command, file, its collection, a part of the report, whether lint finds nothing in it
LOSSES = [
    ("import-fast", "fast/every_option.xml", "every_option", "use_javascript: translated", False),
    ("import-exalead", "exalead/listings.xml", "listings", "listings.xml:2: buildGroup: no counterpart, because", True),
]


@pytest.mark.parametrize(("command", "file", "name", "part", "is_clean"), LOSSES, ids=[row[0] for row in LOSSES])
def test_what_has_no_counterpart_is_the_exit_status(
    demo: Project, run: Run, command: str, file: str, name: str, part: str, is_clean: bool
) -> None:
    made = run(command, str(demo.folder / file))
    assert made.returncode == 1
    assert part in made.stdout
    assert sorted(written(demo.collections / name)) == FILES
    assert (run("lint", name).stdout == "no findings\n") is is_clean


def test_the_report_for_programs(demo: Project, run: Run) -> None:
    found = json.loads(run("import-fast", str(demo.folder / "fast.xml"), "other", "--json").succeeded().stdout)
    assert found["options"][1] == {
        "file": "fast.xml",
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


def test_a_large_configuration(demo: Project, run: Run) -> None:
    """What has no counterpart makes the exit status 1; the report for programs has the file of each entry."""
    made = run("import-ibm", str(demo.folder / "ibm/intranet"), "wide", "--json", "--logged-out", "wiki.ibm.com=Please log in")
    assert made.returncode == 1
    found = json.loads(made.stdout)
    assert (found["collection"], found["written"]) == ("wide", True)
    assert [one["code"] for one in found["lint"]] == ["star-crosses-slashes", "plain-login", "unused-login", "unused-login"]
    assert found["options"][0] == {
        "file": "crawl.rules",
        "line": 1,
        "option": "rules",
        "fate": "translated",
        "text": "25 rules in crawl.rules, in the same words and order",
        "by_best_knowledge": False,
    }
    assert sorted(written(demo.collections / "wide")) == FILES_OF_IBM
    assert '"SID"' not in (settings := written(demo.collections / "wide")["settings.py"])
    assert '"LtpaToken2": "env:WIDE_WIKI_IBM_COM_LTPATOKEN2"' in settings


def test_start_urls_of_another_file(demo: Project, run: Run) -> None:
    (demo.folder / "urls").write_text("http://other.ibm.com/\n", encoding="utf-8")
    run("import-ibm", str(demo.folder / "ibm/partition"), "--start-urls", str(demo.folder / "urls")).succeeded()
    starts = written(demo.collections / "partition")["start_urls.txt"]
    assert "# urls:1: start URL\nhttp://other.ibm.com/\n" in starts
    assert "# start_urls.txt:1: start URL\nhttp://w3.ibm.com/\n" in starts


def test_values_are_read_as_asked_for(demo: Project, run: Run) -> None:
    made = run("import-exalead", str(demo.folder / "exalead.xml"), "--regex", "standard").succeeded()
    assert "xml-expression" not in made.stdout
    assert '\nCRAWLSPACE_RULES_XML_REGEX = "standard"\n' in written(demo.collections / "news")["settings.py"]
    assert [is_admitted(run, "news", url) for url in ("http://www.foo.com/ax", "http://www.foo.com/b")] == [False, True]
    explained = run("explain", "news", "http://www.foo.com/ax").stdout
    assert "Path /a.*: Ignore" in explained


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


TWO = "<CrawlerConfig><DomainSpecification name='a'/><DomainSpecification name='b c'/></CrawlerConfig>"
TWO_OF_EXALEAD = "<CrawlConfig><Crawler name='a'/><Crawler name='b c'/></CrawlConfig>"
# command, content of its file, further arguments, exit status, part of the sentence
WRONG = [
    *(
        row
        for command, file, one, two in (("import-fast", "fast.xml", FAST, TWO), ("import-exalead", "exalead.xml", EXALEAD, TWO_OF_EXALEAD))
        for row in [
            (command, two, ["d"], 2, f"{file} has no collection 'd': it has 'a', 'b c'"),
            (command, two, [], 2, "'b c' cannot name a collection"),
            (command, one.replace('"news"', '"my news"'), [], 2, f"give it another name: scrapy {command} {file} NAME"),
            (command, one, ["../out"], 2, "'../out' cannot name a collection"),
            (command, two.replace("b c", "a"), [], 2, f"{file} has two collections of one name"),
            (command, one, ["a", "b"], 2, "name the file, and a collection if need be"),
        ]
    ),
    ("import-fast", FAST.replace("</CrawlerConfig>", ""), [], 1, "fast.xml:10:1: the file is not well-formed XML: no element found"),
    ("import-exalead", EXALEAD.replace("</CrawlConfig>", ""), [], 1, "exalead.xml:7:1: the file is not well-formed XML: no element found"),
    ("import-exalead", EXALEAD.replace('/a.*"', "/a.*"), [], 1, 'exalead.xml:4:34: the value of val has no " at its end; write <Path val="/a.*"/>'),
    ("import-exalead", "", [], 1, "exalead.xml:1:1: the file is not well-formed XML: no element found"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "content", "arguments", "status", "sentence"), WRONG, ids=[f"{row[0]} {row[4][:30]}" for row in WRONG]
)
def test_wrong_use(demo: Project, run: Run, command: str, content: str, arguments: list[str], status: int, sentence: str) -> None:
    file = demo.folder / f"{command.removeprefix('import-')}.xml"
    file.write_text(content, encoding="utf-8")
    ended = run(command, str(file), *arguments)
    assert (ended.returncode, sentence in ended.stderr, ended.stdout) == (status, True, ""), ended.stderr
    assert [*demo.collections.iterdir()] == []


@pytest.mark.parametrize(
    ("command", "file"),
    [("import-fast", "XML file of FAST's configuration"), ("import-exalead", "CrawlConfig.xml of Exalead CloudView")],
)
def test_a_file_that_is_not_there(demo: Project, run: Run, command: str, file: str) -> None:
    ended = run(command, "nowhere.xml")
    assert ended.returncode == 2
    assert ended.stderr == f"there is no file 'nowhere.xml': name the {file}\n"


# arguments, exit status, part of the sentence
WRONG_OF_IBM = [
    ([], 2, "name the folder, and a collection if need be"),
    (["ibm/partition", "a", "b"], 2, "name the folder, and a collection if need be"),
    (["nowhere"], 2, "there is no folder"),
    (["ibm/partition/crawl.rules"], 2, "is a file: name the folder that it is in"),
    (["ibm"], 2, "has folders of crawlers in it ('follow_index', 'intranet', 'partition', 'seeds'): import each of them"),
    (["ibm/partition", "../out"], 2, "'../out' cannot name a collection"),
    (["-.-"], 2, "give it another name: scrapy import-ibm"),
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


@pytest.mark.parametrize(("arguments", "status", "sentence"), WRONG_OF_IBM, ids=[row[2][:30] for row in WRONG_OF_IBM])
def test_wrong_use_of_ibms_folders(demo: Project, run: Run, arguments: list[str], status: int, sentence: str) -> None:
    for name, rules in (("broken", "alow domain a\n"), ("-.-", "")):
        (demo.folder / name).mkdir()
        (demo.folder / name / "crawl.rules").write_text(rules, encoding="utf-8")
    named = [str(demo.folder / arguments[0]), *arguments[1:]] if arguments else []
    ended = run("import-ibm", *named)
    assert (ended.returncode, sentence in ended.stderr, ended.stdout) == (status, True, ""), ended.stderr
    assert [*demo.collections.iterdir()] == []


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
        made = project({**files, "demo/rules.xml": EXALEAD.replace('defaultAccept="true"', f'defaultAccept="{value}"')})
        ended = made.crawl("demo")
    assert (ended.returncode, sentence in ended.stderr, "Traceback" in ended.stderr) == (status, True, False), ended.stderr
    assert (server.paths() == []) is (status == 1)
