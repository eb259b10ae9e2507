"""How many links of a page were refused, by reason: kept with the page, as a text such as `d3e12`.

So a change that loosens a check finds the pages whose links it may admit now, and the numbers of a collection are the sums over its pages as
last fetched. Each reason has a letter, before its number; the store adds and subtracts by letter.

The store also keeps a sample of these links, each with its page and rule, bounded by reason and host. It drops the entries of a page that is
fetched again, or has no refused links any more. Other checks are left to readers: the page of an entry may be gone, and the rules may admit
its URL by now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crawlspace.decision import Reason

LINKS_OF_HOST = 20
"""Maximal entries of the sample for a reason and a host: the last ones."""
HOSTS_OF_REASON = 1_000
"""Maximal hosts in the sample for a reason: those to which an entry was added last."""


class RefusedLink(NamedTuple):
    """An entry of the sample: a link, or the target of a redirect. There is one at most for a reason and URL."""

    reason: Reason
    host: str
    """In normal form; empty where the URL has none, or is malformed."""
    url: str
    page: int
    """Id of the page with the link."""
    rule: str | None = None
    """Location of the rule that refused it, as in `crawl.rules:3`."""


LETTERS: Mapping[Reason, str] = {
    Reason.ADDRESS: "a",
    Reason.NEEDS_BROWSER: "b",
    Reason.CREDENTIALS: "c",
    Reason.DOMAIN: "d",
    Reason.EXTENSION: "e",
    Reason.FOLDER: "f",
    Reason.PATH_DEPTH: "g",
    Reason.URLS_PER_HOST: "h",
    Reason.SITEMAP_LIMIT: "i",
    Reason.SITEMAP_HOST: "j",
    Reason.OFFSITE_REDIRECT: "k",
    Reason.LINK_DEPTH: "l",
    Reason.MALFORMED: "m",
    Reason.PAGE_LINKS: "n",
    Reason.OFFSITE: "o",
    Reason.PREFIX: "p",
    Reason.QUERY_STRING: "q",
    Reason.REDIRECTS: "r",
    Reason.SCHEME: "s",
    Reason.REPEATED_SEGMENTS: "t",
    Reason.URL_LENGTH: "u",
    Reason.FIELD_TYPE: "v",
    Reason.CHECK_FAILED: "w",
    Reason.ACTIONS: "x",
    Reason.NOT_EXTRACTED: "y",
    Reason.PAGE_TEXT: "z",
}
"""Stored: a letter never gets another meaning."""
_REASONS = {letter: reason for reason, letter in LETTERS.items()}
_PAIR = re.compile(r"([a-z])(\d+)")


def packed(numbers: Mapping[Reason, int]) -> str | None:
    """Return the text for the numbers of a page; None if nothing was refused."""
    return "".join(f"{LETTERS[reason]}{number}" for reason, number in sorted(numbers.items()) if number > 0) or None


def reason_of(letter: str) -> Reason:
    """Raises KeyError for an unknown letter."""
    return _REASONS[letter]


def by_letter(text: str | None) -> Iterable[tuple[str, int]]:
    """Return the numbers of a page by letter."""
    return [(letter, int(number)) for letter, number in _PAIR.findall(text)] if text else ()


def by_reason(numbers: Iterable[tuple[str, int]]) -> dict[Reason, int]:
    """Return numbers by letter as numbers by reason; those of unknown letters and those of 0 are left out."""
    return {_REASONS[letter]: number for letter, number in numbers if letter in _REASONS and number}


def total(texts: Iterable[str | None]) -> dict[Reason, int]:
    """Return the sums over pages, by reason."""
    numbers: Counter[str] = Counter()
    for text in texts:
        for letter, number in by_letter(text):
            numbers[letter] += number
    return by_reason(numbers.items())


def letters_of(reasons: Iterable[Reason]) -> frozenset[str]:
    """Return the letters of reasons that refuse links; others have none."""
    return frozenset(LETTERS[reason] for reason in reasons if reason in LETTERS)


def has_any(text: str | None, letters: frozenset[str]) -> bool:
    """Return whether links of a page were refused for one of the reasons with these letters."""
    return text is not None and not letters.isdisjoint(text)
