"""What the rules and limits mean for URLs that are known already, a million of them in a few seconds.

The meaning is the crawl space's own: what `CrawlSpace.decide` answers to the stored text. But nothing is kept as evidence,
what depends on host and port alone is remembered, and a text that is plainly in normal form is not parsed again. Whatever is
unusual, and every check that breaks, is left to the crawl space; a test over random rules and URLs holds the two together.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from crawlspace.decision import NOTHING_SAID, Actions, Reason, RuleRef
from crawlspace.model import Status
from crawlspace.rules.address import is_address
from crawlspace.rules.crawl_rules import Action
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.limits import Limits, extension, in_folders, path_depth, repeats_segments
from crawlspace.rules.space import CrawlSpace, refused_by_domain_only
from crawlspace.urls import Url, parse

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
        self._parts = space.parts
        self._global_space = global_space
        self._origins: dict[tuple[str, str | None], _Origin | None] = {}
        site_limits = space.parts.site_limits
        limits = [space.limits, *(site_limits.all() if site_limits is not None else ())]
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
        return "" if self._parts.actions is None else self._parts.actions.content_hash

    def said(self, url: str, *, host_as_written: str | None) -> Actions:
        """Return what the action rules say of a URL in normal form that is in the crawl space."""
        actions = self._parts.actions
        if actions is None:
            return NOTHING_SAID
        origin = self._origin_of(url, host_as_written)
        if origin is None:
            return actions.evaluate(parse(url, host_as_written=host_as_written))
        mark = url.find("?", origin.length)
        return actions.evaluate(_url(url, url[origin.length :] if mark < 0 else url[origin.length : mark], origin))

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
                verdict = self._plainly(url, origin, depth)
            except Exception:  # noqa: BLE001 - the crawl space makes the check again, and tells what is wrong with it
                verdict = self._judged(url, depth, host_as_written)
        if verdict is None and self.hosts_are_limited and not is_missing:
            return self._within_its_host(site, origin)
        return verdict

    def _judged(self, text: str, depth: int, host_as_written: str | None) -> Verdict | None:
        """What the crawl space says."""
        depth = 0 if text in self._parts.start_urls else depth
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

    def _plainly(self, text: str, origin: _Origin, depth: int) -> Verdict | None:
        """The same for a text in normal form; raises what a check raises."""
        mark = text.find("?", origin.length)
        path = text[origin.length :] if mark < 0 else text[origin.length : mark]
        broken = _broken_limit(text, path, origin, has_query=mark >= 0)
        if broken is not None:
            return Verdict(Status.EXCLUDED, broken, None)
        if origin.forbidden is None:
            return self._beyond_domain(text, path, origin, depth)
        if origin.elsewhere and self._beyond_domain(text, path, origin, depth) is None:
            return origin.forbidden._replace(status=Status.EXCLUDED_HERE)
        return origin.forbidden

    def _beyond_domain(self, text: str, path: str, origin: _Origin, depth: int) -> Verdict | None:
        """The checks that come after the domain rules."""
        space, parts = self._space, self._parts
        limits = space.limits
        rule = parts.prefix.match(text)
        if rule is not None and rule.action is not Action.ALLOW:
            return Verdict(Status.EXCLUDED, Reason.PREFIX, rule.ref)
        if parts.actions is not None:
            said = parts.actions.evaluate(_url(text, path, origin))
            if not said.accept:
                return Verdict(Status.EXCLUDED, Reason.ACTIONS, said.rule)
        if not origin.onsite:
            return _OFFSITE
        if limits.index_entire_site and not in_folders(_url(text, path, origin), parts.start_folders):
            return _FOLDER
        if limits.max_link_depth is not None and depth > limits.max_link_depth and text not in parts.start_urls:
            return _LINK_DEPTH
        return origin.unreachable

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
        most = (self.limits_of(host, int(port)) if origin is None else origin.limits).max_urls_per_host
        count = self._admitted.get(host, 0)
        if most is not None and count >= most:
            return _URLS_PER_HOST
        self._admitted[host] = count + 1
        return None

    def limits_of(self, host: str, port: int) -> Limits:
        """Return the limits that apply to a site."""
        site_limits = self._parts.site_limits
        return self._space.limits if site_limits is None else site_limits.of(host, port)

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
            rule = self._parts.domain.match_url(url)
            refused = rule is not None and rule.action is not Action.ALLOW
            return _Origin(
                length=len(text),
                scheme=url.scheme,
                host=url.host,
                port=url.port,
                host_as_written=url.host_as_written,
                limits=self.limits_of(url.host, url.port),
                onsite=self._space.limits.follow_offsite_links or url.host in self._parts.start_hosts,
                forbidden=Verdict(Status.EXCLUDED, Reason.DOMAIN, rule.ref) if rule is not None and refused else None,
                unreachable=self._by_address(url.host, url.port),
                elsewhere=refused and self._global_space is not None and self._global_space.allows(url) is not None,
            )
        except Exception:  # noqa: BLE001 - malformed, or as above
            return None


class _Origin(NamedTuple):
    """All that a URL's scheme, host and port decide. `length` is that of their text."""

    length: int
    scheme: str
    host: str
    port: int
    host_as_written: str
    limits: Limits
    onsite: bool
    forbidden: Verdict | None
    """By a domain rule."""
    unreachable: Verdict | None
    """By the addresses of its host."""
    elsewhere: bool
    """Forbidden here, and allowed by a global rule."""


_OFFSITE = Verdict(Status.EXCLUDED, Reason.OFFSITE, None)
_FOLDER = Verdict(Status.EXCLUDED, Reason.FOLDER, None)
_LINK_DEPTH = Verdict(Status.EXCLUDED, Reason.LINK_DEPTH, None)
_URLS_PER_HOST = Verdict(Status.EXCLUDED, Reason.URLS_PER_HOST, None)

# Path and query in which parsing changes nothing: no character that would be escaped, no escape that would be written otherwise.
_PLAIN_REST = re.compile(r"(?:[A-Za-z0-9\-._~!$&()*+,;=:@/?]++|%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]))*+")


def _url(text: str, path: str, origin: _Origin) -> Url:
    query = text[origin.length + len(path) + 1 :] or None
    return Url(text, origin.scheme, origin.host, origin.port, path, query, origin.host_as_written)


def _broken_limit(text: str, path: str, origin: _Origin, *, has_query: bool) -> Reason | None:
    """The first limit of the URL alone that it breaks, in the crawl space's order."""
    limits = origin.limits
    deepest, repeats = limits.max_path_depth, limits.max_repeated_segments
    if origin.scheme not in limits.schemes:
        return Reason.SCHEME
    if len(text) > limits.max_url_length:
        return Reason.URL_LENGTH
    if has_query and not limits.follow_query_strings:
        return Reason.QUERY_STRING
    if extension(path) in limits.exclude_extensions:
        return Reason.EXTENSION
    if deepest is not None and path_depth(path) > deepest:
        return Reason.PATH_DEPTH
    if repeats is not None and repeats_segments(path, repeats):
        return Reason.REPEATED_SEGMENTS
    return None
