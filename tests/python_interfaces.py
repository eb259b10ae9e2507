"""The tables of docs/api-python.md, made of the docstrings of what users may import."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise


def interface_rows(subject: type | Callable[..., object], *names: str) -> Iterator[Sequence[str]]:
    """Yield the rows of a class with these members, or with all of its fields and public methods; or of a function."""
    yield ("name", "meaning")
    if not isinstance(subject, type):
        yield _row(f"{subject.__name__}{_arguments(subject)}", subject.__doc__)
        return
    fields = _fields(subject)
    for name in names or [*fields, *(name for name in vars(subject) if _is_public_method(subject, name))]:
        if name in fields:
            yield _row(*fields[name])
            continue
        member = inspect.getattr_static(subject, name)
        if isinstance(member, property):
            yield _row(name, member.__doc__)
        else:
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            yield _row(f"{name}{_arguments(function)}", function.__doc__)


def _row(shown: str, docstring: str | None) -> Sequence[str]:
    if not docstring:
        raise ValueError(f"{shown} has no docstring, which docs/api-python.md is to show")
    return (f"`{shown}`".replace("|", "\\|"), " ".join(docstring.split()).replace("|", "\\|"))


def _arguments(function: Callable[..., object]) -> str:
    """Return the parameters without types, and without the object itself."""
    parameters = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in inspect.signature(function).parameters.values()
        if one.name not in ("self", "cls")
    ]
    return str(inspect.Signature(parameters))


def _is_public_method(subject: type, name: str) -> bool:
    member = inspect.getattr_static(subject, name)
    return not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))


def _fields(subject: type) -> dict[str, tuple[str, str | None]]:
    """Return the fields of a class, each as it is declared and with the text below it; members of an enumeration too."""
    body = ast.parse(inspect.getsource(subject)).body[0]
    assert isinstance(body, ast.ClassDef)
    is_shown_with_type = dataclasses.is_dataclass(subject)
    found = {}
    for one, below in pairwise([*body.body, ast.Pass()]):
        target = one.target if isinstance(one, ast.AnnAssign) else one.targets[0] if isinstance(one, ast.Assign) else None
        if not isinstance(target, ast.Name) or target.id.startswith("_"):
            continue
        text = below.value if isinstance(below, ast.Expr) else None
        kind = ast.unparse(one.annotation) if isinstance(one, ast.AnnAssign) and is_shown_with_type else ""
        meaning = str(text.value) if isinstance(text, ast.Constant) else None
        found[target.id] = (f"{target.id}: {kind}" if kind else target.id, meaning)
    return found
