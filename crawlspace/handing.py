"""Fields that action rules add to documents, and that pages hand to the URLs they lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from crawlspace.decision import Actions
from crawlspace.model import UrlState

SOURCE = "source"
"""The field that holds the name which `Source` gives a document."""
MOST_HANDED = 4096
"""Characters that are handed to a URL; more are not, for they would be kept for each URL a page leads to."""


def added_by(said: Actions, handed: str | None) -> dict[str, str]:
    """Return the fields of a document that rules add: what was handed to its URL, and over it what is said of the URL itself."""
    if handed is None and not said.fields and not said.label:
        return {}
    added: dict[str, str] = json.loads(handed) if handed else {}
    added.update(said.fields)
    if said.label:
        added[SOURCE] = said.label
    return added


def packed(fields: Iterable[tuple[str, str]]) -> str | None:
    """Return fields as they are handed to a URL; None where there are none, or too many."""
    written = dict(fields)
    text = json.dumps(written, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if written else None
    return text if text is not None and len(text) <= MOST_HANDED else None


def lacks_fields(state: UrlState, said: Actions) -> bool:
    """Whether rules add other fields to a document by now than it was stored with: then it is to be fetched, changed or not."""
    return state.checksum is not None and state.fields_mark != mark_of(added_by(said, state.handed))


def mark_of(added: Mapping[str, str]) -> int:
    """Return a number that differs where the fields do, in 63 bits; 0 for none."""
    if not added:
        return 0
    digest = blake2b(repr(sorted(added.items())).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1 or 1
