"""Why known URLs are excluded: decided about all of a collection after a change of its rules.

Besides the decision of the crawl space, the known addresses of hosts count, and the number of URLs of a host. A URL that another
collection may keep, because only domain rules refuse it, has a status of its own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from crawlspace.decision import NO_ACTIONS, Actions, Decision, Reason, RuleRef, of_all_addresses
from crawlspace.rules.address import is_address
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace, HostDecisions
from crawlspace.rules.url_options import OriginFolding
from crawlspace.status import Status
from crawlspace.urls import MalformedUrl, Url, parse

logger = logging.getLogger(__name__)

_CACHED_HOSTS = 20_000
"""Hosts cached at a time."""


class Exclusion(NamedTuple):
    """Why a known URL is excluded: status 760, or 761 if the global space admits it. `rule` is the one that decided."""

    status: Status
    reason: Reason
    rule: RuleRef | None


class KnownDecision(NamedTuple):
    """The decision about a known URL."""

    exclusion: Exclusion | None
    """None if the URL is in the crawl space."""
    actions: Actions = NO_ACTIONS
    """The rule actions for a URL in the crawl space."""
    into: Url | None = None
    """The URL into which the URL options fold it, about which the decision is; None if it stays."""


class KnownUrlDecisions:
    """One pass over the known URLs of a collection, in order of discovery, because hosts may have a limit of URLs."""

    def __init__(
        self,
        space: CrawlSpace,
        global_space: GlobalSpace | None,
        *,
        addresses: Callable[[str], Sequence[str]] | None = None,
        read_ahead: Callable[[Iterable[str]], None] | None = None,
        is_proxied: Callable[[Url], bool] = lambda _: False,
    ) -> None:
        """`global_space` is None without global rules: then every excluded URL has status 760.

        `addresses` returns the known addresses of a host name; None if addresses are not checked. `read_ahead` is called with the
        hosts whose addresses will be needed next, so that they can be read in one batch. `is_proxied`: whether a URL goes through a
        proxy, which looks its host up, so that its addresses are not checked; equal for all URLs of a scheme, host and port.
        """
        self._space = space
        self._folding = space.folding
        self._addresses = addresses
        self._read_ahead = read_ahead
        self._is_proxied = is_proxied
        self.hosts_without_addresses: set[str] = set()
        """Hosts without a known address, if there are address rules."""
        self._global_space = global_space
        self._hosts: dict[tuple[str, str | None], _KnownHost | None] = {}
        site_limits = space.site_limits
        limits = [space.limits, *(site_limits.all() if site_limits is not None else ())]
        self.max_link_depth = space.limits.max_link_depth
        self.hosts_are_limited = any(each.max_urls_per_host is not None for each in limits)
        self._admitted: dict[str, int] = {}

    def begin(self) -> None:
        """Start another pass: reset the count of URLs of each host."""
        self._admitted.clear()

    def expect(self, sites: Iterable[str]) -> None:
        """Announce the sites (`host:port`) of the next URLs."""
        if self._read_ahead is not None:
            self._read_ahead({site.rpartition(":")[0] for site in sites})

    @property
    def actions_hash(self) -> str:
        """The hash of the action rules; empty if there are none."""
        return "" if self._space.actions is None else self._space.actions.content_hash

    def folded(self, text: str, *, host_as_written: str | None) -> Url | None:
        """Return the URL into which the URL options fold a known one; None if it stays."""
        if self._folding is None:
            return None
        return self._folded(text, self._host_of(text, host_as_written), host_as_written)

    def decide(self, text: str, *, site: str, depth: int, host_as_written: str | None, is_page: bool = True) -> KnownDecision:
        """Return the decision about a known URL, given as its text in normal form.

        An admitted URL counts towards the limit of its host (that of `site`, which is `host:port`) if it is a page, and not
        folded into another one. A start URL has depth 0 whatever depth is given: it may be known from links first.
        """
        host = self._host_of(text, host_as_written)
        into = None if self._folding is None else self._folded(text, host, host_as_written)
        if into is not None:
            text, host_as_written = into.text, into.host_as_written
            host = self._host_of(text, host_as_written)
        url: Url | None
        if host is not None:
            url = into or host.url(text)
            decision, unreachable, is_shared = host.decisions.decide(url), host.unreachable, host.is_shared
        else:
            url, decision = self._space.decide(text, base_host_as_written=host_as_written)
            unreachable, is_shared = (None, False) if url is None else (self._by_address(url), self._is_shared(url))
        if self.max_link_depth is not None and url is not None:
            decision = self._space.at_depth(decision, 0 if url.text in self._space.start_urls else depth)
        if not decision.admitted:
            return KnownDecision(self._exclusion(url, decision, unreachable, is_shared=is_shared), into=into)
        exclusion = unreachable
        if exclusion is None and self.hosts_are_limited and is_page and into is None:
            exclusion = self._count_of_host(site)
        if exclusion is None and into is None and decision.actions is NO_ACTIONS:
            return _ADMITTED
        return KnownDecision(exclusion, decision.actions, into)

    def _folded(self, text: str, host: _KnownHost | None, host_as_written: str | None) -> Url | None:
        """Return the URL into which the URL options fold a known one; None if it stays."""
        assert self._folding is not None
        if host is not None:
            if host.folding is None or host.folding.stays(text):
                return None
            url = host.url(text)
            return host.folding.folded(url.path, url.query)
        try:
            return self._folding.folded(parse(text, host_as_written=host_as_written, routes=True))
        except MalformedUrl:
            return None

    def _exclusion(self, url: Url | None, decision: Decision, unreachable: Exclusion | None, *, is_shared: bool) -> Exclusion:
        """Return the exclusion of a URL that the crawl space refuses.

        Another collection may have its document if the global space allows the URL, only domain rules refuse it, and the
        addresses of its host are not forbidden but for a missing domain rule.
        """
        is_kept = (
            url is not None
            and is_shared
            and (unreachable is None or unreachable.status is Status.EXCLUDED_HERE)
            and self._space.is_refused_by_domain_only(url, decision)
        )
        return Exclusion(Status.EXCLUDED_HERE if is_kept else Status.EXCLUDED, decision.reason, decision.rule)

    def _is_shared(self, url: Url) -> bool:
        """Return whether the global space allows a URL."""
        try:
            return self._global_space is not None and self._global_space.allows(url) is not None
        except Exception:
            logger.exception("A URL counts as outside the global space, because the check failed: %s", url.text)
            return False

    def _by_address(self, url: Url) -> Exclusion | None:
        """Return why no known address of a URL's host may be connected to; None if one may, or none is known."""
        host, port = url.host, url.port
        if self._addresses is None or not host or self._is_proxied(url):
            return None
        addresses = (host,) if is_address(host) else self._addresses(host)
        if not addresses:
            if self._space.has_address_rules:
                self.hosts_without_addresses.add(host)
            return None
        decision = of_all_addresses([self._space.at_connect(host, port, address) for address in addresses])
        if decision.admitted:
            return None
        is_kept = decision.lacks_domain_rule and self._is_shared(url)
        return Exclusion(Status.EXCLUDED_HERE if is_kept else Status.EXCLUDED, decision.reason, decision.rule)

    def limits_of(self, host: str, port: int) -> Limits:
        """Return the limits that apply to a site."""
        return self._space.limits_of(host, port)

    def _count_of_host(self, site: str) -> Exclusion | None:
        """Count an admitted URL, or refuse it if its host has reached its limit."""
        host, _, port = site.rpartition(":")
        most = self.limits_of(host, int(port)).max_urls_per_host
        count = self._admitted.get(host, 0)
        if most is not None and count >= most:
            return _URLS_PER_HOST
        self._admitted[host] = count + 1
        return None

    def _host_of(self, text: str, host_as_written: str | None) -> _KnownHost | None:
        """Return what is cached of a URL's host; None if the text may not be in normal form, or is unusual."""
        slash = text.find("/", 8)  # after `https://`
        if slash < 0 or text[-1] == "?" or "/." in text:
            return None
        if (not text.isascii() or text.encode().translate(None, _PLAIN)) and _PLAIN_REST.fullmatch(text, slash) is None:
            return None
        key = text[:slash], host_as_written
        try:
            return self._hosts[key]
        except KeyError:
            if len(self._hosts) >= _CACHED_HOSTS:
                self._hosts.clear()
            host = self._hosts[key] = self._read_host(*key)
            return host

    def _read_host(self, beginning: str, host_as_written: str | None) -> _KnownHost | None:
        try:
            url = parse(f"{beginning}/", host_as_written=host_as_written)
        except MalformedUrl:
            return None
        if url.text != f"{beginning}/" or not url.host:
            return None
        folding = None if self._folding is None else self._folding.origin(url)
        return _KnownHost(len(beginning), url, self._space.of_host(url), folding, self._by_address(url), self._is_shared(url))


class _KnownHost(NamedTuple):
    """The decisions that all URLs with one scheme, host (as written) and port have in common."""

    length: int
    """That of a URL's text up to its path."""
    root: Url
    """The URL with the path /."""
    decisions: HostDecisions
    folding: OriginFolding | None
    unreachable: Exclusion | None
    """The exclusion by the host's addresses."""
    is_shared: bool
    """Whether the global space allows them."""

    def url(self, text: str) -> Url:
        """Return the URL with a text in normal form, which need not be parsed."""
        length, root = self.length, self.root
        mark = text.find("?", length)
        path, query = (text[length:], None) if mark < 0 else (text[length:mark], text[mark + 1 :])
        return Url(text, root.scheme, root.host, root.port, path, query, root.host_as_written)


_ADMITTED = KnownDecision(None)
_URLS_PER_HOST = Exclusion(Status.EXCLUDED, Reason.URLS_PER_HOST, None)

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&()*+,;=:@/?"
"""The characters of most URLs; this is tested faster than the expression below."""
# Path and query that parsing doesn't change: no character to be escaped, no escape that is not in normal form.
_PLAIN_REST = re.compile(r"(?:[A-Za-z0-9\-._~!$&()*+,;=:@/?]++|%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]))*+")
