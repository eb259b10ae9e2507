"""The present configuration of the crawler, and what it means for an address.

The meaning is implemented a second time here, from spec and documentation: it shares no code with the crawler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.histories.web import FILE, HTML, PLAIN, Page, Web, host_of, name_of, path_of

OUTSIDE, ELSEWHERE = 760, 761
HOUR, DAY = 3600, 86_400
LONGEST_CYCLE = 10 * HOUR
PASSWORD = "HISTORY_PASSWORD"


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of crawl.rules or global.rules; `kind` is "domain" or "prefix"."""

    allow: bool
    kind: str
    target: str

    def __str__(self) -> str:
        return f"{'allow' if self.allow else 'forbid'} {self.kind} {self.target}"

    def applies(self, url: str) -> bool:
        """Whether a rule speaks of an address."""
        if self.kind == "prefix":
            return re.match(_starred(self.target), url) is not None
        host, _, port = host_of(url).partition(":")
        pattern, _, only = self.target.partition(":")
        return re.fullmatch(_starred(pattern), host) is not None and only in (
            "",
            port or ("443" if url.startswith("https:") else "80"),
        )


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration; a change makes another one."""

    rules: tuple[Rule, ...] = ()
    global_rules: tuple[Rule, ...] | None = None
    follow_queries: bool = True
    odd_extension: bool = True
    """Whether .odd is crawled."""
    max_path_depth: int | None = None
    max_depth: int = 0
    max_length: int = 2083
    max_repeats: int = 3
    offsite: bool = True
    entire_site: bool = False
    sites: Mapping[str, int] = field(default_factory=dict)
    """The deepest paths of some hosts."""
    site_slash: Mapping[str, str] = field(default_factory=dict)
    """What `slash` is for some hosts."""
    site_www: Mapping[str, str] = field(default_factory=dict)
    """What `www` is for some hosts."""
    plain: bool = True
    """Whether plain text is taken."""
    robots_obey: bool = True
    meta_robots: bool = True
    checksum_title: bool = True
    cut_off: int = 0
    near: int = 0
    """The distance of near duplicates; 0: there are none."""
    soft_errors: bool = False
    field: str = ""
    """The value that rules.xml adds to the pages below /p/, which their links inherit."""
    delay: float = 0.0
    retry_times: int = 1
    max_redirects: int = 10
    max_temporary_errors: int = 2
    host_fetches: int = 20
    refresh_min: int = HOUR
    refresh_max: int = 8 * HOUR
    robots_ttl: int = 24 * HOUR
    max_deletions: int = 100
    max_deletions_percent: int = 10
    cycle_minutes: int = 0
    cycle_mode: str = "append"
    smart: bool = True
    """Whether pages are due by their age; without it there is a schedule."""
    schedule: str = ""
    """When everything is fetched again; without effect where there are cycles. Always within an hour."""
    continuous: bool = False
    orphans_after: int | None = None
    """Runs after which orphans are deleted; None: never."""
    sort_query: bool = False
    dropped: tuple[str, ...] = ()
    """Parameters that are no part of an address; `*` at the end of one stands for any characters."""
    slash: str = "keep"
    """Whether the slash at the end of a path is kept, removed, or added where the path doesn't end with a file."""
    www: str = "keep"
    """Whether `www.` at the beginning of a host is kept or removed."""
    cookies: bool = False
    """Whether cookies are kept and sent."""
    logins: tuple[str, ...] = ()
    """Hosts with a log-in."""

    @property
    def followed(self) -> tuple[str, bool]:
        """Return the schedule in effect, and whether pages are due by age."""
        return "" if self.cycle_minutes else self.schedule, self.smart or bool(self.cycle_minutes)

    @property
    def longest_wait(self) -> int:
        """Return the seconds after which everything known is due again, robots.txt too."""
        return max(self.refresh_max, self.robots_ttl, LONGEST_CYCLE) + 60

    @property
    def folds(self) -> bool:
        """Whether any addresses are folded."""
        slashes = {self.slash, self.www, *self.site_slash.values(), *self.site_www.values()}
        return self.sort_query or bool(self.dropped) or slashes != {"keep"}

    def folded(self, url: str) -> str:
        """Return the address that one is folded into."""
        if not self.folds:
            return url
        address, _, query = self._folded_host(url).partition("?")
        slash = self._slash_of(address)
        if slash == "remove" and path_of(address) != "/":
            address = address.rstrip("/")
        if slash == "add" and not address.endswith("/") and not _is_file(address):
            address += "/"
        parts = [part for part in query.split("&") if part and not self._drops(part.partition("=")[0])]
        if self.sort_query:
            parts.sort(key=lambda part: part.partition("=")[0])
        return f"{address}?{'&'.join(parts)}" if parts else address

    def most_deletions(self, indexed: int) -> int:
        """Return the deletion limit of a run."""
        return max(self.max_deletions, indexed * self.max_deletions_percent // 100)

    def verdict(self, url: str, *, web: Web, depth: int | None) -> int | None:
        """Return why an address is outside the crawl space: 760, or 761 where the global space has it; None inside."""
        domain = _first(self.rules, "domain", url)
        prefix = _first(self.rules, "prefix", url)
        otherwise_out = (prefix is not None and not prefix.allow) or self._beyond_limits(url) or self._too_far(depth)
        starts = web.start_urls()
        is_of_start = host_of(url).partition(":")[0] in {host_of(start).partition(":")[0] for start in starts}
        is_offsite = (not self.offsite and not is_of_start) or (
            self.entire_site and not any(self._below(url).startswith(_folder(self._below(start))) for start in starts)
        )
        is_forbidden = domain is not None and not domain.allow
        if not (is_forbidden or is_offsite or otherwise_out):
            return None
        # That a host is offsite is because no domain rule allows it by name.
        is_named = domain is not None and domain.allow and bool(domain.target.strip("*"))
        otherwise_out = otherwise_out or (is_offsite and (is_named or is_of_start))
        shared = _first(self.global_rules or (), "domain", url)
        return ELSEWHERE if shared is not None and shared.allow and not otherwise_out else OUTSIDE

    def bars(self, url: str, web: Web) -> bool:
        """Whether robots.txt keeps the crawler out."""
        return self.robots_obey and any(path_of(url).startswith(barred) for barred in web.site_of(url).barred)

    def takes(self, page: Page) -> bool:
        """Whether a document's type is taken."""
        return page.type in (HTML, FILE) or (page.type == PLAIN and self.plain)

    def is_soft_error(self, page: Page) -> bool:
        return self.soft_errors and page.title.startswith("Sorry")

    def content_key(self, title: str, text: str) -> tuple[str, ...]:
        """Return the key by which documents are equal."""
        compared = text[: self.cut_off] if self.cut_off else text
        return (title, compared) if self.checksum_title else (compared,)

    def key_of(self, page: Page) -> tuple[str, ...]:
        """Return the key of a page; files that cannot be read are equal if their bytes are."""
        return ("locked", page.locked) if page.locked else self.key_at(page.url, page.title, page.text)

    def key_at(self, url: str, title: str, text: str) -> tuple[str, ...]:
        """Return the key of a document at an address: one behind a log-in is no duplicate of a public one (docs/sinks.md)."""
        return (*self.content_key(title, text), "behind a log-in" if host_of(url) in self.logins else "")

    def field_of(self, url: str) -> str:
        """Return the verdict of the rules on an address itself."""
        return self.field if path_of(url).startswith("/p/") else ""

    def settings(self) -> dict[str, object]:
        """Return the settings that differ from the crawler's defaults."""
        return {
            "ROBOTSTXT_OBEY": self.robots_obey,
            "CRAWLSPACE_SITEMAP_GUESS": False,
            "DOWNLOAD_DELAY": self.delay,
            "RETRY_TIMES": self.retry_times,
            "REDIRECT_MAX_TIMES": self.max_redirects,
            "DEPTH_LIMIT": self.max_depth,
            "URLLENGTH_LIMIT": self.max_length,
            "CRAWLSPACE_RETRY_WAIT": 2,
            "CRAWLSPACE_FOLLOW_QUERY_STRINGS": self.follow_queries,
            "CRAWLSPACE_EXCLUDE_EXTENSIONS": "none" if self.odd_extension else "odd",
            "CRAWLSPACE_MAX_PATH_DEPTH": self.max_path_depth,
            "CRAWLSPACE_MAX_REPEATED_SEGMENTS": self.max_repeats,
            "CRAWLSPACE_FOLLOW_OFFSITE_LINKS": self.offsite,
            "CRAWLSPACE_INDEX_ENTIRE_SITE": self.entire_site,
            "CRAWLSPACE_SITES": self._site_settings(),
            "CRAWLSPACE_MIME_TYPES": [HTML, FILE, PLAIN] if self.plain else [HTML, FILE],
            "CRAWLSPACE_META_ROBOTS": self.meta_robots,
            "CRAWLSPACE_CHECKSUM_TITLE": self.checksum_title,
            "CRAWLSPACE_CHECKSUM_CUT_OFF": self.cut_off,
            "CRAWLSPACE_NEAR_DUPLICATES": self.near,
            "CRAWLSPACE_SOFT_ERRORS": [("*", "Sorry*", "*", 404)] if self.soft_errors else [],
            "CRAWLSPACE_MAX_TEMPORARY_ERRORS": self.max_temporary_errors,
            "CRAWLSPACE_HOST_FETCHES": self.host_fetches,
            "CRAWLSPACE_REFRESH_MIN": self.refresh_min,
            "CRAWLSPACE_REFRESH_MAX": self.refresh_max,
            "CRAWLSPACE_ROBOTS_TTL": self.robots_ttl,
            "CRAWLSPACE_MAX_DELETIONS": self.max_deletions,
            "CRAWLSPACE_MAX_DELETIONS_PERCENT": self.max_deletions_percent,
            "CRAWLSPACE_REFRESH_CYCLE": self.cycle_minutes,
            "CRAWLSPACE_REFRESH_MODE": self.cycle_mode,
            "CRAWLSPACE_SMART_REFRESH": self.smart,
            "CRAWLSPACE_REFRESH_SCHEDULE": self.followed[0],
            "CRAWLSPACE_CONTINUOUS": self.continuous,
            "COOKIES_ENABLED": self.cookies,
            "CRAWLSPACE_URL_SORT_QUERY": self.sort_query,
            "CRAWLSPACE_URL_DROP_PARAMETERS": list(self.dropped),
            "CRAWLSPACE_URL_TRAILING_SLASH": self.slash,
            "CRAWLSPACE_URL_FOLD_WWW": self.www,
            "CRAWLSPACE_ORPHANS": f"delete:{self.orphans_after}" if self.orphans_after else "keep",
        }

    def _site_settings(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {host: {"max_path_depth": depth} for host, depth in self.sites.items()}
        for host in self.logins:
            found.setdefault(host, {}).update(settings_of(host))
        for name, values in (("url_trailing_slash", self.site_slash), ("url_fold_www", self.site_www)):
            for host, value in values.items():
                found.setdefault(host, {})[name] = value
        return found

    def _folded_host(self, url: str) -> str:
        host = name_of(url)
        if host.startswith("www.") and self.site_www.get(host, self.www) == "remove":
            return url.replace("www.", "", 1)
        return url

    def _slash_of(self, url: str) -> str:
        return self.site_slash.get(name_of(url), self.slash)

    def _beyond_limits(self, url: str) -> bool:
        path, _, query = path_of(url).partition("?")
        host = host_of(url)
        deepest = self.sites.get(host.partition(":")[0], self.max_path_depth)
        segments = path.strip("/").split("/")
        return (
            (bool(query) and not self.follow_queries)
            or (path.endswith(".odd") and not self.odd_extension)
            or (deepest is not None and path.count("/") - 1 > deepest)
            or len(url) > self.max_length
            or max(segments.count(segment) for segment in segments) > self.max_repeats
        )

    def _below(self, url: str) -> str:
        """Return the address that determines the folder: of a page without a slash it may have been removed."""
        address = url.partition("?")[0]
        return f"{address.rstrip('/')}/" if self._slash_of(url) == "remove" and not _is_file(address) else url

    def _drops(self, name: str) -> bool:
        return any(re.fullmatch(_starred(pattern), name) for pattern in self.dropped)

    def _too_far(self, depth: int | None) -> bool:
        return bool(self.max_depth) and depth is not None and depth > self.max_depth


def _first(rules: tuple[Rule, ...], kind: str, url: str) -> Rule | None:
    return next((rule for rule in rules if rule.kind == kind and rule.applies(url)), None)


def rules_xml(field: str) -> str:
    """Return a rules.xml that adds a field to the pages below /p/."""
    return f'<Rules><Rule><Path val="/p/"/><AddMeta name="kind" value="{field}"/></Rule></Rules>\n'


def settings_of(host: str) -> dict[str, object]:
    """Return the entry of CRAWLSPACE_SITES for a host with a log-in."""
    os.environ.setdefault(PASSWORD, "a password that nobody has")
    fields = {"user": "crawler", "password": f"env:{PASSWORD}"}
    return {"login": {"type": "form", "url": f"http://{host}/login", "fields": fields}, "allow_plain_http": True}


def _is_file(address: str) -> bool:
    return "." in address.rpartition("/")[2]


def _folder(url: str) -> str:
    address, _, _ = url.partition("?")
    return address[: address.rindex("/") + 1]


def _starred(pattern: str) -> str:
    return ".*".join(re.escape(part) for part in pattern.split("*"))
