"""What requests to a site carry so that it answers: a log-in, and headers of its own. Secrets stay references until a crawl needs them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from cssselect import HTMLTranslator, SelectorError
from lxml import etree
from msgspec import Meta, Struct, to_builtins

from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.config.sentences import converted
from crawlspace.errors import RuleFileError, SettingError
from crawlspace.parsing import optional_boolean, table, words
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.domain import DomainMatcher, names_no_site
from crawlspace.text import quoted
from crawlspace.urls import MalformedUrl, Url, parse

SITE_KEYS = ("login", "headers", "allow_plain_http")
"""In CRAWLSPACE_SITES."""
CERTIFICATE = "certificate"
"""The kind of a log-in by a client certificate alone."""
CREDENTIAL_HOSTS = "CRAWLSPACE_CREDENTIAL_HOSTS"
HEADERS = "DEFAULT_REQUEST_HEADERS"
SHOWN = 3
"""Maximal hosts named in a warning."""
_CREDENTIAL = re.compile(r"auth|cookie|token|secret|passw|key|credential|session|jwt|signature", re.IGNORECASE)
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|otp|pin\b|kennwort|key", re.IGNORECASE)
"""In the name of a field, or a selector of it, whose value is a secret."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header (RFC 9110, 5.6.2)."""
_MOST_ATTEMPTS = 2
_MOST_BYTES = 1_000_000
"""Of a file with cookies."""

Text = Annotated[str, Meta(pattern=r"\S")]


class WebUrl(str):
    """A URL with https or http, in normal form."""

    __slots__ = ()

    @property
    def scheme(self) -> str:
        return parse(self).scheme

    @property
    def host(self) -> str:
        return parse(self).host

    @property
    def port(self) -> int:
        return parse(self).port


class Selector(str):
    """A CSS selector."""

    __slots__ = ()


class Host(str):
    """The name of a host, in lower case."""

    __slots__ = ()


class Login(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """A log-in of an entry of CRAWLSPACE_SITES. Its values are not shown: they may be secrets."""

    example: ClassVar[str] = '{"type": "basic", "user": "crawler", "password": "env:WIKI_PASSWORD"}'
    most_at_once: ClassVar[int | None] = None
    """Requests that may be sent to a site at a time: each is an attempt to log in, and a few wrong ones lock an account."""

    def __repr__(self) -> str:
        return f"<{self.kind}>"

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def sentence(self) -> str:
        """Its description, without secrets."""
        return f"{self.kind} log-in"

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        """Yield the values that may be references: the place in the log-in, what the value is for, the value, whether it is a secret."""
        return iter(())

    def literals(self) -> Iterator[str]:
        """Yield the places of secrets that are written into the settings themselves."""
        return (place for place, _, value, is_secret in self.filled() if is_secret and not is_elsewhere(value))

    def secrets(self, where: str) -> list[str]:
        """Return all values that requests of the log-in carry, references read, and what they are for. Raises SettingError."""
        return [part for place, key, value, _ in self.filled() for part in (key, read_secret(f"{where}{place}", value))]


class BasicAuth(Login, frozen=True, tag="basic"):
    most_at_once: ClassVar[int | None] = _MOST_ATTEMPTS
    user: Text
    password: Text

    def __post_init__(self) -> None:
        if ":" in self.user:
            raise ValueError("has a 'user' with a colon, which a user of such a log-in cannot have (RFC 7617)")

    @property
    def sentence(self) -> str:
        return f"{self.kind} log-in as {quoted(self.user)}"

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        yield "['password']", "password", self.password, True


class DigestAuth(BasicAuth, frozen=True, tag="digest"):
    pass


class AutoAuth(DigestAuth, frozen=True, tag="auto"):
    """Digest where the site offers it, else basic: nothing is sent before it asks."""


HttpAuth = BasicAuth | DigestAuth | AutoAuth


class BearerAuth(Login, frozen=True, tag="bearer"):
    example: ClassVar[str] = '{"type": "bearer", "token": "env:WIKI_TOKEN"}'
    token: Text

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        yield "['token']", "token", self.token, True


class NegotiateAuth(Login, frozen=True, tag="negotiate"):
    example: ClassVar[str] = '{"type": "negotiate"}'
    keytab: Text | None = None
    """The file with the keys of a Kerberos log-in; None: that has a ticket already."""


class LoggedOutSigns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signs by which a site shows that a request had no session."""

    example: ClassVar[str] = '{"redirect": "https://wiki.example.com/login", "text": "Please log in"}'
    status: frozenset[Annotated[int, Meta(ge=400, le=499)]] | None = None
    redirect: WebUrl = WebUrl("")
    """The beginning of the address that it redirects to."""
    text: Text = ""
    selector: Selector = Selector("")


class SessionLogin(Login, frozen=True):
    """A log-in whose session is carried by the requests after it."""

    usual_statuses: ClassVar[frozenset[int]] = frozenset({401, 403})
    has_token: ClassVar[bool] = False
    """Whether the session is a token, and not cookies."""
    logged_out: LoggedOutSigns = LoggedOutSigns()
    check: WebUrl | None = None
    """A page that shows whether a session is alive: only who is logged in sees it."""

    @property
    def url(self) -> WebUrl | None:
        """The page of the form, or what gives tokens."""
        return None

    @property
    def hosts(self) -> frozenset[Host]:
        """Hosts that the log-in may lead to, besides those of the entry and that of `url`."""
        return frozenset()

    @property
    def statuses(self) -> frozenset[int]:
        """The statuses that show that a request had no session."""
        return self.usual_statuses if self.logged_out.status is None else self.logged_out.status


class FormStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A form to be filled, on the page that the step before has led to."""

    example: ClassVar[str] = '{"fields": {"code": "env:WIKI_CODE"}}'
    fields: Annotated[dict[str, str], Meta(min_length=1)]
    """By the name of a field, or a CSS selector of it; values may be references."""
    form: Selector = Selector("")
    """Empty: the first form that has the fields."""

    def __repr__(self) -> str:
        return f"<form with {', '.join(self.fields)}>"


class FormLogin(SessionLogin, frozen=True, kw_only=True, tag="form"):
    example: ClassVar[str] = (
        '{"type": "form", "url": "https://wiki.example.com/login", "fields": {"user": "crawler", "password": "env:WIKI_PASSWORD"}}'
    )
    url: WebUrl
    fields: Annotated[dict[str, str], Meta(min_length=1)]
    form: Selector = Selector("")
    then: tuple[FormStep, ...] = ()
    hosts: frozenset[Host] = frozenset()

    @property
    def steps(self) -> tuple[FormStep, ...]:
        return FormStep(fields=self.fields, form=self.form), *self.then

    @property
    def sentence(self) -> str:
        return f"form log-in at {self.url}"

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        for number, step in enumerate(self.steps):
            place = "['fields']" if number == 0 else f"['then'][{number - 1}]['fields']"
            yield from _fields(number, place, step.fields)


class BrowserStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Actions on a page, in this order; empty ones are left out."""

    example: ClassVar[str] = '{"fill": {"#user": "crawler"}, "click": "button[type=submit]", "wait_for": "#password"}'
    fill: dict[str, str] = {}
    """By CSS selectors of fields; values may be references."""
    click: Selector = Selector("")
    wait_for: Selector = Selector("")
    """Sign that the step has worked."""

    def __post_init__(self) -> None:
        if not (self.fill or self.click or self.wait_for):
            raise ValueError(f"does nothing; a step has any of 'fill', 'click' and 'wait_for', as in {self.example}")
        for name in self.fill:
            if problem := _selector_problem(name):
                raise ValueError(f"fills {quoted(name)}, which is no CSS selector: {problem}")

    def __repr__(self) -> str:
        return f"<fill {', '.join(self.fill)}, click {self.click}, wait for {self.wait_for}>"


class BrowserLogin(SessionLogin, frozen=True, kw_only=True, tag="browser"):
    example: ClassVar[str] = (
        '{"type": "browser", "url": "https://wiki.example.com/login",'
        ' "steps": [{"fill": {"#user": "crawler", "#password": "env:WIKI_PASSWORD"}, "click": "button[type=submit]"}]}'
    )
    url: WebUrl
    steps: Annotated[tuple[BrowserStep, ...], Meta(min_length=1)]
    hosts: frozenset[Host] = frozenset()

    @property
    def sentence(self) -> str:
        return f"browser log-in at {self.url}"

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        for number, step in enumerate(self.steps):
            yield from _fields(number, f"['steps'][{number}]['fill']", step.fill)


class OAuthLogin(SessionLogin, frozen=True, kw_only=True, tag="oauth2"):
    """A client that gets a token in its own name (RFC 6749, 4.4)."""

    example: ClassVar[str] = (
        '{"type": "oauth2", "url": "https://sso.example.com/token", "client_id": "crawler", "client_secret": "env:WIKI_SECRET"}'
    )
    usual_statuses: ClassVar[frozenset[int]] = frozenset({401})
    has_token: ClassVar[bool] = True
    url: WebUrl
    client_id: Text
    client_secret: Text
    scope: Text = ""
    audience: Text = ""
    client_in: Literal["header", "body"] = "header"

    @property
    def sentence(self) -> str:
        return f"oauth2 log-in at {self.url}"

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        yield "['client_id']", "client_id", self.client_id, False
        yield "['client_secret']", "client_secret", self.client_secret, True


class CookieLogin(SessionLogin, frozen=True, tag="cookies"):
    example: ClassVar[str] = '{"type": "cookies", "file": "cookies.txt", "logged_out": {"text": "Please log in"}}'
    file: Text = ""
    """Has cookies in Netscape's format."""
    cookies: dict[str, str] = {}

    def __post_init__(self) -> None:
        if bool(self.file) == bool(self.cookies):
            raise ValueError(f"needs either 'file' or 'cookies', as in {self.example}")
        signs = self.logged_out
        if not (signs.redirect or signs.text or signs.selector):
            raise ValueError(
                "has no 'logged_out' with 'redirect', 'text' or 'selector': without one of them a page that asks to log in would be taken"
                " for a page of the site"
            )

    @property
    def sentence(self) -> str:
        return f"cookies of {quoted(self.file)}" if self.file else f"cookies {', '.join(self.cookies)}"

    def filled(self) -> Iterator[tuple[str, str, str, bool]]:
        for name, value in self.cookies.items():
            yield f"['cookies'][{quoted(name)}]", name, value, True

    def secrets(self, where: str) -> list[str]:
        return [_read_file(f"{where}['file']", self.file)] if self.file else super().secrets(where)


class _EntryAccess(Struct, frozen=True, kw_only=True):
    """Log-in settings of an entry of CRAWLSPACE_SITES."""

    example: ClassVar[str] = (
        '{"login": {"type": "basic", "user": "crawler", "password": "env:WIKI_PASSWORD"}, "headers": {"X-Api-Key": "env:WIKI_KEY"}}'
    )
    login: HttpAuth | BearerAuth | NegotiateAuth | FormLogin | BrowserLogin | OAuthLogin | CookieLogin | None = None
    headers: dict[str, str] | None = None


def _fields(number: int, place: str, fields: Mapping[str, str]) -> Iterator[tuple[str, str, str, bool]]:
    for name, value in fields.items():
        yield f"{place}[{quoted(name)}]", f"{number} {name}", value, _SECRET_NAME.search(name) is not None


def _selector_problem(selector: str) -> str:
    """Return what is wrong with a CSS selector; empty if it is one."""
    try:
        etree.XPath(HTMLTranslator().css_to_xpath(selector))(etree.Element("html"))
    except (SelectorError, etree.XPathError) as error:
        return str(error)
    return ""


def _parse(kind: type, value: object) -> object:
    """Return a URL, a selector or a host of a log-in. Raises ValueError with the end of a sentence."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text")
    if kind is Selector:
        if problem := _selector_problem(value):
            raise ValueError(f"is {quoted(value)}, which is no CSS selector: {problem}")
        return Selector(value)
    if kind is Host:
        if "/" in value:
            raise ValueError(f"is {quoted(value)}; it must be a host, as in 'sso.example.com'")
        return Host(value.lower())
    try:
        url = parse(value)
    except MalformedUrl as error:
        raise ValueError(f"is {quoted(value)}, which is no URL: {error}") from error
    if url.scheme not in {"http", "https"}:
        raise ValueError(f"is {quoted(value)}; it must begin with https:// or http://")
    return WebUrl(url.text)


def _read_file(where: str, name: str) -> str:
    try:
        with Path(name).expanduser().open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingError(f"{where} is {quoted(name)}, which cannot be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise SettingError(f"{where} is {quoted(name)}, which has more than {_MOST_BYTES:,} bytes")
    return content.decode("utf-8", "replace")


def is_credential(header: str) -> bool:
    """Return whether the name of a header looks like credentials, such as Authorization, Cookie or X-Api-Key."""
    return _CREDENTIAL.search(header) is not None


@dataclass(frozen=True, slots=True)
class SiteAccess:
    """The log-in and the headers of one entry of CRAWLSPACE_SITES."""

    pattern: str
    """The key of the entry."""
    login: Login | None
    named: Mapping[str, str] = field(repr=False)
    """Headers, with values that may be references."""
    allow_plain_http: bool = False
    has_certificate: bool = False
    """Whether the entry has a client certificate."""

    @property
    def kind(self) -> str:
        """Of the log-in, as "basic"; "" without one."""
        return self.login.kind if self.login is not None else CERTIFICATE if self.has_certificate else ""

    @property
    def session(self) -> SessionLogin | None:
        """The log-in, where it gives a session."""
        return self.login if isinstance(self.login, SessionLogin) else None

    @property
    def where(self) -> str:
        """The entry, for messages."""
        return f"CRAWLSPACE_SITES[{quoted(self.pattern)}]"

    @property
    def most_at_once(self) -> int | None:
        """Requests that may be sent to a site at a time; None: as many as without a log-in."""
        return None if self.login is None else self.login.most_at_once

    @property
    def logs_in(self) -> bool:
        """Whether requests carry a log-in, or a header with credentials."""
        return bool(self.kind) or any(map(is_credential, self.named))

    @property
    def user(self) -> str:
        return self.login.user if isinstance(self.login, BasicAuth) else ""

    @property
    def is_asked_for(self) -> bool:
        """Whether requests log in only as an answer to a site that asks for it."""
        return isinstance(self.login, DigestAuth)

    @property
    def keytab(self) -> Path | None:
        """The file with the keys of a Kerberos log-in; None: that has a ticket already."""
        name = self.login.keytab if isinstance(self.login, NegotiateAuth) else None
        return None if name is None else Path(name).expanduser()

    @property
    def sentence(self) -> str:
        """The description of what requests carry, without secrets."""
        parts = [self.login.sentence] if self.login is not None else ["a client certificate"] if self.has_certificate else []
        return ", ".join([*parts, *(f"header {name}" for name in self.named)])

    def sentence_for(self, scheme: str) -> str:
        """Return what a request with that scheme carries, or why nothing."""
        if self.carries(scheme):
            return f"{self.sentence} ({self.where})"
        return (
            f"nothing of {self.where} ({self.sentence}), because it would go over http: without https only with allow_plain_http"
        )

    def headers(self) -> dict[str, str]:
        """Return the headers with their secrets. Raises SettingError where one cannot be read."""
        found = {}
        for name, value in self.named.items():
            where = f"{self.where}['headers'][{quoted(name)}]"
            found[name] = _checked(read_secret(where, value), where)
        if self.kind == "basic":
            found["Authorization"] = f"Basic {base64.b64encode(f'{self.user}:{self.password()}'.encode()).decode()}"
        elif isinstance(self.login, BearerAuth):
            where = f"{self.where}['login']['token']"
            found["Authorization"] = f"Bearer {_checked(read_secret(where, self.login.token), where)}"
        return found

    def password(self) -> str:
        """Return that of a basic or digest log-in. Raises SettingError where it cannot be read."""
        assert isinstance(self.login, BasicAuth)
        return read_secret(f"{self.where}['login']['password']", self.login.password)

    def sent(self) -> list[str]:
        """Return all that requests carry or log in with: another secret, or another log-in, makes another list. Raises SettingError."""
        values = [value for header in sorted(self.headers().items()) for value in header]
        if self.is_asked_for:
            values += [self.kind, self.user, self.password()]
        if self.keytab is not None:
            values += ["negotiate", str(self.keytab)]
        if self.session is not None:
            written = to_builtins(self.session, enc_hook=str, order="deterministic")
            values += [repr(written), *self.session.secrets(f"{self.where}['login']")]
        return values

    def carries(self, scheme: str) -> bool:
        """Whether a request with that scheme carries anything."""
        return scheme == "https" or self.allow_plain_http

    def literals(self) -> Iterator[str]:
        """Yield where a secret is written into the settings itself."""
        for place in self.login.literals() if self.login is not None else ():
            yield f"{self.where}['login']{place}"
        for name, value in self.named.items():
            if is_credential(name) and not is_elsewhere(value):
                yield f"{self.where}['headers'][{quoted(name)}]"


def read_site_access(where: str, pattern: str, values: Mapping[object, object]) -> SiteAccess | None:
    """Return the log-in and the headers of an entry, or its client certificate; None where it has none. Raises SettingError."""
    given = values.get("login")
    kind = given.get("type") if isinstance(given, Mapping) else ""
    if isinstance(kind, str) and kind.lower() == "ntlm":
        raise SettingError(
            f"{where}['login'] has the type {quoted(kind)}, which is not supported: use {NegotiateAuth.example}, which logs in by Kerberos"
        )
    entry = converted(where, {str(key): value for key, value in values.items() if key in SITE_KEYS}, _EntryAccess, parse=_parse)
    login, named = entry.login, entry.headers or {}
    if wrong := [name for name in named if not _HEADER_NAME.fullmatch(name)]:
        raise SettingError(f"{where}['headers'] has {quoted(wrong[0])}, which is no name of a header")
    if login is not None and not isinstance(login, SessionLogin) and any(name.lower() == "authorization" for name in named):
        raise SettingError(f"{where} has a log-in and a header Authorization, which the log-in sends too: leave one")
    plain = optional_boolean(f"{where}['allow_plain_http']", values.get("allow_plain_http"))
    access = SiteAccess(pattern, login, named, bool(plain), values.get("client_certificate") is not None)
    if not access.kind and not named:
        if plain is not None:
            raise SettingError(f"{where}['allow_plain_http'] is about a log-in or headers, and it has neither")
        return None
    if access.logs_in:
        _check_pattern(where, pattern)
    url = None if access.session is None else access.session.url
    if url is not None and not access.carries(url.scheme):
        raise SettingError(
            f"{where}['login']['url'] is {quoted(url)}: a log-in goes over https only, unless the entry has allow_plain_http"
        )
    return access


def _check_pattern(where: str, pattern: str) -> None:
    """Raise SettingError for a pattern that a host of anybody may match, who would get the log-in."""
    host, _, port = pattern.rpartition(":")
    host = host if host and (port.isdigit() or port == "*") else pattern
    if "*" in host and not host.replace("*", "").strip("."):
        raise SettingError(f"{where} would send a log-in to every host that a link leads to: name the hosts it is for")
    if names_no_site(host):
        raise SettingError(
            f"{where} would send a log-in to hosts that anybody can register: name the hosts it is for, or all of a domain of yours, as in"
            " '*.example.com'"
        )


def _checked(value: str, where: str) -> str:
    """Return the value of a header. Raises SettingError for one that cannot be sent."""
    if not value.isascii() or not value.isprintable():
        raise SettingError(f"{where} has a character that a header cannot have: letters, digits and signs of ASCII only")
    return value


class CredentialHosts:
    """The hosts of the start URLs, or those that match the configured domain patterns."""

    def __init__(self, patterns: Sequence[str], start_urls: Sequence[Url]) -> None:
        """Raises RuleFileError for an invalid host pattern."""
        rules = parse_crawl_rules("".join(f"allow domain {pattern}\n" for pattern in patterns), file=CREDENTIAL_HOSTS)
        self._patterns = tuple(patterns)
        self._matcher = DomainMatcher(rules.domain, case_sensitive=False) if patterns else None
        self._start_hosts = frozenset(url.host for url in start_urls)
        self._start_hosts_in_plain_text = frozenset(url.host for url in start_urls if url.scheme == "http")

    def allow(self, address: str) -> bool:
        """Return whether credentials may be sent with a request to a URL.

        A host whose start URLs are all https gets none over http.
        """
        try:
            url = parse(address)
        except MalformedUrl:
            return False
        if self._matcher is not None:
            return self._matcher.match(url.host, url.port) is not None
        return url.host in (self._start_hosts if url.scheme == "https" else self._start_hosts_in_plain_text)

    def warning(self, headers: Sequence[str]) -> str | None:
        """Return a warning about the credentials among the headers; None if there is nothing to warn about."""
        names = " and ".join(name for name in headers if is_credential(name))
        if not names:
            return None
        if self._matcher is None:
            hosts = sorted(self._start_hosts)
            listed = ", ".join(hosts[:SHOWN]) + (f" and {len(hosts) - SHOWN:,} more" if len(hosts) > SHOWN else "")
            return (
                f"{HEADERS} has {names}: sent to the hosts of the start URLs only ({listed}), on all their ports,"
                f" and not after redirects to others; {CREDENTIAL_HOSTS} sets the hosts that receive it"
            )
        if set(self._patterns) & {"*", "*.*"}:
            return f"{HEADERS} has {names}, and {CREDENTIAL_HOSTS} lets every host have it; name the hosts it is for"
        if anybody := [pattern for pattern in self._patterns if names_no_site(pattern.rpartition(":")[0] or pattern)]:
            return (
                f"{HEADERS} has {names}, and {CREDENTIAL_HOSTS} lets hosts that anybody can register have it ({quoted(anybody[0])}); name the hosts it"
                " is for, or all of a domain of yours, as in '*.example.com'"
            )
        return None


def read_credential_hosts(settings: Mapping[str, object], start_urls: Sequence[Url]) -> CredentialHosts:
    """Read CRAWLSPACE_CREDENTIAL_HOSTS. Raises SettingError."""
    patterns = words(CREDENTIAL_HOSTS, settings[CREDENTIAL_HOSTS])
    try:
        return CredentialHosts(patterns, start_urls)
    except RuleFileError as error:
        first = error.mistakes[0]
        raise SettingError(f"{CREDENTIAL_HOSTS} has {quoted(first.text.split(maxsplit=2)[-1])}: {first.message}") from error


def default_headers(settings: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield names and values of DEFAULT_REQUEST_HEADERS. Raises SettingError."""
    for name, value in table(HEADERS, settings.get(HEADERS), example='{"Accept-Language": "de"}').items():
        if value is not None:
            yield (name.decode("latin-1") if isinstance(name, bytes) else str(name)), value
