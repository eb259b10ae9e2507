"""Run the long tests, or those named, each in a size that takes minutes: `python -m tests.long.run [NAME …]`, or `make test-long`.

Each can be run alone in any size: `python -m tests.long.crash --help`. The exit status is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks.measure import PROJECT, say

BOUNDED: Mapping[str, str] = {
    "crash": "--kills 10 --pages 1000",
    "shared_crash": "--kills 9 --pages 4000 --sites 20",
    "histories": "--first 5000 --count 30",
    "sessions": "--runs 4 --pages 400",
    "sink_faults": "--count 60",
    "sink_down": "--backlog 2000 --pages 17000 --first 3000",
    "outage": "--pages 1000 --real 300 --dead 100000",
    "memory": "--many 200000 --few 10000 --fetches 1000",
    "parts": "--pages 1000",
    "pending": "--lines 100000 --shared-lines 20000",
    "proportions": "",
    "secrets": "",
    "soak": "--pages 20000 --sites 100",
}
"""Name of each test to its options here."""
NAMED_ONLY: Mapping[str, str] = {
    "audit": "--documents 100000",
    "rebuild": "",
    "real_site": "",
}
"""Tests that are run only where they are named: the first two start an OpenSearch (a JDK and Maven), the last one fetches a package."""


def main(arguments: Sequence[str] | None = None) -> int:
    known = {**BOUNDED, **NAMED_ONLY}
    parser = argparse.ArgumentParser(prog="python -m tests.long.run", description="Run the long tests in a bounded size.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(known)}; without: {', '.join(BOUNDED)}")
    names = parser.parse_args(arguments).names or list(BOUNDED)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no long test is called {', '.join(unknown)}; there are {', '.join(known)}")
    failed = [name for name in names if not _has_passed(name, known[name])]
    say(f"failed: {', '.join(failed)}" if failed else f"{len(names)} long tests passed")
    return int(bool(failed))


def _has_passed(name: str, options: str) -> bool:
    """Run a test in a process of its own, because the peak memory of its children begins with that of its process."""
    say(f"── {name} {options}".rstrip())
    began = time.monotonic()
    status = subprocess.run([sys.executable, "-m", f"tests.long.{name}", *options.split()], cwd=PROJECT, check=False).returncode
    say(f"── {name}: {f'failed with exit status {status}' if status else 'passed'} after {time.monotonic() - began:.0f} s")
    return not status


if __name__ == "__main__":
    sys.exit(main())
