"""What a person gets for a mistake: one clear sentence, a status, and nothing lost or deleted."""

from __future__ import annotations

import shutil
import subprocess
import sys

import apsw
import pytest

from tests.command_line import start_scrapy
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, collection, indexed
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Site, held, page, serve

RULES = """\
alow domain a.example
forbid domian b.example
forbid prefix ftp://c.example/
allow address 9.0.0.0 255.0.0.999
forbid domain d.example:99999
"""

MISTAKES = [
    # file, content, status, what is said
    (
        "demo/crawl.rules",
        RULES,
        1,
        ["crawl.rules:1:1", "crawl.rules:2:8", "crawl.rules:3:15", "crawl.rules:4:23", "crawl.rules:5:15"],
    ),
    ("demo/crawl.rules", "forbid domain *\n", 1, ["no start URL is in the crawl space", "(crawl.rules:1: forbid domain *)"]),
    ("demo/settings.py", "CRAWLSPACE_MAX_PATH_DEEPTH = 3\n", 1, ["did you mean CRAWLSPACE_MAX_PATH_DEPTH?"]),
    ("demo/settings.py", "CRAWLSPACE_MAX_PATH_DEPTH = -1\n", 1, ["CRAWLSPACE_MAX_PATH_DEPTH is -1; it must be at least 0"]),
    ("demo/settings.py", "x = (\n", 1, ["settings.py:1: '(' was never closed"]),
    ("demo/start_urls.txt", "www.ibm.com\n", 1, ["start_urls.txt:1:1", "begins with http:// or https://"]),
    ("demo/start_urls.txt", f"http://a:{'9' * 1000}/\n", 1, ["start_urls.txt:1:1", "is not an absolute URL"]),
]


@pytest.mark.parametrize(("file", "content", "code", "reported"), MISTAKES, ids=[row[3][0] for row in MISTAKES])
def test_mistakes(project: MakeProject, file: str, content: str, code: int, reported: list[str]) -> None:
    demo = project({**collection("http://127.0.0.1:9/"), file: content})
    run = demo.crawl("demo")
    assert run.returncode == code
    assert [word for word in reported if word not in run.stderr] == []
    assert "Traceback" not in run.stderr


def test_an_unknown_collection(project: MakeProject) -> None:
    run = project(collection("http://127.0.0.1:9/")).crawl("dmo")
    assert (run.returncode, "did you mean 'demo'?" in run.stderr, "Traceback" in run.stderr) == (2, True, False)


def test_no_collection_named(project: MakeProject) -> None:
    run = project(collection("http://127.0.0.1:9/")).scrapy("crawl")
    assert (run.returncode, "name a collection, as in" in run.stderr) == (2, True)


@pytest.fixture
def crawled(project: MakeProject) -> Project:
    with serve(Site({"/": page("Home", links=["/a"]), "/a": page("A", text="words of a")})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        return demo


def test_a_wrong_rule_file_changes_nothing(crawled: Project) -> None:
    crawled.write({"demo/crawl.rules": "forbid domian 127.0.0.1\n"})
    assert crawled.crawl("demo").returncode == 1
    assert indexed(crawled) == ["/", "/a"]


def test_a_test_of_the_rules_that_fails_keeps_a_crawl_from_beginning(crawled: Project) -> None:
    crawled.write({"demo/crawl.rules": "forbid prefix http://127.0.0.1/a\n", "demo/tests.rules": "admit http://127.0.0.1/a\n"})
    run = crawled.crawl("demo")
    assert (run.returncode, "Traceback" in run.stderr) == (1, False)
    assert (
        "tests.rules:1:7: the test of http://127.0.0.1/a fails: expected is `admit`, and the rules refuse it: prefix"
        in run.stderr
    )
    assert indexed(crawled) == ["/", "/a"]
    plan = crawled.scrapy("plan", "demo")
    assert (plan.returncode, "1 test of tests.rules fails, so no crawl would begin" in plan.stdout) == (1, True)


def test_a_damaged_store_is_reported_and_not_changed(crawled: Project) -> None:
    file = crawled.data / "demo" / "state.db"
    file.write_bytes(b"not a database at all, " * 1000)
    run = crawled.crawl("demo")
    assert run.returncode == 1
    assert "state.db" in run.stderr
    assert "Traceback" not in run.stderr
    assert file.read_bytes().startswith(b"not a database")


def test_a_damaged_index_is_reported(crawled: Project) -> None:
    (crawled.data / "demo" / "index.db").write_bytes(b"not a database at all, " * 1000)
    run = crawled.crawl("demo")
    assert (run.returncode, "index.db" in run.stderr, "Traceback" in run.stderr) == (1, True, False)


def test_a_second_crawl_of_the_same_collection(project: MakeProject) -> None:
    with serve(Site({"/": held(page("Home"))})) as server:
        demo = project(collection(server.url("/")))
        first = demo.start("crawl", "demo")
        demo.until(lambda: "/" in server.paths())
        run = demo.crawl("demo")
        assert (run.returncode, f"process {first.pid}" in run.stderr, "Traceback" in run.stderr) == (1, True, False)
        assert first.poll() is None


@pytest.mark.full
def test_a_full_disk_ends_the_crawl_and_the_next_one_goes_on(project: MakeProject) -> None:
    """A file size limit is met as a full disk is: the write fails half-way."""
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(300)])})
    site.update({f"/{n}": page(f"Page {n}", text=f"{n} words " * 2000) for n in range(300)})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=FAST + "CONCURRENT_REQUESTS = 4\n"))
        command = ["bash", "-c", 'ulimit -f 1500; exec "$@"', "-", sys.executable, "-m", "scrapy", "crawl", "demo"]
        run = subprocess.run(command, env=_environment(demo), capture_output=True, text=True, timeout=LONGEST_WAIT_S, check=False)
        assert run.returncode == 1
        assert "Traceback" not in run.stderr
        assert "check the disk that holds it" in run.stderr
        demo.crawl("demo").succeeded()
        assert len(indexed(demo)) == 301


def _fill_the_disk_of_the_index() -> None:
    """Have the index of this process be refused more than a few pages, as on a full disk of its own."""

    def limit(database: apsw.Connection) -> None:
        if database.filename.endswith("index.db"):
            database.pragma("max_page_count", 30)

    apsw.connection_hooks.append(limit)


def test_a_full_disk_of_the_index_keeps_its_orders_for_the_next_start(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(30)])})
    site.update({f"/{n}": page(f"Page {n}", text=f"{n} words " * 2000) for n in range(30)})
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        output = demo.folder / "output.txt"
        crawl = start_scrapy(["crawl", "demo"], output=output, env=demo.env, first=_fill_the_disk_of_the_index)
        crawl.wait()
        assert f"the disk of the index {demo.data / 'demo' / 'index.db'} is full: free space" in crawl.output()
        assert "could not be sent; they are kept and sent at the next start" in crawl.output()
        assert "Traceback" not in crawl.output()
        assert len(indexed(demo)) < 31
        demo.crawl("demo").succeeded()
        assert len(indexed(demo)) == 31
        assert set(server.counts().values()) == {1}, "nothing is fetched again"


def test_rules_that_cannot_be_kept_are_a_warning(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        demo = project(collection(server.url("/")))
        (demo.data / "demo").mkdir()
        (demo.data / "demo" / "rules-in-force").write_text("no folder can be made here")
        run = demo.crawl("demo").succeeded()
        assert "The rules of this start are not kept for `scrapy history`" in run.stderr
        assert indexed(demo) == ["/"]


def _environment(project: Project) -> dict[str, str]:
    import os

    return {**os.environ, **project.env}


def test_data_that_cannot_be_written(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    shutil.rmtree(demo.data)
    demo.data.write_text("a file where a folder should be")
    run = demo.crawl("demo")
    assert (run.returncode, "CRAWLSPACE_DATA_DIR" in run.stderr, "Traceback" in run.stderr) == (1, True, False)
