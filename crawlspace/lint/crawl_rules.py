"""Warnings about a valid crawl.rules: rules without the intended effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from crawlspace.decision import RuleRef
from crawlspace.lint.finding import Finding, Level
from crawlspace.rules.address import AddressMatcher
from crawlspace.rules.crawl_rules import AddressRule, CrawlRules, DomainRule, PrefixRule, Rule, RuleAction
from crawlspace.rules.domain import DomainMatcher, names_no_site
from crawlspace.rules.limits import Limits
from crawlspace.rules.patterns import Budget
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.space import CrawlSpace
from crawlspace.text import MESSAGE, cut, printable, quoted
from crawlspace.urls import DEFAULT_PORTS, Url

START_URLS = "start URLs"
"""The `file` of findings about start URLs whose place is unknown."""

COMPARED, _COMPARED_EACH = 1_000_000, 20
"""Maximal patterns compared one by one in search of covering ones, in total and in addition for each rule: thousands of patterns
made of the same few literals would take minutes."""

_EXTENSIONS = frozenset(
    "asp aspx cgi csv doc docx gif htm html jpg jpeg jsp ods odt pdf php png ppt pptx rtf txt xls xlsx xml".split()
)
_MOST_CROSSING = 10
"""Rules with a * in a path segment that are explained one by one."""


def lint_rules(
    rules: CrawlRules,
    limits: Limits,
    *,
    host_case_sensitive: bool = True,
    proxied: str = "",
    accepts_all: bool = True,
    of_addresses: bool = False,
) -> list[Finding]:
    """Return the findings of a crawl.rules, by file and line; `proxied`: the sites that are requested through a proxy, if any.

    `accepts_all`: rules.xml need not accept a URL; where it must, domain rules without an end let nothing in. `of_addresses`: address
    rules take the place of that end (CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS).
    """
    is_open = accepts_all and _leaves_its_hosts(limits) and not (of_addresses and rules.address)
    domain = DomainMatcher(rules.domain, case_sensitive=host_case_sensitive)
    findings = [
        *_never_applying(rules, domain),
        *_no_domain_rules(rules, is_open=is_open),
        *_open_ends(rules, is_open=is_open),
        *(_named_or_by_address(rules) if of_addresses else ()),
        *_prefix_hosts(rules),
        *_extensions_as_hosts(rules.prefix),
        *_hosts_of_anybody(rules),
        *_crossing_stars(rules.prefix),
        *_addresses_behind_proxy(rules, proxied),
    ]
    if host_case_sensitive:
        findings += _capitals(rules)
    return sorted(findings, key=lambda finding: finding.order)


def lint_start_urls(space: CrawlSpace, start_urls: Sequence[Url], refs: Sequence[RuleRef] = ()) -> Iterator[Finding]:
    """Yield the start URLs outside the crawl space: as errors if none is left, because then nothing is crawled.

    `refs` are their places, in the same order, if known.
    """
    decisions = [(number, url, space.decide_url(url, depth=0)) for number, url in enumerate(start_urls)]
    refused = [found for found in decisions if not found[2].admitted]
    level: Level = "error" if len(refused) == len(decisions) else "warning"
    for number, url, decision in refused:
        by = f" by {decision.rule} ({printable(decision.rule.text)})" if decision.rule else ""
        message = f"the start URL {printable(url.text)} is refused{by}: {decision.reason.sentence}"
        ref = refs[number] if number < len(refs) else RuleRef(START_URLS, 0, "")
        yield Finding(ref.file, ref.line, 1 if ref.line else 0, level, "start-url-refused", message)


def _never_applying(rules: CrawlRules, domain: DomainMatcher) -> Iterator[Finding]:
    """Yield rules that one earlier rule of the list covers; several earlier rules that cover one together are not found."""
    prefix = PrefixMatcher(rules.prefix)
    address = AddressMatcher(rules.address)
    budget = Budget(COMPARED + _COMPARED_EACH * (len(rules.domain) + len(rules.prefix)))
    pairs: Iterator[tuple[Rule, Rule | None]] = chain(
        ((rule, domain.covering(rule, budget)) for rule in rules.domain),
        ((rule, prefix.covering(rule, budget)) for rule in rules.prefix),
        ((rule, address.covering(rule)) for rule in rules.address),
    )
    for rule, covering in pairs:
        if covering is None or covering is rule:
            continue
        if covering.action is rule.action:
            advice = "it changes nothing and can go"
        else:
            advice = f"to have an effect it must come before line {covering.ref.line}"
        message = f"{quoted(rule.ref.text)} never applies, because {quoted(covering.ref.text)} in line {covering.ref.line} covers it; {advice}"
        yield _finding(rule, "never-applies", message)


def _no_domain_rules(rules: CrawlRules, *, is_open: bool) -> Iterator[Finding]:
    if not rules.domain and is_open:
        message = "no domain rule keeps the crawl to your hosts, so it may spread over the whole Internet; end them in 'forbid domain *'"
        yield Finding("crawl.rules", 1, 1, "warning", "no-domain-rules", message)


def _leaves_its_hosts(limits: Limits) -> bool:
    """Return whether the limits let a crawl follow links to hosts without a start URL."""
    return limits.follow_offsite_links and not limits.index_entire_site


def _open_ends(rules: CrawlRules, *, is_open: bool) -> Iterator[Finding]:
    """Yield domain and address lists that don't end in a rule that forbids the rest."""
    forbidden = any(rule.catch_all and rule.action is RuleAction.FORBID for rule in rules.domain)
    if rules.domain and not forbidden and is_open:
        message = "the domain rules do not end in 'forbid domain *', so the crawl may spread over the whole Internet"
        yield _finding(rules.domain[-1], "no-final-forbid", message)
    if not rules.address:
        return
    for version, everything in ((4, "0.0.0.0 0.0.0.0"), (6, ":: ::")):
        of_version = [rule for rule in rules.address if rule.version == version]
        if any(rule.catch_all and rule.action is RuleAction.FORBID for rule in of_version):
            continue
        message = f"the address rules do not end in 'forbid address {everything}', so every other IPv{version} address is open"
        yield _finding((of_version or rules.address)[-1], "no-final-forbid", message)


def _named_or_by_address(rules: CrawlRules) -> Iterator[Finding]:
    """Yield what keeps CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS from having hosts crawled by their names or by their addresses."""
    setting = "CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS"
    allowed = next((rule for rule in rules.address if rule.action is RuleAction.ALLOW), None)
    listed: tuple[DomainRule | PrefixRule, ...] = (*rules.domain, *rules.prefix)
    names_hosts = any(rule.action is RuleAction.ALLOW and rule.host.strip("*") for rule in listed)
    if not any(rule.catch_all and rule.action is RuleAction.FORBID for rule in rules.address):
        why = "no rule forbids all addresses, as 'forbid address 0.0.0.0 0.0.0.0' and 'forbid address :: ::' do"
        yield Finding("crawl.rules", 1, 1, "warning", "named-hosts", f"{setting} has no effect, because {why}")
    elif not names_hosts:
        why = "no allow rule names a host; start URLs name none: write 'allow domain' with each host that may have any address"
        yield Finding("crawl.rules", 1, 1, "warning", "named-hosts", f"{setting} has no effect, because {why}")
    for rule in rules.domain:
        if rule.catch_all and rule.action is RuleAction.FORBID and allowed is not None:
            message = (
                f"{quoted(rule.ref.text)} refuses the hosts that only {quoted(allowed.ref.text)} in line {allowed.ref.line} lets in:"
                f" with {setting} leave it out, for 'forbid address' ends the rules"
            )
            yield _finding(rule, "named-hosts", message)


def _capitals(rules: CrawlRules) -> Iterator[Finding]:
    for rule in rules.domain:
        if rule.host != rule.host.lower():
            message = f"{quoted(rule.host)} has capitals: hosts are compared as written in the link, and most links have none"
            yield _finding(rule, "capitals-in-host", message)


def _prefix_hosts(rules: CrawlRules) -> Iterator[Finding]:
    """Yield prefix rules whose effect depends on the host in a way that is easily missed."""
    domain = DomainMatcher(rules.domain, case_sensitive=False)
    for rule in rules.prefix:
        if "*" in rule.host:
            if rule.action is RuleAction.ALLOW and rule.host.strip("*"):
                message = f"the * in {quoted(rule.host)} also matches slashes, so the rule allows other hosts too; use domain rules for hosts"
                yield _finding(rule, "open-host", message)
            continue
        authority = rule.pattern.partition("://")[2].partition("/")[0]
        port = authority[len(rule.host) + 1 :] or str(DEFAULT_PORTS[rule.pattern.partition(":")[0]])
        forbidding = None if "*" in port else domain.match(rule.host, int(port))
        if forbidding is not None and forbidding.action is RuleAction.FORBID:
            message = (
                f"the rule has no effect, because {quoted(forbidding.ref.text)} in line {forbidding.ref.line} forbids its host"
            )
            yield _finding(rule, "host-forbidden", message)


def _extensions_as_hosts(rules: Sequence[PrefixRule]) -> Iterator[Finding]:
    """Yield prefix rules whose host ends in what hardly is one, as `http://*.pdf`."""
    for rule in rules:
        extension = rule.host.rpartition(".")[2]
        if "*" in rule.host and extension in _EXTENSIONS and rule.pattern.endswith(f".{extension}/"):
            written = rule.pattern.removesuffix("/")
            message = f"{quoted(written)} ends with the host, which {quoted(rule.host)} must match; for files write {quoted(f'{written}*')}"
            yield _finding(rule, "extension-as-host", message)


def _hosts_of_anybody(rules: CrawlRules) -> Iterator[Finding]:
    """Yield allow rules that name no site, so that they allow no private addresses."""
    listed: tuple[DomainRule | PrefixRule, ...] = (*rules.domain, *rules.prefix)
    for rule in listed:
        if rule.action is RuleAction.ALLOW and names_no_site(rule.host):
            message = (
                f"{quoted(rule.host)} matches hosts that anybody can have, so it opens no private addresses; end it in a domain of yours, "
                "as in *.example.com"
            )
            yield _finding(rule, "hosts-of-anybody", message)


def _crossing_stars(rules: Sequence[PrefixRule]) -> Iterator[Finding]:
    """Yield the first prefix rules with a * in a path segment, which hardly is meant for slashes, and the number of the others."""
    crossing = [(rule, found) for rule in rules if (found := star_in_segment(rule.pattern)) is not None]
    for rule, found in crossing[:_MOST_CROSSING]:
        message = (
            f"the * also matches slashes, so that the rule applies to {printable(found.also)}, too; for one path segment "
            f"rules.xml has <Path val={quoteattr(found.value)}/>"
        )
        yield _finding(rule, "star-crosses-slashes", cut(message, MESSAGE))
    if others := crossing[_MOST_CROSSING:]:
        message = f"the * also matches slashes here, and in {len(others) - 1:,} rules after this one"
        yield _finding(others[0][0], "star-crosses-slashes", message)


def _addresses_behind_proxy(rules: CrawlRules, proxied: str) -> Iterator[Finding]:
    if proxied and rules.address:
        message = (
            f"address rules are not applied to {printable(proxied)}: requests go through a proxy, which resolves the names itself"
        )
        yield _finding(rules.address[0], "addresses-with-proxy", message)


def _finding(rule: DomainRule | PrefixRule | AddressRule, code: str, message: str) -> Finding:
    return Finding(rule.ref.file, rule.ref.line, rule.column, "warning", code, message)


class CrossingStar(NamedTuple):
    """URLs that a rule with such a star matches."""

    also: str
    """A URL that it matches over several segments."""
    value: str
    """The value of a Path in rules.xml that matches one segment."""


def star_in_segment(pattern: str) -> CrossingStar | None:
    """Return what a star in a whole segment matches; None where there is none, or where one segment would make no difference.

    `pattern` is that of a prefix rule. A segment that is nothing but a star stands for any number of them, and what is before the
    end of the pattern is no whole segment.
    """
    if "*" not in pattern or "?" in pattern:
        return None
    scheme, _, rest = pattern.partition("://")
    authority, _, path = rest.partition("/")
    segments = path.split("/")
    index = next((index for index, segment in enumerate(segments[:-1]) if _differs(segments, index, segment)), None)
    if index is None:
        return None
    several = [segment.replace("*", "a/b/x", 1) if at == index else segment for at, segment in enumerate(segments)]
    also = "/".join([f"{scheme}://{authority}", *several]).replace("*", "c")
    value = "/".join(["", *(_value(segment, is_whole=at < len(segments) - 1) for at, segment in enumerate(segments))])
    return CrossingStar(f"{also}c" if also.endswith("/") else also, value)


def _differs(segments: Sequence[str], index: int, segment: str) -> bool:
    """Return whether a segment has a star, and fewer URLs would match if it did not match slashes."""
    if "*" not in segment or segment == "*":
        return False
    if segment.count("*") > 1:
        return True
    is_last = segments[index + 1 :] == [""]
    return not (
        (segment.endswith("*") and (is_last or segments[index + 1] == "*"))
        or (segment.startswith("*") and index > 0 and segments[index - 1] == "*")
    )


def _value(segment: str, *, is_whole: bool) -> str:
    return segment.replace("*", r"\[\^/\]\*" if is_whole and segment != "*" else r"\.\*")
