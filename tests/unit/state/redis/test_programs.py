"""The program of an operation has what the operation needs of the Lua files, and little else."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from crawlspace.state.redis.constants import constants
from crawlspace.state.redis.programs import PARTS, program_of, whole

FOLDER = files("crawlspace.state.redis") / "lua"
FILES = {part: (FOLDER / f"{part}.lua").read_text() for part in PARTS}
FUNCTION = re.compile(r"^(?:local )?function ([\w.]+)", re.MULTILINE)
TABLE = re.compile(r"^local (\w+) = \{", re.MULTILINE)
OPERATIONS = sorted(
    name.removeprefix("ops.") for text in FILES.values() for name in FUNCTION.findall(text) if name.startswith("ops.")
)


def without_comments(text: str) -> list[str]:
    """Return the lines of code; no text of the scripts holds two dashes."""
    assert not re.search(r'"[^"\n]*--[^"\n]*"', text)
    return [code for line in text.splitlines() if (code := line.partition("--")[0].rstrip())]


def test_all_files_are_in_the_whole() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{part}.lua" for part in PARTS}
    assert whole().splitlines() == [line for text in (constants(), *FILES.values()) for line in without_comments(text)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_program_names_is_in_it(operation: str) -> None:
    program = program_of(operation)
    named = set(re.findall(r"[a-z_]+\.[a-z_]+|[a-z_]+", re.sub(r'"[^"\n]*"', "", program)))
    for kind in (FUNCTION, TABLE):
        assert named & set(kind.findall(whole())) <= set(kind.findall(program))
    lines = iter(whole().splitlines())
    assert all(line in lines for line in program.splitlines()), "the order is that of the files"


@pytest.mark.parametrize(
    ("operation", "has", "has_not"),
    [
        ("due", {"ops.due", "records.first_due"}, {"ops.first_due", "cache.keep", "get"}),
        ("lease", {"ops.lease", "taking.lease", "write_all"}, {"groups.settle", "flush"}),
        ("record", {"ops.record", "groups.settle", "flush", "refused.note"}, {"ops.take", "taking.lease", "ownership.expire"}),
    ],
)
def test_no_more_than_it_needs(operation: str, has: set[str], has_not: set[str]) -> None:
    functions = set(FUNCTION.findall(program_of(operation)))
    assert has <= functions
    assert not has_not & functions
    assert has_not <= set(FUNCTION.findall(whole()))


def test_a_loop_that_fills_a_table_comes_with_it() -> None:
    loop = 'for _, letter in ipairs(NAMES.refused_letters) do cache.COUNTERS[#cache.COUNTERS + 1] = "refused " .. letter end'
    assert loop in whole()
    assert loop in program_of("record")
    assert loop not in program_of("due")
