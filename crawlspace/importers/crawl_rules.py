"""The crawl.rules of an imported collection: rules that decide nothing are left out."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.lint.crawl_rules import lint_rules
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits

_CODES = frozenset({"never-applies", "host-forbidden"})
"""Findings about rules that change no decision."""


def without_effect(rules: Sequence[str]) -> dict[int, str]:
    """Return the indices of the rules that decide nothing, because of earlier ones, with the finding of lint about each."""
    parsed = parse_crawl_rules("".join(f"{rule}\n" for rule in rules), file="crawl.rules")
    found = lint_rules(parsed, Limits(), host_case_sensitive=False)
    return {one.line - 1: one.code for one in found if one.code in _CODES}
