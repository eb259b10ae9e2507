"""The library that servers load: one chunk, which may have no more than 200 local names; each key has its name from `keys.py`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crawlspace.state.redis.keys import TYPES, Key, Prefix, type_of
from crawlspace.state.redis.library import PARTS, library

FOLDER = Path(library.__wrapped__.__code__.co_filename).parent / "lua"
LUA = sorted(FOLDER.glob("*.lua"))

MOST_LOCALS = 110
"""Far below the limit: functions belong in the table of their file."""


def test_all_files_are_in_the_library() -> None:
    assert {path.stem for path in LUA} == set(PARTS)


def test_all_operations_are_registered_once() -> None:
    defined = re.findall(r"^function (?:reads|writes)\.(\w+)", library().code, re.MULTILINE)
    lists = re.findall(r"^register\(\{(.*?)\}", library().code, re.MULTILINE | re.DOTALL)
    assert sorted(defined) == sorted(re.findall(r'"(\w+)"', "".join(lists)))


def test_the_chunk_stays_far_from_the_limit_of_local_names() -> None:
    assert len(locals_of(library().code)) <= MOST_LOCALS


def test_each_local_name_of_the_chunk_is_declared_once() -> None:
    names = locals_of(library().code)
    assert sorted(set(names)) == sorted(names)


def test_all_forms_of_a_declaration_are_counted() -> None:
    chunk = "local a, b = 1, 2\nlocal function c() local inner = 1 end\nfunction a.d()\n  local deeper = 1\nend\nlocal e\n"
    assert locals_of(chunk) == ["a", "b", "c", "e"]


@pytest.mark.parametrize("path", LUA, ids=lambda path: path.stem)
def test_the_files_name_keys_as_keys_py_does(path: Path) -> None:
    code = path.read_text()
    assert set(re.findall(r"\bkeys\.(\w+)", code)) <= {key.name.lower() for key in Key}
    assert set(re.findall(r"\bPREFIX\.(\w+)", code)) <= {prefix.name.lower() for prefix in Prefix}
    assert not re.findall(r'\bP \.\. "', code), "a key that keys.py does not name"


def test_each_key_has_one_type() -> None:
    assert {kind: {key for key in Key if type_of(key) == kind} for kind in TYPES} == TYPES


def locals_of(chunk: str) -> list[str]:
    """Return the names that a chunk declares as local at its top level, where nothing is indented."""
    found = re.findall(r"^local (?:function (\w+)|([\w, ]+))", chunk, re.MULTILINE)
    return [name.strip() for function, names in found for name in (function or names).split(",")]
