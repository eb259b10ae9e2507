"""A crawl that kills itself within one of its transactions."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import apsw

from crawlspace.admin import extraction
from crawlspace.state.sqlite.store import SqliteStore
from tests.command_line import start_scrapy
from tests.notifications import Running


def crawl_killed(
    number: int, *, output: Path, env: Mapping[str, str], changed_at_once: int = SqliteStore.changed_at_once
) -> Running:
    """Crawl `demo`, and have it killed when it is about to commit its transaction of that number, of whatever database file."""
    return start_scrapy(["crawl", "demo"], output=output, env=env, first=partial(_kill_at, number, changed_at_once))


def extraction_killed(number: int, args: Sequence[str], *, output: Path, env: Mapping[str, str], pages_at_once: int) -> Running:
    """Do the same with a command that makes documents anew, so many pages at a time."""
    return start_scrapy(args, output=output, env=env, first=partial(_kill_extraction_at, number, pages_at_once))


def _kill_extraction_at(number: int, pages_at_once: int) -> None:
    extraction.URLS_AT_ONCE = pages_at_once
    _kill_at(number, SqliteStore.changed_at_once)


def _kill_at(number: int, changed_at_once: int) -> None:
    SqliteStore.changed_at_once = changed_at_once
    commits = count(1)

    def commit() -> bool:
        if next(commits) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return False  # True would roll back

    apsw.connection_hooks.append(lambda database: database.set_commit_hook(commit))
