"""The demonstration intranet, crawled through the command line: each page must come to what `expected.py` says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scrapy.cmdline import execute

from examples.intranet.expected import COLLECTIONS, Expected
from examples.intranet.server import Intranet
from examples.intranet.sites import free_ports
from examples.intranet.workplace import PROJECT, Workplace
from tests.command_line import run_scrapy
from tests.integration.conftest import settings_with


@dataclass(frozen=True, slots=True)
class Crawled:
    """A finished crawl: every known URL, with the ports of `expected.py`."""

    place: Workplace
    intranet: Intranet
    urls: dict[str, dict[str, Any]]

    def there(self, text: str) -> str:
        return self.intranet.ports.rewrite(text)


@pytest.fixture(scope="module")
def place_and_intranet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workplace, Intranet]]:
    with Intranet(free_ports(range(18941, 19941, 10))) as intranet:
        place = Workplace(tmp_path_factory.mktemp("demo"))
        place.prepare(intranet.ports)
        yield place, intranet


@pytest.fixture(scope="module", params=sorted(COLLECTIONS))
def crawl(request: pytest.FixtureRequest, place_and_intranet: tuple[Workplace, Intranet]) -> tuple[Crawled, Expected]:
    place, intranet = place_and_intranet
    collection: str = request.param
    _scrapy(place, "crawl", collection, "-O", str(place.items(collection)))
    urls = _known(place, collection)
    return Crawled(place, intranet, urls), COLLECTIONS[collection]


def test_exactly_these_pages_are_indexed(crawl: tuple[Crawled, Expected]) -> None:
    crawled, expected = crawl
    indexed = {url for url, state in crawled.urls.items() if state["indexed"]}
    assert_same(indexed, {crawled.there(url) for url in expected.indexed})


def test_exactly_these_urls_are_known_besides(crawl: tuple[Crawled, Expected]) -> None:
    crawled, expected = crawl
    besides = {url for url, state in crawled.urls.items() if not state["indexed"]}
    assert_same(besides, {crawled.there(url) for url in (*expected.known, *expected.duplicates)})


def test_each_ended_with_its_status(crawl: tuple[Crawled, Expected]) -> None:
    crawled, expected = crawl
    wrong = {
        url: f"{crawled.urls[crawled.there(url)]['status']}, not {set(statuses)}"
        for url, statuses in expected.known.items()
        if crawled.there(url) in crawled.urls and crawled.urls[crawled.there(url)]["status"] not in statuses
    }
    assert not wrong, wrong


def test_each_duplicate_has_its_representative(crawl: tuple[Crawled, Expected]) -> None:
    crawled, expected = crawl
    found = {url: state["duplicate_of"] for url, state in crawled.urls.items() if state["duplicate_of"]}
    assert found == {crawled.there(url): crawled.there(winner) for url, winner in expected.duplicates.items()}


def test_each_refusal_has_its_reason(
    crawl: tuple[Crawled, Expected], request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    crawled, expected = crawl
    collection = request.node.callspec.params["crawl"]
    found = {}
    for url, (_, options) in expected.refused.items():
        words = ["scrapy", "explain", collection, crawled.there(url), *options, "--json"]
        settings = settings_with(crawled.place.variables())
        with pytest.raises(SystemExit) as ended:
            execute(words, settings)
        assert ended.value.code in (0, 1)
        found[url] = json.loads(capsys.readouterr().out)["reason"]
    assert found == {url: reason for url, (reason, _) in expected.refused.items()}


def test_nothing_was_fetched_that_must_not_be(crawl: tuple[Crawled, Expected]) -> None:
    crawled, _ = crawl
    asked = {
        path for path in crawled.intranet.requests if "/payroll/" in path or "/board-minutes/" in path or "/private/" in path
    }
    assert not asked


def test_a_second_crawl_fetches_nothing(crawl: tuple[Crawled, Expected], request: pytest.FixtureRequest) -> None:
    crawled, _ = crawl
    collection = request.node.callspec.params["crawl"]
    before = crawled.intranet.requests.copy()
    _scrapy(crawled.place, "crawl", collection, "-O", str(crawled.place.items(collection)))
    assert {path for path in crawled.intranet.requests - before if not path.endswith("/robots.txt")} == set()
    assert _known(crawled.place, collection) == crawled.urls


@pytest.mark.full
def test_the_tour_works_twice(tmp_path: Path) -> None:
    for expected in ("items exported", "Nothing new to do"):
        done = subprocess.run(
            [sys.executable, "-m", "examples.intranet.demo", "--folder", str(tmp_path)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout
        assert "What next" in done.stdout


def assert_same(found: set[str], wanted: set[str]) -> None:
    missing = "".join(f"\n  MISSING {url}" for url in sorted(wanted - found))
    extra = "".join(f"\n  EXTRA   {url}" for url in sorted(found - wanted))
    assert not missing + extra, missing + extra


def _known(place: Workplace, collection: str) -> dict[str, dict[str, Any]]:
    lines = _scrapy(place, "urls", collection, "--format", "jsonl").splitlines()
    return {row["url"]: row for row in map(json.loads, lines)}


def _scrapy(place: Workplace, *words: str) -> str:
    return run_scrapy(words, env=place.variables()).succeeded().stdout
