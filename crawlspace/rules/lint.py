"""What loads but is suspicious: rules that can't do what their writer meant.

Findings of level `error` keep a crawl from starting or from finding anything; a `warning` is for a person to judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from crawlspace.decision import RuleRef
from crawlspace.rules.address import AddressMatcher
from crawlspace.rules.crawl_rules import Action, AddressRule, CrawlRules, DomainRule, PrefixRule, Rule
from crawlspace.rules.domain import DomainMatcher
from crawlspace.rules.limits import Limits
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import DEFAULT_PORTS, Url

START_URLS = "start URLs"
"""The file of findings about start URLs of which no place is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` and `column` count from 1; 0 where there is no place to point at. `code` is stable, `message` is not."""

    file: str
    line: int
    column: int
    level: Literal["error", "warning"]
    code: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.level}: {self.message} [{self.code}]"


def lint_rules(
    rules: CrawlRules,
    limits: Limits,
    start_urls: Sequence[Url],
    *,
    host_case_sensitive: bool = True,
    proxy: bool = False,
    start_refs: Sequence[RuleRef] = (),
) -> list[Finding]:
    """Return what is suspicious, by file and line.

    `proxy` says that requests go through one; `start_refs` are the places of `start_urls`, in their order, if they are known.
    """
    space = CrawlSpace(rules, limits, start_urls, host_case_sensitive=host_case_sensitive)
    domain = DomainMatcher(rules.domain, case_sensitive=host_case_sensitive)
    findings = [
        *_never_applying(rules, domain),
        *_no_domain_rules(rules, limits),
        *_open_ends(rules),
        *_prefix_hosts(rules),
        *_addresses_behind_proxy(rules, proxy=proxy),
        *_refused_start_urls(space, start_urls, start_refs),
    ]
    if host_case_sensitive:
        findings += _capitals(rules)
    return sorted(findings, key=lambda finding: (finding.file, finding.line, finding.column, finding.code))


def _never_applying(rules: CrawlRules, domain: DomainMatcher) -> Iterator[Finding]:
    """A rule that one earlier rule of its list covers. One that only several earlier rules cover together is not found."""
    prefix = PrefixMatcher(rules.prefix)
    address = AddressMatcher(rules.address)
    pairs: list[tuple[Rule, Rule | None]] = [(rule, domain.covering(rule)) for rule in rules.domain]
    pairs += [(rule, prefix.covering(rule)) for rule in rules.prefix]
    pairs += [(rule, address.covering(rule)) for rule in rules.address]
    for rule, covering in pairs:
        if covering is None or covering is rule:
            continue
        if covering.action is rule.action:
            advice = "it changes nothing and can go"
        else:
            advice = f"to have an effect it must stand before line {covering.ref.line}"
        message = (
            f"{rule.ref.text!r} never applies, because {covering.ref.text!r} in line {covering.ref.line} covers it; {advice}"
        )
        yield _finding(rule, "never-applies", message)


def _no_domain_rules(rules: CrawlRules, limits: Limits) -> Iterator[Finding]:
    if not rules.domain and limits.follow_offsite_links and not limits.index_entire_site:
        message = "no domain rule keeps the crawl to your hosts, so it may spread over the whole Internet; end them in 'forbid domain *'"
        yield Finding("crawl.rules", 1, 1, "warning", "no-domain-rules", message)


def _open_ends(rules: CrawlRules) -> Iterator[Finding]:
    """A domain or address list that doesn't end in a rule that forbids the rest."""
    if rules.domain and not any(rule.catch_all and rule.action is Action.FORBID for rule in rules.domain):
        message = "the domain rules do not end in 'forbid domain *', so the crawl may spread over the whole Internet"
        yield _finding(rules.domain[-1], "no-final-forbid", message)
    if not rules.address:
        return
    for version, everything in ((4, "0.0.0.0 0.0.0.0"), (6, ":: ::")):
        of_version = [rule for rule in rules.address if rule.version == version]
        if any(rule.catch_all and rule.action is Action.FORBID for rule in of_version):
            continue
        message = f"the address rules do not end in 'forbid address {everything}', so every other IPv{version} address is open"
        yield _finding((of_version or rules.address)[-1], "no-final-forbid", message)


def _capitals(rules: CrawlRules) -> Iterator[Finding]:
    for rule in rules.domain:
        if rule.host != rule.host.lower():
            message = f"{rule.host!r} has capitals: hosts are compared as written in the link, and most links have none"
            yield _finding(rule, "capitals-in-host", message)


def _prefix_hosts(rules: CrawlRules) -> Iterator[Finding]:
    """Prefix rules that depend on the host in a way that is easily missed."""
    domain = DomainMatcher(rules.domain, case_sensitive=False)
    for rule in rules.prefix:
        if "*" in rule.host:
            if rule.action is Action.ALLOW and rule.host.strip("*"):
                message = f"the * in {rule.host!r} also stands for slashes, so the rule allows other hosts too; use domain rules for hosts"
                yield _finding(rule, "open-host", message)
            continue
        authority = rule.pattern.partition("://")[2].partition("/")[0]
        port = authority[len(rule.host) + 1 :] or str(DEFAULT_PORTS[rule.pattern.partition(":")[0]])
        forbidding = None if "*" in port else domain.match(rule.host, int(port))
        if forbidding is not None and forbidding.action is Action.FORBID:
            message = f"the rule has no effect, because {forbidding.ref.text!r} in line {forbidding.ref.line} forbids its host"
            yield _finding(rule, "host-forbidden", message)


def _addresses_behind_proxy(rules: CrawlRules, *, proxy: bool) -> Iterator[Finding]:
    if proxy and rules.address:
        message = "address rules are not applied to requests that go through a proxy, which resolves the names itself"
        yield _finding(rules.address[0], "addresses-with-proxy", message)


def _refused_start_urls(space: CrawlSpace, start_urls: Sequence[Url], refs: Sequence[RuleRef]) -> Iterator[Finding]:
    """An error if no start URL is left, for then there is nothing to crawl."""
    decisions = [(number, url, space.decide_url(url, depth=0)) for number, url in enumerate(start_urls)]
    refused = [found for found in decisions if not found[2].admitted]
    level: Literal["error", "warning"] = "error" if len(refused) == len(decisions) else "warning"
    for number, url, decision in refused:
        by = f" by {decision.rule} ({decision.rule.text})" if decision.rule else ""
        message = f"the start URL {url.text} is refused{by}: {decision.reason.sentence}"
        ref = refs[number] if number < len(refs) else RuleRef(START_URLS, 0, "")
        yield Finding(ref.file, ref.line, 1 if ref.line else 0, level, "start-url-refused", message)


def _finding(rule: DomainRule | PrefixRule | AddressRule, code: str, message: str) -> Finding:
    return Finding(rule.ref.file, rule.ref.line, rule.column, "warning", code, message)
