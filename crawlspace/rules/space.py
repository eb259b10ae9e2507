"""The crawl space of a collection: all rules and limits, checked in one order.

Discovery, fetch, start-up and `scrapy explain` all use it, so their results can't differ. All checks are made, also after one has
refused: the first refusal is the reason, and the trace has the others. The trace also shows whether domain rules alone exclude a
URL.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple, Protocol

from crawlspace.cache import Recent
from crawlspace.decision import NO_ACTIONS, Actions, Decision, Reason, Step, Verdict
from crawlspace.document import is_generic
from crawlspace.rules.address import AddressMatcher, Reach, address_value, reach
from crawlspace.rules.crawl_rules import AddressRule, CrawlRules, Rule, RuleAction
from crawlspace.rules.domain import DomainMatcher, NamedHosts
from crawlspace.rules.limits import (
    Limits,
    extension,
    folders,
    in_folders,
    mime_allowed,
    path_depth,
    repeats_segments,
)
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.url_options import UrlFolding
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.urls import MalformedUrl, Url, UrlWithCredentials, join, parse

logger = logging.getLogger(__name__)

_CACHED_HOSTS = 10_000
"""In each of the two generations of the cache."""
WELL_FORMED = "well_formed"
"""The name of the first check in a trace; other checks have the names of their reasons."""


class SiteLimits(Protocol):
    """Limits that differ between sites."""

    content_hash: str

    def of(self, host: str, port: int) -> Limits:
        """Return the limits for the URLs of a site."""

    def all(self) -> Iterable[Limits]:
        """Return every value that `of` can return."""


class Check(NamedTuple):
    """One check of a URL. `find` returns its result, or None if there is nothing to report; it may raise."""

    reason: Reason
    find: Callable[[Url], Step | Actions | None]
    is_of_host: bool = False
    """Whether the result is the same for all URLs of a scheme, host (as written) and port."""


class HostDecisions:
    """The decisions about the URLs of one scheme, host (as written) and port: the checks that depend on these are made once."""

    __slots__ = ("_checks", "_decision", "_steps", "is_whole")

    def __init__(self, checks: Iterable[Check], url: Url) -> None:
        """`url` is any URL of the host."""
        steps, left, broken = [_READ], [], []
        for index, check in enumerate(checks, 1):
            result: Step | Actions | None = None
            if not check.is_of_host:
                left.append((index, check))
            else:
                try:
                    result = check.find(url)
                except Exception as error:  # noqa: BLE001 - it is logged
                    result = _broken(check, url, error)
                    broken.append(index)
            steps.append(_PASSED[check.reason] if result is None else _as_step(result))
        self._steps = tuple(steps)
        """The results of all checks, as if those that depend on more than the host find nothing."""
        self._checks = tuple(left)
        """The checks that depend on more, each with the index of its step."""
        self._decision = _decision(steps, {}, broken)
        """That about a URL of which these checks find nothing."""
        self.is_whole = not broken
        """Whether no check of the host has raised an exception."""

    def decide(self, url: Url) -> Decision:
        """Return the decision about a URL of the host that has no route."""
        found: dict[int, Step | Actions] | None = None
        broken: list[int] = []
        for index, check in self._checks:
            try:
                result = check.find(url)
            except Exception as error:  # noqa: BLE001 - it is logged
                result = _broken(check, url, error)
                broken.append(index)
            if result is not None:
                found = {index: result} if found is None else {**found, index: result}
        return self._decision if found is None else _decision(self._steps, found, broken)


class CrawlSpace:
    """Immutable after compilation."""

    def __init__(
        self,
        rules: CrawlRules,
        limits: Limits,
        start_urls: Sequence[Url],
        *,
        host_case_sensitive: bool = True,
        named_hosts_any_address: bool = False,
        actions: CompiledActions | None = None,
        site_limits: SiteLimits | None = None,
        folding: UrlFolding | None = None,
    ) -> None:
        """The start URLs are folded, if there is any folding.

        `named_hosts_any_address`: a rule that forbids all addresses does not hold for a host that an allow rule names.
        """
        self._named_hosts_any_address = named_hosts_any_address
        self.limits = limits
        self.folding = folding
        self.site_limits = site_limits
        self._domain = DomainMatcher(rules.domain, case_sensitive=host_case_sensitive)
        self._prefix = PrefixMatcher(rules.prefix)
        self._address = AddressMatcher(rules.address)
        self.actions = actions
        self._start_hosts = frozenset(url.host for url in start_urls)
        self._named_hosts = NamedHosts(rules)
        start_folders = folders(start_urls) if folding is None else folders(map(folding.as_folder, start_urls))
        nearest = frozenset(url.text for url in start_urls) if limits.max_link_depth is not None else frozenset()
        background = (*self._rule_checks(rules), *_limits_of_scope(limits, self._start_hosts, start_folders, folding))
        self._checks = (*_limits_of_url(limits), *background)
        self._checks_of_sites = {
            own: (*_limits_of_url(own), *background) for own in (site_limits.all() if site_limits is not None else ())
        }
        self._hosts: Recent[tuple[str, str, int, str], HostDecisions] = Recent(_CACHED_HOSTS)
        self.start_urls = nearest
        """In normal form; empty unless a limit depends on the distance from them."""
        self._by_depth = limits.max_link_depth is not None or limits.max_urls_per_host is not None
        self.has_address_rules = bool(rules.address)
        self.content_hash = content_hash(
            rules,
            limits,
            more={
                "hosts": sorted(self._start_hosts),
                "folders": sorted(start_folders) if limits.index_entire_site else [],
                **({"starts": sorted(nearest)} if nearest else {}),
                "host_case_sensitive": host_case_sensitive,
                **({"named_hosts_any_address": True} if named_hosts_any_address else {}),
                "actions": "" if actions is None else actions.content_hash,
                "sites": "" if site_limits is None else site_limits.content_hash,
                "folding": [] if folding is None else folding.description,
            },
        )
        """Hexadecimal; changes whenever a decision may change."""

    def decide(
        self,
        text: str,
        *,
        base: str = "",
        base_host_as_written: str | None = None,
        depth: int | None = None,
        host_count: int | None = None,
    ) -> tuple[Url | None, Decision]:
        """Return the folded URL of a link, and whether it is in the crawl space; None as URL if it is malformed.

        `base_host_as_written` is the host of `base` as written, for links without a host; without `base`, that of `text`. Checks
        that need `depth` or `host_count` are skipped if it is None.
        """
        try:
            absolute, host_as_written = _absolute(text, base, base_host_as_written)
            if self.folding is None:
                url = parse(absolute, host_as_written=host_as_written)
            else:
                url = self.folding.fold(self.folding.parse(absolute, host_as_written=host_as_written))
        except MalformedUrl as error:
            reason = Reason.CREDENTIALS if isinstance(error, UrlWithCredentials) else Reason.MALFORMED
            return None, Decision(reason, None, (Step(WELL_FORMED, Verdict.REFUSE),))
        except Exception:
            logger.exception("A URL is refused, because parsing it failed: %.200r", text)
            return None, Decision(Reason.CHECK_FAILED, None, (Step(WELL_FORMED, Verdict.REFUSE),))
        return url, self.decide_url(url, depth=depth, host_count=host_count)

    def decide_url(self, url: Url, *, depth: int | None = None, host_count: int | None = None) -> Decision:
        """Return whether a URL is in the crawl space."""
        return self.at_depth(self.decide_static(url), depth, host_count)

    def decide_static(self, url: Url) -> Decision:
        """Return the part of the decision that depends on the URL alone, so that it can be cached.

        A route behind # has the decision of its page, which is what is requested. Only the limit of length applies to all of its text.
        """
        if url.fragment:
            return self._decide_route(url)
        return self.of_host(url).decide(url)

    def of_host(self, url: Url) -> HostDecisions:
        """Return the decisions about the URLs with the scheme, host and port of a URL; they are cached."""
        key = url.scheme, url.host, url.port, url.host_as_written
        cached = self._hosts.young.get(key) or self._hosts.get(key)
        if cached is not None:
            return cached
        decisions = HostDecisions(self._checks_of(url.host, url.port), url)
        if decisions.is_whole:
            self._hosts.put(key, decisions)
        return decisions

    def _decide_route(self, url: Url) -> Decision:
        decision = self.decide_static(url.page)
        if len(url.text) <= self.limits_of(url.host, url.port).max_url_length:
            return decision
        trace = tuple(_REFUSED[Reason.URL_LENGTH] if step.check is Reason.URL_LENGTH else step for step in decision.trace)
        if not decision.admitted:
            return replace(decision, trace=trace)
        return replace(decision, reason=Reason.URL_LENGTH, rule=None, trace=trace)

    def _checks_of(self, host: str, port: int) -> tuple[Check, ...]:
        """Return the checks for URLs of a site in order, without those of link depth and of the host's number of URLs."""
        return self._checks if self.site_limits is None else self._checks_of_sites[self.site_limits.of(host, port)]

    def limits_of(self, host: str, port: int) -> Limits:
        """Return the limits that apply to a site."""
        return self.limits if self.site_limits is None else self.site_limits.of(host, port)

    def may_reach(self, url: Url) -> bool:
        """Return whether any URL with the scheme, host and port of this one may be in the crawl space.

        This is for what is not a page, such as a redirected robots.txt. Domain rules, prefix rules that forbid a whole host, and
        the limits of scheme and scope apply; action rules don't.
        """
        limits = self.limits
        if url.scheme not in self.limits_of(url.host, url.port).schemes:
            return False
        if url.host not in self._start_hosts and (limits.index_entire_site or not limits.follow_offsite_links):
            return False
        try:
            by_domain = self._domain.match_url(url)
            by_prefix = self._prefix.match(url.text[: url.text.index("/", len(url.scheme) + 3) + 1] + _ANY_PATH)
            named = self._named_hosts.matching(url.host, url.port)
        except Exception:
            logger.exception("A host is refused, because a check failed: %.200s", url.text)
            return False
        if by_domain is not None and by_domain.action is RuleAction.FORBID:
            return False
        return by_prefix is None or by_prefix.action is RuleAction.ALLOW or named is not None

    def at_depth(self, decision: Decision, depth: int | None = None, host_count: int | None = None) -> Decision:
        """Return a static decision completed with the checks of link depth and of the host's number of URLs."""
        if not self._by_depth or (depth is None and host_count is None):
            return decision
        reason, rule, trace = decision.reason, decision.rule, decision.trace
        most = self.limits.max_urls_per_host
        for refusal, refused in (
            (Reason.LINK_DEPTH, None if depth is None else self.is_too_deep(depth)),
            (Reason.URLS_PER_HOST, None if host_count is None else most is not None and host_count >= most),
        ):
            if refused is None:
                continue
            trace = (*trace, (_REFUSED if refused else _PASSED)[refusal])
            if refused and reason is Reason.ADMITTED:
                reason, rule = refusal, None
        return Decision(reason, rule, trace, decision.index, decision.follow, decision.shift, decision.actions)

    def at_connect(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made to an address that a host has resolved to.

        Address rules come first. If none applies, public addresses are allowed, internal ones are allowed for the hosts of start
        URLs (on any port) and for hosts that an allow rule names, and metadata services are refused.
        """
        try:
            version, value = address_value(address)
        except ValueError:
            return Decision(Reason.CHECK_FAILED, None, (Step(Reason.ADDRESS, Verdict.REFUSE),))
        rule = self._address.deciding(version, value)
        if rule is not None and not self._is_lifted(rule, host, port):
            step = _step(Reason.ADDRESS, rule)
            return Decision(Reason.ADDRESS if step.verdict is Verdict.REFUSE else Reason.ADMITTED, rule.ref, (step,))
        passed = Step(Reason.ADDRESS, Verdict.PASS)
        kind = reach(version, value)
        if kind is Reach.INTERNAL:
            host = f"[{host}]" if ":" in host and not host.startswith("[") else host
            meant = self._named_hosts.naming(host, port)
            if meant is not None:
                return Decision(Reason.ADMITTED, meant.ref, (passed, Step(Reason.PRIVATE_ADDRESS, Verdict.ALLOW, meant.ref)))
        if kind is Reach.PUBLIC or (kind is Reach.INTERNAL and host.lower() in self._start_hosts):
            return Decision(Reason.ADMITTED, None, (passed, Step(Reason.PRIVATE_ADDRESS, Verdict.PASS)))
        refused = passed, Step(Reason.PRIVATE_ADDRESS, Verdict.REFUSE)
        return Decision(Reason.PRIVATE_ADDRESS, None, refused, lacks_domain_rule=kind is Reach.INTERNAL)

    def _is_lifted(self, rule: AddressRule, host: str, port: int) -> bool:
        """Return whether a rule that forbids all addresses does not hold for a host, because an allow rule names it."""
        if not self._named_hosts_any_address or rule.action is RuleAction.ALLOW or not rule.catch_all:
            return False
        return self._named_hosts.matching(f"[{host}]" if ":" in host and not host.startswith("[") else host, port) is not None

    def at_headers(self, content_type: str | None, *, site: str, conclusive: bool = False) -> Decision:
        """Return whether a document of a type is accepted of a site (`host:port`; empty: not known).

        A missing or generic type passes, because the first bytes decide then; `conclusive`: the type is that of the bytes.
        """
        host, _, port = site.rpartition(":")
        limits = self.limits_of(host, int(port)) if port else self.limits
        allowed = mime_allowed(limits.mime_types, content_type) or (not conclusive and is_generic(content_type))
        return _TYPE_ACCEPTED if allowed else _TYPE_REFUSED

    def _reasons_by_domain(self, url: Url) -> frozenset[Reason]:
        """Return the reasons that refuse a URL because of its host's domain rules, or because none of them allows the host.

        A host that no domain rule names is refused for a private address, and as the host of no start URL, too: those refusals
        follow from the missing rule. `allow domain *` names no host.
        """
        rule = self._domain.match_url(url)
        is_named = rule is not None and rule.action is RuleAction.ALLOW and rule.host.strip("*")
        return _BY_DOMAIN if is_named or url.host in self._start_hosts else _BY_DOMAIN_OR_SCOPE

    def is_refused_by_domain_only(self, url: Url, decision: Decision) -> bool:
        """Return whether domain rules alone refuse a URL, so that the global crawl space may keep its document."""
        if decision.reason not in _BY_DOMAIN_OR_SCOPE:
            return False
        reasons = self._reasons_by_domain(url)
        return decision.reason in reasons and all(
            step.verdict is not Verdict.REFUSE or step.check in reasons for step in decision.trace
        )

    def is_too_deep(self, depth: int) -> bool:
        """Return whether a depth exceeds the limit."""
        return self.limits.max_link_depth is not None and depth > self.limits.max_link_depth

    def _rule_checks(self, rules: CrawlRules) -> Iterator[Check]:
        domain, prefix, actions = self._domain, self._prefix, self.actions

        def by_domain(url: Url) -> Step | None:
            rule = domain.match_url(url)
            return None if rule is None else _step(Reason.DOMAIN, rule)

        def by_prefix(url: Url) -> Step | None:
            rule = prefix.match(url.text)
            return None if rule is None else _step(Reason.PREFIX, rule)

        yield Check(Reason.DOMAIN, by_domain, is_of_host=True)
        yield Check(Reason.PREFIX, by_prefix, is_of_host=not rules.prefix)
        if actions is not None:
            yield Check(Reason.ACTIONS, actions.evaluate)


_READ = Step(WELL_FORMED, Verdict.PASS)
_TYPE_ACCEPTED = Decision(Reason.ADMITTED, None, (Step(Reason.MIME_TYPE, Verdict.PASS),))
_TYPE_REFUSED = Decision(Reason.MIME_TYPE, None, (Step(Reason.MIME_TYPE, Verdict.REFUSE),))
_BY_DOMAIN = frozenset({Reason.DOMAIN})
_BY_DOMAIN_OR_SCOPE = frozenset({Reason.DOMAIN, Reason.OFFSITE, Reason.FOLDER})
_ANY_PATH = "\0"
"""Stands for all paths of a host: no rule contains it, so that only rules for the whole host apply."""
_PASSED = {reason: Step(reason, Verdict.PASS) for reason in Reason}
_REFUSED = {reason: Step(reason, Verdict.REFUSE) for reason in Reason}
# A link with a host of its own: after two slashes, with http, https or the base's scheme.
_OWN_HOST = re.compile(r"\s*(https?:)?[/\\]{2}", re.IGNORECASE)


def _absolute(text: str, base: str, base_host_as_written: str | None) -> tuple[str, str | None]:
    """Return a link made absolute, and its host as written, if that is known."""
    if not base:
        return text, base_host_as_written
    own = _OWN_HOST.match(text)
    if own is None:
        return join(base, text), base_host_as_written
    return text if own[1] else f"{base.partition(':')[0]}:{text.lstrip()}", None


def _step(check: Reason, rule: Rule) -> Step:
    return Step(check, Verdict.ALLOW if rule.action is RuleAction.ALLOW else Verdict.REFUSE, rule.ref)


def _as_step(result: Step | Actions) -> Step:
    if isinstance(result, Step):
        return result
    if not result.accept:
        return Step(Reason.ACTIONS, Verdict.REFUSE, result.rule)
    return Step(Reason.ACTIONS, Verdict.PASS if result.rule is None else Verdict.ALLOW, result.rule)


def _broken(check: Check, url: Url, error: Exception) -> Step:
    """Log the exception that a check has raised; return the refusal that is its result."""
    logger.error("A URL is refused, because the check %r failed: %.200s", check.reason.value, url.text, exc_info=error)
    return _REFUSED[check.reason]


def _decision(steps: Sequence[Step], found: Mapping[int, Step | Actions], broken: Collection[int]) -> Decision:
    """Return the decision that follows from the results of all checks.

    `found` are results, by index, that take the place of those in `steps`. `broken` are the indexes of checks that raised an
    exception.
    """
    reason, rule, actions = Reason.ADMITTED, None, NO_ACTIONS
    trace = list(steps)
    for index, result in found.items():
        trace[index] = _as_step(result)
        if isinstance(result, Actions):
            actions = result
    for index, step in enumerate(trace):
        if step.verdict is Verdict.REFUSE:
            reason = Reason.CHECK_FAILED if index in broken else Reason(step.check)
            rule = step.rule
            break
        rule = step.rule or rule
    return Decision(reason, rule, tuple(trace), actions.index, actions.follow, actions.shift, actions)


def _limits_of_url(limits: Limits) -> Iterator[Check]:
    schemes, longest, excluded = limits.schemes, limits.max_url_length, limits.exclude_extensions
    deepest, repeats = limits.max_path_depth, limits.max_repeated_segments
    yield Check(Reason.SCHEME, lambda url: None if url.scheme in schemes else _REFUSED[Reason.SCHEME], is_of_host=True)
    yield Check(Reason.URL_LENGTH, lambda url: _REFUSED[Reason.URL_LENGTH] if len(url.text) > longest else None)
    if limits.follow_query_strings:
        yield _no_limit(Reason.QUERY_STRING)
    else:
        yield Check(Reason.QUERY_STRING, lambda url: None if url.query is None else _REFUSED[Reason.QUERY_STRING])
    yield Check(Reason.EXTENSION, lambda url: _REFUSED[Reason.EXTENSION] if extension(url.path) in excluded else None)
    if deepest is None:
        yield _no_limit(Reason.PATH_DEPTH)
    else:
        yield Check(Reason.PATH_DEPTH, lambda url: _REFUSED[Reason.PATH_DEPTH] if path_depth(url.path) > deepest else None)
    if repeats is None:
        yield _no_limit(Reason.REPEATED_SEGMENTS)
    else:
        yield Check(
            Reason.REPEATED_SEGMENTS,
            lambda url: _REFUSED[Reason.REPEATED_SEGMENTS] if repeats_segments(url.path, repeats) else None,
        )


def _limits_of_scope(
    limits: Limits, hosts: frozenset[str], start_folders: frozenset[str], folding: UrlFolding | None
) -> Iterator[Check]:
    if limits.follow_offsite_links:
        yield _no_limit(Reason.OFFSITE)
    else:
        yield Check(Reason.OFFSITE, lambda url: None if url.host in hosts else _REFUSED[Reason.OFFSITE], is_of_host=True)
    if limits.index_entire_site:

        def by_folder(url: Url) -> Step | None:
            folder = url if folding is None else folding.as_folder(url)
            return None if in_folders(folder, start_folders) else _REFUSED[Reason.FOLDER]

        yield Check(Reason.FOLDER, by_folder)
    else:
        yield _no_limit(Reason.FOLDER)


def _no_limit(reason: Reason) -> Check:
    """Return a check for the trace of a limit that is not set."""
    return Check(reason, lambda _: None, is_of_host=True)


# --- The hash of the content ----------------------------------------------------------------------------------------


def content_hash(rules: CrawlRules, limits: Limits, *, more: Mapping[str, object]) -> str:
    """Return the hash of rules and limits, which changes whenever decisions may change. `more` is what else they depend on.

    Comments, blanks, spelling and line numbers have no effect; the order of rules of one type has.
    """
    content = {
        "format": 1,
        "domain": _Texts(rules.domain),
        "prefix": _Texts(rules.prefix),
        "address": _Texts(rules.address),
        "limits": limits.as_json(),
        **more,
    }
    hashed = blake2b(digest_size=16)
    for text in _as_json(content):
        hashed.update(text.encode())
    return hashed.hexdigest()


class _Texts(NamedTuple):
    """The rules of one list as a list of texts, generated one at a time."""

    rules: Sequence[Rule]


def _as_json(content: Mapping[str, object]) -> Iterator[str]:
    """Yield the parts of `json.dumps` of a mapping, keys sorted."""
    before = "{"
    for key in sorted(content):
        value = content[key]
        yield f"{before}{json.dumps(key)}: "
        before = ", "
        if isinstance(value, _Texts):
            yield "["
            for number, rule in enumerate(value.rules):
                yield f"{', ' if number else ''}{json.dumps(f'{rule.action} {rule.target}')}"
            yield "]"
        else:
            yield json.dumps(value, sort_keys=True)
    yield "}"
