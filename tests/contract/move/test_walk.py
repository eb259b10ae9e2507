"""A random walk on one store, which goes on in the other one now and then."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from crawlspace.state.sqlite import dump as sqlite_side
from crawlspace.state.store import Store
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import url_key
from tests.contract.drawn import SITES, TWIN, Lying, times
from tests.contract.move.stores import KINDS, Stores
from tests.contract.test_store_walk import WALK, RedisWalk, SqliteWalk, StoreWalk
from tests.quick import examples
from tests.servers import emptied

NAMES = ("one", "two")
"""Of values of the whole collection."""


class MovedWalk(StoreWalk):
    """A walk on one store, which goes on in the other one now and then."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="move"))
        self.client = emptied()
        self.stores = Stores(self.folder)
        self.kind = "sqlite"
        # A made-up key of a URL that may not be known any more is not found again from the URL, as a real one is.
        self.keys = patch.object(sqlite_side, "url_key", lambda url: TWIN.key if url == TWIN.url else url_key(url))
        self.keys.start()
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.keys.stop()
        self.client.close()
        shutil.rmtree(self.folder)

    def reopened(self) -> Store:
        return self.stores.open(self.kind)

    def lies(self) -> Lying:
        return (RedisWalk if self.kind == "redis" else SqliteWalk).lies(self)  # type: ignore[arg-type]

    @rule(records=st.integers(1, 5), stopped=st.none() | st.integers(0, 2))
    def move(self, records: int, stopped: int | None) -> None:
        here, there = self.kind, KINDS[self.kind == "sqlite"]
        self.store.close()
        if stopped is not None:
            late = stopped < 2 and records % 2 == 1  # the third time may be the last
            assert self.stores.stopped(here, there, stop=stopped, late=late) is not None
        self.stores.move(here, there, records=records)
        self.stores.remove(here)
        self.model.release([state.id for state in self.model.urls()])
        self.kind = there
        self.store = self.reopened()

    @rule(records=st.integers(1, 5))
    def move_again(self, records: int) -> None:
        """So that a walk has more than one move or two."""
        self.move(records, None)

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from(["", "x", "é"]))
    def set_meta(self, name: str, value: str) -> None:
        self.both(lambda store: store.set_meta(name, value))

    @rule(site=st.sampled_from([*SITES, "robots.example:80"]), scheme=st.sampled_from(["http", "https"]), at=times)
    def save_robots(self, site: str, scheme: str, at: int) -> None:
        self.both(lambda store: store.save_robots(RobotsEntry(site, scheme, 200, "User-agent: *", at)))

    @invariant()
    def same_odds_and_ends(self) -> None:
        self.both(lambda store: [store.get_meta(name) for name in NAMES])
        self.both(lambda store: [store.robots(site, "http") for site in (*SITES, "robots.example:80")])

    @invariant()
    def nobody_is_in_a_group_that_is_gone(self) -> None:
        if self.kind == "redis":
            RedisWalk.nobody_is_in_a_group_that_is_gone(self)  # type: ignore[arg-type]


TestMovedWalk = MovedWalk.TestCase
TestMovedWalk.settings = settings(WALK, max_examples=examples(6))
