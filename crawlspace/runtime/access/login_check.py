"""A log-in tried by a person who wants to see whether it works: the log-in itself, where it gives a session, and one page with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from scrapy import Request

from crawlspace.access.digest import DigestLogin, schemes
from crawlspace.content.html import extract
from crawlspace.printable import printable
from crawlspace.runtime.access.jar import SessionCookies
from crawlspace.runtime.access.log_in import LoggedIn, LogInFailedError
from crawlspace.runtime.access.requests import LoginRequests
from crawlspace.runtime.access.signs import LoggedOut
from crawlspace.runtime.components.requests import NEGOTIATE
from crawlspace.runtime.http.headers import location_of

if TYPE_CHECKING:
    from crawlspace.config.site_access import SiteAccess
    from crawlspace.urls import Url


@dataclass(frozen=True, slots=True)
class Tried:
    """What a site has answered; `failed` says why it has not."""

    status: int = 0
    location: str = ""
    content_type: str = ""
    title: str = ""
    failed: str = ""
    sign: str = ""
    """Why the answer looks as if nobody were logged in."""
    session: LoggedIn | None = None
    asks: tuple[str, ...] = ()
    """The schemes of log-ins that the answer asks for."""

    @property
    def is_taken(self) -> bool:
        """Whether the site has taken the log-in, as far as its answer shows."""
        return 200 <= self.status < 400 and not self.sign

    @property
    def sentence(self) -> str:
        if self.failed:
            return f"none: {self.failed}"
        parts = [f"status {self.status}"]
        parts += [f"to {printable(self.location)}"] if self.location else []
        parts += [printable(self.content_type)] if self.content_type else []
        parts += [f"titled {printable(self.title)}"] if self.title else []
        parts += [f"not logged in: it shows {self.sign}"] if self.sign else []
        return ", ".join(parts)


def try_login(
    url: Url,
    access: SiteAccess,
    *,
    sending: LoginRequests,
    allows: Callable[[str, int], bool],
    tell: Callable[[str], object],
) -> Tried:
    """Log in where that gives a session, and request a URL, without following a redirect. Raises SettingError."""
    request, session = Request(url.text), None
    try:
        if access.carries(url.scheme):
            for name, value in access.headers().items():
                request.headers[name] = value
            if access.kind == "negotiate":
                request.meta[NEGOTIATE] = True
            if access.session is not None:
                session = sending.log_in(access, allows, tell)
                carry(request, access, session.content)
        response = sending.get(request)
        if access.kind == "digest" and response.status == HTTPStatus.UNAUTHORIZED and access.carries(url.scheme):
            digest = DigestLogin(access.user, access.password())
            asked = digest.take([value.decode("latin-1") for value in response.headers.getlist(b"WWW-Authenticate")], answered="")
            if asked is not None:
                request.headers["Authorization"] = digest.authorization("GET", url.text, asked)
                response = sending.get(request)
    except LogInFailedError as error:
        return Tried(failed=printable(str(error)))
    kind = (response.headers.get(b"Content-Type") or b"").decode("latin-1").partition(";")[0].strip()
    title = extract(response.body, url=url.text, charset=getattr(response, "encoding", None)).title if kind == "text/html" else ""
    location = location_of(response.headers.get(b"Location"))
    sign = LoggedOut(access.session).sign(response) if access.session is not None else ""
    asks = tuple(schemes(response.headers.getlist(b"WWW-Authenticate"))) if response.status == HTTPStatus.UNAUTHORIZED else ()
    return Tried(response.status, location, kind, title, sign=sign, session=session, asks=asks)


def carry(request: Request, access: SiteAccess, content: str) -> None:
    """Set a session on a request."""
    if access.session is not None and access.session.client is not None:
        request.headers["Authorization"] = f"Bearer {json.loads(content)['token']}"
    else:
        SessionCookies(content).add_to(request)
