"""Metadata that action rules add to documents, and that pages pass on to the pages they link to.

The store resolves metadata from several source pages: see `state.inherited_metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from crawlspace.crawl.conditional import rules_mark, rules_mark_of
from crawlspace.decision import Actions
from crawlspace.model import UrlState

SOURCE = "source"
"""The metadata field set by `Source`."""
MAX_INHERITED = 4096
"""Maximal characters of JSON passed on to a URL, because they are stored for each linked URL."""


def added_by(actions: Actions, inherited: str | None) -> dict[str, str]:
    """Return the metadata that rules add to a document: inherited metadata, overridden by the URL's own."""
    if inherited is None and not actions.fields and not actions.label:
        return {}
    added = dict(actions.fields)
    if actions.label:
        added[SOURCE] = actions.label
    if inherited:  # last: if not all of it fits when passed on, the URL's own metadata has priority
        added.update((name, value) for name, value in json.loads(inherited).items() if name not in added)
    return added


def packed(fields: Iterable[tuple[str, str]]) -> str | None:
    """Return metadata as JSON in the given order; None if there is none."""
    written = dict(fields)
    return _written(written) if written else None


def fitting(inherited: str) -> tuple[str | None, list[str]]:
    """Return packed metadata cut to the limit, and the names left out; each field that fits is kept, in order."""
    if len(inherited) <= MAX_INHERITED:
        return inherited, []
    taken: dict[str, str] = {}
    left_out: list[str] = []
    length = len("{}")
    for name, value in json.loads(inherited).items():
        longer = length + len(_written({name: value})) - len("{}") + bool(taken) * len(",")
        if longer > MAX_INHERITED:
            left_out.append(name)
        else:
            taken[name], length = value, longer
    return packed(taken.items()), left_out


def lacks_fields(state: UrlState, actions: Actions) -> bool:
    """Return whether rules now add other metadata to a document than it was stored with, so that it must be fetched."""
    return state.checksum is not None and rules_mark_of(state.fields_mark) != rules_mark(added_by(actions, state.inherited))


def _written(fields: Mapping[str, str]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
