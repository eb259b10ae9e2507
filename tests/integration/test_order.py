"""The order of requests: by source and weight, by shift, and with one delay for two sites at one address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, collection, indexed, make_due, states
from tests.sites import Server, Site, page, redirect, serve

RULES = """\
<Rules>
  <Rule> <Path val="/index/"/> <Index/> <NoFollow/> </Rule>
  <Rule> <Path val="/follow/"/> <NoIndex/> <Follow/> </Rule>
  <Rule> <Path val="/neither/"/> <NoIndex/> <NoFollow/> </Rule>
  <Rule> <Atom field="path" kind="inside" value="/highest-"/> <Priority shift="-2"/> </Rule>
  <Rule> <Atom field="path" kind="inside" value="/higher-"/> <Priority shift="-1"/> </Rule>
  <Rule> <Atom field="path" kind="inside" value="/lower-"/> <Priority shift="1"/> </Rule>
  <Rule> <Atom field="path" kind="inside" value="/lowest-"/> <Priority shift="2"/> </Rule>
</Rules>
"""
START_URLS = """\
{}/from/a shift=2
{}/from/b
{}/
{}/from/c shift=-1
{}/from/d shift=-2
{}/from/e shift=1
{}/from/f
{}/from/g shift=-2
"""
REDIRECTING = "dgcbfea"
"""The start URLs that redirect, in the order of their shifts."""
FOUND = ("normal-1", "lowest-1", "highest-1", "normal-2", "higher-1", "lower-1", "highest-2")
"""In the order in which links and redirects lead there."""
BY_SHIFT = ("highest-1", "highest-2", "higher-1", "normal-1", "normal-2", "lower-1", "lowest-1")

LINKS = [f"/{folder}/{name}" for name in FOUND for folder in ("both", "follow", "index", "neither")]
SITE = Site(
    {
        "/": page("Home", links=LINKS, headers={"ETag": '"home"'}),
        **{path: page(path, text=path) for path in [*LINKS, *(f"/redir/{name}" for name in FOUND), "/late/1", "/late/2"]},
        **{f"/from/{letter}": redirect(f"/redir/{name}") for letter, name in zip(REDIRECTING, FOUND, strict=True)},
    }
)
STARTS: list[tuple[dict[str, int], str]] = [
    # weights that are set, start URLs
    ({"redir": 0, "index": 0, "index_follow": 0, "follow": 0, "refresh": 0}, START_URLS),
    ({"user": 0, "redir": 0, "index": 1, "index_follow": 0, "follow": 3, "refresh": 0}, START_URLS),
    ({}, START_URLS + "{}/late/1\n{}/late/2\n"),
]


class Crawled:
    """What came of each start: the paths that were asked for, in order, and how many URLs were left pending."""

    def __init__(self, project: Project) -> None:
        self.asked: list[list[str]] = []
        self.left: list[int] = []
        with serve(SITE) as server:
            for weights, start_urls in STARTS:
                settings = f"{FAST}CONCURRENT_REQUESTS = 1\nCRAWLSPACE_SOURCE_WEIGHTS = {weights!r}\n"
                files = collection(start_urls.replace("{}", server.url("")), settings=settings)
                project.write(files | {"demo/rules.xml": RULES})
                server.forget()
                project.crawl("demo").succeeded()
                self.asked.append([path for path in server.paths() if path != "/robots.txt"])
                self.left.append(sum(state.state is State.PENDING for state in states(project).values()))
                if len(self.asked) == 1:
                    make_due(project)  # the start URLs, for nothing else has been asked for


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return Crawled(Project(tmp_path_factory.mktemp("order"), {}))


START_URLS_BY_SHIFT = ["/from/d", "/from/g", "/from/c", "/from/b", "/", "/from/f", "/from/e", "/from/a"]

QUEUES: list[tuple[str, int, list[str]]] = [
    # source, at which start it is emptied, what is asked for, in this order
    ("user", 0, START_URLS_BY_SHIFT),
    ("index", 1, [f"/index/{name}" for name in BY_SHIFT]),
    ("follow", 1, [f"/{folder}/{name}" for name in BY_SHIFT for folder in ("follow", "neither")]),
    ("user, once more", 2, ["/late/1", "/late/2"]),
    ("redir", 2, [f"/redir/{name}" for name in BY_SHIFT]),
    ("index_follow", 2, [f"/both/{name}" for name in BY_SHIFT]),
    ("refresh", 2, START_URLS_BY_SHIFT),
]  # fmt: skip


@pytest.mark.parametrize(("source", "start", "order"), QUEUES, ids=[row[0] for row in QUEUES])
def test_in_a_source_by_shift_and_then_first_in_first_out(
    crawled: Crawled, source: str, start: int, order: Sequence[str]
) -> None:
    of_source = set(order)
    assert [path for path in crawled.asked[start] if path in of_source] == order


def test_with_the_default_weights_a_few_urls_of_a_source_go_before_the_next_source(crawled: Crawled) -> None:
    assert crawled.asked[2] == [path for _, start, order in QUEUES if start == 2 for path in order]


def test_sources_are_picked_in_proportion_to_their_weights(crawled: Crawled) -> None:
    first = [path.startswith("/index/") for path in crawled.asked[1][:16]]
    assert [sum(first[n : n + 4]) for n in range(0, 16, 4)] == [1, 1, 1, 1], "one of index, three of follow"


def test_urls_of_a_paused_source_are_fetched_when_a_later_start_gives_it_a_weight(crawled: Crawled) -> None:
    assert [sorted(set(asked)) for asked in crawled.asked[:2]] == [
        sorted(START_URLS_BY_SHIFT),
        sorted(path for path in LINKS if not path.startswith("/both/")),
    ]
    assert crawled.left == [35, 14, 0]
    assert sorted(path for asked in crawled.asked for path in asked) == sorted([*SITE, *START_URLS_BY_SHIFT]), (
        "each once, and due ones"
    )


DELAY_S = 0.4
SETTINGS = f"DOWNLOAD_DELAY = {DELAY_S}\nROBOTSTXT_OBEY = False\nCRAWLSPACE_SHARE_ADDRESS_DELAY = "
ADDRESSES_ALLOWED = "allow address 127.0.0.0 255.0.0.0\n"


@contextmanager
def two_sites() -> Iterator[tuple[Server, Server]]:
    pages = {"/": page("Home", links=["/1", "/2"]), "/1": page("One", text="one"), "/2": page("Two", text="two")}
    other = {path: page(f"Other {path}", text=f"other {path}", links=["/1", "/2"]) for path in pages}
    with serve(Site(pages)) as first, serve(Site(other)) as second:
        yield first, second


@pytest.mark.full
@pytest.mark.parametrize("shared", [True, False])
def test_a_request_waits_for_the_last_one_to_the_neighbour(project: MakeProject, *, shared: bool) -> None:
    with two_sites() as (first, second):
        starts = f"{first.url()}\nhttp://localhost:{second.port}/\n"
        demo = project(
            {"demo/start_urls.txt": starts, "demo/crawl.rules": ADDRESSES_ALLOWED, "demo/settings.py": f"{SETTINGS}{shared}\n"}
        )
        demo.crawl("demo")
        came = sorted(request.at for server in (first, second) for request in server.requests)
    assert len(came) == 6
    assert len(indexed(demo)) == 6
    shortest = min(after - before for before, after in pairwise(came))
    assert shortest > DELAY_S * 0.75 if shared else shortest < DELAY_S / 2
