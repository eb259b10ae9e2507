"""What the rules and limits mean for URLs that are known already, a million of them in a few seconds.

The checks are the crawl space's own (`CrawlSpace.checks`), in its order. But nothing is kept as evidence, what depends on the host
alone is computed once a host, and a text that is plainly in normal form is not parsed again. Whatever is unusual, and every check
that breaks, is left to `CrawlSpace.decide`; a test over random rules and URLs holds the two to the same answer.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from crawlspace.decision import NOTHING_SAID, Actions, Reason, RuleRef, Step
from crawlspace.model import Status
from crawlspace.rules.address import is_address
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import Check, CrawlSpace, Find, first_refusal, refused_by_domain_only
from crawlspace.urls import Url, as_url, parse

logger = logging.getLogger(__name__)

_REMEMBERED = 20_000
"""Hosts remembered at a time."""


class Verdict(NamedTuple):
    """Why a known URL is outside: with status 760, or with 761 where the global space has it. `rule` is the one that decided."""

    status: Status
    reason: Reason
    rule: RuleRef | None


class Verdicts:
    """One pass over the known URLs of a collection; they are asked about in order of discovery, for hosts may have a limit."""

    def __init__(
        self,
        space: CrawlSpace,
        global_space: GlobalSpace | None,
        *,
        addresses: Callable[[str], Sequence[str]] | None = None,
        read_ahead: Callable[[Iterable[str]], None] | None = None,
    ) -> None:
        """`global_space` is None where there are no global rules: then whatever is outside has status 760.

        `addresses` are those known of a host that is none itself; None where addresses are not judged, as behind a proxy. `read_ahead`
        hears of the hosts whose addresses are asked for next, so that they can be read at once.
        """
        self._space = space
        self._addresses = addresses
        self._read_ahead = read_ahead
        self.hosts_without_addresses: set[str] = set()
        """Hosts met of which no address is known, where there are address rules."""
        self._global_space = global_space
        self._origins: dict[tuple[str, str | None], _Origin | None] = {}
        site_limits = space.site_limits
        limits = [space.limits, *(site_limits.all() if site_limits is not None else ())]
        self._depth_is_limited = space.limits.max_link_depth is not None
        self.hosts_are_limited = any(each.max_urls_per_host is not None for each in limits)
        self._admitted: dict[str, int] = {}

    def begin(self) -> None:
        """Begin another pass: no host has a URL yet."""
        self._admitted.clear()

    def expect(self, sites: Iterable[str]) -> None:
        """Be asked about URLs of these sites (`host:port`) next."""
        if self._read_ahead is not None:
            self._read_ahead({site.rpartition(":")[0] for site in sites})

    @property
    def actions_hash(self) -> str:
        """That of the action rules; empty without any."""
        return "" if self._space.actions is None else self._space.actions.content_hash

    def said(self, url: str, *, host_as_written: str | None) -> Actions:
        """Return what the action rules say of a URL in normal form that is in the crawl space."""
        actions = self._space.actions
        if actions is None:
            return NOTHING_SAID
        origin = self._origin_of(url, host_as_written)
        if origin is None:
            return actions.evaluate(parse(url, host_as_written=host_as_written))
        return actions.evaluate(as_url(origin.url_of(url)))

    def of(self, url: str, *, site: str, depth: int, host_as_written: str | None, is_missing: bool = False) -> Verdict | None:
        """Return why a URL is outside; None where it is in the crawl space.

        `url` is its text in normal form, `site` its `host:port`. A URL that is in counts as one of its host's, unless it is missing. The depth of a start
        URL is 0, whatever depth is given: it may be known from links, and is only entered as a start URL after this.
        """
        origin = self._origin_of(url, host_as_written)
        if origin is None:
            verdict = self._judged(url, depth, host_as_written)
        else:
            try:
                known = origin.url_of(url)
                refusal = first_refusal(origin.finds, known)
                if refusal is not None:
                    verdict = self._refused(refusal, known, origin, depth)
                elif self._depth_is_limited and self._is_too_deep(url, depth):
                    verdict = _LINK_DEPTH
                else:
                    verdict = origin.unreachable
            except Exception:  # noqa: BLE001 - `CrawlSpace.decide` makes the check again, and logs the error
                verdict = self._judged(url, depth, host_as_written)
        if verdict is None and self.hosts_are_limited and not is_missing:
            return self._within_its_host(site, origin)
        return verdict

    def _judged(self, text: str, depth: int, host_as_written: str | None) -> Verdict | None:
        """Return what `CrawlSpace.decide` makes of a text, which it parses."""
        depth = 0 if text in self._space.start_urls else depth
        url, decision = self._space.decide(text, base_host_as_written=host_as_written, depth=depth)
        refused = None if url is None else self._by_address(url.host, url.port)
        if decision.admitted:
            return refused
        if url is not None and self._global_space is not None and refused is None and refused_by_domain_only(decision):
            try:
                if self._global_space.allows(url) is not None:
                    return Verdict(Status.EXCLUDED_HERE, decision.reason, decision.rule)
            except Exception:
                logger.exception("A URL is taken for one outside the global space, because the check failed: %s", text)
        return Verdict(Status.EXCLUDED, decision.reason, decision.rule)

    def _refused(self, refusal: Step, url: _KnownUrl, origin: _Origin, depth: int) -> Verdict:
        """Return the status of a URL that a check has refused, and the reason."""
        is_only_by_domain = (
            refusal.check is Reason.DOMAIN
            and origin.elsewhere is not None
            and first_refusal(origin.elsewhere, url) is None
            and not self._is_too_deep(url.text, depth)
        )
        return Verdict(Status.EXCLUDED_HERE if is_only_by_domain else Status.EXCLUDED, Reason(refusal.check), refusal.rule)

    def _is_too_deep(self, text: str, depth: int) -> bool:
        return self._space.is_too_deep(depth) and text not in self._space.start_urls

    def _checks_elsewhere(self, checks: Sequence[Check], url: Url) -> tuple[Find, ...] | None:
        """Return the checks that URLs have to pass to be the global space's, where domain rules forbid their host."""
        others = tuple(check.find for check in checks if check.reason is not Reason.DOMAIN)
        is_forbidden = len(others) < len(checks)
        return others if is_forbidden and self._global_space is not None and self._global_space.allows(url) is not None else None

    def _by_address(self, host: str, port: int) -> Verdict | None:
        """Why no connection may be made to any address that is known of a host; None where one may, or none is known."""
        if self._addresses is None or not host:
            return None
        addresses = (host,) if is_address(host) else self._addresses(host)
        if not addresses:
            if self._space.has_address_rules:
                self.hosts_without_addresses.add(host)
            return None
        decisions = [self._space.at_connect(host, port, address) for address in addresses]
        if any(decision.admitted for decision in decisions):
            return None
        return Verdict(Status.EXCLUDED, decisions[0].reason, decisions[0].rule)

    def _within_its_host(self, site: str, origin: _Origin | None) -> Verdict | None:
        """Count an admitted URL, or refuse it where its host has as many as it may have."""
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
        """What a URL begins with, up to the path; None where the text may not be in normal form, or something is unusual."""
        slash = text.find("/", len("https://"))
        if slash < 0 or _PLAIN_REST.fullmatch(text, slash) is None or "/." in text or text[-1] == "?":
            return None
        remembered = (text[:slash], host_as_written)
        try:
            return self._origins[remembered]
        except KeyError:
            if len(self._origins) >= _REMEMBERED:
                self._origins.clear()
            origin = self._origins[remembered] = self._read_origin(*remembered)
            return origin

    def _read_origin(self, text: str, host_as_written: str | None) -> _Origin | None:
        try:
            url = parse(f"{text}/", host_as_written=host_as_written)
            if url.text != f"{text}/" or not url.host:
                return None
            unreachable = self._by_address(url.host, url.port)
            checks = list(_checks_left(self._space.checks(url.host, url.port), url))
            return _Origin(
                length=len(text),
                known=_KnownUrl(url),
                limits=self._space.limits_of(url.host, url.port),
                finds=tuple(check.find for check in checks),
                elsewhere=self._checks_elsewhere(checks, url) if unreachable is None else None,
                unreachable=unreachable,
            )
        except Exception:  # noqa: BLE001 - malformed, or as above
            return None


class _KnownUrl:
    """A URL whose text, path and query are set anew for each URL of its host: a `Url` takes longer to make than to check."""

    __slots__ = ("host", "host_as_written", "path", "port", "query", "scheme", "text")

    def __init__(self, url: Url) -> None:
        self.text = url.text
        self.scheme = url.scheme
        self.host = url.host
        self.port = url.port
        self.path = url.path
        self.query = url.query
        self.host_as_written = url.host_as_written


class _Origin(NamedTuple):
    """What all URLs with a scheme, host and port have in common. `length` is that of their text."""

    length: int
    known: _KnownUrl
    limits: Limits
    finds: tuple[Find, ...]
    """Those checks whose answer depends on more than the host, and those that refuse the whole host."""
    elsewhere: tuple[Find, ...] | None
    """The same but that of domain rules, where domain rules forbid the host here and the global space allows it."""
    unreachable: Verdict | None
    """By the addresses of the host."""

    def url_of(self, text: str) -> _KnownUrl:
        """Return the URL with a text in normal form, valid until this is called again."""
        url = self.known
        mark = text.find("?", self.length)
        url.text = text
        if mark < 0:
            url.path, url.query = text[self.length :], None
        else:
            url.path, url.query = text[self.length : mark], text[mark + 1 :]
        return url


_LINK_DEPTH = Verdict(Status.EXCLUDED, Reason.LINK_DEPTH, None)
_URLS_PER_HOST = Verdict(Status.EXCLUDED, Reason.URLS_PER_HOST, None)

# Path and query in which parsing changes nothing: no character that would be escaped, no escape that would be written otherwise.
_PLAIN_REST = re.compile(r"(?:[A-Za-z0-9\-._~!$&()*+,;=:@/?]++|%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]))*+")


def _checks_left(checks: Iterable[Check], url: Url) -> Iterator[Check]:
    """Yield the checks that may refuse URLs of the host of this one; those that depend on the host alone are made here, once."""
    for check in checks:
        if not check.is_of_host:
            yield check
        elif (refusal := first_refusal((check.find,), url)) is not None:
            yield Check(check.reason, _always(refusal), is_of_host=True)


def _always(step: Step) -> Find:
    return lambda _: step
