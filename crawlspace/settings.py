"""The Scrapy project's settings: every default once, each with a line on its effect.

A collection overrides them in its own `settings.py`; `-s NAME=VALUE` on the command line overrides both.
Durations of CRAWLSPACE_ settings are seconds, or text with a unit: "90s", "30m", "12h", "7d". Scrapy's own are numbers.
"""

from __future__ import annotations

import os
from pathlib import Path


def in_project(folder: str) -> str:
    """Return a folder of the project, relative to the working folder, which may be a subfolder of the project."""
    here = Path.cwd()
    for up, above in enumerate((here, *here.parents)):
        if (above / "scrapy.cfg").exists():
            return str(Path(*[os.pardir] * up, folder))
    return folder


# --- Scrapy: where things are -------------------------------------------------------------------------------------
BOT_NAME = "crawlspace"
SPIDER_MODULES = ["spiders"]
NEWSPIDER_MODULE = "spiders"
COMMANDS_MODULE = "crawlspace.commands"
SPIDER_LOADER_CLASS = "crawlspace.runtime.components.loader.CollectionLoader"
SCHEDULER = "crawlspace.runtime.components.scheduler.FrontierScheduler"
DOWNLOADER = "crawlspace.runtime.components.downloader.FrontierDownloader"
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
ASYNCIO_EVENT_LOOP = "uvloop.Loop" if os.name == "posix" else None
TWISTED_DNS_RESOLVER = "crawlspace.runtime.http.resolver.GuardedResolver"
LOG_FORMATTER = "crawlspace.runtime.components.logformat.QuietLogFormatter"
ITEM_PROCESSOR = "crawlspace.runtime.components.pipelines.PagePipelines"
STATS_DUMP = False

# --- Scrapy: how a page is requested ------------------------------------------------------------------------------
USER_AGENT = "crawlspace/0.1"
# robots.txt is obeyed; turning it off also turns off meta robots, unless CRAWLSPACE_META_ROBOTS is set apart.
ROBOTSTXT_OBEY = True
# Seconds between two requests to a site (one host and port).
DOWNLOAD_DELAY = 1
CONCURRENT_REQUESTS = 32
# Concurrent requests to one site; 1 for a site with a delay, unless CRAWLSPACE_SITES sets another number.
CONCURRENT_REQUESTS_PER_DOMAIN = 8
# Seconds until a request times out, body included.
DOWNLOAD_TIMEOUT = 60
# Bytes of a body, both as sent and decompressed; a larger one gives status 615.
DOWNLOAD_MAXSIZE = 16 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
DOWNLOAD_FAIL_ON_DATALOSS = True
DOWNLOAD_VERIFY_CERTIFICATES = True
DOWNLOAD_DELAY_JITTER = 0
# Retries within a run after a temporary failure.
RETRY_TIMES = 2
# HTTP codes that are retried within a run, as a list; None = 5xx and 429.
RETRY_HTTP_CODES = None
# Redirects in a row that are followed.
REDIRECT_MAX_TIMES = 10
# Links away from a start URL; 0 = no limit.
DEPTH_LIMIT = 0
# Characters of a URL.
URLLENGTH_LIMIT = 2083
COOKIES_ENABLED = False
TELNETCONSOLE_ENABLED = False
# Scrapy would let anybody with its token run Python in the crawler.
REMOTE_CONTROL_ENABLED = False
# A page is one item, so one task for each response is enough; Scrapy starts this many for each.
CONCURRENT_ITEMS = 1
# Bytes of bodies at which Scrapy requests nothing more; files wait for their text meanwhile, those over 1 MB on disk.
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 64 * 1024 * 1024
DOWNLOAD_HANDLERS = {
    "http": "crawlspace.runtime.http.handler.CurlDownloadHandler",
    "https": "crawlspace.runtime.http.handler.CurlDownloadHandler",
    "file": None,
    "data": None,
    "s3": None,
    "ftp": None,
}

# As Scrapy's own template has it.
FEED_EXPORT_ENCODING = "utf-8"
# A file that is overwritten (-O) is replaced as a whole, at the end.
FEED_STORAGES = {"": "crawlspace.runtime.components.exports.FeedFile", "file": "crawlspace.runtime.components.exports.FeedFile"}
FEED_EXPORTERS = {
    "jsonlines": "crawlspace.runtime.components.exports.JsonLinesExporter",
    "jsonl": "crawlspace.runtime.components.exports.JsonLinesExporter",
    "jl": "crawlspace.runtime.components.exports.JsonLinesExporter",
}

DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
    "crawlspace.runtime.components.robots.RobotsTxt": 100,
    "middlewares.crawl_space.CrawlSpaceGuard": 110,
    "crawlspace.runtime.components.middlewares.ConditionalGet": 120,
    "crawlspace.runtime.access.middleware.SiteAccessMiddleware": 390,
    "crawlspace.runtime.components.middlewares.DefaultHeaders": 400,
    "crawlspace.runtime.browser.rendering.RenderingMiddleware": 580,
    "crawlspace.runtime.components.middlewares.Decompression": 590,
    "crawlspace.runtime.components.cookies.Cookies": 700,
    "crawlspace.runtime.components.middlewares.SiteProxies": 750,
}
SPIDER_MIDDLEWARES = {
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
    # The first of all, so that others get the items of pages and not the records of their fetches.
    "crawlspace.runtime.components.one_outcome.OneOutcome": -1000,
}
ITEM_PIPELINES = {
    "pipelines.dedupe.Fingerprint": 800,
    "pipelines.state.RecordState": 900,
    "pipelines.index.DrainIndex": 910,
}
EXTENSIONS = {
    # Saves two tasks for each page; Progress sets the statistics at the end.
    "scrapy.extensions.corestats.CoreStats": None,
    "scrapy.extensions.logstats.LogStats": None,
    "scrapy.extensions.feedexport.FeedExporter": None,
    # It is off, and its import of aiohttp would take a tenth of a second of each start.
    "scrapy.extensions.remote_control.RemoteControl": None,
    # The frontier keeps the delays, and applies AUTOTHROTTLE_ settings to them.
    "scrapy.extensions.throttle.AutoThrottle": None,
    "crawlspace.runtime.components.exports.Exports": 0,
    "crawlspace.runtime.session.progress.Progress": 0,
}

# --- folders of collections and their data ------------------------------------------------------------------------
# Folder that holds a folder for each collection.
CRAWLSPACE_COLLECTIONS_DIR = os.environ.get("CRAWLSPACE_COLLECTIONS_DIR") or in_project("collections")
# Folder that holds a folder for each collection's store and index.
CRAWLSPACE_DATA_DIR = os.environ.get("CRAWLSPACE_DATA_DIR") or in_project("data")
# Files of start URLs beside start_urls.txt: ["partners.txt", "lists/*.txt"]; relative names count from the collection's folder.
CRAWLSPACE_START_URL_FILES = []
# File of the global crawl space; empty = global.rules in the collection's folder, else in the folder of the collections.
CRAWLSPACE_GLOBAL_RULES = ""

# --- limits of the crawl space ------------------------------------------------------------------------------------
# Schemes that are crawled.
CRAWLSPACE_SCHEMES = ["http", "https"]
# Whether a link with a query string is followed.
CRAWLSPACE_FOLLOW_QUERY_STRINGS = True
# Extensions that are not fetched, as a list or separated by "|"; empty text = the built-in list, "none" = none, "+log -ps" = the built-in
# list with log and without ps.
CRAWLSPACE_EXCLUDE_EXTENSIONS = ""
# Document types that are accepted; "text/*" is allowed.
CRAWLSPACE_MIME_TYPES = [
    "text/html",
    "application/xhtml+xml",
    "text/plain",
    "text/xml",
    "application/xml",
    "application/pdf",
    "application/x-pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.presentationml.template",
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
    "application/vnd.ms-word.document.macroenabled.12",
    "application/vnd.ms-excel.sheet.macroenabled.12",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.text-template",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.spreadsheet-template",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.presentation-template",
    "application/epub+zip",
    "application/rtf",
    "application/x-rtf",
    "text/rtf",
    "text/csv",
    "application/csv",
]
# Slashes in the path after the site root; None = no limit.
CRAWLSPACE_MAX_PATH_DEPTH = None
# Whether links to hosts other than those of the start URLs are followed (rules permitting).
CRAWLSPACE_FOLLOW_OFFSITE_LINKS = True
# Whether only URLs in the folder of a start URL, or below it, are crawled.
CRAWLSPACE_INDEX_ENTIRE_SITE = False
# How often a path segment may occur in one path.
CRAWLSPACE_MAX_REPEATED_SEGMENTS = 3
# Known URLs of one host; None = no limit.
CRAWLSPACE_MAX_URLS_PER_HOST = None
# Whether domain rules compare the host as written in the link, with its case.
CRAWLSPACE_HOST_CASE_SENSITIVE = True

# --- URLs: spellings of one page's address that are folded into one URL -------------------------------------------------
# Whether the parameters of a query are sorted by name.
CRAWLSPACE_URL_SORT_QUERY = False
# Parameters that are dropped, such as ["sessionid", "utm_*"].
CRAWLSPACE_URL_DROP_PARAMETERS = []
# Session ids in the path that are dropped: names after a semicolon, capitals or not, as in /a;jsessionid=1F; "(S())" stands for
# ASP.NET's path segments such as /(S(lit3py55))/. [] leaves all paths as they are.
CRAWLSPACE_URL_DROP_PATH_PARAMETERS = [
    "jsessionid",
    "phpsessid",
    "sid",
    "sessid",
    "sessionid",
    "session_id",
    "aspsessionid*",
    "bv_sessionid",
    "cfid",
    "cftoken",
    "oscsid",
    "(S())",
]
# The slash at the end of a path: "keep" it as in the link, "add" it where the path does not end like a file, or "remove" it.
CRAWLSPACE_URL_TRAILING_SLASH = "keep"
# `www.` at the beginning of a host: "keep" it as in the link, "add" or "remove" it.
CRAWLSPACE_URL_FOLD_WWW = "keep"

# --- sites --------------------------------------------------------------------------------------------------------
# Settings of single sites: {"host pattern": {"delay": 2, "concurrency": 1, …}}; the first match applies.
CRAWLSPACE_SITES = {}
# Hosts that receive the credentials in DEFAULT_REQUEST_HEADERS, as patterns of domain rules; empty = hosts of the start URLs.
CRAWLSPACE_CREDENTIAL_HOSTS = []
# The proxy of all sites: a URL, a reference to one (env:NAME, file:PATH), {"url": …, "user": …, "password": "env:NAME"}, or "direct" for
# none; None = the proxies of the environment (http_proxy, https_proxy, no_proxy).
CRAWLSPACE_PROXY = None
# Hosts that are requested without a proxy: ["intranet.example.com", "*.example.org", "10.0.0.0/8"], or text with commas.
CRAWLSPACE_NO_PROXY = []
# Whether meta robots and X-Robots-Tag are obeyed; None = as ROBOTSTXT_OBEY.
CRAWLSPACE_META_ROBOTS = None
# How long a robots.txt is cached.
CRAWLSPACE_ROBOTS_TTL = "1d"
# The longest delay between two requests that is taken from a robots.txt (Crawl-delay, Request-rate).
CRAWLSPACE_ROBOTS_DELAY_MAX = "60s"
# Delays by time of the week: {"Mon-Fri 09:00-17:00": 20, "Sun 02:00-04:00": "suspend"}; DOWNLOAD_DELAY at other times.
CRAWLSPACE_VARIABLE_DELAY = {}
# Time zone of CRAWLSPACE_VARIABLE_DELAY, such as "Europe/Berlin"; empty = this machine's.
CRAWLSPACE_TIMEZONE = ""
# Sites crawled at the same time; None = no limit.
CRAWLSPACE_MAX_SITES = None
# Whether sites with the same IP address share one delay; sites without a delay are not affected.
CRAWLSPACE_SHARE_ADDRESS_DELAY = False
# From the third failure in a row on, a site is paused for CRAWLSPACE_RETRY_WAIT, doubled with each failure, at most this long.
CRAWLSPACE_BACKOFF_MAX = "60s"
# Failures in a row after which a site is paused until the next start, or for an hour in a continuous crawl.
CRAWLSPACE_MAX_SITE_FAILURES = 20
# A site that has not answered for this long, and to three requests at least, is given up for the run.
CRAWLSPACE_SITE_GIVE_UP = "60s"
# Relative weights of the sources: {"refresh": 10}; 0 pauses a source, others keep their weight.
CRAWLSPACE_SOURCE_WEIGHTS = {}

# --- rendering in a browser (docs/rendering.md) -------------------------------------------------------------------------
# Which pages are rendered: "never", "always", or "auto": those whose HTML seems to be without its content.
CRAWLSPACE_RENDER = "never"
# Hosts that rendered pages may load scripts and data from, besides those of the domain rules: patterns of domain rules.
CRAWLSPACE_RENDER_HOSTS = []
# CSS selector that a rendered page is complete with; empty = it is when nothing more is loaded.
CRAWLSPACE_RENDER_WAIT_FOR = ""
# Whether routes behind # of rendered pages, such as #/about and #!about, are URLs of their own.
CRAWLSPACE_HASH_ROUTES = False
# Path or name of the browser, a Chromium; empty = the first of several names that is found.
CRAWLSPACE_BROWSER = ""
# Pages rendered at a time.
CRAWLSPACE_BROWSER_PAGES = 4
# The longest that rendering one page may take.
CRAWLSPACE_BROWSER_TIMEOUT = "30s"
# Pages after which the browser is replaced.
CRAWLSPACE_BROWSER_MAX_PAGES = 500
# Bytes of memory of the browser at which it is replaced.
CRAWLSPACE_BROWSER_MEMORY = 1536 * 1024 * 1024

# --- rules.xml ----------------------------------------------------------------------------------------------------
# Values before the first rule of rules.xml: whether a URL is crawled, whether it is indexed, and whether its links are followed.
CRAWLSPACE_DEFAULT_ACCEPT = True
CRAWLSPACE_DEFAULT_INDEX = True
CRAWLSPACE_DEFAULT_FOLLOW = True
# How values of rules.xml are read: "escaped" (a backslash gives a special character its meaning) or "standard" (as in RE2).
CRAWLSPACE_RULES_XML_REGEX = "escaped"
# Whether the pages that a page links to inherit the metadata that rules add to it (AddMeta); one link far.
CRAWLSPACE_METADATA_ALONG_LINKS = True

# --- the life of a URL --------------------------------------------------------------------------------------------
# Seconds until the lease of a URL that is being fetched expires and it becomes available again.
CRAWLSPACE_LEASE_S = 600
# Where the states of URLs are stored: empty = a file in the collection's data folder; "redis://host:6379/0" = a Redis server, for
# several machines; "redis" = the server of scrapy-redis's settings (REDIS_URL, REDIS_HOST, REDIS_PARAMS ...); "env:NAME" or
# "file:PATH" = the URL is in the environment or a file.
CRAWLSPACE_STORE_URL = ""
# The key under which the sessions of log-ins are encrypted, as "env:NAME" or "file:PATH". Without one a shared store (STORE_URL) keeps none,
# and each worker logs in for itself; a file of the collection's data folder keeps them as they are.
CRAWLSPACE_SESSION_KEY = ""
# On a shared store: a worker that has not reported for this long expires, and other workers get its sites.
CRAWLSPACE_WORKER_TIMEOUT = "30s"
# Wait before the first retry; doubled with each further one.
CRAWLSPACE_RETRY_WAIT = "5s"
# Runs in a row that end in a temporary error before a page counts as gone.
CRAWLSPACE_MAX_TEMPORARY_ERRORS = 5
# Treatment of errors, by code or class: {"404": "DELETE", "5xx": "DELETE:10, RETRY:3", "ttl": "KEEP"}; empty = defaults.
CRAWLSPACE_HTTP_ERRORS = {}
# Error pages with status 200: rows of URL pattern, title pattern, text pattern, and the status code to use instead.
CRAWLSPACE_SOFT_ERRORS = []
# Bounds of the time until a page is fetched again.
CRAWLSPACE_REFRESH_MIN = "1d"
CRAWLSPACE_REFRESH_MAX = "30d"
# Time until a start URL is fetched again; None = CRAWLSPACE_REFRESH_MIN.
CRAWLSPACE_START_REFRESH = None
# After a change that loosens a check: whether start URLs, and pages of which that check refused links, are due at once.
CRAWLSPACE_REDISCOVER = True
# Whether the crawl waits for the next due URL when nothing is left to do, instead of ending.
CRAWLSPACE_CONTINUOUS = False
# Whether a page is due again after an interval of its own, which follows how often it changes.
CRAWLSPACE_SMART_REFRESH = True
# When all known URLs are fetched again, in source index: a cron expression in CRAWLSPACE_TIMEZONE, such as "0 2 * * sun"; "" = at no such time.
CRAWLSPACE_REFRESH_SCHEDULE = ""
# Minutes between the starts of two cycles, each of which fetches every known URL once, or a cron expression; 0 = no cycles.
CRAWLSPACE_REFRESH_CYCLE = 0
# What the start of a cycle does: "scratch", "append", "prioritized" or "soft".
CRAWLSPACE_REFRESH_MODE = "append"

# A command that gets the summary of each `scrapy crawl` as JSON on its standard input: text or a list; it is run without a shell.
CRAWLSPACE_ON_FINISH = ""
# The longest that it may take.
CRAWLSPACE_ON_FINISH_TIMEOUT = "60s"

# --- deletions ----------------------------------------------------------------------------------------------------
# The deletion limit, for a run or a change of the rules, is exceeded when both are: this number, and this share of the index.
CRAWLSPACE_MAX_DELETIONS = 100
CRAWLSPACE_MAX_DELETIONS_PERCENT = 10
# URLs that no way leads to any more from a start URL: "keep" them while they answer, or "delete:3" after three runs.
CRAWLSPACE_ORPHANS = "keep"
# A failure that may be the host's deletes a page only while less than this share of the site's last fetches failed.
CRAWLSPACE_HOST_FAILURES_PERCENT = 50
# Number of last fetches that CRAWLSPACE_HOST_FAILURES_PERCENT counts, from 1 to 60.
CRAWLSPACE_HOST_FETCHES = 20

# --- content ------------------------------------------------------------------------------------------------------
# Elements whose links are followed, and attributes that hold more of them: "img@src", "*@data-url" for any element.
CRAWLSPACE_LINK_TAGS = ["a", "area", "frame", "iframe", "link", "meta"]
# Links taken from one page.
CRAWLSPACE_MAX_LINKS = 10_000
# Bytes of the normalised text that the checksum covers; 0 = all.
CRAWLSPACE_CHECKSUM_CUT_OFF = 0
# Whether pages with the same text and different titles are different documents.
CRAWLSPACE_CHECKSUM_TITLE = True

# --- files: PDF, office documents and the like ---------------------------------------------------------------------
# Bytes of a file; a larger one is found by its name only.
CRAWLSPACE_FILE_MAXSIZE = 100 * 1024 * 1024
# Processes that read files.
CRAWLSPACE_FILE_PROCESSES = 1
# The longest that reading one file may take.
CRAWLSPACE_FILE_TIMEOUT = "30s"
# Bytes of memory that a process may take for reading files.
CRAWLSPACE_FILE_MEMORY = 512 * 1024 * 1024
# Whether hyperlinks in files are followed.
CRAWLSPACE_FOLLOW_FILE_LINKS = False
# What prints the text of other types: {"application/msword": "antiword -m UTF-8.txt {file}", "image/*": "http://tika.example.com/tika"}.
CRAWLSPACE_CONVERTERS = {}

# --- archive ------------------------------------------------------------------------------------------------------
# Whether what is fetched is kept as WARC files.
CRAWLSPACE_ARCHIVE = True
# Folder that holds a folder with the files of each collection; empty = archive in the collection's data folder.
CRAWLSPACE_ARCHIVE_DIR = ""
# Bytes of a collection's archive; above it, superseded records are dropped, then the oldest pages. None = no limit.
CRAWLSPACE_ARCHIVE_MAX_BYTES = None

# --- index --------------------------------------------------------------------------------------------------------
# The indexes that documents are sent to: options by name, with a "type" (docs/sinks.md). Empty = the embedded full-text index alone.
CRAWLSPACE_SINKS = {}
# Number of unacknowledged orders of a sink at which the crawl waits for it, or marks it for a reindex if it is unavailable.
CRAWLSPACE_MAX_BACKLOG = 10_000
# Bytes of text of a document above which it is sent without its text, with its place in the archive; None = no limit.
CRAWLSPACE_INLINE_MAX_BYTES = 10_000_000
# URL that such a document can be had at: "https://console.example.com/content/{id}"; {url} and {collection} too. Empty = it has none.
CRAWLSPACE_CONTENT_URL = ""
