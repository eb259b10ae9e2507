"""The crawl space of a collection: every rule and limit, in one order, behind one question.

What is asked at discovery, before a fetch, at start-up over the stored URLs and by `scrapy explain` is answered here, so the answers
can't differ. Every check is made, also after one has refused: the first refusal is the reason, and the trace shows the others. That is
also how a URL that leaves the space for a domain rule alone is told from one that a prefix rule or limit refuses as well.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from crawlspace.content_type import is_generic
from crawlspace.decision import NOTHING_SAID, Actions, Decision, Reason, RuleRef, Step, Verdict
from crawlspace.rules.address import AddressMatcher, address_value
from crawlspace.rules.content_hash import content_hash
from crawlspace.rules.crawl_rules import Action, CrawlRules, DomainRule, PrefixRule, Rule
from crawlspace.rules.domain import DomainMatcher
from crawlspace.rules.limits import (
    Limits,
    extension,
    folders,
    in_folders,
    mime_allowed,
    path_depth,
    repeats_segments,
)
from crawlspace.rules.named_hosts import NamedHosts
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.private_networks import Reach, reach
from crawlspace.urls import MalformedUrl, Url, UrlWithCredentials, join, parse

logger = logging.getLogger(__name__)

WELL_FORMED = "well_formed"
"""The name of the first check in a trace; the others are named like their reasons."""


class ActionRules(Protocol):
    """Rules that set flags of a URL rather than only letting it in."""

    content_hash: str
    """Differs where answers could."""

    def evaluate(self, url: Url) -> Actions:
        """Return what the rules say of a URL; it must depend on nothing else."""


class SiteLimits(Protocol):
    """Limits that differ from site to site."""

    content_hash: str

    def of(self, host: str, port: int) -> Limits:
        """The limits that hold for URLs of a site."""

    def all(self) -> Iterable[Limits]:
        """Every value `of` can return."""


class Parts(NamedTuple):
    """What a crawl space is made of beside `limits`, for whoever has to decide over a million URLs."""

    domain: DomainMatcher
    prefix: PrefixMatcher
    actions: ActionRules | None
    site_limits: SiteLimits | None
    start_hosts: frozenset[str]
    start_folders: frozenset[str]
    start_urls: frozenset[str]
    """Their texts in normal form; empty where no limit depends on the distance from them."""


class CrawlSpace:
    """Compiled once, never changed."""

    def __init__(
        self,
        rules: CrawlRules,
        limits: Limits,
        start_urls: Sequence[Url],
        *,
        host_case_sensitive: bool = True,
        actions: ActionRules | None = None,
        site_limits: SiteLimits | None = None,
    ) -> None:
        self.limits = limits
        self._site_limits = site_limits
        self._domain = DomainMatcher(rules.domain, case_sensitive=host_case_sensitive)
        self._prefix = PrefixMatcher(rules.prefix)
        self._address = AddressMatcher(rules.address)
        self._actions = actions
        self._start_hosts = frozenset(url.host for url in start_urls)
        self._named_hosts = NamedHosts(rules)
        start_folders = folders(start_urls)
        nearest = frozenset(url.text for url in start_urls) if limits.max_link_depth is not None else frozenset()
        self._limits = _limits_of_url(limits)
        self._limits_there = {own: _limits_of_url(own) for own in (site_limits.all() if site_limits is not None else ())}
        self._scope = _limits_of_scope(limits, self._start_hosts, start_folders)
        self.parts = Parts(self._domain, self._prefix, actions, site_limits, self._start_hosts, start_folders, nearest)
        self._by_depth = limits.max_link_depth is not None or limits.max_urls_per_host is not None
        self.has_address_rules = bool(rules.address)
        self.content_hash = content_hash(
            rules,
            limits,
            beside={
                "hosts": sorted(self._start_hosts),
                "folders": sorted(start_folders) if limits.index_entire_site else [],
                **({"starts": sorted(nearest)} if nearest else {}),
                "host_case_sensitive": host_case_sensitive,
                "actions": "" if actions is None else actions.content_hash,
                "sites": "" if site_limits is None else site_limits.content_hash,
            },
        )
        """Hexadecimal; another value means that some decision could be another."""

    def decide(
        self,
        text: str,
        *,
        base: str = "",
        base_host_as_written: str | None = None,
        depth: int | None = None,
        host_count: int | None = None,
    ) -> tuple[Url | None, Decision]:
        """Return the URL a link means, and whether it is in the crawl space; no URL if it is malformed.

        A link without a host of its own has its base's, as that was written; without `base`, `base_host_as_written` is how the
        text's own host was written. `depth` and `host_count` unknown: what depends on them is not checked.
        """
        try:
            url = _resolve(text, base, base_host_as_written)
        except MalformedUrl as error:
            reason = Reason.CREDENTIALS if isinstance(error, UrlWithCredentials) else Reason.MALFORMED
            return None, Decision(reason, None, (Step(WELL_FORMED, Verdict.REFUSE),))
        except Exception:
            logger.exception("A URL is kept out, because reading it failed: %.200r", text)
            return None, Decision(Reason.CHECK_FAILED, None, (Step(WELL_FORMED, Verdict.REFUSE),))
        return url, self.decide_url(url, depth=depth, host_count=host_count)

    def decide_url(self, url: Url, *, depth: int | None = None, host_count: int | None = None) -> Decision:
        """Return whether a URL is in the crawl space."""
        return self.at_depth(self.decide_static(url), depth, host_count)

    def decide_static(self, url: Url) -> Decision:
        """Return the decision as far as it depends on the URL alone, so that it can be remembered for the URL."""
        trial = _Trial(url)
        trial.limits(self._limits if self._site_limits is None else self._limits_there[self._site_limits.of(url.host, url.port)])
        trial.ask(Reason.DOMAIN, self._domain.match_url)
        trial.ask(Reason.PREFIX, self._match_prefix)
        if self._actions is not None:
            trial.act(self._actions)
        trial.limits(self._scope)
        return trial.decision()

    def may_reach(self, url: Url) -> bool:
        """Return whether some URL with the scheme, host and port of this one may be in the crawl space, whatever its path and query.

        That is for what is no page itself, such as a robots.txt that lies elsewhere. Hosts are kept out by domain rules, by prefix
        rules that forbid all of a host, and by the limits of scheme and scope; action rules are not asked.
        """
        limits = self.limits
        own = limits if self._site_limits is None else self._site_limits.of(url.host, url.port)
        if url.scheme not in own.schemes:
            return False
        if url.host not in self._start_hosts and (limits.index_entire_site or not limits.follow_offsite_links):
            return False
        try:
            by_domain = self._domain.match_url(url)
            by_prefix = self._prefix.match(url.text[: url.text.index("/", len(url.scheme) + 3) + 1] + _ANY_PATH)
            named = self._named_hosts.matching(url.host, url.port)
        except Exception:
            logger.exception("A host is kept out, because a check failed: %.200s", url.text)
            return False
        if by_domain is not None and by_domain.action is Action.FORBID:
            return False
        return by_prefix is None or by_prefix.action is Action.ALLOW or named is not None

    def at_depth(self, decision: Decision, depth: int | None = None, host_count: int | None = None) -> Decision:
        """Return a static decision completed by the distance from a start URL and the number of URLs its host already has."""
        if not self._by_depth or (depth is None and host_count is None):
            return decision
        reason, rule, trace = decision.reason, decision.rule, decision.trace
        for refusal, number, bound in (
            (Reason.LINK_DEPTH, depth, self.limits.max_link_depth),
            (Reason.URLS_PER_HOST, None if host_count is None else host_count + 1, self.limits.max_urls_per_host),
        ):
            if number is None:
                continue
            refused = bound is not None and number > bound
            trace = (*trace, Step(refusal, Verdict.REFUSE if refused else Verdict.PASS))
            if refused and reason is Reason.ADMITTED:
                reason, rule = refusal, None
        return Decision(reason, rule, trace, decision.index, decision.follow, decision.shift, decision.said)

    def at_connect(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made to an address that a host has resolved to.

        Address rules come first and have the last word. Where none applies, public addresses are open, internal ones are open to
        the hosts of start URLs (on any port) and to hosts that an allow rule names, and metadata services are closed.
        """
        try:
            version, value = address_value(address)
        except ValueError:
            return Decision(Reason.CHECK_FAILED, None, (Step(Reason.ADDRESS, Verdict.REFUSE),))
        rule = self._address.deciding(version, value)
        if rule is not None:
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
        return Decision(Reason.PRIVATE_ADDRESS, None, (passed, Step(Reason.PRIVATE_ADDRESS, Verdict.REFUSE)))

    def at_headers(self, content_type: str | None, *, conclusive: bool = False) -> Decision:
        """Return whether a document of a type is to be taken.

        A header that is missing or says nothing lets it pass, for the first bytes to decide; `conclusive` is for a type that the
        bytes have given.
        """
        allowed = mime_allowed(self.limits.mime_types, content_type) or (not conclusive and is_generic(content_type))
        return _TYPE_TAKEN if allowed else _TYPE_REFUSED

    def _match_prefix(self, url: Url) -> PrefixRule | None:
        return self._prefix.match(url.text)


class _Limit(NamedTuple):
    reason: Reason
    holds: Callable[[Url], bool]
    passed: Step
    refused: Step


class _Trial:
    """One URL on its way through the checks. A check that breaks refuses."""

    __slots__ = ("_reason", "_rule", "_said", "_steps", "_url")

    def __init__(self, url: Url) -> None:
        self._url = url
        self._reason = Reason.ADMITTED
        self._rule: RuleRef | None = None
        self._said = NOTHING_SAID
        self._steps = [_READ]

    def limits(self, limits: Sequence[_Limit]) -> None:
        for reason, holds, passed, refused in limits:
            try:
                if holds(self._url):
                    self._steps.append(passed)
                else:
                    self._refuse(reason, refused)
            except Exception as error:  # noqa: BLE001
                self._failed(reason, error)

    def ask(self, reason: Reason, first_rule: Callable[[Url], DomainRule | PrefixRule | None]) -> None:
        try:
            rule = first_rule(self._url)
        except Exception as error:  # noqa: BLE001
            self._failed(reason, error)
            return
        step = _step(reason, rule)
        if step.verdict is Verdict.REFUSE:
            self._refuse(reason, step)
        else:
            self._pass(step)

    def act(self, actions: ActionRules) -> None:
        try:
            said = actions.evaluate(self._url)
        except Exception as error:  # noqa: BLE001
            self._failed(Reason.ACTIONS, error)
            return
        self._said = said
        if said.accept:
            self._pass(Step(Reason.ACTIONS, Verdict.PASS if said.rule is None else Verdict.ALLOW, said.rule))
        else:
            self._refuse(Reason.ACTIONS, Step(Reason.ACTIONS, Verdict.REFUSE, said.rule))

    def decision(self) -> Decision:
        said = self._said
        return Decision(self._reason, self._rule, tuple(self._steps), said.index, said.follow, said.shift, said)

    def _pass(self, step: Step) -> None:
        self._steps.append(step)
        if step.rule is not None and self._reason is Reason.ADMITTED:
            self._rule = step.rule

    def _refuse(self, reason: Reason, step: Step) -> None:
        self._steps.append(step)
        if self._reason is Reason.ADMITTED:
            self._reason, self._rule = reason, step.rule

    def _failed(self, check: Reason, error: Exception) -> None:
        logger.error("A URL is kept out, because the check %r failed: %.200s", check.value, self._url.text, exc_info=error)
        self._refuse(Reason.CHECK_FAILED, Step(check, Verdict.REFUSE))


_READ = Step(WELL_FORMED, Verdict.PASS)
_TYPE_TAKEN = Decision(Reason.ADMITTED, None, (Step(Reason.MIME_TYPE, Verdict.PASS),))
_TYPE_REFUSED = Decision(Reason.MIME_TYPE, None, (Step(Reason.MIME_TYPE, Verdict.REFUSE),))
_ANY_PATH = "\0"
"""Stands for all paths of a host: no rule contains it, so that only one for the whole host applies."""
_NO_RULE = {reason: Step(reason, Verdict.PASS) for reason in (Reason.DOMAIN, Reason.PREFIX)}
# Where a link has a host of its own: behind two slashes, with http or https or the base's scheme.
_OWN_HOST = re.compile(r"\s*(https?:)?[/\\]{2}", re.IGNORECASE)


def refused_by_domain_only(decision: Decision) -> bool:
    """Return whether domain rules are all that keeps a URL out, so that a global crawl space may keep its document."""
    return decision.reason is Reason.DOMAIN and all(
        step.verdict is not Verdict.REFUSE or step.check == Reason.DOMAIN for step in decision.trace
    )


def _resolve(text: str, base: str, base_host_as_written: str | None) -> Url:
    if not base:
        return parse(text, host_as_written=base_host_as_written)
    own = _OWN_HOST.match(text)
    if own is None:
        return parse(join(base, text), host_as_written=base_host_as_written)
    return parse(text if own[1] else f"{base.partition(':')[0]}:{text.lstrip()}")


def _step(check: Reason, rule: Rule | None) -> Step:
    if rule is None:
        return _NO_RULE[check]
    return Step(check, Verdict.ALLOW if rule.action is Action.ALLOW else Verdict.REFUSE, rule.ref)


def _limits_of_url(limits: Limits) -> tuple[_Limit, ...]:
    deepest, repeats = limits.max_path_depth, limits.max_repeated_segments
    return (
        _limit(Reason.SCHEME, lambda url: url.scheme in limits.schemes),
        _limit(Reason.URL_LENGTH, lambda url: len(url.text) <= limits.max_url_length),
        _limit(Reason.QUERY_STRING, lambda url: limits.follow_query_strings or url.query is None),
        _limit(Reason.EXTENSION, lambda url: extension(url.path) not in limits.exclude_extensions),
        _limit(Reason.PATH_DEPTH, lambda url: deepest is None or path_depth(url.path) <= deepest),
        _limit(Reason.REPEATED_SEGMENTS, lambda url: repeats is None or not repeats_segments(url.path, repeats)),
    )


def _limits_of_scope(limits: Limits, hosts: frozenset[str], start_folders: frozenset[str]) -> tuple[_Limit, ...]:
    return (
        _limit(Reason.OFFSITE, lambda url: limits.follow_offsite_links or url.host in hosts),
        _limit(Reason.FOLDER, lambda url: not limits.index_entire_site or in_folders(url, start_folders)),
    )


def _limit(reason: Reason, holds: Callable[[Url], bool]) -> _Limit:
    return _Limit(reason, holds, Step(reason, Verdict.PASS), Step(reason, Verdict.REFUSE))
