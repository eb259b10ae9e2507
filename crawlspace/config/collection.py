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

from crawlspace.config.access import CredentialHosts, default_headers, read_credential_hosts
from crawlspace.config.content import (
    ArchiveSettings,
    ContentSettings,
    SitemapSettings,
    read_archive,
    read_content,
    read_file_settings,
    read_sitemaps,
)
from crawlspace.config.files import AllRules, StartUrl, is_there, read_all_rules, read_bytes, read_start_urls
from crawlspace.config.monitoring import read_monitoring
from crawlspace.config.on_finish import FinishCommand, read_on_finish
from crawlspace.config.proxies import Proxies, read_proxies
from crawlspace.config.refresh import RefreshTimes, read_orphans, read_policy, read_refresh
from crawlspace.config.secrets import Seal, read_store_url
from crawlspace.config.sentences import placed, read
from crawlspace.config.sinks import SinkSettings, check_options, sinks_of
from crawlspace.config.sites import SiteTable, mode_of, read_sites
from crawlspace.content.extraction_rules import ExtractionRules
from crawlspace.content.soft_errors import SoftErrors, read_soft_errors
from crawlspace.content_settings import FileSettings
from crawlspace.decision import Render
from crawlspace.errors import ConfigError, SettingError, UnknownCollection, did_you_mean
from crawlspace.frontier.site_queue import Backoff, GivingUp
from crawlspace.frontier.source_weights import read_weights
from crawlspace.model import Source
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.url_options import UrlFolding
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.settings import (
    BoundsSection,
    BrowserSettings,
    DeletionsSection,
    IndexSection,
    LifecycleSection,
    MonitoringSettings,
    OfScrapySection,
    RequestsSection,
    RulesXmlSection,
    RunsSection,
    SitesSection,
    SpaceLimitsSection,
    ThrottleSettings,
    sections,
)
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.text import quoted

PREFIX = "CRAWLSPACE_"
RENAMED = {
    "CRAWLSPACE_INDEX_FILE": 'the file of a sink: CRAWLSPACE_SINKS = {"local": {"type": "sqlite", "file": "data/shared.db"}}',
}
"""Settings of earlier versions, and what is to be written instead."""


NEEDED = (
    ("ITEM_PIPELINES", "pipelines.dedupe.Fingerprint"),
    ("ITEM_PIPELINES", "pipelines.state.RecordState"),
    ("ITEM_PIPELINES", "pipelines.index.DrainIndex"),
    ("SPIDER_MIDDLEWARES", "crawlspace.runtime.components.one_outcome.OneOutcome"),
)
"""(setting, component) without which a crawl would not end."""
ITEM_PROCESSOR = "crawlspace.runtime.components.pipelines.PagePipelines"


class RefreshMode(StrEnum):
    """The effect of a cycle's start (CRAWLSPACE_REFRESH_CYCLE)."""

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
    named_hosts_any_address: bool
    """A rule that forbids all addresses does not hold for a host that an allow rule names."""
    sites: SiteTable
    browser: BrowserSettings
    proxies: Proxies
    url_folding: UrlFolding
    """Effect of the URL options. `start_urls` are folded."""
    credential_hosts: CredentialHosts
    content: ContentSettings
    sitemaps: SitemapSettings
    files: FileSettings
    archive: ArchiveSettings
    extraction_rules: ExtractionRules
    """Those of extract.toml; none without the file."""
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
    refresh_when_idle: bool
    """Whether a cycle begins before its time when nothing is left to do."""
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
    follows_offsite_redirects: bool
    """Whether redirects to other hosts are followed."""
    keeps_cookies: bool
    max_backlog: int
    weights: Mapping[Source, int]
    max_sites: int | None
    max_pages_in_turn: int | None
    """Pages of a site before another one gets its place among `max_sites`."""
    share_address_delay: bool
    throttle: ThrottleSettings | None
    """Adaptation of delays to latency; None: there is none."""
    robots_delay_max_s: float
    backoff: Backoff
    giving_up: GivingUp
    metadata_along_links: bool
    on_finish: FinishCommand | None
    processes: int
    """Those of a crawl, with the one that fetches and records."""
    runs_kept: int
    """Runs of which the history is kept."""
    monitoring: MonitoringSettings
    """The token is read."""
    seal: Seal
    """Encryption of sessions in the store."""
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
        content, files = self.content, self.files
        fields = (
            content.extraction,
            content.max_links,
            content.checksum_cut_off,
            content.checksum_title,
            content.obey_meta_robots,
            self.robots_obey,
            self.user_agent.partition("/")[0],  # robots directives may name it
            self.soft_errors.content_hash,
            (files.max_bytes, files.timeout_s, files.memory_bytes, files.follow_links, sorted(files.converters.items())),
            *content.text_and_fields,
            *filter(
                None,
                [
                    self.sites.rendering_hash,
                    self.url_folding.of_routes,
                    self.extraction_rules.content_hash,
                    self.sites.follow_hash,
                    self.sites.pages_hash,
                ],
            ),
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
    sites = read_sites(settings)
    actions = compile_actions(rules.action_rules, settings)
    folding = sites.url_folding(
        lambda page: mode_of(page, None if actions is None else actions.evaluate(page), sites) is not Render.NEVER
    )
    start_urls = tuple(replace(start, url=folding.fold(start.url)) for start in start_urls)
    check_scrapys_settings(settings)
    life, of_sites, deletions, requests = (
        read(LifecycleSection, settings),
        read(SitesSection, settings),
        read(DeletionsSection, settings),
        read(RequestsSection, settings),
    )
    of_scrapy, rules_xml = read(OfScrapySection, settings), read(RulesXmlSection, settings)
    refresh, throttle, runs = read_refresh(settings), read(ThrottleSettings, settings), read(RunsSection, settings)
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
        limits=sites.default.limits,
        host_case_sensitive=read(SpaceLimitsSection, settings).CRAWLSPACE_HOST_CASE_SENSITIVE,
        named_hosts_any_address=read(SpaceLimitsSection, settings).CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS,
        sites=sites,
        browser=read(BrowserSettings, settings),
        proxies=read_proxies(settings, sites),
        url_folding=folding,
        credential_hosts=read_credential_hosts(settings, [start.url for start in start_urls]),
        content=read_content(settings, robots_obey=requests.ROBOTSTXT_OBEY),
        sitemaps=read_sitemaps(settings, folding, are_read=lambda host, port: sites.of(host, port).reads_sitemaps),
        files=read_file_settings(settings),
        archive=read_archive(settings, data_folder),
        extraction_rules=rules.extraction_rules,
        soft_errors=read_soft_errors(life.CRAWLSPACE_SOFT_ERRORS),
        policy=read_policy(settings, refresh, sites),
        rediscover=life.CRAWLSPACE_REDISCOVER,
        orphans_after=read_orphans(deletions.CRAWLSPACE_ORPHANS),
        continuous=life.CRAWLSPACE_CONTINUOUS,
        refresh=refresh,
        refresh_when_idle=life.CRAWLSPACE_REFRESH_WHEN_IDLE,
        refresh_mode=RefreshMode(life.CRAWLSPACE_REFRESH_MODE),
        max_deletions=deletions.CRAWLSPACE_MAX_DELETIONS,
        max_deletions_percent=deletions.CRAWLSPACE_MAX_DELETIONS_PERCENT,
        robots_obey=requests.ROBOTSTXT_OBEY,
        robots_ttl_s=of_sites.CRAWLSPACE_ROBOTS_TTL,
        user_agent=requests.USER_AGENT,
        robots_agent=of_scrapy.ROBOTSTXT_USER_AGENT or requests.USER_AGENT,
        lease_s=round(life.CRAWLSPACE_LEASE_S),
        max_redirects=read(BoundsSection, settings).REDIRECT_MAX_TIMES if of_scrapy.REDIRECT_ENABLED else 0,
        follows_offsite_redirects=read(SpaceLimitsSection, settings).CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS,
        keeps_cookies=requests.COOKIES_ENABLED,
        max_backlog=read(IndexSection, settings).CRAWLSPACE_MAX_BACKLOG,
        weights=read_weights(of_sites.CRAWLSPACE_SOURCE_WEIGHTS),
        max_sites=of_sites.CRAWLSPACE_MAX_SITES,
        max_pages_in_turn=of_sites.CRAWLSPACE_MAX_PAGES_IN_TURN,
        share_address_delay=of_sites.CRAWLSPACE_SHARE_ADDRESS_DELAY,
        throttle=throttle if throttle.is_on else None,
        robots_delay_max_s=of_sites.CRAWLSPACE_ROBOTS_DELAY_MAX,
        backoff=Backoff(life.CRAWLSPACE_RETRY_WAIT, of_sites.CRAWLSPACE_BACKOFF_MAX, of_sites.CRAWLSPACE_SITE_GIVE_UP),
        giving_up=GivingUp(
            of_sites.CRAWLSPACE_MAX_SITE_FAILURES, of_sites.CRAWLSPACE_SITE_GIVE_UP, continuous=life.CRAWLSPACE_CONTINUOUS
        ),
        metadata_along_links=rules_xml.CRAWLSPACE_METADATA_ALONG_LINKS,
        on_finish=read_on_finish(settings),
        processes=runs.CRAWLSPACE_PROCESSES,
        runs_kept=runs.CRAWLSPACE_RUNS_KEPT,
        monitoring=read_monitoring(settings),
        seal=Seal(life.CRAWLSPACE_SESSION_KEY, is_shared=bool(life.CRAWLSPACE_STORE_URL)),
        store_url=read_store_url(life.CRAWLSPACE_STORE_URL, share_address_delay=of_sites.CRAWLSPACE_SHARE_ADDRESS_DELAY),
        worker_timeout_s=life.CRAWLSPACE_WORKER_TIMEOUT,
    )


def known_names() -> list[str]:
    """Return the names of all our settings."""
    return sorted(name for section in sections for name in section.__struct_encode_fields__ if name.startswith(PREFIX))


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
    """Return the rules of rules.xml as they apply; None if every URL is accepted, indexed and followed. Raises SettingError."""
    given = read(RulesXmlSection, settings)
    accept, index, follow = given.CRAWLSPACE_DEFAULT_ACCEPT, given.CRAWLSPACE_DEFAULT_INDEX, given.CRAWLSPACE_DEFAULT_FOLLOW
    if not (rules and rules.rules) and accept and index and follow:
        return None
    in_case = read(SpaceLimitsSection, settings).CRAWLSPACE_HOST_CASE_SENSITIVE
    return CompiledActions(rules or ActionRuleSet(), accept=accept, index=index, follow=follow, host_case_sensitive=in_case)


def check_scrapys_settings(settings: Mapping[str, object]) -> None:
    """Raise SettingError for the first wrong one of Scrapy's own settings, for which Scrapy would end in a traceback."""
    for setting, component in NEEDED:
        there = settings[setting]
        named = {_name_of(key): value for key, value in there.items()} if isinstance(there, Mapping) else {}
        if named.get(component) is None:
            raise SettingError(f"{setting} has no {component}, without which nothing is recorded: leave it in")
    if settings["ITEM_PROCESSOR"] != ITEM_PROCESSOR:
        raise SettingError(
            f"ITEM_PROCESSOR is {quoted(settings['ITEM_PROCESSOR'])}, through which nothing is recorded: remove that setting;"
            " item pipelines of your own go into ITEM_PIPELINES"
        )
    list(default_headers(settings))


def _name_of(component: object) -> str:
    return (
        component
        if isinstance(component, str)
        else f"{getattr(component, '__module__', '')}.{getattr(component, '__qualname__', '')}"
    )
