"""The decision about a URL, with its evidence.

A decision holds the result of every check, and `admitted` is computed from it: `scrapy explain` prints what the crawl does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
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
    OFFSITE_REDIRECT = "offsite_redirect"
    PAGE_LINKS = "page_links"
    SITEMAP_HOST = "sitemap_host"
    SITEMAP_LIMIT = "sitemap_limit"
    PAGE_TEXT = "page_text"
    """Refuses no URL: the rest of a page's text is left out."""
    NEEDS_BROWSER = "needs_browser"
    """Refuses no URL: what is missing of a page cannot be known."""
    FIELD_TYPE = "field_type"
    """Refuses no URL: values of a page are not of the type that extract.toml gives their field."""
    NOT_EXTRACTED = "not_extracted"
    """Refuses no URL: extract.toml could not be applied to a page."""
    ADDRESS = "address"
    PRIVATE_ADDRESS = "private_address"
    MIME_TYPE = "mime_type"
    ROBOTS = "robots"
    NOINDEX = "noindex"
    NO_CONTENT = "no_content"
    NO_ITEM = "no_item"
    DROPPED = "dropped_by_pipeline"
    CHECK_FAILED = "check_failed"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for users."""
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
    Reason.OFFSITE_REDIRECT: "it is the target of a redirect from another host and CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS is off",
    Reason.PAGE_LINKS: "its page has more links than CRAWLSPACE_MAX_LINKS",
    Reason.SITEMAP_HOST: "a sitemap of another host names it, and the robots.txt of its own host does not name that sitemap",
    Reason.SITEMAP_LIMIT: "a sitemap has more entries, a host more sitemaps, or index files are nested deeper than is read",
    Reason.PAGE_TEXT: "a page has more than 10,000,000 characters of text, or than DOWNLOAD_MAXSIZE, and the rest is left out",
    Reason.NEEDS_BROWSER: "the page has scripts and next to no text or links: it may show its content in a browser only",
    Reason.FIELD_TYPE: "a value of the page is not of the type that extract.toml gives its field, and left out",
    Reason.NOT_EXTRACTED: "what extract.toml and the settings take from a page could not be read within the limits of a file",
    Reason.ADDRESS: "an address rule forbids every address of the host",
    Reason.PRIVATE_ADDRESS: "the host's address is not public and no rule allows it",
    Reason.MIME_TYPE: "the document's type is not among CRAWLSPACE_MIME_TYPES",
    Reason.ROBOTS: "robots.txt forbids the URL",
    Reason.NOINDEX: "the page asks not to be indexed",
    Reason.NO_CONTENT: "the answer has no content (204 or 205)",
    Reason.NO_ITEM: "the spider gave no item for the page",
    Reason.DROPPED: "an item pipeline dropped the document",
    Reason.CHECK_FAILED: "a check failed unexpectedly, so the URL is refused",
}


OF_PAGES = frozenset({Reason.PAGE_TEXT, Reason.NEEDS_BROWSER, Reason.FIELD_TYPE, Reason.NOT_EXTRACTED})
"""Reasons that refuse no URL: they say what is missing of a page."""


class Render(StrEnum):
    """Whether a page is rendered in a browser."""

    NEVER = "never"
    ALWAYS = "always"
    AUTO = "auto"
    """Where its HTML seems to be without its content, and where that was learned of pages like it."""


class MetaTag(StrEnum):
    """Whether the robots directives of a page itself are obeyed."""

    OBEY = "obey"
    IGNORE = "ignore"


class Conditional(StrEnum):
    """Whether a known page is requested with its validators, for a 304 if it is unchanged."""

    USUAL = "usual"
    NEVER = "never"


class RuleRef(NamedTuple):
    """The place of a rule."""

    file: str
    """The name of the file, as in `crawl.rules`."""
    line: int
    """Counts from 1."""
    text: str
    """The rule as written."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Verdict(StrEnum):
    PASS = "pass"
    """No rule of this check matched the URL."""
    ALLOW = "allow"
    """A rule of this check allows the URL."""
    REFUSE = "refuse"


class Step(NamedTuple):
    """One check and its result."""

    check: str
    """The code of the check, mostly that of the reason for which it refuses."""
    verdict: Verdict
    """`pass`, `allow` or `refuse`."""
    rule: RuleRef | None = None
    """The rule that matched; None for a limit, and where none did."""


class Applied(NamedTuple):
    """One action rule that matched a URL: what it changed (such as `index off`), and what it set without changing it."""

    rule: RuleRef
    changed: tuple[str, ...]
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Actions:
    """The result of the action rules for a URL. `rule` is the one that set `accept`, if any did."""

    accept: bool = True
    index: bool = True
    follow: bool = True
    shift: int = 0
    rule: RuleRef | None = None
    label: str = ""
    """The name that `Source` gives the document."""
    fields: tuple[tuple[str, str], ...] = ()
    """The metadata that `AddMeta` adds to the document: pairs of name and value, sorted by name."""
    applied: tuple[Applied, ...] = ()
    """All rules that matched, in file order."""
    render: Render | None = None
    """What `Render` sets; None where no rule has it."""
    ignores_noindex: bool = False
    """Whether a page's own noindex has no effect (`MetaNoIndex`)."""
    ignores_nofollow: bool = False
    """Whether a page's own nofollow has no effect (`MetaNoFollow`)."""
    conditional: Conditional | None = None
    """What `ConditionalGet` sets; None where no rule has it."""

    @property
    def index_rule(self) -> RuleRef | None:
        """The last rule that switched `index` off or on; None if none did."""
        return self._last_to_change("index")

    @property
    def render_rule(self) -> RuleRef | None:
        """The last rule that changed `render`; None if none did."""
        return self._last_to_change("render")

    def _last_to_change(self, aspect: str) -> RuleRef | None:
        for one in reversed(self.applied):
            if any(change.startswith(f"{aspect} ") for change in one.changed):
                return one.rule
        return None


NO_ACTIONS = Actions()


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of all checks of one URL.

    `index`, `follow`, `shift` and `actions` come from the rule actions; they have no meaning for a refused URL.
    """

    reason: Reason
    """`admitted`, or why the URL is refused; `reason.sentence` is the meaning."""
    rule: RuleRef | None
    """The rule that decided; None where no rule did."""
    trace: tuple[Step, ...]
    """All checks that were made, in their order."""
    index: bool = True
    """Whether the document is to be indexed."""
    follow: bool = True
    """Whether the links are to be followed."""
    shift: int = 0
    """The place among the URLs of its source: -2 goes first, 2 last."""
    actions: Actions = NO_ACTIONS
    """All that the rule actions set."""
    lacks_domain_rule: bool = False
    """The refusal of a private address that would be allowed if a domain rule named the host."""

    @property
    def admitted(self) -> bool:
        """Whether the URL is in the crawl space."""
        return self.reason is Reason.ADMITTED

    def heeding(self, checks: Collection[Reason]) -> Decision:
        """Return the decision as if only these checks refused: for what is requested and is no page."""
        for step in self.trace:
            if step.verdict is Verdict.REFUSE and step.check in checks:
                return replace(self, reason=Reason(step.check), rule=step.rule)
        return replace(self, reason=Reason.ADMITTED, rule=None)


def of_all_addresses(decisions: Sequence[Decision]) -> Decision:
    """Return the decision about a host, of those about each of its addresses: one allowed address is enough.

    If none is allowed, a refusal that a domain rule for the host would lift comes first, because one address would do then.
    """
    for decision in decisions:
        if decision.admitted:
            return decision
    return next((decision for decision in decisions if decision.lacks_domain_rule), decisions[0])
