"""`scrapy reindex --rebuild`, `--rollback` and `--discard` for Solr: cores that are exchanged, or collections behind an alias."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.sink import Copies
from tests.conftest import MakeProject, Project
from tests.integration.stored import collection, folder
from tests.integration.test_sinks import LOCAL, sinks, three_pages
from tests.search_server import sink_of
from tests.sites import Server, page, serve
from tests.solr_server import SolrServer, rebuildable_solr

PAGES = {"/", "/a", "/b", "/c"}


class Rebuilding:
    """A collection that was crawled into the embedded index and Solr."""

    def __init__(self, demo: Project, solr: SolrServer, server: Server) -> None:
        self.demo, self.solr, self.server = demo, solr, server

    def sink(self, name: str = "demo") -> Any:
        return closing(sink_of(self.demo.data, self.solr.options(), collection=name))

    def copies(self) -> Copies:
        with self.sink() as sink:
            copies: Copies = sink.copies()
            return copies

    def begin(self) -> None:
        """Begin to build an index, as a call that is killed then."""
        with self.sink() as sink:
            sink.begin_next()

    def rebuild(self, option: str = "--rebuild", *more: str) -> tuple[int, str]:
        done = self.demo.scrapy("reindex", "demo", option, *more)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout.strip() or done.stderr.strip()

    def there(self, index: str = "") -> set[str]:
        return {f"/{url.split('/', 3)[3]}" for url in self.solr.documents(index)}


@pytest.fixture
def crawled(project: MakeProject) -> Iterator[Rebuilding]:
    with ExitStack() as stack:
        solr = stack.enter_context(rebuildable_solr())
        server = stack.enter_context(serve(three_pages()))
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=solr.options())))
        demo.crawl("demo").succeeded()
        server.forget()
        yield Rebuilding(demo, solr, server)


def test_a_new_index_takes_the_place_of_the_present_one(crawled: Rebuilding) -> None:
    before, searched = crawled.solr.documents(), crawled.solr.searched()
    status, said = crawled.rebuild()
    assert status == 0
    assert said == (
        f"demo: the sink search is searched in {crawled.copies().present} now, with 4 documents; `scrapy reindex demo --sink search"
        " --rollback` goes back"
    )
    assert crawled.solr.searched() != searched
    copies = crawled.copies()
    assert (copies.next, crawled.solr.beside()) == ("", {copies.previous})
    after = crawled.solr.documents()
    for one in (*before.values(), *after.values()):
        del one["pushed_at"]
        one.pop("_version_", None)
    assert after == before
    assert crawled.server.paths() == []
    assert "no difference" in crawled.demo.scrapy("audit", "demo", "--sink", "search").succeeded().stdout


def test_what_comes_afterwards_goes_to_the_new_one_and_is_there_after_going_back(crawled: Rebuilding) -> None:
    searched = crawled.solr.searched()
    crawled.rebuild()
    crawled.demo.scrapy("forget", "demo", crawled.server.url("/a")).succeeded()
    assert crawled.there() == {"/", "/b", "/c"}
    assert crawled.there(crawled.copies().previous) == PAGES
    status, said = crawled.rebuild("--rollback")
    assert (status, said.endswith("with 3 documents")) == (0, True)
    assert crawled.solr.searched() == searched
    assert crawled.there() == {"/", "/b", "/c"}
    assert crawled.solr.beside() == {crawled.copies().previous}


def test_older_ones_are_deleted(crawled: Rebuilding) -> None:
    for _ in range(3):
        before = crawled.solr.searched()
        assert crawled.rebuild()[0] == 0
        assert crawled.solr.searched() != before
        assert crawled.solr.beside() == {crawled.copies().previous}
        assert crawled.there() == crawled.there(crawled.copies().previous) == PAGES


def test_while_it_is_built_all_goes_to_both(crawled: Rebuilding) -> None:
    crawled.begin()
    crawled.server.site["/b"] = page("Page b", text="it has changed")
    del crawled.server.site["/c"]
    crawled.demo.scrapy("recrawl", "demo", crawled.server.url("/b"), crawled.server.url("/c")).succeeded()
    crawled.demo.crawl("demo").succeeded()
    assert crawled.there() == {"/", "/a", "/b"}
    assert crawled.there(crawled.copies().next) == {"/b"}
    assert crawled.rebuild()[0] == 0
    assert crawled.there() == {"/", "/a", "/b"}


def test_what_has_no_record_and_documents_of_other_collections_are_copied(crawled: Rebuilding) -> None:
    other = Document(
        "http://other.example/x", "Other", language="de", text="Andere", fields={"color": "red"}, modified="2026-01-05"
    )
    with crawled.sink("other") as sink:
        sink.send([IndexOrder(7, Op.PUSH, other.url, other, 7)])
    before = crawled.solr.documents()
    shutil.rmtree(folder(crawled.demo))
    status, said = crawled.rebuild()
    assert (status, "with 4 documents, and 1 of other collections;" in said) == (0, True)
    after = crawled.solr.documents()
    for one in (*before.values(), *after.values()):
        one.pop("_version_", None)
    assert after == before
    assert crawled.server.paths() == []


def test_a_much_smaller_one_is_to_be_approved(crawled: Rebuilding) -> None:
    settings = sinks(local=LOCAL, search=crawled.solr.options())
    crawled.demo.write({"demo/settings.py": f"{settings}CRAWLSPACE_MAX_DELETIONS = 1\n"})
    extra = [Document(f"http://127.0.0.1/extra{number}", "It should not be there") for number in range(5)]
    with crawled.sink() as sink:
        sink.send([IndexOrder(7, Op.PUSH, one.url, one, 7) for one in extra])
    searched = crawled.solr.searched()
    status, said = crawled.rebuild()
    assert (status, "the new index has 4 documents, and the present one 9" in said) == (1, True)
    name = crawled.copies().next
    assert crawled.rebuild("--rollback")[0] == 1
    assert crawled.rebuild("--discard") == (0, f"{name} is given up")
    assert crawled.rebuild("--discard") == (0, "no index is being built for the sink search")
    assert (crawled.solr.searched(), crawled.solr.beside()) == (searched, set())
    assert crawled.rebuild("--rebuild", "--approve")[0] == 0
    assert crawled.there() == PAGES
