"""`scrapy reindex --extract` rebuilds documents from the archive, with the code and settings as they are now."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.killed_at_commit import extraction_killed
from tests.integration.stored import ARCHIVED, archived, collection, folder, indexed, make_due, shared, states, statuses
from tests.quick import some
from tests.sites import Answer, Site, binary, held, page, serve
from tests.unit.content.documents.made_files import pdf

OWN = ("-s", "SPIDER_MODULES=tests.integration.changed_spiders")
SITE = {"/": page("Home", links=["/a", "/b", "/c"]), "/a": page("A"), "/b": page("B", text="same"), "/c": page("B", text="same")}
DROPS = "ITEM_PIPELINES = {'tests.integration.changed_spiders.Dropping': 100}\nDROPS = 'A'\n"
SENT_3 = "demo: 3 documents were sent again\n"


def crawled(project: MakeProject, server_url: str, *, settings: str = "", is_shared: bool = False) -> Project:
    demo = project(collection(server_url, settings=ARCHIVED + settings))
    if is_shared:
        shared(demo)
    demo.crawl("demo", *OWN).succeeded()
    return demo


def change(demo: Project, settings: str, name: str = "demo") -> None:
    file = demo.collections / name / "settings.py"
    file.write_text(file.read_text(encoding="utf-8") + settings, encoding="utf-8")


def extract(demo: Project, *, name: str = "demo", settings: str = "") -> tuple[int, str]:
    """Have documents rebuilt with further settings; return the exit status and what was printed."""
    change(demo, settings, name)
    done = demo.scrapy("reindex", name, "--extract", "--processes", "1", *OWN)
    return done.returncode, done.stdout or done.stderr


def editions(demo: Project) -> dict[str, str]:
    lines = demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout.splitlines()
    return {(one := json.loads(line))["title"]: one["fields"]["edition"] for line in lines}


def test_what_ends_a_crawl_early_ends_no_extraction(project: MakeProject) -> None:
    paths = [f"/{n}" for n in range(100)]
    with serve(Site({"/": page("Home", links=paths), **{path: page(path) for path in paths}})) as server:
        demo = crawled(project, server.url("/"), settings="DOWNLOAD_DELAY = 0\n")
    assert extract(demo, settings="CLOSESPIDER_ITEMCOUNT = 1\nEDITION = 'second'\n") == (
        0,
        "demo: 101 documents were sent again\n",
    )
    assert set(editions(demo).values()) == {"second"}


@pytest.mark.parametrize("is_shared", [False, True])
def test_documents_are_made_again_without_a_request(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"), is_shared=is_shared)
        before, asked = states(demo), len(server.paths())
        assert extract(demo, settings="EDITION = 'second'\n") == (0, SENT_3)
        assert len(server.paths()) == asked
    assert editions(demo) == {"Home": "second", "A": "second", "B": "second"}
    for path, state in states(demo).items():
        then = before[path]
        assert (state.fetched_at, state.next_fetch, state.rules) == (then.fetched_at, then.next_fetch, then.rules)
        response, document = archived(demo, path)
        assert (response and response.status, document and document.fields["edition"]) == (200, "second")
    assert extract(demo) == (0, SENT_3)
    assert demo.scrapy("reindex", "demo").succeeded().stdout == SENT_3
    assert set(editions(demo).values()) == {"second"}, "what is stored is what was made last"
    assert demo.scrapy("archive", "demo", "--compact").succeeded().stdout
    assert extract(demo) == (0, SENT_3)


def test_an_index_that_was_lost_has_the_new_documents(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"))
    for file in (demo.data / "demo").glob("index.db*"):
        file.unlink()
    assert extract(demo, settings="EDITION = 'second'\n") == (0, SENT_3)
    assert editions(demo) == {"Home": "second", "A": "second", "B": "second"}


def test_a_page_without_a_document_leaves_and_comes_back(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"))
        left = "demo: 2 documents were sent again; 1 page has no document any more, and left the index\n"
        assert extract(demo, settings="LEAVES = ['A']\n") == (0, left)
        assert (indexed(demo), states(demo)["/a"].status) == (["/", "/b"], 2004)
        assert extract(demo, settings="LEAVES = []\n") == (0, SENT_3)
        assert (indexed(demo), states(demo)["/a"].status) == (["/", "/a", "/b"], 200)
        assert extract(demo, settings=DROPS) == (0, left)
        assert indexed(demo) == ["/", "/b"]
        assert extract(demo, settings="DROPS = ''\n") == (0, SENT_3)
        asked = len(server.paths())
        demo.crawl("demo", *OWN).succeeded()
        assert (indexed(demo), len(server.paths())) == (["/", "/a", "/b"], asked)


def test_too_many_deletions_are_held(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"), settings="CRAWLSPACE_MAX_DELETIONS = 1\nCRAWLSPACE_MAX_DELETIONS_PERCENT = 0\n")
    status, said = extract(demo, settings="LEAVES = ['A', 'B', 'Home']\n")
    assert status == 0
    assert "1 page has no document any more, and left the index; 2 documents are held in the index" in said
    assert len(indexed(demo)) == 2
    assert "2 deletions are held" in demo.scrapy("deletions", "demo").stderr


def test_a_page_whose_code_fails_keeps_its_document(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"))
    assert extract(demo, settings="EDITION = 'second'\nFAILS = ['A']\n") == (
        1,
        "demo: 3 documents were sent again; 1 document could not be rebuilt, and stayed as before\n",
    )
    assert editions(demo) == {"Home": "second", "A": "first", "B": "second"}
    assert states(demo)["/a"].state is State.DONE


def test_a_page_that_needs_a_request_keeps_its_document(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/detail": page("Detail")})) as server:
        demo = project(
            {name.replace("demo", "asking"): text for name, text in collection(server.url("/"), settings=ARCHIVED).items()}
        )
        demo.crawl("asking", *OWN).succeeded()
        asked = len(server.paths())
        status, said = extract(demo, name="asking", settings="ASKS = True\n")
        assert (status, len(server.paths())) == (1, asked)
    assert "1 document could not be rebuilt" in said
    assert archived(demo, "/", "asking")[1].title == "at once"  # type: ignore[union-attr]


def test_files_are_read_again(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/f.pdf"]), "/f.pdf": binary(pdf(["words of a file"]), "application/pdf")})
    with serve(site) as server:
        demo = crawled(project, server.url("/"))
    assert extract(demo, settings="EDITION = 'second'\n") == (0, "demo: 2 documents were sent again\n")
    document = archived(demo, "/f.pdf")[1]
    assert document is not None
    assert (document.fields["edition"], document.text) == ("second", "words of a file")


def test_what_has_no_record_is_fetched_by_the_next_crawl(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"))
        shutil.rmtree(folder(demo))
        status, said = extract(demo, settings="EDITION = 'second'\n")
        assert (status, indexed(demo)) == (1, ["/", "/a", "/b"])
        assert said.startswith(
            "demo: 0 documents were sent again; 3 have no record in the archive: the next crawl fetches and sends"
        )
        demo.crawl("demo", *OWN).succeeded()
        assert editions(demo) == {"Home": "second", "A": "second", "B": "second"}
        assert extract(demo) == (0, SENT_3)


ETAG = {"ETag": '"1"'}
LAST_SEEN: list[tuple[str, dict[str, str], dict[str, str], int, bool]] = [
    # path, headers at first, headers with the same body later (with an ETag also on a 304) -> status, whether it is indexed
    ("/noindex",           {},                                 {"X-Robots-Tag": "noindex"},                     2004, False),
    ("/noindex-on-304",    ETAG,                               {**ETAG, "X-Robots-Tag": "noindex"},             2004, False),
    ("/none",              {},                                 {"X-Robots-Tag": "none"},                        2004, False),
    ("/named",             {},                                 {"X-Robots-Tag": "demobot: noindex"},            2004, False),
    ("/others",            {},                                 {"X-Robots-Tag": "otherbot: noindex"},           200,  True),
    ("/later",             {},                                 {"X-Robots-Tag": "unavailable_after: 1 Jan 2020"}, 200, True),
    ("/lifted",            {"X-Robots-Tag": "noindex"},        {},                                              200,  True),
    ("/lifted-on-304",     {**ETAG, "X-Robots-Tag": "noindex"}, ETAG,                                           200,  True),
    ("/canonical",         {},                                 {"Link": "</equal>; rel=canonical"},             200,  False),
    ("/canonical-on-304",  ETAG,                               {**ETAG, "Link": "</equal>; rel=canonical"},     200,  False),
    ("/own",               {"Link": "</equal>; rel=canonical"}, {},                                             200,  True),
    ("/type",              {},                                 {"Content-Type": "image/png"},                   780,  False),
    ("/type-on-304",       ETAG,                               {**ETAG, "Content-Type": "image/png"},           780,  False),
    ("/equal",             {},                                 {},                                              200,  True),
]  # fmt: skip
AFTERWARDS = [
    # what is done before documents are rebuilt
    (),
    ("archive", "demo", "--compact"),
]


def last_seen(headers: Callable[[tuple[str, dict[str, str], dict[str, str], int, bool]], dict[str, str]]) -> dict[str, Answer]:
    return {row[0]: page(row[0], text=f"text of {row[0]}", headers=headers(row)) for row in LAST_SEEN}


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_headers_count_as_they_were_sent_last(project: MakeProject, afterwards: tuple[str, ...], *, is_shared: bool) -> None:
    home = {"/": page("Home", links=[row[0] for row in LAST_SEEN])}
    many = "USER_AGENT = 'demobot/1.0'\nCRAWLSPACE_MAX_DELETIONS = 100\n"
    with serve(Site({**home, **last_seen(lambda row: row[1])})) as server:
        demo = crawled(project, server.url("/"), settings=many, is_shared=is_shared)
        server.site.update(last_seen(lambda row: row[2]))
        make_due(demo)
        demo.crawl("demo", *OWN).succeeded()
        if afterwards:
            demo.scrapy(*afterwards).succeeded()
        asked = len(server.requests)
        for settings in ("EDITION = 'second'\n", "EDITION = 'third'\n"):
            status, said = extract(demo, settings=settings)
            assert status == 0, said
            found = statuses(demo)
            assert {path: found[path] for path, *_ in LAST_SEEN} == {row[0]: row[3] for row in LAST_SEEN}
            assert_same(indexed(demo), ["/", *(path for path, _, _, _, stays in LAST_SEEN if stays)])
        assert len(server.requests) == asked
    assert "no difference" in demo.scrapy("audit", "demo").stdout


UNDER_OTHER_SETTINGS = [
    # X-Robots-Tag, a setting with which it does not apply, and one with which it does
    ("noindex", "CRAWLSPACE_META_ROBOTS = False\n", "CRAWLSPACE_META_ROBOTS = True\n"),
    ("demobot: noindex", "USER_AGENT = 'other/1.0'\n", "USER_AGENT = 'demobot/1.0'\n"),
]


@pytest.mark.parametrize("headers", [{}, ETAG])
@pytest.mark.parametrize(("directives", "before", "after"), some(UNDER_OTHER_SETTINGS, 1))
def test_directives_that_were_not_obeyed_are_known(
    project: MakeProject, directives: str, before: str, after: str, headers: dict[str, str]
) -> None:
    """Those of the last response count, also where that was a 304."""
    pages = {"/a": page("A", headers=headers), "/b": page("B", headers=headers)}
    with serve(Site({"/": page("Home", links=["/a", "/b"]), **pages})) as server:
        demo = crawled(project, server.url("/"), settings=before)
        server.site["/a"] = page("A", headers={**headers, "X-Robots-Tag": directives})
        make_due(demo)
        demo.crawl("demo", *OWN).succeeded()
        assert indexed(demo) == ["/", "/a", "/b"]
        (demo.data / "demo" / "index.db").unlink()
        extract(demo, settings=after)
        assert indexed(demo) == ["/", "/b"]
        demo.crawl("demo", *OWN).succeeded()
        assert indexed(demo) == ["/", "/b"]


def test_a_document_that_a_person_has_kept_stays_as_it_is(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/a"]), "/a": page("A")})) as server:
        demo = crawled(project, server.url("/"), settings="CRAWLSPACE_MAX_DELETIONS = 0\nCRAWLSPACE_MAX_DELETIONS_PERCENT = 0\n")
        server.site["/a"] = page("A", headers={"X-Robots-Tag": "noindex"})
        make_due(demo)
        demo.crawl("demo", *OWN).succeeded()
        demo.scrapy("deletions", "demo", "--discard").succeeded()
    before = states(demo)["/a"]
    assert extract(demo, settings="EDITION = 'second'\n") == (0, "demo: 2 documents were sent again\n")
    after = states(demo)["/a"]
    assert (after.state, after.status, after.archived) == (State.EXCLUDED, 2004, before.archived)
    assert editions(demo) == {"Home": "second", "A": "first"}


def test_what_was_fetched_without_an_archive_is_not_made_of_what_is_there(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/a", "/b", "/c"]), **{f"/{name}": page(name) for name in "abc"}})) as server:
        demo = crawled(project, server.url("/"))
        server.site.update({"/a": page("a", headers={"X-Robots-Tag": "noindex"}), "/b": page("b", text="changed")})
        make_due(demo)
        demo.crawl("demo", *OWN, "-s", "CRAWLSPACE_ARCHIVE=0").succeeded()
        assert indexed(demo) == ["/", "/b", "/c"]
        for command in (("reindex", "demo"), ("reindex", "demo", "--extract", "--processes", "1", *OWN)):
            assert "3 have no record in the archive" in demo.scrapy(*command).stdout
            assert indexed(demo) == ["/", "/b", "/c"]
            assert "changed" in demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout
        server.forget()
        demo.crawl("demo", *OWN).succeeded()
        assert sorted(server.paths()) == ["/", "/b", "/c"]
        assert extract(demo) == (0, SENT_3)


def test_not_while_it_is_crawled(project: MakeProject) -> None:
    slow = held(page("A"))
    with serve(Site({**SITE, "/a": slow})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.start("crawl", "demo", *OWN)
        demo.until(lambda: "/a" in server.paths())
        status, said = extract(demo)
        slow.release()
        demo.until(lambda: demo.started[-1].poll() == 0)
    assert (status, "stop the crawl first" in said) == (1, True)


WRONG = [
    # arguments, exit status, what is said
    (["--processes", "2"], 2, "add --extract"),
    (["--extract", "--processes", "0"], 2, "a number from 1 to 64"),
    (["--extract", "-s", "SPIDER_MODULES=tests.integration.no_such_module"], 1, "no_such_module"),
    (["--extract", "-s", "CRAWLSPACE_MAX_DELETIONS=many"], 1, "CRAWLSPACE_MAX_DELETIONS"),
]


@pytest.mark.parametrize(("arguments", "status", "said"), WRONG)
def test_what_cannot_be_done_is_said_in_a_sentence(project: MakeProject, arguments: list[str], status: int, said: str) -> None:
    with serve(Site({"/": page("Home")})) as server:
        demo = crawled(project, server.url("/"))
    done = demo.scrapy("reindex", "demo", *arguments)
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (status, True, False), done.stderr
    assert indexed(demo) == ["/"]


@pytest.mark.parametrize("commit", some(range(1, 12, 2), 1))
def test_a_kill_at_any_transaction_is_continued(project: MakeProject, commit: int) -> None:
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(6)]), **{f"/{n}": page(f"Page {n}") for n in range(6)}})
    with serve(site) as server:
        demo = crawled(project, server.url("/"))
    change(demo, "EDITION = 'second'\nLEAVES = ['Page 3']\n")
    command = ["reindex", "demo", "--extract", "--processes", "1", *OWN]
    process = extraction_killed(commit, command, output=demo.folder / "killed.txt", env=demo.env, pages_at_once=2)
    demo.started.append(process)
    assert process.wait() == -signal.SIGKILL, process.output()
    assert extract(demo)[0] == 0
    assert editions(demo) == dict.fromkeys(("Home", *(f"Page {n}" for n in (0, 1, 2, 4, 5))), "second")
    for path, state in states(demo).items():
        response, document = archived(demo, path)
        assert response is not None
        assert path == "/3" or (document is not None and document.fields["edition"] == "second")
        assert (state.checksum is None) == (path == "/3")


def test_after_a_change_it_begins_again(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = crawled(project, server.url("/"))
    change(demo, "EDITION = 'second'\n")
    command = ["reindex", "demo", "--extract", "--processes", "1", *OWN]
    process = extraction_killed(10, command, output=demo.folder / "killed.txt", env=demo.env, pages_at_once=1)
    demo.started.append(process)
    assert process.wait() == -signal.SIGKILL, process.output()
    assert extract(demo, settings="EDITION = 'third'\n") == (0, SENT_3)
    assert editions(demo) == {"Home": "third", "A": "third", "B": "third"}
