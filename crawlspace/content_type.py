"""Parsing of the Content-Type header, for the rules, the middleware and the parsing.

As in browsers (Fetch standard, "extract a MIME type"): of several types, in one or several headers, the last valid one counts.
`*/*` is not valid. A header without a valid type counts as no header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_TOKEN = r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}"
"""The maximal length of a type or subtype (RFC 6838, 4.2)."""
_ONE_TYPE = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*(?:;[^,]*)?")
_GENERIC = frozenset(
    (
        " application/octet-stream application/x-octet-stream application/octetstream binary/octet-stream application/unknown"
        " unknown/unknown application/x-unknown application/download application/x-download application/force-download"
        " application/x-force-download application/x-forcedownload text/pdf text/x-pdf"
    ).split(" ")
)
"""Types that servers send for files of unknown type (MIME Sniffing standard, 5.1 and 7), or to have a file saved; the empty one too.
PDF is no text, but what is sent as `text/pdf` may be."""


def declared(values: Sequence[str]) -> str | None:
    """Return the values of all Content-Type headers of a response, joined; None without any."""
    if len(values) == 1:
        return values[0]
    return ", ".join(values) if values else None


def essence(declared: str | None) -> str:
    """Return the type of a Content-Type header in lower case, without parameters; empty if it has no valid type."""
    if not declared:
        return ""
    return _essence_of_usual(declared) if len(declared) <= _USUAL_LENGTH else _essence(declared)


def is_generic(declared: str | None) -> bool:
    """Return whether a header doesn't determine the type, so that the first bytes must."""
    return essence(declared) in _GENERIC


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
"""Cached, because it is called several times a page with the same few values; bounded in number and length."""
