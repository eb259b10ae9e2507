"""Decide about known URLs in bulk: a million in a few seconds.

The checks are those of `CrawlSpace.checks`, in the same order, but without a trace. What depends on the host alone is computed
once a host, and a text that is clearly in normal form is not parsed again. Unusual URLs, and checks that raise, go to
`CrawlSpace.decide`; a test with random rules and URLs compares the two.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from crawlspace.decision import NO_ACTIONS, Actions, Reason, RuleRef, Step, of_all_addresses
from crawlspace.model import Status
from crawlspace.rules.address import is_address
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import Check, CrawlSpace, Find, first_refusal
from crawlspace.rules.url_options import OriginFolding
from crawlspace.urls import Url, UrlParts, as_url, parse

logger = logging.getLogger(__name__)

_CACHED_ORIGINS = 20_000
"""Origins cached at a time."""


class Exclusion(NamedTuple):
    """Why a known URL is excluded: status 760, or 761 if the global space admits it. `rule` is the one that decided."""

    status: Status
    reason: Reason
    rule: RuleRef | None


class BulkDecisions:
    """One pass over the known URLs of a collection, in order of discovery, because hosts may have a limit of URLs."""

    def __init__(
        self,
        space: CrawlSpace,
        global_space: GlobalSpace | None,
        *,
        addresses: Callable[[str], Sequence[str]] | None = None,
        read_ahead: Callable[[Iterable[str]], None] | None = None,
        is_proxied: Callable[[UrlParts], bool] = lambda _: False,
    ) -> None:
        """`global_space` is None without global rules: then every excluded URL has status 760.

        `addresses` returns the known addresses of a host name; None if addresses are not checked. `read_ahead` is called with the
        hosts whose addresses will be needed next, so that they can be read in one batch. `is_proxied`: whether a URL goes through a
        proxy, which looks its host up, so that its addresses are not checked; equal for all URLs of a scheme, host and port.
        """
        self._space = space
        self._addresses = addresses
        self._read_ahead = read_ahead
        self._is_proxied = is_proxied
        self.hosts_without_addresses: set[str] = set()
        """Hosts without a known address, if there are address rules."""
        self._global_space = global_space
        self._origins: dict[tuple[str, str | None], _Origin | None] = {}
        self._last: tuple[str, str | None, _Origin | None] = "", None, None
        self._into: Url | None = None
        """The URL that `_last` is about, if one was folded into it."""
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

    def actions_of(self, url: str, *, host_as_written: str | None) -> Actions:
        """Return the rule actions for an admitted URL in normal form."""
        actions = self._space.actions
        if actions is None:
            return NO_ACTIONS
        origin = self._origin_of(url, host_as_written)
        if origin is None:
            return actions.evaluate(parse(url, host_as_written=host_as_written))
        return actions.evaluate(as_url(origin.url_of(url)))

    @property
    def folds(self) -> bool:
        """Whether there are URL options."""
        return self._space.folding is not None

    def folded(self, url: str, *, host_as_written: str | None) -> Url | None:
        """Return the URL into which the URL options fold a known one; None if it stays."""
        folding = self._space.folding
        if folding is None:
            return None
        origin = self._origin_of(url, host_as_written)
        if origin is None:
            return folding.folded(parse(url, host_as_written=host_as_written, routes=True))
        if origin.folding is None or origin.folding.stays(url):
            return None
        length, mark = origin.length, url.find("?", origin.length)
        into = origin.folding.folded(url[length:], None) if mark < 0 else origin.folding.folded(url[length:mark], url[mark + 1 :])
        if into is not None:  # it is decided about next; folding leaves nothing in it that is not in normal form
            self._last = into.text, into.host_as_written, self._origin_at(origin.folding.origin)
            self._into = into
        return into

    def of(self, url: str, *, site: str, depth: int, host_as_written: str | None, is_missing: bool = False) -> Exclusion | None:
        """Return why a URL is excluded; None if it is in the crawl space.

        `url` is in normal form, `site` is its `host:port`. An admitted URL counts towards the limit of its host unless it is
        missing. A start URL has depth 0 whatever depth is given: it may be known from links first.
        """
        origin = self._origin_of(url, host_as_written)
        if origin is None:
            verdict = self._decided(url, depth, host_as_written)
        else:
            try:
                known = self._into or origin.url_of(url)
                refusal = first_refusal(origin.finds, known)
                if refusal is not None:
                    verdict = self._refused(refusal, known, origin, depth)
                elif self.max_link_depth is not None and self._is_too_deep(url, depth):
                    verdict = _LINK_DEPTH
                else:
                    verdict = origin.unreachable
            except Exception:  # noqa: BLE001 - `CrawlSpace.decide` repeats the check and logs the error
                verdict = self._decided(url, depth, host_as_written)
        if verdict is None and self.hosts_are_limited and not is_missing:
            return self._count_of_host(site, origin)
        return verdict

    def _decided(self, text: str, depth: int, host_as_written: str | None) -> Exclusion | None:
        """Return the result of `CrawlSpace.decide`, which parses the text."""
        depth = 0 if text in self._space.start_urls else depth
        url, decision = self._space.decide(text, base_host_as_written=host_as_written, depth=depth)
        refused = None if url is None else self._by_address(url)
        if decision.admitted:
            return refused
        if url is not None and _may_be_kept(refused):
            try:
                if self._is_shared(url) and self._space.is_refused_by_domain_only(url, decision):
                    return Exclusion(Status.EXCLUDED_HERE, decision.reason, decision.rule)
            except Exception:
                logger.exception("A URL counts as outside the global space, because the check failed: %s", text)
        return Exclusion(Status.EXCLUDED, decision.reason, decision.rule)

    def _refused(self, refusal: Step, url: UrlParts, origin: _Origin, depth: int) -> Exclusion:
        """Return the exclusion of a URL that a check has refused."""
        is_only_by_domain = (
            origin.elsewhere is not None
            and refusal.check in origin.by_domain
            and first_refusal(origin.elsewhere, url) is None
            and not self._is_too_deep(url.text, depth)
        )
        return Exclusion(Status.EXCLUDED_HERE if is_only_by_domain else Status.EXCLUDED, Reason(refusal.check), refusal.rule)

    def _is_too_deep(self, text: str, depth: int) -> bool:
        return self._space.is_too_deep(depth) and text not in self._space.start_urls

    def _checks_elsewhere(self, checks: Sequence[Check], url: Url, by_domain: frozenset[Reason]) -> tuple[Find, ...] | None:
        """Return the checks for the global space, for a host that is refused by domain and that the global space allows; else None."""
        others = tuple(check.find for check in checks if check.reason not in by_domain)
        return others if len(others) < len(checks) and self._is_shared(url) else None

    def _is_shared(self, url: Url) -> bool:
        """Return whether the global space allows a URL."""
        return self._global_space is not None and self._global_space.allows(url) is not None

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

    def _count_of_host(self, site: str, origin: _Origin | None) -> Exclusion | None:
        """Count an admitted URL, or refuse it if its host has reached its limit."""
        host, _, port = site.rpartition(":")
        most = (self._space.limits_of(host, int(port)) if origin is None else origin.limits).max_urls_per_host
        count = self._admitted.get(host, 0)
        if most is not None and count >= most:
            return _URLS_PER_HOST
        self._admitted[host] = count + 1
        return None

    def limits_of(self, host: str, port: int) -> Limits:
        """Return the limits that apply to a site."""
        return self._space.limits_of(host, port)

    def _origin_of(self, text: str, host_as_written: str | None) -> _Origin | None:
        """Return the cached properties of a URL's origin; None if the text may not be in normal form, or is unusual."""
        last, last_host, origin = self._last
        if last is text and last_host is host_as_written:  # one URL is folded, decided about and given actions
            return origin
        origin = self._origin_found(text, host_as_written)
        self._last = text, host_as_written, origin
        self._into = None
        return origin

    def _origin_found(self, text: str, host_as_written: str | None) -> _Origin | None:
        slash = text.find("/", 8)  # behind `https://`
        if slash < 0 or text[-1] == "?" or "/." in text:
            return None
        if (not text.isascii() or text.encode().translate(None, _PLAIN)) and _PLAIN_REST.fullmatch(text, slash) is None:
            return None
        return self._origin_at((text[:slash], host_as_written))

    def _origin_at(self, key: tuple[str, str | None]) -> _Origin | None:
        """Return the properties of an origin, which is a URL up to its path, and the host as written; None if it is unusual."""
        try:
            return self._origins[key]
        except KeyError:
            if len(self._origins) >= _CACHED_ORIGINS:
                self._origins.clear()
            origin = self._origins[key] = self._read_origin(*key)
            return origin

    def _read_origin(self, text: str, host_as_written: str | None) -> _Origin | None:
        try:
            url = parse(f"{text}/", host_as_written=host_as_written)
            if url.text != f"{text}/" or not url.host:
                return None
            unreachable, folding, by_domain = self._by_address(url), self._space.folding, self._space.reasons_by_domain(url)
            checks = list(_checks_left(self._space.checks(url.host, url.port), url))
            return _Origin(
                length=len(text),
                known=_KnownUrl(url),
                limits=self._space.limits_of(url.host, url.port),
                finds=tuple(check.find for check in checks),
                by_domain=by_domain,
                elsewhere=self._checks_elsewhere(checks, url, by_domain) if _may_be_kept(unreachable) else None,
                unreachable=unreachable,
                folding=None if folding is None else folding.origin(url),
            )
        except Exception:  # noqa: BLE001 - malformed, or as in `of`
            return None


class _KnownUrl:
    """A URL object reused for all URLs of an origin: creating a `Url` takes longer than checking it."""

    __slots__ = ("host", "host_as_written", "path", "port", "query", "scheme", "text")
    fragment = ""
    """A route behind # is not clearly in normal form, and is parsed."""

    def __init__(self, url: Url) -> None:
        self.text = url.text
        self.scheme = url.scheme
        self.host = url.host
        self.port = url.port
        self.path = url.path
        self.query = url.query
        self.host_as_written = url.host_as_written


class _Origin(NamedTuple):
    """The common properties of all URLs with one scheme, host and port. `length` is the length of that text."""

    length: int
    known: _KnownUrl
    limits: Limits
    finds: tuple[Find, ...]
    """The checks that depend on more than the host, and those that refuse the whole host."""
    by_domain: frozenset[Reason]
    """See `CrawlSpace.reasons_by_domain`."""
    elsewhere: tuple[Find, ...] | None
    """The same without those for these reasons, if there are any and the global space allows the host."""
    unreachable: Exclusion | None
    """The exclusion by the host's addresses."""
    folding: OriginFolding | None

    def url_of(self, text: str) -> _KnownUrl:
        """Return the URL with a text in normal form; the object is reused by the next call."""
        url = self.known
        mark = text.find("?", self.length)
        url.text = text
        if mark < 0:
            url.path, url.query = text[self.length :], None
        else:
            url.path, url.query = text[self.length : mark], text[mark + 1 :]
        return url


_LINK_DEPTH = Exclusion(Status.EXCLUDED, Reason.LINK_DEPTH, None)
_URLS_PER_HOST = Exclusion(Status.EXCLUDED, Reason.URLS_PER_HOST, None)

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&()*+,;=:@/?"
"""Of nothing else are most URLs, which is seen faster than by the expression."""
# Path and query that parsing doesn't change: no character to be escaped, no escape that is not in normal form.
_PLAIN_REST = re.compile(r"(?:[A-Za-z0-9\-._~!$&()*+,;=:@/?]++|%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]))*+")


def _may_be_kept(by_address: Exclusion | None) -> bool:
    """Return whether the addresses of a host allow that another crawler has the document: none forbids it but for a missing domain rule."""
    return by_address is None or by_address.status is Status.EXCLUDED_HERE


def _checks_left(checks: Iterable[Check], url: Url) -> Iterator[Check]:
    """Yield the checks that may refuse URLs of this host; those that depend on the host alone are made here, once."""
    for check in checks:
        if not check.is_of_host:
            yield check
        elif (refusal := first_refusal((check.find,), url)) is not None:
            yield Check(check.reason, _always(refusal), is_of_host=True)


def _always(step: Step) -> Find:
    return lambda _: step
