"""The rules of the collection where Scrapy sends a request and where a response begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.runtime.components.collection_rules import CollectionRules
from crawlspace.runtime.components.rule_middleware import AddressRefusals, RuleMiddleware

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class CrawlSpaceGuard(RuleMiddleware, AddressRefusals):
    """Refuses requests outside the crawl space, and stops a download whose headers name a type that is not taken."""

    @classmethod
    def rules_of(cls, crawler: Crawler) -> CollectionRules:
        return CollectionRules.from_crawler(crawler)
