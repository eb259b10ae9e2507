"""The cookies of a session, by Scrapy's jar and its rules for cookies, and as a text that can be stored."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from http.cookiejar import Cookie, LoadError, MozillaCookieJar
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crawlspace.config.site_access import SiteAccess
from crawlspace.errors import SettingError
from crawlspace.printable import printable, quoted
from crawlspace.runtime.middlewares.cookies import BaseCookies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy import Request
    from scrapy.http import Response


@dataclass(frozen=True, slots=True)
class KeptCookie:
    """A cookie (RFC 6265, 5.3)."""

    name: str
    value: str | None
    domain: str
    domain_specified: bool
    path: str
    secure: bool
    expires: int | None


class SessionCookies:
    """A jar that requests and responses of one session share."""

    def __init__(self, content: str = "[]") -> None:
        self._cookies = BaseCookies()
        self._jar = self._cookies.jars[None]
        self.load(_read(content))

    def load(self, cookies: Iterable[Cookie]) -> None:
        for cookie in cookies:
            self._jar.jar.set_cookie(cookie)

    def load_for_entry(self, access: SiteAccess, values: Mapping[str, str]) -> None:
        """Take cookies that are given by name and value only: for the hosts of the entry."""
        pattern = access.pattern.partition(":")[0]
        domain = pattern.removeprefix("*")
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
        kept = [
            KeptCookie(
                one.name,
                one.value,
                one.domain,
                one.domain_specified,
                one.path,
                one.secure,
                None if one.expires is None else int(one.expires),
            )
            for one in self._jar.jar
        ]
        return msgspec.json.encode([astuple(one) for one in kept]).decode()


def read_cookie_file(where: str, name: str) -> list[Cookie]:
    """Return the cookies of a file in Netscape's format, as browsers and curl write it. Raises SettingError."""
    path = Path(name).expanduser()
    jar = MozillaCookieJar()
    try:
        jar.load(str(path), ignore_discard=True, ignore_expires=True)
    except LoadError as error:
        raise SettingError(
            f"{where} is {quoted(name)}, which is no cookie file of Netscape's format: its first line must be"
            " '# Netscape HTTP Cookie File', and each other one has seven fields, apart by tabs"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(
            f"{where} is {quoted(name)}, which cannot be read: {printable(getattr(error, 'strerror', None) or error)}"
        ) from error
    cookies = list(jar)
    for cookie in cookies:
        if cookie.expires == 0:  # curl and browsers write it for a cookie that lasts as long as the browser runs
            cookie.expires, cookie.discard = None, True
    if not any(not cookie.is_expired() for cookie in cookies):
        raise SettingError(f"{where} is {quoted(name)}, which has no cookies that are good any more")
    return cookies


def _read(content: str) -> list[Cookie]:
    rows = msgspec.json.decode(content, type=list[tuple[str, str | None, str, bool, str, bool, int | None]])
    return [_cookie(KeptCookie(*row)) for row in rows]


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
        rest={},
    )
