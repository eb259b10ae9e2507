"""What becomes of requests that were handed out before their worker was cut off or suspended."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost

from crawlspace.runtime.held_back import HeldBack

SITE = "a.example:80"


@dataclass
class Holder:
    may_be_dead: bool = False
    lost: set[str] = field(default_factory=set)

    def has_lost(self, site: str) -> bool:
        return site in self.lost


def came_of(waiting: Deferred[None]) -> str:
    told: list[str] = []
    waiting.addCallbacks(lambda _: told.append("sent"), lambda failure: told.append(failure.type.__name__))
    return told[0] if told else "waits"


def test_a_worker_that_is_alive_sends_at_once() -> None:
    assert HeldBack(Holder()).wait(SITE) is None


@pytest.mark.parametrize("lost", [set(), {"b.example:80"}])
def test_a_site_that_others_have_is_asked_nothing(lost: set[str]) -> None:
    waiting = HeldBack(Holder(may_be_dead=bool(lost), lost={SITE, *lost})).wait(SITE)
    assert waiting is not None
    assert came_of(waiting) == ConnectionLost.__name__


ENDS = [
    # the worker may be dead, the crawl is over, what comes of a request that waits
    (True,                     False,             "waits"),
    (False,                    False,             "sent"),
    (True,                     True,              "ConnectionLost"),
    (False,                    True,              "ConnectionLost"),
]  # fmt: skip


@pytest.mark.parametrize(("may_be_dead", "is_over", "comes"), ENDS)
def test_a_request_waits_until_the_server_is_heard(may_be_dead: bool, is_over: bool, comes: str) -> None:
    holder = Holder(may_be_dead=True)
    held_back = HeldBack(holder)
    waiting = held_back.wait(SITE)
    assert waiting is not None
    holder.may_be_dead = may_be_dead
    held_back.look(is_over=is_over)
    held_back.look(is_over=is_over)  # and only once
    assert came_of(waiting) == comes


def test_a_request_that_was_given_up_meanwhile_is_no_error() -> None:
    """As by a time-out."""
    holder = Holder(may_be_dead=True)
    held_back = HeldBack(holder)
    waiting = held_back.wait(SITE)
    assert waiting is not None
    waiting.cancel()
    holder.may_be_dead = False
    held_back.look(is_over=False)
    assert came_of(waiting) == "CancelledError"
