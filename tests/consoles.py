"""A console of a test: the application on port 0 of the loopback, and a browser that keeps cookies and sends forms."""

from __future__ import annotations

import asyncio
import html
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

from aiohttp import web
from scrapy.settings import Settings

from crawlspace.clock import Clock, FakeClock, SystemClock
from crawlspace.console.application import application, search_application
from crawlspace.console.console import Console
from crawlspace.console.guard import Access
from crawlspace.console.users import Users
from crawlspace.runtime.session.project import ProjectCollections
from tests.command_line import ROOT
from tests.conftest import Project
from tests.notifications import LONGEST_WAIT_S

CSRF = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Got:
    """A response; redirects have been followed, and `url` is the last one."""

    status: int
    url: str
    headers: Message
    text: str

    @property
    def words(self) -> str:
        """The text of the page without tags, on one line."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    def json(self) -> object:
        return json.loads(self.text)


@dataclass
class Browser:
    """Sends requests to a console and keeps its cookies. `headers` are sent with each request."""

    base: str
    headers: dict[str, str] = field(default_factory=dict)
    cookies: CookieJar = field(default_factory=CookieJar)
    console: Console | None = None
    """The console itself, to wait for what it does."""

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Got:
        return self._send(urllib.request.Request(self.base[:-1] + path, headers={**self.headers, **(headers or {})}))

    def get_until(self, path: str, holds: Callable[[Got], bool], *, clock: FakeClock | None = None) -> Got:
        """Return a page once it shows what threads and processes of the console make, for whose ends this waits between two looks.

        With a clock, a minute passes before the next look. Fails if nothing has been made since the last one.
        """
        found, has_ended = self.get(path), True
        while not holds(found):
            assert has_ended, found.words
            has_ended = self._wait_for_background()
            if clock is not None:
                clock.advance(60)
            found = self.get(path)
        return found

    def _wait_for_background(self) -> bool:
        """Wait until nothing runs in the background of the console; return whether anything did."""
        assert self.console is not None
        threads = [thread for thread in threading.enumerate() if thread.name in ("snapshot", "comparison", "plan")]
        for thread in threads:
            thread.join(LONGEST_WAIT_S)
        with self.console.starting:
            processes = [process for process in self.console.processes.values() if process.poll() is None]
        for process in processes:
            process.wait(LONGEST_WAIT_S)
        return bool(threads or processes)

    def get_bytes(self, path: str, headers: Mapping[str, str]) -> bytes:
        """The body of a response, as it is sent."""
        request = urllib.request.Request(self.base[:-1] + path, headers={**self.headers, **headers})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self.cookies))
        with opener.open(request, timeout=LONGEST_WAIT_S) as response:
            body: bytes = response.read()
        return body

    def post(
        self,
        path: str,
        form: Mapping[str, str] | None = None,
        *,
        csrf: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """Send a form, with the CSRF token that a page of the console gives, unless another is given."""
        token = self.csrf() if csrf is None else csrf
        body = urlencode({"csrf": token, **(form or {})}).encode()
        return self._send(
            urllib.request.Request(self.base[:-1] + path, data=body, headers={**self.headers, **(headers or {})}, method="POST")
        )

    def post_json(self, path: str, body: object) -> Got:
        return self.post_body(path, json.dumps(body).encode(), "application/json")

    def post_body(self, path: str, body: bytes, content_type: str) -> Got:
        headers = {**self.headers, "Content-Type": content_type}
        return self._send(urllib.request.Request(self.base[:-1] + path, data=body, headers=headers, method="POST"))

    def csrf(self) -> str:
        """The token of the session: that of the page that a login shows, or of any page with a form."""
        for path in ("/login", "/"):
            found = CSRF.search(self.get(path).text)
            if found is not None:
                return found[1]
        raise AssertionError("no page has a form with a token")

    def log_in(self, name: str, password: str) -> Got:
        return self.post("/login", {"user": name, "password": password})

    def _send(self, request: urllib.request.Request) -> Got:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self.cookies))
        try:
            response: HTTPResponse | urllib.error.HTTPError = opener.open(request, timeout=LONGEST_WAIT_S)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return Got(response.status or 0, response.url, response.headers, response.read().decode())


def console_settings(project: Project) -> Settings:
    """The settings of a project, as `scrapy console` has them there."""
    settings = Settings()
    settings.setmodule("crawlspace.settings", priority="project")
    settings.setdict(project.env, priority="cmdline")
    if project.store_url:
        settings.set("CRAWLSPACE_STORE_URL", project.store_url, priority="cmdline")
    return settings


@contextmanager
def served(
    project: Project,
    *,
    users: Path | None = None,
    hosts: frozenset[str] = frozenset(),
    clock: Clock | None = None,
    access: Access | None = None,
    public: Sequence[str] = (),
    is_search_alone: bool = False,
    add: Callable[[web.Application], None] = lambda _: None,
) -> Iterator[Browser]:
    """Serve the console of a project, or its public search page alone; yield a browser that opens it. `add` adds routes."""
    console = Console(ProjectCollections(console_settings(project)), clock=clock or SystemClock(), project=ROOT)
    access = access or Access(Users(users or project.data / "console-users"), hosts=hosts)
    begun: Future[str] = Future()
    loop = asyncio.new_event_loop()

    async def serve() -> web.AppRunner:
        app = (search_application if is_search_alone else application)(console, access, public)
        add(app)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            runner = loop.run_until_complete(serve())
        except BaseException as error:
            begun.set_exception(error)
            raise
        begun.set_result(f"http://127.0.0.1:{runner.addresses[0][1]}/")
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    base = begun.result(LONGEST_WAIT_S)
    try:
        yield Browser(base, console=console)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LONGEST_WAIT_S)
