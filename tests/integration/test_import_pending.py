"""`scrapy import-pending` and `scrapy urls --format pending`, before the first crawl, after it, and in a store on a server."""

from __future__ import annotations

import json
import os
import re

import pytest

from tests.conftest import MakeProject, Project, assert_same
from tests.integration.conftest import Run
from tests.integration.stored import shared, states
from tests.sites import Site, page, serve

INDEXED_AT = 1_700_000_000
FILES = {
    "demo/start_urls.txt": "http://a.example/\n",
    "demo/crawl.rules": "forbid prefix http://a.example/private/\n",
    "demo/settings.py": "DOWNLOAD_DELAY = 0\n",
}
PENDING = f"""\
http://a.example/ Main {INDEXED_AT}
http://a.example/b My%20Site 2
http://a.example/c demo 0
"""


@pytest.fixture(params=["file", "server"])
def demo(project: MakeProject, request: pytest.FixtureRequest) -> Project:
    return shared(project(FILES)) if request.param == "server" else project(FILES)


def file(demo: Project, content: str | bytes) -> str:
    path = demo.data / "search.pending.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_a_file_goes_in_and_comes_out(demo: Project, run: Run) -> None:
    ended = run("import-pending", "demo", file(demo, PENDING)).succeeded()
    assert re.fullmatch(
        r"3 lines in [\d.]+ s \([\d,]+/s\): 3 URLs entered, 0 known with another state or realm now, 0 as they were, 0 kept out\n",
        ended.stdout,
    )
    assert run("urls", "demo", "--format", "pending").succeeded().stdout == PENDING
    again = run("import-pending", "demo", file(demo, PENDING), "--json").succeeded()
    numbers = json.loads(again.stdout)
    assert (numbers["entered"], numbers["changed"], numbers["unchanged"]) == (0, 0, 3)
    assert run("urls", "demo", "--format", "pending", "--state", "gone").succeeded().stdout == PENDING.splitlines(True)[1]


def test_lines_that_are_kept_out_are_named(demo: Project, run: Run) -> None:
    lines = "http://a.example/b R 0\nhttp://a.example/private/ R 0\nhttp://a.example:x/ R 0\n"
    ended = run("import-pending", "demo", file(demo, lines))
    assert ended.returncode == 1
    assert "1 URL entered" in ended.stdout
    assert (
        "search.pending.txt:2: http://a.example/private/ is refused: a prefix rule forbids the URL (crawl.rules:1:"
        in ended.stderr
    )
    assert "search.pending.txt:3: http://a.example:x/ is refused: " in ended.stderr
    assert "1 kept out: a prefix rule forbids the URL" in ended.stderr


def test_of_a_faulty_file_nothing_is_imported(demo: Project, run: Run) -> None:
    ended = run("import-pending", "demo", file(demo, PENDING + "http://a.example/d R -1\nhttp://a.example/a R 0\n"))
    assert (ended.returncode, ended.stdout) == (1, "")
    first, second, note = ended.stderr.splitlines()
    assert first.startswith("search.pending.txt:4: the state is '-1': write 0")
    assert second.startswith("search.pending.txt:5: 'http://a.example/a' comes after 'http://a.example/d'")
    assert note == "nothing was imported"
    assert "never been crawled" in run("urls", "demo").succeeded().stderr


def test_an_empty_file_has_no_lines(demo: Project, run: Run) -> None:
    assert run("import-pending", "demo", file(demo, "")).succeeded().stdout.startswith("0 lines in ")


def test_a_url_that_is_too_long_is_kept_out(demo: Project, run: Run) -> None:
    ended = run("import-pending", "demo", file(demo, f"http://a.example/{'a' * 5_000} R 0\nhttp://a.example/b R 0\n"))
    assert (ended.returncode, "1 URL entered" in ended.stdout) == (1, True)
    assert "1 kept out: the URL is longer than URLLENGTH_LIMIT" in ended.stderr
    assert len(ended.stderr) < 500


# arguments -> a part of the sentence
WRONG = [
    (("import-pending", "demo"), "name a collection and a file"),
    (("import-pending", "dmeo", "x"), "no collection 'dmeo'"),
    (("import-pending", "demo", "none.txt"), "'none.txt' cannot be read: No such file"),
    (("import-pending", "demo", os.devnull), "is not a file on a disk"),
    (("import-pending", "demo", os.curdir), "'.' cannot be read: Is a directory"),
    (("urls", "demo", "--format", "pending", "--with-referrers"), "leave out --with-referrers"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_use(demo: Project, run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr


@pytest.mark.parametrize("kind", ["file", "server"])
def test_what_was_imported_is_crawled(project: MakeProject, kind: str) -> None:
    site = Site({"/": page("Home"), "/b": page("B"), "/c": page("C"), "/d": page("D")})
    with serve(site) as server:
        settings = "DOWNLOAD_DELAY = 0\nCRAWLSPACE_SITEMAP_GUESS = False\n"
        demo = project({"demo/start_urls.txt": server.url("/"), "demo/settings.py": settings})
        demo = shared(demo) if kind == "server" else demo
        lines = f"{server.url('/b')} R 0\n{server.url('/c')} R 2\n{server.url('/d')} R {INDEXED_AT}\n"
        demo.scrapy("import-pending", "demo", file(demo, lines)).succeeded()
        demo.crawl("demo").succeeded()
        assert_same(server.paths(), ["/robots.txt", "/", "/b", "/d"])
        out = demo.scrapy("urls", "demo", "--format", "pending").succeeded().stdout.splitlines()
        crawled = {path: state.fetched_at for path, state in states(demo).items()}
        assert out == [
            f"{server.url('/')} demo {crawled['/']}",
            f"{server.url('/b')} R {crawled['/b']}",
            f"{server.url('/c')} R 2",
            f"{server.url('/d')} R {crawled['/d']}",
        ]
        demo.scrapy("clear-errors", "demo").succeeded()
        demo.crawl("demo").succeeded()
        assert server.paths().count("/c") == 1
