"""The tables of docs/settings.md, made of crawlspace/settings.py and content_settings.py: each setting with its default, what it means, and its bounds."""

from __future__ import annotations

import ast
import json
import runpy
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import inspect

from crawlspace import content_settings, settings
from crawlspace.setting_types import Section


@cache
def defaults() -> dict[str, object]:
    """Return all settings of the project as they are without an environment of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CRAWLSPACE_COLLECTIONS_DIR", raising=False)
        patch.delenv("CRAWLSPACE_DATA_DIR", raising=False)
        names = runpy.run_path(str(settings.__file__))
    return {name: value for name, value in names.items() if name.isupper()}


def setting_rows(*sections: type[Section]) -> Iterator[Sequence[str]]:
    """Yield the rows of a table of sections."""
    yield ("setting", "default", "meaning")
    for section in sections:
        info = inspect.type_info(section)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            meaning = " ".join([_meanings()[section.__name__, field.name], *_bounds(field.type)]).replace("|", "\\|")
            yield (f"`{field.encode_name}`", f"`{_shown(defaults()[field.encode_name])}`", meaning)


@cache
def _meanings() -> dict[tuple[str, str], str]:
    """Return the text below each setting, by section and attribute."""
    found = {}
    files = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in (settings, content_settings)]
    for section in [one for file in files for one in ast.parse(file).body]:
        if not isinstance(section, ast.ClassDef):
            continue
        for one, below in pairwise(section.body):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(below, ast.Expr):
                found[section.name, one.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return found


def _bounds(kind: inspect.Type) -> Iterator[str]:
    """Yield the sentence about the bounds of a number; none where 0 is the least."""
    unit = ""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            unit, kind = " second{}", kind.type
        else:
            kind = kind.types[0]
    if isinstance(kind, inspect.IntType | inspect.FloatType) and (kind.gt is not None or kind.ge or kind.le is not None):
        if kind.gt is not None:
            yield f"Above {kind.gt:,}."
        elif kind.le is not None:
            yield f"From {kind.ge:,} to {kind.le:,}."
        else:
            yield f"At least {kind.ge:,}{unit.format('' if kind.ge == 1 else 's')}."


def _shown(default: object) -> str:
    return json.dumps(default, ensure_ascii=False) if isinstance(default, str | list | dict) else repr(default)
