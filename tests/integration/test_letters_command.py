"""`scrapy letters`: what each site's owner is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec import structs

from crawlspace.state.changes import Change
from crawlspace.state.fetch_history import DocumentChange, history_after
from crawlspace.state.sqlite.store import SqliteStore
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, collection
from tests.sites import Server, Site, page, serve, text


@pytest.fixture
def server() -> Iterator[Server]:
    closed = page("Closed", head='<meta name="robots" content="noindex">')
    site = Site(
        {
            "/": page("Home", links=["/a", "/missing", "/private/1", "/closed"]),
            "/a": page("A", links=["/missing", "/also missing"]),
            "/closed": closed,
            "/robots.txt": text("User-agent: *\nDisallow: /private/\n"),
        }
    )
    with serve(site) as one:
        yield one


@pytest.fixture
def crawled(project: MakeProject, server: Server) -> Project:
    demo = project(collection(server.url("/"), settings=FAST))
    demo.crawl("demo").succeeded()
    return demo


def letters(demo: Project, *options: str) -> dict[str, object]:
    (found,) = json.loads(demo.scrapy("letters", "demo", "--json", *options).succeeded().stdout)["letters"]
    assert isinstance(found, dict)
    return found


def test_what_is_found(crawled: Project, server: Server) -> None:
    found = letters(crawled)
    assert found["host"] == "127.0.0.1"
    assert found["broken"] == [
        {"page": server.url(source), "url": server.url(target), "status": 404}
        for target, source in (("/missing", "/"), ("/missing", "/a"), ("/also%20missing", "/a"))
    ]
    assert found["closed"] == [
        {"url": server.url("/closed"), "status": 2004, "pages": 1},
        {"url": server.url("/private/1"), "status": 740, "pages": 1},
    ]
    assert found["numbers"] == {"broken": 3, "closed": 2, "orphans": 0, "slow": 0}


def test_a_slow_page(crawled: Project, server: Server) -> None:
    with closing(SqliteStore(crawled.data / "demo" / "state.db")) as store:
        state = store.get(server.url("/a"))
        assert state is not None
        for at in range(1, 4):
            history = history_after(state, now=at, status=200, took_s=8.0, change=DocumentChange.UNCHANGED)
            state = structs.replace(state, history=history, fetched_at=at)
        store.record([Change(state)], now=5)
    slow = letters(crawled)["slow"]
    assert isinstance(slow, list)
    assert [(one["url"], 4 < one["seconds"] < 12) for one in slow] == [(server.url("/a"), True)]


def test_a_page_that_a_rule_of_ours_does_not_index_is_no_mistake_of_its_site(crawled: Project, server: Server) -> None:
    crawled.write({"demo/rules.xml": '<Rules><Rule><Path val="/closed"/><NoIndex/></Rule></Rules>'})
    closed = letters(crawled)["closed"]
    assert isinstance(closed, list)
    assert [one["url"] for one in closed] == [server.url("/private/1")]


def test_letters_as_files(crawled: Project, server: Server) -> None:
    folder = crawled.data / "letters"
    done = crawled.scrapy("letters", "demo", "--to", str(folder)).succeeded()
    assert done.stdout == f"{folder / '127.0.0.1.md'}: 2 closed, 3 broken\n"
    letter = (folder / "127.0.0.1.md").read_text(encoding="utf-8")
    assert letter.startswith("# 127.0.0.1\n\nWhat the crawler of the collection demo has found on this site by ")
    assert (
        f"## Broken links (3)\n\nPages of this site that link to what is not there, on this site or another one.\n\n- <{server.url('/')}> links to"
        in letter
    )
    assert f"- <{server.url('/private/1')}>: 740, forbidden by robots.txt; 1 page links to it\n" in letter
    printed = crawled.scrapy("letters", "demo", "--host", "127.0.0.1").succeeded().stdout
    assert printed.splitlines()[0] == "# 127.0.0.1"
    assert "knows nothing of other.example" in crawled.scrapy("letters", "demo", "--host", "other.example").succeeded().stdout
    unwritable = crawled.scrapy("letters", "demo", "--to", "/dev/null/letters")
    assert (unwritable.returncode, "cannot be written" in unwritable.stderr) == (1, True)
