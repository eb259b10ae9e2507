"""A file without readable text is a document, unless a version with text is known."""

from __future__ import annotations

import pytest

from crawlspace.content.fingerprint import checksum, checksum_of_bytes
from crawlspace.crawl.files.unreadable import unreadable
from crawlspace.model import Outcome, OutcomeKind, State, UrlState


@pytest.mark.parametrize(
    ("state", "status", "known", "kind"),
    [
        (State.PENDING, None, None, OutcomeKind.DOCUMENT),
        (State.DONE, 200, checksum("text", title=None), OutcomeKind.FAILED),
        (State.DONE, 782, checksum_of_bytes(b"a scan"), OutcomeKind.DOCUMENT),
        (State.FAILED, 782, checksum("text", title=None), OutcomeKind.FAILED),
        (State.FAILED, 503, checksum_of_bytes(b"a scan"), OutcomeKind.DOCUMENT),
        (State.GONE, 404, None, OutcomeKind.DOCUMENT),
    ],
)
def test_outcome(state: State, status: int | None, known: bytes | None, kind: OutcomeKind) -> None:
    before = UrlState(1, 1, "http://a/", "a:80", state=state, status=status, checksum=known)
    found = unreadable(before, Outcome(1, "http://a/", OutcomeKind.DOCUMENT, 200), why="encrypted")
    assert (found.kind, found.status, found.detail) == (kind, 782, "encrypted")
