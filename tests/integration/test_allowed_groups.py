"""The example of docs/logins.md: rules say in a field who may see a document, and a search filters by it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.command_line import ROOT
from tests.conftest import MakeProject, Project
from tests.contract.sinks import ReadOrders
from tests.integration.stored import collection
from tests.integration.test_sinks import LOCAL, PACE
from tests.search_server import INDEX, search_server
from tests.sites import Server, Site, page, serve
from tests.solr_server import solr_server

TEXT = (ROOT / "docs" / "logins.md").read_text(encoding="utf-8").partition("## Who may see a document")[2].partition("\n## ")[0]
RULES, OPENSEARCH, SOLR = re.findall(r"```(?:xml|json)\n(.*?)```", TEXT, re.DOTALL)
GROUPS = ["group-hr", "group-board"]


def site() -> Site:
    pages = {"/": "welcome", "/hr/pay": "the salary", "/hr/": "of salary and leave", "/news": "no salary today"}
    links = [path for path in pages if path != "/"]
    return Site({path: page(path, text=text, links=links if path == "/" else []) for path, text in pages.items()})


def crawled(project: MakeProject, server: Server, sink: dict[str, object]) -> Project:
    given = f"{PACE}CRAWLSPACE_METADATA_ALONG_LINKS = False\nCRAWLSPACE_SINKS = {{'local': {LOCAL}, 'search': {sink}, 'log': {{'type': 'file'}}}}\n"
    demo = project(collection(server.url("/"), settings=given))
    demo.write({"demo/rules.xml": RULES.replace("wiki.example.com", "127.0.0.1")})
    demo.crawl("demo").succeeded()
    return demo


def filtered(query: str, *groups: str) -> Any:
    """The query, for somebody of these groups."""
    written = {
        ', "group-hr"': "".join(f', "{group}"' for group in groups),
        ",allow=group-hr": "".join(f",allow={group}" for group in groups),
    }
    for example, wanted in written.items():
        query = query.replace(example, wanted)
    return json.loads(query)


# The groups of who asks, and what is found.
FOUND: tuple[tuple[tuple[str, ...], set[str]], ...] = (
    (("group-hr",), {"/news", "/hr/pay", "/hr/"}),
    (("group-board",), {"/news", "/hr/pay", "/hr/"}),
    (("group-it",), {"/news"}),
    ((), {"/news"}),
)


def test_in_opensearch(project: MakeProject) -> None:
    with search_server() as search, serve(site()) as server:
        demo = crawled(project, server, search.options())
        assert search.documents()[server.url("/hr/pay")]["fields"] == {"allow": GROUPS}
        for groups, paths in FOUND:
            answer = search.ask("POST", f"/{INDEX}/_search", filtered(OPENSEARCH, *groups))
            assert {hit["_source"]["url"] for hit in answer["hits"]["hits"]} == {server.url(path) for path in paths}, groups
        orders = ReadOrders()
        orders.read((demo.data / "demo" / "log.jsonl").read_bytes())
        document = orders.get(server.url("/hr/pay"))
        assert document is not None
        assert dict[str, Any](document.fields) == {"allow": GROUPS}
        for sink in ("embedded", "search"):
            shown = demo.scrapy("search", "demo", "the salary", "--sink", sink, "--json").succeeded().stdout
            (found,) = [hit for hit in json.loads(shown)["hits"] if hit["url"] == server.url("/hr/pay")]
            assert found["fields"] == {"allow": GROUPS}, sink


@pytest.mark.parametrize(("groups", "paths"), FOUND)
def test_in_solr(project: MakeProject, groups: tuple[str, ...], paths: set[str]) -> None:
    with solr_server() as search, serve(site()) as server:
        crawled(project, server, search.options())
        assert search.documents()[server.url("/hr/pay")]["fields"] == [f"allow={group}" for group in GROUPS]
        query = {**filtered(SOLR, *groups), "query": "*:*", "limit": 100}  # the stand-in finds no words
        found = search.ask(f"/{search.index}/select", query)["response"]["docs"]
        assert {one["url"] for one in found} == {server.url(path) for path in {*paths, "/"}}
