"""The addresses that hosts had are kept in each store."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.crawl.addresses import KnownAddresses, LookedUp, LookUps, last_look_up
from crawlspace.crawl.rule_changes.survey import survey
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known


def test_addresses_of_hosts_are_kept(known: Known) -> None:
    store, look_ups = known.store, LookUps()
    look_ups.note("a.example", ["10.0.0.1", "fe80::1%eth0"])
    look_ups.note("b.example", [])
    look_ups.keep(store, now=NOW)
    assert last_look_up(store, "a.example") == LookedUp(("10.0.0.1", "fe80::1%eth0"), NOW)
    assert last_look_up(store, "b.example") is None
    kept = KnownAddresses(store)
    for _ in range(2):
        assert [kept(host) for host in ("a.example", "b.example")] == [("10.0.0.1", "fe80::1%eth0"), ()]
        kept.read(["a.example", "10.0.0.1", "b.example"])


def test_a_reconcile_reads_them_a_page_at_a_time(known: Known) -> None:
    look_ups = LookUps()
    known.discover(*(f"h{number}.example/" for number in range(50)))
    for number in range(50):
        look_ups.note(f"h{number}.example", ["10.0.0.1"])
    look_ups.keep(known.store, now=NOW)
    space = CrawlSpace(parse_crawl_rules("forbid address 10.0.0.0/8\n", file="crawl.rules"), Limits(), [])
    counted = Counted(known.store)
    addresses = KnownAddresses(counted)
    found = survey(known.store, KnownUrlDecisions(space, None, addresses=addresses, read_ahead=addresses.read))
    assert len(found.excluded) == 50
    assert counted.calls == 1


class Counted:
    """The entries of a store, and how often they were asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = 0

    def get_meta(self, name: str) -> str | None:
        self.calls += 1
        return self._store.get_meta(name)

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        self.calls += 1
        return self._store.get_metas(names)

    def set_meta(self, name: str, value: str) -> None:
        self._store.set_meta(name, value)

    def claim(self, name: str, *, seconds: int) -> bool:
        return True

    def end_claim(self, name: str) -> None: ...


def test_an_answer_is_written_once_and_what_changes_again(known: Known) -> None:
    store, look_ups = known.store, LookUps()
    for addresses, now, kept_at in ((["10.0.0.1"], NOW, NOW), (["10.0.0.1"], NOW + 1, NOW), (["10.0.0.2"], NOW + 2, NOW + 2)):
        look_ups.note("a.example", addresses)
        look_ups.keep(store, now=now)
        assert last_look_up(store, "a.example") == LookedUp(tuple(addresses), kept_at)


def test_they_are_written_in_parts(known: Known) -> None:
    look_ups = LookUps()
    for number in range(5):
        look_ups.note(f"h{number}.example", ["10.0.0.1"])
    for expected in (2, 4, 5):
        look_ups.keep(known.store, now=NOW, most=2)
        assert sum(last_look_up(known.store, f"h{number}.example") is not None for number in range(5)) == expected


def test_what_is_damaged_is_not_known(known: Known) -> None:
    for written in ("", "x 10.0.0.1", str(NOW), f"{NOW} 10.0.0", "9" * 5_000 + " 10.0.0.1"):
        known.store.set_meta("addresses:a.example", written)
        assert last_look_up(known.store, "a.example") is None
