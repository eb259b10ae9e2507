"""The proxies of a collection: what a setting names, which hosts need none, and which proxy a URL goes through. Secrets stay references."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import ClassVar, Protocol
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from crawlspace.config.access import BrowserLogin, SiteAccess, Text
from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.config.sentences import converted, read
from crawlspace.decision import RuleRef
from crawlspace.errors import SettingError, did_you_mean
from crawlspace.parsing import words
from crawlspace.rules.address import is_address
from crawlspace.rules.crawl_rules import DomainRule, RuleAction
from crawlspace.rules.domain import DomainMatcher
from crawlspace.rules.targets import BadTarget, domain_target
from crawlspace.settings import OfScrapySection
from crawlspace.text import HIDDEN, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

DIRECT = "direct"
_EXAMPLE = "'http://proxy.example.com:3128'"
_DICT_EXAMPLE = '{"url": "http://proxy.example.com:3128", "user": "crawler", "password": "env:PROXY_PASSWORD"}'
SCHEMES = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080, "socks4": 1080, "socks4a": 1080}
"""Of the URLs of proxies, with their usual ports. Names are looked up by the proxy, also with socks4 and socks5."""
_NO_PROXY_MEANT = frozenset({"none", "no", "off", "false", "null"})
_HAS_PORT = re.compile(r":[0-9]+$")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
PROXY = "CRAWLSPACE_PROXY"
NO_PROXY = "CRAWLSPACE_NO_PROXY"
_ENTRY = "'intranet.example.com', '*.example.org', 'example.net:8080' or '10.0.0.0/8'"


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """The address of a proxy, and the log-in for it."""

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
        """The proxy's description, without secrets, and without reading any."""
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
        return replace(address, authorization=authorization)

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
            raise SettingError(f"{where} is no JSON; it must be like {_DICT_EXAMPLE}") from None
    if isinstance(value, Mapping):
        return _of_dict(where, value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str) or value.strip().lower() in _NO_PROXY_MEANT:
        raise SettingError(f"{where} is {quoted(value)}; it must be the URL of a proxy, as in {_EXAMPLE}, or {DIRECT!r} for none")
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


class _ProxyEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy as a dict."""

    example: ClassVar[str] = _DICT_EXAMPLE
    url: Text
    user: Text = ""
    password: Text = ""

    def __post_init__(self) -> None:
        if bool(self.user) != bool(self.password):
            raise ValueError(f"has no {'password' if self.user else 'user'!r}; it must be like {self.example}")


def _of_dict(where: str, value: Mapping[object, object]) -> Proxy:
    given = converted(where, value, _ProxyEntry)
    made = Proxy(where, given.url.strip(), given.user.strip(), given.password.strip(), is_dict=True)
    _check(f"{where}['url']", made.url)
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
        raise SettingError(f"{where} {shown} is no URL; it must be like {_EXAMPLE}{meant}")
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    if scheme not in SCHEMES:
        meant = did_you_mean(scheme, sorted(SCHEMES), f"it must begin with http://, https:// or socks5://, as in {_EXAMPLE}")
        raise SettingError(f"{where} {shown} has the scheme {quoted(scheme)}: {meant}")
    log_in, _, place = authority.rpartition("@")
    user, _, password = log_in.partition(":")
    try:
        url = parse(f"http://{place}/")
    except MalformedUrl:
        url = None
    if url is None or not url.host or "@" in rest:
        raise SettingError(
            f"{where} {shown} has no valid host and port; it must be like {_EXAMPLE}, with what a user or password"
            " has of :/@?#% written as %3A and so on"
        )
    if rest not in {"", "/"}:
        raise SettingError(f"{where} {shown} has something after the host; a proxy has only host and port, as in {_EXAMPLE}")
    port = url.port if _HAS_PORT.search(place) else SCHEMES[scheme]
    return ProxyAddress(f"{scheme}://{url.host}:{port}", scheme, url.host.strip("[]"), port), unquote(user), unquote(password)


def _without_log_in(text: str) -> str:
    """Return a text with all before its last @ hidden, but for the scheme: what is no URL may hold a password in any place."""
    scheme, slashes, _ = text.partition("://")
    head = f"{scheme}{slashes}" if slashes and "@" not in scheme else ""
    return f"{head}{HIDDEN}{text[text.rindex('@') :]}" if "@" in text else text


class NoProxy:
    """Compiled entries. A name without a star also stands for all hosts below it; a range only for hosts that are addresses themselves."""

    def __init__(self, where: str, entries: Sequence[str]) -> None:
        """Raises SettingError for an entry that is neither a host, a pattern nor a range."""
        self.where = where
        self.entries = tuple(entries)
        self._networks: list[tuple[str, IPv4Network | IPv6Network]] = []
        rules: list[DomainRule] = []
        for entry in entries:
            if ("/" in entry and "://" not in entry) or is_address(entry):
                self._networks.append((entry, _network(where, entry)))
                continue
            try:
                host, port = domain_target(entry.removeprefix("."))
            except BadTarget as error:
                raise SettingError(f"{where} has {quoted(entry)}: {error}; an entry is like {_ENTRY}") from None
            named = [host] if "*" in host or is_address(host) else [host, f"*.{host}"]
            rules += [DomainRule(RuleAction.ALLOW, name, port, RuleRef(where, 0, entry)) for name in named]
        self._matcher = DomainMatcher(rules, case_sensitive=False)

    def matches(self, host: str, port: int) -> bool:
        """Return whether a host, as in URLs in normal form, is requested without a proxy."""
        return self._matcher.match(host, port) is not None or any(self._ranges(host))

    def unused(self, sites: Iterable[tuple[str, int]]) -> list[str]:
        """Return the entries that match none of the sites (host and port)."""
        left = {entry: NoProxy(self.where, [entry]) for entry in self.entries}
        for site in sites:
            left = {entry: alone for entry, alone in left.items() if not alone.matches(*site)}
        return list(left)

    def _ranges(self, host: str) -> Iterable[str]:
        if not self._networks or not is_address(host):
            return ()
        address = ip_address(host.strip("[]"))
        return [entry for entry, network in self._networks if address.version == network.version and address in network]


def read_no_proxy(where: str, value: object) -> NoProxy | None:
    """Return the entries of a setting; None where it is not set. Raises SettingError."""
    if value is None:
        return None
    try:
        entries = words(where, value, separators=", \t\n")
    except SettingError:
        raise SettingError(
            f"{where} is {quoted(value)}; it must be a list, or text with commas, of entries like {_ENTRY}"
        ) from None
    return NoProxy(where, list(dict.fromkeys(entries)))


def _network(where: str, entry: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(entry.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        raise SettingError(f"{where} has {quoted(entry)}, which is no range of addresses; an entry is like {_ENTRY}") from None


class SiteProxy(Protocol):
    """Proxy settings of a site."""

    @property
    def proxy(self) -> Proxy | None: ...
    @property
    def no_proxy(self) -> NoProxy | None: ...


class ProxiedSites(Protocol):
    """The settings of single sites."""

    def of(self, host: str, port: int) -> SiteProxy: ...
    @property
    def by_pattern(self) -> Mapping[str, SiteProxy]: ...
    @property
    def accesses(self) -> Sequence[SiteAccess]: ...


class Proxies:
    """Immutable. The environment is read once, but for its `no_proxy`."""

    def __init__(
        self,
        sites: ProxiedSites,
        *,
        proxy: Proxy | None = None,
        no_proxy: NoProxy | None = None,
        environment: Mapping[str, str] | None = None,
        is_on: bool = True,
        encoding: str = "latin-1",
    ) -> None:
        """`environment`: the proxies of the environment by scheme; those of this process if left out. `is_on`: HTTPPROXY_ENABLED."""
        self.is_on = is_on
        self._sites = sites
        self._proxy = proxy
        self._no_proxy = no_proxy
        self._encoding = encoding
        self._environment = dict(_of_environment(getproxies() if environment is None else environment))
        self._is_idle = not self.sentence
        self._addresses: dict[Proxy, ProxyAddress] = {}

    def of(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for URLs with that scheme, host (as in URLs in normal form) and port; None for a direct connection."""
        if self._is_idle:
            return None
        site = self._sites.of(host, port)
        chosen = site.proxy or self._proxy
        exceptions = site.no_proxy or (self._no_proxy if site.proxy is None else None)
        if exceptions is not None and exceptions.matches(host, port):
            return None
        if chosen is not None:
            return None if chosen.is_direct else chosen
        found = self._environment.get(scheme)
        return None if found is None or proxy_bypass(host.strip("[]")) else found

    def of_site(self, site: str) -> Proxy | None:
        """Return the same for a site (`host:port`), of which the scheme is not known."""
        host, _, port = site.rpartition(":")
        return self.of("https" if int(port) == DEFAULT_PORTS["https"] else "http", host, int(port))

    def has(self, url: Url) -> bool:
        """Return whether a URL goes through a proxy."""
        return self.of(url.scheme, url.host, url.port) is not None

    def address(self, proxy: Proxy) -> ProxyAddress:
        """Return where a proxy is, with the log-in for it. Raises SettingError where a secret cannot be read."""
        found = self._addresses.get(proxy)
        if found is None:
            found = self._addresses[proxy] = proxy.address(encoding=self._encoding)
        return found

    def check(self) -> None:
        """Read the secrets of all proxies. Raises SettingError for one that cannot be read."""
        for proxy in self.configured() if self.is_on else ():
            self.address(proxy)
        if self.is_on and self._takes_environment:
            for proxy in self._environment.values():
                self.address(proxy)

    def configured(self) -> Iterator[Proxy]:
        """Yield the proxies that the settings name."""
        for proxy in (self._proxy, *(own.proxy for own in self._sites.by_pattern.values())):
            if proxy is not None and not proxy.is_direct:
                yield proxy

    def exceptions(self) -> Iterator[tuple[NoProxy, bool]]:
        """Yield the lists of hosts without a proxy that the settings have, each with whether there is a proxy to be without."""
        if self._no_proxy is not None:
            yield self._no_proxy, self._has_default
        for own in self._sites.by_pattern.values():
            if own.no_proxy is not None:
                chosen = own.proxy or self._proxy
                yield own.no_proxy, bool(self._environment) if chosen is None else not chosen.is_direct

    @property
    def sentence(self) -> str:
        """The sites requested through a proxy, as in "all sites but x.example.com"; empty if none is."""
        if not self.is_on:
            return ""
        by_pattern = self._sites.by_pattern
        if not self._has_default:
            return ", ".join(name for name, own in by_pattern.items() if own.proxy is not None and not own.proxy.is_direct)
        others = [name for name, own in by_pattern.items() if own.proxy is not None and own.proxy.is_direct]
        others += self._no_proxy.entries if self._no_proxy is not None else ()
        text = f"all sites but {', '.join(others)}" if others else "all sites"
        return text if self._proxy is not None else f"{text} ({', '.join(one.where for one in self._environment.values())})"

    @property
    def content_hash(self) -> str:
        """A text that changes whenever another URL may go through a proxy; empty if none does. The proxies themselves have no part in it."""
        if self._is_idle:
            return ""
        default = _kind(self._proxy), _entries(self._no_proxy)
        sites = [(name, _kind(own.proxy), _entries(own.no_proxy)) for name, own in self._sites.by_pattern.items()]
        sites = [one for one in sites if one[1:] != ("", None)]
        environment = (sorted(self._environment), getproxies().get("no", "")) if self._takes_environment else ()
        return repr((default, sites, environment))

    @property
    def _takes_environment(self) -> bool:
        return self._proxy is None and bool(self._environment)

    @property
    def _has_default(self) -> bool:
        return bool(self._environment) if self._proxy is None else not self._proxy.is_direct


def read_proxies(settings: Mapping[str, object], sites: ProxiedSites) -> Proxies:
    """Return the proxies of a collection. Raises SettingError; no secret is read."""
    of_scrapy = read(OfScrapySection, settings)
    proxies = Proxies(
        sites,
        proxy=read_proxy(PROXY, settings[PROXY]),
        no_proxy=read_no_proxy(NO_PROXY, settings[NO_PROXY] or None),
        is_on=of_scrapy.HTTPPROXY_ENABLED,
        encoding=of_scrapy.HTTPPROXY_AUTH_ENCODING or "latin-1",
    )
    for access in sites.accesses:
        if isinstance(access.login, BrowserLogin) and proxies.of(
            access.login.url.scheme, access.login.url.host, access.login.url.port
        ):
            raise SettingError(
                f"{access.where} has a log-in in the browser, which goes through no proxy, and its url {quoted(access.login.url)} would:"
                f' except its host ({NO_PROXY}, or "proxy": "direct" of the site), or log in by another type, such as form'
            )
    return proxies


def proxies_of_environment(*, is_on: bool = True) -> str:
    """Return the variables of the environment that name a proxy for pages, as in "http_proxy, https_proxy"; empty if none does."""
    return ", ".join(proxy.where for _, proxy in _of_environment(getproxies())) if is_on else ""


def _of_environment(found: Mapping[str, str]) -> Iterator[tuple[str, Proxy]]:
    for scheme in DEFAULT_PORTS:
        proxy = of_environment(f"{scheme}_proxy", found.get(scheme, ""), scheme) if found.get(scheme) else None
        if proxy is not None:
            yield scheme, proxy


def _kind(proxy: Proxy | None) -> str:
    return "" if proxy is None else "direct" if proxy.is_direct else "proxy"


def _entries(no_proxy: NoProxy | None) -> list[str] | None:
    return None if no_proxy is None else sorted(no_proxy.entries)
