"""What a URL is in a pending file, and how more lines are sorted than are in memory."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from crawlspace.admin.pending.export import number_of, realm_of, sorted_lines
from crawlspace.errors import ExportError
from crawlspace.model import State, UrlState

# state, fetched at, imported time, number
NUMBERS = [
    (State.PENDING, None, 0, 0),
    (State.PENDING, None, 700, 700),
    (State.PENDING, 900, 700, 0),  # fetched, and pending again
    (State.DONE, 900, 0, 900),
    (State.DONE, 900, 700, 900),
    (State.DONE, 700, 900, 900),
    (State.GONE, 900, 0, 2),
    (State.GONE, None, 700, 2),
    (State.FAILED, 900, 0, 2),
    (State.REDIRECTED, 900, 0, 2),
    (State.EXCLUDED, 900, 0, 2),
]


@pytest.mark.parametrize(("state", "fetched_at", "imported", "number"), NUMBERS)
def test_the_number_of_a_url(state: State, fetched_at: int | None, imported: int, number: int) -> None:
    assert number_of(UrlState(1, 1, "http://a/", "a:80", state=state, fetched_at=fetched_at), imported) == number


def test_the_realm_of_a_collection() -> None:
    assert realm_of("hand_book-2") == "hand_book-2"


@pytest.mark.parametrize("number", [0, 1, 99, 100, 101, 1_000])
def test_lines_are_sorted_whatever_is_in_memory(number: int) -> None:
    lines = [f"http://a.example/{chr(33 + n % 90)}/{n} R 0" for n in range(number)]
    mixed = random.Random(number).sample(lines, len(lines))
    assert list(sorted_lines(mixed, at_once=100)) == sorted(lines, key=lambda line: line.split(" "))


def test_a_folder_for_sorting_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ExportError, match="set TMPDIR"):
        list(sorted_lines(["a", "b"], at_once=1))
