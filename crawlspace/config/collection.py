"""Read settings and collection files into one frozen, typed and validated value for each collection.

Scrapy returns `None` for an unknown setting, so a misspelt name would go unnoticed; here an unknown `CRAWLSPACE_` name, or a
value out of range, is an error that names the expected one.
"""

from __future__ import annotations

import os
import runpy
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.config.archive import ArchiveSettings, read_archive
from crawlspace.config.autothrottle import ThrottleSettings, read_throttle
from crawlspace.config.content import ContentSettings, read_content
from crawlspace.config.credential_headers import CredentialHosts, read_credential_hosts
from crawlspace.config.errors import placed
from crawlspace.config.file_reading import FileSettings, read_file_settings
from crawlspace.config.files import AllRules, StartUrl, is_there, read_all_rules, read_bytes, read_start_urls
from crawlspace.config.limits import read_limits
from crawlspace.config.on_finish import FinishCommand, read_on_finish
from crawlspace.config.orphans import read_orphans
from crawlspace.config.proxies.table import Proxies, read_proxies
from crawlspace.config.refresh.times import RefreshTimes, read_refresh
from crawlspace.config.rendering import BrowserSettings, read_browser, read_rendering
from crawlspace.config.scrapy_settings import check_scrapys_settings
from crawlspace.config.session_seal import Seal
from crawlspace.config.sinks import SinkSettings, check_options, sinks_of
from crawlspace.config.sites import SiteTable, mode_of, read_sites
from crawlspace.config.store_url import read_store_url
from crawlspace.config.url_options import read_url_options
from crawlspace.content.soft_errors import NAME as SOFT_ERRORS
from crawlspace.content.soft_errors import SoftErrors, read_soft_errors
from crawlspace.decision import Render
from crawlspace.errors import ConfigError, SettingError, UnknownCollection, did_you_mean
from crawlspace.frontier.delay_schedule import Timetable, read_timetable, read_zone
from crawlspace.frontier.site_queue import Backoff, GivingUp
from crawlspace.frontier.source_weights import NAME as SOURCE_WEIGHTS
from crawlspace.frontier.source_weights import read_weights
from crawlspace.model import Source
from crawlspace.parsing import (
    boolean,
    duration,
    integer,
    one_of,
    optional_integer,
    text,
)
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.url_options import UrlFolding
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.state.error_policy import NAME as HTTP_ERRORS
from crawlspace.state.error_policy import read_error_rules, read_retry_codes
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.text import quoted

PREFIX = "CRAWLSPACE_"
RENAMED = {
    "CRAWLSPACE_INDEX_FILE": 'the file of a sink: CRAWLSPACE_SINKS = {"local": {"type": "sqlite", "file": "data/shared.db"}}',
}
"""Settings of earlier versions, and what is to be written instead."""


class RefreshMode(StrEnum):
    """What the start of a cycle does (CRAWLSPACE_REFRESH_CYCLE)."""

    SCRATCH = "scratch"
    """Pending URLs are forgotten, and every known URL is fetched again, beginning with the start URLs."""
    APPEND = "append"
    """Every known URL becomes due, after those still pending."""
    PRIORITIZED = "prioritized"
    """As append, start URLs first."""
    SOFT = "soft"
    """As append, but not before the last cycle is complete."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The configuration of one collection. Durations are in seconds, sizes in bytes."""

    name: str
    folder: Path
    data_folder: Path
    sinks: SinkSettings
    start_urls: tuple[StartUrl, ...]
    rules: CrawlRules
    rules_file: Path | None
    global_rules: CrawlRules | None
    """The global crawl space: domain rules only. None without a file, which differs from a file without rules."""
    global_file: Path | None
    action_rules: CompiledActions | None
    """The rules of rules.xml; None if there are none and every URL is accepted, indexed and followed."""
    limits: Limits
    host_case_sensitive: bool
    sites: SiteTable
    browser: BrowserSettings
    proxies: Proxies
    url_folding: UrlFolding
    """What the URL options do to URLs. `start_urls` are folded."""
    credential_hosts: CredentialHosts
    content: ContentSettings
    files: FileSettings
    archive: ArchiveSettings
    soft_errors: SoftErrors
    policy: RecrawlPolicy
    rediscover: bool
    """After a change that loosens a check, pages of which it refused links are due at once."""
    orphans_after: int | None
    """After how many runs without a way from a start URL a URL is deleted (CRAWLSPACE_ORPHANS); None: it is kept."""
    continuous: bool
    """The crawl waits for due URLs instead of ending."""
    refresh: RefreshTimes
    refresh_mode: RefreshMode
    max_deletions: int
    max_deletions_percent: int
    """The deletion limit is exceeded by more than this share of the indexed documents and more than `max_deletions`."""
    robots_obey: bool
    robots_ttl_s: float
    user_agent: str
    robots_agent: str
    """The name matched with the groups of robots.txt."""
    lease_s: int
    max_redirects: int
    keeps_cookies: bool
    max_backlog: int
    weights: Mapping[Source, int]
    timetable: Timetable | None
    """Delays by time of the week."""
    max_sites: int | None
    share_address_delay: bool
    throttle: ThrottleSettings | None
    """How delays follow the latency of sites; None: they don't."""
    robots_delay_max_s: float
    backoff: Backoff
    giving_up: GivingUp
    metadata_along_links: bool
    on_finish: FinishCommand | None
    seal: Seal
    """How sessions are kept in the store."""
    store_url: str
    """Empty for a file in the data folder."""
    worker_timeout_s: float

    @property
    def index_file(self) -> Path:
        """The file of the embedded index, where it has one."""
        return self.sinks.index_file

    @property
    def store_file(self) -> Path:
        return self.data_folder / "state.db"

    @property
    def renders(self) -> bool:
        """Whether any page may be rendered, by a setting or rules.xml."""
        return self.sites.renders or (self.action_rules is not None and self.action_rules.renders)

    @property
    def content_hash(self) -> str:
        """Hexadecimal; changes whenever an unchanged page may yield another document, other links or another status."""
        content = self.content
        fields = (
            content.extraction,
            content.max_links,
            content.checksum_cut_off,
            content.checksum_title,
            content.obey_meta_robots,
            self.robots_obey,
            self.user_agent.partition("/")[0],  # robots directives may name it
            self.soft_errors.content_hash,
            self.files.of_contents,
            *filter(None, [self.sites.rendering_hash, self.url_folding.of_routes]),
        )
        return blake2b(repr(fields).encode(), digest_size=16).hexdigest()


def collection_names(folder: str | Path) -> list[str]:
    """Return the collections, sorted: the folders in CRAWLSPACE_COLLECTIONS_DIR whose names don't begin with "." or "_".

    Raises ConfigError if the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name[0] not in "._" and entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{folder}, where the collections are, cannot be read: {error.strerror}") from error


def collection_folder(name: str, settings: Mapping[str, object]) -> Path:
    """Return the folder of a collection. Raises UnknownCollection, which lists the existing ones."""
    base = Path(str(settings["CRAWLSPACE_COLLECTIONS_DIR"]))
    folder = base / name
    known = collection_names(base)
    if name in known:
        return folder
    there = f"there are: {', '.join(known)}" if known else "there are none yet"
    way_out = did_you_mean(name, known, f"{there}. `scrapy startcollection {name} URL` makes one")
    raise UnknownCollection(f"no collection {quoted(name)} in {base}: {way_out}")


def read_settings_file(folder: Path) -> dict[str, object]:
    """Run a collection's settings.py and return its upper-case names. Raises ConfigError naming file and line."""
    path = folder / "settings.py"
    if not is_there(path):
        return {}
    read_bytes(path)  # its error messages are clearer than those of runpy
    try:
        names = runpy.run_path(str(path))
    except SyntaxError as error:
        raise ConfigError(f"{path}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        what = f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            what = f"the file ends the program ({what}); a settings file only sets names"
        raise ConfigError(f"{path}:{lines[-1] if lines else 1}: {what}") from error
    return {name: value for name, value in names.items() if name.isupper()}


def load_collection(name: str, settings: Mapping[str, object]) -> Collection:
    """Read and validate the configuration of a collection.

    `settings` are the project's, overridden by the collection's settings.py and the command line.
    Raises UnknownCollection, SettingError, ConfigError, RuleFileError.
    """
    folder = collection_folder(name, settings)
    try:
        refuse_unknown_names(settings)
        return configured(folder, settings, read_all_rules(folder, settings), read_start_urls(folder, settings))
    except SettingError as error:
        raise placed(error, folder) from None


def configured(folder: Path, settings: Mapping[str, object], rules: AllRules, start_urls: tuple[StartUrl, ...]) -> Collection:
    """Return the collection for rules and start URLs already read. Raises SettingError, ConfigError."""
    data_folder = Path(str(settings["CRAWLSPACE_DATA_DIR"])) / folder.name
    limits = read_limits(settings)
    sites = read_sites(settings, limits, read_url_options(settings), read_rendering(settings))
    actions = compile_actions(rules.action_rules, settings)
    folding = sites.url_folding(
        lambda page: mode_of(page, None if actions is None else actions.evaluate(page), sites) is not Render.NEVER
    )
    start_urls = tuple(replace(start, url=folding.fold(start.url)) for start in start_urls)
    check_scrapys_settings(settings)
    share_address_delay = boolean("CRAWLSPACE_SHARE_ADDRESS_DELAY", settings["CRAWLSPACE_SHARE_ADDRESS_DELAY"])
    robots_obey = boolean("ROBOTSTXT_OBEY", settings["ROBOTSTXT_OBEY"])
    give_up_s = duration("CRAWLSPACE_SITE_GIVE_UP", settings["CRAWLSPACE_SITE_GIVE_UP"], low=1)
    continuous = boolean("CRAWLSPACE_CONTINUOUS", settings["CRAWLSPACE_CONTINUOUS"])
    refresh = read_refresh(settings)
    sinks = sinks_of(settings, collection=folder.name, data_folder=data_folder)
    check_options(sinks)
    return Collection(
        name=folder.name,
        folder=folder,
        data_folder=data_folder,
        sinks=sinks,
        start_urls=start_urls,
        rules=rules.rules,
        rules_file=rules.rules_file,
        global_rules=rules.global_rules,
        global_file=rules.global_file,
        action_rules=actions,
        limits=limits,
        host_case_sensitive=boolean("CRAWLSPACE_HOST_CASE_SENSITIVE", settings["CRAWLSPACE_HOST_CASE_SENSITIVE"]),
        sites=sites,
        browser=read_browser(settings),
        proxies=read_proxies(settings, sites),
        url_folding=folding,
        credential_hosts=read_credential_hosts(settings, [start.url for start in start_urls]),
        content=read_content(settings, robots_obey=robots_obey),
        files=read_file_settings(settings),
        archive=read_archive(settings, data_folder),
        soft_errors=read_soft_errors(settings[SOFT_ERRORS]),
        policy=_policy(settings, refresh),
        rediscover=boolean("CRAWLSPACE_REDISCOVER", settings["CRAWLSPACE_REDISCOVER"]),
        orphans_after=read_orphans(settings["CRAWLSPACE_ORPHANS"]),
        continuous=continuous,
        refresh=refresh,
        refresh_mode=RefreshMode(one_of("CRAWLSPACE_REFRESH_MODE", settings["CRAWLSPACE_REFRESH_MODE"], tuple(RefreshMode))),
        max_deletions=integer("CRAWLSPACE_MAX_DELETIONS", settings["CRAWLSPACE_MAX_DELETIONS"], low=0),
        max_deletions_percent=integer(
            "CRAWLSPACE_MAX_DELETIONS_PERCENT", settings["CRAWLSPACE_MAX_DELETIONS_PERCENT"], low=0, high=100
        ),
        robots_obey=robots_obey,
        robots_ttl_s=duration("CRAWLSPACE_ROBOTS_TTL", settings["CRAWLSPACE_ROBOTS_TTL"], low=60),
        user_agent=text("USER_AGENT", settings["USER_AGENT"]),
        robots_agent=_robots_agent(settings),
        lease_s=round(duration("CRAWLSPACE_LEASE_S", settings["CRAWLSPACE_LEASE_S"], low=10)),
        max_redirects=_redirects(settings),
        keeps_cookies=boolean("COOKIES_ENABLED", settings["COOKIES_ENABLED"]),
        max_backlog=integer("CRAWLSPACE_MAX_BACKLOG", settings["CRAWLSPACE_MAX_BACKLOG"], low=100),
        weights=read_weights(settings[SOURCE_WEIGHTS]),
        timetable=read_timetable(
            "CRAWLSPACE_VARIABLE_DELAY",
            settings["CRAWLSPACE_VARIABLE_DELAY"],
            zone=read_zone("CRAWLSPACE_TIMEZONE", settings["CRAWLSPACE_TIMEZONE"]),
        ),
        max_sites=optional_integer("CRAWLSPACE_MAX_SITES", settings["CRAWLSPACE_MAX_SITES"], low=1),
        share_address_delay=share_address_delay,
        throttle=read_throttle(settings),
        robots_delay_max_s=duration("CRAWLSPACE_ROBOTS_DELAY_MAX", settings["CRAWLSPACE_ROBOTS_DELAY_MAX"], low=0),
        backoff=Backoff(
            duration("CRAWLSPACE_RETRY_WAIT", settings["CRAWLSPACE_RETRY_WAIT"], low=0),
            duration("CRAWLSPACE_BACKOFF_MAX", settings["CRAWLSPACE_BACKOFF_MAX"], low=0),
            give_up_s,
        ),
        giving_up=GivingUp(
            integer("CRAWLSPACE_MAX_SITE_FAILURES", settings["CRAWLSPACE_MAX_SITE_FAILURES"], low=3),
            give_up_s,
            continuous=continuous,
        ),
        metadata_along_links=boolean("CRAWLSPACE_METADATA_ALONG_LINKS", settings["CRAWLSPACE_METADATA_ALONG_LINKS"]),
        on_finish=read_on_finish(settings),
        seal=Seal(settings["CRAWLSPACE_SESSION_KEY"], is_shared=bool(settings["CRAWLSPACE_STORE_URL"])),
        store_url=read_store_url(settings["CRAWLSPACE_STORE_URL"], share_address_delay=share_address_delay),
        worker_timeout_s=duration("CRAWLSPACE_WORKER_TIMEOUT", settings["CRAWLSPACE_WORKER_TIMEOUT"], low=5),
    )


def known_names() -> list[str]:
    """Return the names of all our settings, those in `crawlspace/settings.py` and CRAWLSPACE_START_URLS."""
    return sorted([*(name for name in vars(defaults) if name.startswith(PREFIX)), "CRAWLSPACE_START_URLS"])


def refuse_unknown_names(names: Iterable[str]) -> None:
    """Raise SettingError for an unknown CRAWLSPACE_ name, with the most similar known one."""
    known = known_names()
    for name in names:
        if name in RENAMED:
            raise SettingError(f"{name} is now {RENAMED[name]}")
        if name.startswith(PREFIX) and name not in known:
            otherwise = "docs/settings.md lists them all"
            meant = did_you_mean(name, known, otherwise, cutoff=0.65, is_quoted=False, prefix=PREFIX)
            raise SettingError(f"unknown setting {name}: {meant}")


def compile_actions(rules: ActionRuleSet | None, settings: Mapping[str, object]) -> CompiledActions | None:
    names = ("CRAWLSPACE_DEFAULT_ACCEPT", "CRAWLSPACE_DEFAULT_INDEX", "CRAWLSPACE_DEFAULT_FOLLOW")
    accept, index, follow = (boolean(name, settings[name]) for name in names)
    if not (rules and rules.rules) and accept and index and follow:
        return None
    in_case = boolean("CRAWLSPACE_HOST_CASE_SENSITIVE", settings["CRAWLSPACE_HOST_CASE_SENSITIVE"])
    return CompiledActions(rules or ActionRuleSet(), accept=accept, index=index, follow=follow, host_case_sensitive=in_case)


def _redirects(settings: Mapping[str, object]) -> int:
    most = integer("REDIRECT_MAX_TIMES", settings["REDIRECT_MAX_TIMES"], low=0)
    return most if boolean("REDIRECT_ENABLED", settings.get("REDIRECT_ENABLED", True)) else 0


def _robots_agent(settings: Mapping[str, object]) -> str:
    own = settings.get("ROBOTSTXT_USER_AGENT")
    return text("ROBOTSTXT_USER_AGENT", own) if own else text("USER_AGENT", settings["USER_AGENT"])


def _policy(settings: Mapping[str, object], refresh: RefreshTimes) -> RecrawlPolicy:
    low = round(duration("CRAWLSPACE_REFRESH_MIN", settings["CRAWLSPACE_REFRESH_MIN"], low=1))
    high = round(duration("CRAWLSPACE_REFRESH_MAX", settings["CRAWLSPACE_REFRESH_MAX"], low=1))
    if low > high:
        raise SettingError(f"CRAWLSPACE_REFRESH_MIN ({low} s) is above CRAWLSPACE_REFRESH_MAX ({high} s); make it smaller")
    starts = settings["CRAWLSPACE_START_REFRESH"]
    start = low if starts is None else round(duration("CRAWLSPACE_START_REFRESH", starts, low=1))
    if start > high:
        raise SettingError(f"CRAWLSPACE_START_REFRESH ({start} s) is above CRAWLSPACE_REFRESH_MAX ({high} s); make it smaller")
    retries = boolean("RETRY_ENABLED", settings.get("RETRY_ENABLED", True))
    return RecrawlPolicy(
        refresh_min_s=low,
        refresh_max_s=high,
        start_refresh_s=start,
        age_counts=refresh.age_counts,
        retry_times=integer("RETRY_TIMES", settings["RETRY_TIMES"], low=0, high=100) if retries else 0,
        retry_wait_s=duration("CRAWLSPACE_RETRY_WAIT", settings["CRAWLSPACE_RETRY_WAIT"], low=0),
        max_temporary_errors=integer("CRAWLSPACE_MAX_TEMPORARY_ERRORS", settings["CRAWLSPACE_MAX_TEMPORARY_ERRORS"], low=1),
        error_rules=read_error_rules(settings[HTTP_ERRORS]),
        retry_codes=read_retry_codes(settings.get("RETRY_HTTP_CODES")),
        host_fetches=integer("CRAWLSPACE_HOST_FETCHES", settings["CRAWLSPACE_HOST_FETCHES"], low=1, high=60),
        host_failed_percent=integer(
            "CRAWLSPACE_HOST_FAILURES_PERCENT", settings["CRAWLSPACE_HOST_FAILURES_PERCENT"], low=1, high=100
        ),
    )


__all__ = [
    "Collection",
    "ContentSettings",
    "RefreshMode",
    "StartUrl",
    "collection_folder",
    "collection_names",
    "configured",
    "known_names",
    "load_collection",
    "read_settings_file",
    "refuse_unknown_names",
]
