"""Runs the tests of rendering in a real browser: `python -m tests.browser.run [pytest arguments]`.

The browser is that of CRAWLSPACE_BROWSER, else one on the path. Nothing is skipped: without one the exit status is 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from crawlspace.errors import ConfigError
from crawlspace.runtime.browser.extra import check_extra

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    try:
        check_extra()
    except ConfigError as error:
        return _failed(error)
    from crawlspace.runtime.browser.process import BrowserError, find_program

    try:
        program = find_program(os.environ.get("CRAWLSPACE_BROWSER", ""))
    except BrowserError as error:
        return _failed(error)
    print(f"rendering in {program}", flush=True)
    tests = arguments or ["tests/browser"]
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *tests]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "CRAWLSPACE_TEST_BROWSER": program}, check=False).returncode


def _failed(error: Exception) -> int:
    print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
