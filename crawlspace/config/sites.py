"""The settings of sites: those of the collection, and CRAWLSPACE_SITES for single ones, looked up by host and port."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from hashlib import blake2b

from cssselect import HTMLTranslator, SelectorError

from crawlspace.config.access import SITE_KEYS as ACCESS_KEYS
from crawlspace.config.access import BrowserLogin, SiteAccess, read_site_access
from crawlspace.config.content import CONVERTERS, read_converters
from crawlspace.config.limits import EXTENSIONS, ExtensionChoice, read_extensions, read_limits, with_converted
from crawlspace.config.proxies import NoProxy, Proxy, read_no_proxy, read_proxy
from crawlspace.config.sentences import read
from crawlspace.config.site_tls import KEYS as TLS_KEYS
from crawlspace.config.site_tls import SiteTls, read_site_tls
from crawlspace.content_settings import FileSettings, SitemapSection
from crawlspace.decision import Actions, Render
from crawlspace.errors import RuleFileError, SettingError, did_you_mean
from crawlspace.frontier.delay_schedule import Timetable, read_timetable, read_zone
from crawlspace.parsing import table
from crawlspace.rules.crawl_rules import DomainRule, parse_crawl_rules
from crawlspace.rules.domain import DomainMatcher, is_address, is_for_addresses
from crawlspace.rules.limits import Limits
from crawlspace.rules.url_options import NO_OPTIONS, SESSION_SEGMENT, Folding, UrlFolding, UrlOptions
from crawlspace.settings import (
    DelaysSection,
    LifecycleSection,
    RenderingSection,
    RequestsSection,
    SitesSection,
    SpaceLimitsSection,
    SpellingsSection,
)
from crawlspace.state.recrawl import RefreshBounds
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, Url, parse

NAME = "CRAWLSPACE_SITES"
RENDER = "CRAWLSPACE_RENDER"
RENDER_HOSTS = "CRAWLSPACE_RENDER_HOSTS"
WAIT_FOR = "CRAWLSPACE_RENDER_WAIT_FOR"
HASH_ROUTES = "CRAWLSPACE_HASH_ROUTES"
FOLLOW = "CRAWLSPACE_FOLLOW"
CONDITIONAL = "CRAWLSPACE_CONDITIONAL_GET"
MIME_TYPES = "CRAWLSPACE_MIME_TYPES"
VARIABLE_DELAY = "CRAWLSPACE_VARIABLE_DELAY"
REFRESH_MIN, REFRESH_MAX = "CRAWLSPACE_REFRESH_MIN", "CRAWLSPACE_REFRESH_MAX"
USER_AGENT, MAX_BYTES, FILE_MAX_BYTES = "USER_AGENT", "DOWNLOAD_MAXSIZE", "CRAWLSPACE_FILE_MAXSIZE"
DROP_PARAMETERS = "CRAWLSPACE_URL_DROP_PARAMETERS"
DROP_PATH_PARAMETERS = "CRAWLSPACE_URL_DROP_PATH_PARAMETERS"
SETTINGS = {
    "delay": "DOWNLOAD_DELAY",
    "concurrency": "CONCURRENT_REQUESTS_PER_DOMAIN",
    "user_agent": USER_AGENT,
    "download_maxsize": MAX_BYTES,
    **{
        name.removeprefix("CRAWLSPACE_").lower(): name
        for name in (
            VARIABLE_DELAY,
            *("CRAWLSPACE_MAX_PATH_DEPTH", "CRAWLSPACE_MAX_URLS_PER_HOST", "CRAWLSPACE_FOLLOW_QUERY_STRINGS"),
            *(EXTENSIONS, MIME_TYPES, FILE_MAX_BYTES, REFRESH_MIN, REFRESH_MAX),
            *SpellingsSection.__struct_fields__,
            *(HASH_ROUTES, RENDER, RENDER_HOSTS, WAIT_FOR, FOLLOW, CONDITIONAL),
        )
    },
}
"""The settings that an entry of CRAWLSPACE_SITES may have for its sites, by key."""
KEYS = (*SETTINGS, *ACCESS_KEYS, *TLS_KEYS, "proxy", "no_proxy")
_NOT_IN_NAMES = frozenset("=&?# ")
_NOT_IN_PATH_NAMES = frozenset("=;/?#() ")


@dataclass(frozen=True, slots=True)
class SiteRendering:
    """Rendering settings of a site, else those of the collection."""

    mode: Render = Render.NEVER
    hosts: tuple[str, ...] = ()
    """Patterns of hosts, as in domain rules, that pages may load scripts and data from, besides what the domain rules admit."""
    wait_for: str = ""
    """CSS selector that is waited for instead of an idle network."""
    where: str = RENDER
    """The setting that `mode` is from, for messages."""
    sets_mode: bool = False
    """Whether the site's own entry sets `mode`."""
    sets_hosts: bool = False
    """Whether the site's own entry sets `hosts`."""

    def load_matcher(self) -> DomainMatcher:
        """Return what matches the hosts that pages may load from."""
        return DomainMatcher(_rules(self.hosts), case_sensitive=False)


NO_RENDERING = SiteRendering()


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
    timetable: Timetable | None = None
    """Delays by time of the week."""
    own_timetable: bool = False
    """Whether they are set for this site, so that they take the place of its own delay, too."""
    refresh: RefreshBounds | None = None
    """The bounds of the intervals of its pages; None: those of the collection."""
    user_agent: str = ""
    """Empty: that of the collection."""
    max_bytes: int | None = None
    """Bytes of a body, 0: any number; None: as DOWNLOAD_MAXSIZE."""
    max_file_bytes: int | None = None
    """Bytes of a file; None: as CRAWLSPACE_FILE_MAXSIZE."""
    own_extensions: ExtensionChoice | None = None
    """What an entry has in place of CRAWLSPACE_EXCLUDE_EXTENSIONS; None: nothing."""
    access: SiteAccess | None = None
    """What requests carry; None: nothing of its own."""
    tls: SiteTls | None = None
    """Certificates of its connections; None: none of its own."""
    rendering: SiteRendering = NO_RENDERING
    follows_links: bool = True
    """Whether links of pages are followed."""
    reads_sitemaps: bool = True
    """Whether sitemaps and feeds are read."""
    conditional: bool = True
    """Whether known pages are requested with their validators."""
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
        written = repr([(pattern, settings.limits.as_json()) for pattern, settings in patterns.items()])
        self.content_hash = blake2b(written.encode(), digest_size=16).hexdigest() if patterns else ""

    def of(self, host: str, port: int) -> SiteSettings:
        rule = self._matcher.match(host, port)
        if rule is None or (rule.ref.line - 1 in self._of_addresses and not is_address(host)):
            return self.default
        return self.settings[rule.ref.line - 1]

    def at(self, site: str) -> SiteSettings:
        """Return the settings of a site, `host:port`."""
        host, _, port = site.rpartition(":")
        return self.of(host, int(port))

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
    def always_conditional(self) -> bool:
        """Whether known pages of all sites are requested with their validators."""
        return all(settings.conditional for settings in (self.default, *self.settings))

    @property
    def rendering_hash(self) -> str:
        """Text that changes whenever the settings may have a page rendered otherwise; empty where none is."""
        by_pattern = [("", self.default.rendering), *((pattern, one.rendering) for pattern, one in self.by_pattern.items())]
        return repr([(pattern, one.mode.value, one.hosts, one.wait_for) for pattern, one in by_pattern]) if self.renders else ""

    @property
    def follow_hash(self) -> str:
        """Text that changes whenever URLs may be found elsewhere; empty where links and sitemaps are followed everywhere."""
        by_pattern = [("", self.default), *self.by_pattern.items()]
        found = [(pattern, one.follows_links, one.reads_sitemaps) for pattern, one in by_pattern]
        return repr(found) if not all(links and sitemaps for _, links, sitemaps in found) else ""

    @property
    def user_agents(self) -> frozenset[str]:
        """The user agents of single sites."""
        return frozenset(settings.user_agent for settings in self.settings if settings.user_agent)

    @property
    def longest_refresh_s(self) -> int:
        """The longest interval of single sites that have bounds of their own; 0 if none has."""
        return max((settings.refresh.max_s for settings in self.settings if settings.refresh is not None), default=0)

    @property
    def pages_hash(self) -> str:
        """Text that changes whenever settings of single sites may make another document of an unchanged page; empty without such ones."""
        own = [(pattern, one.user_agent.partition("/")[0], one.max_file_bytes) for pattern, one in self.by_pattern.items()]
        return repr(own) if any(agent or most is not None for _, agent, most in own) else ""

    @property
    def timetables(self) -> Sequence[Timetable]:
        """All delays by time of the week, each once."""
        tables = [settings.timetable for settings in (self.default, *self.settings)]
        return list(dict.fromkeys(table for table in tables if table is not None))

    @property
    def limits_differ(self) -> bool:
        return any(settings.limits != self.default.limits for settings in self.settings)

    def limits_hash(self, *names: str) -> str:
        """Return a hash of these limits by site; empty where they are those of the collection everywhere."""
        usual = self.default.limits.as_json()
        given = [(pattern, one.limits.as_json()) for pattern, one in self.by_pattern.items()]
        own = [(pattern, {name: limits[name] for name in names if limits[name] != usual[name]}) for pattern, limits in given]
        return blake2b(repr(own).encode(), digest_size=16).hexdigest() if any(limits for _, limits in own) else ""

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


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The settings of the collection that single sites may have their own of."""

    delays: DelaysSection
    limits: Limits
    space: SpaceLimitsSection
    spellings: SpellingsSection
    rendering: RenderingSection
    sitemaps: SitemapSection
    of_sites: SitesSection
    zone: tzinfo | None
    timetable: Timetable | None
    refresh: LifecycleSection
    converters: Mapping[str, str]


def read_sites(settings: Mapping[str, object]) -> SiteTable:
    """Return the settings of the collection and of CRAWLSPACE_SITES. Raises SettingError."""
    of_sites = read(SitesSection, settings)
    zone = read_zone("CRAWLSPACE_TIMEZONE", of_sites.CRAWLSPACE_TIMEZONE)
    defaults = _Defaults(
        read(DelaysSection, settings),
        read_limits(settings),
        read(SpaceLimitsSection, settings),
        read(SpellingsSection, settings),
        read(RenderingSection, settings),
        read(SitemapSection, settings),
        of_sites,
        zone,
        read_timetable(VARIABLE_DELAY, of_sites.CRAWLSPACE_VARIABLE_DELAY, zone=zone),
        read(LifecycleSection, settings),
        read_converters(settings.get(CONVERTERS)),
    )
    default = _read_site(defaults, {}, {})
    patterns = table(NAME, settings.get(NAME), example='{"sales.example.com": {"delay": 2}}')
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern.strip() or len(pattern.split()) > 1:
            raise SettingError(
                f"{NAME} has the key {quoted(pattern)}; it must be a host, as in 'www.example.com' or '*.example.com'"
            )
    by_pattern = {
        str(pattern): _read_entry(f"{NAME}[{quoted(pattern)}]", str(pattern), values, defaults)
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


def _read_entry(where: str, pattern: str, values: object, defaults: _Defaults) -> SiteSettings:
    if not isinstance(values, Mapping):
        raise SettingError(f"{where} is {quoted(values)}; it must be like {{'delay': 2, 'concurrency': 1}}")
    unknown = sorted(str(key) for key in values if key not in KEYS)
    if unknown:
        meant = did_you_mean(unknown[0], KEYS, f"it may hold {', '.join(KEYS)}")
        raise SettingError(f"{where} has an unknown key {quoted(unknown[0])}: {meant}")
    own = {name: values[key] for key, name in SETTINGS.items() if key in values}
    if own.get("CRAWLSPACE_FOLLOW_QUERY_STRINGS", "") is None:
        del own["CRAWLSPACE_FOLLOW_QUERY_STRINGS"]
    site = _read_site(defaults, own, {name: f"{where}['{key}']" for key, name in SETTINGS.items()})
    access = read_site_access(where, pattern, values)
    most = None if access is None else access.most_at_once
    if access is not None and most is not None and site.own_concurrency and site.concurrency > most:
        raise SettingError(
            f"{where}['concurrency'] is {site.concurrency}; a {access.kind} log-in goes with each request, so that at most"
            f" {most} are sent at a time: more wrong ones might lock the account"
        )
    return replace(
        site,
        access=access,
        tls=read_site_tls(where, values),
        proxy=read_proxy(f"{where}['proxy']", values.get("proxy")),
        no_proxy=read_no_proxy(f"{where}['no_proxy']", values.get("no_proxy")),
        concurrency=site.concurrency if most is None else min(site.concurrency, most),
        own_concurrency=site.own_concurrency or most is not None,
    )


def _read_site(defaults: _Defaults, own: Mapping[str, object], places: Mapping[str, str]) -> SiteSettings:
    """Return the settings of sites: `own` of them over those of the collection. Raises SettingError."""
    delays = read(DelaysSection, own, places=places, default=defaults.delays)
    space = read(SpaceLimitsSection, own, places=places, default=defaults.space)
    rendering = read(RenderingSection, own, places=places, default=defaults.rendering)
    of_sites = read(SitesSection, own, places=places, default=defaults.of_sites)
    requests = read(RequestsSection, own, places=places)
    timetable, extensions = defaults.timetable, None
    if VARIABLE_DELAY in own:
        timetable = read_timetable(places[VARIABLE_DELAY], of_sites.CRAWLSPACE_VARIABLE_DELAY, zone=defaults.zone)
    if EXTENSIONS in own:
        extensions = read_extensions(own, where=places[EXTENSIONS])
    follow = read(SitemapSection, own, places=places, default=defaults.sitemaps).CRAWLSPACE_FOLLOW
    sets_concurrency = "CONCURRENT_REQUESTS_PER_DOMAIN" in own
    return SiteSettings(
        own_delay="DOWNLOAD_DELAY" in own,
        own_concurrency=sets_concurrency,
        delay_s=delays.DOWNLOAD_DELAY,
        timetable=timetable,
        own_timetable=VARIABLE_DELAY in own,
        own_extensions=extensions,
        refresh=_refresh_bounds(own, places, defaults.refresh),
        user_agent=requests.USER_AGENT if USER_AGENT in own else "",
        max_bytes=requests.DOWNLOAD_MAXSIZE if MAX_BYTES in own else None,
        max_file_bytes=read(FileSettings, own, places=places).max_bytes if FILE_MAX_BYTES in own else None,
        concurrency=1 if delays.DOWNLOAD_DELAY and not sets_concurrency else delays.CONCURRENT_REQUESTS_PER_DOMAIN,
        limits=replace(
            defaults.limits,
            max_path_depth=space.CRAWLSPACE_MAX_PATH_DEPTH,
            max_urls_per_host=space.CRAWLSPACE_MAX_URLS_PER_HOST,
            follow_query_strings=space.CRAWLSPACE_FOLLOW_QUERY_STRINGS,
            exclude_extensions=defaults.limits.exclude_extensions if extensions is None else extensions.excluded,
            mime_types=with_converted(space.CRAWLSPACE_MIME_TYPES, defaults.converters),
        ),
        urls=_url_options(
            read(SpellingsSection, own, places=places, default=defaults.spellings),
            places,
            hash_routes=rendering.CRAWLSPACE_HASH_ROUTES,
        ),
        rendering=SiteRendering(
            mode=Render(rendering.CRAWLSPACE_RENDER),
            hosts=_hosts(places.get(RENDER_HOSTS, RENDER_HOSTS), rendering.CRAWLSPACE_RENDER_HOSTS),
            wait_for=_selector(places.get(WAIT_FOR, WAIT_FOR), rendering.CRAWLSPACE_RENDER_WAIT_FOR),
            where=places[RENDER] if RENDER in own else RENDER,
            sets_mode=RENDER in own,
            sets_hosts=RENDER_HOSTS in own,
        ),
        follows_links=follow != "sitemaps",
        reads_sitemaps=follow != "links",
        conditional=of_sites.CRAWLSPACE_CONDITIONAL_GET,
    )


def _refresh_bounds(own: Mapping[str, object], places: Mapping[str, str], usual: LifecycleSection) -> RefreshBounds | None:
    """Return the bounds of the intervals of a site's pages; None if it has none of its own. Raises SettingError."""
    if own.keys().isdisjoint((REFRESH_MIN, REFRESH_MAX)):
        return None
    given = read(LifecycleSection, own, places=places, default=usual)
    low, high = round(given.CRAWLSPACE_REFRESH_MIN), round(given.CRAWLSPACE_REFRESH_MAX)
    if low > high:
        shorter, longer = (places[name] if name in own else name for name in (REFRESH_MIN, REFRESH_MAX))
        raise SettingError(f"{shorter} ({low} s) is above {longer} ({high} s); make it smaller, or the other one larger")
    return RefreshBounds(low, high)


def _url_options(given: SpellingsSection, places: Mapping[str, str], *, hash_routes: bool) -> UrlOptions:
    """Return how spellings of one page are folded. Raises SettingError."""
    for name, found, wrong, example in (
        (DROP_PARAMETERS, given.CRAWLSPACE_URL_DROP_PARAMETERS, _NOT_IN_NAMES, '["sessionid", "utm_*"]'),
        (
            DROP_PATH_PARAMETERS,
            [word.replace(SESSION_SEGMENT, "") for word in given.CRAWLSPACE_URL_DROP_PATH_PARAMETERS],
            _NOT_IN_PATH_NAMES,
            f'["jsessionid", "sid"], or "{SESSION_SEGMENT}"',
        ),
    ):
        for word in found:
            if not wrong.isdisjoint(word):
                kind = "parameters in a path" if name == DROP_PATH_PARAMETERS else "parameters"
                raise SettingError(f"{places.get(name, name)} has {quoted(word)}; it must hold names of {kind}, as in {example}")
    return UrlOptions(
        sort_query=given.CRAWLSPACE_URL_SORT_QUERY,
        drop_parameters=tuple(sorted(set(given.CRAWLSPACE_URL_DROP_PARAMETERS))),
        drop_path_parameters=_path_parameters(given),
        trailing_slash=Folding(given.CRAWLSPACE_URL_TRAILING_SLASH),
        www=Folding(given.CRAWLSPACE_URL_FOLD_WWW),
        hash_routes=hash_routes,
    )


def _path_parameters(given: SpellingsSection) -> tuple[str, ...]:
    """Return the names of parameters in a path, sorted and in lower case, and SESSION_SEGMENT as it is."""
    names = given.CRAWLSPACE_URL_DROP_PATH_PARAMETERS
    return tuple(sorted({word if word == SESSION_SEGMENT else word.lower() for word in names}))


BUILT_IN_PATH_PARAMETERS = _path_parameters(SpellingsSection())


def _hosts(name: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return patterns of hosts. Raises SettingError."""
    found = tuple(dict.fromkeys(words))
    wrong = next((word for word in found if len(word.split()) > 1), None)
    if wrong is not None:
        raise SettingError(f'{name} has {quoted(wrong)}; it must hold hosts, as in ["cdn.example.net", "*.example.net"]')
    try:
        _rules(found)
    except RuleFileError as error:
        first = error.mistakes[0]
        raise SettingError(f"{name} has {quoted(first.text.split(maxsplit=2)[-1])}: {first.message}") from error
    return found


def _selector(name: str, selector: str) -> str:
    """Return a CSS selector, or "". Raises SettingError."""
    try:
        if selector:
            HTMLTranslator().css_to_xpath(selector)
    except SelectorError as error:
        raise SettingError(f"{name} is {quoted(selector)}, which is no CSS selector: {error}") from error
    return selector


def _rules(hosts: tuple[str, ...]) -> Sequence[DomainRule]:
    return parse_crawl_rules("".join(f"allow domain {host}\n" for host in hosts), file=RENDER_HOSTS).domain


def read_url_folding(settings: Mapping[str, object]) -> UrlFolding:
    """Return what the URL options do, as if all pages were rendered, without reading more of a collection. Raises SettingError."""
    return read_sites(settings).url_folding()


def _check_login_check(access: SiteAccess, sites: SiteTable) -> None:
    """Raise SettingError for a page that is to show whether a session is alive, and that gets none."""
    check = None if access.session is None else access.session.check
    if check is None or (sites.of(check.host, check.port).access is access and access.carries(check.scheme)):
        return
    raise SettingError(
        f"{access.where}['login']['check'] is {quoted(check)}, which is requested without the session of that entry: name a page of its"
        " hosts, over https unless the entry has allow_plain_http"
    )


def _check_browser_login(site: SiteSettings, sites: SiteTable) -> None:
    """Raise SettingError for a log-in in the browser at a site with certificates of its own, which the browser cannot take."""
    access = site.access
    if access is None or not isinstance(access.login, BrowserLogin):
        return
    url = access.login.url
    leads_to = [*((host, DEFAULT_PORTS["https"]) for host in access.login.hosts), (url.host, url.port)]
    for tls in (site.tls, *(sites.of(host, port).tls for host, port in leads_to)):
        if tls is None:
            continue
        key, way = "client_certificate", "use a log-in of another type"
        if tls.ca_file is not None:
            key, way = "ca_file", f"have system and browser trust that authority, or {way}"
        raise SettingError(
            f"{tls.where} has '{key}', which the browser cannot take, and {access.where} logs in to it in the browser: {way}"
        )
