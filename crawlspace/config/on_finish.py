"""The setting CRAWLSPACE_ON_FINISH: a command of the user's that gets the summary of each crawl."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace.config.sentences import read
from crawlspace.errors import SettingError
from crawlspace.settings import FinishSection
from crawlspace.text import quoted

ON_FINISH = "CRAWLSPACE_ON_FINISH"
TIMEOUT = "CRAWLSPACE_ON_FINISH_TIMEOUT"


@dataclass(frozen=True, slots=True)
class FinishCommand:
    """The program with its arguments, of which messages name the program only: the others may hold a password."""

    words: tuple[str, ...]
    timeout_s: float

    @property
    def program(self) -> str:
        return self.words[0]

    def check(self) -> None:
        """Raise SettingError if the program cannot be run."""
        if shutil.which(self.program) is None:
            why = "which is no program that can be run" if os.sep in self.program else "which is not found in PATH"
            raise SettingError(f"{ON_FINISH} begins with {quoted(self.program)}, {why}; correct the path of the program")


def read_on_finish(settings: Mapping[str, object]) -> FinishCommand | None:
    """Return the command; None where none is set. Raises SettingError."""
    given = read(FinishSection, settings)
    value = given.CRAWLSPACE_ON_FINISH
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise SettingError(f"{ON_FINISH} cannot be split into words ({error}); quote it as for a shell, or give a list") from None
    if words is None or words == []:
        return None
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words) or not words[0]:
        raise SettingError(f'{ON_FINISH} must be a command, as in "bin/report --mail" or ["bin/report", "--mail"]')
    return FinishCommand(tuple(words), given.CRAWLSPACE_ON_FINISH_TIMEOUT)
