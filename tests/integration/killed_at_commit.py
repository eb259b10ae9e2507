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
from crawlspace.crawl.rule_changes import archived
from crawlspace.state.sqlite.store import SqliteStore
from tests.command_line import start_scrapy
from tests.http import Reply, Request
from tests.notifications import Running
from tests.sites import Route, Site


class MarkingSite(Site):
    """Writes a file when a page is asked for: what a crawl does before is over then, however many transactions it took."""

    def __init__(self, routes: Mapping[str, Route], mark: Path) -> None:
        super().__init__(routes)
        self._mark = mark

    def reply_to(self, request: Request) -> Reply:
        if request.path != "/robots.txt":
            self._mark.touch()
        return super().reply_to(request)


def crawl_killed(
    number: int,
    *,
    output: Path,
    env: Mapping[str, str],
    changed_at_once: int = SqliteStore.changed_at_once,
    judged_at_once: int = archived.PAGES_AT_ONCE,
    after: Path | None = None,
) -> Running:
    """Crawl `demo`, and have it killed when it is about to commit its transaction of that number, of whatever database file.

    `after`: transactions count from a request to a `MarkingSite` with that file.
    """
    if after is not None:
        after.unlink(missing_ok=True)
    kill = partial(_kill_crawl_at, number, changed_at_once, judged_at_once, after)
    return start_scrapy(["crawl", "demo"], output=output, env=env, first=kill)


def extraction_killed(number: int, args: Sequence[str], *, output: Path, env: Mapping[str, str], pages_at_once: int) -> Running:
    """Do the same with a command that rebuilds documents, so many pages at a time."""
    return start_scrapy(args, output=output, env=env, first=partial(_kill_extraction_at, number, pages_at_once))


def _kill_extraction_at(number: int, pages_at_once: int) -> None:
    extraction.URLS_AT_ONCE = pages_at_once
    _kill_at(number, None)


def _kill_crawl_at(number: int, changed_at_once: int, judged_at_once: int, after: Path | None) -> None:
    SqliteStore.changed_at_once = changed_at_once
    archived.PAGES_AT_ONCE = judged_at_once
    _kill_at(number, after)


def _kill_at(number: int, after: Path | None) -> None:
    commits = count(1)

    def commit() -> bool:
        if (after is None or after.exists()) and next(commits) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return False  # True would roll back

    apsw.connection_hooks.append(lambda database: database.set_commit_hook(commit))
