"""Fuzzing, which `make fuzz` starts.

python -m tests.fuzz run [--seconds 300] [target …]     # each target for so long, one after the other
python -m tests.fuzz repeat target file                 # one input again, without the fuzzer

What is found goes to build/fuzz/<target>/found-…, and so do the inputs that lead to new places in the code: the next run begins with them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import traceback
from hashlib import blake2b
from pathlib import Path

from tests.fuzz.checks import Finding, in_memory, in_time

CORPUS = Path(__file__).parent / "corpus"
WORK = Path("build") / "fuzz"
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="fuzz targets, one after the other")
    run.add_argument("--seconds", type=_seconds, default=300, help="for each target (default: 300)")
    run.add_argument("targets", nargs="*", metavar="target", help=f"{', '.join(_names())} (default: all)")
    repeat = commands.add_parser("repeat", help="run a target once with the input of a file")
    one = commands.add_parser("one", help="fuzz one target in this process; `run` calls it")
    for command in (repeat, one):
        command.add_argument("target", choices=_names())
    repeat.add_argument("file", type=Path)
    one.add_argument("--seconds", type=_seconds, required=True)
    given = parser.parse_args()
    if given.command == "repeat":
        return _repeat(given.target, given.file)
    if given.command == "one":
        from tests.fuzz import fuzzer  # the fuzzer itself, which is not needed for repeating

        return fuzzer.fuzz(given.target, seconds=given.seconds, work=WORK / given.target, corpus=CORPUS / given.target)
    if unknown := [name for name in given.targets if name not in _names()]:
        parser.error(f"there is no target {', '.join(unknown)}; known are {', '.join(_names())}")
    try:
        return max([_run(name, given.seconds) for name in given.targets or _names()])
    except KeyboardInterrupt:
        return 130


def _names() -> list[str]:
    return sorted(path.name for path in CORPUS.iterdir())


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**7:
        raise argparse.ArgumentTypeError(f"expected a whole number of seconds above 0, not {text!r}")
    return int(text)


def _run(target: str, seconds: int) -> int:
    """Fuzz a target in a process of its own, and say what came out."""
    work = WORK / target
    work.mkdir(parents=True, exist_ok=True)
    (work / "current").unlink(missing_ok=True)
    before = set(work.glob("*-*"))
    with (work / "log").open("wb") as log:
        command = [sys.executable, "-m", "tests.fuzz", "one", target, "--seconds", str(seconds)]
        status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    reported = (work / "log").read_text(encoding="utf-8", errors="replace")
    executed = _EXECUTED.findall(reported)
    if status == 0 and executed:
        print(f"{target}: {int(executed[-1]):,} inputs in {seconds} s, nothing found", flush=True)
        return 0
    found = sorted(set(work.glob("*-*")) - before)
    if not found and (work / "current").exists():  # the process was ended while it ran this one
        found = [(work / "current").rename(work / f"found-{_digest((work / 'current').read_bytes())}")]
    print(f"{target}: FOUND something; {work / 'log'} ends with", flush=True)
    print("\n".join(f"    {line}" for line in reported.splitlines()[-12:]))
    for path in found:
        print(f"    the input is {path}; to repeat it: {sys.executable} -m tests.fuzz repeat {target} {path}", flush=True)
    return 1


def _repeat(target: str, file: Path) -> int:
    """Run an input for what it raises, for its memory and for its time."""
    from tests.fuzz.targets import TARGETS  # under the fuzzer they are imported by the fuzzer

    data = file.read_bytes()
    run = TARGETS[target].run
    try:
        run(data)  # what is set up once does not count
        in_memory(run, data)
        in_time(run, data)
    except Finding as finding:
        print(f"{target}: {finding}")
        return 1
    except Exception:  # noqa: BLE001 - whatever it is, it was found
        traceback.print_exc()
        return 1
    print(f"{target}: {len(data):,} bytes, nothing wrong")
    return 0


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
