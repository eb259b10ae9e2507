"""Scrapy's cookies, within the bounds that browsers have (RFC 6265, 6.1): a server could set any number, to be kept and sent back."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Iterable
from contextlib import suppress
from http.cookiejar import Cookie
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.http.cookies import CookieJar
from scrapy.utils.httpobj import urlparse_cached

from crawlspace.rules.domain import is_address
from crawlspace.runtime.components.scrapy_internals import CookieHook, cookies_by_path
from crawlspace.runtime.http.cookies import is_public_suffix


class Cookies(CookieHook, CookiesMiddleware):
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


# --- set cookie ----------------------------------------------------------------------------------------------------


_LONGEST_S = 400 * 86_400
"""Of Max-Age (RFC 6265bis, 5.6.2)."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MAX_AGE = re.compile(r"-?[0-9]+")
_BETWEEN = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = re.compile(r"([0-9]{1,2})(?![0-9])")
_YEAR = re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_cookies(headers: Iterable[bytes], *, url: str, now: float) -> list[Cookie]:
    """Return the cookies of a response to a request for a URL; one that has expired tells that it is to be dropped."""
    found = (_cookie(header.decode("utf-8", "replace"), url, now) for header in headers)
    return [cookie for cookie in found if cookie is not None]


def jar_domain(host: str) -> str:
    """Return the domain that Python's jar has for a host: one without a dot is one of a local network there."""
    return host if "." in host or ":" in host else f"{host}.local"


def jar_cookie(
    name: str, value: str | None, domain: str, path: str, *, secure: bool, expires: int | None, rest: dict[str, str]
) -> Cookie:
    """Return a cookie for Python's jar; `domain` begins with a dot where hosts below it get it, too."""
    return Cookie(
        version=0,
        name=name,
        value=value,
        port=None,
        port_specified=False,
        domain=jar_domain(domain),
        domain_specified=domain.startswith("."),
        domain_initial_dot=domain.startswith("."),
        path=path,
        path_specified=True,
        secure=secure,
        expires=expires,
        discard=expires is None,
        comment=None,
        comment_url=None,
        rest=rest,
    )


def _cookie(header: str, url: str, now: float) -> Cookie | None:
    """Return the cookie of a header; None where a browser takes none."""
    if _CONTROL.search(header):
        return None
    pair, *rest = header.split(";")
    name, equals, value = (part.strip(" \t") for part in pair.partition("="))
    if not name:  # as browsers keep one that is a text alone
        name, equals, value = value, "", ""
    if not name:
        return None
    given: dict[str, str] = {}
    for attribute in rest:  # the last one of a name counts
        key, _, text = attribute.partition("=")
        given[key.strip(" \t").lower()] = text.strip(" \t")
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    domain = _domain(given.get("domain", ""), host)
    if domain is None:
        return None
    path = given.get("path", "")
    return jar_cookie(
        name,
        value if equals else None,
        f".{domain}" if domain else host,
        path if path.startswith("/") else _folder(parts.path),
        secure="secure" in given,
        expires=_expires(given, now),
        rest={key: given[key.lower()] for key in ("HttpOnly", "SameSite") if key.lower() in given},
    )


def _domain(given: str, host: str) -> str | None:
    """Return the domain whose hosts get a cookie; empty: the host alone; None where that host may not set it."""
    domain = given.lower().removeprefix(".")
    if not domain.isascii():
        try:
            domain = domain.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    if not domain or (domain == host and ("." not in host or is_address(host))):
        return ""
    return domain if domain == host or (host.endswith(f".{domain}") and not is_address(host)) else None


def _folder(path: str) -> str:
    """Return the path that a cookie has by default (RFC 6265, 5.1.4)."""
    return path[: path.rindex("/")] or "/" if path.startswith("/") else "/"


def _expires(given: dict[str, str], now: float) -> int | None:
    """Return when a cookie ends, as a Unix time; None: with the session."""
    age = given.get("max-age", "")
    if _MAX_AGE.fullmatch(age):
        seconds = _LONGEST_S if len(age) > 10 and age[0] != "-" else int(age[:11])
        return 0 if seconds <= 0 else int(now) + min(seconds, _LONGEST_S)
    return _time(given.get("expires", ""))


def _time(date: str) -> int | None:
    """Return the time of a date, which may be written in any way that browsers know (RFC 6265, 5.1.1); None for what is none."""
    time: list[int] | None = None
    day = month = year = None
    for token in _BETWEEN.split(date):
        if time is None and (match := _TIME.match(token)):
            time = [int(part) for part in match.groups()]
        elif day is None and (match := _DAY.match(token)):
            day = int(match[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (match := _YEAR.match(token)):
            year = int(match[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    hour, minute, second = time
    if not 1 <= day <= 31 or year < 1601 or hour > 23 or minute > 59 or second > 59:
        return None
    return timegm((year, month, day, hour, minute, second))
