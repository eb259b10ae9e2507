"""The robots.txt of each site (RFC 9309): stored in the store, cached as parsed, and read again after its time to live.

The group that applies is selected here, by product token; Protego interprets its lines. The size of a file is limited first,
because the file of a hostile site could slow down the crawl.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Protocol

from protego import Protego

from crawlspace.cache import Recent
from crawlspace.clock import Clock
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import without_route

logger = logging.getLogger(__name__)

MAX_SIZE = 500 * 1024
"""Maximal bytes read of a robots.txt; RFC 9309 requires at least 500 KiB."""
MAX_WILDCARD_TEXT = 64 * 1024
"""Maximal characters of rules with `*`.

Protego tries such rules one after the other for each URL. 500 KiB of hostile ones take a quarter of a second a URL, 64 KiB some
hundredths. That is enough for about 2,000 rules, far more than sites have.
"""
MAX_REDIRECTS = 5
MOMENT_S = 5.0
NOT_REQUESTED_S = 3600.0
"""Minimal time for which a robots.txt just read is used for its first decision, independent of its time to live."""
ABSURD_S = 366 * 86_400
"""A longer delay between two requests is a mistake, and ignored."""
RULES_MEMORY = 64 * 1024 * 1024
"""Approximate maximal bytes for the parsed rules of all sites: those of 18,000 sites with ten rules each, or of 2,500 with a hundred.

The rules of others are parsed again from the store, in 0.1 ms for ten rules and 0.1 s for a file of MAX_SIZE.
"""
_SITE_BYTES, _RULE_BYTES, _WILDCARD_BYTES = 1_000, 250, 1_500
"""Bytes of a site without rules, and of a parsed rule without and with `*`, besides its text; as measured with Protego 0.7."""
_DELAYS_KEPT = 32_768
"""Each site has two, for http and https."""


class RobotsStore(Protocol):
    def robots(self, site: str, scheme: str) -> RobotsEntry | None: ...
    def save_robots(self, entry: RobotsEntry) -> None: ...


class RobotsVerdict(Enum):
    ALLOWED = auto()
    FORBIDDEN = auto()
    UNKNOWN = auto()
    """robots.txt must be read first."""


@dataclass(frozen=True, slots=True)
class _CachedRobots:
    rules: Protego | None
    """The rules of the group that applies. None: no limits."""
    size: int
    """Approximate bytes."""
    read_at: float
    expires_at: float

    def is_fresh(self, now: float) -> bool:
        """Return whether it is valid at a time. After the clock was set back, its age is unknown."""
        return self.read_at - MOMENT_S <= now < self.expires_at


class Robots:
    """Decides for one user agent, or those of single sites, whether a URL may be fetched, and which delay a site requests."""

    def __init__(
        self,
        store: RobotsStore,
        *,
        clock: Clock,
        user_agent: str,
        ttl_s: float,
        longest_delay_s: float = 60.0,
        memory: int = RULES_MEMORY,
        own_agent: Callable[[str], str] = lambda _: "",
    ) -> None:
        """`own_agent` returns the user agent of a site that has its own, else an empty text.

        `memory`: approximate maximal bytes for the rules of all sites; one site is always kept, whatever its size.
        """
        self._store = store
        self._clock = clock
        self._token = product_token(user_agent)
        self._own_agent = own_agent
        self._ttl_s = ttl_s
        self._longest_delay_s = longest_delay_s
        self._memory = memory
        self._cached: OrderedDict[tuple[str, str], _CachedRobots] = OrderedDict()
        """In the order of last use."""
        self._size = 0
        self._delays: Recent[tuple[str, str], float] = Recent(_DELAYS_KEPT)
        """In seconds; separate, because the delays of many more sites are needed than their rules."""
        self._not_requested: set[tuple[str, str]] = set()
        """Robots read since the last decision. Each is used for one decision, however long the site must wait: otherwise a site
        whose delay exceeds the time to live would get requests for its robots.txt only."""

    def check(self, url: str, *, site: str) -> RobotsVerdict:
        """Return whether a URL of a site may be fetched; UNKNOWN unless its robots.txt is known and fresh."""
        scheme = url.split(":", 1)[0]
        now = self._clock.now()
        known = self._get(site, scheme)
        if known is not None and not known.is_fresh(now):
            known = self._read_elsewhere(site, scheme, now) or known
        not_requested = (site, scheme) in self._not_requested
        self._not_requested.discard((site, scheme))
        if known is None or not (known.is_fresh(now) or (not_requested and -MOMENT_S <= now - known.read_at < NOT_REQUESTED_S)):
            return RobotsVerdict.UNKNOWN
        is_allowed = known.rules is None or known.rules.can_fetch(without_route(url), "*")
        return RobotsVerdict.ALLOWED if is_allowed else RobotsVerdict.FORBIDDEN

    def allows(self, url: str, *, site: str) -> bool:
        """Return whether the robots.txt of a site that was just read allows a URL that may be requested besides those of the frontier."""
        known = self._get(site, url.split(":", 1)[0])
        return known is not None and (known.rules is None or known.rules.can_fetch(url, "*"))

    def delay_of(self, site: str, scheme: str) -> float:
        """Return the seconds between two requests that robots.txt requests, up to the maximum; 0.0 if it requests none.

        This is the larger of Crawl-delay and Request-rate. A Request-rate for some hours of the day is applied all day, which is
        politer. The last file read remains valid for delays after its time to live.
        """
        delay_s = self._delays.get((site, scheme))
        if delay_s is None:
            entry = self._store.robots(site, scheme)
            body = entry.body if entry is not None else ""
            lines = lines_for(self._token_of(site), body) if _may_request_delay(body) else []
            delay_s = self._keep_delay(site, scheme, lines)
        return delay_s

    def save(self, site: str, scheme: str, *, status: int, body: str) -> bool:
        """Store a robots.txt. Returns False if the site must wait: a server error, or no response (status 741).

        4xx means no limits (RFC 9309, 2.3.1.3), except 429, which asks to wait. A 3xx here is a redirect that was not resolved:
        it counts as a server error (2.3.1.4).
        """
        if not (200 <= status < 300 or 400 <= status < 500) or status == HTTPStatus.TOO_MANY_REQUESTS:
            return False
        text = whole_lines(body, MAX_SIZE) if status < 300 else ""
        entry = RobotsEntry(site, scheme, status, text, round(self._clock.now()))
        self._store.save_robots(entry)
        self._keep(entry, warn=True)
        self._not_requested.add((site, scheme))
        return True

    def allow_briefly(self, site: str, scheme: str) -> None:
        """Allow everything for a moment, because the host does not exist. Not stored."""
        now = self._clock.now()
        self._not_requested.add((site, scheme))
        self._put((site, scheme), _CachedRobots(None, _SITE_BYTES, now, now + MOMENT_S))

    def _token_of(self, site: str) -> str:
        own = self._own_agent(site)
        return product_token(own) if own else self._token

    def _get(self, site: str, scheme: str) -> _CachedRobots | None:
        key = (site, scheme)
        known = self._cached.get(key)
        if known is None:
            return self._load(site, scheme)
        self._cached.move_to_end(key)
        return known

    def _load(self, site: str, scheme: str) -> _CachedRobots | None:
        entry = self._store.robots(site, scheme)
        return self._keep(entry) if entry is not None else None

    def _read_elsewhere(self, site: str, scheme: str, now: float) -> _CachedRobots | None:
        """Return what another process has read meanwhile, if it is fresh."""
        entry = self._store.robots(site, scheme)
        if entry is None or not entry.fetched_at - MOMENT_S <= now < entry.fetched_at + self._ttl_s:
            return None
        return self._keep(entry)

    def _keep(self, entry: RobotsEntry, *, warn: bool = False) -> _CachedRobots:
        ours = lines_for(self._token_of(entry.site), entry.body)
        self._keep_delay(entry.site, entry.scheme, ours)
        rules, left_out = bounded([line for line in ours if not _DELAY.match(line)])
        if left_out and warn:
            logger.warning(
                "the robots.txt of %s has more than %d characters of rules with *: %d of them are not obeyed",
                entry.site,
                MAX_WILDCARD_TEXT,
                left_out,
            )
        parsed = Protego.parse("\n".join(["User-agent: *", *rules])) if rules else None
        known = _CachedRobots(parsed, _size_of(rules), entry.fetched_at, entry.fetched_at + self._ttl_s)
        self._put((entry.site, entry.scheme), known)
        return known

    def _put(self, key: tuple[str, str], known: _CachedRobots) -> None:
        before = self._cached.pop(key, None)
        self._size += known.size - (before.size if before is not None else 0)
        self._cached[key] = known
        while self._size > self._memory and len(self._cached) > 1:
            self._size -= self._cached.popitem(last=False)[1].size

    def _keep_delay(self, site: str, scheme: str, lines: Iterable[str]) -> float:
        delay_s = min(_requested_delay(lines), self._longest_delay_s)
        self._delays.put((site, scheme), delay_s)
        return delay_s


# --- selecting the lines that apply -------------------------------------------------------------------------------

_PRODUCT = re.compile(r"[A-Za-z0-9_-]+")
_COMPATIBLE = re.compile(r"Mozilla/\S*\s+\(compatible;\s*([A-Za-z0-9_-]+)", re.IGNORECASE)
_AGENT_LINE = re.compile(r"user(?:-|\s*)agent\s*(?::|\s|$)\s*(.*)", re.IGNORECASE)
_RULE = re.compile(
    r"(?:allow|di[as]\w{3,5}w|crawl(?:-|\s+)delay|request(?:-|\s+)rate|visit(?:-|\s+)time)\s*(?::|\s)", re.IGNORECASE
)
"""All spellings that Protego accepts."""
_DELAY = re.compile(r"crawl|request|visit", re.IGNORECASE)
"""The beginning of rules that don't concern paths."""


def product_token(user_agent: str) -> str:
    """Return the product token of a user agent, in lower case: the name before the version; empty if there is none.

    `crawlspace` for `crawlspace/0.1 (+http://…)`, and for `Mozilla/5.0 (compatible; crawlspace/0.1)`, too. RFC 9309 (2.2.1)
    allows letters, `_` and `-`; digits are included here, so that `bot1` and `bot2` differ.
    """
    text = user_agent.strip()
    found = _COMPATIBLE.match(text)
    token = found[1] if found is not None else _leading_token(text)
    return token.lower()


def whole_lines(body: str, most: int) -> str:
    """Return a body without BOM, cut to whole lines of at most `most` bytes in UTF-8: half a line would be another rule."""
    raw = body.removeprefix("\ufeff").encode("utf-8", "replace")
    if len(raw) > most:
        head = raw[: most + 1]  # one more: the last line may end there
        raw = head[: max(head.rfind(b"\n"), head.rfind(b"\r"), 0)]
    return raw.decode("utf-8")


def lines_for(token: str, body: str) -> list[str]:
    """Return the rules of all groups for a product token; if there is none, of those for `*` (RFC 9309, 2.2.1).

    Lines that are no rules, such as Sitemap, don't end the agent lines of a group (2.2.4). Names are compared as a whole, without
    case and version. Protego doesn't select the group because it stores each rule once for each name of a group: ten thousand
    names before ten thousand rules would fill the memory.
    """
    ours: list[str] = []
    everyones: list[str] = []
    named = False
    for_us = for_everyone = False
    heading = False
    for raw in body.removeprefix("\ufeff").splitlines():
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        agent = _AGENT_LINE.match(line)
        if agent is not None:
            if not heading:
                for_us = for_everyone = False
            heading = True
            for_everyone |= agent[1].split(maxsplit=1)[:1] == ["*"]
            if token and _leading_token(agent[1].replace("*", "")).lower() == token:
                for_us = named = True
            continue
        if not _RULE.match(line):
            continue
        heading = False
        if for_us:
            ours.append(line)
        if for_everyone:
            everyones.append(line)
    return ours if named else everyones


def bounded(lines: Iterable[str]) -> tuple[list[str], int]:
    """Return the rules, each once, without the excess of those with `*`; and the number left out."""
    kept: list[str] = []
    left_out = 0
    room = MAX_WILDCARD_TEXT
    for line in dict.fromkeys(lines):
        if "*" in line:
            if len(line) > room:
                left_out += 1
                continue
            room -= len(line)
        kept.append(line)
    return kept, left_out


def _size_of(rules: Iterable[str]) -> int:
    """Return the approximate bytes of parsed rules."""
    return _SITE_BYTES + sum((_WILDCARD_BYTES + 2 * len(rule)) if "*" in rule else (_RULE_BYTES + len(rule)) for rule in rules)


def _leading_token(text: str) -> str:
    found = _PRODUCT.match(text)
    return found[0] if found is not None else ""


def _may_request_delay(body: str) -> bool:
    """Return whether the file may have a delay; most have none."""
    small = body.lower()
    return "delay" in small or "rate" in small


def _requested_delay(lines: Iterable[str]) -> float:
    """Return the larger of Crawl-delay and Request-rate among the lines of the group, in seconds."""
    delay_lines = [line for line in lines if _DELAY.match(line)]
    if not delay_lines:
        return 0.0
    rules = Protego.parse("\n".join(["User-agent: *", *delay_lines]))
    delay = rules.crawl_delay("*") or 0.0
    rate = rules.request_rate("*")
    # The file may have integers too large for a float, which must not be divided.
    pause = 0.0 if rate is None or rate.seconds > ABSURD_S * rate.requests else rate.seconds / rate.requests
    return max(seconds if 0.0 <= seconds <= ABSURD_S else 0.0 for seconds in (delay, pause))
