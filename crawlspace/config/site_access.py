"""What requests to a site carry so that it answers: a log-in, and headers of its own. Secrets stay references until a crawl needs them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crawlspace.config.credential_headers import is_credential
from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.config.session_login import EXAMPLES, SessionLogin, read_session_login
from crawlspace.errors import SettingError, did_you_mean
from crawlspace.parsing import optional_boolean
from crawlspace.rules.domain import names_no_site
from crawlspace.text import quoted

SITE_KEYS = ("login", "headers", "allow_plain_http")
"""In CRAWLSPACE_SITES."""
_FIELDS: dict[str, tuple[str, ...]] = {
    "basic": ("user", "password"),
    "digest": ("user", "password"),
    "bearer": ("token",),
    "negotiate": (),
}
"""The kinds of log-in that are sent with each request, and what each needs."""
_OPTIONAL = {"negotiate": ("keytab",)}
_KINDS = (*_FIELDS, *EXAMPLES)
CERTIFICATE = "certificate"
"""The kind of a log-in by a client certificate alone."""
_SECRETS = frozenset({"password", "token"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header (RFC 9110, 5.6.2)."""
_LOGIN_EXAMPLE = '{"type": "basic", "user": "crawler", "password": "env:WIKI_PASSWORD"}'
_NEGOTIATE_EXAMPLE = '{"type": "negotiate"}'
_MOST_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class SiteAccess:
    """The log-in and the headers of one entry of CRAWLSPACE_SITES."""

    pattern: str
    """The key of the entry."""
    kind: str
    """Of the log-in, as "basic"; "" without one."""
    login: Mapping[str, str] = field(repr=False)
    named: Mapping[str, str] = field(repr=False)
    """Headers, with values that may be references."""
    allow_plain_http: bool = False
    session: SessionLogin | None = None
    """The log-in, where it gives a session."""

    @property
    def where(self) -> str:
        """The entry, for messages."""
        return f"CRAWLSPACE_SITES[{quoted(self.pattern)}]"

    @property
    def most_at_once(self) -> int | None:
        """Requests that may be sent to a site at a time: each is an attempt to log in, and a few wrong ones lock an account."""
        return _MOST_ATTEMPTS if self.kind in {"basic", "digest"} else None

    @property
    def logs_in(self) -> bool:
        """Whether requests carry what not everybody has: a log-in, or a header with credentials."""
        return bool(self.kind) or any(map(is_credential, self.named))

    @property
    def user(self) -> str:
        return self.login.get("user", "")

    @property
    def keytab(self) -> Path | None:
        """The file with the keys of a Kerberos log-in; None: that has a ticket already."""
        name = self.login.get("keytab")
        return None if name is None else Path(name).expanduser()

    @property
    def sentence(self) -> str:
        """What requests carry, without secrets."""
        if self.session is not None:
            parts = [self.session.sentence]
        elif self.kind == CERTIFICATE:
            parts = ["a client certificate"]
        else:
            parts = [f"{self.kind} log-in" + (f" as {quoted(self.user)}" if self.user else "")] if self.kind else []
        parts += [f"header {name}" for name in self.named]
        return ", ".join(parts)

    def sentence_for(self, scheme: str) -> str:
        """Return what a request with that scheme carries, or why nothing."""
        if self.carries(scheme):
            return f"{self.sentence} ({self.where})"
        return (
            f"nothing of {self.where} ({self.sentence}), because it would go over http: without https only with allow_plain_http"
        )

    def headers(self) -> dict[str, str]:
        """Return the headers with their secrets. Raises SettingError where one cannot be read."""
        found = {
            name: _checked(self._read("headers", name, value), f"{self.where}['headers'][{quoted(name)}]")
            for name, value in self.named.items()
        }
        if self.kind == "basic":
            found["Authorization"] = f"Basic {base64.b64encode(f'{self.user}:{self.password()}'.encode()).decode()}"
        elif self.kind == "bearer":
            token = self._read("login", "token", self.login["token"])
            found["Authorization"] = "Bearer " + _checked(token, f"{self.where}['login']['token']")
        return found

    def password(self) -> str:
        """Return that of a basic or digest log-in. Raises SettingError where it cannot be read."""
        return self._read("login", "password", self.login["password"])

    def sent(self) -> list[str]:
        """Return all that requests carry or log in with: another secret, or another log-in, makes another list. Raises SettingError."""
        values = [value for header in sorted(self.headers().items()) for value in header]
        if self.kind == "digest":
            values += ["digest", self.user, self.password()]
        if self.keytab is not None:
            values += ["negotiate", str(self.keytab)]
        if self.session is not None:
            values += [repr(self.session), *self.session.secrets(f"{self.where}['login']")]
        return values

    def carries(self, scheme: str) -> bool:
        """Whether a request with that scheme carries anything."""
        return scheme == "https" or self.allow_plain_http

    def literals(self) -> Iterator[str]:
        """Yield where a secret is written into the settings itself."""
        for key, value in self.login.items():
            if key in _SECRETS and not is_elsewhere(value):
                yield f"{self.where}['login'][{quoted(key)}]"
        for place in self.session.literals() if self.session is not None else ():
            yield f"{self.where}['login']{place}"
        for name, value in self.named.items():
            if is_credential(name) and not is_elsewhere(value):
                yield f"{self.where}['headers'][{quoted(name)}]"

    def _read(self, key: str, name: str, value: str) -> str:
        return read_secret(f"{self.where}[{quoted(key)}][{quoted(name)}]", value)


def read_site_access(where: str, pattern: str, values: Mapping[object, object]) -> SiteAccess | None:
    """Return what an entry says of log-in and headers, or of a client certificate; None where it says nothing. Raises SettingError."""
    kind, login, session = _login(f"{where}['login']", values.get("login"))
    named = _texts(f"{where}['headers']", values.get("headers"), example='{"X-Api-Key": "env:WIKI_KEY"}')
    for name in named:
        if not _TOKEN.fullmatch(name):
            raise SettingError(f"{where}['headers'] has {quoted(name)}, which is no name of a header")
        if kind not in {"", CERTIFICATE, "form", "browser", "cookies"} and name.lower() == "authorization":
            raise SettingError(f"{where} has a log-in and a header Authorization, which the log-in sends too: leave one")
    plain = optional_boolean(f"{where}['allow_plain_http']", values.get("allow_plain_http"))
    kind = kind or (CERTIFICATE if values.get("client_certificate") is not None else "")
    if not kind and not named:
        if plain is not None:
            raise SettingError(f"{where}['allow_plain_http'] is about a log-in or headers, and it has neither")
        return None
    if kind or any(map(is_credential, named)):
        _check_pattern(where, pattern)
    access = SiteAccess(pattern, kind, login, named, bool(plain), session)
    if session is not None and session.url is not None and not access.carries(session.url.scheme):
        raise SettingError(
            f"{where}['login']['url'] is {quoted(session.url.text)}: a log-in goes over https only, unless the entry has allow_plain_http"
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


def _login(where: str, value: object) -> tuple[str, dict[str, str], SessionLogin | None]:
    if value is None:
        return "", {}, None
    kind = value.get("type", "") if isinstance(value, Mapping) else ""
    if isinstance(value, Mapping) and isinstance(kind, str) and kind in EXAMPLES:
        given = {str(key): given for key, given in value.items() if key != "type"}
        return str(kind), {}, read_session_login(where, str(kind), given)
    login = _texts(where, value, example=_LOGIN_EXAMPLE)
    kind = login.pop("type", "")
    if kind.lower() == "ntlm":
        raise SettingError(
            f"{where} has the type {quoted(kind)}, which is not supported: use {_NEGOTIATE_EXAMPLE}, which logs in by Kerberos"
        )
    if kind not in _FIELDS:
        meant = did_you_mean(kind, _KINDS, f"it may be {', '.join(map(quoted, _KINDS))}") if kind else f"as in {_LOGIN_EXAMPLE}"
        raise SettingError(f"{where} has {'the unknown type ' + quoted(kind) if kind else 'no type'}: {meant}")
    needed = _FIELDS[kind]
    optional = _OPTIONAL.get(kind, ())
    known = (*needed, *optional)
    all_known = f"it needs {', '.join(needed)}" if needed else f"it may have {', '.join(optional)}"
    if unknown := sorted(login.keys() - set(known)):
        raise SettingError(f"{where} has an unknown key {quoted(unknown[0])}: {did_you_mean(unknown[0], known, all_known)}")
    for key in optional:
        if key in login and not login[key].strip():
            raise SettingError(f"{where}[{quoted(key)}] must be the path of a file")
    for key in needed:
        if not login.get(key, "").strip():
            raise SettingError(
                f"{where} has no {quoted(key)}; a {kind} log-in needs {' and '.join(needed)}, as in {_LOGIN_EXAMPLE}"
            )
    if ":" in login.get("user", ""):
        raise SettingError(f"{where}['user'] has a colon, which a user of a {kind} log-in cannot have (RFC 7617)")
    return kind, login, None


def _texts(where: str, value: object, *, example: str) -> dict[str, str]:
    """Return a dict of texts. No value is shown: it may be a secret."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SettingError(f"{where} must be a dict, as in {example}")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise SettingError(f"{where}[{quoted(key)}] must be a text, as in {example}")
    return dict(value)


def _checked(value: str, where: str) -> str:
    """Return the value of a header. Raises SettingError for one that cannot be sent."""
    if not value.isascii() or not value.isprintable():
        raise SettingError(f"{where} has a character that a header cannot have: letters, digits and signs of ASCII only")
    return value
