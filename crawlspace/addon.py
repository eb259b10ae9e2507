"""The rules alone, as a Scrapy add-on: for a project with spiders, a scheduler and middlewares of its own.

    ADDONS = {"crawlspace.addon.CrawlSpaceRules": 500}

Nothing of the project is replaced: two downloader middlewares and a spider middleware come beside its own, and the settings of the
crawl space get their defaults.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.conf import closest_scrapy_cfg

from crawlspace import settings as defaults
from crawlspace.config.collection import PREFIX, compile_actions, refuse_unknown_names
from crawlspace.config.files import read_own_rules
from crawlspace.config.limits import read_limits
from crawlspace.config.sites import SiteLimitTable, read_sites
from crawlspace.errors import ConfigError, CrawlspaceError, RuleFileError, SettingError, did_you_mean
from crawlspace.parsing import boolean, integer, words
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.runtime.addon_rules import (
    AddonRules,
    ForbiddenAddresses,
    HasRules,
    LinksWithinRules,
    OutsideRefused,
    SharedResolver,
)
from crawlspace.urls import MalformedUrl, Url, parse

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

RULES_DIR = "CRAWLSPACE_RULES_DIR"
"""The setting that names the folder of the rules. One that is not absolute counts from the folder of scrapy.cfg."""
START_URLS = "CRAWLSPACE_START_URLS"
FILES = ("crawl.rules", "rules.xml")
SETTINGS = (
    "CRAWLSPACE_SCHEMES",
    "CRAWLSPACE_FOLLOW_QUERY_STRINGS",
    "CRAWLSPACE_EXCLUDE_EXTENSIONS",
    "CRAWLSPACE_MIME_TYPES",
    "CRAWLSPACE_MAX_PATH_DEPTH",
    "CRAWLSPACE_FOLLOW_OFFSITE_LINKS",
    "CRAWLSPACE_INDEX_ENTIRE_SITE",
    "CRAWLSPACE_MAX_REPEATED_SEGMENTS",
    "CRAWLSPACE_MAX_URLS_PER_HOST",
    "CRAWLSPACE_HOST_CASE_SENSITIVE",
    "CRAWLSPACE_DEFAULT_ACCEPT",
    "CRAWLSPACE_DEFAULT_INDEX",
    "CRAWLSPACE_DEFAULT_FOLLOW",
    "CRAWLSPACE_SITES",
)
"""The settings of ours that hold here, with the defaults of crawlspace/settings.py."""
SITE_LIMITS = {"max_path_depth", "max_urls_per_host", "follow_query_strings"}
"""What of CRAWLSPACE_SITES holds here."""
LONGEST_URL = 65_536
"""Characters; also where URLLENGTH_LIMIT is 0, which for Scrapy is no limit."""
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
        """Have names looked up by a resolver that asks the address rules, where there are any and the project has not chosen its own.

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
        """Add the middlewares to those of the project."""
        for setting, component, order in COMPONENTS:
            settings.setdefault_in_component_priority_dict(setting, component, order)


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


def rules_folder(settings: BaseSettings) -> Path:
    """Return the folder CRAWLSPACE_RULES_DIR, else `rules`, beside scrapy.cfg or else in the working directory."""
    scrapy_cfg = closest_scrapy_cfg()
    beside = Path(scrapy_cfg).parent if scrapy_cfg else Path.cwd()
    return beside / str(settings.get(RULES_DIR) or "rules")


def folder_of_spider(name: str, folder: Path) -> Path:
    """Return the spider's own folder within that of the rules if there is one, else the latter. Raises ConfigError if it has no rules."""
    own = folder / name
    chosen = own if Path(name).name == name and own.is_dir() else folder
    try:
        found = [path.name for path in chosen.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        found = []
    except OSError as error:
        raise ConfigError(f"{chosen} cannot be read: {error.strerror}") from error
    if not any(file in found for file in FILES):
        raise ConfigError(
            f"it has no rules: there is no {' and no '.join(FILES)} in {chosen}; write one of them, or name their folder in {RULES_DIR}"
        )
    return chosen


def read_rules(spider: Spider, crawler: Crawler) -> AddonRules:
    """Read and compile the rules of a spider. Raises RuleFileError with every mistake of both files, SettingError, ConfigError."""
    settings = crawler.settings
    _take_defaults(settings)
    values = _values(settings)
    folder = folder_of_spider(spider.name, rules_folder(settings))
    limits = read_limits(values)
    sites = read_sites(values, limits)
    rules, actions = _both_rules(folder)
    space = CrawlSpace(
        rules,
        limits,
        _start_urls(spider, values, limits),
        host_case_sensitive=boolean("CRAWLSPACE_HOST_CASE_SENSITIVE", values["CRAWLSPACE_HOST_CASE_SENSITIVE"]),
        actions=compile_actions(actions, values),
        site_limits=SiteLimitTable(sites) if sites.limits_differ else None,
    )
    _warn_of_settings(settings)
    return AddonRules(space, sites, crawler)


def _take_defaults(settings: BaseSettings) -> None:
    """Raises SettingError for a CRAWLSPACE_ name that does not exist."""
    named = [name for name in settings if name.startswith(PREFIX) and name != RULES_DIR]
    for name in named:
        if meant := did_you_mean(name, [RULES_DIR], cutoff=0.9, is_quoted=False):
            raise SettingError(f"unknown setting {name}: {meant}")
    refuse_unknown_names(named)
    for name in SETTINGS:
        settings.set(name, getattr(defaults, name), priority="addon")


def _values(settings: BaseSettings) -> Mapping[str, object]:
    """The settings as they are read here: what only Scrapy itself looks at is not to be judged by what a collection may have."""
    longest = integer("URLLENGTH_LIMIT", settings["URLLENGTH_LIMIT"], low=0)
    ours = {name: value for name, value in vars(defaults).items() if name.startswith(PREFIX)}
    return ChainMap(
        {
            "URLLENGTH_LIMIT": min(longest or LONGEST_URL, LONGEST_URL),
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        },
        {str(name): value for name, value in settings.items()},
        ours,
    )


def _both_rules(folder: Path) -> tuple[CrawlRules, ActionRuleSet | None]:
    try:
        rules, _, actions = read_own_rules(folder)
    except RuleFileError as error:  # the files of all spiders have the same names, so the folder must be named
        raise RuleFileError([replace(mistake, file=str(folder / mistake.file)) for mistake in error.mistakes]) from error
    return rules, actions


def _start_urls(spider: Spider, settings: Mapping[str, object], limits: Limits) -> list[Url]:
    """Return the start URLs of the spider, and CRAWLSPACE_START_URLS for one that makes them while it runs. Raises ConfigError."""
    named = [*(getattr(spider, "start_urls", None) or ()), *words(START_URLS, settings.get(START_URLS) or [])]
    found = []
    for url in named:
        try:
            found.append(parse(str(url)))
        except MalformedUrl:
            continue  # reported by Scrapy, or when the request is refused
    for name, needed in (
        ("CRAWLSPACE_FOLLOW_OFFSITE_LINKS is off", not limits.follow_offsite_links),
        ("CRAWLSPACE_INDEX_ENTIRE_SITE is on", limits.index_entire_site),
    ):
        if needed and not found:
            raise ConfigError(f"{name}, which needs start URLs, and the spider has no start_urls: name them in {START_URLS}")
    return found


def _warn_of_settings(settings: Mapping[str, object]) -> None:
    """Warn of settings without effect here, which would be noticed only when it is too late."""
    idle = sorted(name for name in settings if name.startswith(PREFIX) and name not in {*SETTINGS, RULES_DIR, START_URLS})
    if idle:
        logger.warning("without effect in the add-on: %s", ", ".join(idle))
    sites = settings["CRAWLSPACE_SITES"]
    keys = {str(key) for values in sites.values() for key in values} if isinstance(sites, Mapping) else set()
    if keys - SITE_LIMITS:
        idle_keys = ", ".join(sorted(keys - SITE_LIMITS))
        logger.warning("without effect in the add-on: %s of CRAWLSPACE_SITES; use Scrapy's DOWNLOAD_SLOTS", idle_keys)


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


def _is_of_a_scrapy_command(spider: Spider) -> bool:
    """`scrapy fetch`, `parse` and `check` put a start of their own into the class: they ask for what a person names."""
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
