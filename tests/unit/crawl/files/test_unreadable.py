"""A file without readable text is a document, unless a version with text is known."""

from __future__ import annotations

import pytest

from crawlspace.content.fingerprint import checksum, checksum_of_bytes
from crawlspace.crawl.files.unreadable import unreadable
from crawlspace.model import Outcome, OutcomeKind, State, UrlState
from crawlspace.state.error_policy import ErrorRule, ErrorRules
from crawlspace.state.recrawl import RecrawlPolicy

TEXT, SCAN = checksum("text", title=None), checksum_of_bytes(b"a scan")


def of_file(state: State, status: int | None, errors: int, known: bytes | None, rules: ErrorRules) -> Outcome:
    before = UrlState(1, 1, "http://a/", "a:80", state=state, status=status, errors=errors, checksum=known)
    policy = RecrawlPolicy(60, 600, 2, 5.0, max_temporary_errors=3, error_rules=rules)
    return unreadable(before, Outcome(1, "http://a/", OutcomeKind.DOCUMENT, 200), why="encrypted", policy=policy)


@pytest.mark.parametrize(
    ("state", "status", "errors", "known", "kind"),
    [
        (State.PENDING, None, 0, None, OutcomeKind.DOCUMENT),
        (State.DONE, 200, 0, TEXT, OutcomeKind.FAILED),
        (State.DONE, 782, 0, SCAN, OutcomeKind.DOCUMENT),
        (State.FAILED, 782, 1, TEXT, OutcomeKind.FAILED),
        (State.FAILED, 782, 2, TEXT, OutcomeKind.DOCUMENT),
        (State.FAILED, 503, 2, TEXT, OutcomeKind.DOCUMENT),
        (State.FAILED, 503, 1, SCAN, OutcomeKind.DOCUMENT),
        (State.GONE, 404, 0, None, OutcomeKind.DOCUMENT),
    ],
)
def test_outcome(state: State, status: int | None, errors: int, known: bytes | None, kind: OutcomeKind) -> None:
    found = of_file(state, status, errors, known, ErrorRules())
    assert (found.kind, found.status, found.detail) == (kind, 782, "encrypted")


@pytest.mark.parametrize(
    ("rule", "errors", "kind"),
    [
        (ErrorRule(keep=True), 1_000, OutcomeKind.FAILED),
        (ErrorRule(keep=False, after=1), 0, OutcomeKind.DOCUMENT),
        (ErrorRule(keep=False, after=10), 8, OutcomeKind.FAILED),
        (ErrorRule(keep=False, after=10), 9, OutcomeKind.DOCUMENT),
    ],
)
def test_by_the_rule_for_its_status(rule: ErrorRule, errors: int, kind: OutcomeKind) -> None:
    assert of_file(State.FAILED, 782, errors, TEXT, ErrorRules({"782": rule})).kind is kind
