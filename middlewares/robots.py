"""Follows the redirects of a robots.txt, because Scrapy's own middleware is off."""

from __future__ import annotations

from crawlspace.runtime.middlewares.robots import BaseRobotsTxt


class RobotsTxt(BaseRobotsTxt):
    """Follows up to five redirects: within the host, and to hosts that the crawl space may reach. More count as no limits."""
