"""The settings of single sites: CRAWLSPACE_SITES, looked up by host and port."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from crawlspace.config.limits import read_limits
from crawlspace.config.proxies.choice import Proxy, read_proxy
from crawlspace.config.proxies.no_proxy import NoProxy, read_no_proxy
from crawlspace.config.rendering import NO_RENDERING, RENDER, SiteRendering, read_site_rendering
from crawlspace.config.rendering import SITE_KEYS as RENDERING_KEYS
from crawlspace.config.site_access import SITE_KEYS as ACCESS_KEYS
from crawlspace.config.site_access import SiteAccess, read_site_access
from crawlspace.config.site_tls import KEYS as TLS_KEYS
from crawlspace.config.site_tls import SiteTls, read_site_tls
from crawlspace.config.url_options import BUILT_IN_PATH_PARAMETERS, HASH_ROUTES, read_site_options, read_url_options
from crawlspace.config.url_options import SITE_KEYS as URL_KEYS
from crawlspace.decision import Actions, Render
from crawlspace.errors import RuleFileError, SettingError, did_you_mean
from crawlspace.parsing import duration, integer, optional_boolean, optional_integer, table
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.domain import DomainMatcher, is_address, is_for_addresses
from crawlspace.rules.limits import Limits
from crawlspace.rules.url_options import NO_OPTIONS, Folding, UrlFolding, UrlOptions
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, Url, parse

NAME = "CRAWLSPACE_SITES"
PROXY_KEYS = ("proxy", "no_proxy")
KEYS = (
    *("delay", "concurrency", "max_path_depth", "max_urls_per_host", "follow_query_strings"),
    *(*URL_KEYS, *ACCESS_KEYS, *TLS_KEYS, *PROXY_KEYS, *RENDERING_KEYS),
)


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The delay, concurrency, URL limits, URL options, log-in and rendering of a site."""

    delay_s: float
    concurrency: int
    limits: Limits
    urls: UrlOptions = NO_OPTIONS
    own_delay: bool = False
    """Whether the delay is set for this site, not for the collection."""
    own_concurrency: bool = False
    access: SiteAccess | None = None
    """What requests carry; None: nothing of its own."""
    tls: SiteTls | None = None
    """Certificates of its connections; None: none of its own."""
    rendering: SiteRendering = NO_RENDERING
    proxy: Proxy | None = None
    """None: that of the collection."""
    no_proxy: NoProxy | None = None
    """Hosts of the entry without a proxy; None: those of the collection."""


class SiteTable:
    """Site settings by host pattern: the first match applies, and the collection's settings if none matches."""

    def __init__(self, default: SiteSettings, patterns: Mapping[str, SiteSettings]) -> None:
        """Raises RuleFileError for an invalid host pattern."""
        self.default = default
        self.settings = list(patterns.values())
        self.by_pattern = patterns
        self._have_logins = any(access.logs_in for access in self.accesses)
        self._of_addresses = {
            number
            for number, (pattern, one) in enumerate(patterns.items())
            if one.access is not None and one.access.logs_in and is_for_addresses(pattern)
        }
        """Entries with a log-in that names of anybody match, too: they are for addresses alone."""
        rules = parse_crawl_rules("".join(f"allow domain {pattern}\n" for pattern in patterns), file=NAME)
        self._matcher = DomainMatcher(rules.domain, case_sensitive=False)
        written = repr([(pattern, settings.limits) for pattern, settings in patterns.items()])
        self.content_hash = blake2b(written.encode(), digest_size=16).hexdigest() if patterns else ""

    def of(self, host: str, port: int) -> SiteSettings:
        rule = self._matcher.match(host, port)
        if rule is None or (rule.ref.line - 1 in self._of_addresses and not is_address(host)):
            return self.default
        return self.settings[rule.ref.line - 1]

    @property
    def accesses(self) -> list[SiteAccess]:
        """The log-ins and headers, one for each entry that has any."""
        return [settings.access for settings in self.settings if settings.access is not None]

    @property
    def logins_hash(self) -> str:
        """A hash of what `requires_login` depends on."""
        written = [
            (pattern, access is not None and access.logs_in and (access.carries("http"), access.carries("https")))
            for pattern, settings in self.by_pattern.items()
            for access in [settings.access]
        ]
        return blake2b(repr(written).encode(), digest_size=16).hexdigest()

    def requires_login(self, url: str) -> bool:
        """Return whether a page is fetched with a log-in, or with credentials of another kind."""
        if not self._have_logins:
            return False
        parsed = parse(url)
        access = self.of(parsed.host, parsed.port).access
        return access is not None and access.logs_in and access.carries(parsed.scheme)

    @property
    def renders(self) -> bool:
        """Whether the settings have pages of any site rendered."""
        return any(settings.rendering.mode is not Render.NEVER for settings in (self.default, *self.settings))

    @property
    def rendering_hash(self) -> str:
        """Text that changes whenever the settings may have a page rendered otherwise; empty where none is."""
        by_pattern = [("", self.default.rendering), *((pattern, one.rendering) for pattern, one in self.by_pattern.items())]
        return repr([(pattern, one.mode.value, one.hosts, one.wait_for) for pattern, one in by_pattern]) if self.renders else ""

    @property
    def limits_differ(self) -> bool:
        return any(settings.limits != self.default.limits for settings in self.settings)

    def url_folding(self, renders: Callable[[Url], bool] = lambda _: True) -> UrlFolding:
        """Return what folds URLs; `renders` returns whether a page may be rendered, so that its routes behind # can be followed."""
        by_pattern = [("", self.default.urls), *((pattern, settings.urls) for pattern, settings in self.by_pattern.items())]
        of_paths = [(pattern, options.drop_path_parameters) for pattern, options in by_pattern]
        others = [(pattern, replace(options, drop_path_parameters=(), hash_routes=False)) for pattern, options in by_pattern]
        own_names = [one for one in of_paths if one[1] != BUILT_IN_PATH_PARAMETERS]
        drops_sessions_only = all(options == NO_OPTIONS for _, options in others)
        drops_any = any(names for _, names in of_paths)
        described = not drops_sessions_only or (drops_any and bool(own_names))
        # A store of a version without those names is not to have its pages fetched for them: links that they hide are found in time.
        of_the_rest = repr([(pattern, replace(options, www=Folding.KEEP)) for pattern, options in others])
        return UrlFolding(
            lambda host, port: self.of(host, port).urls,
            of_hosts=repr([(pattern, options.www.value) for pattern, options in by_pattern]) if described else "",
            of_the_rest=f"{of_the_rest}{own_names or ''}" if described else "",
            of_paths=repr(of_paths) if described or drops_any else "",
            of_routes=self._described_routes,
            follows_routes=(lambda page: self._has_routes(page) and renders(page)) if self._described_routes else None,
            drops_sessions_only=drops_sessions_only,
        )

    def routes_without_effect(self, *, rendered_by_rules: bool) -> Iterator[tuple[str, str, str]]:
        """Yield where routes behind # are to be followed, and no page is rendered: the setting, the place in it, and why.

        `rendered_by_rules`: rules.xml has pages rendered.
        """
        if rendered_by_rules:
            return
        having = [settings for settings in (self.default, *self.settings) if settings.urls.hash_routes]
        if self.default.urls.hash_routes and all(settings.rendering.mode is Render.NEVER for settings in having):
            yield HASH_ROUTES, HASH_ROUTES, f"routes are followed on rendered pages only; {RENDER} has pages rendered"
            return
        for pattern, settings in self.by_pattern.items():
            is_own = settings.urls.hash_routes and not self.default.urls.hash_routes
            if is_own and settings.rendering.mode is Render.NEVER:
                why = "routes are followed on rendered pages only; 'render' has those of this site rendered"
                yield NAME, f"{NAME}[{quoted(pattern)}]['hash_routes']", why

    @property
    def _described_routes(self) -> str:
        """Text that changes whenever the settings may have other routes followed; empty where none is."""
        by_pattern = [("", self.default), *self.by_pattern.items()]
        routes = [(pattern, one.urls.hash_routes and one.rendering.mode is not Render.NEVER) for pattern, one in by_pattern]
        return repr(routes) if any(one.urls.hash_routes for _, one in by_pattern) else ""

    def _has_routes(self, page: Url) -> bool:
        return self.of(page.host, page.port).urls.hash_routes


def mode_of(url: Url, actions: Actions | None, sites: SiteTable) -> Render:
    """Return whether a page is rendered, by rules.xml or else by the settings."""
    if actions is not None and actions.render is not None:
        return actions.render
    return sites.of(url.host, url.port).rendering.mode


class SiteLimitTable:
    """The limits of a SiteTable, with the interface that the crawl space needs."""

    def __init__(self, table: SiteTable) -> None:
        self._table = table
        self.content_hash = table.content_hash

    def of(self, host: str, port: int) -> Limits:
        return self._table.of(host, port).limits

    def all(self) -> list[Limits]:
        return [self._table.default.limits, *(settings.limits for settings in self._table.settings)]


def read_sites(
    settings: Mapping[str, object], limits: Limits, urls: UrlOptions = NO_OPTIONS, rendering: SiteRendering = NO_RENDERING
) -> SiteTable:
    """Read CRAWLSPACE_SITES, with the collection's settings, limits, URL options and rendering as defaults. Raises SettingError."""
    delay = duration("DOWNLOAD_DELAY", settings["DOWNLOAD_DELAY"], low=0)
    most = integer("CONCURRENT_REQUESTS_PER_DOMAIN", settings["CONCURRENT_REQUESTS_PER_DOMAIN"], low=1)
    default = SiteSettings(delay, 1 if delay else most, limits, urls, rendering=rendering)
    patterns = table(NAME, settings[NAME], example='{"sales.example.com": {"delay": 2}}')
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern.strip() or len(pattern.split()) > 1:
            raise SettingError(
                f"{NAME} has the key {quoted(pattern)}; it must be a host, as in 'www.example.com' or '*.example.com'"
            )
    by_pattern = {
        str(pattern): _read_site(f"{NAME}[{quoted(pattern)}]", str(pattern), values, default, most)
        for pattern, values in patterns.items()
    }
    try:
        found = SiteTable(default, by_pattern)
    except RuleFileError as error:
        first = error.mistakes[0]
        raise SettingError(f"{NAME}[{quoted(first.text.split(maxsplit=2)[-1])}]: {first.message}") from error
    for site in found.settings:
        _check_browser_login(site, found)
        if site.access is not None:
            _check_login_check(site.access, found)
    return found


def _check_login_check(access: SiteAccess, sites: SiteTable) -> None:
    """Raise SettingError for a page that is to show whether a session is alive, and that gets none."""
    check = None if access.session is None else access.session.check
    if check is None or (sites.of(check.host, check.port).access is access and access.carries(check.scheme)):
        return
    raise SettingError(
        f"{access.where}['login']['check'] is {quoted(check.text)}, which is requested without the session of that entry: name a page of its"
        " hosts, over https unless the entry has allow_plain_http"
    )


def _check_browser_login(site: SiteSettings, sites: SiteTable) -> None:
    """Raise SettingError for a log-in in the browser at a site with certificates of its own, which the browser cannot take."""
    access = site.access
    if access is None or access.session is None or access.session.kind != "browser":
        return
    url = access.session.url
    leads_to = [(host, DEFAULT_PORTS["https"]) for host in access.session.hosts] + ([] if url is None else [(url.host, url.port)])
    for tls in (site.tls, *(sites.of(host, port).tls for host, port in leads_to)):
        if tls is None:
            continue
        key, way = "client_certificate", "use a log-in of another type"
        if tls.ca_file is not None:
            key, way = "ca_file", f"have system and browser trust that authority, or {way}"
        raise SettingError(
            f"{tls.where} has '{key}', which the browser cannot take, and {access.where} logs in to it in the browser: {way}"
        )


def read_url_folding(settings: Mapping[str, object]) -> UrlFolding:
    """Return what the URL options do, as if all pages were rendered, without reading more of a collection. Raises SettingError."""
    return read_sites(settings, read_limits(settings), read_url_options(settings)).url_folding()


def _read_site(where: str, pattern: str, values: object, default: SiteSettings, most: int) -> SiteSettings:
    if not isinstance(values, Mapping):
        raise SettingError(f"{where} is {quoted(values)}; it must be like {{'delay': 2, 'concurrency': 1}}")
    unknown = sorted(str(key) for key in values if key not in KEYS)
    if unknown:
        meant = did_you_mean(unknown[0], KEYS, f"it may hold {', '.join(KEYS)}")
        raise SettingError(f"{where} has an unknown key {quoted(unknown[0])}: {meant}")
    delay = duration(f"{where}['delay']", values.get("delay", default.delay_s), low=0)
    limits = default.limits
    deepest = optional_integer(f"{where}['max_path_depth']", values.get("max_path_depth", limits.max_path_depth), low=0)
    urls = optional_integer(f"{where}['max_urls_per_host']", values.get("max_urls_per_host", limits.max_urls_per_host), low=1)
    access = read_site_access(where, pattern, values)
    together = integer(f"{where}['concurrency']", values.get("concurrency", 1 if delay else most), low=1)
    if access is not None and access.most_at_once is not None:
        if "concurrency" in values and together > access.most_at_once:
            raise SettingError(
                f"{where}['concurrency'] is {together}; a {access.kind} log-in goes with each request, so that at most"
                f" {access.most_at_once} are sent at a time: more wrong ones might lock the account"
            )
        together = min(together, access.most_at_once)
    queries = optional_boolean(f"{where}['follow_query_strings']", values.get("follow_query_strings"))
    return SiteSettings(
        own_delay="delay" in values,
        urls=read_site_options(where, values, default.urls),
        access=access,
        tls=read_site_tls(where, values),
        rendering=read_site_rendering(where, values, default.rendering),
        proxy=read_proxy(f"{where}['proxy']", values.get("proxy")),
        no_proxy=read_no_proxy(f"{where}['no_proxy']", values.get("no_proxy")),
        own_concurrency="concurrency" in values or (access is not None and access.most_at_once is not None),
        delay_s=delay,
        concurrency=together,
        limits=replace(
            limits,
            max_path_depth=deepest,
            max_urls_per_host=urls,
            follow_query_strings=limits.follow_query_strings if queries is None else queries,
        ),
    )
