"""Addresses that a site leads to while somebody logs in: where they lead, and how they are shown. Their queries may hold secrets."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from crawlspace.printable import printable


def target_of(base: str, reference: str) -> str:
    """Return the URL that a reference on a page or in a redirect leads to; empty for one that is none on the web."""
    try:
        target = urljoin(base, reference)
        parts = urlsplit(target)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    return target if is_usable else ""


def bare(url: str) -> str:
    """Return a URL without its query and fragment."""
    try:
        return urlsplit(url)._replace(query="", fragment="").geturl()
    except ValueError:
        return url.partition("?")[0].partition("#")[0]


def shown(url: str) -> str:
    """Return a URL for a message: without its query, which may hold what nobody else is to know."""
    return printable(bare(url)) + ("?…" if "?" in url else "")
