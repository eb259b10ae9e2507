"""The browser: Chromium and the driver of Playwright, as separate processes that are measured, and ended together."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from time import monotonic
from typing import Any, Self, TypeVar

import psutil
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import async_playwright

from crawlspace.settings import BrowserSettings
from crawlspace.text import printable, quoted

T = TypeVar("T")
logger = logging.getLogger(__name__)

DRIVER_ERRORS = (PlaywrightError, RuntimeError)
"""Of a call of the driver; RuntimeError is of the event loop, where the driver has ended."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names under which Chromium is installed."""
START_S = 60.0
CLOSE_S = 10.0
_MIB = 1024 * 1024
_MOST_HEAP_MB = 1024
"""Of the scripts of one site."""
_RESERVED_BYTES = 640 * _MIB
"""Address space that counts as data of a process of Chromium (VmData) and is not used."""
_TREE_LASTS_S = 1.0
_NOTHING_BY_ITSELF = (
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--dns-over-https-mode=off",
    "--no-pings",
    "--disable-domain-reliability",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-speech-api",
    "--disable-remote-fonts",
    "--blink-settings=imagesEnabled=false",
    "--mute-audio",
    "--disable-gpu",
)
"""The browser's only connection is its proxy; it makes no requests of its own, and loads no picture, font or sound."""
_NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
"""Names are looked up by the proxy only."""
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
"""Not what may hold secrets."""


class BrowserError(Exception):
    """The browser cannot be started, or has ended."""


def find_program(written: str) -> str:
    """Return the path of the browser; `written` is that, or a name, or empty for any. Raises BrowserError."""
    if written:
        found = shutil.which(written)
        if found is None:
            raise BrowserError(
                f"CRAWLSPACE_BROWSER is {quoted(written)}, which is no program that can be run: name that of Chromium"
            )
        return found
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise BrowserError(
            f"no browser was found ({', '.join(PROGRAMS)}): install Chromium (Debian: apt install chromium), or name it in CRAWLSPACE_BROWSER"
        )
    return found


class BrowserProcess:
    """One running browser."""

    def __init__(self, playwright: Any, browser: Any, tree: ProcessTree) -> None:
        self._playwright = playwright
        self._tree = tree
        self._is_killed = False
        self.browser = browser
        self.pages = 0
        """Rendered so far."""

    @classmethod
    async def start(cls, settings: BrowserSettings, *, proxy: str, options: Sequence[str] = ()) -> Self:
        """Start a browser whose only way out is `proxy`, a URL, but for tabs with one of their own. Raises BrowserError."""
        program = find_program(settings.executable)
        tree = ProcessTree(token_hex(8))
        with _no_errors_of_callbacks():
            return await cls._started(program, tree, settings, proxy=proxy, options=options)

    @classmethod
    async def _started(
        cls, program: str, tree: ProcessTree, settings: BrowserSettings, *, proxy: str, options: Sequence[str]
    ) -> Self:
        driver = asyncio.ensure_future(async_playwright().start())
        try:
            async with asyncio.timeout(START_S):
                playwright = await asyncio.shield(driver)
                browser = await playwright.chromium.launch(
                    executable_path=program,
                    headless=True,
                    chromium_sandbox=not _is_root(),
                    proxy={"server": proxy, "bypass": "<-loopback>"},
                    args=[*_NOTHING_BY_ITSELF, _NO_NAMES, _heap(settings.memory_bytes), *options, tree.option],
                    env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=START_S * 1000,
                )
        except Exception as error:  # a plain one where the driver ends while it starts
            await cls._undo(driver, tree)
            raise BrowserError(f"{program} cannot be started: {_why(error)}") from error
        except asyncio.CancelledError:
            await cls._undo(driver, tree)
            raise
        await asyncio.to_thread(tree.limit, settings.memory_bytes + _RESERVED_BYTES)
        return cls(playwright, browser, tree)

    @staticmethod
    async def _undo(driver: asyncio.Future[Any], tree: ProcessTree) -> None:
        """End the started processes of a browser."""
        tree.kill()
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                await (await driver).stop()

    @property
    def is_running(self) -> bool:
        return not self._is_killed and bool(self.browser.is_connected())  # which is not told where the driver has ended

    def memory(self) -> int:
        """Return the bytes of memory of all its processes."""
        return self._tree.memory()

    def kill(self) -> None:
        """End all its processes at once."""
        self._is_killed = True
        self._tree.kill()

    async def close(self) -> None:
        """End it; by force where it does not end by itself."""
        await _quietly(self.browser.close())
        self._tree.kill()
        await _quietly(self._playwright.stop())


class ProcessTree:
    """The driver of one browser, and all processes below it; this process may have several such."""

    def __init__(self, mark: str) -> None:
        """`mark` is unique to the browser."""
        self.option = f"--crawlspace={mark}"
        """Of the command line of the browser; it means nothing to that."""
        self._root: psutil.Process | None = None
        self._known: dict[int, psutil.Process] = {}
        self._read_at = float("-inf")

    def memory(self) -> int:
        """Return the bytes of memory of all, what they share counted once where the system tells."""
        if monotonic() - self._read_at > _TREE_LASTS_S:
            self._read_at = monotonic()
            self.processes()
        used = [_memory(one) for one in list(self._known.values())]
        return sum(own for own, _ in used) + max((shared for _, shared in used), default=0)

    def limit(self, most_bytes: int) -> None:
        """Let no process below the driver have more data than that, nor those that it starts, where the system can.

        A page takes gigabytes in less time than is between two looks at the memory of all.
        """
        for one in self.processes():
            if one != self._root and hasattr(one, "rlimit"):
                with suppress(psutil.Error, OSError, ValueError):
                    one.rlimit(psutil.RLIMIT_DATA, (most_bytes, most_bytes))

    def kill(self) -> None:
        """End all, from the first one down, and those that were orphaned meanwhile."""
        for one in self.processes():
            with suppress(psutil.Error):
                one.kill()

    def processes(self) -> list[psutil.Process]:
        """Return those that run, also those whose parent has ended since the last call."""
        self._root = self._root or next(filter(self._is_root, psutil.Process().children()), None)
        if self._root is not None:
            with suppress(psutil.Error):
                self._known.update((one.pid, one) for one in (self._root, *self._root.children(recursive=True)))
        self._known = {pid: one for pid, one in self._known.items() if one.is_running()}
        return list(self._known.values())

    def _is_root(self, process: psutil.Process) -> bool:
        return _is_driver(process) and any(self.option in _command(one) for one in _below(process))


def _is_driver(process: psutil.Process) -> bool:
    return "run-driver" in _command(process)


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def _memory(process: psutil.Process) -> tuple[int, int]:
    """Return the bytes of memory that a process has alone, and those that it may share."""
    try:
        found = process.memory_info()
    except psutil.Error:
        return 0, 0
    shared = int(getattr(found, "shared", 0))
    return int(found.rss) - shared, shared


def _heap(memory_bytes: int) -> str:
    """Return the option for the memory of a site's scripts: they fail before the whole browser is over its limit."""
    return f"--js-flags=--max-old-space-size={min(_MOST_HEAP_MB, memory_bytes // 2 // _MIB)}"


@contextmanager
def _no_errors_of_callbacks() -> Iterator[None]:
    """Have the event loop not log that Playwright's own callbacks have written to a driver that has ended: who awaits it gets an error."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), RuntimeError):
            return
        if before is None:
            loop.default_exception_handler(context)
        else:
            before(loop, context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


def _is_root() -> bool:
    """Whether Chromium's sandbox cannot be used: it refuses to run as root with it."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _why(error: Exception) -> str:
    """Return the lines of an error that say what happened, in one."""
    if isinstance(error, TimeoutError):
        return f"it was not ready within {START_S:g} s"
    if type(error) in (Exception, RuntimeError):
        return "its driver, Node.js, has ended"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "ERROR" in line or "FATAL" in line or "sandbox" in line.lower()]
    return printable(" ".join([lines[0], *telling[:2]] if lines else [type(error).__name__]))[:500]


def without_complaint(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    """Start a task that may not be awaited: its errors are not logged.

    It must not be cancelled: when the browser ends, the driver's answers come as exceptions, and asyncio logs each that nobody has taken.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def _quietly(work: Any) -> None:
    """Wait for the end of a process, and ignore errors."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await asyncio.shield(without_complaint(work))
