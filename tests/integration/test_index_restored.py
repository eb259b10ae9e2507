"""An index that is older than what is known, or lost: `status` says so, and the next crawl makes it whole."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import MakeProject, assert_same
from tests.integration.stored import FAST, collection, indexed, make_due, shared
from tests.sites import Site, page, serve

SITE = {"/": page("Home", links=["/a"]), "/a": page("A", text="a page"), "/b": page("B", text="another page")}


def test_an_index_put_back_from_a_copy(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        data = demo.data / "demo"
        shutil.copytree(data, demo.folder / "copy")
        server.site["/"] = page("Home", text="it has more links now", links=["/a", "/b"])
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/b"])
        assert "of demo at present" not in demo.scrapy("status", "demo").succeeded().stdout
        for file in data.glob("index.db*"):
            file.unlink()
        for file in (demo.folder / "copy").glob("index.db*"):
            shutil.copy(file, data)
        shown = demo.scrapy("status", "demo").succeeded().stdout
        assert "index.db has 2 documents of demo at present: the index is older than the stored state of the pages" in shown
        run = demo.crawl("demo").succeeded()
        assert "the index is older than the stored state of the pages: 3 documents are fetched and sent again" in run.stderr
        assert_same(indexed(demo), ["/", "/a", "/b"])
        assert "of demo at present" not in demo.scrapy("status", "demo").succeeded().stdout


@pytest.mark.parametrize("is_shared", [False, True])
def test_an_index_that_was_lost(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        if is_shared:
            shared(demo)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a"])
        for file in (demo.data / "demo").glob("index.db*"):
            file.unlink()
        assert is_shared or "`scrapy reindex demo` rebuilds it" in demo.scrapy("status", "demo").succeeded().stdout
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a"])
