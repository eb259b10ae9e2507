"""The URLs that were forgotten in this run, because they ended in a permanent error: a link to one does not enter it again in it.

A link that is found in a later run does. Memory is bounded: where very many URLs end, the oldest may be asked for once more.
"""

from __future__ import annotations

from crawlspace.discovery import Discovery
from crawlspace.model import Source, State, UrlState
from crawlspace.recent import Recent
from crawlspace.state.store import Change

_MOST = 100_000


class EndedUrls:
    """Those of a run of which it is known whether it ends; one that does not ends nothing for good."""

    def __init__(self, discovery: Discovery, *, run_ends: bool) -> None:
        self._discovery = discovery
        self._keys: Recent[int, int] | None = Recent(_MOST) if run_ends else None

    def add(self, key: int) -> None:
        """A URL is forgotten. The store may come to know it again, by a link on a page of the same batch, or of another worker."""
        self._discovery.forget(key)
        if self._keys is not None:
            self._keys.put(key, 1)

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Have a URL that was just leased be forgotten once more, where it was entered again by a link; return whether it is."""
        if (
            self._keys is None
            or state.state is not State.PENDING
            or state.source is Source.USER
            or self._keys.get(state.key) is None
        ):
            return False
        changes.append(Change(state, forget=True))
        return True
