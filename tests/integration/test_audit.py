"""`scrapy audit`: it finds what an index lacks, has too much, or has of before, and mends that without a request."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from crawlspace.document import IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.urls import document_id
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import collection, folder, indexed, shared
from tests.integration.test_sinks import DOWN, LOCAL, PACE, sinks, there, three_pages
from tests.search_server import INDEX, SearchServer, search_server
from tests.sites import Server, serve


class Crawled:
    """A collection that was crawled into the embedded index and a search server."""

    def __init__(self, demo: Project, search: SearchServer, server: Server) -> None:
        self.demo, self.search, self.server = demo, search, server

    def restore(self, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Put an index with these documents in the place of the present one, as from a copy; each has its version."""
        name = f"{INDEX}-000001"
        there = self.search.ask("GET", f"/{name}")[name]
        self.search.ask("DELETE", f"/{name}")
        analysis = there["settings"]["index"].get("analysis", {})
        made = {"mappings": there["mappings"], "settings": {"analysis": analysis}, "aliases": {INDEX: {"is_write_index": True}}}
        assert "error" not in self.search.ask("PUT", f"/{name}", made)
        for url, document in documents.items():
            source = {"id": document_id(url), "url": url, "collection": "demo", **document}
            version = source.pop("_version")
            place = f"/{name}/_doc/{document_id(url)}?version={version}&version_type=external&refresh=true"
            assert "error" not in self.search.ask("PUT", place, source)

    def remove(self, *paths: str) -> None:
        for path in paths:
            self.search.ask("DELETE", f"/{INDEX}/_doc/{document_id(self.server.url(path))}?refresh=true")

    def version(self, path: str) -> int:
        return int(self.search.documents()[self.server.url(path)]["_version"])


@pytest.fixture(params=["file", "redis"])
def crawled(project: MakeProject, request: pytest.FixtureRequest) -> Iterator[Crawled]:
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        server = stack.enter_context(serve(three_pages()))
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options(), log={"type": "file"})))
        if request.param == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        server.forget()
        yield Crawled(demo, search, server)


def test_equal_indexes(crawled: Crawled) -> None:
    shown = crawled.demo.scrapy("audit", "demo").succeeded()
    assert shown.stdout.splitlines() == [
        "the index: 4 documents compared, no difference",
        "the sink search: 4 documents compared, no difference",
    ]


def test_differences_are_named_and_mended(crawled: Crawled) -> None:
    demo, server = crawled.demo, crawled.server
    documents = crawled.search.documents()
    old = crawled.version("/b") - 1_000
    del documents[server.url("/a")]
    documents[server.url("/b")] = {"_version": old, "title": {"en": "of before"}}
    documents[server.url("/gone")] = {"_version": old, "title": {"en": "not there any more"}}
    crawled.restore(documents)
    audit = demo.scrapy("audit", "demo", "--sink", "search")
    assert (audit.returncode, audit.stdout.splitlines()) == (
        1,
        [
            f"missing   {server.url('/a')}",
            f"outdated  {server.url('/b')}",
            f"extra     {server.url('/gone')}",
            "the sink search: 4 documents compared, 1 missing, 1 extra, 1 outdated",
            "  `scrapy audit demo --sink search --repair` repairs that",
        ],
    )
    repaired = demo.scrapy("audit", "demo", "--sink", "search", "--repair").succeeded()
    assert "1 missing, 1 extra, 1 outdated (ordered to be repaired)" in repaired.stdout
    assert "the sink search is up to date" in repaired.stdout
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}
    assert crawled.search.documents()[server.url("/b")]["title"] == {"en": "Page b"}
    assert crawled.version("/b") > old
    assert demo.scrapy("audit", "demo").succeeded().stdout.count("no difference") == 2
    assert server.paths() == []


def test_for_a_program(crawled: Crawled) -> None:
    crawled.remove("/a", "/b")
    audit = crawled.demo.scrapy("audit", "demo", "--json")
    embedded, search = json.loads(audit.stdout)
    assert (audit.returncode, embedded["sink"], embedded["missing"], search["missing"]) == (1, "embedded", 0, 2)
    assert [one["kind"] for one in search["differences"]] == ["missing", "missing"]


def test_the_embedded_index(crawled: Crawled) -> None:
    demo, url = crawled.demo, crawled.server.url
    index = EmbeddedIndex(demo.data / "demo" / "index.db", owner="demo")
    index.send([IndexOrder(1, Op.DELETE, url("/a"))])
    index.close()
    audit = demo.scrapy("audit", "demo", "--sink", "embedded")
    assert (audit.returncode, audit.stdout.splitlines()[0]) == (1, f"missing   {url('/a')}")
    demo.scrapy("audit", "demo", "--repair").succeeded()
    assert_same(indexed(demo), ["/", "/a", "/b", "/c"])


def test_without_a_record_it_is_fetched_by_the_next_crawl(crawled: Crawled) -> None:
    demo = crawled.demo
    shutil.rmtree(folder(demo))
    crawled.remove("/a")
    repaired = demo.scrapy("audit", "demo", "--sink", "search", "--repair")
    assert (repaired.returncode, there(crawled.search)) == (1, {"/", "/b", "/c"})
    assert "1 has no record in the archive: the next crawl fetches and sends them" in repaired.stdout
    demo.crawl("demo").succeeded()
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}
    assert "/a" in crawled.server.paths()


def test_what_waits_is_no_difference(crawled: Crawled) -> None:
    demo, server = crawled.demo, crawled.server
    demo.write({"demo/settings.py": sinks(local=LOCAL, search={**crawled.search.options(), "url": DOWN}, log={"type": "file"})})
    demo.scrapy("forget", "demo", server.url("/a")).succeeded()
    demo.write({"demo/settings.py": sinks(local=LOCAL, search=crawled.search.options(), log={"type": "file"})})
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}
    assert demo.scrapy("audit", "demo").succeeded().stdout.count("no difference") == 2


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("demo", "--sink", "serch"), 2, "CRAWLSPACE_SINKS has no sink 'serch': it has embedded, search, log"),
        (("demo", "--sink", "log"), 2, "the sink log is of type file, whose contents cannot be listed"),
        ((), 2, "name one collection, as in: scrapy audit demo"),
    ],
)
def test_wrong_use(project: MakeProject, arguments: tuple[str, ...], status: int, sentence: str) -> None:
    with serve(three_pages()) as server:
        settings = sinks(local=LOCAL, search={"type": "opensearch", "url": DOWN, "index": INDEX}, log={"type": "file"})
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo", "-s", "CLOSESPIDER_PAGECOUNT=1").succeeded()
        refused = demo.scrapy("audit", *arguments)
        assert (refused.returncode, sentence in refused.stderr) == (status, True), refused.stderr


def test_a_server_that_does_not_answer(project: MakeProject) -> None:
    with serve(three_pages()) as server:
        options = {"type": "opensearch", "url": DOWN, "index": INDEX}
        demo = project(collection(server.url("/"), settings=f"{PACE}CRAWLSPACE_SINKS = {{'search': {options!r}}}\n"))
        never = demo.scrapy("audit", "demo")
        assert (never.returncode, never.stderr.strip()) == (1, "demo has never been crawled: `scrapy crawl demo` does")
        demo.crawl("demo").succeeded()
        refused = demo.scrapy("audit", "demo")
        assert refused.returncode == 1
        assert f"the sink search cannot be compared: {DOWN} cannot be reached" in refused.stderr


def test_an_index_that_nothing_was_sent_to(crawled: Crawled) -> None:
    new = {**crawled.search.options(), "index": "another"}
    crawled.demo.write({"demo/settings.py": sinks(local=LOCAL, new=new)})
    refused = crawled.demo.scrapy("audit", "demo", "--sink", "new")
    assert (refused.returncode, "if nothing was ever sent there, `scrapy crawl demo` makes it" in refused.stderr) == (1, True)
