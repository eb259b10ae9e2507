"""Which rules hold for a spider in a project with the add-on: its folder, its limits, and the crawl space that they make."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg

from crawlspace import settings as defaults
from crawlspace.config.collection import PREFIX, compile_actions, refuse_unknown_names
from crawlspace.config.files import read_own_rules
from crawlspace.config.limits import read_limits
from crawlspace.config.sites import SiteLimitTable, SiteTable, read_sites
from crawlspace.errors import ConfigError, SettingError, did_you_mean
from crawlspace.parsing import boolean, integer, words
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.urls import MalformedUrl, Url, parse

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
    "CRAWLSPACE_RULES_XML_REGEX",
    "CRAWLSPACE_SITES",
)
"""The settings of ours that hold here, with the defaults of crawlspace/settings.py."""
SITE_LIMITS = {"max_path_depth", "max_urls_per_host", "follow_query_strings", "exclude_extensions", "mime_types"}
"""Settings of CRAWLSPACE_SITES that apply here."""
LONGEST_URL = 65_536
"""Characters; also where URLLENGTH_LIMIT is 0, which for Scrapy is no limit."""


@dataclass(frozen=True, slots=True)
class AddonLimits:
    """Settings of a spider's crawl space."""

    limits: Limits
    sites: SiteTable
    host_case_sensitive: bool
    values: Mapping[str, object]

    def actions(self, rules: ActionRuleSet | None) -> CompiledActions | None:
        return compile_actions(rules, self.values)

    def space(self, rules: CrawlRules, actions: ActionRuleSet | None, start_urls: Sequence[Url]) -> CrawlSpace:
        return CrawlSpace(
            rules,
            self.limits,
            start_urls,
            host_case_sensitive=self.host_case_sensitive,
            actions=self.actions(actions),
            site_limits=SiteLimitTable(self.sites) if self.sites.limits_differ else None,
        )


@dataclass(frozen=True, slots=True)
class SpiderRules:
    """The rules that hold for a spider: their folder, the crawl space, and what it was made of."""

    folder: Path
    space: CrawlSpace
    start_urls: Sequence[Url]
    sites: SiteTable
    actions: ActionRuleSet | None


def rules_of(name: str, start_urls: Iterable[object], settings: BaseSettings) -> SpiderRules:
    """Read and compile the rules of a spider. Raises RuleFileError with every mistake of both files, SettingError, ConfigError."""
    folder = folder_of_spider(name, rules_folder(settings))
    read = read_addon_limits(values_of(settings))
    starts = start_urls_of(start_urls, settings)
    rules, _, actions = read_own_rules(folder, read.values)
    check_start_urls(starts, read.limits)
    return SpiderRules(folder, read.space(rules, actions, starts), starts, read.sites, actions)


def read_addon_limits(values: Mapping[str, object]) -> AddonLimits:
    """Return what `values_of` settings say. Raises SettingError."""
    limits = read_limits(values)
    case = boolean("CRAWLSPACE_HOST_CASE_SENSITIVE", values["CRAWLSPACE_HOST_CASE_SENSITIVE"])
    compile_actions(None, values)
    return AddonLimits(limits, read_sites(values), case, values)


def rules_folder(settings: BaseSettings) -> Path:
    """Return the folder CRAWLSPACE_RULES_DIR, else `rules`, next to scrapy.cfg or else in the working directory."""
    scrapy_cfg = closest_scrapy_cfg()
    folder = Path(scrapy_cfg).parent if scrapy_cfg else Path.cwd()
    return folder / str(settings.get(RULES_DIR) or "rules")


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


def values_of(settings: Mapping[str, object]) -> Mapping[str, object]:
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


def start_urls_of(spider: Iterable[object], settings: Mapping[str, object]) -> list[Url]:
    """Return the start URLs of a spider, and CRAWLSPACE_START_URLS for one that makes them while it runs."""
    named = [*spider, *words(START_URLS, settings.get(START_URLS) or [])]
    found = []
    for url in named:
        try:
            found.append(parse(str(url)))
        except MalformedUrl:
            continue  # reported by Scrapy, or when the request is refused
    return found


def check_start_urls(found: Sequence[Url], limits: Limits) -> None:
    """Raise ConfigError for a limit that needs start URLs, where there are none."""
    for name, needed in (
        ("CRAWLSPACE_FOLLOW_OFFSITE_LINKS is off", not limits.follow_offsite_links),
        ("CRAWLSPACE_INDEX_ENTIRE_SITE is on", limits.index_entire_site),
    ):
        if needed and not found:
            raise ConfigError(f"{name}, which needs start URLs, and the spider has no start_urls: name them in {START_URLS}")


def settings_without_effect(settings: Mapping[str, object]) -> list[str]:
    """Return sentences on settings of ours without effect in the add-on, which would be noticed only when it is too late."""
    found = []
    idle = sorted(name for name in settings if name.startswith(PREFIX) and name not in {*SETTINGS, RULES_DIR, START_URLS})
    if idle:
        found.append(f"without effect in the add-on: {', '.join(idle)}")
    sites = settings.get("CRAWLSPACE_SITES")
    keys = {str(key) for values in sites.values() for key in values} if isinstance(sites, Mapping) else set()
    if keys - SITE_LIMITS:
        found.append(
            f"without effect in the add-on: {', '.join(sorted(keys - SITE_LIMITS))} of CRAWLSPACE_SITES; use Scrapy's DOWNLOAD_SLOTS"
        )
    return found


def refuse_unknown(name: str) -> None:
    """Raise SettingError for a CRAWLSPACE_ name that does not exist."""
    if name == RULES_DIR or not name.startswith(PREFIX):
        return
    if meant := did_you_mean(name, [RULES_DIR], cutoff=0.9, is_quoted=False):
        raise SettingError(f"unknown setting {name}: {meant}")
    refuse_unknown_names([name])
