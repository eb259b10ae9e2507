"""The hosts named by allow rules, which may have private addresses.

The owner of a name can point it to a private address. So a rule allows private addresses only for hosts of an owner that it
names: a full host name, or all hosts below a registrable domain. `*`, `*.com` or `*e*` match names of anybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, RuleAction
from crawlspace.rules.domain import DomainMatcher


class NamedHosts:
    """Immutable after compilation."""

    def __init__(self, rules: CrawlRules) -> None:
        named = [rule for rule in rules.domain if rule.action is RuleAction.ALLOW]
        of_prefixes: dict[str, DomainRule] = {}
        for rule in rules.prefix:
            if rule.action is RuleAction.ALLOW and rule.host not in of_prefixes:
                of_prefixes[rule.host] = DomainRule(rule.action, rule.host, None, rule.ref)
        named += of_prefixes.values()
        named = [rule for rule in named if rule.host.strip("*")]
        named.sort(key=_specificity, reverse=True)  # so that the most specific match comes first
        self._matcher = DomainMatcher(named, case_sensitive=False)

    def matching(self, host: str, port: int) -> DomainRule | None:
        """Return an allow rule that matches a host and is not for all hosts."""
        return self._matcher.match(host, port)

    def naming(self, host: str, port: int) -> DomainRule | None:
        """Return an allow rule that names a host, so that it may have a private address. An IPv6 host is in brackets."""
        rule = self._matcher.match(host, port)
        if rule is None or "*" not in rule.host:
            return rule
        if _ADDRESS.fullmatch(host):
            return rule if _BEGINS_AN_ADDRESS.match(rule.host) else None
        return rule if _labels(_tail(rule.host)) > _labels(public_suffix(host.lower())) else None


def names_no_site(pattern: str) -> bool:
    """Return whether a host pattern with a star, other than `*`, matches hosts that anybody can register."""
    if "*" not in pattern or not pattern.strip("*") or _BEGINS_AN_ADDRESS.match(pattern):
        return False
    tail = _tail(pattern).lower()
    return not tail or tail.rpartition(".")[2].isdigit() or _labels(tail) <= _labels(public_suffix(f"x.{tail}"))


def is_for_addresses(pattern: str) -> bool:
    """Return whether a host pattern with a star begins as an address does, as `10.1.*`; `10.1.example.com` matches it, too."""
    return "*" in pattern and _BEGINS_AN_ADDRESS.match(pattern) is not None


def is_address(host: str) -> bool:
    """Return whether a host is an address; one of IPv6 is in brackets."""
    return _ADDRESS.fullmatch(host) is not None


def public_suffix(host: str) -> str:
    """Return the public suffix of a host name, by the list bundled with tldextract; empty if none applies."""
    return _suffix_of()(host)


@cache
def _suffix_of() -> Callable[[str], str]:
    """Load the list on first use, which takes half a second. Nothing is fetched or written."""
    from tldextract import TLDExtract  # noqa: PLC0415

    extract = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    return lambda host: extract.extract_str(host).suffix


_ADDRESS = re.compile(r"\[.*\]|\d+\.\d+\.\d+\.\d+")
_BEGINS_AN_ADDRESS = re.compile(r"\[|\d+\.")


def _tail(pattern: str) -> str:
    """Return the whole labels after the last star: those common to all hosts that the pattern matches."""
    tail = pattern.rpartition("*")[2]
    return tail.partition(".")[2] if "*" in pattern else tail


def _labels(name: str) -> int:
    return name.count(".") + 1 if name else 0


def _specificity(rule: DomainRule) -> int:
    return _labels(_tail(rule.host)) if "*" in rule.host else 1_000
