"""What must hold of link depths after a run that came to its end: they are what the stored links say, found here in the plainest way."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from crawlspace.model import State, UrlState
from tests.histories.configuration import ELSEWHERE, OUTSIDE

_NOINDEX = 2004


class HasLinks(Protocol):
    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]: ...


def depth_differences(store: HasLinks, states: Mapping[str, UrlState], starts: Collection[str]) -> Iterator[str]:
    """Yield the URLs whose stored depth is not the length of the shortest way over stored links, and those wrongly called orphans."""
    inside = {url: state for url, state in states.items() if state.status not in (OUTSIDE, ELSEWHERE)}
    links = store.links_of([state.id for state in inside.values()])
    distances = {state.key: 0 for url, state in inside.items() if url in starts}
    changed = True
    while changed:
        changed = False
        for state in inside.values():
            if state.key not in distances or not _leads_on(state):
                continue
            reach = distances[state.key] + (state.state is not State.REDIRECTED)
            for key in links.get(state.id, ()):
                if reach < distances.get(key, reach + 1):
                    distances[key] = reach
                    changed = True
    for url, state in inside.items():
        found = distances.get(state.key)
        if found is None and state.orphaned is None:
            yield f"DEPTH   {url}: no way leads to it, and it is no orphan (depth {state.depth}, from {state.depth_from})"
        elif found is not None and (state.orphaned is not None or state.depth != found):
            orphan = ", an orphan" if state.orphaned is not None else ""
            yield f"DEPTH   {url}: {state.depth}{orphan}, must be {found}"


def _leads_on(state: UrlState) -> bool:
    return state.state not in (State.GONE, State.EXCLUDED) or state.status == _NOINDEX
