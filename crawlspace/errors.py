"""Every error that reaches a user, drawn as a tree:

    CrawlspaceError                 one sentence: the thing, the value, the rule, the way out
      UsageError                    the command was called wrongly (exit status 2)
        UnknownCollection           no such folder in CRAWLSPACE_COLLECTIONS_DIR
      ConfigError                   settings, start URLs or rules of a collection are wrong
        SettingError                one setting: unknown name, wrong type, out of range
        RuleFileError               all mistakes of a rule file, each with file, line, column, caret
      StoreError                    the state store cannot be used; it was left as it was
        StoreLocked                 another process crawls this collection
        StoreFull                   the disk is full (transient: the same call can succeed later)
        StoreDamaged                the file is not a database or fails its check
        StoreVersionError           written by a newer version of crawlspace, or by an older one and to be brought up to date
          OwnersUnknown             an index that several collections share is to be settled first (index.owners)
      ExportError                   an export of the crawl cannot be written
      IndexUnavailable              a sink does not answer (transient)
      Stopped                       Ctrl-C, before it was done (exit status 130; upkeep)

`transient` says whether trying the same thing again can help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class CrawlspaceError(Exception):
    """Base of all errors shown to users as a sentence, never as a traceback."""

    transient = False
    exit_status = 1


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
        if not self.text:
            return f"{self.file}:{self.line}:{self.column}: {self.message}"
        shown, caret = _around(self.text.replace("\t", " "), self.column - 1)
        return f"{self.file}:{self.line}:{self.column}: {self.message}\n    {shown}\n    {' ' * caret}^"


def _around(text: str, place: int) -> tuple[str, int]:
    """Return what a person need see of a long line, and where the place is in it."""
    if len(text) <= _SHOWN:
        return text, place
    start = max(0, min(place - _SHOWN // 2, len(text) - _SHOWN))
    head, tail = "…" if start else "", "…" if start + _SHOWN < len(text) else ""
    return f"{head}{text[start : start + _SHOWN]}{tail}", place - start + len(head)


_SHOWN = 120
"""Characters of a line."""


class RuleFileError(ConfigError):
    """A rule file that does not parse; `mistakes` holds all of them."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class StoreError(CrawlspaceError):
    pass


class StoreLocked(StoreError):
    transient = True


class StoreFull(StoreError):
    transient = True


class StoreAway(StoreError):
    """The server cannot be reached at present."""

    transient = True


class StoreDamaged(StoreError):
    pass


class StoreVersionError(StoreError):
    pass


class ExportError(CrawlspaceError):
    pass


class IndexUnavailable(CrawlspaceError):
    transient = True
