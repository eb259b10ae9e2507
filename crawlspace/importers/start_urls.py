"""The start URLs of an imported collection: those that can be read, and which of them the imported rules admit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crawlspace.config.collection import compile_actions
from crawlspace.config.files import REGEX
from crawlspace.config.limits import read_limits
from crawlspace.errors import RuleFileError
from crawlspace.importers.lists import WrittenValue
from crawlspace.importers.outcomes import Translation, lost
from crawlspace.importers.report import Fate, ImportReport
from crawlspace.parsing import boolean
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.text import printable, quoted, without_credentials
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

_CASE = "CRAWLSPACE_HOST_CASE_SENSITIVE"


@dataclass(frozen=True, slots=True)
class ImportedStart:
    """A start URL with the option and line that it comes from; `note` is added to the comment above it."""

    option: str
    line: int
    url: Url
    shift: int = 0
    note: str = ""
    is_recalled: bool = False
    is_reported: bool = True
    """Whether it has a line of its own in the report."""
    file: str = ""
    """Its file, where the report is about several."""


def start_url(value: WrittenValue) -> Url | Translation:
    """Return a start URL, or what is reported of one that cannot be used."""
    if without_credentials(value.text) != value.text:
        return lost("it has a user name or password; write a log-in of the site into CRAWLSPACE_SITES (docs/logins.md)")
    scheme, separator, rest = value.text.partition("://")
    if not separator or scheme.lower() not in DEFAULT_PORTS:
        return lost(
            f"{quoted(value.text)} is no start URL: one begins with http:// or https://, as in http://{printable(rest or scheme)}"
        )
    try:
        return parse(value.text)
    except MalformedUrl as error:
        return lost(str(error))


def start_lines(
    starts: Sequence[ImportedStart],
    files: Mapping[str, str],
    settings: Mapping[str, object],
    report: ImportReport,
    *,
    refused: str,
) -> Iterator[str]:
    """Yield the entries of start_urls.txt, and report them. Those that the rules refuse become comments, unless all are refused.

    `files` has crawl.rules and rules.xml; `refused` is how the report calls the refusal.
    """
    space = _space(files, settings, [start.url for start in starts])
    decisions = {start.url.text: space.decide_url(start.url, depth=0) for start in starts} if space is not None else {}
    is_any = not decisions or any(decision.admitted for decision in decisions.values())
    for start in starts:
        yield f"\n# {printable(start.file) or report.file}:{start.line}: {printable(start.option)}{start.note}\n"
        decision = decisions.get(start.url.text)
        entry = f"{start.url.text} shift={start.shift}" if start.shift else start.url.text
        fate, text = Fate.TRANSLATED, f"{printable(entry)} in start_urls.txt"
        is_refused = is_any and decision is not None and not decision.admitted
        if is_refused and decision is not None:
            text = f"a comment in start_urls.txt: {printable(start.url.text)} is {refused} ({decision.reason.sentence})"
        if start.is_reported or is_refused:
            report.add(start.line, start.option, fate, text, is_recalled=start.is_recalled, file=start.file)
        yield f"# refused by the rules: {entry}\n" if is_refused else f"{entry}\n"


def _space(files: Mapping[str, str], settings: Mapping[str, object], starts: Sequence[Url]) -> CrawlSpace | None:
    """Return the crawl space of the imported files; None if they have mistakes, which lint names."""
    try:
        rules = parse_crawl_rules(files["crawl.rules"], file="crawl.rules")
        syntax = RegexSyntax(str(settings[REGEX]))
        actions = parse_rules_xml(files["rules.xml"].encode(), file="rules.xml", syntax=syntax)
    except RuleFileError:
        return None
    return CrawlSpace(
        rules,
        read_limits(settings),
        starts,
        host_case_sensitive=boolean(_CASE, settings[_CASE]),
        actions=compile_actions(actions, settings),
    )
