"""The answers of `scrapy links`, `scrapy refused` and `scrapy sitemaps` with one of everything, as JSON."""

from __future__ import annotations

from crawlspace.admin.links import LinkAnswer, LinkedUrl, LinksOut
from crawlspace.admin.refused import RefusedForReason, SeenLink
from crawlspace.admin.sitemaps import NamedSitemap, SitemapReport
from crawlspace.commands import links
from crawlspace.crawl.timed.lastmod import Reading
from crawlspace.decision import Decision, Reason
from crawlspace.model import NewUrl, Source, UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.refused_links import RefusedLink
from tests.contract.memory.store import MemoryStore

SEEN = SeenLink(
    RefusedLink(Reason.DOMAIN, "b.test", "http://b.test/", 1),
    UrlState(1, 1, "http://start.test/", "start.test:80"),
    Decision(Reason.DOMAIN, None, ()),
)


def link_json(space: CrawlSpace) -> dict[str, object]:
    """The answer of `scrapy links` with a link in and out, and one that is refused."""
    store = MemoryStore()
    store.discover([NewUrl(1, "http://start.test/", "start.test:80", Source.USER, 0, 0, 0, 1)], now=1)
    state = store.get_by_ids([1])[0]
    subject = LinkedUrl(state.url, SEEN.decision, state)
    answer = LinkAnswer(subject, [], LinksOut([1], 0, {Reason.DOMAIN: 1}), [subject], [1])
    return links._as_json(answer, links._Lists(space, store, most=1))


def refused_json() -> dict[str, object]:
    return {"collection": "demo", "refused": {"domain": RefusedForReason(Reason.DOMAIN, 1, [SEEN]).as_json()}}


def sitemaps_json() -> dict[str, object]:
    sitemap = NamedSitemap(SEEN.page, Reading(1, 2, 1), {Reason.PREFIX: 1}, [SEEN])
    return {"collection": "demo", **SitemapReport([sitemap]).as_json()}
