"""The steps of a random walk that concern the archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from crawlspace.document import Document
from crawlspace.state.store import Store
from tests.contract.drawn import archived, given_documents

T = TypeVar("T")


class ArchiveSteps(RuleBasedStateMachine):
    def both(self, step: Callable[[Store], object]) -> None:
        raise NotImplementedError

    def known_ids(self, by_place: dict[int, T]) -> dict[int, T]:
        raise NotImplementedError

    @rule(moves=st.dictionaries(st.integers(0, 15), st.tuples(archived, archived), max_size=5))
    def move_archived(self, moves: dict[int, tuple[int | None, int | None]]) -> None:
        self.both(lambda store: store.move_archived([(id, was or 1, now) for id, (was, now) in self.known_ids(moves).items()]))

    @rule(given=st.dictionaries(st.integers(0, 15), given_documents, max_size=5))
    def push_again(self, given: dict[int, Document]) -> None:
        by_id = self.known_ids(given)
        documents: dict[int, Document | None] = {4711: None, **by_id}
        self.both(lambda store: store.push_again(documents))

    @rule(name=st.sampled_from("fgh"))
    def add_archive_file(self, name: str) -> None:
        self.both(lambda store: (store.add_archive_file(name), store.archive_files()))
