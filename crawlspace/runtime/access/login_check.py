"""A log-in tried by a person who wants to see whether it works: the log-in itself, where it gives a session, and one page with it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from scrapy import Request

from crawlspace.access.digest import DigestLogin, schemes
from crawlspace.config.access import SiteAccess
from crawlspace.content.html import extract
from crawlspace.runtime.access.client import LoginClient
from crawlspace.runtime.access.login_kinds import Allows, LoggedIn, LogInFailedError, Report, carry_session
from crawlspace.runtime.access.pages import LoggedOut
from crawlspace.runtime.components.requests import NEGOTIATE
from crawlspace.runtime.http.headers import location_of
from crawlspace.text import printable
from crawlspace.urls import Url


@dataclass(frozen=True, slots=True)
class Tried:
    """The answer of a site to a log-in; `failed` is why there is none."""

    status: int = 0
    location: str = ""
    content_type: str = ""
    title: str = ""
    failed: str = ""
    sign: str = ""
    """Why the response looks logged out."""
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


async def try_login(url: Url, access: SiteAccess, *, client: LoginClient, allows: Allows, report: Report) -> Tried:
    """Log in where that gives a session, and request a URL, without following a redirect. Raises SettingError."""
    request, session, carries = Request(url.text), None, access.carries(url.scheme)
    try:
        if carries:
            request.headers.update(access.headers())
            if access.kind == "negotiate":
                request.meta[NEGOTIATE] = True
            if access.session is not None:
                session = await client.log_in(access, allows, report)
                carry_session(request, access, session.content)
        response = await client.get(request)
        offered = response.headers.getlist(b"WWW-Authenticate") if response.status == HTTPStatus.UNAUTHORIZED else []
        if carries and access.is_asked_for and offered:
            digest = DigestLogin(access.user, access.password(), takes_basic=access.kind == "auto")
            if (challenge := digest.take([value.decode("latin-1") for value in offered], answered="")) is not None:
                request.headers["Authorization"] = digest.authorization("GET", url.text, challenge)
                response = await client.get(request)
    except LogInFailedError as error:
        return Tried(failed=printable(str(error)))
    kind = (response.headers.get(b"Content-Type") or b"").decode("latin-1").partition(";")[0].strip()
    return Tried(
        response.status,
        location_of(response.headers.get(b"Location")),
        kind,
        extract(response.body, url=url.text, charset=getattr(response, "encoding", None)).title if kind == "text/html" else "",
        sign="" if access.session is None else LoggedOut(access.session).sign(response),
        session=session,
        asks=tuple(schemes(response.headers.getlist(b"WWW-Authenticate"))) if response.status == HTTPStatus.UNAUTHORIZED else (),
    )
