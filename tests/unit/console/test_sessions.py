"""Sessions of browsers and the limit of log-ins."""

from __future__ import annotations

from crawlspace.clock import FakeClock
from crawlspace.console.sessions import (
    FREE_ATTEMPTS,
    LONGEST_S,
    LONGEST_WAIT_S,
    MOST_SESSIONS,
    Attempts,
    BrowserSessions,
    is_token_of,
)


def test_a_session_ends_when_it_is_not_used() -> None:
    clock = FakeClock()
    sessions = BrowserSessions(clock)
    session = sessions.new()
    clock.advance(LONGEST_S)
    assert sessions.get(session.id) is session
    clock.advance(LONGEST_S)
    assert sessions.get(session.id) is session, "used in between"
    clock.advance(LONGEST_S + 1)
    assert sessions.get(session.id) is None
    assert sessions.get(None) is None
    assert sessions.get("guessed") is None


def test_sessions_are_bounded() -> None:
    sessions = BrowserSessions(FakeClock())
    first, second = sessions.new(), sessions.new()
    sessions.get(first.id)
    for _ in range(MOST_SESSIONS - 1):
        sessions.new()
    assert sessions.get(second.id) is None
    assert sessions.get(first.id) is first


def test_tokens_belong_to_their_session() -> None:
    sessions = BrowserSessions(FakeClock())
    one, other = sessions.new(), sessions.new()
    assert is_token_of(one, one.csrf)
    for token in (other.csrf, "", "ä", one.csrf[:-1], one.id):
        assert not is_token_of(one, token)


def test_each_failure_waits_twice_as_long() -> None:
    clock = FakeClock()
    attempts = Attempts(clock)
    for _ in range(FREE_ATTEMPTS - 1):
        attempts.failed("user anna", "address a")
    assert attempts.wait_s("user anna") == 0
    waits = []
    for _ in range(12):
        attempts.failed("user anna")
        waits.append(attempts.wait_s("user anna"))
        clock.advance(waits[-1])
        assert attempts.wait_s("user anna") == 0
    assert waits[:3] == [10, 20, 40]
    assert waits[-1] == LONGEST_WAIT_S
    assert attempts.wait_s("address a", "user ben") == 0
    attempts.failed("user anna")
    attempts.succeeded("user anna")
    assert attempts.wait_s("user anna") == 0
