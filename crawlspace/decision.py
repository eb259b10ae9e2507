"""The answer to a candidate, with its evidence.

Whether a URL is admitted is read off the decision, and the decision holds the trace of every check made,
so what `scrapy explain` prints and what the crawl does cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Reason(StrEnum):
    """Why a URL is refused; the value is the code shown to users and counted in the stats."""

    ADMITTED = "admitted"
    MALFORMED = "malformed"
    CREDENTIALS = "credentials"
    SCHEME = "scheme"
    URL_LENGTH = "url_length"
    QUERY_STRING = "query_string"
    EXTENSION = "extension"
    PATH_DEPTH = "path_depth"
    REPEATED_SEGMENTS = "repeated_segments"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ACTIONS = "rules_xml"
    OFFSITE = "offsite"
    FOLDER = "folder"
    LINK_DEPTH = "link_depth"
    URLS_PER_HOST = "urls_per_host"
    REDIRECTS = "redirects"
    PAGE_LINKS = "page_links"
    PAGE_TEXT = "page_text"
    """The one reason that refuses no URL: the rest of a page's text is left out."""
    ADDRESS = "address"
    PRIVATE_ADDRESS = "private_address"
    MIME_TYPE = "mime_type"
    ROBOTS = "robots"
    NOINDEX = "noindex"
    CHECK_FAILED = "check_failed"

    @property
    def sentence(self) -> str:
        """What the code means, for a person."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.ADMITTED: "the URL is in the crawl space",
    Reason.MALFORMED: "the URL cannot be parsed",
    Reason.CREDENTIALS: "the URL carries a user name or password",
    Reason.SCHEME: "the scheme is not among CRAWLSPACE_SCHEMES",
    Reason.URL_LENGTH: "the URL is longer than URLLENGTH_LIMIT",
    Reason.QUERY_STRING: "the URL has a query string and CRAWLSPACE_FOLLOW_QUERY_STRINGS is off",
    Reason.EXTENSION: "the file extension is among CRAWLSPACE_EXCLUDE_EXTENSIONS",
    Reason.PATH_DEPTH: "the path is deeper than CRAWLSPACE_MAX_PATH_DEPTH",
    Reason.REPEATED_SEGMENTS: "a path segment repeats more often than CRAWLSPACE_MAX_REPEATED_SEGMENTS",
    Reason.DOMAIN: "a domain rule forbids the host",
    Reason.PREFIX: "a prefix rule forbids the URL",
    Reason.ACTIONS: "rules.xml does not accept the URL",
    Reason.OFFSITE: "the host is not one of the start URLs' and CRAWLSPACE_FOLLOW_OFFSITE_LINKS is off",
    Reason.FOLDER: "the URL is not below the folder of a start URL and CRAWLSPACE_INDEX_ENTIRE_SITE is on",
    Reason.LINK_DEPTH: "the URL is more links away from a start URL than DEPTH_LIMIT",
    Reason.URLS_PER_HOST: "the host already has CRAWLSPACE_MAX_URLS_PER_HOST URLs",
    Reason.REDIRECTS: "it is the target of more redirects in a row than REDIRECT_MAX_TIMES",
    Reason.PAGE_LINKS: "its page has more links than CRAWLSPACE_MAX_LINKS",
    Reason.PAGE_TEXT: "the text of a page is longer than 10,000,000 characters, and the rest is left out",
    Reason.ADDRESS: "an address rule forbids every address of the host",
    Reason.PRIVATE_ADDRESS: "the host's address is not public and no rule allows it",
    Reason.MIME_TYPE: "the document's type is not among CRAWLSPACE_MIME_TYPES",
    Reason.ROBOTS: "robots.txt forbids the URL",
    Reason.NOINDEX: "the page asks not to be indexed",
    Reason.CHECK_FAILED: "a check failed unexpectedly, so the URL is refused",
}


class RuleRef(NamedTuple):
    """Where a rule stands; `text` is the rule as written."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Verdict(StrEnum):
    PASS = "pass"
    """Nothing against the URL, and no rule spoke for it."""
    ALLOW = "allow"
    """A rule allows it in this check."""
    REFUSE = "refuse"


class Step(NamedTuple):
    """One check and what it found."""

    check: str
    verdict: Verdict
    rule: RuleRef | None = None


class Applied(NamedTuple):
    """One action rule that matched a URL: what it changed, in words like `index off`, and what it set to what it was already."""

    rule: RuleRef
    changed: tuple[str, ...]
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Actions:
    """What action rules say of a URL, and which of them said it. `rule` is the one that decided `accept`, if any did."""

    accept: bool = True
    index: bool = True
    follow: bool = True
    shift: int = 0
    rule: RuleRef | None = None
    label: str = ""
    """The name that `Source` gives the document."""
    fields: tuple[tuple[str, str], ...] = ()
    """What `AddMeta` adds to the document: name and value, in the order of their names."""
    applied: tuple[Applied, ...] = ()
    """All rules that matched, in their order."""

    @property
    def index_rule(self) -> RuleRef | None:
        """The rule that took the URL out of the index, or let it in; None when none did."""
        for one in reversed(self.applied):
            if any(change.startswith("index ") for change in one.changed):
                return one.rule
        return None


NOTHING_SAID = Actions()


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything known about why a candidate is in the crawl space or not.

    `index`, `follow`, `shift` and what `said` adds are what the rules say of an admitted URL; for a refused one they are without meaning.
    """

    reason: Reason
    rule: RuleRef | None
    trace: tuple[Step, ...]
    index: bool = True
    follow: bool = True
    shift: int = 0
    said: Actions = NOTHING_SAID

    @property
    def admitted(self) -> bool:
        return self.reason is Reason.ADMITTED
