"""One target under atheris: the search for inputs is its own; what an input may do is checked here.

Atheris finds inputs that lead to new places in the code. These stay short, so half of the time goes to what grows out of them: a part of
an input over and over, up to the longest. Code that atheris observes is slower; what takes too long there is run again without it.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import traceback
from hashlib import blake2b
from pathlib import Path
from time import process_time

import atheris

from tests.fuzz.checks import LONGEST, Finding, Run, in_memory, in_time

with atheris.instrument_imports(include=["crawlspace"]):
    from tests.fuzz.targets import TARGETS

HANGS_S = 60
"""So long one input may run before the process is ended."""
_MEMORY_EVERY = 8
"""Memory is measured for one input in so many: it takes several times as long."""


def fuzz(target: str, *, seconds: int, work: Path, corpus: Path) -> int:
    """Fuzz until the time is over, which ends the process, or something is found."""
    own = work / "corpus"
    own.mkdir(parents=True, exist_ok=True)
    words = work / "words"
    words.write_text("".join(f'"{_written(word)}"\n' for word in TARGETS[target].words), encoding="utf-8")
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        f"-timeout={HANGS_S}",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
        "-verbosity=1",
        f"-artifact_prefix={work}/",
        f"-dict={words}",
    ]
    atheris.Setup([sys.argv[0], *options, str(own), str(corpus)], _Trial(target, work))
    atheris.Fuzz()
    return 0


class _Trial:
    """What is done with each input."""

    def __init__(self, target: str, work: Path) -> None:
        self._target = target
        self._run: Run = TARGETS[target].run
        self._work = work
        self._number = 0
        self._plainly_s = self._grown_s = 0.0
        self._cleared = 1.0
        """By how much an input was slow, under observation alone; only a slower one is looked at again."""

    def __call__(self, data: bytes) -> None:
        began = process_time()
        self._check(data)
        self._plainly_s += process_time() - began
        if data and self._grown_s < self._plainly_s:
            began = process_time()
            grown = _grown(data)
            (self._work / "current").write_bytes(grown)
            self._check(grown)
            (self._work / "current").unlink()
            self._grown_s += process_time() - began

    def _check(self, data: bytes) -> None:
        self._number += 1
        try:
            (in_memory if self._number % _MEMORY_EVERY == 0 else in_time)(self._run, data)
        except Finding:
            self._found(data)
        except Exception:  # noqa: BLE001 - whatever it is, it was found
            traceback.print_exc()
            self._found(data)

    def _found(self, data: bytes) -> None:
        """End the process, unless nothing is wrong without the fuzzer."""
        path = self._work / f"found-{blake2b(data, digest_size=8).hexdigest()}"
        path.write_bytes(data)
        repeat = [sys.executable, "-m", "tests.fuzz", "repeat", self._target, str(path)]
        try:
            result = subprocess.run(repeat, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            print(f"{self._target}: did not end within {HANGS_S} s")
        else:
            if result.returncode == 0:
                path.unlink()
                return
            sys.stdout.write(result.stdout.decode("utf-8", "replace"))
        sys.stdout.flush()
        sys.stderr.flush()
        (self._work / "current").unlink(missing_ok=True)
        os._exit(1)


def _grown(data: bytes) -> bytes:
    """Return an input with a part of it over and over; always the same one for an input."""
    draw = random.Random(data)
    start = draw.randrange(len(data))
    end = min(len(data), start + draw.choice((1, 2, 3, 5, 8, 13, 30, 100, 1_000, LONGEST)))
    size = min(LONGEST, len(data) * 100) if draw.random() < 0.5 else LONGEST
    part, keep = data[start:end], data[end:] if draw.random() < 0.7 else b""
    times = max(1, (size - start - len(keep)) // len(part))
    return (data[:start] + part * times + keep)[:LONGEST]


def _written(word: str) -> str:
    """A word as libFuzzer reads it."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode())
