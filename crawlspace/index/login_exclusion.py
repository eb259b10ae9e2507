"""Documents that a sink does not get, because their pages are behind a log-in: the option `requires_login` of a sink.

They are pushed like all others, and become deletions when they are sent. So a document that was sent as a public one leaves the index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

from crawlspace.document import Document, IndexOrder, Op

REQUIRES_LOGIN = "requires_login"
"""The field of documents whose pages are behind a log-in; the option of a sink has the same name."""


def is_marked(document: Document | None) -> bool:
    """Return whether a document was made of a page that was fetched with a log-in."""
    return document is not None and document.fields.get(REQUIRES_LOGIN) == "true"


def mark(document: Document) -> None:
    """Mark a document that was made of such a page."""
    document.fields = {**document.fields, REQUIRES_LOGIN: "true"}


def checksum_behind_login(checksum: bytes | None) -> bytes | None:
    """Return the checksum of a marked document: another one than an equal public document has, for which it does not stand."""
    return None if checksum is None else blake2b(checksum, digest_size=16, person=b"behind a log-in").digest()


@dataclass(frozen=True, slots=True)
class LoginExclusion:
    """Leaves out what was fetched with a log-in, and what would be now."""

    requires_login: Callable[[str], bool]
    """Whether the page of a URL is behind a log-in, by the present settings."""
    logins: str
    """A hash of what `requires_login` depends on."""

    def has(self, url: str, document: Document | None = None) -> bool:
        """Return whether a document is left out."""
        return is_marked(document) or self.requires_login(url)

    def of(self, order: IndexOrder) -> IndexOrder:
        """Return the order to send: a deletion in the place of a push of a document that is left out; no other names one as a duplicate."""
        document = order.document
        if document is None:
            return order
        if self.has(order.url, document):
            return replace(order, op=Op.DELETE, document=None, is_by_reference=False)
        if any(map(self.requires_login, document.duplicates)):
            public = [url for url in document.duplicates if not self.requires_login(url)]
            return replace(order, document=replace(document, duplicates=public))
        return order


def stand_in(url: str) -> Document:
    """Return what is pushed in the place of a document that is left out and cannot be read: it is sent as a deletion."""
    return Document(url, fields={REQUIRES_LOGIN: "true"})
