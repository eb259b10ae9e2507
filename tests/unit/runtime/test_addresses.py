"""At which address a host is reached: what is answered at once, what is asked for, and how long an answer is believed."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface.verify import verifyObject

from crawlspace.clock import FakeClock
from crawlspace.runtime.addresses import AddressLookup

KEEP_S = 600.0
KEEP_NONE_S = 60.0


class Resolver:
    """A name resolver with fixed answers, which it gives at once or when it is told to."""

    def __init__(self, hosts: dict[str, list[str]], *, at_once: bool = True) -> None:
        self.hosts = hosts
        self.at_once = at_once
        self.asked: list[tuple[str, int]] = []
        self._open: list[tuple[Any, str, int]] = []

    def resolveHostName(self, resolutionReceiver: Any, hostName: str, portNumber: int = 0) -> Any:  # noqa: N803
        assert verifyObject(IResolutionReceiver, resolutionReceiver)
        resolutionReceiver.resolutionBegan(None)
        self.asked.append((hostName, portNumber))
        self._open.append((resolutionReceiver, hostName, portNumber))
        if self.at_once:
            self.answer()

    def answer(self) -> None:
        waiting, self._open = self._open, []
        for receiver, host, port in waiting:
            for address in self.hosts.get(host, []):
                receiver.addressResolved((IPv6Address if ":" in address else IPv4Address)("TCP", address, port))
            receiver.resolutionComplete()


def lookup(resolver: Resolver, clock: FakeClock | None = None, *, most: int = 100) -> AddressLookup:
    return AddressLookup(resolver, clock=clock or FakeClock(), keep_s=KEEP_S, keep_none_s=KEEP_NONE_S, most=most)


ADDRESSES = [
    # what the resolver says, the address
    (["10.0.0.7"], "10.0.0.7"),
    ([], None),
    # the smallest of several, as numbers, in whatever order they come
    (["10.0.0.100", "10.0.0.20"], "10.0.0.20"),
    (["10.0.0.20", "10.0.0.100"], "10.0.0.20"),
    # IPv4 first: a neighbour may have no IPv6
    (["2001:db8::1", "203.0.113.5"], "203.0.113.5"),
    (["2001:db8::10", "2001:DB8:0::2"], "2001:db8::2"),
    (["::ffff:10.0.0.7"], "10.0.0.7"),
]


@pytest.mark.parametrize(("found", "address"), ADDRESSES)
def test_addresses(found: list[str], address: str | None) -> None:
    told: list[str | None] = []
    lookup(Resolver({"a.example": found})).look_up("a.example", told.append, port=80)
    assert told == [address]


LITERALS = [
    ("10.0.0.7", "10.0.0.7"),
    ("[2001:DB8::0:7]", "2001:db8::7"),
    ("2001:db8::7", "2001:db8::7"),
    ("[::ffff:10.0.0.7]", "10.0.0.7"),
]


@pytest.mark.parametrize(("host", "address"), LITERALS)
def test_a_host_that_is_an_address_is_not_looked_up(host: str, address: str) -> None:
    resolver = Resolver({}, at_once=False)
    told: list[str | None] = []
    lookup(resolver).look_up(host, told.append, port=80)
    assert told == [address]
    assert resolver.asked == []


def test_several_that_ask_for_one_host_are_one_look_up() -> None:
    resolver = Resolver({"a.example": ["10.0.0.7"], "b.example": ["10.0.0.8"]}, at_once=False)
    addresses = lookup(resolver)
    told: list[tuple[str, str | None]] = []

    def ask(who: str, host: str, port: int) -> None:
        addresses.look_up(host, lambda address: told.append((who, address)), port=port)

    for who, host, port in (("1", "a.example", 80), ("2", "A.example", 80), ("3", "b.example", 80), ("4", "a.example", 8080)):
        ask(who, host, port)
    assert told == []
    assert resolver.asked == [("a.example", 80), ("b.example", 80), ("a.example", 8080)]
    resolver.answer()
    assert told == [("1", "10.0.0.7"), ("2", "10.0.0.7"), ("3", "10.0.0.8"), ("4", "10.0.0.7")]


MEMORY = [
    # what the resolver says first, seconds later, whether it is asked again
    (["10.0.0.7"], 0, False),
    (["10.0.0.7"], KEEP_S - 1, False),
    (["10.0.0.7"], KEEP_S, True),
    ([], KEEP_NONE_S - 1, False),
    ([], KEEP_NONE_S, True),
]


@pytest.mark.parametrize(("found", "later", "again"), MEMORY)
def test_an_answer_is_believed_for_a_time(found: list[str], later: float, *, again: bool) -> None:
    resolver, clock = Resolver({"a.example": found}), FakeClock()
    addresses = lookup(resolver, clock)
    told: list[str | None] = []
    addresses.look_up("a.example", told.append, port=80)
    resolver.hosts["a.example"] = ["10.0.0.9"]
    clock.advance(later)
    addresses.look_up("a.example", told.append, port=80)
    assert told[1] == ("10.0.0.9" if again else told[0])
    assert len(resolver.asked) == 1 + again


def test_what_was_asked_for_lately_is_remembered_and_the_rest_forgotten() -> None:
    resolver = Resolver({})
    addresses = lookup(resolver, most=10)
    for number in range(100):
        addresses.look_up("often.example", lambda _: None, port=80)
        addresses.look_up(f"{number}.example", lambda _: None, port=80)
    assert len(resolver.asked) == 101
    addresses.look_up("0.example", lambda _: None, port=80)
    assert len(resolver.asked) == 102


def test_whoever_is_told_may_ask_again() -> None:
    resolver = Resolver({"a.example": ["10.0.0.7"], "b.example": ["10.0.0.8"]}, at_once=False)
    addresses = lookup(resolver)
    told: list[str | None] = []

    def ask_more(address: str | None) -> None:
        told.append(address)
        addresses.look_up("a.example", told.append, port=80)
        addresses.look_up("b.example", told.append, port=80)

    addresses.look_up("a.example", ask_more, port=80)
    resolver.answer()
    resolver.answer()
    assert told == ["10.0.0.7", "10.0.0.7", "10.0.0.8"]
