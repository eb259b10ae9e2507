"""Start and stop crawls, and start other commands that take long: each is a process of its own, such as `scrapy crawl NAME`, which ends
neither with the console nor with the browser."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from crawlspace.console.console import Console
from crawlspace.console.routes import NotNow
from crawlspace.errors import StoreError
from crawlspace.private_files import make_folder
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.state.views import Crawler

CRAWL = "crawl"
LOGS_KEPT = 20
"""Logs of crawls, and of each other command, that the console has started, for each collection."""


def crawlers(paths: CollectionPaths) -> list[Crawler]:
    """Return the processes that crawl a collection. Raises StoreError."""
    with paths.store.reading() as opened:
        return [] if opened is None else list(opened.crawlers())


def is_here(crawler: Crawler) -> bool:
    """Whether a process that crawls is on this machine."""
    return crawler.share is None or crawler.share.host == socket.gethostname()


def start(console: Console, paths: CollectionPaths) -> Path:
    """Start a crawl; return the file of its log. Raises NotNow if one runs here already, StoreError if it cannot be started."""
    with console.starting:  # a crawl that has just been started here is not in the store yet
        begun = _running(console, paths.name, CRAWL)
        running = [begun.pid] if begun is not None else [one.process for one in crawlers(paths) if is_here(one)]
        if running:
            raise NotNow(f"{paths.name} is being crawled already, by process {running[0]}")
        return _begin(console, paths, CRAWL)


def start_command(console: Console, paths: CollectionPaths, command: str, *options: str) -> Path:
    """Start another command on a collection, such as an audit; return the file of its log. Raises NotNow while one runs that was started
    here, and StoreError."""
    with console.starting:
        running = _running(console, paths.name, command)
        if running is not None:
            raise NotNow(f"scrapy {command} {paths.name} runs already, as process {running.pid}")
        return _begin(console, paths, command, *options)


def is_running(console: Console, name: str, command: str) -> bool:
    """Return whether a command runs that was started here."""
    return _running(console, name, command) is not None


def _running(console: Console, name: str, command: str) -> subprocess.Popen[bytes] | None:
    process = console.processes.get((name, command))
    return None if process is None or process.poll() is not None else process


def _begin(console: Console, paths: CollectionPaths, command: str, *options: str) -> Path:
    """Start a process; call it with `console.starting`."""
    folder = console.data_folder / paths.name / "logs"
    log = folder / f"{command}-{int(console.clock.now())}.log"
    try:
        make_folder(folder)
        _remove_old_logs(folder, command)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own command, without a shell; the name is that of a folder
                [sys.executable, "-m", "scrapy", command, *options, paths.name],
                cwd=console.project,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        finally:
            os.close(file)
    except OSError as error:
        raise StoreError(f"scrapy {command} cannot be started: {error.strerror}") from error
    threading.Thread(
        target=process.wait, name=f"{command} {process.pid}", daemon=True
    ).start()  # else it stays as a zombie when it has ended
    console.processes[paths.name, command] = process
    return log


def stop(paths: CollectionPaths) -> list[int]:
    """Ask the crawls of a collection on this machine to end, as Ctrl-C does; return their processes.

    Raises NotNow if there are none, StoreError for one that belongs to another user.
    """
    found = crawlers(paths)
    here = [one.process for one in found if is_here(one)]
    if not here:
        where = ", ".join(sorted({one.share.host for one in found if one.share is not None}))
        raise NotNow(f"{paths.name} is crawled on {where}: stop it there" if where else f"{paths.name} is not being crawled")
    for process in here:
        try:
            os.kill(process, signal.SIGINT)
        except ProcessLookupError:
            pass  # it has ended meanwhile
        except PermissionError as error:
            raise StoreError(
                f"process {process}, which crawls {paths.name}, belongs to another user of this machine: stop it as that user,"
                f" with `kill -INT {process}`"
            ) from error
    return here


def last_log(console: Console, name: str, command: str = CRAWL, *, most: int = 20_000) -> tuple[Path, str] | None:
    """Return the log of the last crawl, or other command, that the console has started, and its end."""
    logs = _logs(console.data_folder / name / "logs", command)
    if not logs:
        return None
    with logs[-1].open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        text = file.read(most).decode("utf-8", "replace")
    return logs[-1], text if size <= most else text.partition("\n")[2]


def _logs(folder: Path, command: str) -> list[Path]:
    return sorted(folder.glob(f"{command}-*.log"), key=lambda log: log.name)


def _remove_old_logs(folder: Path, command: str) -> None:
    for log in _logs(folder, command)[: -LOGS_KEPT + 1]:
        with suppress(OSError):
            log.unlink()
