"""`scrapy reindex --extract` makes documents anew from the archive, with the code and settings as they are now."""

from __future__ import annotations

import json
import shutil
import signal

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project
from tests.integration.archives import ARCHIVED, archived, folder
from tests.integration.killed_at_commit import extraction_killed
from tests.integration.stored import collection, indexed, shared, states
from tests.sites import Site, binary, held, page, serve
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
    """Have documents made anew with further settings; return the exit status and what was printed."""
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
def test_documents_are_made_anew_without_a_request(project: MakeProject, *, is_shared: bool) -> None:
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
        "demo: 3 documents were sent again; 1 document could not be made anew, and stayed as before\n",
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
    assert "1 document could not be made anew" in said
    assert archived(demo, "/", "asking")[1].title == "at once"  # type: ignore[union-attr]


def test_files_are_read_anew(project: MakeProject) -> None:
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


@pytest.mark.parametrize("commit", range(1, 12, 2))
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
