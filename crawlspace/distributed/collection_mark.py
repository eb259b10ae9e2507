"""Notices that a Redis server has lost a collection, as when it is restarted without having saved anything."""

from __future__ import annotations

from secrets import token_hex

from crawlspace.errors import StoreError
from crawlspace.state.redis.store import RedisStore

NAME = "born"


class CollectionMark:
    """A random value that is stored with the collection when it is made, and must be found there from then on."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        stored = store.get_meta(NAME)
        self.is_new = stored is None and not store.scan(0, 1)
        """The server had nothing of the collection."""
        self._value = stored or token_hex(8)

    def save(self) -> None:
        self._store.set_meta(NAME, self._value)

    def check(self) -> None:
        """Raise StoreError if the server has lost the collection since."""
        if self._store.get_meta(NAME) != self._value:
            raise StoreError(
                "Redis has lost this collection, as when it is restarted without having kept anything: nothing is deleted from the index;"
                " put a copy of its data back, or move the index away too and crawl anew"
            )
