"""Files of an older version, through the command line: who brings them up to date, what is told of it, and what is not lost by it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from crawlspace.state.sqlite import rekey
from crawlspace.state.sqlite.file import CrawlLock, is_older
from crawlspace.state.sqlite.schema import MIGRATIONS
from crawlspace.state.sqlite.store import SqliteStore
from tests.conftest import MakeProject, Project, assert_same
from tests.contract.conftest import NOW
from tests.integration.conftest import Run
from tests.integration.stored import FAST, statuses
from tests.integration.test_two_collections import searchable
from tests.sites import Server, Site, page, serve
from tests.unit.state.older import of_version_2

FILES = {"demo/start_urls.txt": "http://a.example/\n", "demo/crawl.rules": "allow domain a.example\nforbid domain *\n"}


@pytest.fixture
def demo(project: MakeProject) -> Project:
    made = project(FILES)
    (made.data / "demo").mkdir()
    of_version_2(file_of(made))
    (made.data / "demo" / "index.db").touch()
    return made


def file_of(made: Project) -> Path:
    return made.data / "demo" / "state.db"


def told(made: Project) -> str:
    return f"{file_of(made)} is being brought up to version {len(MIGRATIONS)}: 8 URLs, this is done once\n"


# command -> a part of what it prints
LOOKING = [
    (("status", "demo"), "documents                    5"),
    (("urls", "demo", "--status", "404"), "http://a.example/gone"),
    (("plan", "demo"), "b.example"),
    (("explain", "demo", "http://a.example/down"), "status 503"),
    (("deletions", "demo"), "http://a.example/gone"),
]
CHANGING = [
    (("recrawl", "demo", "--errors"), "2 URLs are due now"),
    (("clear-errors", "demo"), "0 URLs are pending again, 2 with a document"),
    (("forget", "demo", "--host", "b.example"), "1 URL is forgotten"),
    (("deletions", "demo", "--discard"), "1 deletion is discarded"),
]
ALL = [*LOOKING, *CHANGING]
NAMES = [" ".join(row[0]) for row in ALL]


@pytest.mark.parametrize(("arguments", "says"), ALL, ids=NAMES)
def test_any_command_brings_it_up_to_date(demo: Project, run: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run(*arguments)
    assert says in ended.stdout, ended.stdout + ended.stderr
    assert ended.stderr.startswith(told(demo))
    assert not is_older(file_of(demo))
    assert "is being brought up" not in run(*arguments).stderr


def test_what_a_program_reads_is_not_disturbed(run: Run) -> None:
    assert run("status", "demo", "--json").succeeded().stdout.startswith("{")


@pytest.mark.parametrize(("arguments", "says"), ALL, ids=NAMES)
def test_no_command_does_while_it_is_crawled(demo: Project, run: Run, arguments: tuple[str, ...], says: str) -> None:
    """By the older version, which would go on and write what it knows into a file that is another now."""
    with closing(apsw.Connection(str(file_of(demo)))) as db:
        db.execute("INSERT INTO crawl VALUES (1, 4711, ?)", (NOW,))
    with closing(CrawlLock(file_of(demo))):
        ended = run(*arguments)
    assert (ended.returncode, says in ended.stdout) == (1, False)
    assert ended.stderr.startswith("demo is being crawled by process 4711 since 2025-06-15 ")
    assert "wait for it or stop it" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert is_older(file_of(demo))


@pytest.mark.parametrize("command", ["status", "crawl", "clear-errors"])
def test_while_another_does_it_they_say_so(demo: Project, run: Run, command: str) -> None:
    with closing(apsw.Connection(str(file_of(demo)))) as db:
        db.execute("INSERT INTO crawl VALUES (1, 4711, ?); INSERT INTO meta VALUES ('upgrading', '4711')", (NOW,))
    with closing(CrawlLock(file_of(demo))):
        ended = run(command, "demo")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("demo is being brought up to date by process 4711 since 2025-06-15 ")
    assert "crawl the collection once" not in ended.stderr


def test_lint_changes_nothing(demo: Project, run: Run) -> None:
    assert run("lint", "demo").stderr == ""
    assert is_older(file_of(demo))


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["crawl", "status", "clear-errors"])
def test_ctrl_c_is_one_sentence_and_changes_nothing(
    demo: Project, run: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(url: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(rekey, "url_key", stopped)
    ended = run(command, "demo")
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == f"{told(demo)}stopped: {file_of(demo)} is as it was\n"
    assert is_older(file_of(demo))
    CrawlLock(file_of(demo)).close()


def test_ctrl_c_while_a_start_judges_the_known_urls(demo: Project, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    run("status", "demo")
    monkeypatch.setattr(SqliteStore, "reclassify", stopped)
    ended = run("crawl", "demo")
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "stopped before anything was fetched; the next start goes on from here\n"
    CrawlLock(file_of(demo)).close()


# --- a crawl --------------------------------------------------------------------------------------------------------


def test_a_mistake_in_the_rules_is_told_before_anything_is_changed(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": "alow domain a.example\n"})
    ended = run("crawl", "demo")
    assert ended.returncode == 1
    assert ended.stderr.startswith("crawl.rules:1:1: ")
    assert is_older(file_of(demo))


@pytest.fixture
def server() -> Iterator[Server]:
    pages = {f"/p/{number}": page(f"Page {number}", text=f"page {number}") for number in range(6)}
    with serve(Site({"/": page("Home", links=list(pages)), **pages})) as served:
        yield served


def test_a_crawl_tells_first_and_goes_on(demo: Project, server: Server) -> None:
    demo.write(
        {
            "demo/start_urls.txt": f"{server.url()}\n",
            "demo/crawl.rules": f"allow domain {server.netloc}\nforbid domain *\n",
            "demo/settings.py": FAST + "CRAWLSPACE_MAX_DELETIONS = 100\n",
        }
    )
    ended = demo.crawl("demo").succeeded()
    assert ended.stderr.startswith(told(demo)), ended.stderr
    assert ended.stderr.count("is being brought up") == 1
    assert "demo: done. 7 fetched" in ended.stderr
    assert "is being brought up" not in demo.crawl("demo").stderr


# --- an index that two collections share ----------------------------------------------------------------------------


@pytest.fixture
def shared(project: MakeProject, server: Server, tmp_path: Path) -> tuple[Project, Path]:
    """Two collections that have both crawled all of a site, with an index that does not know of owners, as of an older version."""
    index = tmp_path / "shared.db"
    files = {
        f"{name}/{file}": content
        for name in ("intranet", "shop")
        for file, content in (
            ("start_urls.txt", f"{server.url()}\n"),
            ("crawl.rules", f"allow domain {server.netloc}\nforbid domain *\n"),
            ("settings.py", FAST + f"CRAWLSPACE_INDEX_FILE = {str(index)!r}\nCRAWLSPACE_MAX_DELETIONS = 100\n"),
        )
    }
    made = project(files)
    for name in ("intranet", "shop"):
        made.crawl(name).succeeded()
    with closing(apsw.Connection(str(index))) as db:
        db.execute("DROP INDEX in_doubt; UPDATE documents SET owner = ''; PRAGMA user_version = 2")
    return made, index


def forbid(made: Project, server: Server, name: str) -> None:
    made.write({f"{name}/crawl.rules": f"forbid prefix {server.url('/p/')}\nallow domain {server.netloc}\nforbid domain *\n"})
    made.crawl(name).succeeded()


def test_no_collection_deletes_what_another_has(shared: tuple[Project, Path], server: Server) -> None:
    made, index = shared
    everything = {server.url("/"), *(server.url(f"/p/{number}") for number in range(6))}
    forbid(made, server, "intranet")
    assert_same(searchable(index), everything)
    assert {statuses(made, "shop")[f"/p/{number}"] for number in range(6)} == {200}
    forbid(made, server, "shop")
    made.crawl("intranet").succeeded()
    assert_same(searchable(index), {server.url("/")})


def test_a_command_leaves_it_to_the_next_crawl(shared: tuple[Project, Path], server: Server) -> None:
    made, index = shared
    before = searchable(index)
    ended = made.scrapy("forget", "shop", "--prefix", server.url("/p/")).succeeded()
    assert "6 orders wait for the index until the next crawl, which brings it up to date" in ended.stderr
    assert_same(searchable(index), before)
    ended = made.crawl("intranet").succeeded()
    assert f"{index} does not know whose 7 of its documents are: asking intranet, shop\n" in ended.stderr
    assert "does not know" not in made.crawl("shop").stderr
    assert_same(searchable(index), before)


def test_whom_to_ask_must_be_known(shared: tuple[Project, Path]) -> None:
    made, index = shared
    made.write({"shop/settings.py": "CRAWLSPACE_INDEX_FILE = \n"})
    ended = made.crawl("intranet")
    assert ended.returncode == 1
    assert "the settings of shop cannot be read: " in ended.stderr
    assert "shop/settings.py:1: invalid syntax" in ended.stderr
    assert "Traceback" not in ended.stderr
    with closing(apsw.Connection(str(index))) as db:
        assert db.pragma("user_version") == 2


def test_who_shares_it_must_not_be_crawled_by_an_older_version(shared: tuple[Project, Path]) -> None:
    made, _ = shared
    file = made.data / "shop" / "state.db"
    file.unlink()
    of_version_2(file)
    with closing(apsw.Connection(str(file))) as db:
        db.execute("INSERT INTO crawl VALUES (1, ?, ?)", (os.getpid(), NOW))
    with closing(CrawlLock(file)):
        ended = made.crawl("intranet")
    assert ended.returncode == 1
    assert f"shop is being crawled by process {os.getpid()} since 2025-06-15" in ended.stderr
    assert is_older(file)
