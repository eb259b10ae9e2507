"""Item pipelines of a project, between fetching and recording: they get the document, and work as in Scrapy."""

from __future__ import annotations

import json

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, indexed, make_due, refusals, states
from tests.sites import Site, binary, html, page, serve, text

OWN = ("-s", "SPIDER_MODULES=tests.integration.own_spiders")
PIPELINES = "tests.integration.own_spiders.pipelines"


def having(*names: str, order: int = 300) -> str:
    return f"ITEM_PIPELINES = { ({f'{PIPELINES}.{name}': order for name in names}) }\n"


def crawled(project: MakeProject, site: Site, settings: str, *options: str, name: str = "plain") -> tuple[Project, str]:
    with serve(site) as server:
        made = project({f"{name}/start_urls.txt": server.url("/"), f"{name}/settings.py": FAST + settings})
        return made, made.crawl(name, *OWN, *options).stderr


OUTCOMES = [
    # pipeline, and order, of the user's         state and status of a page     its title in the index
    ("WithoutDate", 300,                         (State.DONE, 200),             "Draft"),
    ("Renamed",     300,                         (State.DONE, 200),             "Renamed Draft"),
    ("WantsSpider", 300,                         (State.DONE, 200),             "plain's"),
    ("NoDrafts",    300,                         (State.EXCLUDED, 200),         None),
    ("NoDrafts",    850,                         (State.EXCLUDED, 200),         None),
    ("NoDrafts",    950,                         (State.DONE, 200),             "Draft"),
    ("Raises",      300,                         (State.FAILED, 699),           None),
    ("Raises",      950,                         (State.DONE, 200),             "Draft"),
    ("Forgets",     300,                         (State.FAILED, 699),           None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "order", "outcome", "title"), OUTCOMES)
@pytest.mark.filterwarnings("ignore")
def test_what_a_pipeline_does_to_a_page(
    project: MakeProject, name: str, order: int, outcome: tuple[State, int], title: str | None
) -> None:
    site = Site({"/": page("Draft", text="words printed on Monday", links=["/next"]), "/next": page("Next", text="next")})
    made, _ = crawled(project, site, having(name, order=order))
    found = states(made, "plain")
    assert (found["/"].state, found["/"].status) == outcome
    hits = json.loads(made.scrapy("search", "plain", "words", "--json").stdout)["hits"]
    assert [hit["title"] for hit in hits] == [] if title is None else [title]
    assert ("/next" in found) is (outcome[1] == 200), "the links of a dropped page are followed"


def test_a_pipeline_that_returns_nothing_is_reported_in_one_sentence(project: MakeProject) -> None:
    _, reported = crawled(project, Site({"/": page("Home", text="words")}), having("Forgets"))
    assert f"the item pipeline {PIPELINES}.Forgets returned nothing in place of the item: return the item, or raise" in reported
    assert "Traceback" not in reported
    assert "every page that was parsed ended in an unexpected error (699)" in reported


def test_a_dropped_document_leaves_the_index_and_its_links_stay(project: MakeProject) -> None:
    site = Site(
        {"/": page("Home", text="home", links=["/a"]), "/a": page("A", text="a", links=["/b"]), "/b": page("B", text="b")}
    )
    with serve(site) as server:
        made = project({"plain/start_urls.txt": server.url("/"), "plain/settings.py": FAST + having("NoDrafts")})
        made.crawl("plain", *OWN).succeeded()
        assert indexed(made, "plain") == ["/", "/a", "/b"]
        make_due(made, "plain")
        site["/a"] = page("Draft of A", text="a", links=["/b"])
        summary = made.crawl("plain", *OWN).succeeded().stderr
        assert indexed(made, "plain") == ["/", "/b"]
        assert "dropped_by_pipeline" in summary
        explained = made.scrapy("explain", "plain", server.url("/a")).stdout
        assert "excluded, status 200, an item pipeline dropped the document" in explained
        assert made.scrapy("urls", "plain", "--orphaned").stdout == "", "/b is found through /a as before"
        make_due(made, "plain")
        site["/a"] = page("A", text="a", links=["/b"])
        made.crawl("plain", *OWN).succeeded()
        assert indexed(made, "plain") == ["/", "/a", "/b"]


def test_documents_that_are_equal_after_cleaning_are_duplicates(project: MakeProject) -> None:
    pages = {f"/{day}": page("News", text=f"all the news printed on {day}") for day in ("monday", "tuesday")}
    site = Site({"/": page("Home", text="home", links=list(pages)), **pages})
    made, _ = crawled(project, site, having("WithoutDate"))
    assert indexed(made, "plain") == ["/", "/monday"]


def test_signals_and_feeds_have_the_item(project: MakeProject) -> None:
    pages = {"/a": page("A", text="a"), "/d": page("Draft", text="d"), "/gone": page("x")}
    site = Site({"/": page("Home", text="home", links=[*pages, "/missing"]), **pages})
    extension = f"EXTENSIONS = {{'{PIPELINES}.Listener': 0}}\n"
    with serve(site) as server:
        made = project({"plain/start_urls.txt": server.url("/"), "plain/settings.py": FAST + having("NoDrafts") + extension})
        items = made.folder / "items.jsonl"
        run = made.crawl("plain", *OWN, "-O", str(items)).succeeded()
    heard = [line.partition("] WARNING: ")[2] for line in run.stderr.splitlines() if PIPELINES in line]
    assert_same(heard, ["scraped Home", "scraped A", "scraped x", "dropped Draft of 200: a draft"])
    assert_same([json.loads(line)["title"] for line in items.read_text(encoding="utf-8").splitlines()], ["Home", "A", "x"])


def test_the_log_shows_the_item(project: MakeProject) -> None:
    _, logged = crawled(project, Site({"/": page("Draft", text="words")}), having("NoDrafts"), "-L", "DEBUG")
    assert "Dropped: a draft" in logged
    assert "Fetched(" not in logged


def test_a_pipeline_as_published_for_scrapy(project: MakeProject) -> None:
    site = Site({"/": page("Lamp", text="it costs 7", links=["/free"]), "/free": page("Free", text="no price")})
    made, logged = crawled(project, site, having("Validated"), "-s", "STATS_DUMP=True", "-L", "INFO", name="priced")
    assert indexed(made, "priced") == ["/"]
    assert "'jsonschema/errors/price': 1" in logged
    assert "'crawlspace/refused/dropped_by_pipeline': 1" in logged


def test_scrapys_files_pipeline(project: MakeProject) -> None:
    """Its files are no pages: extension, type and prefix rules do not hold for them, but domain rules and robots.txt do."""
    png = binary(b"\x89PNG\r\n\x1a\n", "image/png")
    robots = text("User-agent: *\nDisallow: /private\n")
    with (
        serve(Site({"/robots.txt": robots, "/a.zip": png})) as server,
        serve(Site({"/robots.txt": robots, "/b.png?x=1": png, "/private.png": png}), host="127.0.0.2") as other,
        serve(Site({"/c.png": png}), host="127.0.0.3") as forbidden,
    ):
        urls = [server.url("/a.zip"), other.url("/b.png?x=1"), other.url("/private.png"), forbidden.url("/c.png")]
        server.site["/"] = html(f"<title>Pictures</title><p>words{''.join(f'<img data-file={url}>' for url in urls)}")
        domains = f"allow domain {server.host}\nallow domain {other.host}\nforbid domain *\n"
        settings = "CRAWLSPACE_FOLLOW_QUERY_STRINGS = False\nITEM_PIPELINES = {'scrapy.pipelines.files.FilesPipeline': 1}\n"
        files = {
            "pictured/start_urls.txt": server.url("/"),
            "pictured/crawl.rules": f"{domains}forbid prefix {server.url('/a')}\n",
            "pictured/settings.py": FAST + settings,
        }
        made = project(files)
        store, items = made.folder / "files", made.folder / "items.jsonl"
        made.crawl("pictured", *OWN, "-s", f"FILES_STORE={store}", "-O", str(items)).succeeded()
    assert_same(server.paths(), ["/robots.txt", "/", "/a.zip"])
    assert_same(other.paths(), ["/robots.txt", "/b.png?x=1"])
    assert forbidden.paths() == []
    (item,) = (json.loads(line) for line in items.read_text(encoding="utf-8").splitlines())
    assert_same([file["url"] for file in item["files"]], urls[:2])
    assert len(list((store / "full").iterdir())) == 2
    assert indexed(made, "pictured") == ["/"]
    assert "files" in json.loads(made.scrapy("search", "pictured", "words", "--json").stdout)["hits"][0]["fields"]
    assert refusals(made, "pictured") == {}, "they are no links of a page"
