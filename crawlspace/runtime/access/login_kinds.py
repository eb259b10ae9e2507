"""Log-ins that give a session, a method for each kind: by forms, by an OAuth2 client, or by cookies that are given."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote_plus, urlencode, urlsplit

from scrapy import Request
from scrapy.http import Response

from crawlspace.config.access import CookieLogin, FormLogin, OAuthLogin, SiteAccess
from crawlspace.config.secrets import read_secret
from crawlspace.runtime.access.cookies import SessionCookies, cookies_of_values, read_cookie_file
from crawlspace.runtime.access.pages import LoggedOut, LoginPage, NoFormError, host_shown, port_of, shown, target_of
from crawlspace.runtime.http.headers import location_of
from crawlspace.text import printable, quoted

Send = Callable[[Request], Awaitable["Response"]]
"""Sends a request, follows no redirect, and raises LogInFailedError where there is no answer."""
Allows = Callable[[str, int], bool]
"""Returns whether a log-in may lead to a host and port."""
Report = Callable[[str], object]
"""Is called with each step, without secrets."""
_MOST_REDIRECTS = 10


class LogInFailedError(Exception):
    """Failed log-in. `refused`: trying it again with the same log-in would not help."""

    def __init__(self, why: str, *, refused: bool) -> None:
        super().__init__(why)
        self.refused = refused


class LogInStoppedError(Exception):
    """The crawl ends, and the log-in is not needed any more."""


@dataclass(slots=True)
class LoggedIn:
    """A session: the cookies or the token, as a text."""

    content: str = field(repr=False)
    lasts_s: float | None = None
    landed: str = field(default="", repr=False)
    """The page that was shown after the log-in, where it can be requested again."""


def carry_session(request: Request, access: SiteAccess, content: str, cookies: SessionCookies | None = None) -> str:
    """Set a session on a request, and return the header that has it. `cookies`: the jar of the session, where there is one."""
    if access.session is not None and access.session.has_token:
        request.headers["Authorization"] = f"Bearer {json.loads(content)['token']}"
        return "Authorization"
    (cookies or SessionCookies(content)).add_to(request)
    return "Cookie"


@dataclass(slots=True)
class LogIn:
    """Attempt at a log-in."""

    access: SiteAccess
    send: Send
    allows: Allows
    report: Report = lambda _: None

    async def session(self) -> LoggedIn:
        """Return the session. Raises LogInFailedError, and SettingError for a secret that cannot be read."""
        login = self.access.session
        assert login is not None
        if isinstance(login, OAuthLogin):
            return await self._token(login)
        cookies, landed = SessionCookies(), ""
        if isinstance(login, CookieLogin):
            if login.file:
                cookies.load(read_cookie_file(f"{self.access.where}['login']['file']", login.file))
            else:
                values = {name: self._secret(name, value) for name, value in login.cookies.items()}
                cookies.load(cookies_of_values(self.access, values))
        elif isinstance(login, FormLogin):
            landed = await self._forms(login, cookies)
        return LoggedIn(cookies.dumped(), landed=landed)

    async def _forms(self, login: FormLogin, cookies: SessionCookies) -> str:
        """Fill the forms; return the page that is shown then, where it can be requested again."""
        response = await self._fetched(Request(login.url), cookies)
        for step in login.steps:
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise self._not_as_expected(response)
            fields = {name: self._secret(name, value) for name, value in step.fields.items()}
            try:
                request = LoginPage(response).filled(fields, selector=step.form)
            except NoFormError as error:
                raise LogInFailedError(str(error), refused=True) from error
            response = await self._fetched(request, cookies)
        if is_passing(response.status):
            raise self._not_as_expected(response)
        signs, last = LoggedOut(login), response.request
        is_page = last is not None and last.method == "GET" and not signs.is_login_address(response.url)
        sign = signs.sign(response)
        # A page that the log-in leads to may be forbidden to this user. Whether the log-in has worked is seen by other pages then.
        if sign and not (is_page and response.status in login.statuses):
            raise LogInFailedError(
                f"{shown(response.url)} shows {sign} after the log-in: is it the right user and password?", refused=True
            )
        # A query may have what was filled in, which is not to be kept.
        return response.url if is_page and response.status == HTTPStatus.OK and "?" not in response.url else ""

    async def _fetched(self, request: Request, cookies: SessionCookies) -> Response:
        """Return the answer to a request, after its redirects."""
        for _ in range(_MOST_REDIRECTS):
            if why := why_not(request.url, self.access, self.allows):
                raise LogInFailedError(why, refused=True)
            cookies.add_to(request)
            response = await self.send(request)
            cookies.take_from(response, request)
            location = location_of(response.headers.get(b"Location"))
            is_redirect = 300 <= response.status < 400 and bool(location)
            self.report(
                f"{request.method:<5}{shown(request.url)}  {response.status}" + (f" to {shown(location)}" if is_redirect else "")
            )
            if not is_redirect:
                return response
            target = target_of(request.url, location)
            if not target:
                raise LogInFailedError(f"{shown(request.url)} redirects to {shown(location)}, which is no URL", refused=True)
            if response.status in {307, 308} and request.method == "POST":
                request = request.replace(url=target, headers={"Content-Type": request.headers.get("Content-Type")})
            else:
                request = Request(target)
        raise LogInFailedError(f"{shown(request.url)}: more than {_MOST_REDIRECTS} redirects in a row", refused=True)

    async def _token(self, login: OAuthLogin) -> LoggedIn:
        """RFC 6749, 4.4 and 2.3.1."""
        secret = self._secret("client_secret", login.client_secret)
        id = self._secret("client_id", login.client_id)
        body = {"grant_type": "client_credentials"}
        body.update({name: value for name, value in (("scope", login.scope), ("audience", login.audience)) if value})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if login.client_in == "body":
            body.update({"client_id": id, "client_secret": secret})
        else:
            pair = f"{quote_plus(id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        request = Request(login.url, method="POST", headers=headers, body=urlencode(body).encode())
        response = await self.send(request)
        self.report(f"POST {shown(request.url)}  {response.status}")
        if response.status != HTTPStatus.OK:
            raise self._not_as_expected(response, why=_oauth_error(response))
        try:
            answer = json.loads(response.body)
            token, kind, lasts = answer["access_token"], answer.get("token_type", "bearer"), answer.get("expires_in")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LogInFailedError(f"{shown(request.url)} gives no access_token", refused=True) from error
        if not (isinstance(token, str) and token.isascii() and token.isprintable() and token.strip()):
            raise LogInFailedError(f"{shown(request.url)} gives an access_token that a header cannot have", refused=True)
        if str(kind).lower() != "bearer":
            raise LogInFailedError(
                f"{shown(request.url)} gives a token of type {quoted(kind)}; only bearer is supported", refused=True
            )
        is_time = isinstance(lasts, (int, float)) and not isinstance(lasts, bool) and 0 < lasts < 10**9
        return LoggedIn(json.dumps({"token": token}), float(lasts) if is_time else None)

    def _secret(self, name: str, value: str) -> str:
        return read_secret(f"{self.access.where}['login'][{quoted(name)}]", value)

    def _not_as_expected(self, response: Response, why: str = "") -> LogInFailedError:
        answer = f"{shown(response.url)} answers {response.status}"
        return LogInFailedError(answer + (f" ({why})" if why else ""), refused=not is_passing(response.status))


def why_not(url: str, access: SiteAccess, allows: Allows) -> str:
    """Return why a log-in may not lead to a URL; empty where it may."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not access.carries(parts.scheme):
        return f"it leads to {shown(url)}: a log-in goes over https only, unless the entry has allow_plain_http"
    host = parts.hostname or ""
    is_allowed = allows(f"[{host}]" if ":" in host else host, port_of(url))
    return (
        "" if is_allowed else f"it leads to {host_shown(url)}, which is no host of the entry: name it in 'hosts' if that is right"
    )


def is_passing(status: int) -> bool:
    """Return whether an answer is an error of its server that may pass by itself."""
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}


def _oauth_error(response: Response) -> str:
    try:
        answer = json.loads(response.body)
        return printable(" ".join(str(answer[key]) for key in ("error", "error_description") if answer.get(key)))[:200]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
