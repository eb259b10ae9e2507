"""The program of each operation: what it needs of the files in `lua/`.

A server makes all functions and tables of a program anew for each call. With all files in one program that takes longer than what most
operations do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from crawlspace.state.redis.constants import constants

PARTS = (
    "records",
    "alive",
    "rows",
    "queue",
    "outbox",
    "workers",
    "winner",
    "incumbents",
    "groups",
    "inheritance",
    "refused",
    "record",
    "look",
    "timed",
    "depths",
    "take",
    "claims",
    "orders",
    "archive",
    "move",
    "main",
)
"""The files, in the order of the program."""

_MAIN = PARTS[-1]
_FUNCTION = re.compile(r"(?:local )?function ([\w.]+)")
_LOCALS = re.compile(r"local ([\w, ]+)")
_FIELDS = re.compile(r"(\w+\.\w+(?:, \w+\.\w+)*) =")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_COMMENT = re.compile(r"(?:^|\s)--.*")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement outside of all functions, a function as a whole being one."""

    text: str
    defines: frozenset[str]
    """Names, with their table where they have one, as `records.decoded`; what fills a table defines that, too."""
    names: frozenset[str]
    """All names in it, with and without their table."""


@cache
def program_of(operation: str) -> str:
    """Return the text of an operation's program. One of an unknown operation fails when it runs."""
    statements = _statements()
    main = {at for at, statement in enumerate(statements) if not statement.defines}
    defined_in: defaultdict[str, list[int]] = defaultdict(list)
    for at, statement in enumerate(statements):
        for name in statement.defines:
            defined_in[name].append(at)
    needed = {*main, *defined_in[f"ops.{operation}"]}
    unread = list(needed)
    while unread:
        found = {at for name in statements[unread.pop()].names for at in defined_in.get(name, ())} - needed
        needed |= found
        unread += found
    return "\n".join(statements[at].text for at in sorted(needed))


def whole() -> str:
    """Return all files as one program."""
    return "\n".join(statement.text for statement in _statements())


@cache
def _statements() -> tuple[_Statement, ...]:
    folder = files("crawlspace.state.redis") / "lua"
    made = [_statement(lines) for lines in _cut(constants())]
    for part in PARTS:
        made += [_statement(lines, is_main=part == _MAIN) for lines in _cut((folder / f"{part}.lua").read_text())]
    return tuple(made)


def _cut(text: str) -> Iterator[list[str]]:
    """Yield the lines of each statement, without comments. It begins at the start of a line; the further lines are indented, or its `end`."""
    lines: list[str] = []
    for line in text.splitlines():
        code = _COMMENT.sub("", line).rstrip()
        if code and lines and not code.startswith((" ", "end", "}")):
            yield lines
            lines = []
        if code:
            lines.append(code)
    yield lines


def _statement(lines: list[str], *, is_main: bool = False) -> _Statement:
    names = _NAME.findall(_TEXT.sub("", "\n".join(lines)))
    dotted = [name for name in names if "." in name]
    first = lines[0]
    if is_main:
        defines = []
    elif found := _FUNCTION.match(first):
        defines = [found[1]]
    elif found := _LOCALS.match(first) or _FIELDS.match(first):
        defines = found[1].split(", ")
    else:  # a loop that fills a table
        defines = dotted
    return _Statement(
        "\n".join(lines), frozenset(map(str.strip, defines)), frozenset((*names, *(name.partition(".")[0] for name in dotted)))
    )
