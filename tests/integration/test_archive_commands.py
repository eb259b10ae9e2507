"""`scrapy content` and `scrapy archive` on what crawls have archived."""

from __future__ import annotations

import json
import os
import re
import zlib

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, archived, collection, files, folder, make_due, records, shared
from tests.sites import Server, Site, binary, page, serve

PACKED = zlib.compress("<title>packed</title>wörds".encode())


def crawled_twice(server: Server, demo: Project) -> None:
    demo.crawl("demo").succeeded()
    server.site["/a"] = page("A", text="second version")
    make_due(demo)
    demo.crawl("demo").succeeded()


@pytest.fixture
def site() -> Site:
    pages = {"/": page("Home", links=["/a", "/packed"]), "/a": page("A", text="first version")}
    return Site({**pages, "/packed": binary(PACKED, "text/html", headers={"Content-Encoding": "deflate", "X-Own": "yes"})})


def test_a_page_is_printed_as_it_was_fetched(project: MakeProject, site: Site) -> None:
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        crawled_twice(server, demo)
        packed, changed = server.url("/packed"), server.url("/a")
    assert demo.scrapy("content", "demo", packed).succeeded().stdout == "<title>packed</title>wörds"
    shown = demo.scrapy("content", "demo", packed, "--headers").succeeded().stdout
    assert shown.startswith("HTTP/1.1 200 OK")
    assert "X-Own: yes" in shown
    assert "second version" in demo.scrapy("content", "demo", changed).succeeded().stdout
    assert "first version" in demo.scrapy("content", "demo", changed, "--version", "2").succeeded().stdout
    assert len(demo.scrapy("content", "demo", changed, "--versions").succeeded().stdout.splitlines()) == 2


# arguments -> exit status, a part of the sentence
WRONG = [
    (("content", "demo"), 2, "name a collection and a URL"),
    (("content", "demo", "nonsense"), 2, "is not a valid URL"),
    (("content", "demo", "http://a.example/"), 1, "http://a.example/ is not known"),
    (("content", "demo", "{}/", "--version", "0"), 2, "write 1 for the newest"),
    (("content", "demo", "{}/", "--version", "9"), 1, "has no such record in the archive"),
    (("archive",), 2, "name one collection"),
    (("archive", "demo", "--verify", "--compact"), 2, "--verify or --compact, not both"),
]


def test_wrong_use_ends_with_a_sentence(project: MakeProject, site: Site) -> None:
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        assert "has never been crawled" in demo.scrapy("archive", "demo").succeeded().stderr
        demo.crawl("demo").succeeded()
        for arguments, exit_status, sentence in WRONG:
            ended = demo.scrapy(*(argument.format(server.url("/").rstrip("/")) for argument in arguments))
            assert (ended.returncode, sentence in ended.stderr) == (exit_status, True), ended.stderr
            assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("is_shared", [False, True])
def test_compacting_keeps_what_urls_have_their_place_at(project: MakeProject, site: Site, *, is_shared: bool) -> None:
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        if is_shared:
            shared(demo)
        crawled_twice(server, demo)
    paths = ("/", "/a", "/packed")
    before = {path: archived(demo, path) for path in paths}
    shown = json.loads(demo.scrapy("archive", "demo", "--json").succeeded().stdout)
    assert (shown["files"], shown["documents"], shown["archived"]) == (2, 3, 3)
    assert "files are sound" in demo.scrapy("archive", "demo", "--verify").succeeded().stdout
    demo.scrapy("archive", "demo", "--compact").succeeded()
    assert json.loads(demo.scrapy("archive", "demo", "--json").succeeded().stdout)["bytes"] < shown["bytes"]
    for path in paths:
        now = archived(demo, path)
        assert now[1] == before[path][1]
        assert now[0] is not None
        assert before[path][0] is not None
        assert now[0].body == before[path][0].body  # type: ignore[union-attr]
    kinds = [kind for kind, *_ in records(demo)]
    assert sorted(kinds) == sorted(["warcinfo"] * len(files(demo)) + ["metadata", "response", "request"] * 3)
    assert " 0 bytes freed" in demo.scrapy("archive", "demo", "--compact").succeeded().stdout
    demo.scrapy("archive", "demo", "--verify").succeeded()
    assert "3 documents were sent again" in demo.scrapy("reindex", "demo").succeeded().stdout


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_crawl_keeps_its_archive_below_the_limit(project: MakeProject, *, is_shared: bool) -> None:
    pages, most = 200, 1_000_000
    large = {f"/{n}": page(f"Page {n}", head=f"<!-- {os.urandom(30_000).hex()} -->") for n in range(pages)}
    with serve(Site({"/": page("Home", links=list(large)), **large})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        if is_shared:
            shared(demo)
        crawled = demo.crawl("demo", "-s", f"CRAWLSPACE_ARCHIVE_MAX_BYTES={most}").succeeded()
    assert "pages were dropped, and only their documents stay" in crawled.stderr
    assert sum(path.stat().st_size for path in folder(demo).iterdir()) <= most
    demo.scrapy("archive", "demo", "--verify").succeeded()
    assert f"{pages + 1} documents were sent again" in demo.scrapy("reindex", "demo").succeeded().stdout


def test_damage_is_found(project: MakeProject, site: Site) -> None:
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        (path,) = files(demo)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 3_000)
        found = demo.scrapy("archive", "demo", "--verify")
    assert found.returncode == 1
    assert "damaged, or cut off, after byte" in found.stdout
    assert "has no record at its location" in found.stdout


def test_an_archive_stays_below_its_limit(project: MakeProject) -> None:
    words = {n: " ".join(f"w{n * k * 7919}" for k in range(1, 25_000)) for n in range(1, 9)}
    site = Site({"/": page("Home", links=[f"/{n}" for n in words]), **{f"/{n}": page(f"Page {n}", text=words[n]) for n in words}})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        size = sum(path.stat().st_size for path in files(demo))
        most = int(size * 0.8)
        assert most > 1_000_000
        make_due(demo)
        limited = demo.crawl("demo", "-s", f"CRAWLSPACE_ARCHIVE_MAX_BYTES={most}").succeeded()
        assert re.search(r"the oldest \d pages were dropped, and only their documents stay", limited.stderr)
        assert sum(path.stat().st_size for path in folder(demo).iterdir()) <= most
    assert "9 documents were sent again" in demo.scrapy("reindex", "demo").succeeded().stdout
