"""Logging in: what is sent, step by step, until there is a session. How requests are sent is somebody else's business."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode, urlsplit

from scrapy import Request

from crawlspace.config.secrets import read_secret
from crawlspace.runtime.access.addresses import elsewhere, port_of, shown, target_of
from crawlspace.runtime.access.html_forms import NoFormError, filled
from crawlspace.runtime.access.jar import SessionCookies, read_cookie_file
from crawlspace.runtime.access.signs import LoggedOut
from crawlspace.runtime.http.headers import location_of
from crawlspace.text import printable, quoted

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlspace.config.session_login import OAuthClient, SessionLogin
    from crawlspace.config.site_access import SiteAccess

Send = Callable[[Request], Awaitable["Response"]]
"""Sends a request, follows no redirect, and raises LogInFailedError where there is no answer."""
_MOST_REDIRECTS = 10


class LogInFailedError(Exception):
    """Nobody is logged in. `refused`: trying it again with the same log-in would not help."""

    def __init__(self, why: str, *, refused: bool) -> None:
        super().__init__(why)
        self.refused = refused


class LogInStoppedError(Exception):
    """The crawl ends, and nobody waits for the log-in any more."""


@dataclass(slots=True)
class LoggedIn:
    """A session: the cookies or the token, as a text."""

    content: str = field(repr=False)
    lasts_s: float | None = None
    landed: str = field(default="", repr=False)
    """The page that was shown after the log-in, where it can be requested again."""


@dataclass(slots=True)
class LogIn:
    """One attempt. `allows` returns whether it may lead to a host and port; `tell` is called with each step, without secrets."""

    access: SiteAccess
    send: Send
    allows: Callable[[str, int], bool]
    tell: Callable[[str], object] = lambda _: None

    async def session(self) -> LoggedIn:
        """Return the session. Raises LogInFailedError, and SettingError for a secret that cannot be read."""
        login = self.access.session
        assert login is not None
        if login.client is not None:
            return await self._token(login, login.client)
        cookies, landed = SessionCookies(), ""
        if login.file:
            cookies.load(read_cookie_file(f"{self.access.where}['login']['file']", login.file))
        elif login.cookies:
            cookies.load_for_entry(self.access, {name: self._secret(name, value) for name, value in login.cookies.items()})
        else:
            landed = await self._forms(login, cookies)
        return LoggedIn(cookies.dumped(), landed=landed)

    async def _forms(self, login: SessionLogin, cookies: SessionCookies) -> str:
        """Fill the forms; return the page that is shown then, where it can be requested again."""
        assert login.url is not None
        response = await self._asked(Request(login.url.text), cookies)
        for step in login.steps:
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise self._not_as_expected(response)
            fields = {name: self._secret(name, value) for name, value in step.fields.items()}
            try:
                request = filled(response, fields, selector=step.form)
            except NoFormError as error:
                raise LogInFailedError(str(error), refused=True) from error
            response = await self._asked(request, cookies)
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise self._not_as_expected(response)
        signs, asked = LoggedOut(login), response.request
        is_page = asked is not None and asked.method == "GET" and not signs.is_login_address(response.url)
        sign = signs.sign(response)
        # A page that the log-in leads to may be forbidden to this user. Whether the log-in has worked is seen by other pages then.
        if sign and not (is_page and response.status in login.signs.statuses):
            raise LogInFailedError(
                f"{shown(response.url)} shows {sign} after the log-in: is it the right user and password?", refused=True
            )
        # A query may have what was filled in, which is not to be kept.
        return response.url if is_page and response.status == HTTPStatus.OK and "?" not in response.url else ""

    async def _asked(self, request: Request, cookies: SessionCookies) -> Response:
        """Return the answer to a request, after its redirects."""
        for _ in range(_MOST_REDIRECTS):
            self._check(request.url)
            cookies.add_to(request)
            response = await self.send(request)
            cookies.take_from(response, request)
            location = location_of(response.headers.get(b"Location"))
            is_redirect = 300 <= response.status < 400 and bool(location)
            self.tell(
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

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not self.access.carries(parts.scheme):
            raise LogInFailedError(
                f"it leads to {shown(url)}: a log-in goes over https only, unless the entry has allow_plain_http", refused=True
            )
        host = parts.hostname or ""
        if not self.allows(f"[{host}]" if ":" in host else host, port_of(url)):
            raise LogInFailedError(elsewhere(url), refused=True)

    async def _token(self, login: SessionLogin, client: OAuthClient) -> LoggedIn:
        """RFC 6749, 4.4 and 2.3.1."""
        assert login.url is not None
        secret = self._secret("client_secret", client.secret)
        id = self._secret("client_id", client.id)
        body = {"grant_type": "client_credentials"}
        body.update({name: value for name, value in (("scope", client.scope), ("audience", client.audience)) if value})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if client.in_body:
            body.update({"client_id": id, "client_secret": secret})
        else:
            pair = f"{quote_plus(id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        request = Request(login.url.text, method="POST", headers=headers, body=urlencode(body).encode())
        self._check_scheme(request.url)
        response = await self.send(request)
        self.tell(f"POST {shown(request.url)}  {response.status}")
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

    def _check_scheme(self, url: str) -> None:
        if not self.access.carries(urlsplit(url).scheme):
            raise LogInFailedError(f"{shown(url)} is not asked over http without allow_plain_http", refused=True)

    def _secret(self, name: str, value: str) -> str:
        return read_secret(f"{self.access.where}['login'][{quoted(name)}]", value)

    def _not_as_expected(self, response: Response, why: str = "") -> LogInFailedError:
        is_passing = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status in {
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.REQUEST_TIMEOUT,
        }
        return LogInFailedError(
            f"{shown(response.url)} answers {response.status}" + (f" ({why})" if why else ""), refused=not is_passing
        )


def _oauth_error(response: Response) -> str:
    try:
        answer = json.loads(response.body)
        return printable(" ".join(str(answer[key]) for key in ("error", "error_description") if answer.get(key)))[:200]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
