"""The web application of the console: its routes and how their answers are sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from aiohttp import web
from jinja2 import Environment

from crawlspace.console import guard
from crawlspace.console.api.serving import add_api
from crawlspace.console.console import Console
from crawlspace.console.content import CONTENT, ContentServer
from crawlspace.console.guard import FOR_PROGRAMS, HEALTH, LARGEST_FORM, SESSION, USER, Access, Guard, address_of, read_form
from crawlspace.console.pages import monitoring
from crawlspace.console.pages.routes import PAGES
from crawlspace.console.public_search import HOME, PublicSearch
from crawlspace.console.routes import (
    Answer,
    Asked,
    Done,
    FileDownload,
    Framed,
    Json,
    Route,
    Text,
    View,
    refuse_role,
    status_of_error,
)
from crawlspace.console.sending import send_lines
from crawlspace.console.sessions import Attempts, BrowserSession, BrowserSessions
from crawlspace.console.templates import STATIC, environment
from crawlspace.console.users import LOCAL, Role, User
from crawlspace.errors import CrawlspaceError

logger = logging.getLogger(__name__)

_YEAR_S = 31_536_000
_COOKED: web.AppKey[Environment] = web.AppKey("templates", Environment)


def application(console: Console, access: Access, public: Sequence[str] = ()) -> web.Application:
    """Return the application of a console. `public` names the collections that everybody may search there."""
    attempts = Attempts(console.clock)
    search = [] if not public else list(PublicSearch(public, attempts).routes())
    access = replace(access, public_paths=(*access.public_paths, CONTENT))  # it asks for a log-in itself, or for a signed link
    doors = _doors(console, access, attempts, is_public=bool(public))
    app = _application(console, doors, [*PAGES, *search, *monitoring.routes(console)])
    login = _Login(console, doors)
    app.router.add_get(guard.LOGIN, login.show)
    app.router.add_post(guard.LOGIN, login.check)
    app.router.add_post("/logout", login.logout)
    add_api(app, console)
    ContentServer(console).add_to(app)
    return app


def search_application(console: Console, access: Access, names: Sequence[str]) -> web.Application:
    """Return an application that has nothing but the search page for everybody."""
    attempts = Attempts(console.clock)
    access = replace(access, is_local=False, user_header="", public_paths=("",))  # whatever is not there is not found
    routes = [*PublicSearch(names, attempts).routes(), *monitoring.health_routes()]
    app = _application(console, _doors(console, access, attempts, is_public=True), routes)
    app.router.add_get("/", _to_search)
    return app


async def _to_search(request: web.Request) -> web.StreamResponse:  # noqa: ARG001 - a handler
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": HOME})


def _doors(console: Console, access: Access, attempts: Attempts, *, is_public: bool) -> Guard:
    paths = (*access.public_paths, HOME) if is_public else access.public_paths
    return Guard(replace(access, public_paths=paths), BrowserSessions(console.clock), attempts)


def _application(console: Console, doors: Guard, routes: Iterable[Route]) -> web.Application:
    app = web.Application(middlewares=[_errors, doors.host, doors.user], client_max_size=LARGEST_FORM)
    app.on_response_prepare.append(doors.add_headers)
    app[_COOKED] = environment()
    app.router.add_get("/static/{name}", _static)
    health = ThreadPoolExecutor(1, thread_name_prefix="health")  # it is free when pages take all other threads

    async def end_health(_: web.Application) -> None:
        health.shutdown(wait=False)

    app.on_cleanup.append(end_health)
    for route in routes:
        handler = _Handler(console, route, health if route.path in HEALTH else None)
        app.router.add_route(route.method, route.path, handler.answer)
    return app


class _Handler:
    """Calls the function of a route in a thread, and sends its answer."""

    def __init__(self, console: Console, route: Route, threads: Executor | None) -> None:
        self._console = console
        self._route = route
        self._threads = threads
        """Of the route; None: those of all pages."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        user, role = request.get(USER), self._route.role
        if role is not None:
            refuse_role(user, role)
        asked = Asked(
            console=self._console,
            user=user,
            path=request.path,
            address=address_of(request),
            name=request.match_info.get("name", ""),
            match=dict(request.match_info),
            query=request.query,
            form=await read_form(request) if self._route.method == "POST" else {},
            accept=request.headers.get("Accept", ""),
        )
        if user is not None and role is not None and self._route.changes:
            answer = await asyncio.to_thread(self._act, asked, user)
        else:
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._route.function, asked)
        if isinstance(answer, View):
            return render(request, answer, self._console, name=asked.name)
        if isinstance(answer, Json):
            return web.json_response(answer.value, status=answer.status)
        if isinstance(answer, Text):
            return web.Response(body=answer.body, status=answer.status, headers={"Content-Type": answer.content_type})
        if isinstance(answer, Framed):
            return web.Response(
                body=answer.text.encode("utf-8", "replace"),
                content_type=answer.content_type,
                charset="utf-8",
                headers=guard.FRAMED,
            )
        if isinstance(answer, FileDownload):
            return await _send(request, answer)
        if SESSION in request:
            request[SESSION].messages.append(answer.sentence)
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": answer.to})

    def _act(self, asked: Asked, user: User) -> Answer:
        """Call the function of an action, and record it before and after."""
        action = self._route.path.rpartition("/")[2]
        given = {name: value for name, value in asked.form.items() if name != guard.CSRF_FIELD}
        details = {**asked.match, **given}
        with self._console.audit_log.recorded(
            user, asked.address, action=action, collection=asked.name, details=details
        ) as entry:
            answer = self._route.function(asked)
            if isinstance(answer, Done):
                entry.result, entry.details = answer.sentence, answer.details
            elif isinstance(answer, View) and answer.status >= HTTPStatus.BAD_REQUEST:
                entry.result = "refused"
        return answer


def render(request: web.Request, view: View, console: Console, *, name: str = "") -> web.Response:
    """Return the response with the HTML of a page."""
    session = request.get(SESSION)
    user = request.get(USER)
    messages = []
    if session is not None:
        messages = list(session.messages)
        session.messages.clear()
    html = (
        request.app[_COOKED]
        .get_template(view.template)
        .render(
            {
                "name": name,
                "path": request.path,
                "query": dict(request.query),
                "user": user,
                "may_change": user is not None and user.may(Role.OPERATOR),
                "may_log_out": user is not None and user is not LOCAL,
                "csrf": "" if session is None else session.csrf,
                "messages": messages,
                "now": console.clock.now(),
                **view.shown,
            }
        )
    )
    return web.Response(text=html, content_type="text/html", status=view.status)


async def _send(request: web.Request, download: FileDownload) -> web.StreamResponse:
    quoted = quote(download.filename, safe="")  # RFC 6266: the name of a collection may be any text
    name = f'filename="{quoted}"' if quoted == download.filename else f"filename*=UTF-8''{quoted}"
    headers = {"Content-Type": download.content_type, "Content-Disposition": f"attachment; {name}"}
    return await send_lines(request, download.lines, headers)


@web.middleware
async def _errors(request: web.Request, handler: guard.Handler) -> web.StreamResponse:
    """Show an error as a page with its sentence."""
    try:
        return await handler(request)
    except web.HTTPException as answer:
        if answer.status < HTTPStatus.BAD_REQUEST:
            raise
        text = answer.text or ""
        is_of_aiohttp = text.startswith(f"{answer.status}:") or answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        sentence = _SENTENCES.get(answer.status, answer.reason) if is_of_aiohttp or not text else text
        return _error_page(request, answer.status, sentence, headers=answer.headers)
    except CrawlspaceError as error:
        return _error_page(request, status_of_error(error), str(error))
    except (ConnectionResetError, asyncio.CancelledError):
        raise
    except Exception:
        logger.exception("a page of the console failed: %s %s", request.method, request.rel_url.raw_path)
        return _error_page(
            request,
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "This page failed because of a fault of crawlspace; the log of the console has it.",
        )


_SENTENCES: Mapping[int, str] = {
    HTTPStatus.NOT_FOUND: "There is no page at this address.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address changes something: use the button of its page.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"This is more than {LARGEST_FORM:,} bytes, or more than 1,000 fields: send less at a time.",
}
_KEPT_HEADERS = frozenset({"allow", "www-authenticate", "retry-after"})


def _error_page(request: web.Request, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> web.Response:
    kept = {name: value for name, value in (headers or {}).items() if name.lower() in _KEPT_HEADERS}
    sentence = sentence.strip()
    if request.path.startswith(FOR_PROGRAMS):
        body = sentence if sentence.startswith("{") else None
        response = web.Response(text=body, content_type="application/json") if body else web.json_response({"error": sentence})
        response.set_status(status)
    else:
        html = (
            request.app[_COOKED]
            .get_template("error.html")
            .render(
                {
                    "name": "",
                    "user": None,
                    "csrf": "",
                    "messages": [],
                    "status": status,
                    "sentence": sentence,
                    "may_log_out": False,
                }
            )
        )
        response = web.Response(text=html, content_type="text/html", status=status)
    response.headers.update(kept)
    return response


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name not in _names_of_static_files():
        raise web.HTTPNotFound(text="There is no such file.\n")
    return web.FileResponse(STATIC / name, headers={"Cache-Control": f"public, max-age={_YEAR_S}, immutable"})


def _names_of_static_files() -> Iterable[str]:
    return frozenset(file.name for file in STATIC.iterdir() if file.suffix in (".js", ".css", ".svg"))


class _Login:
    """The page that asks for a name and a password."""

    def __init__(self, console: Console, doors: Guard) -> None:
        self._console = console
        self._doors = doors
        self._two_at_a_time = asyncio.Semaphore(2)  # because of the memory that scrypt takes

    async def show(self, request: web.Request) -> web.StreamResponse:
        return self._page(request)

    async def check(self, request: web.Request) -> web.StreamResponse:
        session, form = _session(request), await read_form(request)
        name, password = form.get("user", ""), form.get("password", "")
        doors, address = self._doors, address_of(request)
        of_user, of_address = f"user {name[:100]}", guard.limited("address", address)
        wait_s = doors.attempts.begin(of_user, of_address)  # before any waiting: guesses at the same time are limited, too
        if wait_s > 0:
            sentence = f"Too many log-ins have failed: try again in {wait_s:.0f} seconds."
            return self._page(request, sentence, HTTPStatus.TOO_MANY_REQUESTS)
        users = doors.access.users
        async with self._two_at_a_time:
            entry = users.entry_of(name)  # before the check: a session does not survive a password that is set meanwhile
            user = await asyncio.to_thread(users.check_password, name, password[:1000])
        result = "failed" if user is None else "done"
        who = user or User(name[:100], Role.VIEWER)
        await asyncio.to_thread(
            self._console.audit_log.write, who, address, action="login", collection="", details={}, result=result
        )
        if user is None:
            return self._page(request, "The name or the password is wrong.", HTTPStatus.UNAUTHORIZED)
        doors.attempts.forget(of_user)
        doors.attempts.take_back(of_address)
        doors.sessions.end(session)  # what was known before the log-in must not be that of the user
        request[SESSION] = doors.sessions.new(user, entry=entry)
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": _own_path(form.get("next", ""))})

    async def logout(self, request: web.Request) -> web.StreamResponse:
        self._doors.sessions.end(_session(request))
        request[SESSION] = self._doors.sessions.new()
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": guard.LOGIN})

    def _page(self, request: web.Request, error: str = "", status: int = HTTPStatus.OK) -> web.Response:
        view = View("login.html", {"error": error, "next": request.query.get("next", "")}, status)
        return render(request, view, self._console)


def _session(request: web.Request) -> BrowserSession:
    """Return the session of a browser. Raises 403 for a program."""
    if SESSION not in request:
        raise web.HTTPForbidden(text="A program does not log in: it sends its token with each request.\n")
    return request[SESSION]


def _own_path(target: str) -> str:
    """Return a path of the console; its first page for anything that leads elsewhere."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not target.startswith("/") or target.startswith(("//", "/\\")):
        return "/"
    return target if target.isprintable() and "\\" not in target else "/"
