"""A crawler's master_config folder as a collection of ours: every file and every entry translated or reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from crawlspace.config.files import read_bytes, read_text
from crawlspace.errors import Mistake, RuleFileError
from crawlspace.importers.expressions import Untranslatable
from crawlspace.importers.files import ImportedCollection, ImportedStart, SettingsFile, start_lines, start_url, xml_document
from crawlspace.importers.ibm.folder import FileKind, FolderFile, PropertyFile, read_properties, read_xml_properties, rows
from crawlspace.importers.ibm.follow_index import FollowIndexRule, Written, condition, parse_follow_index, with_effect, xml_lines
from crawlspace.importers.ibm.options import known
from crawlspace.importers.ibm.settings import IbmSettings
from crawlspace.importers.reading import MAX_SIZE, WrittenValue
from crawlspace.importers.translation import NO_LIMIT_OF_REPEATED_SEGMENTS, Fate, ImportReport, Translation, lost, setting
from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, parse_crawl_rules, parse_global_rules
from crawlspace.text import counted, printable, without_credentials

Read = TypeVar("Read")
_ALWAYS: Mapping[str, tuple[object, str]] = {
    "CRAWLSPACE_HOST_CASE_SENSITIVE": (True, "IBM compares hosts with their capitals"),
    "CRAWLSPACE_FOLLOW_OFFSITE_LINKS": (True, "the rules alone bound IBM's crawl space"),
    "CRAWLSPACE_INDEX_ENTIRE_SITE": (False, "the rules alone bound IBM's crawl space"),
    "CRAWLSPACE_FOLLOW_QUERY_STRINGS": (True, "IBM follows links with a query"),
    "CRAWLSPACE_MAX_REPEATED_SEGMENTS": (
        NO_LIMIT_OF_REPEATED_SEGMENTS,
        "IBM counts no repeated segments; its limit for endless folders is the maximum URL path depth",
    ),
    "CRAWLSPACE_RULES_XML_REGEX": ("escaped", "rules.xml is written so"),
    "CRAWLSPACE_DEFAULT_ACCEPT": (True, "IBM accepts what no rule forbids"),
    "CRAWLSPACE_DEFAULT_INDEX": (True, "IBM indexes what no rule forbids"),
    "CRAWLSPACE_DEFAULT_FOLLOW": (True, "IBM follows what no rule forbids"),
}
"""Settings that reproduce IBM's decisions; written if the settings of the project differ."""


def translate_ibm(
    files: Sequence[FolderFile],
    *,
    folder: str,
    name: str,
    defaults: Mapping[str, object],
    logged_out: Mapping[str, str] | None = None,
) -> ImportedCollection:
    """Translate a folder; `name` is that of the collection, `defaults` are the settings of the project.

    `logged_out` has, for sites whose cookies are a log-in, the text or address of a page that asks to log in. Raises RuleFileError
    with the mistakes of all files, ConfigError for one that cannot be read, and UsageError for a site without cookies.
    """
    report = ImportReport(folder)
    settings = SettingsFile(_heading(folder))
    of_settings = IbmSettings(settings, report, name=name, defaults=defaults, logged_out=logged_out or {})
    return _IbmImport(files, report, settings, of_settings, defaults=defaults).collection()


class _IbmImport:
    def __init__(
        self,
        files: Sequence[FolderFile],
        report: ImportReport,
        settings: SettingsFile,
        of_settings: IbmSettings,
        *,
        defaults: Mapping[str, object],
    ) -> None:
        self._files = files
        self._report = report
        self._settings = settings
        self._of_settings = of_settings
        self._defaults = defaults
        self._mistakes: list[Mistake] = []

    def collection(self) -> ImportedCollection:
        rules = self._one_of(FileKind.CRAWL_RULES, lambda text, file: (text, parse_crawl_rules(text, file=file)))
        shared = self._one_of(FileKind.GLOBAL_RULES, lambda text, file: (text, parse_global_rules(text, file=file)))
        follow_index = self._one_of(FileKind.FOLLOW_INDEX, lambda text, file: parse_follow_index(text, file=file)) or []
        texts = {file: self._text(file) for file in self._files if file.part in _ROWS}
        properties = {file: self._properties(file) for file in self._files if file.part is FileKind.PROPERTIES}
        if self._mistakes:
            raise RuleFileError(self._mistakes)
        for setting_name, (value, why) in _ALWAYS.items():
            self._settings.set(setting(self._defaults, setting_name, value).settings, why)
        files = {"crawl.rules": self._crawl_rules(*rules or ("", CrawlRules()))}
        if shared is not None:
            files["global.rules"] = self._global_rules(*shared)
        files["rules.xml"] = xml_document(
            f"From {self._report.file}, by scrapy import-ibm: what is indexed, and whose links are followed.",
            self._follow_index(follow_index),
        )
        starts = [start for file, text in texts.items() if file.part is FileKind.START_URLS for start in self._starts(file, text)]
        for file, text in texts.items():
            self._of_settings.add_rows(file, text)
        for file, found in properties.items():
            self._of_settings.add_properties(file, found)
        self._of_settings.finish()
        for file in self._files:
            if file.part is FileKind.UNKNOWN:
                self._unknown(file)
        reported = {one.file for one in self._report.options}
        for file in self._files:
            if printable(file.name) not in reported:
                self._report.add(0, "file", Fate.DEFAULT, "there is nothing in it", file=file.name)
        start_urls = self._start_urls(starts, files)
        files = {"start_urls.txt": start_urls, **files, "settings.py": self._settings.text()}
        return ImportedCollection(files, self._report, absent=() if "global.rules" in files else ("global.rules",))

    # --- reading -----------------------------------------------------------------------------------------------------

    def _one_of(self, part: FileKind, parse: Callable[[str, str], Read]) -> Read | None:
        """Return the parsed file of a part; None without one, and after recording its mistakes."""
        files = [file for file in self._files if file.part is part]
        for again in files[1:]:
            self._report.add(0, "file", Fate.NO_COUNTERPART, f"{files[0].name} is there too, and is read", file=again.name)
        if not files:
            return None
        try:
            return parse(self._text(files[0], limited=False), files[0].name)
        except RuleFileError as error:
            self._mistakes += error.mistakes
            return None

    def _text(self, file: FolderFile, *, limited: bool = True) -> str:
        return read_text(file.path, self._mistakes, most=MAX_SIZE) if limited else read_text(file.path, self._mistakes)

    def _properties(self, file: FolderFile) -> PropertyFile:
        if not file.is_xml:
            return read_properties(self._text(file))
        try:
            data = read_bytes(file.path, most=MAX_SIZE + 1)
            return read_xml_properties(data, file=file.name, is_known=lambda name: bool(known(name)[0]))
        except RuleFileError as error:
            self._mistakes += error.mistakes
            return PropertyFile([])

    # --- rules -------------------------------------------------------------------------------------------------------

    def _crawl_rules(self, text: str, rules: CrawlRules) -> str:
        number = sum(map(len, (rules.domain, rules.prefix, rules.address)))
        return self._copied(FileKind.CRAWL_RULES, text, number)

    def _global_rules(self, text: str, rules: Sequence[DomainRule]) -> str:
        return self._copied(FileKind.GLOBAL_RULES, text, len(rules))

    def _copied(self, part: FileKind, text: str, number: int) -> str:
        """Return a file of rules with the same text and order; each block of lines follows a comment with its line numbers."""
        if any(file.part is part for file in self._files):
            same = f"{counted(number, 'rule')} in {part}, in the same words and order"
            self._report.add(1, "rules", Fate.TRANSLATED, same, file=part)
        written = [_heading(self._report.file)]
        lines = enumerate(text.split("\n"), 1)
        for is_blank, block in groupby(lines, key=lambda line: not line[1].strip()):
            if not is_blank:
                numbered = list(block)
                first, last = numbered[0][0], numbered[-1][0]
                written.append(f"\n# {part}:{first}" + (f"-{last}" if last > first else "") + "\n")
                written += [f"{_shown(line)}\n" for _, line in numbered]
        return "".join(written)

    def _follow_index(self, rules: Sequence[FollowIndexRule]) -> list[str]:
        """Return the lines of rules.xml, and report the rules."""
        file = next((file.name for file in self._files if file.part is FileKind.FOLLOW_INDEX), "")
        effective = {rule.line for rule in with_effect(rules)}
        translated: list[Written] = []
        for rule in rules:
            option = f"{rule.rule.action} {rule.subject}"
            actions = rule.actions(keeps_off=rule.line in effective)
            try:
                found = condition(rule.rule)
            except Untranslatable as error:
                self._report.add(rule.line, option, Fate.NO_COUNTERPART, str(error), is_recalled=True, file=file)
                continue
            translated.append((rule, found, actions))
            text = f"a rule of rules.xml ({', '.join(actions)})"
            self._report.add(rule.line, option, Fate.TRANSLATED, text, is_recalled=True, file=file)
        return xml_lines(translated, file=file)

    # --- start URLs --------------------------------------------------------------------------------------------------

    def _starts(self, file: FolderFile, text: str) -> list[ImportedStart]:
        """Return the start URLs of a file; they are reported together, and unusable ones individually."""
        found: list[ImportedStart] = []
        for row in rows(text):
            url = start_url(WrittenValue(row.text.strip(), row.line))
            if isinstance(url, Translation):
                self._report.add(row.line, "start URL", url.fate, url.text, file=file.name)
            else:
                found.append(ImportedStart("start URL", row.line, url, is_reported=False, file=file.name))
        self._report.add(
            0, "start URLs", Fate.TRANSLATED, f"{counted(len(found), 'entry', 'entries')} of start_urls.txt", file=file.name
        )
        return found

    def _start_urls(self, starts: Sequence[ImportedStart], files: Mapping[str, str]) -> str:
        if not starts:
            reason = (
                "the folder has no file with start URLs that can be used; name one with --start-urls, or write start_urls.txt"
            )
            self._report.add(0, "start URLs", Fate.NO_COUNTERPART, reason)
        settings = {**self._defaults, **self._settings.values}
        lines = start_lines(starts, files, settings, self._report, refused="refused, as by IBM")
        return _heading(self._report.file) + "".join(lines)

    def _unknown(self, file: FolderFile) -> None:
        what = "folder" if file.path.is_dir() else "file"
        translation = lost(f"this {what} is none that is known of IBM's Web crawler, and was not read")
        self._report.add(0, what, translation.fate, translation.text, file=file.name)


_ROWS = frozenset({FileKind.START_URLS, FileKind.SOFT_ERRORS, FileKind.COOKIES, FileKind.BASIC_LOGINS, FileKind.FORM_LOGINS})
"""Parts whose files have an entry a line."""


def _shown(line: str) -> str:
    """Return a line of rules; a comment without passwords. A rule has none."""
    line = line.rstrip()
    return without_credentials(line) if line.lstrip().startswith("#") else line


def _heading(folder: str) -> str:
    return (
        f"# The Web crawler of IBM in the folder {printable(folder)}, by `scrapy import-ibm`.\n"
        "# A comment names the origin of the lines below it.\n"
    )
