"""The inputs that fuzzing begins with, and those that it found once, without the fuzzer."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.fuzz import checks
from tests.fuzz.__main__ import CORPUS, main
from tests.fuzz.checks import LONGEST, Finding, in_memory, in_time
from tests.fuzz.targets import TARGETS

INPUTS = [pytest.param(path.parent.name, path, id=f"{path.parent.name}-{path.name}") for path in sorted(CORPUS.glob("*/*"))]


@pytest.mark.parametrize("target,path", INPUTS)
def test_an_input_of_the_corpus_does_nothing_unexpected(target: str, path: Path) -> None:
    data = path.read_bytes()
    assert 0 < len(data) <= LONGEST
    TARGETS[target].run(data)  # what is set up once does not count
    in_time(TARGETS[target].run, data)


def test_each_target_has_inputs() -> None:
    assert sorted(TARGETS) == sorted(path.name for path in CORPUS.iterdir())


def test_what_needs_too_much_memory_is_a_finding() -> None:
    with pytest.raises(Finding, match=r"bytes of memory for 3 bytes"):
        in_memory(lambda data: data * 2_000_000, b"abc")
    in_memory(lambda data: data * 100, b"abc")


COSTS: list[tuple[int, float, float, str]] = [
    # bytes, seconds they take, how many times longer this machine takes, the finding
    (3,       0.49, 1, ""),
    (3,       0.51, 1, "took 0.51 s of processor time for 3 bytes; 0.50 s is the most"),
    (3,       0.51, 2, ""),
    (3,       1.01, 2, "took 1.01 s of processor time for 3 bytes; 1.00 s is the most"),
    (3,       0.51, 0.5, "took 0.51 s of processor time for 3 bytes; 0.50 s is the most"),
    (100_000, 0.99, 1, ""),
    (100_000, 1.01, 1, "took 1.01 s of processor time for 100,000 bytes; 1.00 s is the most"),
]  # fmt: skip


@pytest.mark.parametrize(("size", "taken_s", "slowness", "finding"), COSTS)
def test_what_takes_too_long_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, size: int, taken_s: float, slowness: float, finding: str
) -> None:
    times = iter([7.0, 7.0 + taken_s, 9.0, 9.0 + slowness * checks.REFERENCE_S])
    monkeypatch.setattr(checks, "process_time", lambda: next(times))
    with pytest.raises(Finding, match=f"^{finding}$") if finding else nullcontext():
        in_time(len, bytes(size))


def test_an_input_is_run_again_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"\nhttp://a/")
    monkeypatch.setattr("sys.argv", ["fuzz", "repeat", "urls", str(tmp_path / "input")])
    assert main() == 0
    assert capsys.readouterr().out == "urls: 10 bytes, nothing wrong\n"
