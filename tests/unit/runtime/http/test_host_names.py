"""Several questions for one name: how often it is looked up, and how long each waits. The threads answer when the test says so."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from crawlspace.runtime.http.resolver import NO_ANSWER, Answer, Found, HostNames

TIMEOUT_S = 5.0
FOUND: Found = [(int(socket.AF_INET), "198.51.100.7")]
OTHER: Found = [(int(socket.AF_INET), "198.51.100.8")]
BUSY = socket.gaierror(socket.EAI_AGAIN, "the server is busy")


class Reactor(Clock):
    """Its threads are the test."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._threads: list[Any] = []

    def getThreadPool(self) -> Reactor:
        return self

    def callInThreadWithCallback(self, done: Any, call: Any, host: str) -> None:
        self.asked.append(host)
        self._threads.append(done)

    def callFromThread(self, call: Any, *args: Any) -> None:
        call(*args)

    def answer(self, number: int, found: Found | Exception) -> None:
        """Have a thread end, by its number in the order in which they began."""
        if isinstance(found, Exception):
            self._threads[number](False, Failure(found))
        else:
            self._threads[number](True, found)


class World:
    def __init__(self, cache_size: int = 10) -> None:
        self.reactor = Reactor()
        self.received: dict[str, Answer] = {}
        reactor: Any = self.reactor
        self.names = HostNames(reactor, cache_size=cache_size, timeout_s=TIMEOUT_S)

    def look_up(self, question: str, host: str = "a.example") -> None:
        self.names.look_up(host, lambda answer: self.received.update({question: answer}))


@pytest.mark.parametrize("cache_size", [0, 10])
def test_questions_in_the_meantime_get_the_same_answer(cache_size: int) -> None:
    world = World(cache_size)
    for number in range(8):
        world.look_up(str(number))
    world.look_up("other", "b.example")
    assert (world.reactor.asked, world.received) == (["a.example", "b.example"], {})
    world.reactor.answer(0, FOUND)
    assert world.received == {str(number): Answer(FOUND) for number in range(8)}


def test_a_failure_is_the_answer_to_all_too() -> None:
    world = World()
    world.look_up("first")
    world.look_up("second")
    world.reactor.answer(0, BUSY)
    assert world.received == {"first": NO_ANSWER, "second": NO_ANSWER}


def test_each_question_waits_its_own_time() -> None:
    world = World()
    world.look_up("first")
    world.reactor.advance(TIMEOUT_S - 1)
    world.look_up("second")
    world.reactor.advance(1)
    assert world.received == {"first": NO_ANSWER}
    world.reactor.advance(TIMEOUT_S - 2)
    world.reactor.answer(0, FOUND)
    assert world.received == {"first": NO_ANSWER, "second": Answer(FOUND)}
    assert world.reactor.asked == ["a.example"]
    world.look_up("third")
    assert world.received["third"] == Answer(FOUND), "the answer is kept, and not what the first one got"
    assert world.reactor.getDelayedCalls() == []


def test_nobody_waits_for_a_thread_that_hangs() -> None:
    world = World(0)
    world.look_up("first")
    world.reactor.advance(TIMEOUT_S)
    world.look_up("second")
    assert world.reactor.asked == ["a.example", "a.example"]
    world.reactor.answer(0, FOUND)
    assert world.received == {"first": NO_ANSWER}, "too late for the first; the second has a thread of its own"
    world.reactor.answer(1, OTHER)
    assert world.received["second"] == Answer(OTHER)


def test_an_answer_that_comes_too_late_replaces_no_later_one() -> None:
    world = World()
    world.look_up("first")
    world.reactor.advance(max(TIMEOUT_S, HostNames.no_answer_ttl_s))
    world.look_up("second")
    world.reactor.answer(1, FOUND)
    world.reactor.answer(0, BUSY)
    world.look_up("third")
    assert world.received == {"first": NO_ANSWER, "second": Answer(FOUND), "third": Answer(FOUND)}


def test_one_that_fails_over_its_answer_leaves_the_others_theirs() -> None:
    world = World()
    failed: list[Failure] = []

    def fail(answer: Answer) -> None:
        raise ValueError

    world.names.look_up("a.example", fail)
    world.names._in_flight["a.example"][0].addErrback(failed.append)
    world.look_up("second")
    world.reactor.answer(0, FOUND)
    assert world.received == {"second": Answer(FOUND)}
    assert len(failed) == 1
