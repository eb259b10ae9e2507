"""Every setting of Scrapy is classified, so that a new version of it with another setting is noticed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import scrapy
from scrapy.settings import default_settings

from crawlspace.runtime.components.scrapy_effects import (
    AS_IN_SCRAPY,
    KNOWN,
    OF_COMPONENTS,
    OF_THE_PROCESS,
    WITH_DIFFERENCES,
    WITHOUT_EFFECT,
)
from tests.conftest import assert_same

_READ = re.compile(r'settings(?:\.get\w*\(|\[)\s*"([A-Z0-9_]+)"')


def test_every_setting_of_scrapy_is_classified() -> None:
    of_scrapy = {name for name in vars(default_settings) if name.isupper()}
    for module in Path(scrapy.__file__).parent.rglob("*.py"):
        of_scrapy.update(_READ.findall(module.read_text(encoding="utf-8")))
    assert_same(KNOWN, of_scrapy)


def test_every_setting_is_of_one_class() -> None:
    classified = Counter([*WITHOUT_EFFECT, *WITH_DIFFERENCES, *AS_IN_SCRAPY, *OF_COMPONENTS])
    assert [name for name, number in classified.items() if number > 1] == []
    assert KNOWN >= OF_THE_PROCESS


REPORTED = [
    # setting, value, whether it is reported
    ("DEPTH_PRIORITY", 1, True),
    ("DEPTH_PRIORITY", 0, False),
    ("DEPTH_PRIORITY", "0", False),
    ("RANDOMIZE_DOWNLOAD_DELAY", True, True),
    ("RANDOMIZE_DOWNLOAD_DELAY", False, False),
    ("REFERER_ENABLED", "False", False),
    ("CRAWLSPIDER_FOLLOW_LINKS", False, True),
    ("DOWNLOAD_SLOTS", {}, False),
    ("DOWNLOAD_SLOTS", {"a.test": {"delay": 1}}, True),
    ("JOBDIR", None, False),
    ("DUPEFILTER_CLASS", "mine.Filter", True),
]


@pytest.mark.parametrize(("name", "value", "reported"), REPORTED)
def test_a_value_that_asks_for_what_happens_anyway_is_not_reported(name: str, value: object, reported: bool) -> None:
    assert WITHOUT_EFFECT[name].is_reported(value) is reported
