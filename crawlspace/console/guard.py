"""Who may ask the console what: the middlewares in front of its pages.

Each request is checked for the name of the host that it asks (a page elsewhere may have its own name lead here: DNS rebinding), then for who
asks, and before anything is changed for the CSRF token and for a page elsewhere that sends the form.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias
from urllib.parse import quote

from aiohttp import web

from crawlspace.console.sessions import COOKIE, LONGEST_S, Attempts, BrowserSession, BrowserSessions, is_token_of
from crawlspace.console.users import LOCAL, User, Users

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

SESSION = web.RequestKey("session", BrowserSession)
USER = web.RequestKey("user", User)
_CLIENT = web.RequestKey("client", str)
CSRF_FIELD = "csrf"
CSRF_HEADER = "X-CSRF-Token"
LOGIN = "/login"
HEALTH = ("/live", "/ready")
OPEN_PATHS = ("/static/", *HEALTH)
"""Paths, or beginnings of them, that anybody may read."""
FOR_PROGRAMS = ("/api/", "/content", "/metrics", "/mcp")
"""Beginnings of paths whose errors are JSON."""
LARGEST_FORM = 4_000_000
"""Bytes of a request, such as a rule file that is saved."""

_NOT_OUR_FORM = "This form was not sent by a page of this console, or is too old: load the page again.\n"
_NO_TOKEN = "A change needs a token, sent as Authorization: Bearer TOKEN; `scrapy console --token NAME` makes one.\n"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_OWN_NETWORK = 64
"""Bits of an IPv6 network that has one owner."""
_MOST_ACCEPTED = 1_000
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
FRAMED: Mapping[str, str] = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
}
"""The headers of what comes from the web and is shown in a frame of ours: it is of no origin, runs nothing and loads nothing."""


@dataclass(frozen=True, slots=True)
class Access:
    """How users are known, and what needs none."""

    users: Users
    hosts: frozenset[str]
    """Host names by which the console may be asked, besides addresses of loopback and `localhost`."""
    user_header: str = ""
    """The header in which a proxy says who has logged in; empty: there is no such proxy."""
    proxies: Sequence[Network] = ()
    """The addresses of proxies; that header, and X-Forwarded-For, are ignored from elsewhere."""
    is_secure: bool = False
    """Whether browsers reach it by https."""
    public_paths: tuple[str, ...] = ()
    """Beginnings of the paths of pages for everybody."""
    is_local: bool = True
    """Whether it is reached from this machine alone: without users everybody there is an operator."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has to log in."""
        return self.is_local and not self.user_header and self.users.is_empty

    def client_of(self, request: web.Request) -> str:
        """Return the address that a request comes from: behind proxies, that which the first of them has added to X-Forwarded-For."""
        client = _ip(request.remote or "")
        forwarded = ",".join(request.headers.getall("X-Forwarded-For", [])).split(",")
        while client is not None and _is_in(client, self.proxies) and forwarded:
            before = _ip(forwarded.pop().strip())
            if before is None:
                break
            client = before
        return "" if client is None else str(client)


class Guard:
    """The middlewares of a console."""

    def __init__(self, access: Access, sessions: BrowserSessions, attempts: Attempts) -> None:
        self.access = access
        self.sessions = sessions
        self.attempts = attempts
        self._accepted: set[tuple[str, bytes]] = set()
        """Tokens that were right, with their addresses: these do not wait because of other programs there that guess."""

    async def add_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        """Add the security headers to a response that is about to be sent."""
        for name, value in _HEADERS.items():
            if name not in response.headers:
                response.headers[name] = value
        if self.access.is_secure:
            response.headers["Strict-Transport-Security"] = "max-age=31536000"
        response.headers["Server"] = "crawlspace"

    @web.middleware
    async def host(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse a request for a name that is not ours, except for what monitors ask by the address of a container."""
        request[_CLIENT] = self.access.client_of(request)
        if request.path not in HEALTH and not is_our_host(request.headers.get("Host", ""), self.access.hosts):
            raise web.HTTPMisdirectedRequest(
                text="This is not the host that was asked for. `scrapy console --host NAME` adds a name.\n"
            )
        return await handler(request)

    @web.middleware
    async def user(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Find out who asks, and refuse changes that do not come from a page of the console."""
        if request.path.startswith(OPEN_PATHS[0]) or request.path in OPEN_PATHS:
            return await handler(request)
        program = self._program(request)
        if program is not None:
            request[USER] = program
            return await handler(request)
        session = self.sessions.get(request.cookies.get(COOKIE))
        user = self._known_user(request, session)
        if session is not None and _name_of(session.user) != _name_of(user):  # a new password, or another user of a proxy
            self.sessions.end(session)
            session = None
        is_new = session is None
        if session is None:
            session = self.sessions.new(user)
        request[SESSION] = session
        if user is not None:
            request[USER] = user
        response: web.StreamResponse
        if user is None and not self._is_for_everybody(request.path):
            response = _ask_for_login(request)
        elif request.method not in _READS and not await is_from_our_page(request, session):
            raise web.HTTPForbidden(text=_NO_TOKEN if request.path.startswith(FOR_PROGRAMS) else _NOT_OUR_FORM)
        else:
            response = await handler(request)
        current = request[SESSION]
        if (is_new or current is not session) and not response.prepared:
            set_cookie(response, current, self.access)
        return response

    def _is_for_everybody(self, path: str) -> bool:
        return path == LOGIN or any(path == one or path.startswith(f"{one}/") for one in self.access.public_paths)

    def _program(self, request: web.Request) -> User | None:
        """Return the program that has sent a token. Raises 401 for a wrong one, 429 after several of them."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token.strip()
        key = limited("token", address_of(request))
        accepted = (key, sha256(token.encode("utf-8", "replace")).digest())
        if accepted not in self._accepted and (wait_s := self.attempts.begin(key)) > 0:
            raise web.HTTPTooManyRequests(
                text=f"too many tokens from this address were not known: try again in {wait_s:.0f} seconds",
                headers={"Retry-After": f"{wait_s:.0f}"},
            )
        found = self.access.users.check_token(token)
        if found is None:
            self._accepted.discard(accepted)
            raise web.HTTPUnauthorized(
                text="the token is not known; `scrapy console --token NAME` makes one", headers={"WWW-Authenticate": "Bearer"}
            )
        if accepted not in self._accepted:
            self.attempts.take_back(key)
            if len(self._accepted) >= _MOST_ACCEPTED:
                self._accepted.clear()
            self._accepted.add(accepted)
        return found

    def _known_user(self, request: web.Request, session: BrowserSession | None) -> User | None:
        access = self.access
        peer = _ip(request.remote or "")
        if access.user_header and peer is not None and _is_in(peer, access.proxies):
            name = request.headers.get(access.user_header, "")
            return access.users.named(name) if name else None
        if access.is_open:
            return LOCAL
        if session is None or session.user is None or not session.entry:
            return None
        return session.user if access.users.entry_of(session.user.name) == session.entry else None


def is_our_host(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header names this console: an address of loopback, localhost, or one of the names. The port does not matter."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1 : name.find("]")] if "]" in name else ""
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost" or name in names:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def is_from_our_page(request: web.Request, session: BrowserSession) -> bool:
    """Whether a request that changes something has the CSRF token of the session, and no other site has sent it."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("Host", ""):
        return False
    token = request.headers.get(CSRF_HEADER)
    if token is None:
        token = (await read_form(request)).get(CSRF_FIELD, "") if request.content_type in _FORMS else ""
    return is_token_of(session, token)


async def read_form(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises 400 for what is no form, and 413 for a large one."""
    if request.can_read_body and request.content_type not in _FORMS:
        raise web.HTTPBadRequest(text=f"This is of type {request.content_type[:100]}: send a form, as {_FORMS[0]}.\n")
    try:
        sent = await request.post()
    except (ValueError, LookupError, web.RequestPayloadError) as error:  # of a charset, a boundary or a content encoding
        raise web.HTTPBadRequest(text=f"This form cannot be read: send it in UTF-8, as {_FORMS[0]}.\n") from error
    form = {name: value for name, value in sent.items() if isinstance(value, str)}
    if any("\0" in text for field in form.items() for text in field):
        raise web.HTTPBadRequest(text="This form has a character that no text has (NUL): remove it.\n")
    return form


def set_cookie(response: web.StreamResponse, session: BrowserSession, access: Access) -> None:
    response.set_cookie(COOKIE, session.id, max_age=LONGEST_S, httponly=True, samesite="Lax", secure=access.is_secure, path="/")


def address_of(request: web.Request) -> str:
    """Return the address that a request comes from, as `Access.client_of` has found it."""
    client: str = request.get(_CLIENT, "")
    return client


def limited(what: str, address: str) -> str:
    """Return the key under which attempts from an address are counted. Of IPv6, it is the network: its owner has all addresses in it."""
    ip = _ip(address)
    if isinstance(ip, ipaddress.IPv6Address):
        address = str(ipaddress.IPv6Network((ip, _OWN_NETWORK), strict=False))
    return f"{what} {address}"


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address; IPv4 that is mapped into IPv6, as where both are listened on, as IPv4."""
    try:
        ip = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip


def _is_in(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: Sequence[Network]) -> bool:
    return any(ip in network for network in networks)


def _name_of(user: User | None) -> str:
    return "" if user is None else user.name


def _ask_for_login(request: web.Request) -> web.Response:
    if request.path.startswith(FOR_PROGRAMS):
        return web.json_response({"error": "log in, or send a token: Authorization: Bearer TOKEN"}, status=401)
    target = quote(request.path_qs, safe="") if request.method in _READS else ""
    location = f"{LOGIN}?next={target}" if target else LOGIN
    if request.headers.get("HX-Request"):  # htmx would put the page for the log-in where a part of a page belongs
        return web.Response(status=401, headers={"HX-Redirect": LOGIN})
    return web.Response(status=303, headers={"Location": location})
