"""The option `requires_login` of a sink: it gets no documents of pages behind a log-in.

Their pushes become deletions when they are sent. So a document that was sent while its page was public leaves the index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

from crawlspace.document import Document, IndexOrder, Op

REQUIRES_LOGIN = "requires_login"
"""The field of documents whose pages are behind a log-in; the option of a sink has the same name."""


def is_marked(document: Document | None) -> bool:
    """Return whether the page of a document was fetched with a log-in."""
    return document is not None and document.fields.get(REQUIRES_LOGIN) == "true"


def mark(document: Document) -> None:
    """Mark a document whose page was fetched with a log-in."""
    document.fields = {**document.fields, REQUIRES_LOGIN: "true"}


def checksum_behind_login(checksum: bytes | None) -> bytes | None:
    """Return the checksum of a marked document, which differs from that of an equal public document: it is no duplicate."""
    return None if checksum is None else blake2b(checksum, digest_size=16, person=b"behind a log-in").digest()


def simhash_behind_login(signature: bytes | None) -> bytes | None:
    """Return the signature of the text of a marked document: that of a public document is never near it."""
    if signature is None:
        return None
    return bytes(byte ^ other for byte, other in zip(signature[:8], _BEHIND_LOGIN, strict=True)) + signature[8:]


_BEHIND_LOGIN = bytes.fromhex("5ac39669f00f3cc5")
"""Half of its bits are 1."""


@dataclass(frozen=True, slots=True)
class LoginExclusion:
    """Excludes documents whose pages were fetched with a log-in, or would be now."""

    requires_login: Callable[[str], bool]
    """Whether the page of a URL needs a log-in, by the present settings."""
    logins: str
    """A hash of the settings of `requires_login`."""

    def has(self, url: str, document: Document | None = None) -> bool:
        """Return whether a document is excluded."""
        return is_marked(document) or self.requires_login(url)

    def of(self, order: IndexOrder) -> IndexOrder:
        """Return the order to send: a deletion instead of the push of an excluded document, and no excluded duplicates."""
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
    """Return a document for the push of an excluded one that cannot be read: it is sent as a deletion."""
    return Document(url, fields={REQUIRES_LOGIN: "true"})
