"""The outcome of a 304: the page is unchanged, unless its headers contradict that."""

from __future__ import annotations

from crawlspace.content.headers import PageHeaders
from crawlspace.crawl.document_hash import has_other_type
from crawlspace.model import Outcome, OutcomeKind, UrlState


def not_modified(state: UrlState, headers: PageHeaders, *, conditional: bool) -> Outcome:
    """Return the outcome of a 304; `conditional`: the request was conditional.

    Its validators replace the stored ones (RFC 9111, 4.3.4). If it has robots directives, another canonical page or another type,
    the page is requested again in the same run, with an unconditional GET. Directives that are not obeyed, or name another crawler,
    don't cause that, but may apply with other settings: see `Outcome.restricts_others`.
    """
    needs_body = headers.concern_the_document or has_other_type(headers.content_type, state.fields_mark)
    return Outcome(
        state.id,
        state.url,
        OutcomeKind.UNCHANGED,
        304,
        conditional=conditional,
        etag=headers.etag,
        last_modified=headers.last_modified,
        needs_body=needs_body,
        restricts_others=not needs_body and headers.restrict_some_agent,
    )
