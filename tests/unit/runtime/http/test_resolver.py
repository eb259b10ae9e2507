"""Look-ups of hosts, which tests answer: at which address a host is reached, and which addresses a crawl gets to see."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IResolutionReceiver
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from zope.interface.verify import verifyObject

from crawlspace.decision import Decision, Reason, Step, Verdict
from crawlspace.runtime.http.host_addresses import Answered, look_up
from crawlspace.runtime.http.resolver import Answer, GuardedResolver, HostNames
from tests.unit.runtime.http.look_ups import answer_look_ups

PUBLIC, PRIVATE = "198.51.100.7", "10.0.0.7"


class Pool:
    """Does in the same thread, and at once, what a thread would do."""

    def callInThreadWithCallback(self, done: Any, call: Any, *args: Any) -> None:
        try:
            result = call(*args)
        except (socket.gaierror, UnicodeError):
            done(False, Failure())
        else:
            done(True, result)


class Reactor(Clock):
    def getThreadPool(self) -> Pool:
        return Pool()

    def callFromThread(self, call: Any, *args: Any) -> None:
        call(*args)


class Receiver:
    def __init__(self) -> None:
        self.found: list[str] = []
        self.complete = False

    def resolutionBegan(self, resolution: Any) -> None:
        """Nothing is cancelled."""

    def addressResolved(self, address: Any) -> None:
        self.found.append(address.host)

    def resolutionComplete(self) -> None:
        self.complete = True


class World:
    """A resolver, and what names lead to; `trusted` hosts may have private addresses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[str]] = {}
        self.errors: dict[str, Exception] = {}
        self.trusted: set[str] = set()
        self.reactor = Reactor()
        self.resolver = GuardedResolver(HostNames(self.reactor, cache_size=10, timeout_s=5))  # type: ignore[arg-type]
        self.resolver.add(self._guard)
        answer_look_ups(monkeypatch, self._look_up)

    def ask(self, host: str) -> list[str]:
        receiver = Receiver()
        self.resolver.resolveHostName(receiver, host, 80)
        assert receiver.complete
        return receiver.found

    def _look_up(self, host: str) -> list[str]:
        if host in self.errors:
            raise self.errors[host]
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return self.names[host]

    def _guard(self, host: str, port: int, address: str) -> Decision:
        if address == PUBLIC or host in self.trusted:
            return Decision(Reason.ADMITTED, None, ())
        return Decision(Reason.PRIVATE_ADDRESS, None, (Step(Reason.PRIVATE_ADDRESS, Verdict.REFUSE),))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_only_allowed_addresses_are_returned(world: World) -> None:
    world.names["both.example"] = [PRIVATE, PUBLIC]
    assert world.ask("both.example") == [PUBLIC]
    assert world.resolver.why_refused("both.example", 80) is None


def test_the_reason_for_no_address_is_known_until_there_is_one(world: World) -> None:
    world.names["host.example"] = [PRIVATE]
    assert world.ask("host.example") == []
    refused = world.resolver.why_refused("host.example", 80)
    assert refused is not None
    assert refused.reason is Reason.PRIVATE_ADDRESS
    world.names["host.example"] = [PUBLIC]
    assert world.ask("host.example") == [], "an answer is kept for a while"
    world.reactor.advance(HostNames.ttl_s)
    assert world.ask("host.example") == [PUBLIC]
    assert world.resolver.why_refused("host.example", 80) is None


def test_a_name_in_its_own_letters_is_judged_as_urls_have_it(world: World) -> None:
    world.names["xn--bcher-kva.example"] = [PRIVATE]
    assert world.ask("bücher.example") == []
    assert world.resolver.why_refused("xn--bcher-kva.example", 80) is not None
    world.trusted.add("xn--bcher-kva.example")
    assert world.ask("bücher.example") == [PRIVATE]


def test_a_name_is_not_turned_into_another_ones(world: World) -> None:
    world.names |= {"xn--strae-oqa.example": [PUBLIC], "strasse.example": [PRIVATE]}
    assert world.ask("straße.example") == [PUBLIC]


WHAT_FAILED = [
    # what the look-up raises                                        there is no such host, another look-up may answer
    (None,                                                           False,                 False),
    (socket.gaierror(socket.EAI_NONAME, "no such host"),             True,                  False),
    (socket.gaierror(socket.EAI_AGAIN, "the server is busy"),        False,                 True),
    (UnicodeEncodeError("idna", "www..example", 4, 4, "label empty"), True,                 False),
    (UnicodeError("label too long"),                                 True,                  False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "no_such_host", "no_answer"), WHAT_FAILED)
def test_why_no_address_was_found(world: World, error: Exception | None, *, no_such_host: bool, no_answer: bool) -> None:
    world.names["host.example"] = [PRIVATE]
    world.ask("host.example")
    world.reactor.advance(HostNames.ttl_s)
    if error is not None:
        world.errors["host.example"] = error
    assert world.ask("host.example") == []
    for _ in range(2):  # the second time from memory
        assert world.resolver.does_not_exist("host.example") is no_such_host
        assert world.resolver.gave_no_answer("host.example") is no_answer
        assert (world.resolver.why_refused("host.example", 80) is None) is (error is not None)
        world.ask("host.example")


def test_an_answer_ends_what_was_known_of_a_failure(world: World) -> None:
    world.errors["host.example"] = socket.gaierror(socket.EAI_AGAIN, "the server is busy")
    world.ask("host.example")
    del world.errors["host.example"]
    world.names["host.example"] = [PRIVATE]
    assert world.resolver.gave_no_answer("host.example")
    world.reactor.advance(HostNames.no_answer_ttl_s)
    assert world.ask("host.example") == []
    assert not world.resolver.gave_no_answer("host.example")


@pytest.mark.parametrize("name", ["www..example.com", "x" * 64 + ".example.com"])
def test_an_invalid_name_is_refused_before_any_look_up(name: str) -> None:
    """By Python itself, whose look-up is not replaced here."""
    reactor: Any = Reactor()
    answers: list[Answer] = []
    HostNames(reactor, cache_size=10, timeout_s=5).look_up(name, answers.append)
    assert answers == [Answer([], socket.EAI_NONAME)]


class Settings(dict[str, Any]):
    getbool = getint = getfloat = dict.__getitem__


MEMORIES = [
    # DNSCACHE_ENABLED, DNSCACHE_SIZE, look-ups for three questions
    (True,              100,           1),
    (True,              0,             3),
    (False,             100,           3),
]  # fmt: skip


@pytest.mark.parametrize(("enabled", "size", "look_ups"), MEMORIES)
@pytest.mark.parametrize("found", [[PUBLIC], []])
def test_scrapys_settings_of_the_memory_hold(
    monkeypatch: pytest.MonkeyPatch, found: list[str], look_ups: int, size: int, *, enabled: bool
) -> None:
    asked: list[str] = []

    def answer(host: str) -> list[str]:
        asked.append(host)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return found

    answer_look_ups(monkeypatch, answer)
    settings = Settings(DNSCACHE_ENABLED=enabled, DNSCACHE_SIZE=size, DNS_TIMEOUT=5.0)
    reactor: Any = Reactor()
    resolver = GuardedResolver.from_crawler(SimpleNamespace(settings=settings), reactor)
    for _ in range(3):
        resolver.resolveHostName(Receiver(), "host.example", 80)
    assert len(asked) == look_ups


# --- at which address a host is reached -----------------------------------------------------------------------------


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
