"""Scrapy's cookies with the list of public suffixes that comes with tldextract.

For the first cookie, Scrapy's middleware would have tldextract fetch the list: a request past rules, delays and proxies. So whatever of ours
uses that middleware calls this, and so do the download handlers, for projects that have Scrapy's own.
"""

from __future__ import annotations

from functools import cache

from crawlspace.runtime.scrapy_internals import set_domain_splitter


@cache
def use_bundled_suffixes() -> None:
    """Let nothing be fetched, or read from another program's cache, to decide for which domains cookies may be set."""
    from tldextract import TLDExtract  # noqa: PLC0415 - commands that crawl nothing do not need it

    set_domain_splitter(TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True))
