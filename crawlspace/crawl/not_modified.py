"""What a 304 means: the page is as it was, unless the headers that came with it say otherwise."""

from __future__ import annotations

from crawlspace.content.headers import PageHeaders
from crawlspace.crawl.document_hash import has_other_type
from crawlspace.model import Outcome, OutcomeKind, UrlState


def not_modified(state: UrlState, headers: PageHeaders, *, conditional: bool) -> Outcome:
    """Return the outcome of a 304; `conditional` says whether the request asked only for what has changed.

    Its validators replace those that are known (RFC 9111, 4.3.4). Where it brings robots directives, another canonical page or another
    type, the page is fetched whole in the same run.
    """
    return Outcome(
        state.id,
        state.url,
        OutcomeKind.UNCHANGED,
        304,
        conditional=conditional,
        etag=headers.etag,
        last_modified=headers.last_modified,
        needs_body=headers.concern_the_document or has_other_type(headers.content_type, state.fields_mark),
    )
