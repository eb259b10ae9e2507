"""The settings of the Scrapy project: each is written here once, with its type and bounds, its default and what it means.

Scrapy reads their defaults as names of this module. docs/settings.md has the same, and a test compares them. A collection
overrides settings in its own `settings.py`; `-s NAME=VALUE` on the command line overrides both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field, structs

from crawlspace.content_settings import ArchiveSection, ContentSection, FileSettings, SitemapSection
from crawlspace.setting_types import Count, Listed, Processes, Section, Whole, Words, seconds


def in_project(folder: str) -> str:
    """Return a folder of the project, relative to the working folder, which may be a subfolder of the project."""
    here = Path.cwd()
    for up, above in enumerate((here, *here.parents)):
        if (above / "scrapy.cfg").exists():
            return str(Path(*[os.pardir] * up, folder))
    return folder


def commands_module(command_line: Sequence[str]) -> str:
    """Return where Scrapy looks for our commands: in the module of the one that is called, so that no other one is imported."""
    program, *words = command_line or ("",)
    called = next((word for word in words if not word.startswith("-")), None)
    if called is None or "scrapy" not in (
        Path(program).stem,
        Path(program).parent.name,
    ):  # `python -m scrapy`: scrapy/__main__.py
        return "crawlspace.commands"
    is_ours = Path(called).name == called and (Path(__file__).parent / "commands" / f"{called}.py").is_file()
    return f"crawlspace.commands.{called}" if is_ours else ""


class PathsSection(Section, frozen=True):
    """Paths and addresses."""

    CRAWLSPACE_COLLECTIONS_DIR: object = os.environ.get("CRAWLSPACE_COLLECTIONS_DIR") or in_project("collections")
    """Folder that holds a folder for each collection. The environment variable of that name sets it."""
    CRAWLSPACE_DATA_DIR: object = os.environ.get("CRAWLSPACE_DATA_DIR") or in_project("data")
    """Folder in which each collection gets a folder for its store and index. The environment variable of that name sets it."""
    CRAWLSPACE_GLOBAL_RULES: str = ""
    """File of the [global crawl space](rules.md#the-global-crawl-space). Empty: `global.rules` in the collection's folder,
    else the one in their parent folder, else none."""
    CRAWLSPACE_START_URLS: Listed = ()
    """Start URLs in addition to those of the files, as a list or separated by commas. A spider class's `start_urls` come in here."""
    CRAWLSPACE_START_URL_FILES: Listed = ()
    """[Files of start URLs](collections.md#start-urls) in addition to `start_urls.txt`, by name or pattern, as a list or separated by
    commas: `["partners.txt", "lists/*.txt"]`. A relative name counts from the collection's folder."""


class SpaceLimitsSection(Section, frozen=True):
    """Limits of the crawl space."""

    CRAWLSPACE_SCHEMES: Annotated[tuple[Literal["http", "https"], ...], Meta(min_length=1)] = ("http", "https")
    """Schemes that are crawled. Only these two are possible."""
    CRAWLSPACE_FOLLOW_QUERY_STRINGS: bool = True
    """Whether a URL with a `?` and something behind it is crawled."""
    CRAWLSPACE_EXCLUDE_EXTENSIONS: object = ""
    """File extensions that are not crawled: a list, or text separated by `|`, a comma or a blank. Empty: the built-in list of
    images, audio, video, archives, programs, fonts, styles and scripts (`crawlspace/rules/limits.py`). `"+log -ps"`: the
    built-in list, with `log` and without `ps`; all have a sign, or none has. `"none"`: no extension is excluded. The
    extension is that of the path, without the query."""
    CRAWLSPACE_MIME_TYPES: Words = (
        *("text/html", "application/xhtml+xml", "text/plain", "text/xml", "application/xml"),
        *("application/pdf", "application/x-pdf"),
        *(
            f"application/vnd.openxmlformats-officedocument.{kind}"
            for kind in (
                *("wordprocessingml.document", "wordprocessingml.template", "spreadsheetml.sheet", "spreadsheetml.template"),
                *("presentationml.presentation", "presentationml.template", "presentationml.slideshow"),
            )
        ),
        "application/vnd.ms-word.document.macroenabled.12",
        "application/vnd.ms-excel.sheet.macroenabled.12",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
        "application/vnd.ms-excel",
        *(
            f"application/vnd.oasis.opendocument.{kind}{template}"
            for kind in ("text", "spreadsheet", "presentation")
            for template in ("", "-template")
        ),
        *("application/epub+zip", "application/rtf", "application/x-rtf", "text/rtf"),
        *("text/csv", "application/csv"),
    )
    """Document types that are taken. `text/*` stands for all that begin so. Those of the default are read as what they are,
    and what has a [converter](files.md#converters); of others you would get the bytes as text."""
    CRAWLSPACE_MAX_PATH_DEPTH: Whole | None = None
    """Slashes in the path after the first one: `/a` has 0, `/a/b/c.html` has 2. `None`: no limit."""
    CRAWLSPACE_FOLLOW_OFFSITE_LINKS: bool = True
    """`False`: only the hosts of the start URLs are crawled, whatever the rules allow."""
    CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS: bool = True
    """`False`: a redirect to another host than that of its URL is not followed, whatever the rules allow; `www.` before a host
    makes another one. Links are."""
    CRAWLSPACE_INDEX_ENTIRE_SITE: bool = False
    """`True`: only the folders of the start URLs, and what is below them. (The name is an old one and means the contrary.)"""
    CRAWLSPACE_MAX_REPEATED_SEGMENTS: Count = 3
    """How often one path segment may come in a path. Keeps the crawl out of `/a/a/a/a/…`."""
    CRAWLSPACE_MAX_URLS_PER_HOST: Count | None = None
    """URLs of one host, all ports together; what is missing (404, 410) or out of the crawl space does not count. `None`: no
    limit. What a smaller limit has excluded returns at the next start once there is room, oldest first. Pages with refused
    links always get an unconditional GET, so that these are found again."""
    CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS: bool = False
    """`True`: `forbid address 0.0.0.0/0` and `::/0` don't hold for a host that an allow rule names, so that the crawl space is
    the named hosts and, where the domain rules admit all, those in the [networks](rules.md#address-rules) that are allowed."""
    CRAWLSPACE_HOST_CASE_SENSITIVE: bool = True
    """Whether domain rules, and `norm="none"` in rules.xml, compare with the host as it is written in the link, capitals
    included."""


class SpellingsSection(Section, frozen=True):
    """Spellings of one page."""

    CRAWLSPACE_URL_SORT_QUERY: bool = False
    """Whether the parameters of a query are sorted by name. Those of one name keep their order."""
    CRAWLSPACE_URL_DROP_PARAMETERS: Words = ()
    """Parameters of a query that are dropped, by name, capitals included: `["sessionid", "utm_*"]`."""
    CRAWLSPACE_URL_DROP_PATH_PARAMETERS: Words = (
        *("jsessionid", "phpsessid", "sid", "sessid", "sessionid", "session_id", "aspsessionid*", "bv_sessionid"),
        *("cfid", "cftoken", "oscsid", "(S())"),
    )
    """Session ids in a path that are dropped: parameters after a semicolon by name, capitals or not, up to the next `;` or
    `/`, so that `/a;jsessionid=1F` is `/a`. `"(S())"` stands for the path segments of ASP.NET without cookies, such as
    `/(S(lit3py55))/`. Other parameters, such as `;v=1`, stay. `[]` leaves all paths as they are."""
    CRAWLSPACE_URL_TRAILING_SLASH: Literal["keep", "add", "remove"] = "keep"
    """The slash at the end of a path. `"add"`: where the last segment has no dot. `"remove"`: everywhere but after the host."""
    CRAWLSPACE_URL_FOLD_WWW: Literal["keep", "add", "remove"] = "keep"
    """`www.` at the beginning of a host. `"add"`: to each host with a dot that does not begin with it; best set for single
    sites, because hosts such as `docs.example.com` get it, too. `"remove"`: where a dot is left."""


class SitesSection(Section, frozen=True):
    """Sites."""

    CRAWLSPACE_SITES: object = field(default_factory=dict)
    """What holds for single sites; see [collections](collections.md#single-sites)."""
    CRAWLSPACE_PROXY: object = None
    """The [proxy](logins.md#proxies) of all sites: a URL, `env:NAME` or `file:PATH` with one, a dict with `url`, `user` and
    `password`, or `"direct"` for none. `None`: the proxies of the environment (`http_proxy`, `https_proxy`, `no_proxy`)."""
    CRAWLSPACE_NO_PROXY: Words = ()
    """Hosts that are requested [without a proxy](logins.md#proxies): `["intranet.example.com", "*.example.org",
    "10.0.0.0/8"]`, or text with commas."""
    CRAWLSPACE_CREDENTIAL_HOSTS: Words = ()
    """Hosts that get those of Scrapy's `DEFAULT_REQUEST_HEADERS` that [carry credentials](security.md#tls-and-credentials), as
    patterns of domain rules: `["wiki.example.com", "*.intranet.example.com"]`. Empty: the hosts of the start URLs."""
    CRAWLSPACE_META_ROBOTS: bool | None = None
    """Whether `meta name=robots`, `X-Robots-Tag` and `rel=nofollow` are obeyed. `None`: as `ROBOTSTXT_OBEY`."""
    CRAWLSPACE_CONDITIONAL_GET: bool = True
    """Whether known pages are requested with `If-None-Match` and `If-Modified-Since`, so that a site need not send what is
    unchanged. `False`, or [`ConditionalGet`](rules_xml.md#actions) in rules.xml: each is sent whole, for sites whose answers to
    them are wrong."""
    CRAWLSPACE_ROBOTS_TTL: Annotated[float, seconds(60)] = 86_400.0
    """How long a robots.txt that was read is believed."""
    CRAWLSPACE_ROBOTS_DELAY_MAX: Annotated[float, seconds(0)] = 60.0
    """The longest delay that a robots.txt may ask for (`Crawl-delay`, `Request-rate`). 0: its request is ignored."""
    CRAWLSPACE_VARIABLE_DELAY: object = field(default_factory=dict)
    """Delays by the time of the week; see [politeness](politeness.md)."""
    CRAWLSPACE_TIMEZONE: object = ""
    """Time zone of those times, and of a [schedule](#schedules), such as `Europe/Berlin`. Empty: this machine's."""
    CRAWLSPACE_MAX_SITES: Count | None = None
    """Sites that are crawled at a time. `None`: all that there are."""
    CRAWLSPACE_MAX_PAGES_IN_TURN: Count | None = None
    """Pages that are fetched of a site before its place goes to a site that waits because of `CRAWLSPACE_MAX_SITES`. `None`:
    all that it has."""
    CRAWLSPACE_SHARE_ADDRESS_DELAY: bool = False
    """Whether sites at one address keep the delay among them; see [politeness](politeness.md#hosts-on-one-address)."""
    CRAWLSPACE_BACKOFF_MAX: Annotated[float, seconds(0)] = 60.0
    """From the third failure in a row on a site rests for `CRAWLSPACE_RETRY_WAIT`, twice as long with each further one, up to
    this."""
    CRAWLSPACE_MAX_SITE_FAILURES: Annotated[int, Meta(ge=3)] = 20
    """Failures in a row after which a site is given up until the next start, or for an hour where the crawl goes on."""
    CRAWLSPACE_SITE_GIVE_UP: Annotated[float, seconds(1)] = 60.0
    """A site is given up, too, when it has given no answer at all for so long, to three requests or more."""
    CRAWLSPACE_SOURCE_WEIGHTS: object = field(default_factory=dict)
    """How often each source is picked from, in proportion; what is not named keeps its weight: user 10000, redir 2000, index
    1000, index_follow 100, follow 10, refresh 1. 0 pauses a source."""


class RenderingSection(Section, frozen=True):
    """Rendering in a browser."""

    CRAWLSPACE_RENDER: Literal["never", "always", "auto"] = "never"
    """Which pages are rendered: `"never"` any, `"always"` all, `"auto"` those whose HTML seems to be without its content."""
    CRAWLSPACE_RENDER_HOSTS: Words = ()
    """Hosts that rendered pages may load scripts and data from, besides those that the domain rules admit: patterns as in
    domain rules."""
    CRAWLSPACE_RENDER_WAIT_FOR: str = ""
    """A CSS selector: a page is complete as soon as something on it matches. Empty: as soon as nothing more is loaded."""
    CRAWLSPACE_HASH_ROUTES: bool = False
    """Whether [routes behind #](rendering.md#routes-behind-) of rendered pages, such as `#/about` and `#!about`, are URLs of
    their own. Without it, what stands behind `#` is left off."""


class BrowserSettings(Section, frozen=True):
    """The browser that renders pages, in the table of `RenderingSection`."""

    executable: str = field(default="", name="CRAWLSPACE_BROWSER")
    """Path or name of the browser, a Chromium, also of [log-ins in the browser](logins.md#in-the-browser). Empty: the first of
    `chromium`, `chromium-browser`, `google-chrome`, `google-chrome-stable` and `chrome` that is found."""
    pages: Annotated[int, Meta(ge=1, le=64)] = field(default=4, name="CRAWLSPACE_BROWSER_PAGES")
    """Pages that are rendered at a time."""
    timeout_s: Annotated[float, seconds(1)] = field(default=30.0, name="CRAWLSPACE_BROWSER_TIMEOUT")
    """The longest that rendering one page may take."""
    max_pages: Count = field(default=500, name="CRAWLSPACE_BROWSER_MAX_PAGES")
    """Pages after which the browser is replaced by a new one."""
    memory_bytes: Annotated[int, Meta(ge=256 * 1024 * 1024)] = field(default=1536 * 1024 * 1024, name="CRAWLSPACE_BROWSER_MEMORY")
    """Bytes of memory of the browser, all its processes together, at which it is ended; it is replaced a little before."""


class RulesXmlSection(Section, frozen=True):
    """rules.xml."""

    CRAWLSPACE_DEFAULT_ACCEPT: bool = True
    """Whether a URL is crawled that no rule of [rules.xml](rules_xml.md) matches."""
    CRAWLSPACE_DEFAULT_INDEX: bool = True
    """Whether it is indexed."""
    CRAWLSPACE_DEFAULT_FOLLOW: bool = True
    """Whether its links are followed."""
    CRAWLSPACE_RULES_XML_REGEX: Literal["escaped", "standard"] = "escaped"
    """How values of rules.xml are read: with `"escaped"`, a backslash gives a special character its meaning; with
    `"standard"`, they are [usual expressions](rules_xml.md#usual-expressions)."""
    CRAWLSPACE_METADATA_ALONG_LINKS: bool = True
    """Whether the fields that rules add to a page (`AddMeta`) are inherited by the pages it links to, one link far."""


class LifecycleSection(Section, frozen=True):
    """The life of a URL."""

    CRAWLSPACE_LEASE_S: Annotated[float, seconds(10)] = 600
    """How long a URL may be out for fetching before it comes back by itself."""
    CRAWLSPACE_STORE_URL: str = ""
    """Where the states of URLs are kept. Empty: in a file of the collection's data folder. `"redis://host:6379/0"` (or
    `rediss://`, `unix://`): on a Redis server, where several machines crawl the collection together. `"redis"`: on the
    server that scrapy-redis's settings name (`REDIS_URL`, `REDIS_HOST`, `REDIS_PORT`, `REDIS_DB`, `REDIS_PARAMS`).
    `"env:NAME"` and `"file:PATH"`: the URL is in that variable of the environment, or file."""
    CRAWLSPACE_SESSION_KEY: str = ""
    """The key, as `"env:NAME"` or `"file:PATH"`, under which the [sessions of log-ins](logins.md#when-a-session-has-ended) are
    encrypted. Without one a shared store keeps none, and each worker logs in for itself; a file of the data folder keeps
    them as they are."""
    CRAWLSPACE_WORKER_TIMEOUT: Annotated[float, seconds(5)] = 30.0
    """On a shared store: a worker that has not reported for so long has expired: the others get its sites and URLs."""
    CRAWLSPACE_RETRY_WAIT: Annotated[float, seconds(0)] = 5.0
    """Wait before the first retry. Each further one waits twice as long."""
    CRAWLSPACE_MAX_TEMPORARY_ERRORS: Count = 5
    """Runs in a row that end in a temporary error before a page counts as gone. A success begins the count again."""
    CRAWLSPACE_HTTP_ERRORS: object = field(default_factory=dict)
    """What becomes of errors, by code or class; see [errors by code](#errors-by-code)."""
    CRAWLSPACE_SOFT_ERRORS: object = field(default_factory=list)
    """Pages that are errors although they answer 200; see [soft error pages](#soft-error-pages)."""
    CRAWLSPACE_REFRESH_MIN: Annotated[float, seconds(1)] = 86_400.0
    """The shortest time until a page is fetched again."""
    CRAWLSPACE_REFRESH_MAX: Annotated[float, seconds(1)] = 30 * 86_400.0
    """The longest time until a page is fetched again. A new page waits for the mean of the two."""
    CRAWLSPACE_START_REFRESH: Annotated[float, seconds(1)] | None = None
    """The time until a start URL is fetched again, so that new pages are found soon. `None`: `CRAWLSPACE_REFRESH_MIN`. At most
    `CRAWLSPACE_REFRESH_MAX`."""
    CRAWLSPACE_REDISCOVER: bool = True
    """After a change of rules or settings that loosens a check, the start URLs and all pages of which that check refused links
    are due at once, so that the next run finds what came into reach; `scrapy plan` says how many requests that is. Links of
    archived pages are judged again without a request. `False`: each waits for its own time."""
    CRAWLSPACE_CONTINUOUS: bool = False
    """`True`: the crawl goes on when nothing is left to do, and waits for what is due next. `False`: it ends then, and fetches
    each URL once, however soon it is due again; only retries, URLs that a person requests, and pages whose link depth or
    inherited metadata changed after they were fetched are fetched again."""
    CRAWLSPACE_SMART_REFRESH: bool = True
    """`False`: a page that was fetched is not due by its age; see [smart refresh](#smart-refresh)."""
    CRAWLSPACE_REFRESH_SCHEDULE: object = ""
    """Times at which all known URLs are put into source index, to be fetched again: a cron expression, such as `"0 2 * *
    sun"`; see [schedules](#schedules). Empty: there are none."""
    CRAWLSPACE_REFRESH_CYCLE: object = 0
    """Minutes from the beginning of one cycle to that of the next, or a cron expression, at whose times cycles begin. In a
    cycle everything known is fetched once, whatever the intervals above are. 0: no cycles."""
    CRAWLSPACE_REFRESH_WHEN_IDLE: bool = False
    """Whether the next cycle begins before its time when nothing is left to do: at a start, and in a continuous crawl at most
    once a minute."""
    CRAWLSPACE_REFRESH_MODE: Literal["scratch", "append", "prioritized", "soft"] = "append"
    """What the beginning of a cycle does; see [cycles](#cycles)."""


class FinishSection(Section, frozen=True):
    """The end of a crawl."""

    CRAWLSPACE_ON_FINISH: object = ""
    """A command that gets the summary of each `scrapy crawl`: see [below](#a-command-at-the-end). Text, split into words as by
    a shell, or a list of words."""
    CRAWLSPACE_ON_FINISH_TIMEOUT: Annotated[float, seconds(1)] = 60.0
    """How long it may take before it is ended, with all that it has started."""


class RunsSection(Section, frozen=True):
    """Runs."""

    CRAWLSPACE_PROCESSES: Processes = 1
    """Processes of a crawl, with the one that fetches and records: the others [read pages](commands.md#several-processors).
    `scrapy crawl --processes` sets it."""
    CRAWLSPACE_RUNS_KEPT: Whole = 30
    """Runs of which the summary and the numbers over time are kept in the store, and what became of each URL in files, in the
    folder `runs` of the collection's data, 256 MB a run and process at most. 0: no files are written, and of the present run only the numbers are kept."""


class MonitoringSettings(Section, frozen=True):
    """Metrics and logs."""

    port: Annotated[int, Meta(ge=0, le=65_535)] | None = field(default=0, name="CRAWLSPACE_METRICS_PORT")
    """The port at which `scrapy crawl` serves its [metrics](monitoring.md): `/metrics`, `/live` and `/ready`. 0: none. Crawls on
    one machine need a port each."""
    bind: str = field(default="127.0.0.1", name="CRAWLSPACE_METRICS_BIND")
    """The IP address that it listens on. One beyond this machine needs a token."""
    token: str = field(default="", name="CRAWLSPACE_METRICS_TOKEN")
    """What `/metrics` is to be asked with, as `Authorization: Bearer TOKEN`: `"env:NAME"` or `"file:PATH"`. Empty: none is needed."""
    log_format: Literal["text", "json"] = field(default="text", name="CRAWLSPACE_LOG_FORMAT")
    """`"json"`: `scrapy crawl` logs [lines of JSON](monitoring.md#logs) with the field names of ECS, its summary among them."""


class DeletionsSection(Section, frozen=True):
    """Deletions."""

    CRAWLSPACE_MAX_DELETIONS: Whole = 100
    """Deletions that are never too many."""
    CRAWLSPACE_ORPHANS: object = "keep"
    """The fate of URLs that cannot be reached from a start URL any more: `"keep"` them while they answer, or `"delete:3"`
    to delete them, with their documents, at the end of the third run that finds them so. More than a run may delete at once
    are held, all of them."""
    CRAWLSPACE_MAX_DELETIONS_PERCENT: Annotated[int, Meta(ge=0, le=100)] = 10
    """Share of the indexed documents, in per cent, that is never too many to delete. Too many at once are more than both.
    The rest of a run's, and all of a change of the rules, is held until it is approved."""
    CRAWLSPACE_HOST_FETCHES: Annotated[int, Meta(ge=1, le=60)] = 20
    """How many fetches of a site are its last ones."""
    CRAWLSPACE_HOST_FAILURES_PERCENT: Annotated[int, Meta(ge=1, le=100)] = 50
    """A failure that may be the host's deletes a page only while fewer than this share of the site's last fetches failed."""


class IndexSection(Section, frozen=True):
    """Index."""

    CRAWLSPACE_SINKS: object = field(default_factory=dict)
    """The indexes that documents are sent to: options by name, each with a `type`; see [sinks](sinks.md). Empty: the embedded
    index alone, `index.db` in the collection's data folder."""
    CRAWLSPACE_MAX_BACKLOG: Annotated[int, Meta(ge=100)] = 10_000
    """Orders that a sink has not taken yet, at which the crawl waits for it; what waits for a server that does not answer is
    dropped then, and sent from the archive later."""
    CRAWLSPACE_INLINE_MAX_BYTES: Annotated[int, Meta(ge=1_000)] | None = 10_000_000
    """Bytes of text (as UTF-8) above which a document is sent to servers and files [without its
    text](sinks.md#large-documents), and with its place in the archive. `None`: no limit."""
    CRAWLSPACE_CONTENT_URL: str = ""
    """URL that such a document can be had at, with `{id}` or `{url}` in it, and `{collection}`:
    `https://console.example.com/content/{id}`. Empty: it has none."""


class RequestsSection(Section, frozen=True):
    """Requests to sites."""

    USER_AGENT: Annotated[str, Meta(min_length=1)] = "crawlspace/0.1"
    """The name given to the sites, and the one looked for in robots.txt. Add an address where you can be reached."""
    ROBOTSTXT_OBEY: bool = True
    """Whether robots.txt is obeyed. `False` turns off meta robots too, unless `CRAWLSPACE_META_ROBOTS` is `True`."""
    DOWNLOAD_DELAY_JITTER: int = 0
    """No random part is added to the delay."""
    CONCURRENT_REQUESTS: Count = 32
    """Requests at a time, all sites together."""
    DOWNLOAD_TIMEOUT: Annotated[float, Meta(gt=0)] = 60
    """Seconds until a request is given up, body included (613): a number such as `0.5`, as for `DOWNLOAD_DELAY`."""
    DOWNLOAD_MAXSIZE: Whole = 16 * 1024 * 1024
    """Bytes of a body, as sent and after decompression. More is 615."""
    DOWNLOAD_WARNSIZE: int = 0
    """No warnings about large bodies."""
    DOWNLOAD_FAIL_ON_DATALOSS: bool = True
    """A body that is cut short is an error (615), not a document."""
    DOWNLOAD_VERIFY_CERTIFICATES: bool = True
    """TLS certificates must be valid (else 614)."""
    COOKIES_ENABLED: bool = False
    """Cookies are neither kept nor sent; some sites [redirect for ever](reasons.md#redirects) then. `True`: as Scrapy keeps
    them, with the list of public suffixes that is installed with it; none is fetched."""


class DelaysSection(Section, frozen=True):
    """Delays between requests to a site, in the table of `RequestsSection`."""

    DOWNLOAD_DELAY: Annotated[float, seconds(0)] = 1
    """Seconds between two requests to a site (one host and port). Write a number: Scrapy reads it too and knows no units."""
    CONCURRENT_REQUESTS_PER_DOMAIN: Count = 8
    """Requests at a time to one site without a delay. A site with a delay gets one at a time."""


class BoundsSection(Section, frozen=True):
    """Bounds."""

    RETRY_TIMES: Annotated[int, Meta(ge=0, le=100)] = 2
    """Tries after the first one in a run, for failures that may pass."""
    RETRY_HTTP_CODES: object = None
    """HTTP codes that are tried again in a run, from 400 to 599, and no others; `CRAWLSPACE_HTTP_ERRORS` comes before it.
    `None`: 5xx and 429."""
    REDIRECT_MAX_TIMES: Whole = 10
    """Redirects in a row that are followed."""


class UrlBoundsSection(Section, frozen=True):
    """Bounds of URLs, in the table of `BoundsSection`."""

    DEPTH_LIMIT: Whole = 0
    """Links away from a start URL. 0: no limit."""
    URLLENGTH_LIMIT: Annotated[int, Meta(ge=16, le=65_536)] = 2083
    """Characters of a URL in normal form."""


class ScrapySection(Section, frozen=True):
    """Scrapy's own settings."""

    BOT_NAME: str = "crawlspace"
    """Name of the project."""
    SPIDER_MODULES: Words = ("spiders",)
    """Where spider classes are looked for."""
    NEWSPIDER_MODULE: str = "spiders"
    """Where `scrapy genspider` puts one."""
    COMMANDS_MODULE: str = commands_module(sys.argv)
    """Where our commands are; on the command line the module of the one that is called, which starts faster so."""
    SPIDER_LOADER_CLASS: str = "crawlspace.runtime.components.loader.CollectionLoader"
    """Makes each collection a spider."""
    SCHEDULER: str = "crawlspace.runtime.components.scheduler.FrontierScheduler"
    """Returns the URLs that the frontier leases."""
    DOWNLOADER: str = "crawlspace.runtime.components.downloader.FrontierDownloader"
    """Sends the requests of the frontier without a queue."""
    TWISTED_REACTOR: str = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
    """The asyncio event loop."""
    ASYNCIO_EVENT_LOOP: str | None = "uvloop.Loop" if os.name == "posix" else None
    """A faster event loop, where there is one (not on Windows)."""
    TWISTED_DNS_RESOLVER: str = "crawlspace.runtime.http.resolver.GuardedResolver"
    """Holds the address rules at connect time, for each collection of a process its own. A crawl does not start with another
    one."""
    LOG_FORMATTER: str = "crawlspace.runtime.components.logformat.QuietLogFormatter"
    """Messages for single pages are made at level DEBUG only."""
    ITEM_PROCESSOR: str = "crawlspace.runtime.components.pipelines.PagePipelines"
    """Gives item pipelines the document of each page. A crawl does not start with another one."""
    STATS_DUMP: bool = False
    """The stats are not logged at the end; `-s STATS_DUMP=True` does. See [stats](stats.md)."""
    TELNETCONSOLE_ENABLED: bool = False
    """No telnet console."""
    REMOTE_CONTROL_ENABLED: bool = False
    """No remote control: it would let whoever has its token run Python in the crawler."""
    FEED_EXPORT_ENCODING: str = "utf-8"
    """Exports are in UTF-8; Scrapy's default would escape what is not ASCII."""
    FEED_STORAGES: object = field(
        default_factory=lambda: {
            "": "crawlspace.runtime.components.exports.FeedFile",
            "file": "crawlspace.runtime.components.exports.FeedFile",
        }
    )
    """A file that is overwritten (`-O`, `"overwrite": True`) is [replaced as a whole](collections.md#exports). Keep both where
    you add a storage."""
    FEED_EXPORTERS: object = field(
        default_factory=lambda: {
            "jsonlines": "crawlspace.runtime.components.exports.JsonLinesExporter",
            "jsonl": "crawlspace.runtime.components.exports.JsonLinesExporter",
            "jl": "crawlspace.runtime.components.exports.JsonLinesExporter",
        }
    )
    """JSON lines of documents, written at once."""
    CONCURRENT_ITEMS: int = 1
    """A page is one item, so one task for each page is enough."""
    SCRAPER_SLOT_MAX_ACTIVE_SIZE: int = 67108864
    """Bytes of bodies at which Scrapy requests nothing more. Files wait in their callback until they are read; those over 1 MB
    are on disk, and count as nothing."""


DOWNLOAD_HANDLERS = {
    "http": "crawlspace.runtime.http.handler.CurlDownloadHandler",
    "https": "crawlspace.runtime.http.handler.CurlDownloadHandler",
    "file": None,
    "data": None,
    "s3": None,
    "ftp": None,
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
    "crawlspace.runtime.session.run_keeping.RunKeeping": 0,
    "crawlspace.runtime.monitoring.crawl.CrawlMonitoring": 0,
}


class ThrottleSettings(Section, frozen=True):
    """Adaptation of a site's delay to its latency, with Scrapy's defaults."""

    is_on: bool = field(default=False, name="AUTOTHROTTLE_ENABLED")
    start_delay_s: Annotated[float, seconds(0)] = field(default=5, name="AUTOTHROTTLE_START_DELAY")
    """The delay until a site has answered."""
    max_delay_s: Annotated[float, seconds(0)] = field(default=60, name="AUTOTHROTTLE_MAX_DELAY")
    target_concurrency: Annotated[float, Meta(gt=0)] = field(default=1, name="AUTOTHROTTLE_TARGET_CONCURRENCY")
    """Requests to a site that are to be in flight on average."""
    debug: bool = field(default=False, name="AUTOTHROTTLE_DEBUG")
    """Whether each change is logged."""


class OfScrapySection(Section, frozen=True):
    """Settings that collections read and that keep Scrapy's defaults."""

    HTTPPROXY_AUTH_ENCODING: str = "latin-1"
    HTTPPROXY_ENABLED: bool = True
    METAREFRESH_ENABLED: bool = True
    REDIRECT_ENABLED: bool = True
    RETRY_ENABLED: bool = True
    ROBOTSTXT_USER_AGENT: str = ""


sections = (
    *(
        PathsSection,
        SpaceLimitsSection,
        SpellingsSection,
        SitesSection,
        RenderingSection,
        BrowserSettings,
        RulesXmlSection,
        LifecycleSection,
        FinishSection,
        RunsSection,
        MonitoringSettings,
        DeletionsSection,
        ContentSection,
        SitemapSection,
        FileSettings,
        ArchiveSection,
        IndexSection,
    ),
    *(RequestsSection, DelaysSection, BoundsSection, UrlBoundsSection, ScrapySection),
)
"""In the order of docs/settings.md."""


def _shown(default: object) -> object:
    """Return a default as Scrapy has it: a list for a tuple, text with a unit for a duration that is written as a float."""
    if isinstance(default, float):
        return f"{default / 86_400:g}d" if default >= 86_400 else f"{default:g}s"
    return list(default) if isinstance(default, tuple) else default


globals().update(
    {one.encode_name: _shown(getattr(section(), one.name)) for section in sections for one in structs.fields(section)}
)


def __getattr__(name: str) -> object:
    """Tell type checkers that there are other names than those written here. Raises AttributeError."""
    raise AttributeError(name)
