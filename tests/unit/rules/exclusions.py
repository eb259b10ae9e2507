"""Exclusions of single URLs, and crawl spaces, for the tests of exclusions."""

from __future__ import annotations

from crawlspace.config.sites import SiteLimitTable, SiteSettings, SiteTable
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import Exclusion, KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.urls import MalformedUrl, parse


def exclusion_of(
    decisions: KnownUrlDecisions, url: str, *, host_as_written: str | None = None, depth: int = 0
) -> Exclusion | None:
    try:
        parsed = parse(url)
    except MalformedUrl:
        return decisions.decide(url, site=":0", depth=depth, host_as_written=host_as_written).exclusion
    return decisions.decide(url, site=parsed.site, depth=depth, host_as_written=host_as_written).exclusion


def space_of(
    rules: str,
    limits: Limits | None = None,
    *,
    sites: dict[str, Limits] | None = None,
    host_case_sensitive: bool = True,
    actions: CompiledActions | None = None,
) -> CrawlSpace:
    limits = limits or Limits()
    table = SiteTable(SiteSettings(0, 1, limits), {name: SiteSettings(0, 1, own) for name, own in (sites or {}).items()})
    starts = [parse("http://a.example/a/"), parse("http://c.org/"), parse("http://[::1]:8080/")]
    crawl_rules = parse_crawl_rules(rules, file="crawl.rules") if rules else CrawlRules()
    return CrawlSpace(
        crawl_rules,
        limits,
        starts,
        host_case_sensitive=host_case_sensitive,
        actions=actions,
        site_limits=SiteLimitTable(table) if sites else None,
    )


def global_space_of(rules: str | None, *, case_sensitive: bool = True) -> GlobalSpace | None:
    if rules is None:
        return None
    return GlobalSpace(parse_global_rules(rules, file="global.rules"), case_sensitive=case_sensitive)
