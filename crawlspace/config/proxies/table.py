"""Which proxy a URL goes through: that of its site, that of the collection, that of the environment, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.request import getproxies, proxy_bypass

from crawlspace.config.proxies.choice import Proxy, ProxyAddress, of_environment, read_proxy
from crawlspace.config.proxies.no_proxy import NoProxy, read_no_proxy
from crawlspace.config.sites import SiteTable
from crawlspace.errors import SettingError
from crawlspace.parsing import boolean
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, Url

PROXY = "CRAWLSPACE_PROXY"
NO_PROXY = "CRAWLSPACE_NO_PROXY"
SWITCH = "HTTPPROXY_ENABLED"


class Proxies:
    """Immutable. The environment is read once, but for its `no_proxy`."""

    def __init__(
        self,
        sites: SiteTable,
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
        for proxy in (self._proxy, *(settings.proxy for settings in self._sites.settings)):
            if proxy is not None and not proxy.is_direct:
                yield proxy

    def exceptions(self) -> Iterator[tuple[NoProxy, bool]]:
        """Yield the lists of hosts without a proxy that the settings have, each with whether there is a proxy to be without."""
        if self._no_proxy is not None:
            yield self._no_proxy, self._has_default
        for settings in self._sites.settings:
            if settings.no_proxy is not None:
                chosen = settings.proxy or self._proxy
                yield settings.no_proxy, bool(self._environment) if chosen is None else not chosen.is_direct

    @property
    def sentence(self) -> str:
        """Which sites are requested through a proxy, as in "all sites but x.example.com"; empty if none is."""
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


def read_proxies(settings: Mapping[str, object], sites: SiteTable) -> Proxies:
    """Return the proxies of a collection. Raises SettingError; no secret is read."""
    proxies = Proxies(
        sites,
        proxy=read_proxy(PROXY, settings[PROXY]),
        no_proxy=read_no_proxy(NO_PROXY, settings[NO_PROXY] or None),
        is_on=boolean(SWITCH, settings.get(SWITCH, True)),
        encoding=str(settings.get("HTTPPROXY_AUTH_ENCODING") or "latin-1"),
    )
    for access in sites.accesses:
        login = access.session
        if login is not None and login.kind == "browser" and login.url is not None and proxies.has(login.url):
            raise SettingError(
                f"{access.where} has a log-in in the browser, which goes through no proxy, and its url {quoted(login.url.text)} would:"
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
