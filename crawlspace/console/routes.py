"""What the console answers with, and the routes of its pages.

A page is a function that takes an `Asked` and returns one of the answers below. It runs in a thread, because stores are read without
`await`, and raises CrawlspaceError for what the reader has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Semaphore
from typing import TypeAlias

from aiohttp import web

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.console.console import Console
from crawlspace.console.users import Role, User
from crawlspace.errors import CrawlspaceError, UnknownCollection, UsageError
from crawlspace.runtime.session.paths import OpenStore


@dataclass(frozen=True, slots=True)
class View:
    """A page: a template and what it shows."""

    template: str
    shown: Mapping[str, object] = field(default_factory=dict)
    status: int = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action: a sentence on the page that the browser is sent to. `details` are for the audit log alone."""

    sentence: str
    to: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileDownload:
    """A file that is made while it is sent."""

    content_type: str
    lines: Iterator[str]
    filename: str


@dataclass(frozen=True, slots=True)
class Json:
    """A value for programs."""

    value: object
    status: int = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Framed:
    """Text from the web for a frame of one of our pages, where nothing of it runs or loads anything (`guard.FRAMED`)."""

    content_type: str
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Text for programs."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = HTTPStatus.OK


Answer: TypeAlias = View | Done | FileDownload | Json | Framed | Text


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `name` is the collection of the path, empty where it names none; `match` has the other parts of the path."""

    console: Console
    user: User | None
    """None on the pages for everybody."""
    path: str
    address: str = ""
    """The address that the request comes from."""
    name: str = ""
    match: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    accept: str = ""
    """The header Accept."""

    def changes(self, opened: OpenStore) -> UrlChanges:
        """Return what changes the URLs of a store."""
        return UrlChanges(opened.store, clock=self.console.clock, crawled=bool(opened.crawlers()))

    def page_number(self) -> int:
        """Return the number of the page of a long table, from 1 on. Raises UsageError."""
        return self.number("page", default=1, low=1)

    def number(self, name: str, *, default: int, low: int = 0, high: int = 1_000_000_000) -> int:
        """Return a number of the query. Raises UsageError."""
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise UsageError(f"{name} is a number from {low:,} to {high:,}")
        return number


class NoSuchThing(UsageError):
    """What is named in the address, such as a document, is not there (404)."""


class NotNow(UsageError):
    """The state of the collection does not allow it, such as the start of a crawl that runs (409)."""


@contextmanager
def alone(permit: Semaphore, what: str) -> Iterator[None]:
    """Let one request at a time do what takes long. Raises NotNow while another one does it."""
    if not permit.acquire(blocking=False):
        raise NotNow(f"{what} for somebody else, one at a time: try again in a moment")
    try:
        yield
    finally:
        permit.release()


def status_of_error(error: CrawlspaceError) -> HTTPStatus:
    """Return the status of a response that has only the sentence of an error."""
    match error:
        case UnknownCollection() | NoSuchThing():
            return HTTPStatus.NOT_FOUND
        case NotNow():
            return HTTPStatus.CONFLICT
        case UsageError():
            return HTTPStatus.BAD_REQUEST
    return HTTPStatus.SERVICE_UNAVAILABLE


def refuse_role(user: User | None, role: Role) -> None:
    """Raise 403 if a user may not do what needs a role."""
    if user is None or not user.may(role):
        who = "nobody who has logged in" if user is None else f"{user.name} is a {user.role.label}"
        raise web.HTTPForbidden(text=f"{who}; this needs the role {role.label}.\n")


PageFunction: TypeAlias = Callable[[Asked], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """A path and its function. `role` is the least role that may call it; None: anybody may, without a log-in."""

    method: str
    path: str
    function: PageFunction
    role: Role | None = Role.VIEWER
    changes: bool = False
    """Whether it is recorded in the audit log."""


def page(path: str, function: PageFunction, *, role: Role = Role.VIEWER) -> Route:
    """Return the route of a page, which changes nothing."""
    return Route("GET", path, function, role)


def action(path: str, function: PageFunction) -> Route:
    """Return the route of an action: operators only, and kept in the audit log."""
    return Route("POST", path, function, Role.OPERATOR, changes=True)


def question(path: str, function: PageFunction) -> Route:
    """Return the route of a form that changes nothing: it is sent as one because of what it holds, such as a whole file."""
    return Route("POST", path, function)


Routes: TypeAlias = Sequence[Route]
