"""What is shown of how far a command has come."""

from __future__ import annotations

import io

import pytest

from crawlspace.clock import FakeClock
from crawlspace.runtime.session.progress import ProgressDisplay


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *calls: tuple[str, int, int | None]) -> str:
    """What is written when a second passes after each call, and then it is closed."""
    clock = FakeClock(0)
    display = ProgressDisplay(stream, clock)
    for doing, done, total in calls:
        display(doing, done, total)
        clock.advance(1)
    display.close()
    return stream.getvalue()


COUNTS = [(f"{number},000 URLs so far", 0, None) for number in range(1, 5)]
COPIES = [("copying", number, 20_000) for number in range(1_000, 15_000, 1_000)]


@pytest.mark.parametrize(
    ("calls", "written"),
    [
        (COUNTS[:2], ""),
        (COUNTS, "3,000 URLs so far\n"),
        (COPIES, "copying: 3,000 of 20,000 URLs\ncopying: 13,000 of 20,000 URLs\n"),
    ],
)
def test_a_file_has_lines_now_and_then(calls: list[tuple[str, int, int | None]], written: str) -> None:
    assert shown(io.StringIO(), *calls) == written


def test_a_terminal_has_a_line_that_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    written = shown(Terminal(), *COUNTS)
    assert [number in written for number in ("2,000", "3,000", "4,000 URLs so far")] == [False, True, True]
    assert written.endswith("\x1b[2K"), "erased"
    assert "━" in shown(Terminal(), *COPIES), "a bar where the end is known"
    assert not shown(Terminal(), *COUNTS[:2])
