"""examples/retrieval: its vector index follows the exports of a collection, and only what has changed is embedded again."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.command_line import ROOT, CompletedRun
from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, collection, make_due
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Answer, Server, Site, html, page, serve, status

README = ROOT / "examples" / "retrieval" / "README.md"
PROGRAM = "examples.retrieval.vectors"
PROGRAM_LINE = f"python -m {PROGRAM}"


def manual(**sections: str) -> Answer:
    body = "".join(f"<h2 id={name}>{name.title()}</h2><p>{text}</p>" for name, text in sections.items())
    return html(f"<title>Handbook</title><h1 id=handbook>Handbook</h1>{body}")


LEAVE = "Annual leave is thirty days. Ask your manager for it two weeks ahead."
TRAVEL = "Book trains and hotels with the travel office. Receipts are due within a month."
SITE = {
    "/": page("Home", text="Welcome to Halden Pumps", links=["/handbook", "/pumps"]),
    "/handbook": manual(leave=LEAVE, travel=TRAVEL),
    "/pumps": html(
        "<title>Pumps</title><h1 id=pumps>Pumps</h1><p>We sell them.</p><h2 id=seals>Seals</h2><p>Replace a worn seal.</p>"
    ),
}
FIRST = "1. Handbook > Leave (0.43)\n   {url}handbook#leave\n   Annual leave is thirty days. Ask your manager for it two weeks ahead.\n"
DOCUMENTS = [
    {"url": "http://a.test/", "title": "A", "text": "one two"},
    {"url": "http://a.test/b", "title": "B", "text": "three"},
]
MODEL = """
def two(texts, *, is_query):
    return [(1.0, 2.0 if is_query else len(text)) for text in texts]
def few(texts, *, is_query):
    return []
def fails(texts, *, is_query):
    raise ConnectionError("the endpoint is closed")
"""


def as_lines(*documents: Mapping[str, object]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in documents)


def vectors(*arguments: str, folder: Path, stdin: str = "") -> CompletedRun:
    """Run the program with its index in a folder, from which it can import modules, too."""
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(folder)}
    index = [] if "--index" in arguments else ["--index", str(folder / "vectors.sqlite")]
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, *arguments, *index],
        cwd=ROOT,
        env=env,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=LONGEST_WAIT_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return CompletedRun(done.returncode, done.stdout, done.stderr.replace(str(folder), "DIR"))


def filled(folder: Path, *documents: Mapping[str, object], more: tuple[str, ...] = ()) -> str:
    return vectors("fill", "-", *more, folder=folder, stdin=as_lines(*documents)).succeeded().stdout


# --- what README.md shows -------------------------------------------------------------------------------------------


def commands(heading: str) -> list[str]:
    section = README.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^ {4}((?:scrapy|python) .*)$", section, re.MULTILINE)


EXPORT, FILL, SEARCH, EXPORT_MARKDOWN, FILL_MARKDOWN = commands("Try it")


def typed(project: Project, command: str) -> str:
    """Run a command of README.md with its files in the folder of the project, and return its output."""
    files = {name: str(project.folder / name) for name in ("handbook.jsonl", "handbook-md", "pages.sqlite")}
    program, *arguments = [files.get(word, word) for word in shlex.split(command)]
    if program == "scrapy":
        return project.scrapy(*arguments).succeeded().stderr
    assert (program, arguments[:2]) == ("python", ["-m", PROGRAM])
    return vectors(*arguments[2:], folder=project.folder).succeeded().stdout


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(Site(SITE)) as served:
        yield served


@pytest.fixture
def handbook(project: MakeProject, server: Server) -> Project:
    files = collection(server.url("/"), settings=ARCHIVED + "CRAWLSPACE_PARTS = 'headings'\n")
    return project({name.replace("demo", "handbook"): content for name, content in files.items()})


def crawled(project: Project, *then: str) -> str:
    """Crawl with everything due, and return the output of the last of some commands."""
    project.crawl("handbook").succeeded()
    make_due(project, "handbook")
    return [typed(project, command) for command in then][-1]


def test_parts_that_have_changed_are_embedded_again_and_no_others(handbook: Project, server: Server) -> None:
    assert crawled(handbook, EXPORT, FILL) == "embedded 5, unchanged 0, deleted 0\n"
    first = typed(handbook, SEARCH)
    assert first.startswith(FIRST.format(url=server.url("/"))), first
    assert typed(handbook, f"{SEARCH} --limit 1") == FIRST.format(url=server.url("/"))
    assert typed(handbook, FILL) == "embedded 0, unchanged 5, deleted 0\n"

    server.site["/handbook"] = manual(leave=LEAVE, travel=TRAVEL.replace("month", "week"), sickness="Call before nine.")
    assert crawled(handbook, EXPORT, FILL) == "embedded 2, unchanged 4, deleted 0\n"
    assert "Receipts are due within a week" in typed(handbook, f"{PROGRAM_LINE} search travel receipts")
    assert "#sickness" in typed(handbook, f"{PROGRAM_LINE} search call before nine --limit 1")

    server.site["/handbook"] = manual(sickness="Call before nine.", leave=LEAVE)
    server.site["/pumps"] = status(410)
    assert crawled(handbook, EXPORT, FILL) == "embedded 0, unchanged 3, deleted 3\n", "another order changes no part"
    assert "Replace a worn seal" not in typed(handbook, f"{PROGRAM_LINE} search worn seal")


def test_files_that_have_changed_are_embedded_again_and_no_others(handbook: Project, server: Server) -> None:
    assert crawled(handbook, EXPORT_MARKDOWN, FILL_MARKDOWN) == "embedded 3, unchanged 0, deleted 0\n"
    search = f"{SEARCH} --index pages.sqlite --limit 1"
    url, beginning = typed(handbook, search).splitlines()[1:]
    assert (url, beginning[:50]) == (f"   {server.url('/handbook')}", "   # Handbook ## Leave Annual leave is thirty days")
    server.site["/handbook"] = manual(leave=LEAVE, travel="By train.")
    assert crawled(handbook, EXPORT_MARKDOWN, FILL_MARKDOWN) == "embedded 1, unchanged 2, deleted 0\n"
    assert "By train." in typed(handbook, search)
    server.site["/handbook"] = status(410)
    assert crawled(handbook, EXPORT_MARKDOWN, FILL_MARKDOWN) == "embedded 0, unchanged 2, deleted 1\n"

    for file in (handbook.folder / "handbook-md").rglob("pumps.md"):
        file.write_text("changed by hand", encoding="utf-8")
    folder = str(handbook.folder / "handbook-md")
    run = vectors("fill", "--markdown", folder, "--index", str(handbook.folder / "pages.sqlite"), folder=handbook.folder)
    assert run.returncode == 1
    assert "/pumps.md is not the file of the manifest: export again, and wait until it is done\n" in run.stderr


# --- single cases ---------------------------------------------------------------------------------------------------


def test_pages_without_parts_are_entries(tmp_path: Path) -> None:
    assert filled(tmp_path, *DOCUMENTS) == "embedded 2, unchanged 0, deleted 0\n"
    assert filled(tmp_path, *DOCUMENTS, *DOCUMENTS) == "embedded 0, unchanged 2, deleted 0\n", "the first of an id counts"
    assert filled(tmp_path, {**DOCUMENTS[0], "title": "Other"}) == "embedded 1, unchanged 0, deleted 1\n"
    assert vectors("search", "one", folder=tmp_path).stdout == "1. Other (0.58)\n   http://a.test/\n   one two\n"


def test_more_entries_than_one_call_embeds(tmp_path: Path) -> None:
    many = [{"url": f"http://a.test/{number}", "title": f"T{number}", "text": ""} for number in range(150)]
    assert filled(tmp_path, *many) == "embedded 150, unchanged 0, deleted 0\n"
    assert vectors("search", "t149", "--limit", "1", folder=tmp_path).stdout.startswith("1. T149 (1.00)\n")


def test_output_cannot_steer_a_terminal(tmp_path: Path) -> None:
    filled(tmp_path, {"url": "http://a.test/", "title": "A\x1b[2J", "text": "one \x1b]0;"})
    assert "\x1b" not in vectors("search", "one", folder=tmp_path).succeeded().stdout


def test_another_embedding(tmp_path: Path) -> None:
    (tmp_path / "mymodel.py").write_text(MODEL, encoding="utf-8")
    mine = ("--embedding", "mymodel:two")
    assert filled(tmp_path, *DOCUMENTS, more=mine) == "embedded 2, unchanged 0, deleted 0\n"
    assert vectors("search", "x", *mine, folder=tmp_path).succeeded().stdout.count("http://") == 2
    run = vectors("search", "x", folder=tmp_path)
    refused = "DIR/vectors.sqlite was filled with --embedding mymodel:two: another function needs another --index"
    assert (run.returncode, run.stderr) == (2, f"vectors.py: {refused}\n")


LINE = as_lines(DOCUMENTS[0])
WRONG = [
    # arguments, standard input, exit status, message
    ("fill -", f"{LINE}nonsense\n", 1, "-:2: this is no line of an export: JSON is malformed: invalid character (byte 4)"),
    ("fill -", f"{LINE}{LINE[:30]}", 1, "-:2: this is no line of an export: Input data was truncated"),
    ("fill -", '{"url": "u"}\n', 1, "-:1: this is no line of an export: Object missing required field `title`"),
    ("fill -", "", 2, "the export is empty: --allow-empty deletes all that is in the index"),
    ("fill DIR/none.jsonl", "", 1, "DIR/none.jsonl: No such file or directory"),
    ("fill --markdown DIR/none", "", 1, "DIR/none/manifest.jsonl: No such file or directory"),
    ("fill - --index DIR/mymodel.py", LINE, 1, "DIR/mymodel.py: file is not a database"),
    ("fill - --index DIR/none/v.sqlite", LINE, 1, "DIR/none/v.sqlite: unable to open database file"),
    ("fill - --index DIR/v.sqlite --embedding mymodel", LINE, 2, "--embedding mymodel cannot be imported: AttributeError: "),
    ("fill - --index DIR/v.sqlite --embedding no:f", LINE, 2, "cannot be imported: ModuleNotFoundError: No module named 'no'"),
    ("fill - --index DIR/v.sqlite --embedding mymodel:few", LINE, 1, "the embedding function returned 0 vectors for 1 texts"),
    ("fill - --index DIR/v.sqlite --embedding mymodel:fails", LINE, 1, "failed: ConnectionError: the endpoint is closed"),
    ("search one --limit 5000", "", 1, "DIR/vectors.sqlite: k value in knn query too large"),
    ("search one --index DIR/v.sqlite", "", 2, "there is no index DIR/v.sqlite: fill it first"),
    ("search one --index DIR/empty.sqlite", "", 2, "the index has no entries: fill it first"),
]


@pytest.mark.parametrize(("arguments", "stdin", "exit_status", "message"), WRONG)
def test_an_error_is_a_sentence_and_changes_nothing(
    tmp_path: Path, arguments: str, stdin: str, exit_status: int, message: str
) -> None:
    (tmp_path / "mymodel.py").write_text(MODEL, encoding="utf-8")
    filled(tmp_path, *DOCUMENTS)
    filled(tmp_path, more=("--index", str(tmp_path / "empty.sqlite")))
    run = vectors(*arguments.replace("DIR", str(tmp_path)).split(), folder=tmp_path, stdin=stdin)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (exit_status, "", 1), run.stderr
    assert message in run.stderr
    assert filled(tmp_path, *DOCUMENTS) == "embedded 0, unchanged 2, deleted 0\n"


def test_an_empty_export_can_be_meant(tmp_path: Path) -> None:
    filled(tmp_path, *DOCUMENTS)
    assert filled(tmp_path, more=("--allow-empty",)) == "embedded 0, unchanged 0, deleted 2\n"
    assert vectors("search", "one", folder=tmp_path).succeeded().stdout.strip() == ""


def test_the_missing_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "sqlite_vec.py").write_text("raise ImportError", encoding="utf-8")
    run = vectors("search", "one", folder=tmp_path)
    assert (run.returncode, run.stderr) == (1, "vectors.py: the library sqlite-vec is missing: pip install sqlite-vec\n")
