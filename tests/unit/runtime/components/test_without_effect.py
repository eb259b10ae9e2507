"""Where a setting without effect was set: what the project's template and Scrapy have themselves is nobody's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlspace import settings as defaults
from crawlspace.runtime.components.scrapy_effects import without_effect
from spiders.collection import CollectionSpider

Places = list[tuple[str, int, str]]


class Tuned(CollectionSpider):
    name = "demo"
    custom_settings = {  # noqa: RUF012 - as Scrapy's documentation has it
        "ROBOTSTXT_OBEY": False,
        "JOBDIR": "job",
    }


class Inheriting(Tuned):
    allowed_domains = ()  # empty: asks for nothing
    rules = ("one",)


FOUND: list[tuple[dict[str, Any], str, dict[str, Any], type[CollectionSpider] | None, Places]] = [
    # of the project, settings.py of the collection, on the command line, class; file, line and code of what is found
    ({}, "", {}, None, []),
    ({"JOBDIR": "job"}, "", {}, None, [("settings of the project", 0, "no-effect")]),
    ({"DEPHT_LIMIT": 3}, "", {}, None, [("settings of the project", 0, "misspelt-setting")]),
    ({"DOWNLOAD_DELAY_JITTER": 0, "STATS_DUMP": False, "COOKIES_ENABLED": False}, "", {}, None, []),
    ({"JOBDIR": "job"}, "JOBDIR = None\n", {}, None, []),
    ({"JOBDIR": "job"}, "JOBDIR = 'own'\n", {}, None, [("settings.py", 1, "no-effect")]),
    ({"JOBDIR": "job"}, "JOBDIR = 'own'\n", {"JOBDIR": "mine"}, None, [("-s", 0, "no-effect")]),
    ({}, "", {"DEPHT_LIMIT": "3", "DOWNLOAD_TIMEOUT": "3"}, None, [("-s", 0, "misspelt-setting")]),
    ({}, "", {}, Tuned, [("tests/unit/runtime/components/test_without_effect.py", 22, "no-effect")]),
    ({}, "JOBDIR = 'own'\n", {}, Tuned, [("settings.py", 1, "no-effect"), ("tests/unit/runtime/components/test_without_effect.py", 22, "set-twice")]),
    ({}, "JOBDIR = ''\nDNS_TIMEOUT = 3\n", {"DNS_TIMEOUT": 3}, None, []),
    ({}, "", {"JOBDIR": ""}, Inheriting, [("tests/unit/runtime/components/test_without_effect.py", 28, "no-effect")]),
]  # fmt: skip


@pytest.mark.parametrize(("project", "own", "given", "spider", "found"), FOUND)
def test_where(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    project: dict[str, Any],
    own: str,
    given: dict[str, Any],
    spider: type[CollectionSpider] | None,
    found: Places,
) -> None:
    monkeypatch.chdir(Path(__file__).parents[4])
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "settings.py").write_text(own, encoding="utf-8")
    settings = Settings({name: value for name, value in vars(defaults).items() if name.isupper()})
    settings.setdict({**project, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)}, priority="project")
    settings.setdict(given, priority="cmdline")
    (Demo if spider is None else spider).update_settings(settings)
    places = [(one.file, one.line, one.code) for one in without_effect(spider, settings, "demo")]
    assert sorted(places) == sorted(found)


class Demo(CollectionSpider):
    name = "demo"
