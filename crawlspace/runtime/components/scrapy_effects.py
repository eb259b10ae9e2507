"""What each of Scrapy's settings does in a collection: as in Scrapy, with a difference, or nothing; and what of a user's does nothing.

The tables of docs/scrapy.md are made from this. `scrapy lint` lists as warnings what a user has set and nothing in a collection reads:
settings of Scrapy without effect, misspelt ones, attributes of a spider class; a start logs them. A test compares the names with those
of Scrapy, so that a new version of it with another setting is noticed.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlspace.config.collection import PREFIX, collection_folder, read_settings_file
from crawlspace.config.sentences import where_set
from crawlspace.errors import nearest
from crawlspace.lint.finding import Finding
from crawlspace.runtime.components.loader import custom_settings_of, default_values

_OFF = (None, False, 0, "", "0", "False", "false")
"""Values that request nothing, and so lack nothing."""


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """`instead`: the equivalent in a collection. `unreported`: values that equal the behaviour anyway."""

    instead: str
    unreported: tuple[object, ...] = ()

    def is_reported(self, value: object) -> bool:
        return not any(value is one or (type(value) is type(one) and value == one) for one in self.unreported)


_QUEUES = WithoutEffect("pending URLs wait in the store; CRAWLSPACE_SOURCE_WEIGHTS and the priorities of rules.xml order them")
_ONCE = "a URL is fetched once a run because the store knows it; CRAWLSPACE_REFRESH_MIN and `scrapy recrawl` fetch it again"
_META_REFRESH = "a meta refresh is a link like any other; METAREFRESH_ENABLED = False leaves all of them out"
_REFERER = "no Referer is sent with pages, because a page has no single referrer; DEFAULT_REQUEST_HEADERS may set one"
_EVERY_STATUS = "every status comes to parse() and ends as an outcome; CRAWLSPACE_HTTP_ERRORS sets how errors are treated"

WITHOUT_EFFECT: Mapping[str, WithoutEffect] = {
    "CONCURRENT_REQUESTS_PER_IP": WithoutEffect("CRAWLSPACE_SHARE_ADDRESS_DELAY has sites at one address share a delay", _OFF),
    "CRAWLSPIDER_FOLLOW_LINKS": WithoutEffect("rules.xml decides which links are followed", (True,)),
    "DEPTH_PRIORITY": WithoutEffect(
        "URLs are fetched in the order of discovery; CRAWLSPACE_SOURCE_WEIGHTS and rules.xml change that", _OFF
    ),
    "DEPTH_STATS_VERBOSE": WithoutEffect("`scrapy urls NAME` has the link depth of each URL", _OFF),
    "DOWNLOADER_STATS": WithoutEffect("docs/stats.md lists the numbers of a run", (False, True)),
    "DOWNLOAD_DELAY_JITTER": WithoutEffect("a delay is kept as it is, without a random part", _OFF),
    "DOWNLOAD_SLOTS": WithoutEffect("for pages, CRAWLSPACE_SITES sets delay and concurrency of a host", ({},)),
    "DUPEFILTER_CLASS": WithoutEffect(_ONCE),
    "DUPEFILTER_DEBUG": WithoutEffect("`scrapy explain NAME URL` shows whether a URL is known", _OFF),
    "HTTPERROR_ALLOWED_CODES": WithoutEffect(_EVERY_STATUS, ([],)),
    "HTTPERROR_ALLOW_ALL": WithoutEffect(_EVERY_STATUS, _OFF),
    "JOBDIR": WithoutEffect(
        "each start continues where the last one ended, because the state of the crawl is in CRAWLSPACE_DATA_DIR; JOBDIR keeps `spider.state` only",
        _OFF,
    ),
    "LOGSTATS_INTERVAL": WithoutEffect("the progress is shown while it changes", _OFF),
    "METAREFRESH_IGNORE_TAGS": WithoutEffect(_META_REFRESH, ([],)),
    "METAREFRESH_MAXDELAY": WithoutEffect(_META_REFRESH),
    "META_COPY_WARN_SKIP_KEYS": WithoutEffect("requests of a collection inherit no meta", ([],)),
    "RANDOMIZE_DOWNLOAD_DELAY": WithoutEffect("a delay is kept as it is, without a random part", _OFF),
    "REDIRECT_PRIORITY_ADJUST": WithoutEffect("targets of redirects are a separate source in CRAWLSPACE_SOURCE_WEIGHTS"),
    "REFERER_ENABLED": WithoutEffect(_REFERER, _OFF),
    "REFERRER_POLICIES": WithoutEffect(_REFERER, ({},)),
    "REFERRER_POLICY": WithoutEffect(_REFERER),
    "RETRY_EXCEPTIONS": WithoutEffect('the classes "net", "ttl" and "int" of CRAWLSPACE_HTTP_ERRORS stand for exceptions'),
    "RETRY_GIVE_UP_LOG_LEVEL": WithoutEffect("`scrapy urls NAME --state failed` lists what failed after all retries"),
    "RETRY_PRIORITY_ADJUST": WithoutEffect("a retry is made after CRAWLSPACE_RETRY_WAIT"),
    "ROBOTSTXT_PARSER": WithoutEffect("robots.txt is read with Protego", ("scrapy.robotstxt.ProtegoRobotParser",)),
    "SCHEDULER_DEBUG": WithoutEffect("`scrapy status NAME` counts what is pending", _OFF),
    "SCHEDULER_DISK_QUEUE": _QUEUES,
    "SCHEDULER_MEMORY_QUEUE": _QUEUES,
    "SCHEDULER_PRIORITY_QUEUE": _QUEUES,
    "SCHEDULER_START_DISK_QUEUE": _QUEUES,
    "SCHEDULER_START_MEMORY_QUEUE": _QUEUES,
}
"""The settings that do nothing in a collection."""

WITH_DIFFERENCES: Mapping[str, str] = {
    "AUTOTHROTTLE_ENABLED": "The delay of each site follows its latency, between its own delay and `AUTOTHROTTLE_MAX_DELAY`.",
    "AUTOTHROTTLE_DEBUG": "One line for each response of a site, in the log of `crawlspace`.",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "For each host and port. A site with a delay gets one request at a time.",
    "COOKIES_ENABLED": "Off by default; at most 50 cookies of a domain.",
    "DEFAULT_REQUEST_HEADERS": "Credentials go to `CRAWLSPACE_CREDENTIAL_HOSTS` only.",
    "DEPTH_LIMIT": "The depth is that of the shortest way from a start URL, over all runs.",
    "DOWNLOADER": "Ours has no queue of pages, because the frontier keeps the delays; with another one a page takes longer.",
    "DOWNLOAD_DELAY": "For each host and port, over all processes that crawl the collection.",
    "DOWNLOAD_HANDLERS": "Another handler for `http` or `https` does not report when a request was sent, and the delay of a site counts from its slot. Address rules hold for its look-ups only.",
    "FEEDS": "An export that cannot be written ends the crawl with a sentence.",
    "HTTPCACHE_ENABLED": "A page from the cache keeps the delay of its site, and is read like one that was fetched.",
    "ITEM_PIPELINES": "Adds to ours.",
    "DOWNLOADER_MIDDLEWARES": "Adds to ours.",
    "SPIDER_MIDDLEWARES": "Adds to ours.",
    "EXTENSIONS": "Adds to ours.",
    "METAREFRESH_ENABLED": "`False`: the target of a meta refresh is no link.",
    "REDIRECT_ENABLED": "`False`: a redirect is recorded, and its target not crawled.",
    "REDIRECT_MAX_TIMES": "A redirect is an outcome of its own, and its target a URL of its own. They are counted from the last URL with a document.",
    "REMOTE_CONTROL_ENABLED": '`True` needs `EXTENSIONS = {"scrapy.extensions.remote_control.RemoteControl": 0}`, too.',
    "REQUEST_FINGERPRINTER_CLASS": "For the HTTP cache and media pipelines; pages are known by their URL in normal form.",
    "RETRY_ENABLED": "`False`: as `RETRY_TIMES = 0`.",
    "RETRY_HTTP_CODES": "These codes, and no others, are tried again; `CRAWLSPACE_HTTP_ERRORS` comes before it. Without it, 5xx and 429.",
    "RETRY_TIMES": "Through the stored state, so that a retry survives a kill.",
    "ROBOTSTXT_OBEY": "On by default. With delays, `Sitemap` lines and unreachable hosts as docs/politeness.md says.",
    "SCHEDULER": "A crawl does not start with another one than ours or one derived from it.",
    "SPIDER_LOADER_CLASS": "Ours makes each collection a spider.",
    "STATS_CLASS": "The stats of a run are set at its end, but those of your own components.",
    "TWISTED_DNS_RESOLVER": "A crawl does not start with another one, which could not hold address rules.",
    "TWISTED_REACTOR": "A crawl does not start with another one.",
    "TWISTED_REACTOR_ENABLED": "A crawl does not start without it.",
    "URLLENGTH_LIMIT": "Of a URL in normal form, from 16 to 65,536.",
    "USER_AGENT": "Also the name that is looked for in robots.txt and meta robots.",
}
"""The settings that work, and how they differ from Scrapy or what is to be known of them."""

AS_IN_SCRAPY = frozenset(
    """
    ADDONS ASYNCIO_EVENT_LOOP AUTOTHROTTLE_MAX_DELAY AUTOTHROTTLE_START_DELAY AUTOTHROTTLE_TARGET_CONCURRENCY AWS_ACCESS_KEY_ID
    AWS_ENDPOINT_URL AWS_MAX_POOL_CONNECTIONS AWS_REGION_NAME AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_USE_SSL AWS_VERIFY
    BOT_NAME CLOSESPIDER_ERRORCOUNT CLOSESPIDER_ITEMCOUNT CLOSESPIDER_PAGECOUNT CLOSESPIDER_PAGECOUNT_NO_ITEM CLOSESPIDER_TIMEOUT
    CLOSESPIDER_TIMEOUT_NO_ITEM COMMANDS_MODULE COMPRESSION_ENABLED CONCURRENT_ITEMS CONCURRENT_REQUESTS COOKIES_DEBUG
    DEFAULT_DROPITEM_LOG_LEVEL DEFAULT_ITEM_CLASS DNSCACHE_ENABLED DNSCACHE_SIZE DNS_RESOLVER DNS_TIMEOUT
    DOWNLOADER_CLIENTCONTEXTFACTORY DOWNLOADER_CLIENT_TLS_CIPHERS DOWNLOADER_CLIENT_TLS_METHOD
    DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING DOWNLOADER_MIDDLEWARES_BASE DOWNLOAD_BIND_ADDRESS DOWNLOAD_FAIL_ON_DATALOSS
    DOWNLOAD_HANDLERS_BASE DOWNLOAD_MAXSIZE DOWNLOAD_TIMEOUT DOWNLOAD_TLS_MAX_VERSION DOWNLOAD_TLS_MIN_VERSION
    DOWNLOAD_VERIFY_CERTIFICATES DOWNLOAD_WARNSIZE EDITOR EXTENSIONS_BASE FEED_EXPORTERS FEED_EXPORTERS_BASE
    FEED_EXPORT_BATCH_ITEM_COUNT FEED_EXPORT_ENCODING FEED_EXPORT_FIELDS FEED_EXPORT_INDENT FEED_FORMAT FEED_STORAGES
    FEED_STORAGES_BASE FEED_STORAGE_FTP_ACTIVE FEED_STORAGE_GCS_ACL FEED_STORAGE_S3_ACL FEED_STORE_EMPTY FEED_TEMPDIR FEED_URI
    FEED_URI_PARAMS FILES_STORE FILES_STORE_GCS_ACL FILES_STORE_S3_ACL FORCE_CRAWLER_PROCESS FTP_PASSIVE_MODE FTP_PASSWORD
    FTP_USER GCS_PROJECT_ID HTTP2_MAX_FRAME_SIZE HTTPAUTH_DOMAIN HTTPAUTH_PASS HTTPAUTH_USER HTTPCACHE_ALWAYS_STORE
    HTTPCACHE_DBM_MODULE HTTPCACHE_DIR HTTPCACHE_EXPIRATION_SECS HTTPCACHE_GZIP HTTPCACHE_IGNORE_HTTP_CODES
    HTTPCACHE_IGNORE_MISSING HTTPCACHE_IGNORE_RESPONSE_CACHE_CONTROLS HTTPCACHE_IGNORE_SCHEMES HTTPCACHE_POLICY HTTPCACHE_STORAGE
    HTTPPROXY_AUTH_ENCODING HTTPPROXY_ENABLED HTTPX_HTTP2_ENABLED IMAGES_STORE IMAGES_STORE_GCS_ACL IMAGES_STORE_S3_ACL
    ITEM_PIPELINES_BASE ITEM_PROCESSOR LOG_COLOR LOG_DATEFORMAT LOG_ENABLED LOG_ENCODING LOG_FILE LOG_FILE_APPEND LOG_FORMAT
    LOG_FORMATTER LOG_INSTALL_ROOT_HANDLER LOG_LEVEL LOG_SHORT_NAMES LOG_STDOUT LOG_VERSIONS MAIL_FROM MAIL_HOST MAIL_PASS
    MAIL_PORT MAIL_SSL MAIL_TLS MAIL_USER MEMDEBUG_ENABLED MEMUSAGE_CHECK_INTERVAL_SECONDS MEMUSAGE_ENABLED MEMUSAGE_LIMIT_MB
    MEMUSAGE_NOTIFY_MAIL MEMUSAGE_WARNING_MB NEWSPIDER_MODULE PERIODIC_LOG_DELTA PERIODIC_LOG_STATS PERIODIC_LOG_TIMING_ENABLED
    REACTOR_THREADPOOL_MAXSIZE REMOTE_CONTROL_JOBS_DIR REMOTE_CONTROL_OUTPUT_MAX_BYTES
    REMOTE_CONTROL_TIMEOUT_DEFAULT REMOTE_CONTROL_TIMEOUT_MAX REMOTE_CONTROL_TRACEBACK_MAX_BYTES ROBOTSTXT_USER_AGENT
    SCRAPER_SLOT_MAX_ACTIVE_SIZE SPIDER_CONTRACTS SPIDER_CONTRACTS_BASE SPIDER_LOADER_WARN_ONLY SPIDER_MIDDLEWARES_BASE
    SPIDER_MODULES STATSMAILER_RCPTS STATS_DUMP TELNETCONSOLE_ENABLED TELNETCONSOLE_HOST TELNETCONSOLE_PASSWORD
    TELNETCONSOLE_PORT TELNETCONSOLE_USERNAME TEMPLATES_DIR WARN_ON_GENERATOR_RETURN_VALUE
    """.split()
)
"""The settings that work as Scrapy documents them."""

OF_THE_PROCESS = frozenset(
    """
    COMMANDS_MODULE DNSCACHE_ENABLED DNSCACHE_SIZE DNS_RESOLVER DNS_TIMEOUT FORCE_CRAWLER_PROCESS REACTOR_THREADPOOL_MAXSIZE
    SPIDER_LOADER_CLASS SPIDER_LOADER_WARN_ONLY SPIDER_MODULES TWISTED_DNS_RESOLVER
    """.split()
)
"""The settings that are read before a collection is chosen, so that neither its settings nor `custom_settings` can change them."""

OF_COMPONENTS = frozenset(
    """
    FILES_EXPIRES FILES_RESULT_FIELD FILES_URLS_FIELD IMAGES_EXPIRES IMAGES_MIN_HEIGHT IMAGES_MIN_WIDTH IMAGES_RESULT_FIELD
    IMAGES_THUMBS IMAGES_URLS_FIELD MEDIA_ALLOW_REDIRECTS USER_AGENTS USER_AGENT_LIST
    """.split()
)
"""Names that components read and Scrapy has no default for: they look like another setting, and are no mistake."""

KNOWN = frozenset(WITHOUT_EFFECT) | frozenset(WITH_DIFFERENCES) | AS_IN_SCRAPY

SPIDER_ATTRIBUTES: Mapping[str, str] = {
    "allowed_domains": "domain rules of crawl.rules decide which hosts are crawled (allow domain example.com, allow domain *.example.com)",
    "handle_httpstatus_all": _EVERY_STATUS,
    "handle_httpstatus_list": _EVERY_STATUS,
    "link_extractor": "links are followed as crawl.rules and rules.xml allow, from the elements and attributes of CRAWLSPACE_LINK_TAGS",
    "make_requests_from_url": "write the URLs into start_urls.txt, or yield requests from `async def start(self)`",
    "parse_start_url": "document() makes the item of every page, that of a start URL too",
    "process_results": "change the item in document() or in an item pipeline",
    "rules": "crawl.rules decides which URLs are crawled, rules.xml which of them are indexed or followed",
    "sitemap_alternate_links": "alternates in a sitemap are always candidates, as its pages are",
    "sitemap_follow": "crawl.rules decides which sitemaps and pages are requested",
    "sitemap_rules": "crawl.rules decides which of the pages are crawled",
    "sitemap_urls": "name them in CRAWLSPACE_SITEMAPS; those in robots.txt are found without it",
    "start_requests": "write the URLs into start_urls.txt, or yield requests from `async def start(self)`",
    "download_delay": "set DOWNLOAD_DELAY in the settings.py of the collection",
    "max_concurrent_requests": "set CONCURRENT_REQUESTS_PER_DOMAIN in the settings.py of the collection",
}
"""Attributes and methods of spider classes that nothing reads in a collection, and what does their work."""

MOST_LOGGED = 5
NEARNESS = 0.9
"""From which on a name counts as misspelt: below it, names of other people's components would be reported."""
_NOT_OF_THE_USER = ("scrapy", "crawlspace", "builtins")


@dataclass(frozen=True, slots=True)
class UserSetting:
    """A setting that a user has set. `file` is where, as a finding names it; line and column are 0 where there is none."""

    name: str
    value: object
    file: str
    line: int = 0
    column: int = 0
    is_of_collection: bool = False
    """It is set in the collection's file, or by its class."""
    is_text: bool = False
    """It comes from the command line, where every value is text."""


def without_effect(spider: type[Spider] | None, settings: BaseSettings, name: str) -> list[Finding]:
    """Return a finding for everything that a user has set for a collection, and that has no effect in it.

    `settings` are the collection's. Raises ConfigError.
    """
    folder = collection_folder(name, settings)
    own = read_settings_file(folder)
    set_by_user = list(_set_by_user(settings, own, folder, spider))
    found = [
        *_settings_without_effect(set_by_user, settings),
        *_two_lists_of_codes(set_by_user),
        *_set_twice(spider, own, folder),
        *_attributes_without_effect(spider),
    ]
    return sorted(found, key=lambda one: (one.file, one.line))


def sentences(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines that a start logs of findings: the first, and how many more there are."""
    for finding in findings[:MOST_LOGGED]:
        yield f"{finding.file}:{finding.line}: {finding.message}" if finding.line else f"{finding.file}: {finding.message}"
    if len(findings) > MOST_LOGGED:
        yield f"and {len(findings) - MOST_LOGGED} more settings or attributes without effect: `scrapy lint` lists them"


def _set_by_user(
    settings: BaseSettings, own: Mapping[str, object], folder: Path, spider: type[Spider] | None
) -> Iterator[UserSetting]:
    """Yield what is not as Scrapy and the project's template have it, each with the place that applies."""
    custom, defaults = custom_settings_of(spider), default_values()
    for name in settings:
        priority = settings.getpriority(name) or 0
        if priority >= SETTINGS_PRIORITIES["cmdline"] and name != "DOWNLOAD_SLOTS":  # that is filled by throttle_other_requests
            yield UserSetting(name, settings[name], "-s", is_text=True)
        elif name in own:
            yield UserSetting(name, own[name], "settings.py", *where_set(folder, name), is_of_collection=True)
        elif name in custom and spider is not None:
            yield UserSetting(name, custom[name], *_place(spider, "custom_settings", name), is_of_collection=True)
        elif priority >= SETTINGS_PRIORITIES["project"] and priority < SETTINGS_PRIORITIES["spider"]:
            value = settings[name]
            if name not in defaults or value != defaults[name]:
                yield UserSetting(name, value, "settings of the project")


def _settings_without_effect(found: Sequence[UserSetting], settings: BaseSettings) -> Iterator[Finding]:
    for one in found:
        if one.name in WITHOUT_EFFECT:
            effect = WITHOUT_EFFECT[one.name]
            if effect.is_reported(one.value):
                yield _finding(one, "no-effect", f"{one.name} has no effect in a collection: {effect.instead}")
        elif one.name in OF_THE_PROCESS:
            if one.is_of_collection:
                message = f"{one.name} has no effect here, because it is read before the collection: set it in the project's settings or with -s"
                yield _finding(one, "no-effect", message)
        elif one.name not in KNOWN | OF_COMPONENTS and not one.name.startswith(PREFIX):
            meant = nearest(one.name, KNOWN, cutoff=NEARNESS)
            if meant is not None and (one.is_text or _alike(one.value, settings.get(meant))):
                message = f"there is no setting {one.name}, so it has no effect: did you mean {meant}?"
                yield _finding(one, "misspelt-setting", message)


def _two_lists_of_codes(found: Sequence[UserSetting]) -> Iterator[Finding]:
    both = {one.name: one for one in found if one.name in ("RETRY_HTTP_CODES", "CRAWLSPACE_HTTP_ERRORS") and one.value}
    if len(both) == 2:
        message = "where RETRY_HTTP_CODES and CRAWLSPACE_HTTP_ERRORS name the same code, CRAWLSPACE_HTTP_ERRORS applies: keep one of them"
        yield _finding(both["RETRY_HTTP_CODES"], "set-twice", message)


def _set_twice(spider: type[Spider] | None, own: Mapping[str, object], folder: Path) -> Iterator[Finding]:
    """Yield the settings of a spider class that have no effect because the collection's file has other values."""
    for name, value in custom_settings_of(spider).items():
        if spider is not None and name in own and own[name] != value and not isinstance(value, dict):
            line, _ = where_set(folder, name)
            message = (
                f"{name} of custom_settings has no effect: line {line} of settings.py in the collection's folder sets it too"
            )
            yield _finding(UserSetting(name, value, *_place(spider, "custom_settings", name)), "set-twice", message)


def _attributes_without_effect(spider: type[Spider] | None) -> Iterator[Finding]:
    seen: set[str] = set()
    for cls in spider.__mro__ if spider is not None else ():
        if cls.__module__.partition(".")[0] in _NOT_OF_THE_USER:
            continue
        for name in SPIDER_ATTRIBUTES.keys() & vars(cls).keys() - seen:
            seen.add(name)
            if vars(cls)[name]:
                message = f"{cls.__name__}.{name} has no effect in a collection: {SPIDER_ATTRIBUTES[name]}"
                yield _finding(UserSetting(name, None, *_place(cls, name)), "no-effect", message)


def _finding(one: UserSetting, code: str, message: str) -> Finding:
    return Finding(one.file, one.line, one.column, "warning", code, message)


def _place(cls: type, *names: str) -> tuple[str, int, int]:
    """Return the file of a class, relative to the working folder if it is below it, and line and column of the last name in it."""
    try:
        lines, first = inspect.getsourcelines(cls)
        file = os.path.relpath(inspect.getsourcefile(cls) or "")
    except (OSError, TypeError, ValueError):  # made by a program
        return f"{cls.__module__}.{cls.__qualname__}", 0, 0
    file = file if not file.startswith(os.pardir) else Path(file).name
    at = 0
    for name in names:
        at = next((number for number in range(at, len(lines)) if re.search(rf"\b{name}\b", lines[number])), at)
    return file, first + at, max(lines[at].find(names[-1]), 0) + 1


def _alike(value: object, other: Any) -> bool:
    """Whether a value is of the kind of another: a list of USER_AGENTS is not meant as the text USER_AGENT."""
    kinds: tuple[type | tuple[type, ...], ...] = (str, (bool, int, float), Mapping, (list, tuple, set, frozenset))
    if value is None or other is None:
        return True
    return any(isinstance(value, kind) and isinstance(other, kind) for kind in kinds)
