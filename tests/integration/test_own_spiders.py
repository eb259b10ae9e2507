"""A collection's own parsing, right and wrong: each fetch ends in one outcome; and spider modules that are missing or broken."""

from __future__ import annotations

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from crawlspace.model import State
from tests.command_line import ROOT, CompletedRun, run_scrapy
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, indexed, make_due, states
from tests.sites import Site, html, page, redirect, serve, status

OWN = ("-s", "SPIDER_MODULES=tests.integration.own_spiders")
SITE = {"/": page("Home", text="words", links=["/a"]), "/a": page("A", text="more words"), "/next": page("Next")}


def crawled(project: MakeProject, name: str, site: Site, settings: str = "", *options: str) -> tuple[Project, str]:
    with serve(site) as server:
        files = {f"{name}/start_urls.txt": server.url("/"), f"{name}/settings.py": FAST + settings}
        made = project(files)
        run = made.crawl(name, *OWN, *options)
        return made, run.stderr


def test_an_own_item_becomes_the_document_and_the_export(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        made = project({"extra/start_urls.txt": server.url("/"), "extra/settings.py": FAST})
        items = made.folder / "items.jsonl"
        made.crawl("extra", *OWN, "-O", str(items)).succeeded()
        lines = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
        assert sorted(line["url"] for line in lines) == [server.url("/"), server.url("/a")]
        assert {line["price"] for line in lines} == {7}
    assert indexed(made, "extra") == ["/", "/a"]


def test_what_parse_yields_is_the_document_and_the_links_of_a_page_are_followed_all_the_same(project: MakeProject) -> None:
    made, _ = crawled(project, "yielding", Site(SITE))
    assert {path: state.status for path, state in states(made, "yielding").items()} == {"/": 200, "/a": 200, "/next": 200}
    assert json.loads(made.scrapy("search", "yielding", "words", "--json").stdout)["hits"][0]["title"] == "Home"


def test_requests_of_a_page_are_a_link_further_than_it(project: MakeProject) -> None:
    site = Site({}, otherwise=page("Any", text="any"))
    site["/robots.txt"] = status(404)
    made, _ = crawled(project, "deeper", site, "DEPTH_LIMIT = 3\n")
    assert sorted(state.depth for state in states(made, "deeper").values()) == [0, 1, 2, 3]


def test_a_parsing_that_raises_is_tried_again_and_kept_for_later(project: MakeProject) -> None:
    made, _ = crawled(project, "broken", Site(SITE))
    assert {path: (state.state, state.status) for path, state in states(made, "broken").items()} == {"/": (State.FAILED, 699)}


DROPPING = 'ITEM_PIPELINES={"tests.integration.own_spiders.spiders.DropAll": 1000}'
PIPELINES = [
    # the collection; its settings; options of the command line
    ("plain", "ITEM_PIPELINES = {}\n", ()),
    ("adding", "", ()),  # its class has some
    ("plain", "", ("-s", DROPPING)),
]


@pytest.mark.parametrize(("name", "settings", "options"), PIPELINES)
def test_pipelines_come_beside_ours(project: MakeProject, name: str, settings: str, options: tuple[str, ...]) -> None:
    """Those of the settings of a collection that drop pages: `test_item_pipelines.py`."""
    made, _ = crawled(project, name, Site({"/": page("Home")}), settings, *options)
    assert (states(made, name)["/"].state, states(made, name)["/"].status) == (State.DONE, 200)


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


def test_a_chain_of_pages_does_not_wait_between_them(project: MakeProject) -> None:
    site = Site({f"/{n}": page(f"Page {n}", text=str(n), links=[f"/{n + 1}"]) for n in range(20)})
    site["/"] = page("Home", links=["/0"])
    with serve(site) as server:
        made = project({"chain/start_urls.txt": server.url("/"), "chain/settings.py": FAST})
        made.crawl("chain").succeeded()
        times = [request.at for request in server.requests if request.path != "/robots.txt"]
        gaps_s = sorted(after - before for before, after in pairwise(times))
        assert gaps_s[-4] < 2.5, "5 s a page when nothing wakes the engine; a busy machine is late once, and not each time"
    assert len(indexed(made, "chain")) == 21


KINDS = ["dict", "item", "dataclass", "attrs"]


def test_items_of_any_kind_are_found_and_keep_all_their_fields(project: MakeProject) -> None:
    pages = {f"/{kind}": page(f"Product {kind}", text=f"a lamp as {kind}") for kind in KINDS}
    made, _ = crawled(project, "catalogue", Site({"/": page("Home", links=list(pages)), **pages}))
    assert indexed(made, "catalogue") == sorted(pages)
    for kind in KINDS:
        found = json.loads(made.scrapy("search", "catalogue", kind, "--json").stdout)["hits"][0]
        assert found["title"] == f"Product {kind}"
        assert found["fields"] == {"sku": kind, "price": "9.5", "sizes": ["S", "M"], "maker": '{"name": "Müller"}'}


def test_documents_without_any_text_are_equal_only_if_their_bytes_are(project: MakeProject) -> None:
    bodies = {"/a": "<img src=1>", "/b": "<img src=2>", "/c": "<img src=1>"}
    site = Site({"/": page("Home", text="home", links=list(bodies)), **{path: html(body) for path, body in bodies.items()}})
    made, _ = crawled(project, "plain", site)
    assert indexed(made, "plain") == ["/", "/a", "/b"]


def test_what_is_no_item_is_reported_in_one_sentence(project: MakeProject) -> None:
    made, reported = crawled(project, "wrongkind", Site({"/": page("Home", text="words")}))
    assert states(made, "wrongkind")["/"].status == 699
    sentence = (
        "returned a list (of several items all but one have a key, for they are parts of the page): return a Document, a dict"
    )
    assert f"document() of WrongKind {sentence}" in reported
    assert "Traceback" not in reported


def test_a_field_that_changes_while_the_text_stays_reaches_the_index(project: MakeProject) -> None:
    site = Site({"/": page("Lamp", text="a lamp", headers={"X-Price": "7"})})
    with serve(site) as server:
        made = project({"repriced/start_urls.txt": server.url("/"), "repriced/settings.py": FAST})
        for price in ("7", "8"):
            site["/"] = page("Lamp", text="a lamp", headers={"X-Price": price})
            made.crawl("repriced", *OWN).succeeded()
            make_due(made, "repriced")
            assert price in made.scrapy("search", "repriced", "lamp", "--json").stdout


def test_links_beyond_the_limit_are_counted_and_logged_once_a_page(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(5)])}, otherwise=page("Any", text="any"))
    made, reported = crawled(project, "plain", site, "CRAWLSPACE_MAX_LINKS = 3\n")
    assert reported.count("2 links beyond CRAWLSPACE_MAX_LINKS (3) left out") == 1
    shown = made.scrapy("status", "plain").stdout
    assert "page_links" in shown
    assert "its page has more links than CRAWLSPACE_MAX_LINKS" in shown


MISSING = "spiders/collection.py is missing in {folder}, so no collection can be crawled: `crawlspace init --upgrade`"
NO_CLASS = "spiders/collection.py in {folder} has no class CollectionSpider derived from crawlspace.runtime.components.spider.FrontierSpider"
CORRECT = "; nothing can be crawled until the spider is corrected"

BROKEN = [
    # content of spiders/collection.py; the sentence of `scrapy crawl`; whether `scrapy list` fails too
    ("missing",          None,                              MISSING,                                                    False),
    ("no class",         "x = 1\n",                         NO_CLASS,                                                   False),
    ("another class",    "class CollectionSpider: pass\n",  NO_CLASS,                                                   False),
    ("missing import",   "\nimport nosuch\n",               "collection.py:2: ModuleNotFoundError: No module named 'nosuch'" + CORRECT, True),
    ("undefined name",   "x = y\n",                         "collection.py:1: NameError: name 'y' is not defined" + CORRECT, True),
    ("any error",        "raise OSError('no\\nfile')\n",    "collection.py:1: OSError: no file" + CORRECT,              True),
    ("a wrong syntax",   "class Coll(\n",                   "collection.py:1: '(' was never closed" + CORRECT,          True),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of its own, with the collection `demo`."""
    for name in ("spiders", "middlewares", "pipelines"):
        shutil.copytree(ROOT / name, tmp_path / "project" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "scrapy.cfg", tmp_path / "project")
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "crawlspace").symlink_to(ROOT / "crawlspace")
    (tmp_path / "project" / "collections" / "demo").mkdir(parents=True)
    (tmp_path / "project" / "collections" / "demo" / "start_urls.txt").write_text("http://127.0.0.1:9/\n")
    return tmp_path / "project"


def scrapy(folder: Path, *args: str) -> CompletedRun:
    """Run a command in the project, which finds the package crawlspace and none of the repository's own spiders."""
    return run_scrapy(args, folder, env={"PYTHONPATH": str(folder.parent / "packages"), "PYTHONSAFEPATH": "1"})


def assert_one_sentence(run: CompletedRun, sentence: str) -> None:
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (1, "", 1), run.stderr
    assert sentence in run.stderr


@pytest.mark.parametrize(("content", "sentence", "list_fails"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_collection_spider(folder: Path, content: str | None, sentence: str, *, list_fails: bool) -> None:
    file = folder / "spiders" / "collection.py"
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    expected = sentence.format(folder=os.path.realpath(folder))
    assert_one_sentence(scrapy(folder, "crawl", "demo"), expected)
    listed = scrapy(folder, "list")
    if list_fails:
        assert_one_sentence(listed, expected)
    else:
        assert listed.succeeded().stdout == "demo\n"


def test_the_folder_of_the_spiders_is_missing(folder: Path) -> None:
    shutil.rmtree(folder / "spiders")
    expected = MISSING.format(folder=os.path.realpath(folder))
    assert_one_sentence(scrapy(folder, "crawl", "demo"), expected)
    assert_one_sentence(scrapy(folder, "list"), expected)


def test_a_setting_names_spiders_that_are_missing(folder: Path) -> None:
    run = scrapy(folder, "crawl", "demo", "-s", "SPIDER_MODULES=elsewhere")
    assert_one_sentence(
        run, "SPIDER_MODULES is ['elsewhere'], which cannot be imported (ModuleNotFoundError: No module named 'elsewhere')"
    )
