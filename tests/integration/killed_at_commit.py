"""Scrapy's command line that kills itself: `python -m tests.integration.killed_at_commit 3 crawl demo`, within its third transaction."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

import apsw
from scrapy.cmdline import execute

from crawlspace.state.sqlite.store import SqliteStore


def kill_at(number: int) -> None:
    """Have this process killed when it is about to commit its transaction of that number, of whatever database file."""
    commits = count(1)

    def commit() -> bool:
        if next(commits) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return False  # True would roll back

    apsw.connection_hooks.append(lambda database: database.set_commit_hook(commit))


if __name__ == "__main__":
    SqliteStore.changed_at_once = int(os.environ.get("FOLDED_AT_ONCE", SqliteStore.changed_at_once))
    kill_at(int(sys.argv[1]))
    execute(["scrapy", *sys.argv[2:]])
