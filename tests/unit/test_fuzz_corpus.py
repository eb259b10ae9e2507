"""The inputs that fuzzing begins with, and those that it found once, without the fuzzer."""

from __future__ import annotations

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


def test_what_costs_too_much_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LEAST_S", 0.05)
    with pytest.raises(Finding, match=r"bytes of memory for 3 bytes"):
        in_memory(lambda data: data * 2_000_000, b"abc")
    with pytest.raises(Finding, match=r"s of processor time for 3 bytes; 0.05 s is the most"):
        in_time(lambda data: [sum(data) for _ in range(1_000_000)], b"abc")
    in_memory(lambda data: data * 100, b"abc")
    in_time(lambda data: data * 100, b"abc")


def test_an_input_is_run_again_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"\nhttp://a/")
    monkeypatch.setattr("sys.argv", ["fuzz", "repeat", "urls", str(tmp_path / "input")])
    assert main() == 0
    assert capsys.readouterr().out == "urls: 10 bytes, nothing wrong\n"
