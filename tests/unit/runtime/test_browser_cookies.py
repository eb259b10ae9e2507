"""Which cookies of a browser are kept as a session, and to which requests they go then."""

from __future__ import annotations

import pytest
from scrapy import Request

from crawlspace.config.rendering import NO_RENDERING
from crawlspace.config.sites import SiteSettings, SiteTable
from crawlspace.crawl.logins import entry_hosts_of
from crawlspace.rules.limits import Limits
from crawlspace.runtime.access.browser_cookies import cookies_of_entry
from crawlspace.runtime.access.jar import SessionCookies
from tests.unit.runtime.test_log_in import access_of

FAR = 4_000_000_000


def cookie(domain: str, *, path: str = "/", secure: bool = False, expires: float = -1) -> dict[str, object]:
    return {
        "name": "sid",
        "value": "v",
        "domain": domain,
        "path": path,
        "secure": secure,
        "expires": expires,
        "httpOnly": True,
        "sameSite": "Lax",
    }


WIKI, ALL = "wiki.example.com", "*.example.com"
SENT = [
    (WIKI, cookie(WIKI), "https://wiki.example.com/a", True),
    (WIKI, cookie(WIKI), "https://sub.wiki.example.com/", False),
    (WIKI, cookie("." + WIKI), "https://sub.wiki.example.com/", True),
    (WIKI, cookie(".example.com"), "https://wiki.example.com/", True),
    (WIKI, cookie("sso.example.com"), None, False),
    (WIKI, cookie(".sso.example.com"), None, False),
    (WIKI, cookie(".iki.example.com"), None, False),
    (WIKI, cookie(WIKI, path="/a"), "https://wiki.example.com/a/b", True),
    (WIKI, cookie(WIKI, path="/a"), "https://wiki.example.com/b", False),
    (WIKI, cookie(WIKI, secure=True), "http://wiki.example.com/", False),
    (WIKI, cookie(WIKI, secure=True), "https://wiki.example.com/", True),
    (WIKI, cookie(WIKI, expires=FAR + 0.5), "https://wiki.example.com/", True),
    (WIKI, cookie(WIKI, expires=1_000_000_000.5), "https://wiki.example.com/", False),
    ("wiki.example.com:8443", cookie(WIKI), "https://wiki.example.com:8443/", True),
    ("WIKI.example.com:8443", cookie(".example.com"), "https://wiki.example.com:8443/", True),
    (ALL, cookie(WIKI), "https://wiki.example.com/", True),
    (ALL, cookie("." + WIKI), "https://wiki.example.com/", True),
    (ALL, cookie(".example.com"), "https://wiki.example.com/", True),
    (ALL, cookie("example.com"), None, False),
    (ALL, cookie(".example.org"), None, False),
    ("intranet", cookie("intranet"), "https://intranet/", True),
]


@pytest.mark.parametrize(("pattern", "given", "url", "is_sent"), SENT)
def test_where_cookies_of_the_browser_go(pattern: str, given: dict[str, object], url: str | None, is_sent: bool) -> None:
    access = access_of(pattern)
    sites = SiteTable(
        SiteSettings(0.0, 1, Limits()), {pattern: SiteSettings(0.0, 1, Limits(), access=access, rendering=NO_RENDERING)}
    )
    kept = cookies_of_entry([given], access, entry_hosts_of(sites, access))
    assert bool(kept) == (url is not None)
    if url is None:
        return
    first = SessionCookies()
    first.load_kept(kept)
    request = Request(url)
    SessionCookies(first.dumped()).add_to(request)
    assert (request.headers.get("Cookie") == b"sid=v") == is_sent
