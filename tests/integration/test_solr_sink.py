"""A crawl that sends to Solr, and the files that a core is made of."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from crawlspace.index.solr.sink import CONF
from tests.conftest import MakeProject
from tests.integration.stored import collection
from tests.integration.test_sinks import PACE, there, three_pages
from tests.sites import page, serve
from tests.solr_server import INDEX, solr_server


def test_it_follows_the_crawl(project: MakeProject) -> None:
    site = three_pages()
    with solr_server() as solr, serve(site) as server:
        demo = project(collection(server.url("/"), settings=f"{PACE}CRAWLSPACE_SINKS = {{'search': {solr.options()!r}}}\n"))
        demo.crawl("demo").succeeded()
        assert there(solr) == {"/", "/a", "/b", "/c"}
        home = solr.documents()[server.url("/a")]
        assert (home["title_txt_en"], home["collection"], home["host"]) == ("Page a", "demo", "127.0.0.1")
        del site["/b"]
        site["/c"] = page("Page c", text="it has changed")
        demo.scrapy("recrawl", "demo", server.url("/b"), server.url("/c")).succeeded()
        demo.crawl("demo").succeeded()
        demo.scrapy("forget", "demo", server.url("/a")).succeeded()
        assert there(solr) == {"/", "/c"}
        assert solr.documents()[server.url("/c")]["text_txt_en"] == "Page c it has changed"
        assert "no difference" in demo.scrapy("audit", "demo").succeeded().stdout
        solr.ask(f"/{INDEX}/update", {"delete": {"query": "*:*"}, "commit": {}})
        audit = demo.scrapy("audit", "demo")
        assert (audit.returncode, audit.stdout.count("missing   ")) == (1, 2)
        demo.scrapy("audit", "demo", "--repair").succeeded()
        assert there(solr) == {"/", "/c"}


def test_the_configuration_of_a_core_is_in_the_wheel(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert {path.name for path in CONF.iterdir()} == {"schema.xml", "solrconfig.xml"}
    for path in CONF.iterdir():
        assert f"crawlspace/index/solr/conf/{path.name}" in names
