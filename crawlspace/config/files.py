"""The files of a collection except settings.py: start URLs, crawl.rules, rules.xml, global.rules, extract.toml and tests.rules."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import NamedTuple, TypeVar

from crawlspace.content.extraction_rules import EXTRACT_TOML, NO_RULES, ExtractionRules
from crawlspace.errors import ConfigError, Mistake, RuleFileError, SettingError
from crawlspace.parsing import one_of, words
from crawlspace.private_files import kind_of, real_path
from crawlspace.rules.crawl_rules import MAX_MISTAKES, CrawlRules, parse_crawl_rules, parse_global_rules, written_lines
from crawlspace.rules.rule_tests import RULE_TESTS, RuleTest, parse_rule_tests
from crawlspace.rules.xml.model import ActionRuleSet, RegexSyntax
from crawlspace.rules.xml.parser import MAX_SIZE, narrowing, parse_rules_xml, refuse_size
from crawlspace.text import printable, quoted, without_credentials
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

_FILES = "CRAWLSPACE_START_URL_FILES"
GLOBAL_RULES = "global.rules"
RULES_XML = "rules.xml"
REGEX = "CRAWLSPACE_RULES_XML_REGEX"

MAX_FILE = 200 * 1024 * 1024
"""Maximal bytes of a file of rules or start URLs."""
MAX_START_URLS = 250_000
"""Maximal start URLs of a collection: each is checked and inserted at every start."""
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
)
_NO_UTF_8 = re.compile("[\udc80-\udcff]")
"""The characters to which `surrogateescape` decodes bytes that are not UTF-8."""
Rules = TypeVar("Rules")
More = TypeVar("More")


@dataclass(frozen=True, slots=True)
class StartUrl:
    """A start URL with its shift (-2 first … 2 last) and its place in the files."""

    url: Url
    shift: int
    where: str


class AllRules(NamedTuple):
    """The rules of a collection and of its global crawl space; None for a missing file."""

    rules: CrawlRules
    rules_file: Path | None
    global_rules: CrawlRules | None
    global_file: Path | None
    action_rules: ActionRuleSet | None
    extraction_rules: ExtractionRules = NO_RULES
    tests: tuple[RuleTest, ...] = ()


def read_all_rules(folder: Path, settings: Mapping[str, object]) -> AllRules:
    """Read all rules and their tests. Raises RuleFileError with the mistakes of all files, and ConfigError."""
    (own, of_all), (extraction, tests) = _with_all_mistakes(
        lambda: _with_all_mistakes(lambda: read_own_rules(folder, settings), lambda: read_global_rules(folder, settings)),
        lambda: _with_all_mistakes(lambda: read_extraction_rules(folder), lambda: read_rule_tests(folder)),
    )
    return AllRules(*own[:2], *of_all, own[2], extraction, tests)


def read_own_rules(folder: Path, settings: Mapping[str, object]) -> tuple[CrawlRules, Path | None, ActionRuleSet | None]:
    """Read crawl.rules and rules.xml. Raises RuleFileError with the mistakes of both, and ConfigError."""
    rules, action_rules = _with_all_mistakes(lambda: read_rules(folder), lambda: read_action_rules(folder, settings))
    refuse_what_is_not_read(rules[0], action_rules, settings)
    return (*rules, action_rules)


def _with_all_mistakes(read: Callable[[], Rules], read_more: Callable[[], More]) -> tuple[Rules, More]:
    """Return what both functions return. Raises RuleFileError with the mistakes of both."""
    try:
        rules = read()
    except RuleFileError as error:
        mistakes = list(error.mistakes)
        try:
            read_more()
        except RuleFileError as other:
            mistakes += other.mistakes
        raise RuleFileError(mistakes) from error
    return rules, read_more()


def refuse_what_is_not_read(rules: CrawlRules, action_rules: ActionRuleSet | None, settings: Mapping[str, object]) -> None:
    """Raise RuleFileError if rules.xml is an export of which more than the rules would have to be read: it is narrower than they are."""
    if action_rules is not None and (mistakes := list(narrowing(action_rules, rules, settings, file=RULES_XML))):
        raise RuleFileError(mistakes)


def read_rules(folder: Path) -> tuple[CrawlRules, Path | None]:
    """Read crawl.rules; without the file there are no rules. Raises RuleFileError, ConfigError."""
    path = folder / "crawl.rules"
    if not is_there(path):
        return CrawlRules(), None
    return _parsed(path, lambda text: parse_crawl_rules(text, file=path.name)), path


def read_action_rules(folder: Path, settings: Mapping[str, object]) -> ActionRuleSet | None:
    """Read rules.xml; None without the file. Raises RuleFileError, SettingError, ConfigError."""
    syntax = RegexSyntax(one_of(REGEX, settings[REGEX], tuple(RegexSyntax)))
    path = folder / RULES_XML
    if not is_there(path):
        return None
    refuse_size(_size(path), file=path.name)
    return parse_rules_xml(read_bytes(path, most=MAX_SIZE + 1), file=path.name, syntax=syntax)


def read_global_rules(folder: Path, settings: Mapping[str, object]) -> tuple[CrawlRules | None, Path | None]:
    """Read global.rules; None without the file, while a file without rules allows nothing. Raises RuleFileError, ConfigError."""
    path = global_rules_file(folder, settings)
    if path is None:
        return None, None
    return CrawlRules(domain=_parsed(path, lambda text: parse_global_rules(text, file=path.name))), path


def read_extraction_rules(folder: Path) -> ExtractionRules:
    """Read extract.toml; without the file there are no rules. Raises RuleFileError, ConfigError."""
    path = folder / EXTRACT_TOML
    if not is_there(path):
        return NO_RULES
    from crawlspace.config.extraction import MAX_SIZE, parse_extraction_rules  # noqa: PLC0415 - few collections have rules

    mistakes: list[Mistake] = []
    text = read_text(path, mistakes, most=MAX_SIZE)
    if mistakes:  # a line that is left out may be needed by its table
        raise RuleFileError(mistakes)
    return parse_extraction_rules(text, file=path.name)


def read_rule_tests(folder: Path) -> tuple[RuleTest, ...]:
    """Read tests.rules; without the file there are no tests. Raises RuleFileError, ConfigError."""
    path = folder / RULE_TESTS
    return _parsed(path, lambda text: parse_rule_tests(text, file=path.name)) if is_there(path) else ()


def global_rules_file(folder: Path, settings: Mapping[str, object]) -> Path | None:
    """Return the file of the global crawl space: CRAWLSPACE_GLOBAL_RULES, else the collection's own file, else the shared one.

    Raises SettingError if the setting names a missing file.
    """
    named = settings["CRAWLSPACE_GLOBAL_RULES"]
    if named:
        path = Path(str(named))
        if not is_there(path):
            raise SettingError(
                f"CRAWLSPACE_GLOBAL_RULES is {quoted(str(named))}, and there is no such file; write it, or correct the path"
            )
        return path
    for path in (folder / GLOBAL_RULES, Path(str(settings["CRAWLSPACE_COLLECTIONS_DIR"])) / GLOBAL_RULES):
        if is_there(path):
            return path
    return None


def read_start_urls(folder: Path, settings: Mapping[str, object]) -> tuple[StartUrl, ...]:
    """Read start_urls.txt, the files of CRAWLSPACE_START_URL_FILES, and CRAWLSPACE_START_URLS; of equal URLs, the first.

    A file has one URL a line, `#` comments, and optional `shift=-2` … `shift=2`. Raises RuleFileError with every wrong line,
    SettingError for a missing file, ConfigError if there is no start URL.
    """
    found: dict[tuple[str, str], StartUrl] = {}
    mistakes: list[Mistake] = []
    usual = folder / "start_urls.txt"
    own = _start_url_files(folder, settings)
    files = {usual: usual.name, **own} if is_there(usual) else own
    read = ((file, written_lines(read_text(path, mistakes, file=file))) for path, file in files.items())
    for file, number, line in ((file, number, line) for file, lines in read for number, line in lines):
        _read_start_url(line, file, number, found, mistakes)
        if len(found) > MAX_START_URLS or len(mistakes) >= MAX_MISTAKES:
            break
    extra = words("CRAWLSPACE_START_URLS", settings.get("CRAWLSPACE_START_URLS") or [])
    for number, line in enumerate(extra, 1):
        _read_start_url(line, "CRAWLSPACE_START_URLS", number, found, mistakes)
    starts = tuple(found.values())
    if len(starts) > MAX_START_URLS:
        file, _, number_there = starts[MAX_START_URLS].where.rpartition(":")
        message = (
            f"this is the {MAX_START_URLS + 1:,}st start URL, and {MAX_START_URLS:,} is the most; "
            "name pages that lead to the others, or divide them among collections"
        )
        mistakes.append(Mistake(file, int(number_there), 1, message, ""))
    if mistakes:
        raise RuleFileError(mistakes)
    if not starts:
        own_files = f", or into {', '.join(own.values())}" if own else ""
        raise ConfigError(f"collection {quoted(folder.name)} has no start URL: write one a line into {usual}{own_files}")
    return starts


def _start_url_files(folder: Path, settings: Mapping[str, object]) -> dict[Path, str]:
    """Return the files of CRAWLSPACE_START_URL_FILES, each once, with their names as shown: in order, those of one pattern by name.

    Raises SettingError for a name or pattern without a file.
    """
    found: dict[Path, str] = {}
    seen = {real_path(folder / "start_urls.txt")}
    for name in words(_FILES, settings.get(_FILES) or []):
        for file in _named_files(folder, name):
            path = folder / file  # `file` itself where that is absolute
            if real_path(path) not in seen:
                seen.add(real_path(path))
                found[path] = printable(file)
    return found


def _named_files(folder: Path, name: str) -> list[str]:
    if "\0" not in name and is_there(folder / name):
        if (folder / name).is_dir():
            raise SettingError(f"{_FILES} has {quoted(name)}, which is a folder; write {quoted(f'{name}/*')} for the files in it")
        return [name]
    if set("*?[").isdisjoint(name):
        raise SettingError(f"{_FILES} has {quoted(name)}, and there is no such file in {folder}; write it, or correct the name")
    names = glob(name, root_dir=folder, recursive=True)  # noqa: PTH207 - which takes no absolute patterns
    matching = sorted(file for file in names if not (folder / file).is_dir())
    if not matching:
        raise SettingError(f"{_FILES} has {quoted(name)}, which matches no file in {folder}; write one, or correct the pattern")
    return matching


def _read_start_url(line: str, file: str, number: int, found: dict[tuple[str, str], StartUrl], mistakes: list[Mistake]) -> None:
    def mistake(column: int, message: str) -> None:
        mistakes.append(Mistake(file, number, column, message, line))

    parts = line.split()
    column = line.index(parts[0]) + 1
    if without_credentials(line) != line:
        return mistake(column, "a start URL must not carry a user name or password")
    if not parts[0].lower().startswith(tuple(f"{scheme}://" for scheme in DEFAULT_PORTS)):
        return mistake(
            column, f"a start URL begins with http:// or https://, as in http://{printable(parts[0].split('://')[-1])}"
        )
    try:
        url = parse(parts[0], routes=True)
    except MalformedUrl as error:
        return mistake(column, f"{error}; a start URL is like http://www.example.com/")
    shift = 0
    for word in parts[1:]:
        if word not in {f"shift={n}" for n in range(-2, 3)}:
            return mistake(
                line.rindex(word) + 1, f"unexpected {quoted(word)}; only shift=-2 (first) to shift=2 (last) may follow"
            )
        shift = int(word.removeprefix("shift="))
    found.setdefault(
        (url.text, url.host_as_written), StartUrl(url, shift, f"{file}:{number}")
    )  # rules may heed the case of a host


def is_there(path: Path) -> bool:
    """Return False only for a missing file. A broken link or an unreadable folder counts as present; reading it raises."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def read_bytes(path: Path, *, most: int = -1) -> bytes:
    """Return at most `most` bytes of a regular file. Raises ConfigError, also for a pipe, which would block."""
    _size(path)
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise _unreadable(path, error) from error


def _size(path: Path) -> int:
    """Return the size of a regular file in bytes. Raises ConfigError."""
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    if not (found := kind_of(status)):
        return status.st_size
    raise ConfigError(f"{path} is not a regular file but {found}; put a text file in its place, or remove it")


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{path} cannot be read: {error.strerror}")


def _parsed(path: Path, parse_text: Callable[[str], Rules]) -> Rules:
    """Return the rules of a file. Raises RuleFileError with every mistake, including a wrong encoding, and ConfigError."""
    mistakes: list[Mistake] = []
    text = read_text(path, mistakes)
    try:
        rules = parse_text(text)
    except RuleFileError as error:
        mistakes = sorted([*mistakes, *error.mistakes], key=lambda mistake: (mistake.line, mistake.column))
        raise RuleFileError(mistakes) from error
    if mistakes:
        raise RuleFileError(mistakes)
    return rules


def read_text(path: Path, mistakes: list[Mistake], *, file: str = "", most: int | None = None) -> str:
    """Return the text of a UTF-8 file of at most `most` bytes (MAX_FILE), with line ends as `\\n`; `file` is its name in messages. Raises ConfigError.

    The first place with another encoding is added to the mistakes. Lines with such places are returned empty, so that the
    mistakes of the other lines are found, too.
    """
    most = MAX_FILE if most is None else most
    size = _size(path)
    if size > most:
        raise ConfigError(
            f"{path} has {size / 2**20:,.1f} MiB, and {most // 2**20} MiB is the most that is read; divide it, or shorten it"
        )
    data = read_bytes(path)
    unmarked = "UTF-16" if b"\0" in data[:2] else ""
    other = next((encoding for mark, encoding in _OTHER_MARKS if data.startswith(mark)), unmarked)
    if other:
        mistakes.append(Mistake(file or path.name, 1, 1, f"the file is in {other}; save it as UTF-8", ""))
        return ""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    del data
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n") if _NO_UTF_8.search(text) else []
    wrong = [(number, found.start()) for number, line in enumerate(lines) if (found := _NO_UTF_8.search(line))]
    if not wrong:
        return text
    number, start = wrong[0]
    shown = _NO_UTF_8.sub("\ufffd", lines[number])
    message = "this is not UTF-8; save the file as UTF-8"
    mistakes.append(Mistake(file or path.name, number + 1, start + 1, message, shown))
    for number, _ in wrong:
        lines[number] = ""
    return "\n".join(lines)
