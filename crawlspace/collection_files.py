"""The files of a collection but for its settings: start URLs, crawl.rules and global.rules, each with all its mistakes at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crawlspace.errors import ConfigError, Mistake, RuleFileError, SettingError
from crawlspace.readers import words
from crawlspace.rules.action_rules import ActionRuleSet
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules, parse_global_rules
from crawlspace.rules.rules_xml import MAX_SIZE, parse_rules_xml, refuse_size
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

GLOBAL_RULES = "global.rules"
RULES_XML = "rules.xml"
_CREDENTIALS = re.compile(r"//[^/?#@\s]*@")


@dataclass(frozen=True, slots=True)
class StartUrl:
    """A start URL with its place in the files, and its shift (-2 first … 2 last)."""

    url: Url
    shift: int
    where: str


class AllRules(NamedTuple):
    """The rules of a collection and those of its global crawl space; None where there is no file."""

    rules: CrawlRules
    rules_file: Path | None
    global_rules: CrawlRules | None
    global_file: Path | None
    action_rules: ActionRuleSet | None


def read_all_rules(folder: Path, settings: Mapping[str, object]) -> AllRules:
    """Read crawl.rules, rules.xml and global.rules. Raises RuleFileError with every mistake of all, and what reading one of them raises."""
    mistakes: list[Mistake] = []
    rules: tuple[CrawlRules, Path | None, ActionRuleSet | None] = (CrawlRules(), None, None)
    global_rules: tuple[CrawlRules | None, Path | None] = (None, None)
    try:
        rules = read_own_rules(folder)
    except RuleFileError as error:
        mistakes += error.mistakes
    try:
        global_rules = read_global_rules(folder, settings)
    except RuleFileError as error:
        mistakes += error.mistakes
    if mistakes:
        raise RuleFileError(mistakes)
    return AllRules(*rules[:2], *global_rules, rules[2])


def read_own_rules(folder: Path) -> tuple[CrawlRules, Path | None, ActionRuleSet | None]:
    """Read crawl.rules and rules.xml. Raises RuleFileError with every mistake of both, and what reading one of them raises."""
    mistakes: list[Mistake] = []
    rules: tuple[CrawlRules, Path | None] = (CrawlRules(), None)
    action_rules: ActionRuleSet | None = None
    try:
        rules = read_rules(folder)
    except RuleFileError as error:
        mistakes += error.mistakes
    try:
        action_rules = read_action_rules(folder)
    except RuleFileError as error:
        mistakes += error.mistakes
    if mistakes:
        raise RuleFileError(mistakes)
    return (*rules, action_rules)


def read_rules(folder: Path) -> tuple[CrawlRules, Path | None]:
    """Read crawl.rules; a collection without one has no rules. Raises RuleFileError, ConfigError."""
    path = folder / "crawl.rules"
    if not _is_there(path):
        return CrawlRules(), None
    return parse_crawl_rules(_read_text(path), file=path.name), path


def read_action_rules(folder: Path) -> ActionRuleSet | None:
    """Read rules.xml; None where there is none. Raises RuleFileError, ConfigError."""
    path = folder / RULES_XML
    if not _is_there(path):
        return None
    try:
        with path.open("rb") as file:
            refuse_size(os.fstat(file.fileno()).st_size, file=path.name)
            data = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return parse_rules_xml(data, file=path.name)


def read_global_rules(folder: Path, settings: Mapping[str, object]) -> tuple[CrawlRules | None, Path | None]:
    """Read global.rules; without one there is no global crawl space, and one without rules allows nothing. Raises RuleFileError, ConfigError."""
    path = global_rules_file(folder, settings)
    if path is None:
        return None, None
    return CrawlRules(domain=parse_global_rules(_read_text(path), file=path.name)), path


def global_rules_file(folder: Path, settings: Mapping[str, object]) -> Path | None:
    """Return where the global crawl space of a collection is written: CRAWLSPACE_GLOBAL_RULES, else its own file, else the shared one.

    Raises SettingError when the setting names a file that isn't there.
    """
    named = settings["CRAWLSPACE_GLOBAL_RULES"]
    if named:
        path = Path(str(named))
        if not _is_there(path):
            raise SettingError(
                f"CRAWLSPACE_GLOBAL_RULES is {str(named)!r}, and there is no such file; write it, or mend the path"
            )
        return path
    for path in (folder / GLOBAL_RULES, Path(str(settings["CRAWLSPACE_COLLECTIONS_DIR"])) / GLOBAL_RULES):
        if _is_there(path):
            return path
    return None


def read_start_urls(folder: Path, settings: Mapping[str, object]) -> tuple[StartUrl, ...]:
    """Read start_urls.txt (one a line, `#` comments, `shift=-2` … `shift=2` behind) and CRAWLSPACE_START_URLS.

    Raises RuleFileError with every line that is wrong, ConfigError when there is none at all.
    """
    found: list[StartUrl] = []
    mistakes: list[Mistake] = []
    path = folder / "start_urls.txt"
    if path.exists():
        for number, line in enumerate(_read_text(path).splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                _read_start_url(line, path.name, number, found, mistakes)
    extra = words("CRAWLSPACE_START_URLS", settings.get("CRAWLSPACE_START_URLS") or [])
    for number, line in enumerate(extra, 1):
        _read_start_url(line, "CRAWLSPACE_START_URLS", number, found, mistakes)
    if mistakes:
        raise RuleFileError(mistakes)
    if not found:
        raise ConfigError(f"collection {folder.name!r} has no start URL: write one a line into {path}")
    return tuple(found)


def _read_start_url(line: str, file: str, number: int, found: list[StartUrl], mistakes: list[Mistake]) -> None:
    line = _CREDENTIALS.sub(
        lambda match: "//" + "*" * (len(match[0]) - 3) + "@", line
    )  # they must not be shown; there they are wrong anyway

    def mistake(column: int, message: str) -> None:
        mistakes.append(Mistake(file, number, column, message, line))

    parts = line.split()
    column = line.index(parts[0]) + 1
    if not parts[0].lower().startswith(tuple(f"{scheme}://" for scheme in DEFAULT_PORTS)):
        return mistake(column, f"a start URL begins with http:// or https://, as in http://{parts[0].split('://')[-1]}")
    try:
        url = parse(parts[0])
    except MalformedUrl as error:
        return mistake(column, f"{error}; a start URL is like http://www.example.com/")
    shift = 0
    for word in parts[1:]:
        if word not in {f"shift={n}" for n in range(-2, 3)}:
            return mistake(line.rindex(word) + 1, f"unexpected {word!r}; only shift=-2 (first) to shift=2 (last) may follow")
        shift = int(word.removeprefix("shift="))
    found.append(StartUrl(url, shift, f"{file}:{number}"))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _is_there(path: Path) -> bool:
    """Also for a link that leads nowhere, and where one may not look: reading says what is wrong. Only a file that isn't there has no rules."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
