"""What tests of rule changes share: states of known URLs, a store that is killed at a write, and the rules of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec import structs

from crawlspace.crawl.conditional import generation
from crawlspace.crawl.rule_changes.reconcile import RECONCILING, RULES_HASH, reconcile
from crawlspace.document import Document
from crawlspace.model import Held, NewUrl, Source, State, UrlState
from crawlspace.rules.crawl_rules import parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore

NOW = 1_750_000_000
LATER = NOW + 1_000
OPEN, SHUT = DeletionLimit(100, 1_000), DeletionLimit(0, 0)


RULES = """\
allow domain www.example.com
forbid domain *.example.com
forbid prefix http://www.example.com/private/
"""


GLOBAL = "allow domain sales.example.com"
IN, PRIVATE = "http://www.example.com/", "http://www.example.com/private/"
SALES, LOST = "http://sales.example.com/", "http://lost.example.com/"
PENDING = (State.PENDING, None, False, None, None)
DOCUMENT = (State.DONE, 200, True, None, NOW + 500)
DUPLICATE = (State.DONE, 200, False, None, NOW + 500)
MISSING = (State.GONE, 404, False, None, NOW + 500)
FAILING = (State.FAILED, 503, True, Held.HOST, NOW + 500)
HELD = (State.DONE, 200, True, Held.RULES, None)
NEVER_DUE = (State.DONE, 200, True, None, None)
OUT = (State.EXCLUDED, 760, False, None, None)
ELSEWHERE = (State.EXCLUDED, 761, False, None, None)
BACK = (State.DONE, 200, True, None, LATER)
Row = tuple[State, int | None, bool, Held | None, int | None]  # state, status, indexed, held, next fetch


class Killed(Exception):
    """The process dies."""


class Mortal(MemoryStore):
    """Dies at a write: before it, or once it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.writes_left: int | None = None
        self.last_write_is_lost = True
        self.log: list[str] = []

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        with self._writing("reclassify"):
            return super().reclassify(found, now=now)

    def set_meta(self, name: str, value: str) -> None:
        with self._writing(name):
            super().set_meta(name, value)

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        if self.writes_left == 0 and self.last_write_is_lost:
            raise Killed
        self.log.append(what)
        yield
        if self.writes_left == 0:
            raise Killed
        if self.writes_left is not None:
            self.writes_left -= 1


def kill(store: Mortal, writes: int, *, deletion_limit: DeletionLimit, lost: bool = True) -> None:
    """Kill a change of the rules at the write after so many."""
    store.writes_left, store.last_write_is_lost = writes, lost
    with pytest.raises(Killed):
        reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
    store.writes_left = None


def verdicts(rules: str = RULES) -> KnownUrlDecisions:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [])
    return KnownUrlDecisions(space, GlobalSpace(parse_global_rules(GLOBAL, file="global.rules")))


def everything() -> Mortal:
    """A store with URLs of all kinds."""
    kinds = {
        IN: (PENDING, DOCUMENT, OUT, ELSEWHERE, NEVER_DUE, FAILING),
        PRIVATE: (DOCUMENT, PENDING, ELSEWHERE, OUT),
        SALES: (DOCUMENT, PENDING, OUT),
        LOST: (DOCUMENT, ELSEWHERE),
    }
    rows = [(f"{prefix}{number}", row) for prefix, rows in kinds.items() for number, row in enumerate(rows, 1)]
    return known(*rows, (f"{IN}a.zip", DOCUMENT))


def known(*rows: tuple[str, Row], alike: bool = False) -> Mortal:
    """A store with these URLs, each with a document of its own or all `alike`; what they duplicate stands before them."""
    store = Mortal()
    discover(store, "http://www.example.com/forgotten")
    store.record([Change(get(store, "http://www.example.com/forgotten"), forget=True)], now=NOW)
    original = "http://www.example.com/o"
    if not alike:
        rows = ((original, DOCUMENT), *rows)
    for url, (state, status, indexed, held, due) in rows:
        discover(store, url)
        change = Change(structs.replace(get(store, url), state=state, status=status, held=held, next_fetch=due, rules=1))
        if indexed or (state, status) == (State.DONE, 200):
            own = url if indexed and not alike else original
            change.state.checksum = own.encode()[-16:].rjust(16)
            change.document = Document(url, title="A title", text=own)
        store.record([change], now=NOW)
    store.acknowledge("index", store.orders("index", 99, now=NOW))
    store.log.clear()
    return store


def discover(store: MemoryStore, url: str) -> None:
    parsed = parse(url)
    store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX, 0, 0, 0, len(parsed.path))], now=NOW)


def get(store: MemoryStore, url: str) -> UrlState:
    state = store.get(url)
    assert state is not None
    return state


def row(store: MemoryStore, url: str) -> Row:
    state = get(store, url)
    return (state.state, state.status, state.indexed, state.held, state.next_fetch)


def metas(store: MemoryStore) -> tuple[str | None, str | None, int]:
    return (store.get_meta(RULES_HASH), store.get_meta(RECONCILING), generation(store))


def content(store: MemoryStore) -> tuple[list[UrlState], list[tuple[str, str]], object]:
    orders = sorted((order.op.value, order.url) for order in store.orders("index", 99, now=NOW))
    return list(store.urls()), orders, metas(store)
