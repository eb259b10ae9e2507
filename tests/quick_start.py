"""Scrapy's command line without the second that it takes to start: each process is forked off one that has imported all there is.

What differs from `python -m scrapy`: modules are there already, and what Python reads from its environment as it starts was read before.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from scrapy.cmdline import execute

IS_POSSIBLE = "forkserver" in multiprocessing.get_all_start_methods()
_READS_THE_ENVIRONMENT = "crawlspace.settings"


def quick_scrapy(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path, timeout: float
) -> int | None:
    """Run `scrapy args…` to its end and return its exit status, negative for a signal; None where it took too long and was killed."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.preloaded"])
    process = server.Process(target=_be_scrapy, args=(list(args), cwd, dict(env), stdout, stderr))
    process.start()
    process.join(timeout)
    status = process.exitcode
    if status is None:
        process.kill()
        process.join()
    process.close()
    return status


def _be_scrapy(args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path) -> None:
    for path, stream in ((stdout, sys.stdout), (stderr, sys.stderr)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    importlib.reload(importlib.import_module(_READS_THE_ENVIRONMENT))
    execute(["scrapy", *args])
