"""Log-ins that give a session: by a form, in the browser, by an OAuth2 client, or by cookies that are there already; how a session's end is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crawlspace.config.logins.browser import EXAMPLE as BROWSER_EXAMPLE
from crawlspace.config.logins.browser import KEYS as BROWSER_KEYS
from crawlspace.config.logins.browser import BrowserStep, read_steps
from crawlspace.config.logins.values import SECRET_NAME, check_keys, hosts, needed_text, selector, several, text, texts, web_url
from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.errors import SettingError
from crawlspace.text import quoted
from crawlspace.urls import Url

EXAMPLES = {
    "form": '{"type": "form", "url": "https://wiki.example.com/login", "fields": {"user": "crawler", "password": "env:WIKI_PASSWORD"}}',
    "browser": BROWSER_EXAMPLE,
    "oauth2": '{"type": "oauth2", "url": "https://sso.example.com/token", "client_id": "crawler", "client_secret": "env:WIKI_SECRET"}',
    "cookies": '{"type": "cookies", "file": "cookies.txt", "logged_out": {"text": "Please log in"}}',
}
_KEYS = {
    "form": ("url", "fields", "form", "then", "hosts", "check", "logged_out"),
    "browser": BROWSER_KEYS,
    "oauth2": ("url", "client_id", "client_secret", "scope", "audience", "client_in", "check", "logged_out"),
    "cookies": ("file", "cookies", "check", "logged_out"),
}
_MOST_BYTES = 1_000_000
"""Of a file with cookies."""
_STEP_KEYS = ("fields", "form")
_SIGN_KEYS = ("status", "redirect", "text", "selector")
_STATUSES = {"form": (401, 403), "browser": (401, 403), "oauth2": (401,), "cookies": (401, 403)}
_CLIENT_IN = ("header", "body")


@dataclass(frozen=True, slots=True)
class FormStep:
    """A form to be filled, on the page that the step before has led to."""

    fields: Mapping[str, str] = field(repr=False)
    """By the name of a field, or a CSS selector of it; values may be references."""
    form: str = ""
    """A CSS selector; empty: the first form that has the fields."""


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client that gets a token in its own name (RFC 6749, 4.4)."""

    id: str
    secret: str = field(repr=False)
    scope: str = ""
    audience: str = ""
    in_body: bool = False
    """Whether the client is named in the body of the request and not by a header."""


@dataclass(frozen=True, slots=True)
class LoggedOutSigns:
    """How a site shows that a request had no session."""

    statuses: frozenset[int]
    redirect: str = ""
    """The beginning of the address that it redirects to."""
    text: str = ""
    selector: str = ""
    """CSS."""


@dataclass(frozen=True, slots=True)
class SessionLogin:
    """A log-in whose session is carried by the requests after it."""

    kind: str
    signs: LoggedOutSigns
    url: Url | None = None
    """The page of the form, or what gives tokens."""
    steps: tuple[FormStep, ...] = ()
    hosts: frozenset[str] = frozenset()
    """Hosts that the log-in may lead to, beside those of the entry and that of `url`."""
    client: OAuthClient | None = None
    file: str = ""
    """Has cookies in Netscape's format."""
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)
    browser_steps: tuple[BrowserStep, ...] = ()
    check: Url | None = field(default=None, repr=False)
    """A page that shows whether a session is alive: only who is logged in sees it."""

    @property
    def sentence(self) -> str:
        """What it is, without secrets."""
        if self.url is None:
            return f"cookies of {quoted(self.file)}" if self.file else f"cookies {', '.join(self.cookies)}"
        return f"{self.kind} log-in at {self.url.text}"

    def literals(self) -> Iterator[str]:
        """Yield the keys under which a secret is written into the settings itself."""
        for where, fields in self._filled():
            for name, value in fields.items():
                if SECRET_NAME.search(name) and not is_elsewhere(value):
                    yield f"{where}[{quoted(name)}]"
        if self.client is not None and not is_elsewhere(self.client.secret):
            yield "['client_secret']"
        for name, value in self.cookies.items():
            if not is_elsewhere(value):
                yield f"['cookies'][{quoted(name)}]"

    def secrets(self, where: str) -> list[str]:
        """Return all values that requests of the log-in carry, references read, and the fields they are for. Raises SettingError."""
        if self.file:
            return [_read_file(f"{where}['file']", self.file)]
        given = [
            (f"{number} {name}", f"{place}[{quoted(name)}]", value)
            for number, (place, fields) in enumerate(self._filled())
            for name, value in fields.items()
        ]
        if self.client is not None:
            given += [("client_id", "['client_id']", self.client.id), ("client_secret", "['client_secret']", self.client.secret)]
        given += [(name, f"['cookies'][{quoted(name)}]", value) for name, value in self.cookies.items()]
        return [part for key, place, value in given for part in (key, read_secret(f"{where}{place}", value))]

    def _filled(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield what is filled in, and its place in the settings."""
        for number, step in enumerate(self.steps):
            yield "['fields']" if number == 0 else f"['then'][{number - 1}]['fields']", step.fields
        for number, one in enumerate(self.browser_steps):
            yield f"['steps'][{number}]['fill']", one.fill


def read_session_login(where: str, kind: str, values: Mapping[str, object]) -> SessionLogin:
    """Return the log-in of an entry, `values` being without its type. Raises SettingError; no value that may be a secret is shown."""
    check_keys(where, values, _KEYS[kind], of=f"a log-in of type {quoted(kind)}")
    signs = _signs(f"{where}['logged_out']", values.get("logged_out"), kind)
    check = web_url(where, text(where, values, "check"), key="check") if "check" in values else None
    if kind == "cookies":
        return _cookies(where, values, signs, check)
    example = f"a log-in of type {quoted(kind)} is like {EXAMPLES[kind]}"
    url = web_url(where, needed_text(where, values, "url", example))
    if kind == "oauth2":
        return SessionLogin(kind, signs, url, client=_client(where, values, example), check=check)
    if kind == "browser":
        steps = read_steps(f"{where}['steps']", values.get("steps"))
        return SessionLogin(kind, signs, url, hosts=hosts(where, values), browser_steps=steps, check=check)
    return SessionLogin(kind, signs, url, _forms(where, values), hosts(where, values), check=check)


def _client(where: str, values: Mapping[str, object], example: str) -> OAuthClient:
    client_in = values.get("client_in", _CLIENT_IN[0])
    if client_in not in _CLIENT_IN:
        raise SettingError(f"{where}['client_in'] is {quoted(client_in)}; it may be {' or '.join(map(quoted, _CLIENT_IN))}")
    return OAuthClient(
        needed_text(where, values, "client_id", example),
        needed_text(where, values, "client_secret", example),
        text(where, values, "scope"),
        text(where, values, "audience"),
        in_body=client_in == "body",
    )


def _forms(where: str, values: Mapping[str, object]) -> tuple[FormStep, ...]:
    steps = [_step(where, values)]
    for number, then in enumerate(several(f"{where}['then']", values.get("then"), "dicts with the fields of the next form")):
        at = f"{where}['then'][{number}]"
        if not isinstance(then, Mapping):
            raise SettingError(f"{at} must be a dict, as in {{'fields': {{'code': 'env:WIKI_CODE'}}}}")
        check_keys(at, then, _STEP_KEYS, of="a further step")
        steps.append(_step(at, then))
    return tuple(steps)


def _read_file(where: str, name: str) -> str:
    try:
        with Path(name).expanduser().open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingError(f"{where} is {quoted(name)}, which cannot be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise SettingError(f"{where} is {quoted(name)}, which has more than {_MOST_BYTES:,} bytes")
    return content.decode("utf-8", "replace")


def _step(where: str, values: Mapping[str, object]) -> FormStep:
    fields = texts(f"{where}['fields']", values.get("fields"))
    if not fields:
        raise SettingError(f"{where} has no 'fields'; a form needs some, as in {EXAMPLES['form']}")
    return FormStep(fields, selector(where, values, "form"))


def _cookies(where: str, values: Mapping[str, object], signs: LoggedOutSigns, check: Url | None) -> SessionLogin:
    file = text(where, values, "file")
    cookies = texts(f"{where}['cookies']", values.get("cookies"))
    if bool(file) == bool(cookies):
        raise SettingError(f"{where} needs either 'file' or 'cookies', as in {EXAMPLES['cookies']}")
    if not (signs.redirect or signs.text or signs.selector):
        raise SettingError(
            f"{where} has no 'logged_out' with 'redirect', 'text' or 'selector': without one of them a page that asks to log in would be"
            " taken for a page of the site"
        )
    return SessionLogin("cookies", signs, file=file, cookies=cookies, check=check)


def _signs(where: str, value: object, kind: str) -> LoggedOutSigns:
    if value is None:
        return LoggedOutSigns(frozenset(_STATUSES[kind]))
    if not isinstance(value, Mapping):
        raise SettingError(
            f"{where} must be a dict, as in {{'redirect': 'https://wiki.example.com/login', 'text': 'Please log in'}}"
        )
    check_keys(where, value, _SIGN_KEYS, of="it")
    statuses = several(f"{where}['status']", value.get("status", list(_STATUSES[kind])), "numbers, as in [401]")
    for status in statuses:
        if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status < 500:
            raise SettingError(f"{where}['status'] has {quoted(status)}; it must be a status of 400 to 499, as in [401, 403]")
    redirect = text(where, value, "redirect")
    if redirect:
        redirect = web_url(where, redirect, key="redirect").text
    return LoggedOutSigns(
        frozenset(status for status in statuses if isinstance(status, int)),
        redirect,
        text(where, value, "text"),
        selector(where, value, "selector"),
    )
