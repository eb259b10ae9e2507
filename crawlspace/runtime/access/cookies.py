"""The cookies of a session: in Scrapy's jar, in the store, in files, and in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http.cookiejar import Cookie, DefaultCookiePolicy
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import urlsplit

import msgspec
from scrapy import Request
from scrapy.http import Response

from crawlspace.access.sessions import KeptCookie
from crawlspace.config.access import SiteAccess
from crawlspace.errors import SettingError
from crawlspace.runtime.components.cookies import Cookies, jar_cookie, jar_domain
from crawlspace.runtime.components.scrapy_internals import other_attributes
from crawlspace.text import printable, quoted

_HTTP_ONLY = "#HttpOnly_"
"""Before the domain of a cookie that no script may see."""


class SessionCookies:
    """A jar that requests and responses of one session share."""

    def __init__(self, content: str = "[]") -> None:
        self._cookies = Cookies()
        self._jar = self._cookies.jars[None]
        # Python sends a cookie without a domain to hosts below the one that has set it, too.
        self._jar.policy = DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)
        self._jar.jar.set_policy(self._jar.policy)
        self.load(msgspec.json.decode(content, type=list[KeptCookie]))

    def load(self, cookies: Iterable[KeptCookie]) -> None:
        for one in cookies:
            rest = {"HttpOnly": ""} if one.http_only else {}
            rest |= {"SameSite": one.same_site} if one.same_site else {}
            self._jar.jar.set_cookie(
                jar_cookie(one.name, one.value, one.domain, one.path, secure=one.secure, expires=one.expires, rest=rest)
            )

    def add_to(self, request: Request) -> None:
        """Set the header of a request, in place of one that it has."""
        request.meta.pop("dont_merge_cookies", None)
        jar = request.meta.pop("cookiejar", None)
        self._cookies.process_request(request)
        request.meta["dont_merge_cookies"] = True
        if jar is not None:
            request.meta["cookiejar"] = jar

    def take_from(self, response: Response, request: Request) -> bool:
        """Take the cookies of a response; return whether it has any."""
        if b"Set-Cookie" not in response.headers:
            return False
        request.meta.pop("dont_merge_cookies", None)
        self._cookies.process_response(request, response)
        request.meta["dont_merge_cookies"] = True
        return True

    def dumped(self) -> str:
        """Return all cookies as a text."""
        return msgspec.json.encode(self.kept()).decode()

    def kept(self) -> list[KeptCookie]:
        """Return all cookies, with domains as Python's jar has them."""
        return kept_cookies(self._jar.jar)


def kept_cookies(cookies: Iterable[Cookie]) -> list[KeptCookie]:
    """Return cookies of a jar as they are kept."""
    return [_kept(cookie) for cookie in cookies]


def _kept(cookie: Cookie) -> KeptCookie:
    others, expires = other_attributes(cookie), None if cookie.expires is None else int(cookie.expires)
    return KeptCookie(
        cookie.name,
        cookie.value,
        cookie.domain,
        cookie.domain_specified,
        cookie.path,
        cookie.secure,
        expires,
        "httponly" in others,
        str(others.get("samesite") or ""),
    )


# --- cookies of the settings ------------------------------------------------------------------------------------------


def cookies_of_values(access: SiteAccess, values: Mapping[str, str]) -> list[KeptCookie]:
    """Return cookies that are given by name and value only: for the hosts of the entry."""
    domain = _host_of(access.pattern).removeprefix("*")
    return [
        KeptCookie(name, value, domain, domain.startswith("."), "/", secure=False, expires=None) for name, value in values.items()
    ]


def read_cookie_file(where: str, name: str) -> list[KeptCookie]:
    """Return the cookies of a file in Netscape's format, as browsers and curl write it. Raises SettingError, which shows no value.

    Python's own reader warns with a traceback and values of lines that it does not expect.
    """
    try:
        content = Path(name).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not in UTF-8"
        raise SettingError(f"{where} is {quoted(name)}, which cannot be read: {printable(why)}") from None
    cookies = []
    for number, line in enumerate(content.splitlines(), start=1):
        written = line.removeprefix(_HTTP_ONLY)
        if not written.strip() or written.startswith("#"):
            continue
        cookie = _cookie_of_line(written, http_only=written != line)
        if cookie is None:
            raise SettingError(
                f"{where} is {quoted(name)}, whose line {number} is not of Netscape's format: seven fields, apart by tabs, which are domain,"
                " TRUE or FALSE, path, TRUE or FALSE, the time of its end or 0, name and value"
            )
        cookies.append(cookie)
    if not any(cookie.expires is None or cookie.expires > time() for cookie in cookies):
        raise SettingError(f"{where} is {quoted(name)}, which has no cookies that are good any more")
    return cookies


def _cookie_of_line(line: str, *, http_only: bool) -> KeptCookie | None:
    """Return the cookie of a line of a file; None where it has none."""
    fields = line.split("\t")
    if len(fields) != 7 or {fields[1], fields[3]} - {"TRUE", "FALSE"} or not fields[0]:
        return None
    domain, of_domain, path, secure, expires, name, value = fields
    try:
        ends = int(float(expires or "0"))
    except (ValueError, OverflowError):
        return None
    if of_domain == "TRUE":
        domain = "." + domain.removeprefix(".")
    if not name:  # as a browser keeps a cookie without "="
        name, value = value, ""
    return KeptCookie(name, value, domain, domain.startswith("."), path, secure == "TRUE", ends or None, http_only)


# --- cookies of a browser ---------------------------------------------------------------------------------------------


def cookies_of_entry(
    cookies: Iterable[Mapping[str, Any]], access: SiteAccess, is_of_entry: Callable[[str], bool]
) -> list[KeptCookie]:
    """Return these of the cookies that Playwright has of a context; `is_of_entry` returns whether the entry is for a host."""
    return [_kept_of_browser(cookie) for cookie in cookies if _is_for_entry(cookie["domain"], access, is_of_entry)]


def _is_for_entry(domain: str, access: SiteAccess, is_of_entry: Callable[[str], bool]) -> bool:
    """Return whether a host of the entry would get a cookie of a domain, which begins with a dot where hosts below it get it."""
    host = domain.removeprefix(".")
    if host == domain or is_of_entry(host):
        return is_of_entry(host)
    own = _host_of(access.pattern.lower()).removeprefix("*").removeprefix(".")
    return own == host or own.endswith(domain)


def _host_of(pattern: str) -> str:
    """Return the host of an entry of CRAWLSPACE_SITES, without a port."""
    host, _, port = pattern.rpartition(":")
    return host if port.isdigit() and host else pattern


def _kept_of_browser(cookie: Mapping[str, Any]) -> KeptCookie:
    """Return a cookie as it is kept; one that ends with the browser has no expiry, which is -1 there."""
    domain, expires = str(cookie["domain"]), float(cookie.get("expires", -1))
    return KeptCookie(
        name=str(cookie["name"]),
        value=str(cookie["value"]),
        domain=domain,
        domain_specified=domain.startswith("."),
        path=str(cookie["path"]),
        secure=bool(cookie["secure"]),
        expires=None if expires < 0 else int(expires),
        http_only=bool(cookie.get("httpOnly", True)),
        same_site=str(cookie.get("sameSite", "")),
    )


def cookies_for_page(url: str, header: str, jar: Iterable[KeptCookie]) -> list[dict[str, Any]]:
    """Return the cookies with which a page was requested, as Playwright sets them in the browser.

    Those of `jar` that are for its host, of any path, keep what their server has set. What else the `header` of its request had is for
    that host alone, and seen by no script.
    """
    parts = urlsplit(url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    found = {(one.name, one.path): _for_browser(one, host) for one in jar if _is_for_host(one.domain, jar_domain(host))}
    names = {name for name, _ in found}
    for pair in header.split(";"):
        name, _, value = pair.strip().partition("=")
        if name and name not in names:
            kept = KeptCookie(name, value, host, domain_specified=False, path="/", secure=is_secure, expires=None)
            found[name, "/"] = _for_browser(kept, host)
    return list(found.values())


def _is_for_host(domain: str, host: str) -> bool:
    return host == domain.removeprefix(".") or (domain.startswith(".") and host.endswith(domain))


def _for_browser(cookie: KeptCookie, host: str) -> dict[str, Any]:
    """Return a cookie; one without SameSite is Lax, as browsers take it, and so is one with "None" that is not Secure."""
    same_site = cookie.same_site.strip().capitalize()
    if same_site not in {"Strict", "Lax"} and not (same_site == "None" and cookie.secure):
        same_site = "Lax"
    return {
        "name": cookie.name,
        "value": cookie.value or "",
        "domain": host if cookie.domain == jar_domain(host) else cookie.domain,
        "path": cookie.path,
        "secure": cookie.secure,
        "httpOnly": cookie.http_only,
        "sameSite": same_site,
    }
