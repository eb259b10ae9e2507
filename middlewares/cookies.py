"""Scrapy's cookies, within the bounds that browsers have (RFC 6265, 6.1): a server could set any number, to be kept and sent back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

if TYPE_CHECKING:
    from collections.abc import Iterable
    from http.cookiejar import Cookie

    from scrapy import Request
    from scrapy.http.cookies import CookieJar

MOST_COOKIES = 50
"""Kept of one domain; the oldest go first."""
MOST_CHARACTERS = 4_096
"""Of name and value; a longer cookie is not kept."""


class Cookies(CookiesMiddleware):
    """Keeps at most 50 cookies of a domain, of at most 4,096 characters each."""

    def _process_cookies(self, cookies: Iterable[Cookie], *, jar: CookieJar, request: Request) -> None:
        small = [cookie for cookie in cookies if len(cookie.name) + len(cookie.value or "") <= MOST_CHARACTERS]
        super()._process_cookies(small, jar=jar, request=request)
        for domain in {cookie.domain for cookie in small}:
            _forget_oldest(jar, domain)


def _forget_oldest(jar: CookieJar, domain: str) -> None:
    by_path = jar._cookies.get(domain, {})
    too_many = sum(map(len, by_path.values())) - MOST_COOKIES
    if too_many > 0:
        for path, name in [(path, name) for path, names in by_path.items() for name in names][:too_many]:
            jar.clear(domain, path, name)
