"""Addresses that a site leads to while somebody logs in: where they lead, and how they are shown. Their queries may hold secrets."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from crawlspace.text import printable
from crawlspace.urls import DEFAULT_PORTS


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


def port_of(url: str) -> int:
    """Return the port that a URL of the web leads to; 0 where it leads to none."""
    try:
        parts = urlsplit(url)
        return parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return 0


def elsewhere(url: str) -> str:
    """Return what is wrong with a URL that a log-in may not lead to."""
    place = printable(bare_place(url))
    return f"it leads to {place}, which is no host of the entry: name it in 'hosts' if that is right"


def bare_place(url: str) -> str:
    """Return the host of a URL, with its port unless that is the one of its scheme."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if port_of(url) in {0, DEFAULT_PORTS.get(parts.scheme)} else f"{host}:{port_of(url)}"
