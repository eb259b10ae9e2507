"""URL options in a project: what the commands say of them, and what two crawls make of a change, in a file and in Redis."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import MakeProject, assert_same
from tests.integration.stored import ARCHIVED, FAST, collection, indexed, make_due, shared, states, statuses
from tests.sites import Site, page, redirect, serve, status

OPTIONS = f"{FAST}CRAWLSPACE_URL_DROP_PARAMETERS = ['utm_*']\nCRAWLSPACE_URL_TRAILING_SLASH = 'remove'\n"


@pytest.mark.parametrize("place", ["file", "redis"])
def test_known_urls_are_folded_and_no_document_is_lost(project: MakeProject, place: str) -> None:
    links = ["/a", "/a?utm_source=x", "/b/", "/b/?utm_source=y", "/c/?utm_source=z", "/moved/"]
    site = Site({"/": page("Home", links=links)})
    for path in ("/a", "/a?utm_source=x", "/b", "/b/", "/b/?utm_source=y", "/c", "/c/?utm_source=z", "/moved/"):
        site[path] = page(path.strip("/")[:1], text=f"text of {path.strip('/')[:1]}", links=["/"])
    site["/moved"] = redirect("/moved/")
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        assert_same({path[:2] for path in indexed(demo)}, ["/", "/a", "/b", "/c", "/m"])
        demo.write({"demo/settings.py": OPTIONS})
        plan = json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)
        assert (plan["folded"], plan["folded_into"], plan["deletions"]) == (5, 4, 0)
        server.forget()
        crawled = demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/b", "/c", "/moved/"])
        assert_same(list(states(demo)), ["/", "/a", "/b", "/c", "/moved", "/moved/"])
        assert "The options do not suit this site" in crawled.stderr
        assert server.counts()["/moved"] == 1
        assert "/moved/" in demo.scrapy("deletions", "demo", "--reason", "folded").succeeded().stdout
        assert "folded from" in demo.scrapy("explain", "demo", server.url("/b/?utm_x=1")).succeeded().stdout
        server.forget()
        demo.scrapy("recrawl", "demo", server.url("/b/?utm_x=1")).succeeded()
        demo.crawl("demo").succeeded()
        assert "/b" in server.paths()
        demo.scrapy("forget", "demo", server.url("/c/")).succeeded()
        assert "/c" not in states(demo)


@pytest.mark.full
@pytest.mark.parametrize("place", ["file", "redis"])
def test_the_index_follows_from_the_archive_where_a_site_does_not_answer(project: MakeProject, place: str) -> None:
    paths = [f"/p{number}/" for number in range(15)]
    site = Site({"/": page("Home", links=paths), **{path: page(f"page {path}", text=f"text of {path}") for path in paths}})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        if place == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", *paths])
        new = [path.rstrip("/") for path in paths]
        site.update({path: status(503) for path in (*paths, *new)})
        demo.write({"demo/settings.py": f"{ARCHIVED}CRAWLSPACE_URL_TRAILING_SLASH = 'remove'\nRETRY_TIMES = 0\n"})
        crawled = demo.crawl("demo")
        assert_same(indexed(demo), ["/", *new])
        told = re.findall(r"(\d+) documents? (?:is|are) pushed under the new URLs, as archived", crawled.stderr)
        assert sum(map(int, told)) == 15
        assert set(statuses(demo)) == {"/", *new}
        assert {statuses(demo)[path] for path in new} == {503}
        for command in (("audit", "demo"), ("archive", "demo", "--verify")):
            demo.scrapy(*command).succeeded()
        site.update({path: page(f"page {path}/", text=f"text of {path}/") for path in new})
        site["/p7"] = status(404)
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", *(path for path in new if path != "/p7")])
        demo.scrapy("audit", "demo").succeeded()
        demo.scrapy("archive", "demo", "--verify").succeeded()
