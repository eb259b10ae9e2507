"""`scrapy reindex` for several sinks: what they have refused, and all documents again, without a request."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from tests.conftest import MakeProject, assert_same
from tests.fault_proxy import Fault, FaultProxy
from tests.integration.stored import collection, indexed, shared
from tests.integration.test_reindex import lose_index
from tests.integration.test_sinks import DOWN, LOCAL, sinks, there, three_pages
from tests.notifications import notify
from tests.search_server import INDEX, SearchServer, search_server
from tests.sites import held, page, serve

ALL = {"/", "/a", "/b", "/c"}


def strict_index(search: SearchServer, *fields: str) -> None:
    """An index that refuses documents with other fields than these."""
    properties: dict[str, Any] = {name: {"type": "object" if name == "fields" else "keyword"} for name in fields}
    search.ask("PUT", f"/{INDEX}-000001", {"mappings": {"dynamic": "strict", "properties": properties}, "aliases": {INDEX: {}}})


@pytest.mark.parametrize("place", ["file", "redis"])
def test_what_a_sink_has_refused_is_sent_again(project: MakeProject, place: str) -> None:
    with search_server() as search, serve(three_pages()) as server:
        strict_index(
            search, "id", "url", "title", "headings", "text", "address", "scheme", "host", "folder", "collection", "language"
        )
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        assert there(search) == set()
        refused = demo.scrapy("reindex", "demo", "--parked")
        assert (
            refused.stdout == "search: 4 orders sent again, 0 taken, 4 refused (`scrapy sinks demo --parked search` shows why)\n"
        )
        assert refused.returncode == 1
        demo.scrapy("forget", "demo", server.url("/a")).succeeded()
        search.ask("PUT", f"/{INDEX}/_mapping", {"dynamic": True})
        assert (
            demo.scrapy("reindex", "demo", "--parked", "--sink", "embedded").succeeded().stdout
            == "demo: embedded refused nothing\n"
        )
        done = demo.scrapy("reindex", "demo", "--parked", "--sink", "search").succeeded()
        assert done.stdout == "search: 3 orders sent again, 3 taken, 0 refused\n"
        assert there(search) == {"/", "/b", "/c"}, "what was forgotten meanwhile is gone"
        assert indexed(demo) == ["/", "/b", "/c"]
        assert demo.scrapy("reindex", "demo", "--parked").succeeded().stdout == "demo: embedded and search refused nothing\n"


def reported(answer: dict[str, object]) -> object:
    """An answer of the server, of which the test hears."""
    notify()
    return answer


def lose(search: SearchServer) -> None:
    search.ask("DELETE", f"/{INDEX}-000001")


@pytest.mark.parametrize("place", ["file", "redis"])
def test_one_sink_is_sent_all_without_a_request(project: MakeProject, place: str) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        lose(search)
        server.forget()
        done = demo.scrapy("reindex", "demo", "--sink", "search").succeeded()
        assert done.stdout == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL
        assert "sent from the archive" not in demo.crawl("demo").succeeded().stderr
        assert server.paths() == []


def test_without_a_name_each_is_sent_all(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        demo.crawl("demo").succeeded()
        lose(search)
        lose_index(demo)
        done = demo.scrapy("reindex", "demo").succeeded()
        assert done.stdout == "demo: 4 documents were sent again to embedded\ndemo: 4 documents were sent again to search\n"
        assert there(search) == ALL
        assert_same(indexed(demo), sorted(ALL))
        lose_index(demo)
        demo.scrapy("reindex", "demo", "--sink", "embedded").succeeded()
        assert_same(indexed(demo), sorted(ALL))


def test_one_that_is_down_keeps_no_documents_from_the_others_and_is_continued(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        both = sinks(search=search.options(), local=LOCAL)
        demo = project(collection(server.url("/"), settings=both))
        demo.crawl("demo").succeeded()
        lose(search)
        lose_index(demo)
        demo.write({"demo/settings.py": sinks(search={**search.options(), "url": DOWN}, local=LOCAL)})
        done = demo.scrapy("reindex", "demo")
        assert (done.returncode, done.stdout) == (1, "demo: 4 documents were sent again to embedded\n")
        assert f"{DOWN} cannot be reached" in done.stderr
        assert "`scrapy reindex demo --sink search` continues it" in done.stderr
        demo.write({"demo/settings.py": both})
        demo.scrapy("reindex", "demo", "--sink", "search").succeeded()
        assert there(search) == ALL


@pytest.mark.parametrize("place", ["file", "redis"])
def test_a_new_sink_is_sent_all_before_the_next_crawl(project: MakeProject, place: str) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL)))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        demo.write({"demo/settings.py": sinks(local=LOCAL, search=search.options())})
        demo.scrapy("reindex", "demo", "--sink", "search").succeeded()
        assert there(search) == ALL
        assert "gets all documents" not in demo.crawl("demo").succeeded().stderr


def test_the_crawl_that_runs_sends_them(project: MakeProject) -> None:
    site = three_pages()
    slow = site["/c"] = held(page("Page c", text="text of c"))
    with search_server() as search, closing(FaultProxy(search.url)) as proxy, serve(site) as server:
        proxy.rest = Fault(change=reported)
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options(url=proxy.url))))
        demo.start("crawl", "demo")
        demo.until(lambda: "/c" in server.paths() and proxy.bulks > 0 and there(search) == {"/", "/a", "/b"})
        versions = {url: one["_version"] for url, one in search.documents().items()}
        done = demo.scrapy("reindex", "demo", "--sink", "search").succeeded()
        assert done.stdout == "demo: 3 documents were sent again to search\n"
        slow.release()
        demo.until(lambda: demo.started[-1].poll() == 0)
        assert there(search) == ALL
        assert all(search.documents()[url]["_version"] > version for url, version in versions.items())


def test_what_has_no_record_is_fetched_by_the_next_crawl(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        settings = f"{sinks(search=search.options())}CRAWLSPACE_ARCHIVE = False\n"
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo").succeeded()
        lose(search)
        done = demo.scrapy("reindex", "demo")
        assert done.returncode == 1
        assert "4 have no record in the archive: the next crawl fetches and sends them" in done.stdout
        demo.crawl("demo").succeeded()
        assert there(search) == ALL


def test_documents_made_again_are_sent_to_each(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        options = search.options()
        demo = project(collection(server.url("/"), settings=sinks(search=options, log={"type": "file"})))
        demo.crawl("demo").succeeded()
        before = {url: one["_version"] for url, one in search.documents().items()}
        done = demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
        assert done.stdout == "demo: 4 documents were sent again\n"
        assert all(one["_version"] > before[url] for url, one in search.documents().items())
        assert len((demo.data / "demo/log.jsonl").read_text().splitlines()) == 8
        demo.write({"demo/settings.py": sinks(search={**options, "url": DOWN}, log={"type": "file"})})
        done = demo.scrapy("reindex", "demo", "--extract", "--processes", "1")
        assert (done.returncode, done.stdout) == (1, "demo: 4 documents were sent again\n")
        assert f"{DOWN} cannot be reached" in done.stderr
        assert "the next crawl sends the orders waiting for the sink search" in done.stderr
        assert len((demo.data / "demo/log.jsonl").read_text().splitlines()) == 12


WRONG = [
    (["--sink", "serach"], "CRAWLSPACE_SINKS has no sink 'serach': it has embedded, log"),
    (["--sink", "log", "--extract"], "--extract changes the documents, which all sinks have to get then: leave out --sink"),
    (["--parked", "--sink", "serach"], "CRAWLSPACE_SINKS has no sink 'serach': it has embedded, log"),
    (["--parked", "--extract"], "--parked sends documents as they are"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_what_makes_no_sense_is_refused(project: MakeProject, options: list[str], sentence: str) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings=sinks(local=LOCAL, log={"type": "file"})))
    done = demo.scrapy("reindex", "demo", *options)
    assert done.returncode == 2
    assert sentence in done.stderr
