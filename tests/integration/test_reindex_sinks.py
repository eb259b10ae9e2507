"""`scrapy reindex` for several sinks: what they have refused, and all documents again, without a request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import MakeProject
from tests.integration.stored import collection, indexed, shared
from tests.integration.test_sinks import LOCAL, sinks, there, three_pages
from tests.search_server import INDEX, SearchServer, search_server
from tests.sites import serve

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


WRONG = [
    (["--parked", "--sink", "serach"], "CRAWLSPACE_SINKS has no sink 'serach': it has embedded, log"),
    (["--parked", "--extract"], "--parked sends documents as they are"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_what_makes_no_sense_is_refused(project: MakeProject, options: list[str], sentence: str) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings=sinks(local=LOCAL, log={"type": "file"})))
    done = demo.scrapy("reindex", "demo", *options)
    assert done.returncode == 2
    assert sentence in done.stderr
