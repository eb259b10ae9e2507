"""The cookies of a session, by Scrapy's jar and its rules for cookies, and as a text that can be stored."""

from __future__ import annotations

from http.cookiejar import Cookie, DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crawlspace.access.sessions import KeptCookie
from crawlspace.config.site_access import SiteAccess
from crawlspace.errors import SettingError
from crawlspace.printable import printable, quoted
from crawlspace.runtime.components.cookies import Cookies, jar_domain
from crawlspace.runtime.components.scrapy_internals import other_attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy import Request
    from scrapy.http import Response

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
        self.load(_read(content))

    def load(self, cookies: Iterable[Cookie]) -> None:
        for cookie in cookies:
            self._jar.jar.set_cookie(cookie)

    def load_kept(self, cookies: Iterable[KeptCookie]) -> None:
        """Take cookies with domains as a browser has them: beginning with a dot where hosts below it get it, too."""
        for one in cookies:
            self._jar.jar.set_cookie(_cookie(msgspec.structs.replace(one, domain=jar_domain(one.domain))))

    def load_for_entry(self, access: SiteAccess, values: Mapping[str, str]) -> None:
        """Take cookies that are given by name and value only: for the hosts of the entry."""
        host, _, port = access.pattern.rpartition(":")
        domain = jar_domain((host if port.isdigit() and host else access.pattern).removeprefix("*"))
        for name, value in values.items():
            kept = KeptCookie(name, value, domain, domain.startswith("."), "/", secure=False, expires=None)
            self._jar.jar.set_cookie(_cookie(kept))

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


def read_cookie_file(where: str, name: str) -> list[Cookie]:
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
        is_http_only = written != line
        if not written.strip() or written.startswith("#"):
            continue
        cookie = _of_line(written, http_only=is_http_only)
        if cookie is None:
            raise SettingError(
                f"{where} is {quoted(name)}, whose line {number} is not of Netscape's format: seven fields, apart by tabs, which are domain,"
                " TRUE or FALSE, path, TRUE or FALSE, the time of its end or 0, name and value"
            )
        cookies.append(cookie)
    if not any(not cookie.is_expired() for cookie in cookies):
        raise SettingError(f"{where} is {quoted(name)}, which has no cookies that are good any more")
    return cookies


def _of_line(line: str, *, http_only: bool) -> Cookie | None:
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
    domain_specified = domain.startswith(".")
    return _cookie(KeptCookie(name, value, jar_domain(domain), domain_specified, path, secure == "TRUE", ends or None, http_only))


def _read(content: str) -> list[Cookie]:
    return [_cookie(kept) for kept in msgspec.json.decode(content, type=list[KeptCookie])]


def _kept(cookie: Cookie) -> KeptCookie:
    others = other_attributes(cookie)
    return KeptCookie(
        cookie.name,
        cookie.value,
        cookie.domain,
        cookie.domain_specified,
        cookie.path,
        cookie.secure,
        None if cookie.expires is None else int(cookie.expires),
        "httponly" in others,
        str(others.get("samesite") or ""),
    )


def _cookie(kept: KeptCookie) -> Cookie:
    return Cookie(
        version=0,
        name=kept.name,
        value=kept.value,
        port=None,
        port_specified=False,
        domain=kept.domain,
        domain_specified=kept.domain_specified,
        domain_initial_dot=kept.domain.startswith("."),
        path=kept.path,
        path_specified=True,
        secure=kept.secure,
        expires=kept.expires,
        discard=kept.expires is None,
        comment=None,
        comment_url=None,
        rest={**({"HttpOnly": ""} if kept.http_only else {}), **({"SameSite": kept.same_site} if kept.same_site else {})},
    )
