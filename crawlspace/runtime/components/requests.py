"""A lease as a Scrapy request, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from scrapy import Request

from crawlspace.content.page import Page
from crawlspace.crawl.run import FetchRobots
from crawlspace.model import Source, UrlState, priority
from crawlspace.outcome import Outcome
from crawlspace.runtime.components.scrapy_internals import UrlAsGiven
from crawlspace.urls import MalformedUrl, parse

SLOT = "crawlspace"
"""The one download slot of all leased URLs: it has no delay, because the frontier keeps the delays."""
STATE = "crawlspace_state"
ROBOTS = "crawlspace_robots"
CONDITIONAL = "crawlspace_conditional"
"""Set on a request that may be answered with 304."""
FETCHED = "crawlspace_fetched"
"""The record of a page's fetch while its item goes through spider middlewares."""
FAILED = "crawlspace_failed"
"""Set where parsing a page has raised, and its outcome is made already."""
AGAIN = "crawlspace_again"
"""Number of times a middleware has replaced the response to it by a request."""
OWN = "crawlspace_own"
"""The page that a request of the spider's own belongs to, and its callbacks."""
PREPARED = "crawlspace_prepared"
"""The requests of a spider's own that were yielded for a response and are going through spider middlewares."""
LATER = "crawlspace_later"
"""Set where a page is recorded when the last of its own requests has ended."""
FILE = "crawlspace_file"
"""The body of what may be a file."""
CONTENTS = "crawlspace_contents"
"""The content of a file."""
EXTRACTED = "crawlspace_extracted"
"""What extraction rules take from a page."""
SITEMAP = "crawlspace_sitemap"
"""What is in a sitemap."""
PAGE = "crawlspace_page"
"""A page that another process has read (`ReadPage`)."""
CUT = "crawlspace_cut"
"""A flag of a response of whose body only the beginning was taken."""
EXCHANGE = "crawlspace_exchange"
"""The request and response, for the archive."""
DOWNLOADED = "crawlspace_downloaded"
"""The seconds that the download took, and the received bytes of the body."""
SESSION = "crawlspace_session"
"""The entry of CRAWLSPACE_SITES whose session a request carries, its number, and when that was set."""
CHECK = "crawlspace_check"
"""The number of the session that a request checks; 0 for none."""
NONCE = "crawlspace_nonce"
"""The nonce of a site with a digest log-in that a request answers."""
STALE = "crawlspace_stale"
"""Whether a request answers a second challenge of a digest log-in."""
NEGOTIATE = "crawlspace_negotiate"
"""Set on a request that logs in by Kerberos."""
CARRIED = "crawlspace_carried"
"""The headers of CRAWLSPACE_SITES for the request's site, by name, with a hash of their values."""
RESOURCE = "crawlspace_resource"
"""The page in the browser that a request is for."""
PROXIED = "crawlspace_proxied"
"""The proxy that the settings have for the request's site: its URL, as `meta["proxy"]` has it, and the setting that names it."""
_OF_THE_CRAWL = frozenset(
    {
        FILE,
        CONTENTS,
        PAGE,
        SITEMAP,
        STATE,
        ROBOTS,
        CONDITIONAL,
        FETCHED,
        FAILED,
        AGAIN,
        OWN,
        PREPARED,
        LATER,
        EXCHANGE,
        DOWNLOADED,
        SESSION,
        NONCE,
        CARRIED,
    }
    | {RESOURCE, PROXIED, CHECK, STALE, NEGOTIATE}
)


class ReadPage(NamedTuple):
    """A page that another process has read, and the type that it was read as."""

    mime: str
    page: Page


class OfPage(NamedTuple):
    """For which page a resource is requested, and by which of its documents (`request.meta[RESOURCE]`)."""

    url: str
    is_named: bool
    """Its host is among the `render_hosts` of the page's site, so that domain rules don't apply to it."""
    is_own: bool
    """It is for a document of the requested origin: only such a request carries credentials."""
    may_be_read_elsewhere: bool
    """A script of another origin could read it, so that the rules for pages apply."""


class LeasedRequest(UrlAsGiven, Request):
    """A request for a URL that is in normal form already, so that Scrapy need not escape it once more."""


def page_request(state: UrlState, *, callback: Any, errback: Any, conditional: bool = False) -> Request:
    """Return the request for a leased URL."""
    meta: dict[str, Any] = {STATE: state, "download_slot": SLOT}
    if conditional:
        meta[CONDITIONAL] = True
    return LeasedRequest(
        state.url,
        callback=callback,
        errback=errback,
        meta=meta,
        priority=priority(Source(state.source), state.shift),
        dont_filter=True,
    )


def detached(request: Request) -> Request:
    """Return a request without the keys of a leased one, for spiders copy `response.meta` into new requests or yield `response.request`."""
    if _OF_THE_CRAWL.isdisjoint(request.meta):
        return request
    own = request.copy()
    drop_access(own)
    drop_proxy(own)
    for key in _OF_THE_CRAWL:
        own.meta.pop(key, None)
    return own


def set_access(request: Request, names: Iterable[str]) -> None:
    """Remember that these headers are for the site of a request, and for no other one."""
    request.meta[CARRIED] = {name: hash(tuple(request.headers.getlist(name))) for name in names}


def drop_access(request: Request) -> None:
    """Remove what `set_access` has set: a request that was redirected or copied may be for another site."""
    for name, what in request.meta.pop(CARRIED, {}).items():
        if hash(tuple(request.headers.getlist(name))) == what:
            request.headers.pop(name, None)
        if name == "Cookie":
            request.meta.pop("dont_merge_cookies", None)
    for key in (SESSION, NONCE, STALE, NEGOTIATE):
        request.meta.pop(key, None)


def set_proxy(request: Request, url: str, authorization: str, *, where: str) -> None:
    """Set the proxy of a request; `where` is the setting that names it, `authorization` is empty without a log-in."""
    request.meta["proxy"], request.meta[PROXIED] = url, (url, where)
    if authorization:
        request.headers["Proxy-Authorization"] = authorization


def drop_proxy(request: Request) -> None:
    """Remove what `set_proxy` has set: a request that was redirected or copied may be for another site."""
    url, _ = request.meta.pop(PROXIED, ("", ""))
    if url and request.meta.get("proxy") == url:
        for key in ("proxy", "_auth_proxy"):
            request.meta.pop(key, None)
        request.headers.pop("Proxy-Authorization", None)


def site_of(request: Request) -> tuple[str, str] | None:
    """Return the site and the scheme of a request; None for what is no URL."""
    state = request.meta.get(STATE)
    if state is not None and request.url == state.url:
        return state.site, state.url.partition(":")[0]
    try:
        url = parse(request.url)
    except MalformedUrl:
        return None
    return url.site, url.scheme


def site_text(request: Request) -> str:
    """Return the site of a request as text, `host:port`; empty for what is no URL."""
    found = site_of(request)
    return "" if found is None else found[0]


def request_id(request: Request) -> int | str:
    """Return the id of the URL that a request is for, the site of a robots.txt, or the URL of any other request."""
    state = request.meta.get(STATE)
    if state is not None:
        return int(state.id)
    robots = request.meta.get(ROBOTS)
    return robots.site if robots is not None else request.url


def is_conditional(request: Request | None) -> bool:
    """Return whether a request was conditional, even by validators added elsewhere."""
    return request is not None and (b"If-None-Match" in request.headers or b"If-Modified-Since" in request.headers)


def robots_request(fetch: FetchRobots, *, callback: Any, errback: Any) -> Request:
    """Return the request for a site's robots.txt."""
    return LeasedRequest(
        fetch.url,
        callback=callback,
        errback=errback,
        meta={ROBOTS: fetch, "download_slot": SLOT},
        dont_filter=True,
    )


def add_download(outcome: Outcome, request: Request) -> None:
    """Set how long the download took, and its size, where our download handler has made it."""
    outcome.took_s, outcome.body_bytes = request.meta.pop(DOWNLOADED, (None, 0))
