"""Near duplicates in crawls: which pages are in the index, what follows when they change or the setting does, and what `explain` says."""

from __future__ import annotations

import pytest

from crawlspace.state.near_duplicates import NEAR_EPOCH_META
from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, FAST, collection, indexed, make_due, opened, shared, states
from tests.sites import Answer, Site, page, serve, status

WORDS = [f"word{number}" for number in range(1200)]
OTHER = " ".join(f"other{number}" for number in range(600))
PATHS = ["/a", "/bb", "/ccc", "/other", "/short-1", "/short-2"]
NEAR = "CRAWLSPACE_NEAR_DUPLICATES = 3\n"


def text(*changes: int) -> str:
    """Return a text of 1,200 words, of which those at some places are others."""
    return " ".join("changed" if place in changes else word for place, word in enumerate(WORDS))


def site() -> dict[str, Answer]:
    return {
        "/": page("Home", links=PATHS),
        "/robots.txt": status(404),
        "/a": page("Page", text=text()),
        "/bb": page("Page", text=text(20)),
        "/ccc": page("Page", text=text(40)),
        "/other": page("Page", text=OTHER),
        "/short-1": page("Short", text="a short text, version 1"),
        "/short-2": page("Short", text="a short text, version 2"),
    }


def explained(demo: Project, url: str) -> str:
    return " ".join(demo.scrapy("explain", "demo", url).succeeded().stdout.split())


ALWAYS = ["/", "/other", "/short-1", "/short-2"]


@pytest.mark.parametrize("is_shared", [False, True])
def test_near_duplicates_follow_the_page_that_represents_them(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site(site())) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + NEAR))
        if is_shared:
            shared(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a"])
        said = f"not in the index: nearly the same as {server.url('/a')}, distance "
        assert int(explained(demo, server.url("/bb")).partition(said)[2][:1]) in range(4)
        intervals = [states(demo)[path].interval_s or 0 for path in ("/bb", "/ccc")]

        server.site["/a"] = page("Page", text=" ".join(f"new{number}" for number in range(600)))
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a", "/bb"])
        assert f"nearly the same as {server.url('/bb')}" in explained(demo, server.url("/ccc"))
        longer = [states(demo)[path].interval_s or 0 for path in ("/bb", "/ccc")]
        assert all(now > before for now, before in zip(longer, intervals, strict=True)), "they have not changed"

        server.site["/bb"] = status(404)
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a", "/ccc"])


def test_a_setting_by_which_pages_get_other_texts_has_all_compared_again(project: MakeProject) -> None:
    with serve(Site(site())) as server:
        demo = project(collection(server.url("/"), settings=FAST + NEAR))
        demo.crawl("demo").succeeded()
        with opened(demo) as store:
            before = int(store.get_meta(NEAR_EPOCH_META) or 0)
        for settings, epochs in ((FAST + NEAR, 0), (f"{FAST}{NEAR}CRAWLSPACE_CHECKSUM_TITLE = False\n", 1)):
            demo.write({"demo/settings.py": settings})
            demo.crawl("demo").succeeded()
            with opened(demo) as store:
                assert int(store.get_meta(NEAR_EPOCH_META) or 0) == before + epochs


def test_the_setting_is_turned_on_and_off(project: MakeProject) -> None:
    with serve(Site(site())) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a", "/bb", "/ccc"])
        demo.write({"demo/settings.py": ARCHIVED + NEAR})
        demo.scrapy("reindex", "demo", "--extract").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a"])
        demo.write({"demo/settings.py": ARCHIVED})
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a", "/bb", "/ccc"])
        demo.write({"demo/settings.py": ARCHIVED + NEAR})
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a"])
        demo.write({"demo/settings.py": ARCHIVED})
        demo.scrapy("reindex", "demo", "--extract").succeeded()
        assert indexed(demo) == sorted([*ALWAYS, "/a", "/bb", "/ccc"])


def test_documents_lost_to_near_ones_count_towards_the_limit_of_deletions(project: MakeProject) -> None:
    """A site that shows one page everywhere, with another session id each time."""
    pages = [f"/{number}" for number in range(30)]
    own = {path: page("Page", text=" ".join(f"word{path}-{number}" for number in range(300))) for path in pages}
    with serve(Site({"/": page("Home", links=pages), "/robots.txt": status(404), **own})) as server:
        limit = "CRAWLSPACE_MAX_DELETIONS = 5\nCRAWLSPACE_MAX_DELETIONS_PERCENT = 10\n"
        demo = project(collection(server.url("/"), settings=ARCHIVED + NEAR + limit))
        demo.crawl("demo").succeeded()
        assert len(indexed(demo)) == 31
        for number, path in enumerate(pages):
            server.site[path] = page("Log in", text=text(number))
        for _ in range(3):
            make_due(demo)
            demo.crawl("demo").succeeded()
            assert len(indexed(demo)) >= 31 - 5
