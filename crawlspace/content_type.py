"""What a Content-Type header says: the one function that reads it, for the rules, the middleware and the parsing alike.

Read as browsers do (Fetch standard, "extract a MIME type"): of several types, in one header or in several, the last one that is a
type counts, and `*/*` is none. What is no type at all says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_TOKEN = r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}"
"""At most as long as a type or subtype may be (RFC 6838, 4.2)."""
_ONE_TYPE = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*(?:;[^,]*)?")
_SAYS_NOTHING = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown", "application/x-unknown"}
)
"""Types that servers send for files that they don't know (MIME Sniffing standard, 5.1 and 7)."""


def declared(values: Sequence[str]) -> str | None:
    """Return the values of all Content-Type headers of a response as one; None where there is none."""
    if len(values) == 1:
        return values[0]
    return ", ".join(values) if values else None


def essence(declared: str | None) -> str:
    """Return the type of a Content-Type header without parameters, in lower case; empty where it names none."""
    if not declared:
        return ""
    return _essence_of_usual(declared) if len(declared) <= _USUAL_LENGTH else _essence(declared)


def is_generic(declared: str | None) -> bool:
    """Return whether a header says nothing about the type, so that the first bytes must decide."""
    return essence(declared) in _SAYS_NOTHING


def _essence(declared: str) -> str:
    written = declared.lower()
    match = _ONE_TYPE.fullmatch(written)
    if match is not None:
        return "" if match[1] == "*/*" else match[1]
    found = ""
    for part in written.split(","):
        match = _ONE_TYPE.fullmatch(part)
        if match is not None and match[1] != "*/*":
            found = match[1]
    return found


_USUAL_LENGTH = 100
_essence_of_usual = lru_cache(1_000)(_essence)
"""Sites send the same few; what is asked for several times a page is kept, bounded in number and length."""
