"""Which addresses of a host a crawl gets to see; the name look-up itself is answered by the test."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from twisted.internet.task import Clock

from crawlspace.decision import Decision, Reason, Step, Verdict
from crawlspace.runtime import resolver as module
from crawlspace.runtime.resolver import GuardedResolver

PUBLIC, PRIVATE = "198.51.100.7", "10.0.0.7"


class Pool:
    """Does in the same thread, and at once, what a thread would do."""

    def callInThreadWithCallback(self, done: Any, call: Any, *args: Any) -> None:
        try:
            result = call(*args)
        except socket.gaierror:
            from twisted.python.failure import Failure

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
        self.trusted: set[str] = set()
        self.reactor = Reactor()
        self.resolver = GuardedResolver(self.reactor, cache_size=10, timeout_s=5)  # type: ignore[arg-type]
        self.resolver.guard(self._guard)
        monkeypatch.setattr(module, "_look_up", self._look_up)

    def ask(self, host: str) -> list[str]:
        receiver = Receiver()
        self.resolver.resolveHostName(receiver, host, 80)
        assert receiver.complete
        return receiver.found

    def _look_up(self, host: str) -> list[tuple[int, str]]:
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return [(int(socket.AF_INET), address) for address in self.names[host]]

    def _guard(self, host: str, port: int, address: str) -> Decision:
        if address == PUBLIC or host in self.trusted:
            return Decision(Reason.ADMITTED, None, ())
        return Decision(Reason.PRIVATE_ADDRESS, None, (Step(Reason.PRIVATE_ADDRESS, Verdict.REFUSE),))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_only_allowed_addresses_are_told(world: World) -> None:
    world.names["both.example"] = [PRIVATE, PUBLIC]
    assert world.ask("both.example") == [PUBLIC]
    assert world.resolver.why_refused("both.example", 80) is None


def test_why_none_was_told_is_known_until_one_is(world: World) -> None:
    world.names["host.example"] = [PRIVATE]
    assert world.ask("host.example") == []
    refused = world.resolver.why_refused("host.example", 80)
    assert refused is not None
    assert refused.reason is Reason.PRIVATE_ADDRESS
    world.names["host.example"] = [PUBLIC]
    assert world.ask("host.example") == [], "an answer is kept for a while"
    world.reactor.advance(GuardedResolver.ttl_s)
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


def test_no_such_host(world: World) -> None:
    assert world.ask("nowhere.example") == []
    assert world.resolver.does_not_exist("nowhere.example")
    assert world.resolver.why_refused("nowhere.example", 80) is None
