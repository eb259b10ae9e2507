"""The addresses that hosts had are kept in each store."""

from __future__ import annotations

from crawlspace.known_addresses import LookedUp, LookUps, addresses_in, last_look_up
from tests.contract.conftest import NOW, Known


def test_addresses_of_hosts_are_kept(known: Known) -> None:
    store, look_ups = known.store, LookUps()
    look_ups.note("a.example", ["10.0.0.1", "fe80::1%eth0"])
    look_ups.note("b.example", [])
    look_ups.keep(store, now=NOW)
    assert last_look_up(store, "a.example") == LookedUp(("10.0.0.1", "fe80::1%eth0"), NOW)
    assert last_look_up(store, "b.example") is None
    assert addresses_in(store)("b.example") == ()


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
