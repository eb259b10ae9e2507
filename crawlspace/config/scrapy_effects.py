"""What each of Scrapy's settings does in a collection: as in Scrapy, with a difference, or nothing.

`scrapy lint`, the warnings of a start and the tables of docs/scrapy.md are made from this. A test compares the names with those
of Scrapy, so that a new version of it with another setting is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
_EVERY_STATUS = "every status comes to parse() and ends as an outcome; CRAWLSPACE_HTTP_ERRORS sets what becomes of errors"

WITHOUT_EFFECT: Mapping[str, WithoutEffect] = {
    "CONCURRENT_REQUESTS_PER_IP": WithoutEffect("CRAWLSPACE_SHARE_ADDRESS_DELAY has sites at one address share a delay", _OFF),
    "CRAWLSPIDER_FOLLOW_LINKS": WithoutEffect("rules.xml decides which links are followed", (True,)),
    "DEPTH_PRIORITY": WithoutEffect(
        "what was found first is fetched first; CRAWLSPACE_SOURCE_WEIGHTS and rules.xml change that", _OFF
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
    "REDIRECT_PRIORITY_ADJUST": WithoutEffect("targets of redirects are a source of their own in CRAWLSPACE_SOURCE_WEIGHTS"),
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
    "REDIRECT_MAX_TIMES": "A redirect is an outcome of its own, and its target a URL of its own.",
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
    "sitemap_alternate_links": "list the pages in start_urls.txt; sitemaps are not read",
    "sitemap_follow": "list the pages in start_urls.txt; sitemaps are not read",
    "sitemap_rules": "list the pages in start_urls.txt; sitemaps are not read",
    "sitemap_urls": "list the pages in start_urls.txt; sitemaps are not read",
    "start_requests": "write the URLs into start_urls.txt, or yield requests from `async def start(self)`",
    "download_delay": "set DOWNLOAD_DELAY in the settings.py of the collection",
    "max_concurrent_requests": "set CONCURRENT_REQUESTS_PER_DOMAIN in the settings.py of the collection",
}
"""Attributes and methods of spider classes that nothing reads in a collection, and what does their work."""
