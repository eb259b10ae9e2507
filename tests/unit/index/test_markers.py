"""The marker of a batch on any search server: it says no more than what the index has, and an index from an older copy is noticed by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.index.marks import BatchMark, forget_mark, stored_mark
from tests.unit.index.marked import BEHIND, REPAIR, MarkedScene, marked, warnings


@pytest.fixture(params=["opensearch", "solr"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MarkedScene]:
    with marked(request.param, tmp_path) as made:
        yield made


def test_each_batch_is_marked(scene: MarkedScene) -> None:
    assert scene.mark is None
    for number, names in enumerate(("abc", "d", "a"), 1):
        scene.crawl(names, text=str(number))
        assert scene.mark is not None
        assert (scene.mark, scene.mark.batch) == (stored_mark(scene.store, "search"), number)
    assert scene.proxy.bulks == 3, "it goes with the documents"
    assert scene.there == "abcd"


def test_an_index_from_an_older_copy_is_reported_until_it_is_repaired(
    scene: MarkedScene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.crawl("ab")
    older = scene.search.everything()
    for name in "cd":
        scene.crawl(name)
    scene.start()
    scene.crawl("e")
    assert warnings(caplog) == []
    scene.search.put_back(older)
    scene.start()
    for name in "fg":
        scene.crawl(name)
    assert caplog.text.count(BEHIND) == caplog.text.count(REPAIR) == 1
    assert scene.there == "abfg", "the crawl goes on"
    assert scene.mark == BatchMark(scene.mark.generation, 1, 2) if scene.mark else False, "it says no more than what is there"
    scene.start()
    scene.crawl("h")
    assert caplog.text.count(BEHIND) == 2
    forget_mark(scene.store, "search")  # as `scrapy audit --repair` does
    scene.crawl("i")
    scene.start()
    scene.crawl("j")
    assert caplog.text.count(BEHIND) == 2
    assert scene.agrees


def test_it_is_noticed_by_a_process_that_runs(scene: MarkedScene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    older = scene.search.everything()
    scene.crawl("c")
    scene.search.put_back(older)
    scene.crawl("d")
    assert caplog.text.count(BEHIND) == 1


def test_a_collection_that_was_begun_again_is_reported_once(scene: MarkedScene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.begin_anew()
    for name in "cd":
        scene.start()
        scene.crawl(name)
    assert caplog.text.count("one of the two was created again") == caplog.text.count(REPAIR) == 1
    assert scene.agrees


def test_processes_that_send_in_turn_agree(scene: MarkedScene, caplog: pytest.LogCaptureFixture) -> None:
    first = scene.drain
    scene.start()
    second = scene.drain
    for number in range(6):
        scene.drain = (first, second)[number % 2]
        scene.crawl("ab", text=str(number))
    assert warnings(caplog) == []
    assert scene.agrees


def test_each_collection_has_its_own(scene: MarkedScene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    mark = scene.mark
    other = scene.another("other")
    for name in "cd":
        other.crawl(name)
    assert (scene.mark, other.agrees, warnings(caplog)) == (mark, True, [])
