"""Which domains are public suffixes, by the list that comes with tldextract.

Scrapy's own middleware would have tldextract fetch the list for the first cookie: a request past rules, delays and proxies.
"""

from __future__ import annotations

from functools import cache, lru_cache

from tldextract import TLDExtract


@lru_cache(1_000)
def is_public_suffix(domain: str) -> bool:
    """Return whether hosts below a domain belong to different people, as those below `co.uk` do, so that it can have no cookies."""
    return not _list()(domain).domain


@cache
def _list() -> TLDExtract:
    from tldextract import TLDExtract  # noqa: PLC0415 - commands that crawl nothing do not need it

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
