"""At which address a host is reached: what is answered at once, and what is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface.verify import verifyObject

from crawlspace.runtime.http.host_addresses import Answered, look_up


class Resolver:
    """A name resolver with fixed answers, which it gives at once or when it is told to; `silent` is of whom it gets none."""

    def __init__(self, hosts: dict[str, list[str]], *, at_once: bool = True, given_up_sites: str = "") -> None:
        self.hosts = hosts
        self.given_up_sites = given_up_sites
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

    def gave_no_answer(self, host: str) -> bool:
        return host == self.given_up_sites

    def answer(self) -> None:
        waiting, self._open = self._open, []
        for receiver, host, port in waiting:
            for address in self.hosts.get(host, []):
                receiver.addressResolved((IPv6Address if ":" in address else IPv4Address)("TCP", address, port))
            receiver.resolutionComplete()


class Reply:
    """What `look_up` has told, of a host and in the order in which it came."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str | None, bool]] = []

    def of(self, host: str) -> Answered:
        def answered(address: str | None, *, certain: bool) -> None:
            self.all.append((host, address, certain))

        return answered


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
    received = Reply()
    look_up(Resolver({"a.example": found}), "a.example", 80, received.of("a.example"))
    assert received.all == [("a.example", address, True)]


LITERALS = [
    ("10.0.0.7", "10.0.0.7"),
    ("[2001:DB8::0:7]", "2001:db8::7"),
    ("2001:db8::7", "2001:db8::7"),
    ("[::ffff:10.0.0.7]", "10.0.0.7"),
]


@pytest.mark.parametrize(("host", "address"), LITERALS)
def test_a_host_that_is_an_address_is_not_looked_up(host: str, address: str) -> None:
    resolver = Resolver({}, at_once=False)
    received = Reply()
    look_up(resolver, host, 80, received.of(host))
    assert received.all == [(host, address, True)]
    assert resolver.asked == []


def test_an_answer_may_come_later_and_the_port_matters() -> None:
    resolver = Resolver({"a.example": ["10.0.0.7"], "b.example": []}, at_once=False)
    received = Reply()
    for host, port in (("a.example", 80), ("b.example", 8080)):
        look_up(resolver, host, port, received.of(host))
    assert (received.all, resolver.asked) == ([], [("a.example", 80), ("b.example", 8080)])
    resolver.answer()
    assert received.all == [("a.example", "10.0.0.7", True), ("b.example", None, True)]


def test_no_answer_is_not_the_same_as_no_address() -> None:
    resolver = Resolver({"a.example": [], "b.example": []}, given_up_sites="b.example")
    received = Reply()
    for host in ("a.example", "b.example"):
        look_up(resolver, host, 80, received.of(host))
    assert received.all == [("a.example", None, True), ("b.example", None, False)]
