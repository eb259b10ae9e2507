"""Fields that action rules add to documents, and that pages hand to the URLs they lead to.

Whose word holds where several pages lead to a URL, and what follows when it changes, is the store's affair: see `state.handed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from crawlspace.crawl.document_hash import rules_mark, rules_mark_of
from crawlspace.decision import Actions
from crawlspace.model import UrlState

SOURCE = "source"
"""The field that holds the name which `Source` gives a document."""
MOST_HANDED = 4096
"""Characters of JSON that are handed to a URL; more are not, for they would be kept for each URL a page leads to."""


def added_by(said: Actions, inherited: str | None) -> dict[str, str]:
    """Return the fields of a document that rules add: what was handed to its URL, and over it what is said of the URL itself."""
    if inherited is None and not said.fields and not said.label:
        return {}
    added = dict(said.fields)
    if said.label:
        added[SOURCE] = said.label
    if inherited:  # at the end: where not all of it can be handed on, what is said of the URL itself goes first
        added.update((name, value) for name, value in json.loads(inherited).items() if name not in added)
    return added


def packed(fields: Iterable[tuple[str, str]]) -> str | None:
    """Return fields as they are handed to a URL, in their order; None where there are none."""
    written = dict(fields)
    return _written(written) if written else None


def fitting(inherited: str) -> tuple[str | None, list[str]]:
    """Return what was packed without the fields that are too many, and their names: each that still fits is taken, in their order."""
    if len(inherited) <= MOST_HANDED:
        return inherited, []
    taken: dict[str, str] = {}
    left_out: list[str] = []
    length = len("{}")
    for name, value in json.loads(inherited).items():
        longer = length + len(_written({name: value})) - len("{}") + bool(taken) * len(",")
        if longer > MOST_HANDED:
            left_out.append(name)
        else:
            taken[name], length = value, longer
    return packed(taken.items()), left_out


def lacks_fields(state: UrlState, said: Actions) -> bool:
    """Whether rules add other fields to a document by now than it was stored with: then it is to be fetched, changed or not."""
    return state.checksum is not None and rules_mark_of(state.fields_mark) != rules_mark(added_by(said, state.inherited))


def _written(fields: Mapping[str, str]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
