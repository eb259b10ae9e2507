"""What is archived of pages that were rendered, and that all that reads them again reads their DOM."""

from __future__ import annotations

import os
import random
import signal
import zlib
from pathlib import Path

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.killed_at_commit import MarkingSite, crawl_killed
from tests.integration.rendering import RENDERS, dom, packed_shell, shell
from tests.integration.stored import ARCHIVED, archived, collection, indexed, make_due, records, shared, states
from tests.integration.test_extract import OWN, change, editions, extract
from tests.sites import Server, Site, page, serve


def site() -> Site:
    """A start page, a page of scripts, and one that only its DOM links to."""
    return Site({"/": page("Home", links=["/a"]), "/a": shell("A", text="wörds", links=["/b"]), "/b": page("B")})


def crawled(project: MakeProject, server: Server, *options: str, settings: str = RENDERS, rules: str = "") -> Project:
    demo = project(collection(server.url("/"), rules=rules, settings=ARCHIVED + settings))
    demo.crawl("demo", *options).succeeded()
    return demo


def printed(demo: Project, url: str, *options: str) -> bytes:
    """What `scrapy content` prints of a page."""
    return os.fsencode(demo.scrapy("content", "demo", url, *options).succeeded().stdout)


def test_both_are_kept_and_the_dom_is_what_is_read(project: MakeProject) -> None:
    made = dom("A", text="wörds", links=["/b"])
    with serve(site()) as server:
        demo = crawled(project, server)
        url = server.url("/a")
    response, document = archived(demo, "/a")
    assert response is not None
    assert document is not None
    assert (response.body, response.dom) == (packed_shell(made), made.encode())
    assert (document.title, document.text, indexed(demo)) == ("A", "wörds /b", ["/", "/a", "/b"])
    assert [kind for kind, where, _ in records(demo) if where == url] == ["metadata", "response", "resource", "request"]
    assert printed(demo, url) == made.encode()
    sent = printed(demo, url, "--as-sent", "--headers")
    assert (b"X-Own: yes" in sent, sent.endswith(zlib.decompress(packed_shell(made)))) == (True, True)
    assert printed(demo, url, "--raw") == packed_shell(made)
    listed = demo.scrapy("content", "demo", url, "--versions").succeeded().stdout
    assert f"{len(response.body)} bytes, rendered: {len(made.encode())} bytes" in listed
    assert "sound" in demo.scrapy("archive", "demo", "--verify").succeeded().stdout


@pytest.mark.parametrize("is_shared", [False, True])
def test_documents_are_made_again_of_the_dom(project: MakeProject, *, is_shared: bool) -> None:
    with serve(site()) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + RENDERS))
        if is_shared:
            shared(demo)
        demo.crawl("demo", *OWN).succeeded()
        asked, (before, document) = len(server.paths()), archived(demo, "/a")
        assert before is not None
        assert extract(demo) == (0, "demo: 3 documents were sent again\n")
        assert archived(demo, "/a") == (before, document), "nothing has changed"
        for edition in ("second", "third"):
            assert extract(demo, settings=f"EDITION = {edition!r}\n")[0] == 0
            now, rebuilt = archived(demo, "/a")
            assert now is not None
            assert rebuilt is not None
            assert document is not None
            assert (now.body, now.dom) == (before.body, before.dom)
            assert (rebuilt.text, rebuilt.title, rebuilt.fields["edition"]) == (document.text, document.title, edition)
            assert set(editions(demo).values()) == {edition}
            demo.scrapy("archive", "demo", "--compact").succeeded()
        assert len(server.paths()) == asked
        kinds = [kind for kind, url, _ in records(demo) if url == server.url("/a")]
    assert kinds == ["metadata", "response", "resource", "request"]


def test_links_are_judged_again_by_the_dom(project: MakeProject) -> None:
    pages = {"/": page("Home", links=["/a"]), "/a": shell("A", links=["/closed/1"]), "/closed/1": page("Closed")}
    with serve(Site(pages)) as server:
        demo = crawled(project, server, rules=f"forbid prefix {server.url('/closed/')}\n")
        assert indexed(demo) == ["/", "/a"]
        (demo.collections / "demo" / "crawl.rules").write_text("", encoding="utf-8")
        server.forget()
        said = demo.crawl("demo").succeeded().stderr
        assert sorted(server.paths()) == ["/", "/closed/1"]
        assert "the links of 1 page were judged again from the archive, without a request: 1 URL found" in said
        assert indexed(demo) == ["/", "/a", "/closed/1"]


def test_a_page_that_is_not_rendered_any_more(project: MakeProject) -> None:
    with serve(site()) as server:
        demo = crawled(project, server, *OWN)
        change(demo, "DOWNLOADER_MIDDLEWARES = {}\n")
        make_due(demo)
        demo.crawl("demo", *OWN).succeeded()
        url = server.url("/a")
    response, document = archived(demo, "/a")
    assert (response and response.dom, document and document.title) == (None, "Shell")
    assert printed(demo, url) == zlib.decompress(packed_shell(dom("A", text="wörds", links=["/b"])))
    assert printed(demo, url, "--version", "2") == dom("A", text="wörds", links=["/b"]).encode()
    assert extract(demo, settings="EDITION = 'second'\n")[0] == 0
    assert editions(demo)["Shell"] == "second"


def test_the_limit_drops_pages_with_their_dom(project: MakeProject) -> None:
    paths, noise = [f"/{n}" for n in range(40)], random.Random(0)
    pages = {path: shell(f"Page {path}", script=noise.randbytes(30_000).hex()) for path in paths}
    with serve(Site({"/": page("Home", links=paths), **pages})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + RENDERS))
        limited = demo.crawl("demo", "-s", "CRAWLSPACE_ARCHIVE_MAX_BYTES=1200000").succeeded()
    assert "dropped, and only their documents stay" in limited.stderr
    left = [archived(demo, path) for path in paths]
    assert all(document is not None for _, document in left)
    assert {response is None or response.dom is not None for response, _ in left} == {True}
    assert {response is None for response, _ in left} == {True, False}
    demo.scrapy("archive", "demo", "--verify").succeeded()


@pytest.mark.full
def test_a_kill_leaves_no_place_without_its_dom(project: MakeProject, tmp_path: Path) -> None:
    begun, paths = tmp_path / "begun", [f"/{n}" for n in range(20)]
    pages = {"/": page("Home", links=paths[:6]), **{path: shell(path, links=paths[6:]) for path in paths}}
    recorded: list[int] = []
    with serve(MarkingSite(pages, begun)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + RENDERS))
        while True:
            crawl = crawl_killed(2 + len(recorded), output=demo.folder / "output.txt", env=demo.env, after=begun)
            status = crawl.wait()
            fetched = [path for path, state in states(demo).items() if state.status and path != "/"]
            assert all(_has_its_dom(demo, path) for path in fetched)
            recorded.append(len(fetched))
            if status != -signal.SIGKILL:
                break
    assert status == 0, crawl.output()
    assert any(0 < some < 20 for some in recorded), "some were killed when a part was recorded"
    assert (recorded[-1], len(states(demo))) == (20, 21)


def _has_its_dom(demo: Project, path: str) -> bool:
    response, document = archived(demo, path)
    return (
        response is not None
        and document is not None
        and response.dom == dom(path, links=[f"/{n}" for n in range(6, 20)]).encode()
    )
