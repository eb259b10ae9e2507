"""When a page is requested conditionally, and when its stored document is out of date.

A page that was fetched under another generation of the rules is requested with an unconditional GET. So is one whose document was stored
with other values than now: metadata from rules, other displayed fields, the declared type. Their hashes are three parts of one number of 63
bits, stored with each URL (`UrlState.fields_mark`); a part is 0 if there is nothing to hash.

The second part is of title, description, language, the fields of the item, Markdown and parts. Earlier versions hashed the fields alone: a document that
was stored by them is out of date only if its fields differ, so that not all are sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import blake2b

from crawlspace.config.collection import Collection
from crawlspace.content.headers import PageHeaders
from crawlspace.decision import Actions, Conditional
from crawlspace.document import Document, essence, is_generic, packed_more
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.metadata import get_integer
from crawlspace.state.store import MetaStore
from crawlspace.status import LINKS_ONLY

_GENERATION = "rules_generation"
_TYPE_BITS = 16
_OWN_BITS = 16
_RULE_BITS = 31
_RULE_SHIFT = _TYPE_BITS + _OWN_BITS


def generation(store: MetaStore) -> int:
    """Return the present generation. A page fetched under another one is not requested conditionally."""
    return get_integer(store, _GENERATION) or 1


def set_generation(store: MetaStore, number: int) -> None:
    store.set_meta(_GENERATION, str(number))


def begin_generation(store: MetaStore) -> None:
    """Start a new generation: the next fetch of each page is an unconditional GET."""
    set_generation(store, generation(store) + 1)


def sends_validators(collection: Collection) -> Callable[[UrlState, Actions], bool]:
    """Return a function that returns whether a rule, or the settings of its site, let a page be requested conditionally."""
    sites, always = collection.sites, collection.sites.always_conditional

    def is_wanted(state: UrlState, actions: Actions) -> bool:
        if actions.conditional is not None:
            return actions.conditional is Conditional.USUAL
        host, _, port = state.site.rpartition(":")
        return always or sites.of(host, int(port)).conditional

    return is_wanted


def mark_after(outcome: Outcome, after: UrlState, *, before: int) -> tuple[int, bool]:
    """Return the number to store with a URL after an outcome, and whether its document has other metadata than that of `before`."""
    if outcome.document is not None and after.checksum is not None and after.held is None:
        own = _own_fields(outcome.document, outcome.added)
        mark = _mark(outcome, _hash_of_document(outcome.document, own))
        is_as_before = mark >> _TYPE_BITS == before >> _TYPE_BITS
        return mark, not is_as_before and _mark(outcome, _hash_of_fields(own, _OWN_BITS)) >> _TYPE_BITS != before >> _TYPE_BITS
    if after.status in LINKS_ONLY and outcome.kind is OutcomeKind.EXCLUDED:
        return type_mark(outcome.declared_type), False  # a 304 with another type causes an unconditional GET
    return after.fields_mark, False


def rules_mark(fields: Mapping[str, str]) -> int:
    """Return the part for metadata from rules."""
    return _hash_of_fields(fields, _RULE_BITS)


def rules_mark_of(mark: int) -> int:
    """Return the part of a stored number for metadata from rules."""
    return mark >> _RULE_SHIFT


def type_mark(declared: str | None) -> int:
    """Return the part for a Content-Type header; 0 if it is missing or generic."""
    return 0 if is_generic(declared) else _hash_of_type(essence(declared))


def type_mark_of(mark: int) -> int:
    """Return the part of a stored number for a Content-Type header."""
    return mark & ((1 << _TYPE_BITS) - 1)


def has_other_type(declared: str | None, stored: int) -> bool:
    """Return whether a Content-Type header has another type than the stored document; False if either is unknown."""
    now, then = type_mark(declared), type_mark_of(stored)
    return bool(now and then) and now != then


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


def _own_fields(document: Document, added: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields of a document that rules have not added."""
    return {name: value for name, value in document.fields.items() if name not in added} if document.fields else {}


def _mark(outcome: Outcome, own: int) -> int:
    return (rules_mark(outcome.added) << _OWN_BITS | own) << _TYPE_BITS | type_mark(outcome.declared_type)


def _hash_of_document(document: Document, own: Mapping[str, str]) -> int:
    shown = (document.title, document.description, document.language)
    more = packed_more(document)
    if not (own or more or any(shown)):
        return 0
    return _hash("\0".join((*shown, repr(sorted(own.items())) if own else "", *filter(None, [more]))), _OWN_BITS)


def _hash_of_fields(fields: Mapping[str, str], bits: int) -> int:
    return _hash(repr(sorted(fields.items())), bits) if fields else 0


@lru_cache(1_000)
def _hash_of_type(mime_type: str) -> int:
    return _hash(mime_type, _TYPE_BITS)


def _hash(text: str, bits: int) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % ((1 << bits) - 1) + 1
