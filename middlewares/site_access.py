"""Sets the log-in and the headers of a site, as CRAWLSPACE_SITES has them."""

from __future__ import annotations

from crawlspace.runtime.middlewares.site_access import BaseSiteAccess


class SiteAccess(BaseSiteAccess):
    """Before the headers of all sites, which do not replace them."""
