"""Every error that reaches a user, drawn as a tree:

    CrawlspaceError                 one sentence: the thing, the value, the rule, the way out
      UsageError                    the command was called wrongly (exit status 2)
        UnknownCollection           no such folder in CRAWLSPACE_COLLECTIONS_DIR
      ConfigError                   settings, start URLs or rules of a collection are wrong
        SettingError                one setting: unknown name, wrong type, out of range
        RuleFileError               all mistakes of a rule file, each with file, line, column, caret
        StoreError                    the state store cannot be used; it was not changed
          StoreLocked                 another process crawls this collection
          StoreFull                   the disk is full (transient: the same call can succeed later)
          StoreAway                   the server cannot be reached (transient)
          StoreDamaged                the file is not a database or fails its check
          StoreVersionError           written by another version of crawlspace
          ArchiveError                the archive of the pages cannot be written
          RunFileError                the events of the run cannot be written
        ExportError                   an export of the crawl cannot be written
        IndexUnavailable              a sink does not answer (transient)
        Stopped                       Ctrl-C before a command was done (exit status 130; admin.url_changes)

`transient`: the same call may succeed later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

from crawlspace.text import excerpt, printable, printable_message


class CrawlspaceError(Exception):
    """Base of all errors shown to users: one sentence, without traceback, credentials and control characters."""

    transient = False
    exit_status = 1

    def __str__(self) -> str:
        return printable_message(super().__str__())


class UsageError(CrawlspaceError):
    exit_status = 2


class UnknownCollection(UsageError):
    pass


class ConfigError(CrawlspaceError):
    pass


class SettingError(ConfigError):
    pass


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a text file; line and column count from 1."""

    file: str
    line: int
    column: int
    message: str
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: {printable_message(self.message)}"
        if not self.text:
            return place
        shown, caret = excerpt(self.text, self.column - 1)
        return f"{place}\n    {shown}\n    {' ' * caret}^"


class RuleFileError(ConfigError):
    """A rule file that cannot be parsed. `mistakes` holds all mistakes; the first MOST_SHOWN of each file are printed."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__()

    def __str__(self) -> str:
        return "\n".join(first_of_each_file(self.mistakes))


MOST_SHOWN = 100
"""Mistakes or findings printed for each file."""


class InFile(Protocol):
    """A mistake or finding in a file; printed with `str`."""

    @property
    def file(self) -> str: ...


def first_of_each_file(found: Iterable[InFile]) -> Iterator[str]:
    """Yield the text of the first MOST_SHOWN entries of each file, then how many more the file has."""
    numbers: Counter[str] = Counter()
    last = ""
    for one in found:
        if one.file != last and numbers[last] > MOST_SHOWN:
            yield _more(last, numbers[last])
        last = one.file
        numbers[last] += 1
        if numbers[last] <= MOST_SHOWN:
            yield str(one)
    if numbers[last] > MOST_SHOWN:
        yield _more(last, numbers[last])


def _more(file: str, number: int) -> str:
    return f"{printable(file)}: and {number - MOST_SHOWN:,} more"


def did_you_mean(
    word: str, known: Iterable[str], otherwise: str = "", *, cutoff: float = 0.6, is_quoted: bool = True, prefix: str = ""
) -> str:
    """Return a question with the known name most similar to a word, ignoring case; `otherwise` if none is similar.

    `cutoff` is the similarity required: from 0 (any name) to 1 (the word itself). All names begin with `prefix`, which is not compared.
    """
    name = nearest(word.removeprefix(prefix), (one.removeprefix(prefix) for one in known), cutoff=cutoff)
    if name is None:
        return otherwise
    return f"did you mean {prefix + name!r}?" if is_quoted else f"did you mean {prefix}{name}?"


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name most similar to a word, ignoring case; None if none is similar enough."""
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), by_lower, 1, cutoff)
    return by_lower[near[0]] if near else None


class StoreError(CrawlspaceError):
    pass


class StoreLocked(StoreError):
    transient = True


class StoreFull(StoreError):
    transient = True


class StoreAway(StoreError):
    """The server cannot be reached."""

    transient = True


class StoreDamaged(StoreError):
    pass


class StoreVersionError(StoreError):
    pass


class ArchiveError(StoreError):
    pass


class RunFileError(StoreError):
    pass


class ExportError(CrawlspaceError):
    pass


class IndexUnavailable(CrawlspaceError):
    """An index accepts nothing at present; the orders wait, and are sent again."""

    transient = True
