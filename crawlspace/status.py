"""The status codes of the crawler, in addition to those of HTTP: their sentences and groups."""

from __future__ import annotations

from enum import IntEnum
from http import HTTPStatus


class Status(IntEnum):
    """The crawler's own status codes, in addition to those of HTTP."""

    READ_ERROR = 611
    CONNECT_ERROR = 612
    TIMEOUT = 613
    TLS_FAILED = 614
    CUT_SHORT = 615
    LOGGED_OUT = 616
    NOT_RENDERED = 617
    PROXY_FAILED = 618
    NO_SUCH_HOST = 680
    NO_DNS_ANSWER = 681
    REDIRECT_MALFORMED = 690
    REDIRECT_LOOP = 691
    UNEXPECTED = 699
    ROBOTS_FORBIDDEN = 740
    ROBOTS_UNAVAILABLE = 741
    EXCLUDED = 760
    EXCLUDED_HERE = 761
    PORT_OR_SCHEME = 770
    WRONG_TYPE = 780
    UNREADABLE_FILE = 782
    MALFORMED_URL = 786
    NOINDEX = 2004
    SITEMAP = 2005
    NO_SITEMAP = 2006
    SOFT_REDIRECT = 3020
    SITEMAP_INDEX = 3021

    @property
    def sentence(self) -> str:
        """The meaning of the code, for users."""
        return _STATUS_SENTENCES[self]


OUT_OF_SPACE = frozenset({int(Status.EXCLUDED), int(Status.EXCLUDED_HERE)})
"""URLs excluded by the rules; they are crawled again when the rules admit them."""


LINKS_ONLY = frozenset({int(HTTPStatus.OK), int(Status.NOINDEX), int(Status.SITEMAP)})
"""Excluded pages that were read: only their links count. 200: an item pipeline dropped the document."""


SITEMAPS = frozenset({int(Status.SITEMAP), int(Status.SITEMAP_INDEX)})
"""Sitemaps and feeds. An index file is stored as a redirect, so that the sitemaps that it names have its link depth."""


NO_CONTENT = frozenset({int(HTTPStatus.NO_CONTENT), int(HTTPStatus.RESET_CONTENT)})
"""Answers without a body, which therefore have no type, and no document."""


NO_PAGES = SITEMAPS | {404, 410}
"""URLs that don't count towards a limit of URLs, whatever the rules: sitemaps, and missing ones."""


UNCOUNTED = OUT_OF_SPACE | NO_PAGES
"""The same with those outside the crawl space."""


_STATUS_SENTENCES = {
    Status.READ_ERROR: "the answer could not be read",
    Status.CONNECT_ERROR: "connection refused or lost",
    Status.TIMEOUT: "no answer in time",
    Status.TLS_FAILED: "the TLS handshake failed, as with a certificate that is not valid",
    Status.CUT_SHORT: "the answer was cut short or is too large",
    Status.LOGGED_OUT: "shown only to who is logged in, and the log-in was refused or is not for this page",
    Status.NOT_RENDERED: "the page could not be rendered in the browser",
    Status.PROXY_FAILED: "the proxy cannot be reached, refuses, or has cut the connection",
    Status.NO_SUCH_HOST: "the host name does not exist",
    Status.NO_DNS_ANSWER: "looking up the host name gave no answer",
    Status.REDIRECT_MALFORMED: "a redirect whose target is malformed or not named",
    Status.REDIRECT_LOOP: "redirects that lead back to themselves",
    Status.UNEXPECTED: "an unexpected error",
    Status.ROBOTS_FORBIDDEN: "forbidden by robots.txt",
    Status.ROBOTS_UNAVAILABLE: "robots.txt cannot be read at present",
    Status.EXCLUDED: "outside the crawl space",
    Status.EXCLUDED_HERE: "outside this crawl space, inside the global one",
    Status.PORT_OR_SCHEME: "the scheme or port is not allowed",
    Status.WRONG_TYPE: "the extension or document type is not taken",
    Status.UNREADABLE_FILE: "a file without readable text, found by its title, name and URL",
    Status.MALFORMED_URL: "the URL is malformed",
    Status.NOINDEX: "the page or a rule asks not to be indexed, or the spider gave no item",
    Status.SITEMAP: "a sitemap or feed, read for the URLs that it names",
    Status.NO_SITEMAP: "no sitemap is there: it was tried, because robots.txt names none",
    Status.SITEMAP_INDEX: "an index file, read for the sitemaps that it names",
    Status.SOFT_REDIRECT: "200 with a Location, or an empty page with an immediate refresh, taken as a redirect",
}
