"""One proxy as a setting names it: a URL, a reference to one, or a dict with a user and a password. Secrets stay references."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.errors import SettingError, did_you_mean
from crawlspace.text import HIDDEN, quoted
from crawlspace.urls import MalformedUrl, parse

DIRECT = "direct"
EXAMPLE = "'http://proxy.example.com:3128'"
DICT_EXAMPLE = '{"url": "http://proxy.example.com:3128", "user": "crawler", "password": "env:PROXY_PASSWORD"}'
SCHEMES = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080, "socks4": 1080, "socks4a": 1080}
"""Of the URLs of proxies, with their usual ports. Names are looked up by the proxy, also with socks4 and socks5."""
_KEYS = ("url", "user", "password")
_NO_PROXY_MEANT = frozenset({"none", "no", "off", "false", "null"})
_HAS_PORT = re.compile(r":[0-9]+$")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """Where a proxy is, and the log-in for it."""

    url: str
    """Scheme, host and port, without the log-in."""
    scheme: str
    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of Proxy-Authorization; empty without a log-in."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, or "direct". No field but `where` is shown: each may hold a secret."""

    where: str
    """The setting."""
    url: str = field(repr=False)
    """As written: a URL, a reference to one, or "direct"."""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    is_dict: bool = False

    @property
    def is_direct(self) -> bool:
        return self.url == DIRECT

    @property
    def sentence(self) -> str:
        """Which proxy it is, without secrets, and without reading any."""
        return f"{self.url if is_elsewhere(self.url) else _read(self._url_key, self.url)[0].url} ({self.where})"

    def address(self, *, encoding: str = "latin-1") -> ProxyAddress:
        """Return the address with the log-in, in that encoding. Raises SettingError where a secret cannot be read or used."""
        key = self._url_key
        address, user, password = _read(key, read_secret(key, self.url), secret=is_elsewhere(self.url))
        if self.user:
            if user:
                raise SettingError(f"{key} has a user of its own, beside that of {self.where}['user']: leave one")
            user = read_secret(f"{self.where}['user']", self.user)
            password = read_secret(f"{self.where}['password']", self.password)
        if not user:
            return address
        if ":" in user:
            raise SettingError(f"the user of {self.where} has a colon, which a user of a proxy cannot have (RFC 7617)")
        try:
            raw = f"{user}:{password}".encode(encoding)
        except (UnicodeError, LookupError):
            raise SettingError(
                f"the log-in of {self.where} has a character that {quoted(encoding)} has not: set HTTPPROXY_AUTH_ENCODING to 'utf-8'"
            ) from None
        authorization = f"Basic {base64.b64encode(raw).decode()}"
        return ProxyAddress(address.url, address.scheme, address.host, address.port, authorization)

    def literals(self) -> Iterator[str]:
        """Yield where a secret is written into the settings itself."""
        if self.password and not is_elsewhere(self.password):
            yield f"{self.where}['password']"
        if not is_elsewhere(self.url) and not self.is_direct and _read(self._url_key, self.url)[2]:
            yield self._url_key

    @property
    def _url_key(self) -> str:
        return f"{self.where}['url']" if self.is_dict else self.where


def read_proxy(where: str, value: object) -> Proxy | None:
    """Return what a setting names; None where it is not set. Raises SettingError; no secret is read, and none is shown."""
    if isinstance(value, str) and value.lstrip().startswith("{"):  # from the command line
        try:
            value = json.loads(value)
        except ValueError:
            raise SettingError(f"{where} is no JSON; it must be like {DICT_EXAMPLE}") from None
    if isinstance(value, Mapping):
        return _of_dict(where, value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str) or value.strip().lower() in _NO_PROXY_MEANT:
        raise SettingError(f"{where} is {quoted(value)}; it must be the URL of a proxy, as in {EXAMPLE}, or {DIRECT!r} for none")
    text = value.strip()
    if text.lower() == DIRECT:
        return Proxy(where, DIRECT)
    _check(where, text)
    return Proxy(where, text)


def of_environment(where: str, value: str, scheme: str) -> Proxy | None:
    """Return the proxy that a variable of the environment names; None for what Scrapy does not take for one either."""
    text = value.strip()
    if text.startswith("/") and not text.startswith("//"):
        return None
    return Proxy(where, text if "://" in text else f"{scheme}://{text.lstrip('/')}")


def _of_dict(where: str, value: Mapping[object, object]) -> Proxy:
    if unknown := sorted(str(key) for key in value if key not in _KEYS):
        meant = did_you_mean(unknown[0], _KEYS, f"it may hold {', '.join(_KEYS)}")
        raise SettingError(f"{where} has an unknown key {quoted(unknown[0])}: {meant}")
    given: dict[str, str] = {}
    for key in _KEYS:
        text = value.get(key)
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise SettingError(f"{where}[{key!r}] must be a text, as in {DICT_EXAMPLE}")
        given[key] = text.strip() if isinstance(text, str) else ""
    for key, needs in (("url", True), ("user", bool(given["password"])), ("password", bool(given["user"]))):
        if needs and not given[key]:
            raise SettingError(f"{where} has no {key!r}; it must be like {DICT_EXAMPLE}")
    _check(f"{where}['url']", given["url"])
    made = Proxy(where, given["url"], given["user"], given["password"], is_dict=True)
    if made.user and not is_elsewhere(made.url) and _read(f"{where}['url']", made.url)[1]:
        raise SettingError(f"{where}['url'] has a user of its own, beside {where}['user']: leave one")
    return made


def _check(where: str, text: str) -> None:
    if not is_elsewhere(text):
        _read(where, text)
    elif not text.partition(":")[2]:
        read_secret(where, text)  # raises


def _read(where: str, text: str, *, secret: bool = False) -> tuple[ProxyAddress, str, str]:
    """Return the address in a URL, its user and its password. Raises SettingError, without the URL if it is a `secret`."""
    shown = "names what" if secret else f"is {quoted(_without_log_in(text))}, which"
    found = _URL.fullmatch(text)
    if found is None:
        meant = "" if secret or "@" in text else f": write {quoted(f'http://{text}')}"
        raise SettingError(f"{where} {shown} is no URL; it must be like {EXAMPLE}{meant}")
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    if scheme not in SCHEMES:
        meant = did_you_mean(scheme, sorted(SCHEMES), f"it must begin with http://, https:// or socks5://, as in {EXAMPLE}")
        raise SettingError(f"{where} {shown} has the scheme {quoted(scheme)}: {meant}")
    log_in, _, place = authority.rpartition("@")
    user, _, password = log_in.partition(":")
    try:
        url = parse(f"http://{place}/")
    except MalformedUrl:
        url = None
    if url is None or not url.host or "@" in rest:
        raise SettingError(
            f"{where} {shown} has no valid host and port; it must be like {EXAMPLE}, with what a user or password"
            " has of :/@?#% written as %3A and so on"
        )
    if rest not in {"", "/"}:
        raise SettingError(f"{where} {shown} has something after the host; a proxy has only host and port, as in {EXAMPLE}")
    port = url.port if _HAS_PORT.search(place) else SCHEMES[scheme]
    return ProxyAddress(f"{scheme}://{url.host}:{port}", scheme, url.host.strip("[]"), port), unquote(user), unquote(password)


def _without_log_in(text: str) -> str:
    """Return a text with all before its last @ hidden, but for the scheme: what is no URL may hold a password in any place."""
    scheme, slashes, _ = text.partition("://")
    head = f"{scheme}{slashes}" if slashes and "@" not in scheme else ""
    return f"{head}{HIDDEN}{text[text.rindex('@') :]}" if "@" in text else text
