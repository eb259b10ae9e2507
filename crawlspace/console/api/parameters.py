"""What requests of the JSON interface may have: the query of a GET, the JSON body of a POST.

A field without a default must be given, and one that is not declared is refused, so that a mistyped name is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST_URLS = 1_000
"""URLs of one request."""
MOST_EXPLAINED = 100
_LONGEST_URL = 20_000

AnyUrl = Annotated[str, Meta(min_length=1, max_length=_LONGEST_URL, examples=["http://www.example.com/page.html"])]
Host = Annotated[str, Meta(max_length=300, description="of this host, as in www.example.com or www.example.com:8080")]
HostWithoutPort = Annotated[str, Meta(max_length=300, description="of this host, on all its ports")]
UrlsOfRequest = Annotated[Sequence[AnyUrl], Meta(max_length=MOST_URLS)]
HeldReason = Literal["", "host", "many", "rules", "folded"]


class NoParameters(Struct, forbid_unknown_fields=True):
    """Nothing may be given."""


class UrlsQuery(Struct, forbid_unknown_fields=True):
    """Which known URLs are listed."""

    state: Literal["", "pending", "leased", "done", "redirected", "gone", "failed", "excluded"] = ""
    status: Annotated[
        str,
        Meta(max_length=9, pattern="^([0-9]{1,6}|[0-9]{1,4}[xX]{2})?$", description="a status code or a class, as in 404 or 4xx"),
    ] = ""
    host: Host = ""
    held: Annotated[bool, Meta(description="only URLs whose document is in the index and whose deletion is held")] = False
    orphaned: Annotated[bool, Meta(description="only URLs that cannot be reached from a start URL any more")] = False
    not_archived: Annotated[bool, Meta(description="only URLs whose document has no record in the archive on this machine")] = (
        False
    )
    with_referrers: Annotated[bool, Meta(description="with the pages that link to each URL: takes one pass over all links")] = (
        False
    )
    sorted: Annotated[bool, Meta(description="in alphabetical order; else in that of their discovery, the first at once")] = False
    limit: Annotated[int, Meta(ge=1, le=1_000_000_000, description="lines at most; else all")] = 1_000_000_000
    after: Annotated[
        str, Meta(max_length=_LONGEST_URL, description="only URLs that were found after this one: the last of the page before")
    ] = ""


class ExplainQuery(Struct, forbid_unknown_fields=True, rename={"page": "from"}):
    """The URL to explain."""

    url: AnyUrl
    address: Annotated[str, Meta(max_length=100, description="also check a connection to this address of the host")] = ""
    mime: Annotated[str, Meta(max_length=300, description="also check this Content-Type, as in application/pdf")] = ""
    depth: Annotated[
        int, Meta(ge=-1, le=1_000_000, description="check it as so many links away from a start URL; -1: as it is")
    ] = -1
    page: Annotated[str, Meta(max_length=_LONGEST_URL, description="the page with the link")] = ""


class ExplainBody(Struct, forbid_unknown_fields=True):
    """The URLs to explain."""

    urls: Annotated[Sequence[AnyUrl], Meta(min_length=1, max_length=MOST_EXPLAINED)]


class SearchQueryParameters(Struct, forbid_unknown_fields=True):
    """A search."""

    q: Annotated[str, Meta(min_length=1, max_length=2_000, description="the search text", examples=["annual leave"])]
    limit: Annotated[int, Meta(ge=1, le=100, description="hits at most")] = 10
    offset: Annotated[int, Meta(ge=0, le=10_000, description="hits to leave out before the first")] = 0
    filter: Annotated[
        Sequence[str], Meta(max_length=50, description="FIELD=VALUE, as in language=de or type=pdf; may be repeated")
    ] = ()
    facet: Annotated[Sequence[str], Meta(max_length=10, description="a field whose values are counted; may be repeated")] = ()
    sink: Annotated[str, Meta(max_length=200, description="the sink to search")] = ""


class DocumentQuery(Struct, forbid_unknown_fields=True):
    """How a document is sent: as JSON, or as Markdown, which an Accept header with text/markdown also asks for."""

    format: Literal["", "json", "markdown"] = ""


class DocumentByUrlQuery(DocumentQuery, kw_only=True, forbid_unknown_fields=True):
    """The URL of a document."""

    url: AnyUrl


class DeletionsQuery(Struct, forbid_unknown_fields=True):
    """Which held deletions are listed."""

    reason: HeldReason = ""
    host: HostWithoutPort = ""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100
    after: Annotated[str, Meta(max_length=_LONGEST_URL, description="`next` of the page before")] = ""


class DecisionBody(Struct, forbid_unknown_fields=True):
    """Which held deletions are approved or discarded; without parameters all."""

    reason: HeldReason = ""
    host: HostWithoutPort = ""


class RecrawlBody(Struct, forbid_unknown_fields=True):
    """URLs to fetch again: those named, and the known ones to which all other parameters apply."""

    urls: UrlsOfRequest = ()
    prefix: Annotated[str, Meta(max_length=_LONGEST_URL, description="known URLs with this beginning")] = ""
    host: Host = ""
    errors: Annotated[bool, Meta(description="known URLs whose last fetch ended in an error")] = False


class AddBody(Struct, forbid_unknown_fields=True):
    """URLs to enter."""

    urls: Annotated[Sequence[AnyUrl], Meta(min_length=1, max_length=MOST_URLS)]
    site: Annotated[bool, Meta(description="with all known URLs in their folders and below")] = False


class AuditQuery(Struct, forbid_unknown_fields=True):
    """What is compared."""

    sink: Annotated[str, Meta(max_length=200, description="only this sink; else all that can be compared")] = ""
    limit: Annotated[int, Meta(ge=0, le=10_000, description="differences that are named, for each sink")] = 20
