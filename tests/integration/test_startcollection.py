"""`scrapy startcollection`: what a new collection keeps to, by its start URLs."""

from __future__ import annotations

import json
import re
from shutil import rmtree

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project({})


# start URLs -> the folders that are crawled, none where it is all of the sites; the folder that is proposed; URLs that are in, and out
FOLDERS = [
    (["http://a.test/"], [], "", ["http://a.test/x"], []),
    (["http://a.test"], [], "", ["http://a.test/x"], []),
    (["http://a.test/index.html"], [], "", ["http://a.test/x"], []),
    (["http://a.test/?lang=de"], [], "", ["http://a.test/x"], []),
    (["http://a.test/docs/"], ["a.test/docs/"], "", ["http://a.test/docs/x/y?z", "https://a.test/docs/"], ["http://a.test/", "http://a.test/docs2/", "http://a.test:81/docs/"]),
    (["http://a.test/docs/?lang=de"], ["a.test/docs/"], "", ["http://a.test/docs/x"], ["http://a.test/x"]),
    (["https://a.test:8443/docs/"], ["a.test:8443/docs/"], "", ["https://a.test:8443/docs/x"], ["https://a.test/docs/x"]),
    (["http://a.test/docs"], [], "http://a.test/docs/", ["http://a.test/x"], []),
    (["http://a.test/docs/page.html?x=1"], [], "http://a.test/docs/", ["http://a.test/x"], []),
    (["http://a.test/", "http://a.test/docs/page.html"], [], "http://a.test/docs/", ["http://a.test/x"], []),
    (["http://a.test/docs/", "http://a.test/docs/x/", "http://a.test/docs/page.html"], ["a.test/docs/"], "", ["http://a.test/docs/y"], ["http://a.test/y"]),
    (["http://a.test/docs/", "http://a.test/news/"], ["a.test/docs/", "a.test/news/"], "", ["http://a.test/news/y"], ["http://a.test/y"]),
    (["http://a.test/docs/", "http://b.test/news/page.html"], ["a.test/docs/", "b.test/news/"], "", ["http://b.test/news/y"], ["http://b.test/y"]),
    (["http://a.test/docs/", "http://b.test/"], ["a.test/docs/", "b.test/"], "", ["http://b.test/y"], ["http://a.test/y"]),
    (["http://a.test/docs/", "http://a.test/"], [], "", ["http://a.test/y"], []),
]  # fmt: skip


@pytest.mark.parametrize(("starts", "limit", "proposed", "inside", "outside"), FOLDERS, ids=[" ".join(row[0]) for row in FOLDERS])
def test_a_new_collection_keeps_to_the_folders_that_are_given(
    demo: Project, run: Run, starts: list[str], limit: list[str], proposed: str, inside: list[str], outside: list[str]
) -> None:
    made = run("startcollection", "shop", *starts).succeeded().stdout
    shop = demo.collections / "shop"
    try:
        assert re.findall(r"Only (.*) (?:is|are) crawled, with what is below:", made) == ([", ".join(limit)] if limit else [])
        assert re.findall(r"  scrapy startcollection shop (.*)", made) == ([proposed] if proposed else [])
        assert ("\nCRAWLSPACE_INDEX_ENTIRE_SITE = True " in (shop / "settings.py").read_text()) == bool(limit)
        assert run("lint", "shop").succeeded().stdout == "no findings\n"
        decided = {
            url: json.loads(run("explain", "shop", url, "--json").succeeded().stdout)["admitted"]
            for url in (*starts, *inside, *outside)
        }
        assert decided == {**dict.fromkeys((*starts, *inside), True), **dict.fromkeys(outside, False)}
    finally:
        rmtree(shop)
