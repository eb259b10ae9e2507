"""A Scrapy project as a person has it, with the add-on and nothing else of this project."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.command_line import ROOT, CompletedRun, run_scrapy
from tests.sites import Server

SETTINGS = """\
SPIDER_MODULES = ["spiders"]
CONCURRENT_REQUESTS = 1
ROBOTSTXT_OBEY = True
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "DEBUG"
DOWNLOADER_MIDDLEWARES = {"middlewares.SeesRequests": 543}
SPIDER_MIDDLEWARES = {"middlewares.SeesLinks": 543}
ITEM_PIPELINES = {"pipelines.KeepsItems": 300}
ADDONS = {"crawlspace.addon.CrawlSpaceRules": 500}
"""


SHOP = """\
import scrapy


class Shop(scrapy.Spider):
    name = "shop"

    def __init__(self, start="", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = start.split()

    def parse(self, response):
"""
"""A spider, but for what it does with a page."""


SPIDERS = (
    SHOP
    + """\
        yield {"url": response.url, "rules": response.meta["crawlspace_rules"]}
        yield from response.follow_all(css="a")


class OwnWays(Shop):
    name = "own_ways"

    async def start(self):
        yield scrapy.Request(self.start_urls[0])

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow("/soon/1")
        yield response.follow("/first", priority=1000)
        yield response.follow("/free/of/all/rules.zip", meta={"crawlspace_rules": False}, callback=self.taken)
        yield response.follow("/refused/by/rules.zip", callback=self.taken)

    def taken(self, response):
        yield {"url": response.url, "type": response.headers["Content-Type"].decode()}
"""
)


MIDDLEWARES = """\
class SeesRequests:
    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.stats)

    def __init__(self, stats):
        self.stats = stats

    def process_request(self, request):
        self.stats.set_value("seen/requests", [*self.stats.get_value("seen/requests", []), request.url])


class SeesLinks:
    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.stats)

    def __init__(self, stats):
        self.stats = stats

    async def process_spider_output_async(self, response, result):
        async for one in result:
            if hasattr(one, "callback"):
                self.stats.set_value("seen/links", [*self.stats.get_value("seen/links", []), one.url])
            yield one

    def process_spider_output(self, response, result):
        for one in result:
            if hasattr(one, "callback"):
                self.stats.set_value("seen/links", [*self.stats.get_value("seen/links", []), one.url])
            yield one
"""


PIPELINES = """\
import json


class KeepsItems:
    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.stats)

    def __init__(self, stats):
        self.stats = stats
        self.items = []

    def process_item(self, item):
        self.items.append(item)
        return item

    def close_spider(self):
        with open("left.json", "w") as file:
            json.dump({"items": self.items, "stats": self.stats.get_stats()}, file, default=str)
"""


class PlainProject:
    """A Scrapy project in a temporary folder, run as its user runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write(
            {
                "scrapy.cfg": "[settings]\ndefault = settings\n",
                "settings.py": SETTINGS,
                "spiders.py": SPIDERS,
                "middlewares.py": MIDDLEWARES,
                "pipelines.py": PIPELINES,
            }
        )

    def write(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    def crawl(self, *starts: str, options: Sequence[str] = (), spider: str = "shop") -> CompletedRun:
        return self.scrapy("crawl", spider, "-a", f"start={' '.join(starts)}", *options)

    def scrapy(self, *args: str) -> CompletedRun:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return run_scrapy(args, cwd=self.folder, env={"PYTHONPATH": path})

    def left(self) -> dict[str, Any]:
        left: dict[str, Any] = json.loads((self.folder / "left.json").read_text(encoding="utf-8"))
        return left

    def stats(self, prefix: str = "crawlspace/") -> dict[str, Any]:
        return {name.removeprefix(prefix): value for name, value in self.left()["stats"].items() if name.startswith(prefix)}

    def rules_of(self, server: Server) -> dict[str, dict[str, Any]]:
        """What the spider found in `response.meta`, by path."""
        return {item["url"].removeprefix(server.url("")): item["rules"] for item in self.left()["items"]}


def fetched(server: Server) -> list[str]:
    return [path for path in server.paths() if path != "/robots.txt"]
