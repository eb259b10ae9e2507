"""A collection's own parsing, right and wrong: whatever it does, each fetch ends in one outcome and the crawl ends."""

from __future__ import annotations

import json

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, indexed, states
from tests.sites import Site, page, redirect, serve, status, text

OWN = ("-s", "SPIDER_MODULES=tests.integration.own_spiders")
SITE = {"/": page("Home", text="words", links=["/a"]), "/a": page("A", text="more words"), "/next": page("Next")}


def crawled(project: MakeProject, name: str, site: Site, settings: str = "", *options: str) -> tuple[Project, str]:
    with serve(site) as server:
        files = {f"{name}/start_urls.txt": server.url("/"), f"{name}/settings.py": FAST + settings}
        made = project(files)
        run = made.crawl(name, *OWN, *options, timeout=40)
        return made, run.stderr


def test_an_own_item_becomes_the_document_and_the_export(project: MakeProject) -> None:
    made, _ = crawled(project, "extra", Site(SITE))
    assert indexed(made, "extra") == ["/", "/a"]


def test_the_export_of_own_items_has_their_url(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        made = project({"extra/start_urls.txt": server.url("/"), "extra/settings.py": FAST})
        items = made.folder / "items.jsonl"
        made.crawl("extra", *OWN, "-O", str(items)).succeeded()
        lines = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
        assert sorted(line["url"] for line in lines) == [server.url("/"), server.url("/a")]
        assert {line["price"] for line in lines} == {7}


def test_a_parse_without_an_outcome_gets_one(project: MakeProject) -> None:
    made, said = crawled(project, "forgetful", Site(SITE))
    assert {path: (state.state, state.status) for path, state in states(made, "forgetful").items()} == {
        "/": (State.FAILED, 699),
        "/next": (State.FAILED, 699),
    }
    assert "override document()" in said


def test_requests_of_a_page_are_a_link_further_than_it(project: MakeProject) -> None:
    site = Site({}, otherwise=page("Any", text="any"))
    site["/robots.txt"] = status(404)
    made, _ = crawled(project, "deeper", site, "DEPTH_LIMIT = 3\n")
    assert sorted(state.depth for state in states(made, "deeper").values()) == [0, 1, 2, 3]


def test_a_parsing_that_raises_is_tried_again_and_kept_for_later(project: MakeProject) -> None:
    made, _ = crawled(project, "broken", Site(SITE))
    assert {path: (state.state, state.status) for path, state in states(made, "broken").items()} == {"/": (State.FAILED, 699)}


PIPELINES = [
    # ITEM_PIPELINES of a collection; what becomes of its start URL
    ("{}", (State.DONE, 200)),
    ("{'tests.integration.own_spiders.spiders.DropAll': 100}", (State.FAILED, 699)),
    ("{'tests.integration.own_spiders.spiders.DropAll': 1000}", (State.DONE, 200)),
]


@pytest.mark.parametrize(("pipelines", "outcome"), PIPELINES)
def test_pipelines_of_a_collection_come_beside_ours(project: MakeProject, pipelines: str, outcome: tuple[State, int]) -> None:
    made, _ = crawled(project, "plain", Site({"/": page("Home")}), f"ITEM_PIPELINES = {pipelines}\n")
    state = states(made, "plain")["/"]
    assert (state.state, state.status) == outcome


def test_pipelines_of_a_spider_class_come_beside_ours(project: MakeProject) -> None:
    made, _ = crawled(project, "adding", Site({"/": page("Home")}))
    assert states(made, "adding")["/"].status == 200


def test_a_replaced_pipeline_is_told_at_the_start(project: MakeProject) -> None:
    _, said = crawled(project, "plain", Site({"/": page("Home")}), "", "-s", "ITEM_PIPELINES={}")
    assert "ITEM_PIPELINES has no" in said
    assert "Traceback" not in said


def test_a_redirect_keeps_the_host_as_it_is_written(project: MakeProject) -> None:
    site = Site({"/b": page("B"), "/robots.txt": status(404)})
    with serve(site) as server:
        site["/"] = page("Home", links=["/r1", "/r2"])
        site["/r1"] = redirect("/b")
        site["/r2"] = redirect(f"http://LOCALHOST:{server.port}/c")
        files = {
            "case/start_urls.txt": f"http://localhost:{server.port}/",
            "case/crawl.rules": "forbid domain LOCALHOST\nallow domain localhost\nforbid domain *\n",
            "case/settings.py": FAST,
        }
        made = project(files)
        made.crawl("case").succeeded()
    assert indexed(made, "case") == ["/", "/b"]


def test_robots_txt_follows_redirects_within_the_space_and_no_further(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/no", "/yes"]), "/no": page("No"), "/yes": page("Yes")})
    site["/robots.txt"] = redirect("/moved/robots.txt")
    site["/moved/robots.txt"] = text("\ufeffUser-agent: *\nDisallow: /no\n")
    made, _ = crawled(project, "moved", site)
    assert indexed(made, "moved") == ["/", "/yes"]


def test_a_chain_of_pages_does_not_wait_between_them(project: MakeProject) -> None:
    site = Site({f"/{n}": page(f"Page {n}", text=str(n), links=[f"/{n + 1}"]) for n in range(20)})
    site["/"] = page("Home", links=["/0"])
    with serve(site) as server:
        made = project({"chain/start_urls.txt": server.url("/"), "chain/settings.py": FAST})
        made.crawl("chain", timeout=30).succeeded()
        pages = [request for request in server.requests if request.path != "/robots.txt"]
        assert pages[-1].at - pages[0].at < 15  # it took 5 s a page when nothing woke the engine
    assert len(indexed(made, "chain")) == 21
