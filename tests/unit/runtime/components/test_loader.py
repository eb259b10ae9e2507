"""Settings of a collection laid over the project's: each that Scrapy could not read is an error of its own, and stands in no one's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy import Request
from scrapy.settings import Settings

from crawlspace import settings as defaults
from crawlspace.runtime.components.loader import CollectionLoader, add_to_ours, settings_and_faults

FAULTY = (
    'DOWNLOAD_DELAY = "soon"\n',
    'CLOSESPIDER_TIMEOUT = "x"\n',
    "DOWNLOADER_MIDDLEWARES = 5\n",
    'AUTOTHROTTLE_ENABLED = "maybe"\n',
    'LOG_LEVEL = "LOUD"\n',
)


def test_components_of_a_project_add_to_ours() -> None:
    project = Settings({name: value for name, value in vars(defaults).items() if name.isupper()})
    project.set(
        "DOWNLOADER_MIDDLEWARES", {"mine.Mine": 543, "crawlspace.runtime.components.cookies.Cookies": None}, priority="project"
    )
    add_to_ours(project)
    middlewares = project.getdict("DOWNLOADER_MIDDLEWARES")
    assert middlewares == {
        **defaults.DOWNLOADER_MIDDLEWARES,
        "mine.Mine": 543,
        "crawlspace.runtime.components.cookies.Cookies": None,
    }
    assert project.getdict("EXTENSIONS") == defaults.EXTENSIONS


def test_all_faulty_settings_are_found_and_the_others_hold(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "settings.py").write_text("DEPTH_LIMIT = 7\n" + "".join(FAULTY))
    project = Settings({name: value for name, value in vars(defaults).items() if name.isupper()})
    project.set("CRAWLSPACE_COLLECTIONS_DIR", str(tmp_path))
    project.set("LOGSTATS_INTERVAL", "often", priority="cmdline")
    settings, errors = settings_and_faults(project, "demo")
    names = {line.partition(" ")[0] for line in FAULTY}
    assert {str(error).partition(" ")[0] for error in errors} == {*names, "LOGSTATS_INTERVAL"}
    assert settings["DEPTH_LIMIT"] == 7
    assert settings["DOWNLOADER_MIDDLEWARES"].copy_to_dict() == project["DOWNLOADER_MIDDLEWARES"].copy_to_dict()
    assert settings["LOGSTATS_INTERVAL"] == 60.0


def test_the_class_of_a_collection_without_one_is_in_the_file_that_all_share(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    project = Settings({name: value for name, value in vars(defaults).items() if name.isupper()})
    project.set("CRAWLSPACE_COLLECTIONS_DIR", str(tmp_path))
    loader = CollectionLoader(project)
    assert (loader.load("demo").__module__, loader.own_class("demo")) == ("spiders.collection", None)


def test_a_spider_whose_name_is_that_of_no_collection(tmp_path: Path) -> None:
    project = Settings({name: value for name, value in vars(defaults).items() if name.isupper()})
    project.set("CRAWLSPACE_COLLECTIONS_DIR", str(tmp_path))
    project.set("SPIDER_MODULES", ["tests.integration.own_spiders"])
    loader = CollectionLoader(project)
    name = min(loader._spiders)
    with pytest.raises(KeyError) as raised:
        loader.load(name)
    assert f"'{name}' is the name of a spider in tests/integration/own_spiders/" in str(raised.value.args[0])


REQUESTED = [
    # URL                          collections that admit it
    ("http://a.example/x",         ["one"]),
    ("http://A.example",           ["one"]),
    ("http://b.example/x",         ["one", "two"]),
    ("http://c.example/",          []),
]  # fmt: skip


@pytest.mark.parametrize(("url", "names"), REQUESTED)
def test_the_collections_that_admit_a_url(tmp_path: Path, url: str, names: list[str]) -> None:
    """Of the only one, `scrapy parse` and `shell` take the spider. One with a mistake is none of them."""
    for name, hosts in {"one": ("a.example", "b.example"), "two": ("b.example",), "wrong": ("a.example", "nonsense *")}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "start_urls.txt").write_text("http://b.example/\n")
        (tmp_path / name / "crawl.rules").write_text("".join(f"allow domain {host}\n" for host in hosts) + "forbid domain *\n")
    project = Settings({name: value for name, value in vars(defaults).items() if name.isupper()})
    project.set("CRAWLSPACE_COLLECTIONS_DIR", str(tmp_path))
    assert CollectionLoader(project.frozencopy()).find_by_request(Request(url)) == names
