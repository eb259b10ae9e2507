"""The files of an imported collection: settings.py, rules.xml, crawl.rules and start_urls.txt, and writing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from crawlspace.config.collection import compile_actions
from crawlspace.config.files import REGEX, is_there, read_bytes
from crawlspace.config.limits import read_limits
from crawlspace.errors import ConfigError, RuleFileError
from crawlspace.importers.reading import WrittenValue
from crawlspace.importers.translation import Fate, ImportReport, Translation, lost
from crawlspace.lint.crawl_rules import lint_rules
from crawlspace.parsing import boolean
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.text import escaped, printable, quoted, without_credentials
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse


@dataclass(frozen=True, slots=True)
class ImportedCollection:
    """The files of a collection, by name, and the report of its options.

    An importer always writes all of its files: one of an earlier import must not remain. `absent` names files that must not exist, because
    their existence has a meaning.
    """

    files: Mapping[str, str]
    report: ImportReport
    absent: Sequence[str] = ()


def heading(what: str, command: str, origin: str) -> str:
    """Return the comment at the top of a file: `what` was imported by `command` from `origin`."""
    return f"# {what}, by `scrapy {command}`.\n# A comment names the origin in {origin} of the line below it.\n"


def difference(folder: Path, files: Mapping[str, str], absent: Sequence[str] = ()) -> str:
    """Return what would change in a folder, as a unified diff; empty if nothing. Raises ConfigError."""
    removed = [_difference(path, "") or f"{path} is removed\n" for path in (folder / name for name in absent) if is_there(path)]
    return "".join([*(_difference(folder / name, text) for name, text in files.items()), *removed])


def write_files(folder: Path, files: Mapping[str, str], absent: Sequence[str] = ()) -> None:
    """Write the files, each replaced as a whole, and remove the absent ones. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            unfinished = folder / f".{name}.new"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(folder / name)
        for name in absent:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}; it must be in a folder that can be written") from error


def _difference(path: Path, text: str) -> str:
    there = read_bytes(path).decode("utf-8", "replace") if is_there(path) else ""
    old, new = (part.splitlines(keepends=True) for part in (there, text))
    return "".join(unified_diff(old, new, f"{path} (now)", f"{path} (imported)"))


# --- The settings.py of an imported collection: each setting after comments with its origins -----------------------

SITES = "CRAWLSPACE_SITES"


@dataclass(slots=True)
class SettingsFile:
    """The settings of a collection, in the order in which they are set."""

    heading: str
    """Lines of comments at the top."""
    values: dict[str, object] = field(default_factory=dict)
    origins: dict[str, list[str]] = field(default_factory=dict)
    sites: dict[str, dict[str, object]] = field(default_factory=dict)
    """CRAWLSPACE_SITES, by host pattern; the first that matches holds."""
    of_all_sites: dict[str, object] = field(default_factory=dict)
    """Settings in each entry of CRAWLSPACE_SITES, and in one for all other sites."""
    notes: list[str] = field(default_factory=list)
    """Paragraphs of comments at the end, without their `#`."""

    def set(self, settings: Mapping[str, object], origin: str) -> None:
        for name, value in settings.items():
            self.values[name] = value
            self.origins.setdefault(name, []).append(origin)

    def set_site(self, pattern: str, own: Mapping[str, object], origin: str) -> None:
        self.sites.setdefault(pattern, {}).update(own)
        self.origins.setdefault(SITES, []).append(origin)

    def text(self) -> str:
        """Return the file."""
        values = dict(self.values)
        sites = {pattern: {**self.of_all_sites, **own} for pattern, own in self.sites.items()}
        if self.of_all_sites:
            sites["*"] = dict(self.of_all_sites)
        if sites:
            values[SITES] = sites
        notes = "".join("\n" + "".join(f"# {line}\n" for line in note.splitlines()) for note in self.notes)
        return self.heading + "".join(self._setting(name, value) for name, value in values.items()) + notes

    def _setting(self, name: str, value: object) -> str:
        comments = "".join(f"# {origin}\n" for origin in dict.fromkeys(self.origins.get(name, ())))
        return f"\n{comments}{name} = {''.join(_written(value, ''))}\n"


def _written(value: object, indent: str) -> Iterator[str]:
    """Yield the parts of a value in Python, large ones on several lines."""
    short = _plain(value)
    if len(short) + len(indent) < 80 or not isinstance(value, Mapping | list):
        yield short
        return
    yield "{\n" if isinstance(value, Mapping) else "[\n"
    inner = f"{indent}    "
    for one in value:
        yield inner
        if isinstance(value, Mapping):
            yield f"{_plain(one)}: "
            yield from _written(value[one], inner)
        else:
            yield _plain(one)
        yield ",\n"
    yield f"{indent}}}" if isinstance(value, Mapping) else f"{indent}]"


def _plain(value: object) -> str:
    if isinstance(value, str):
        text = repr(value)
        return text if text.startswith('"') or '"' in text or "\\" in text else f'"{value}"'
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_plain(key)}: {_plain(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_plain, value))}]"
    return repr(value)


# --- The rules.xml of an imported collection, as text --------------------------------------------------------------

_HYPHENS = re.compile("-(?=-)")
"""A comment has no two in a row."""


def xml_comment(text: str) -> str:
    """Return a comment; forbidden characters are replaced."""
    safe = _HYPHENS.sub("- ", escaped(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<!-- {safe} -->"


def xml_rule(origins: Sequence[str], condition: str, actions: Iterable[str], *, indent: str = "  ") -> list[str]:
    """Return the lines of a rule, after comments with its origins; condition and actions are elements."""
    comments = [f"{indent}{xml_comment(origin)}" for origin in dict.fromkeys(origins)]
    return [*comments, f"{indent}<Rule>", *(f"{indent}  {element}" for element in (condition, *actions)), f"{indent}</Rule>"]


def xml_document(heading: str, lines: Iterable[str]) -> str:
    """Return the file with these lines inside Rules."""
    inner = "".join(f"{line}\n" for line in lines)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml_comment(heading)}\n<Rules>\n{inner}</Rules>\n'


# --- The crawl.rules of an imported collection: rules that decide nothing are left out -----------------------------

_CODES = frozenset({"never-applies", "host-forbidden"})
"""Findings about rules that change no decision."""


def rules_without_effect(rules: Sequence[str]) -> dict[int, str]:
    """Return the indices of the rules without effect, because of earlier ones, with the finding of lint about each."""
    parsed = parse_crawl_rules("".join(f"{rule}\n" for rule in rules), file="crawl.rules")
    found = lint_rules(parsed, Limits(), host_case_sensitive=False)
    return {one.line - 1: one.code for one in found if one.code in _CODES}


# --- The start URLs of an imported collection: those that can be read, and which of them the imported rules admit ---

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
    """Whether it has its own line in the report."""
    file: str = ""
    """Its file, if the report is about several."""


def start_url(value: WrittenValue) -> Url | Translation:
    """Return a start URL, or the report of an unusable one."""
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

    `files` has crawl.rules and rules.xml; `refused` is the report's term for a refusal.
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


def imported_collection(
    settings: SettingsFile,
    crawl_rules: Iterable[str],
    rules_xml: str,
    starts: Sequence[ImportedStart],
    report: ImportReport,
    *,
    heading: str,
    effective: Mapping[str, object],
    refused: str,
) -> ImportedCollection:
    """Return the files of a collection from the lines of its crawl.rules, its rules.xml and its start URLs.

    `effective` are the settings with which the start URLs are checked, `refused` is the report's term for a refusal.
    """
    lines = "".join(f"{line}\n" for line in crawl_rules)
    files = {"crawl.rules": f"{heading}\n{lines}", "rules.xml": rules_xml, "settings.py": settings.text()}
    urls = "".join(start_lines(starts, files, effective, report, refused=refused))
    return ImportedCollection({"start_urls.txt": heading + urls, **files}, report)


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


def any_of(conditions: Sequence[str]) -> str:
    """Return the condition of rules.xml that one of several holds."""
    return conditions[0] if len(conditions) == 1 else f"<Or> {' '.join(conditions)} </Or>"
