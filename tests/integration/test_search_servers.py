"""`scrapy search` where the documents are on a search server: which sink it asks, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex
from tests.conftest import MakeProject, Project
from tests.contract.searching import SERVERS
from tests.integration.conftest import Run
from tests.search_server import INDEX, SearchServer, search_server, sink_of
from tests.solr_server import SolrServer, solr_server

HOME = "http://www.example.com"
PAGES = (
    Document(f"{HOME}/", "Holidays", language="en", text="How to ask for a \x1b[31m holiday.", content_type="text/html"),
    Document(f"{HOME}/b", "Travel", language="en", text="Trains before planes.", fields={"department": "staff"}),
)
FILE = {"type": "file"}
DOWN = {"type": "opensearch", "url": "http://127.0.0.1:9", "index": INDEX}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[SearchServer | SolrServer]:
    with solr_server() if request.param == "solr" else search_server() as made:
        yield made


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project({"demo/start_urls.txt": f"{HOME}/\n"})


def configure(demo: Project, **sinks: object) -> None:
    demo.write({"demo/settings.py": f"CRAWLSPACE_SINKS = {sinks!r}\n"})


def pushes(*documents: Document) -> list[IndexOrder]:
    return [IndexOrder(number, Op.PUSH, one.url, one, number) for number, one in enumerate(documents, 1)]


@pytest.fixture
def filled(demo: Project, server: SearchServer | SolrServer) -> Project:
    configure(demo, log=FILE, search=server.options(), local={"type": "sqlite"})
    with closing(sink_of(demo.data, server.options())) as sink:
        sink.send(pushes(*PAGES))
    server.documents()  # what was sent is found then
    (demo.data / "demo").mkdir(parents=True)
    with closing(EmbeddedIndex(demo.data / "demo" / "index.db", owner="demo")) as index:
        index.send(pushes(Document(f"{HOME}/local", "Holidays here", text="Of the embedded index")))
    return demo


@pytest.mark.usefixtures("filled")
def test_what_is_printed(run: Run) -> None:
    found = run("search", "demo", "holiday").succeeded().stdout
    assert found == f"1.  Holidays\n    {HOME}/\n    How to ask for a \\x1b[31m [holiday].\n\n1 hit\n"
    answer = json.loads(run("search", "demo", "trains -holiday", "--json", "--facet", "language").succeeded().stdout)
    (hit,) = answer["hits"]
    assert (answer["total"], answer["facets"]) == (1, {"language": [{"value": "en", "count": 1}]})
    assert (hit["url"], hit["snippet"], hit["found"]) == (f"{HOME}/b", "Trains before planes.", [[0, 6]])
    assert hit["fields"] == {"department": "staff"}
    assert run("search", "demo", "zebra").succeeded().stdout == "no hits\n"
    filtered = run("search", "demo", "example", "--filter", "type=html", "--filter", "language=en").succeeded().stdout
    assert filtered.endswith("\n\n1 hit\n")
    some = run("search", "demo", "holiday", "zebra").succeeded().stdout
    assert some.startswith("With some of the words:\n\n1.  Holidays\n")
    assert run("search", "demo", "example", "--offset", "1", "--limit", "1").succeeded().stdout.endswith("2 hits, 2 to 2 shown\n")


# Options, and the title of the first hit.
CHOSEN: tuple[tuple[list[str], str], ...] = (
    ([], "Holidays"),
    (["--sink", "search"], "Holidays"),
    (["--sink", "embedded"], "Holidays here"),
)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("options", "title"), CHOSEN)
def test_the_first_that_can_be_searched_or_the_one_named(run: Run, options: list[str], title: str) -> None:
    assert json.loads(run("search", "demo", "holiday", "--json", *options).succeeded().stdout)["hits"][0]["title"] == title


def test_the_embedded_index_where_it_comes_first(filled: Project, run: Run, server: SearchServer | SolrServer) -> None:
    configure(filled, local={"type": "sqlite"}, search=server.options(), other={"type": "no.such.Class"})
    assert run("search", "demo", "holiday").succeeded().stdout.startswith("1.  Holidays here\n")


REFUSED: tuple[tuple[list[str], int, str], ...] = (
    (["--sink", "elsewhere"], 2, "demo has no sink 'elsewhere': it has log, search, embedded"),
    (["--sink", "log"], 2, "the sink log, of type file, cannot be searched; those that can are search, embedded"),
    (["--offset", "10000"], 2, "--offset 10000 with --limit 10 leads to hit 10,010, and a search server shows the first 10,000"),
)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("options", "status", "sentence"), REFUSED)
def test_what_is_refused(run: Run, options: list[str], status: int, sentence: str) -> None:
    refused = run("search", "demo", "holiday", *options)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (status, "", 1)
    assert refused.stderr.startswith(sentence)


def test_no_sink_can_be_searched(demo: Project, run: Run) -> None:
    configure(demo, log=FILE, push={"type": "http", "url": "http://127.0.0.1:9/"})
    refused = run("search", "demo", "holiday")
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        "demo has no sink that can be searched, only log of type file, push of type http: give CRAWLSPACE_SINKS"
    )
    named = run("search", "demo", "holiday", "--sink", "log")
    assert (named.returncode, named.stderr) == (2, "the sink log, of type file, cannot be searched; demo has none that can\n")


def test_a_server_that_cannot_be_searched_is_a_sentence(demo: Project, run: Run) -> None:
    with search_server() as server:
        at = f"{INDEX} at {server.url}"
        configure(demo, search=server.options())
        never = run("search", "demo", "holiday")
        said = f"there is no {at}, neither an alias nor an index: `scrapy crawl demo` creates it if it never existed, else"
        assert (never.returncode, never.stderr) == (1, f"{said} reports what to do\n")
        server.ask("PUT", f"/{INDEX}")
        index = run("search", "demo", "holiday")
        assert (index.returncode, index.stdout, index.stderr.count("\n")) == (1, "", 1)
        assert index.stderr.startswith(f"{at} is an index, and must be an alias: give the sink another index")
    with solr_server() as solr:
        configure(demo, search=solr.options(index="nowhere"))
        missing = run("search", "demo", "holiday")
        assert (missing.returncode, missing.stdout, missing.stderr.count("\n")) == (1, "", 1)
        assert missing.stderr.startswith(f"there is no core or collection nowhere at {solr.url}: create it from the files in ")
    for kind in ("opensearch", "solr"):
        configure(demo, search={**DOWN, "type": kind})
        down = run("search", "demo", "holiday")
        assert (down.returncode, down.stdout, down.stderr.count("\n")) == (1, "", 1)
        assert down.stderr.startswith("http://127.0.0.1:9 cannot be reached: ")
