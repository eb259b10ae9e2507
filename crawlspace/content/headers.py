"""The headers of a page that affect its document: type, robots directives, canonical URL, validators.

The headers of a 304 apply to the stored page, too (RFC 9111, 3.2 and 4.3.4). If they have changed, mostly the body is needed, so such a page
is fetched again with an unconditional GET. A page whose headers restrict it, or name a canonical page, is never requested
conditionally: a later 304 without these headers may mean that they are gone, or only that the server omitted them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from crawlspace.content.links import parse_refresh
from crawlspace.content.robots_directives import NO_LIMITS, RobotsDirectives, parse_robots_headers
from crawlspace.document import declared
from crawlspace.urls import MalformedUrl, join, parse

_LINK = re.compile(r"""<([^<>]*)>((?:[^,"]|"(?:[^"\\]|\\.)*+")*+)""")
_PARAMETER = re.compile(r""";\s*([^\s;,="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^\s;,"]+)))?""")
_LONGEST_LINKS = 16_384
"""Maximal characters of Link headers that are parsed."""

_LONGEST_VALIDATOR = 1_024
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class PageHeaders(NamedTuple):
    """The parsed headers of a page."""

    content_type: str | None = None
    """The Content-Type as sent, several values joined by commas; None without one."""
    robots: RobotsDirectives = NO_LIMITS
    canonical: str | None = None
    """Absolute; None if the headers name no canonical page, or the page itself."""
    etag: str | None = None
    last_modified: str | None = None
    refresh: tuple[float, str] | None = None
    """Seconds, and the URL as written."""
    robots_tags: Sequence[str] = ()
    """The X-Robots-Tag headers as sent, obeyed or not."""

    @property
    def concern_the_document(self) -> bool:
        """Whether the headers affect the document or its links."""
        return self.robots != NO_LIMITS or self.canonical is not None

    @property
    def restrict_some_agent(self) -> bool:
        """Whether the headers restrict the document or its links for any crawler, whether they are obeyed or not."""
        return bool(self.robots_tags) and parse_robots_headers(self.robots_tags, of_all_agents=True) != NO_LIMITS


def read_headers(
    values: Callable[[str], Sequence[str]], *, url: str, agent_names: Collection[str] = (), obey_robots: bool = True
) -> PageHeaders:
    """Return the parsed headers of a page; `values` returns all values of a header, `agent_names` are our names for robots."""
    directives, links = values("X-Robots-Tag"), values("Link")
    etag, last_modified, refresh = values("ETag"), values("Last-Modified"), values("Refresh")
    return PageHeaders(
        content_type=declared(values("Content-Type")),
        robots=parse_robots_headers(directives, agent_names) if directives and obey_robots else NO_LIMITS,
        canonical=canonical_link(links, url=url) if links else None,
        etag=kept_validator(etag[-1]) if etag else None,
        last_modified=kept_validator(last_modified[-1]) if last_modified else None,
        refresh=parse_refresh(refresh[0][:_LONGEST_VALIDATOR], "utf-8") if refresh else None,
        robots_tags=directives,
    )


def kept_validator(value: str | None) -> str | None:
    """Return an ETag or Last-Modified that can be stored and sent back; None if it is too long or has control characters."""
    if value is None or len(value) > _LONGEST_VALIDATOR or _CONTROL.search(value):
        return None
    return value


def canonical_link(values: Sequence[str], *, url: str) -> str | None:
    """Return the canonical URL of Link headers (RFC 8288, RFC 6596), absolute; None without one, or if it is the page itself."""
    for target, parameters in _LINK.findall(", ".join(values)[:_LONGEST_LINKS]):
        relations = (quoted or plain for name, quoted, plain in _PARAMETER.findall(parameters) if name.lower() == "rel")
        if "canonical" not in next(relations, "").lower().split():
            continue
        try:
            named = join(url, target.strip())
            return None if parse(named).text == url else named
        except MalformedUrl:
            return None
    return None
