"""The functions in `lua/` as a library that a server loads (`FUNCTION LOAD`), with the numbers of the model as constants.

The name of the library, a prefix of its functions' names, has a digest of its code: versions of crawlspace that share a server call their
own functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import NamedTuple

from msgspec.structs import fields

from crawlspace.model import QUEUES, SHIFTS, Held, Requester, Source, State
from crawlspace.state.changes import DUE, EXCLUDED, HELD, HELD_FOLDED, NOT_HELD, PENDING_AGAIN, Values
from crawlspace.state.due_times import CLOCKS_DIFFER_S, NOT_DUE_BY_AGE
from crawlspace.state.fields import COMPUTED, FOUND
from crawlspace.state.redis.encoding import FORMAT, PART, Row
from crawlspace.state.redis.keys import Key, Prefix, type_of
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST
from crawlspace.status import LINKS_ONLY, OUT_OF_SPACE, UNCOUNTED, Status

PARTS = (
    "records",
    "rows",
    "groups",
    "near",
    "outbox",
    "inheritance",
    "refused",
    "record",
    "reading",
    "queue",
    "workers",
    "move",
    "main",
)
"""The files, in the order of the code."""

_OF_RULE_CHANGE = {
    "EXCLUDED": EXCLUDED,
    "DUE": DUE,
    "HELD": HELD,
    "HELD_FOLDED": HELD_FOLDED,
    "NOT_HELD": NOT_HELD,
    "PENDING_AGAIN": PENDING_AGAIN,
}


_COUNTERS = ("urls", "sites", "orders", "with document", "indexed", "forgotten", "retrying", "writes", "edits")


class Library(NamedTuple):
    name: str
    code: str

    def function(self, operation: str) -> str:
        """Return the name of the function for an operation."""
        return f"{self.name}_{operation}"


@cache
def library() -> Library:
    """Return the library of this version of crawlspace."""
    folder = files("crawlspace.state.redis") / "lua"
    code = "\n".join((constants(), *((folder / f"{part}.lua").read_text() for part in PARTS)))
    name = f"crawlspace_{blake2b(code.encode(), digest_size=6).hexdigest()}"
    return Library(name, f'#!lua name={name}\nlocal LIBRARY = "{name}"\n{code}')


def constants() -> str:
    """Return the definitions: the positions of a record's elements and the states as names, all else as tables."""
    elements = [field for field in fields(Row) if field.name != "version"]
    positions = {field.name.upper(): position for position, field in enumerate(elements, 2)}
    zero = ["STATE", *(field.name.upper() for field in elements if field.default == 0 and field.default is not False)]
    keys = {key.name: key for key in Key}
    prefixes = {prefix.name: prefix for prefix in Prefix}
    types = {key.name: type_of(key) for key in Key}
    times = _of([("SCHEDULE", int(Requester.SCHEDULE)), ("NOT_DUE_BY_AGE", NOT_DUE_BY_AGE), ("CLOCKS_DIFFER_S", CLOCKS_DIFFER_S)])
    counters = [
        *_COUNTERS,
        *(f"refused {letter}" for letter in LETTERS.values()),
        *(f"state {int(state)}" for state in State),
        "state leased",
    ]
    names = [
        ("keys", _texts(keys)),
        ("prefixes", _texts(prefixes)),
        ("types", _texts(types)),
        ("times", times),
        ("most_sampled", _of([("links", LINKS_OF_HOST), ("hosts", HOSTS_OF_REASON)])),
        ("kept", f"{{{', '.join(name.upper() for name in (*FOUND, *COMPUTED) if name.upper() in positions)}}}"),
        ("counters", f"{{{', '.join(f'{name!r}' for name in counters)}}}"),
    ]
    return "\n".join(
        (
            _names({"FORMAT": FORMAT, "PART": PART, "SHIFTS": SHIFTS, "QUEUES": QUEUES, "LAST": max(positions.values())}),
            _names(positions),
            _names({state.name: state for state in State}),
            'local NO_PAGE = "' + r"\255" * 8 + '"',  # the key -1
            f"local ZERO = {_set_of(zero)}",
            f"local STATUSES = {_table(Status)}",
            f"local SOURCES = {_table(Source)}",
            f"local HELD_FOR = {_table(Held)}",
            f"local OUT_OF_SPACE = {_set_of(map(int, sorted(OUT_OF_SPACE)))}",
            f"local LINKS_ONLY = {_set_of(map(int, sorted(LINKS_ONLY)))}",
            f"local UNCOUNTED = {_set_of(map(int, sorted(UNCOUNTED)))}",
            f"local NAMES = {_of(names)}",
            f"local WRITES = {_of((name, _values(values, zero)) for name, values in _OF_RULE_CHANGE.items())}",
        )
    )


def _names(values: Mapping[str, int]) -> str:
    return f"local {', '.join(values)} = {', '.join(str(int(value)) for value in values.values())}"


def _table(kind: type[IntEnum]) -> str:
    return _of((one.name, int(one)) for one in kind)


def _texts(values: Mapping[str, str]) -> str:
    return _of((name.lower(), f'"{value}"') for name, value in values.items())


def _set_of(keys: Iterable[object]) -> str:
    return _of((f"[{key}]", "true") for key in keys)


def _values(values: Values, zero: Collection[str]) -> str:
    """Return values by position; false removes an element, as for all empty ones except numbers."""
    pairs = {name.upper(): value for name, value in values.items()}
    return _of((f"[{name}]", int(value or 0) if value or name in zero else "false") for name, value in pairs.items())


def _of(pairs: Iterable[tuple[str, object]]) -> str:
    return f"{{{', '.join(f'{key} = {value}' for key, value in pairs)}}}"
