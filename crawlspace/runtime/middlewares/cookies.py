"""Scrapy's cookies, within the bounds that browsers have (RFC 6265, 6.1): a server could set any number, to be kept and sent back."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.utils.httpobj import urlparse_cached

from crawlspace.runtime.http.cookies import is_public_suffix
from crawlspace.runtime.middlewares.set_cookie import read_cookies
from crawlspace.runtime.scrapy_internals import CookieHook, cookies_by_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from http.cookiejar import Cookie

    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.http.cookies import CookieJar


class BaseCookies(CookieHook, CookiesMiddleware):
    """Reads cookies as browsers do, and drops those of a domain beyond the limits."""

    most_cookies = 50
    """Kept of one domain; the oldest go first."""
    most_characters = 4_096
    """Of name and value; a longer cookie is not kept."""

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Request | Response:
        """Take the cookies of a response."""
        headers = response.headers.getlist(b"Set-Cookie")
        if not headers or request.meta.get("dont_merge_cookies", False):
            return response
        jar = self.jars[request.meta.get("cookiejar")]
        now = time.time()
        for cookie in read_cookies(headers, url=request.url, now=now):
            if cookie.expires is None or cookie.expires > now:
                self.store([cookie], jar, request)
            else:
                with suppress(KeyError):
                    jar.clear(cookie.domain, cookie.path, cookie.name)
        self._debug_set_cookie(response)
        return response

    def store(self, cookies: Iterable[Cookie], jar: CookieJar, request: Request) -> None:
        """Put cookies into a jar, those of a public suffix for its own host only."""
        domains = set()
        host = (urlparse_cached(request).hostname or "").lower()
        for cookie in cookies:
            if len(cookie.name) + len(cookie.value or "") > self.most_characters:
                continue
            domain = cookie.domain.removeprefix(".")
            if domain and is_public_suffix(domain):
                if domain != host:
                    continue
                cookie.domain = host
            jar.set_cookie_if_ok(cookie, request)
            domains.add(cookie.domain)
        for domain in domains:
            _forget_oldest(jar, domain, self.most_cookies)


def _forget_oldest(jar: CookieJar, domain: str, most: int) -> None:
    by_path = cookies_by_path(jar, domain)
    too_many = sum(map(len, by_path.values())) - most
    if too_many > 0:
        for path, name in [(path, name) for path, names in by_path.items() for name in names][:too_many]:
            jar.clear(domain, path, name)
