"""Settings whose default is computed."""

from __future__ import annotations

import pytest

from crawlspace.settings import commands_module


@pytest.mark.parametrize(
    ("command_line", "module"),
    [
        ("bin/scrapy explain demo http://a.example/", "crawlspace.commands.explain"),
        ("bin/scrapy import-fast a.xml", "crawlspace.commands.import-fast"),
        ("scrapy/__main__.py crawl demo", "crawlspace.commands.crawl"),
        ("bin/scrapy shell", ""),
        ("bin/scrapy misspelt", ""),
        ("bin/scrapy ../commands/crawl", ""),
        ("bin/scrapy", "crawlspace.commands"),
        ("bin/scrapy -h", "crawlspace.commands"),
        ("pytest/__main__.py crawl", "crawlspace.commands"),
        ("", "crawlspace.commands"),
    ],
)
def test_only_the_called_command_is_imported(command_line: str, module: str) -> None:
    assert commands_module(command_line.split()) == module
