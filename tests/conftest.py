"""What all tests share: how hypothesis draws, a project folder of a test's own, and a comparison that says what differs."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from tests.command_line import CompletedRun, run_scrapy, start_scrapy
from tests.memory import folder_in_memory
from tests.notifications import LONGEST_WAIT_S, Running, wait_until
from tests.quick import IS_QUICK, examples, left_to_full

DRAWN = settings(deadline=None, database=None, max_examples=examples(100))
settings.register_profile("local", DRAWN)
settings.register_profile("ci", DRAWN, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

gc.disable()
"""While tests are collected: there is no garbage, and looking for it took an eighth of the time (`pytest_collection_finish`)."""

if (_folder := folder_in_memory()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _folder)  # pytest's own way to say where `tmp_path` is


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: tests of whole crawls wait as much as they compute."""
    return (os.cpu_count() or 1) + 2


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: takes long, and runs in `make test-full` (tests/quick.py)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IS_QUICK:
        left_out = left_to_full(items)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=sorted(left_out, key=lambda item: item.nodeid))


def pytest_collection_finish() -> None:
    """Spare the collector of garbage what was loaded for the tests: it stays, and looking through it takes half a second each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}))
    return True


class Project:
    """Collections and data of one test, in a temporary folder; commands run in the repository and are pointed there."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.collections = folder / "collections"
        self.data = folder / "data"
        self.env = {"CRAWLSPACE_COLLECTIONS_DIR": str(self.collections), "CRAWLSPACE_DATA_DIR": str(self.data)}
        self.folder = folder
        self.store_url = ""
        """Where the states are, if not in files of the project."""
        self.started: list[Running] = []
        self.collections.mkdir(parents=True)
        self.data.mkdir()
        self.write(files)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files by their path below the collections folder, as in {"demo/start_urls.txt": "http://…"}."""
        for name, content in files.items():
            path = self.collections / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    def scrapy(self, *args: str, timeout: float = LONGEST_WAIT_S) -> CompletedRun:
        return run_scrapy([*args, *self._options()], env=self.env, timeout=timeout)

    def crawl(self, name: str, *args: str, timeout: float = LONGEST_WAIT_S) -> CompletedRun:
        return self.scrapy("crawl", name, *args, timeout=timeout)

    def start(self, *args: str) -> Running:
        """Start a command without waiting for it, its output in `output.txt`; what still runs when the test ends is killed."""
        process = start_scrapy([*args, *self._options()], output=self.folder / "output.txt", env=self.env)
        self.started.append(process)
        return process

    def output(self) -> str:
        """What the command that was started last has printed so far."""
        return self.started[-1].output()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition that a request, an output or an end may change; fail where a command ends first, but for those killed."""

        def holds_yet() -> bool:
            ended = [process for process in self.started if process.poll() not in (None, -signal.SIGKILL)]
            if holds():
                return True
            assert not ended, f"exit status {ended[0].poll()}\n{ended[0].output()}"
            return False

        wait_until(holds_yet)

    def _options(self) -> list[str]:
        return ["-s", f"CRAWLSPACE_STORE_URL={self.store_url}"] if self.store_url else []

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


MakeProject = Callable[[Mapping[str, str]], Project]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MakeProject]:
    """A function that makes a `Project` of the given files."""
    made: list[Project] = []

    def make(files: Mapping[str, str]) -> Project:
        made.append(Project(tmp_path / f"project{len(made)}", files))
        return made[-1]

    yield make
    for each in made:
        each.close()


def assert_same(found: Iterable[object], expected: Iterable[object]) -> None:
    """Compare without regard to order, but for how often each comes; a failure lists what is MISSING and what is EXTRA."""
    has, wants = Counter(found), Counter(expected)
    if has == wants:
        return
    lines = [f"MISSING {item!r}{_times(count)}" for item, count in (wants - has).items()]
    lines += [f"EXTRA   {item!r}{_times(count)}" for item, count in (has - wants).items()]
    pytest.fail("\n".join(lines), pytrace=False)


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
