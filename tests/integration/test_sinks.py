"""Crawls that send to several sinks: each gets all, at its own pace, whatever happens to the others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from crawlspace.archive.files import find
from crawlspace.archive.reader import read_record
from crawlspace.index.json_client import Reply
from crawlspace.index.notes import server_meta
from crawlspace.index.opensearch.sink import product_of
from crawlspace.urls import document_id
from tests.conftest import MakeProject, Project, assert_same
from tests.contract.sinks import OrderReceiver, ReadOrders
from tests.integration.stored import collection, indexed, opened, shared
from tests.search_server import INDEX, SearchServer, search_server
from tests.sites import Site, page, serve
from tests.solr_server import SolrServer

PACE = "DOWNLOAD_DELAY = 0\nCRAWLSPACE_SITEMAP_GUESS = False\nCRAWLSPACE_RETRY_WAIT = 0.1\nCRAWLSPACE_BACKOFF_MAX = 0.2\n"
LOCAL = {"type": "sqlite"}
DOWN = "http://127.0.0.1:9"


def sinks(**options: Mapping[str, object]) -> str:
    return f"{PACE}CRAWLSPACE_SINKS = {options!r}\n"


def three_pages(*, without: str = "") -> Site:
    names = [name for name in "abc" if name != without]
    site = Site({"/": page("Home", links=[f"/{name}" for name in names])})
    for name in names:
        site[f"/{name}"] = page(f"Page {name}", text=f"text of {name}")
    return site


def there(server: SearchServer | SolrServer) -> set[str]:
    return {f"/{url.split('/', 3)[3]}" for url in server.documents()}


@pytest.mark.parametrize("place", ["file", "redis"])
def test_all_sinks_follow(project: MakeProject, place: str) -> None:
    site = three_pages()
    with search_server() as search, serve(site) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options(), log={"type": "file"})))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/b", "/c"])
        assert there(search) == {"/", "/a", "/b", "/c"}
        home = search.documents()[server.url("/a")]
        assert (home["title"], home["collection"], home["host"]) == ({"en": "Page a"}, "demo", "127.0.0.1")
        del site["/b"]
        site["/c"] = page("Page c", text="it has changed")
        demo.scrapy("recrawl", "demo", server.url("/b"), server.url("/c")).succeeded()
        demo.crawl("demo").succeeded()
        demo.scrapy("forget", "demo", server.url("/a")).succeeded()
        assert_same(indexed(demo), ["/", "/c"])
        assert there(search) == {"/", "/c"}
        assert search.documents()[server.url("/c")]["text"] == {"en": "Page c it has changed"}
        orders = ReadOrders()
        orders.read((demo.data / "demo" / "log.jsonl").read_bytes())
        assert [orders.get(server.url(path)) is not None for path in ("/", "/a", "/b", "/c")] == [True, False, False, True]
        status = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)
        assert [(one["name"], one["waiting"]) for one in status["sinks"]] == [("embedded", 0), ("search", 0), ("log", 0)]


def test_the_server_that_answered_last_is_shown_without_asking_it(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(search=search.options())))
        crawled = demo.crawl("demo").succeeded()
        found = product_of(search.url, Reply(200, search.ask("GET", "/")))
        demo.write({"demo/settings.py": sinks(search={**search.options(), "url": DOWN})})
        for command in ("status", "sinks"):
            shown = demo.scrapy(command, "demo").succeeded().stdout
            assert f"0   {search.options()['type']} ({found})\n" in shown
            assert (f"\n    {found.warning}\n" in shown) == bool(found.warning)
            answer = json.loads(demo.scrapy(command, "demo", "--json").succeeded().stdout)
            (one,) = answer["sinks"] if command == "status" else answer
            assert (one["server"], one["server_warning"]) == (str(found), found.warning)
        assert crawled.stderr.count("was not tried by us") == bool(found.warning)
        demo.write({"demo/settings.py": PACE})
        demo.scrapy("sinks", "demo", "--forget", "search").succeeded()
        with opened(demo) as store:
            assert not store.get_meta(server_meta("search"))


def test_a_sink_that_is_down_holds_up_nothing_and_gets_all_afterwards(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search={**search.options(), "url": DOWN})))
        crawled = demo.crawl("demo").succeeded()
        assert crawled.stderr.count(f"{DOWN} cannot be reached") == 1
        assert "4 orders for the sink search could not be sent; they are kept" in crawled.stderr
        assert "left for the next start: 4 orders for the sink search\n" in crawled.stderr
        assert_same(indexed(demo), ["/", "/a", "/b", "/c"])
        shown = demo.scrapy("sinks", "demo").succeeded().stdout
        *lines, standstill = shown.splitlines()[1:]
        assert [line.split() for line in lines] == [
            ["embedded", "0", "0", "sqlite"],
            ["search", "4", "0", search.options()["type"]],
        ]
        assert re.fullmatch(
            rf"    it accepts nothing since \d{{4}}-\d\d-\d\d \d\d:\d\d: {re.escape(DOWN)} cannot be reached: Connection refused",
            standstill,
        )
        forgotten = demo.scrapy("forget", "demo", server.url("/c")).succeeded()
        why = f"{DOWN} cannot be reached: Connection refused"
        assert forgotten.stderr == f"the index is up to date; 4 orders wait for the sink search until the next crawl: {why}\n"
        demo.write({"demo/settings.py": sinks(local=LOCAL, search=search.options())})
        demo.crawl("demo").succeeded()
        assert there(search) == {"/", "/a", "/b"}
        assert "takes nothing" not in demo.scrapy("sinks", "demo").succeeded().stdout


def test_a_new_sink_gets_all_documents_without_a_request(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=PACE))
        demo.crawl("demo").succeeded()
        server.forget()
        demo.write({"demo/settings.py": sinks(local=LOCAL, search=search.options())})
        crawled = demo.crawl("demo").succeeded()
        assert there(search) == {"/", "/a", "/b", "/c"}
        assert "the sink search gets all documents: 4 were sent from the archive" in crawled.stderr
        assert server.paths() == []
        search.ask("DELETE", f"/{INDEX}-000001")
        demo.scrapy("sinks", "demo", "--fill", "search").succeeded()
        demo.crawl("demo").succeeded()
        assert there(search) == {"/", "/a", "/b", "/c"}


def test_without_an_archive_they_are_fetched(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=f"{PACE}CRAWLSPACE_ARCHIVE = False\n"))
        demo.crawl("demo").succeeded()
        demo.write({"demo/settings.py": f"{sinks(local=LOCAL, search=search.options())}CRAWLSPACE_ARCHIVE = False\n"})
        demo.crawl("demo").succeeded()
        demo.crawl("demo").succeeded()
        assert there(search) == {"/", "/a", "/b", "/c"}


def test_a_former_sink_keeps_its_place_until_it_is_forgotten(project: MakeProject) -> None:
    site = three_pages(without="c")
    with search_server() as search, serve(site) as server:
        both = sinks(local=LOCAL, search=search.options())
        demo = project(collection(server.url("/"), settings=both))
        demo.crawl("demo").succeeded()
        demo.write({"demo/settings.py": PACE})
        site["/c"] = page("Page c", text="text of c")
        site["/"] = page("Home", links=["/a", "/b", "/c"], text="and one more")
        demo.scrapy("recrawl", "demo", server.url("/")).succeeded()
        crawled = demo.crawl("demo").succeeded()
        assert "CRAWLSPACE_SINKS does not name the sink search any more; orders are kept for it" in crawled.stderr
        assert there(search) == {"/", "/a", "/b"}
        demo.write({"demo/settings.py": both})
        demo.crawl("demo").succeeded()
        assert there(search) == {"/", "/a", "/b", "/c"}
        assert "take it out there first" in demo.scrapy("sinks", "demo", "--forget", "search").stderr
        demo.write({"demo/settings.py": PACE})
        demo.scrapy("sinks", "demo", "--forget", "search").succeeded()
        assert "does not name" not in demo.crawl("demo").succeeded().stderr
        with opened(demo) as store:
            assert store.get_meta("sinks") == '{"embedded": "sqlite"}'


@pytest.mark.parametrize("place", ["file", "redis"])
def test_a_large_document_is_sent_with_where_it_is(project: MakeProject, place: str) -> None:
    site = three_pages()
    site["/b"] = page("Page b", text="many words " * 200 + "quokka")
    limits = "CRAWLSPACE_INLINE_MAX_BYTES = 1000\nCRAWLSPACE_CONTENT_URL = 'http://c.example/{collection}/{id}'\n"
    with search_server() as search, serve(site) as server:
        chosen = f"{sinks(local=LOCAL, search=search.options(), log={'type': 'file'})}{limits}"
        demo = project(collection(server.url("/"), settings=chosen))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        url = server.url("/b")
        sent = search.document(url) or {}
        assert (sent["title"], "text" in sent) == ({"en": "Page b"}, False)
        assert sent["content_url"] == f"http://c.example/demo/{document_id(url)}"
        file, _, offset = sent["content_place"].rpartition(":")
        path = find(demo.data / "demo" / "archive", file)
        assert path is not None
        with path.open("rb") as opened_file:
            record = read_record(opened_file.fileno(), int(offset))
        assert record is not None
        assert (record.kind, record.url, json.loads(record.block)["text"].endswith("quokka")) == ("metadata", url, True)
        small = search.document(server.url("/a")) or {}
        assert (small["text"], "content_place" in small) == ({"en": "Page a text of a"}, False)
        lines = [json.loads(line) for line in (demo.data / "demo" / "log.jsonl").read_bytes().splitlines()]
        (line,) = [line["document"] for line in lines if line["url"] == url]
        assert (line["text"], line["content_place"]) == ("", sent["content_place"])
        assert url in demo.scrapy("search", "demo", "quokka").succeeded().stdout, "the embedded index has all texts"


def test_a_command_sends_by_reference_too_and_without_the_limit_it_is_sent_whole_again(project: MakeProject) -> None:
    site = three_pages()
    site["/b"] = page("Page b", text="many words " * 200)
    with search_server() as search, serve(site) as server:
        chosen = f"{sinks(search={**search.options(), 'url': DOWN})}CRAWLSPACE_INLINE_MAX_BYTES = 1000\n"
        demo = project(collection(server.url("/"), settings=chosen))
        demo.crawl("demo").succeeded()
        demo.write({"demo/settings.py": f"{sinks(search=search.options())}CRAWLSPACE_INLINE_MAX_BYTES = 1000\n"})
        demo.scrapy("forget", "demo", server.url("/a")).succeeded()
        sent = search.document(server.url("/b")) or {}
        assert ("text" in sent, ".warc.gz:" in sent["content_place"], "content_url" in sent) == (False, True, False)
        demo.write({"demo/settings.py": f"{sinks(search=search.options())}CRAWLSPACE_INLINE_MAX_BYTES = None\n"})
        demo.scrapy("sinks", "demo", "--fill", "search").succeeded()
        demo.crawl("demo").succeeded()
        whole = search.document(server.url("/b")) or {}
        assert ("text" in whole, "content_place" in whole) == (True, False)


def test_without_an_archive_a_large_document_is_sent_whole(project: MakeProject) -> None:
    site = Site({"/": page("Home", text="many words " * 200)})
    with search_server() as search, serve(site) as server:
        demo = project(
            collection(server.url("/"), settings=f"{sinks(search=search.options())}CRAWLSPACE_INLINE_MAX_BYTES = 1000\n")
        )
        demo.crawl("demo").succeeded()
        demo.write({"demo/settings.py": "CRAWLSPACE_ARCHIVE = False\n" + (demo.collections / "demo/settings.py").read_text()})
        site["/"] = page("Home", text="other words " * 200)
        demo.scrapy("recrawl", "demo", server.url("/")).succeeded()
        demo.crawl("demo").succeeded()
        sent = search.document(server.url("/")) or {}
        assert (sent["text"]["en"].startswith("Home other words"), "content_place" in sent) == (True, False)


def test_no_embedded_index(project: MakeProject) -> None:
    receiver = OrderReceiver()
    with serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(mine={"type": "http", "url": receiver.url, "secret": "s"})))
        demo.crawl("demo").succeeded()
        assert receiver.orders.get(server.url("/a")) is not None
        assert "mine" in demo.scrapy("status", "demo").succeeded().stdout
        assert "has no sink that can be searched, only mine of type http" in demo.scrapy("search", "demo", "text").stderr
        assert not (demo.data / "demo" / "index.db").exists()
    receiver.close()


WRONG = [
    ("{'a': 1}", "gives the sink a 1; write its options as a dict"),
    (
        "{'a': {}}",
        "gives the sink a no type; there are elasticsearch, file, http, opensearch, solr, sqlite, or the dotted path of a class",
    ),
    ("{'A b': {'type': 'file'}}", "has a sink named 'A b'"),
    ("{'a': {'type': 'solar'}}", "gives the sink a the type 'solar'"),
    ("{'a': {'type': 'mine.Sink'}}", "the type of the sink a, 'mine.Sink', cannot be loaded"),
    ("{'a': {'type': 'opensearch', 'index': 'x'}}", "url of the sink a, is missing"),
    ("{'a': {'type': 'opensearch', 'url': 'x', 'index': 'x'}}", "write a URL"),
    ("{'a': {'type': 'opensearch', 'url': 'http://u:p@h', 'index': 'x'}}", "holds a user or a password"),
    ("{'a': {'type': 'opensearch', 'url': 'http://h', 'index': 'X'}}", "small letters"),
    ("{'a': {'type': 'opensearch', 'url': 'http://h', 'index': 'x', 'user': 'u'}}", 'goes with "password"'),
    ("{'a': {'type': 'opensearch', 'url': 'http://h', 'index': 'x', 'api_key': 'env:NOBODY_HAS_SET'}}", "has no variable"),
    (
        "{'a': {'type': 'opensearch', 'url': 'http://h', 'index': 'x', 'user': 'u', 'password': 4711}}",
        "password of the sink a, is no text; write it in quotes",
    ),
    ("{'a': {'type': 'opensearch', 'url': 'http://h', 'index': 'x', 'passwort': 'u'}}", "do you mean password?"),
    ("{'a': {'type': 'opensearch', 'url': 'https://h', 'index': 'x', 'ca_file': 'no'}}", "where there is no file"),
    ("{'a': {'type': 'solr', 'url': 'http://h/solr', 'index': '-x'}}", "the name of a core or collection has letters"),
    ("{'a': {'type': 'solr', 'url': 'http://h/solr', 'index': 'x', 'api_key': 'k'}}", "an unknown option 'api_key'"),
    ("{'a': {'type': 'solr', 'url': 'http://h/solr', 'index': 'x', 'commit_within': 0}}", "commit_within of the sink a, is 0"),
    ("{'a': {'type': 'sqlite'}, 'b': {'type': 'sqlite'}}", "two sinks of type sqlite"),
    ("{'embedded': {'type': 'file'}}", "which is the name of the embedded index"),
]


@pytest.mark.parametrize(("written", "sentence"), WRONG)
def test_wrong_sinks_are_named_with_their_line(project: MakeProject, written: str, sentence: str) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings=f"# sinks\nCRAWLSPACE_SINKS = {written}\n"))
    for command in ("crawl", "lint"):
        answer = run(demo, command)
        assert sentence in answer
        assert "settings.py:2:" in answer
        assert "CRAWLSPACE_SINKS" in answer
        assert "Traceback" not in answer
        assert "4711" not in answer, "a secret"


def run(demo: Project, command: str) -> str:
    done = demo.scrapy(command, "demo")
    assert done.returncode != 0
    return f"{done.stdout}{done.stderr}"


def test_the_former_setting_says_what_to_write(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings="CRAWLSPACE_INDEX_FILE = 'shared.db'\n"))
    assert "CRAWLSPACE_INDEX_FILE is now the file of a sink" in demo.scrapy("lint", "demo").stdout + demo.crawl("demo").stderr
