"""The rules alone, as a Scrapy add-on: for a project with spiders, a scheduler and middlewares of its own.

    ADDONS = {"crawlspace.addon.CrawlSpaceRules": 500}

Nothing of the project is replaced: two downloader middlewares and a spider middleware are added to its own, the settings of the crawl space
get their defaults, and our download handler takes the place of Scrapy's, so that the address rules hold for connections.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace
from pathlib import Path

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed
from twisted.internet.asyncioreactor import AsyncioSelectorReactor

from crawlspace import settings as defaults
from crawlspace.errors import CrawlspaceError, RuleFileError
from crawlspace.rules.xml.parser import what_is_not_read
from crawlspace.runtime.components.addon_rules import (
    OUR_HANDLER,
    SCHEMES,
    AddonRules,
    ForbiddenAddresses,
    HasRules,
    LinksWithinRules,
    OutsideRefused,
    SharedResolver,
)
from crawlspace.runtime.components.addon_settings import (
    SETTINGS,
    folder_of_spider,
    refuse_unknown,
    rules_folder,
    rules_of,
    settings_without_effect,
)

logger = logging.getLogger(__name__)

COMPONENTS: tuple[tuple[str, type, int], ...] = (
    ("DOWNLOADER_MIDDLEWARES", OutsideRefused, 60),  # before robots.txt, which need not be requested for what is refused
    ("DOWNLOADER_MIDDLEWARES", ForbiddenAddresses, 800),  # behind all that would try again
    ("SPIDER_MIDDLEWARES", LinksWithinRules, 100),  # sees what the project's own middlewares have made of a request
)


class CrawlSpaceRules(HasRules):
    """The add-on. Its rules are read when the crawl of a spider begins, and stay as they are until it ends."""

    def __init__(self, rules: AddonRules) -> None:
        self.rules = rules

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Install a resolver that applies the address rules, if there are any and the project has not chosen its own.

        The resolver belongs to the process, so this comes before any spider is known.
        """
        if not settings.getpriority("TWISTED_DNS_RESOLVER") and _may_have_address_rules(rules_folder(settings)):
            resolver = f"{SharedResolver.__module__}.{SharedResolver.__qualname__}"
            settings.set("TWISTED_DNS_RESOLVER", resolver, priority="addon")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CrawlSpaceRules | NothingCrawled:
        """Read rules and limits. Where they hold a mistake, log all of them; the crawl then ends before it has begun.

        Raises what is wrong as a CrawlspaceError where the crawl is an asyncio task, as in `scrapy crawl` on Scrapy's usual reactor.
        """
        spider = crawler.spider
        if spider is None or _is_of_a_scrapy_command(spider):
            raise NotConfigured
        try:
            return cls(read_rules(spider, crawler))
        except CrawlspaceError as error:
            lines = "\n" if isinstance(error, RuleFileError) else " "  # carets are below what they point at
            _report(f"{spider.name} is not crawled:{lines}{error}", crawler.settings)
            if _ends_task():
                raise
            return NothingCrawled(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the middlewares to those of the project, and our download handler unless the project has one of its own."""
        for setting, component, order in COMPONENTS:
            settings.setdefault_in_component_priority_dict(setting, component, order)
        own = dict(settings["DOWNLOAD_HANDLERS"] or {})
        if _has_asyncio(settings) and not any(scheme in own for scheme in SCHEMES):
            priority = max(SETTINGS_PRIORITIES["addon"], settings.getpriority("DOWNLOAD_HANDLERS") or 0)
            settings.set("DOWNLOAD_HANDLERS", {**own, **dict.fromkeys(SCHEMES, OUR_HANDLER)}, priority=priority)


class NothingCrawled:
    """Stands in for the add-on where the rules can't be read, and ends the crawl as soon as the spider is open, with exit status 1."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    def update_settings(self, settings: BaseSettings) -> None:
        """No pipeline and no export is opened for nothing: an export could empty the file of the last crawl."""
        for setting in ("ITEM_PIPELINES", "FEEDS"):
            settings.set(setting, {}, priority=SETTINGS_PRIORITIES["cmdline"] + 1)

    def spider_opened(self) -> None:
        raise CloseSpider("rules_error")

    def spider_closed(self) -> None:
        self._crawler.spider = None  # by this Scrapy's commands recognise a crawl that could not begin


def read_rules(spider: Spider, crawler: Crawler) -> AddonRules:
    """Read and compile the rules of a spider. Raises RuleFileError with every mistake of both files, SettingError, ConfigError."""
    settings = crawler.settings
    for name in list(settings):
        refuse_unknown(name)
    for name in SETTINGS:
        settings.set(name, getattr(defaults, name), priority="addon")
    try:
        rules = rules_of(spider.name, getattr(spider, "start_urls", None) or (), settings)
    except RuleFileError as error:  # the files of all spiders have the same names, so the folder must be named
        folder = folder_of_spider(spider.name, rules_folder(settings))
        raise RuleFileError([replace(mistake, file=str(folder / mistake.file)) for mistake in error.mistakes]) from error
    for sentence in settings_without_effect(settings):
        logger.warning("%s", sentence)
    if rules.actions is not None and (not_read := what_is_not_read(rules.actions)):
        logger.warning("rules.xml: %s", not_read)
    return AddonRules(rules.space, rules.sites, crawler)


def _may_have_address_rules(folder: Path) -> bool:
    """Return whether a folder may have address rules. Searches the text only: mistakes are reported where the file is read."""
    try:
        return any(_may_name_addresses(path / "crawl.rules") for path in (folder, *folder.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _may_name_addresses(file: Path) -> bool:
    try:
        return b"address" in file.read_bytes().lower()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    except OSError:
        return True


def _has_asyncio(settings: BaseSettings) -> bool:
    """Return whether the crawl will run on asyncio, which our download handler needs."""
    if not settings.getbool("TWISTED_REACTOR_ENABLED"):
        return True
    reactor = settings["TWISTED_REACTOR"]
    return (
        issubclass(load_object(reactor), AsyncioSelectorReactor)
        if reactor
        else is_reactor_installed() and is_asyncio_reactor_installed()
    )


def _is_of_a_scrapy_command(spider: Spider) -> bool:
    """`scrapy fetch`, `parse` and `check` replace the start of the class: they request the URLs named by a person."""
    return str(getattr(type(spider).start, "__module__", "")).startswith("scrapy.commands.")


def _report(message: str, settings: BaseSettings) -> None:
    """Log a message, and write it where nothing is logged: the exit status alone would not help."""
    logger.critical("%s", message)
    if not settings.getbool("LOG_ENABLED"):
        sys.stderr.write(f"{message}\n")


def _ends_task() -> bool:
    """Whether this runs in an asyncio task, which then ends with the error; asyncio must not log it a second time."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    if task is None:
        return False
    task.add_done_callback(_retrieve)
    return True


def _retrieve(task: asyncio.Task[object]) -> None:
    if not task.cancelled():
        task.exception()
