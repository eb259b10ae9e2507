"""`scrapy move-host`: the files of both collections, the proof, and the crawls after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST
from tests.sites import Server, Site, page, serve

HOST = "localhost"
FIRST, SECOND = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def server() -> Iterator[Server]:
    site = {"/": page("Home", links=["/a"]), "/a": page("A", text="words")}
    others = {"/": page("Documents")}
    with serve(Site(site)) as one, serve(Site(others), host=SECOND, port=int(one.netloc.rpartition(":")[2])):
        yield one


def url(server: Server, host: str, path: str = "/") -> str:
    return server.url(path).replace("127.0.0.1", host)


@pytest.fixture
def two(project: MakeProject, server: Server) -> Project:
    """The collection `first` has two hosts, of which one is to be moved to `second`."""
    return project(
        {
            "first/start_urls.txt": f"{url(server, FIRST)}\n{url(server, HOST)} shift=1\n",
            "first/crawl.rules": "# the intranet\nallow domain loc*\nallow domain 127.0.0.1\nforbid domain *\n",
            "first/settings.py": FAST,
            "second/start_urls.txt": f"{url(server, SECOND)}\n",
            "second/crawl.rules": "# documents\nallow domain 127.0.0.2\nforbid domain *\n",
            "second/settings.py": FAST,
        }
    )


def text(demo: Project, file: str) -> str:
    return (demo.collections / file).read_text(encoding="utf-8")


def test_the_files_of_both(two: Project, server: Server) -> None:
    two.write({"global.rules": "allow domain 127.0.0.1\nallow domain 127.0.0.2\n"})
    before = {file: text(two, file) for file in ("first/crawl.rules", "second/crawl.rules", "global.rules")}
    shown = two.scrapy("move-host", HOST, "first", "second", "--dry-run").succeeded().stdout
    assert f"{HOST} would be moved from first to second" in shown
    assert before == {file: text(two, file) for file in before}
    done = two.scrapy("move-host", HOST.upper(), "first", "second").succeeded().stdout
    assert f"+allow domain {HOST}" in done
    assert (
        text(two, "first/crawl.rules")
        == f"# the intranet\nforbid domain {HOST}\nallow domain loc*\nallow domain 127.0.0.1\nforbid domain *\n"
    )
    assert text(two, "first/start_urls.txt") == f"{url(server, FIRST)}\n"
    assert text(two, "second/crawl.rules") == f"# documents\nallow domain {HOST}\nallow domain 127.0.0.2\nforbid domain *\n"
    assert text(two, "second/start_urls.txt") == f"{url(server, SECOND)}\n{url(server, HOST)} shift=1\n"
    assert text(two, "global.rules").startswith(f"allow domain {HOST}\n")
    back = two.scrapy("move-host", HOST, "second", "first").succeeded().stdout
    assert f"-allow domain {HOST}" in back
    assert (
        text(two, "first/crawl.rules")
        == f"# the intranet\nallow domain {HOST}\nallow domain loc*\nallow domain 127.0.0.1\nforbid domain *\n"
    )


@pytest.mark.full
def test_documents_after_a_move(two: Project) -> None:
    hosts = {"first": {FIRST, HOST}, "second": {SECOND}}
    for name in hosts:
        two.crawl(name).succeeded()
    done = two.scrapy("move-host", HOST, "first", "second").succeeded().stdout
    assert "all 2 URLs of it that first had are admitted there" in " ".join(done.split())
    two.crawl("second").succeeded()
    two.crawl("first").succeeded()
    found = {name: two.scrapy("search", name, "words").succeeded().stdout for name in hosts}
    assert (HOST in found["first"], HOST in found["second"]) == (False, True)


def test_rules_by_prefix_go_with_the_host(two: Project, server: Server) -> None:
    two.write(
        {
            "first/crawl.rules": f"forbid prefix {url(server, HOST, '/a')}\nallow domain loc*\nallow domain 127.0.0.1\nforbid domain *\n"
        }
    )
    two.scrapy("move-host", HOST, "first", "second").succeeded()
    assert f"allow domain {HOST}\nforbid prefix {url(server, HOST, '/a')}\n" in text(two, "second/crawl.rules")
    assert "prefix" not in text(two, "first/crawl.rules")


@pytest.mark.parametrize(
    ("args", "files", "message"),
    [
        ((HOST, "first"), {}, "name a host and two collections"),
        (("http://a/", "first", "second"), {}, "is no host name"),
        ((HOST, "first", "first"), {}, "one and the same"),
        (("other.example", "first", "second"), {}, "first has nothing of 'other.example'"),
        ((SECOND, "second", "first"), {}, "all start URLs of second are of 127.0.0.2"),
        ((HOST, "first", "third"), {}, "third"),
        ((HOST, "first", "second"), {"second/crawl.rules": "alow domain 127.0.0.2\n"}, "crawl.rules:1:1"),
    ],
)
def test_what_cannot_be_moved(two: Project, args: tuple[str, ...], files: dict[str, str], message: str) -> None:
    two.write(files)
    before = {file: text(two, file) for file in ("first/crawl.rules", "second/crawl.rules", "first/start_urls.txt")}
    done = two.scrapy("move-host", *args)
    assert (done.returncode in (1, 2), message in done.stderr, "Traceback" in done.stderr) == (True, True, False), done.stderr
    assert before == {file: text(two, file) for file in before}


@pytest.mark.full
def test_urls_that_the_other_collection_would_refuse(two: Project) -> None:
    two.crawl("first").succeeded()
    two.write({"second/crawl.rules": f"allow domain {SECOND}\nforbid domain *\nforbid prefix http://*/a\n"})
    done = two.scrapy("move-host", HOST, "first", "second")
    assert (done.returncode, "second would refuse" in done.stderr, "nothing was changed" in done.stderr) == (1, True, True), (
        done.stderr
    )
    assert "second would refuse 1 URL of the 2 that first has of localhost" in done.stderr
    assert HOST not in text(two, "second/crawl.rules")
