"""The rule files of a collection as text to be edited, and the collection as it would be with an edited file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from difflib import unified_diff
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from crawlspace.config.collection import Collection, load_collection
from crawlspace.config.files import GLOBAL_RULES, RULES_XML, global_rules_file, is_there, read_bytes
from crawlspace.content.extraction_rules import EXTRACT_TOML
from crawlspace.errors import ConfigError, RuleFileError
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding, findings_of
from crawlspace.private_files import real_path
from crawlspace.rules.rule_tests import RULE_TESTS
from crawlspace.text import quoted

CRAWL_RULES, START_URLS = "crawl.rules", "start_urls.txt"
NAMES = (CRAWL_RULES, RULES_XML, START_URLS, EXTRACT_TOML, RULE_TESTS, GLOBAL_RULES)
LARGEST = 1_000_000
"""Bytes of a file that can be edited."""
_MOST_DIFFERENCES = 2_000
"""Lines of a difference that are shown."""
_HISTORY = "rule-history"
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)["']""")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A file of rules. `shown` is its name in findings."""

    name: str
    path: Path
    history: Path
    """The folder with its old versions."""
    is_shared: bool = False
    """Whether other collections may use the same file."""

    @property
    def shown(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True)
class RuleText:
    """The text of a file. `digest` is empty where there is no file; `fault` is a sentence where the text cannot be edited here."""

    text: str
    digest: str
    fault: str = ""
    line_end: str = "\n"
    has_mark: bool = False
    """Whether it begins with the byte order mark of UTF-8."""

    def encoded(self, text: str) -> bytes:
        """Return another text as bytes, with the line ends of this one."""
        data = text.replace("\n", self.line_end).encode("utf-8", "surrogateescape")
        return _MARK + data if self.has_mark else data


def rule_files(folder: Path, settings: Mapping[str, object]) -> dict[str, RuleFile]:
    """Return the files of a collection by name, missing ones too, and its global rules if it has any. Raises ConfigError."""
    data = Path(str(settings["CRAWLSPACE_DATA_DIR"]))
    found = {name: RuleFile(name, folder / name, _history(folder / name, folder, data)) for name in NAMES if name != GLOBAL_RULES}
    path = global_rules_file(folder, settings)
    if path is not None:
        is_shared = path != folder / GLOBAL_RULES
        found[GLOBAL_RULES] = RuleFile(GLOBAL_RULES, path, _history(path, folder, data), is_shared=is_shared)
    return found


def _history(path: Path, folder: Path, data: Path) -> Path:
    """Return the folder with the old versions of a file: one for each file, by whatever path and from whatever collection it is edited."""
    real = real_path(path)
    if real.parent == real_path(folder):
        return data / folder.name / _HISTORY
    if real.parent.parent == real_path(folder.parent):  # of another collection
        return data / real.parent.name / _HISTORY
    return data / f".{_HISTORY}" / digest_of(str(real).encode("utf-8", "surrogateescape"))


def read_rule_file(file: RuleFile) -> RuleText:
    """Return the text of a file; empty for a missing one. Raises ConfigError."""
    if not is_there(file.path):
        return RuleText("", "")
    data = read_bytes(file.path, most=LARGEST + 1)
    if len(data) > LARGEST:
        fault = f"{file.shown} has more than {LARGEST:,} bytes: edit it with an editor on the machine of the console"
        return RuleText("", "large", fault)
    return text_of(data, file=file.shown)


def text_of(data: bytes, *, file: str) -> RuleText:
    """Return the text that a file has."""
    digest = digest_of(data)
    has_mark = data.startswith(_MARK)
    try:
        text = data.removeprefix(_MARK).decode()
    except UnicodeDecodeError:
        return RuleText(
            data.decode("utf-8", "replace"), digest, f"{file} is not UTF-8: save it as UTF-8, then it can be edited here"
        )
    declared = _ENCODING.match(data.removeprefix(_MARK))
    if declared is not None and declared[1].lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        fault = f"{file} is declared as {quoted(declared[1].decode('ascii', 'replace'))}: save it as UTF-8, then it can be edited here"
        return RuleText(text, digest, fault)
    is_windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    return RuleText(unified(text), digest, "", "\r\n" if is_windows else "\n", has_mark)


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def unified(text: str) -> str:
    """Return a text with `\\n` at the end of each line: browsers send `\\r\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def difference(old: str, new: str, *, old_name: str, new_name: str) -> list[str]:
    """Return what differs, as the lines of a unified diff; the first of them if there are many."""
    lines = [line.rstrip("\n") for line in unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm="")]
    if len(lines) > _MOST_DIFFERENCES:
        return [*lines[:_MOST_DIFFERENCES], f"… and {len(lines) - _MOST_DIFFERENCES:,} lines more"]
    if not lines and old != new:
        return ["the end of the last line differs"]
    return lines


# --- edited rules --------------------------------------------------------------------------------------------------


class EditedRules(NamedTuple):
    """A collection whose rules are those on disk but for one edited file: a folder, and the settings with which it is loaded."""

    folder: Path
    settings: Mapping[str, object]
    original: Path
    """The folder of the collection itself."""

    def named(self, message: str) -> str:
        """Return a message with the names of the files themselves."""
        return message.replace(str(self.folder), str(self.original)).replace(str(self.folder.parent), str(self.original.parent))


def edited_rules(
    folder: Path, settings: Mapping[str, object], file: RuleFile | None = None, data: bytes | None = None
) -> AbstractContextManager[EditedRules]:
    """As `with_files`, where one file of a collection has other content, or is missing (None)."""
    return with_files(folder, settings, {} if file is None else {file.name: data})


@contextmanager
def with_files(folder: Path, settings: Mapping[str, object], files: Mapping[str, bytes | None]) -> Iterator[EditedRules]:
    """Make a temporary folder in which some files of a collection have other content, or are missing (None); the others are links.

    `global.rules` stands for the file of the global rules, wherever it is. Raises ConfigError.
    """
    own = dict(settings)
    path = global_rules_file(folder, settings)
    try:
        with TemporaryDirectory(prefix="crawlspace-rules-") as base:
            copy = Path(base) / folder.name
            copy.mkdir()
            for entry in folder.iterdir():
                if entry.name not in files:
                    (copy / entry.name).symlink_to(real_path(entry))
            for name, data in files.items():
                if data is not None and name != GLOBAL_RULES:
                    (copy / name).write_bytes(data)
            own["CRAWLSPACE_COLLECTIONS_DIR"] = base
            own["CRAWLSPACE_GLOBAL_RULES"] = None if path is None else str(path.absolute())
            if GLOBAL_RULES in files:
                data, there = files[GLOBAL_RULES], Path(base, f"{folder.name}.global")
                edited = there / (GLOBAL_RULES if path is None else path.name)
                own["CRAWLSPACE_GLOBAL_RULES"] = None if data is None else str(edited)
                if data is not None:
                    there.mkdir()
                    edited.write_bytes(data)
            yield EditedRules(copy, own, folder)
    except OSError as error:
        raise ConfigError(f"a temporary folder for the edited rules cannot be made: {error.strerror or error}") from error


def lint_edited(edited: EditedRules, defaults: Mapping[str, object]) -> list[Finding]:
    """Return the findings of a collection with edited rules. `defaults` are the values of unset settings."""
    try:
        found = lint_collection(edited.folder, edited.settings, defaults, store=None)[0]
    except ConfigError as error:
        found = list(findings_of(error, edited.folder))
    return [replace(one, message=edited.named(one.message)) for one in found]


def load_edited(edited: EditedRules) -> Collection:
    """Return the configuration of a collection with edited rules. Raises ConfigError."""
    try:
        return load_collection(edited.folder.name, edited.settings)
    except RuleFileError:
        raise
    except ConfigError as error:
        raise ConfigError(edited.named(str(error))) from error


def errors_of(edited: Sequence[Finding], before: Sequence[Finding], file: RuleFile) -> list[Finding]:
    """Return the errors for which a file is not saved: those in it, and those that the collection has only with it."""
    old = {(one.file, one.code, one.message) for one in before}
    return [
        one for one in edited if one.level == "error" and (one.file == file.shown or (one.file, one.code, one.message) not in old)
    ]
