"""Sessions of browsers and the limit of log-ins."""

from __future__ import annotations

from crawlspace.clock import FakeClock
from crawlspace.console.sessions import (
    FORGOTTEN_S,
    FREE_ATTEMPTS,
    LONGEST_S,
    LONGEST_WAIT_S,
    MOST_SESSIONS,
    OLDEST_S,
    Attempts,
    BrowserSessions,
    is_token_of,
)
from crawlspace.console.users import Role, User

ANNA, BEN = User("anna", Role.VIEWER), User("ben", Role.VIEWER)


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


def test_a_session_ends_even_if_it_is_used() -> None:
    clock = FakeClock()
    sessions = BrowserSessions(clock)
    session = sessions.new(ANNA)
    for _ in range(OLDEST_S // LONGEST_S):
        clock.advance(LONGEST_S)
        assert sessions.get(session.id) is session
    clock.advance(1)
    assert sessions.get(session.id) is None


def test_sessions_are_bounded() -> None:
    sessions = BrowserSessions(FakeClock())
    first, second = sessions.new(), sessions.new()
    sessions.get(first.id)
    for _ in range(MOST_SESSIONS - 1):
        sessions.new()
    assert sessions.get(second.id) is None
    assert sessions.get(first.id) is first


def test_strangers_end_no_session_of_a_user() -> None:
    sessions = BrowserSessions(FakeClock())
    anna = sessions.new(ANNA, entry="anna:user")
    last = sessions.new()
    for _ in range(2 * MOST_SESSIONS):
        last = sessions.new()
    assert sessions.get(anna.id) is anna
    assert sessions.get(last.id) is last
    sessions.end(anna)
    assert sessions.get(anna.id) is None


def test_a_user_ends_only_own_sessions() -> None:
    sessions = BrowserSessions(FakeClock())
    anna, first = sessions.new(ANNA), sessions.new(BEN)
    for _ in range(MOST_SESSIONS):
        sessions.new(BEN)
    assert sessions.get(anna.id) is anna
    assert sessions.get(first.id) is None


def test_tokens_belong_to_their_session() -> None:
    sessions = BrowserSessions(FakeClock())
    one, other = sessions.new(), sessions.new()
    assert is_token_of(one, one.csrf)
    for token in (other.csrf, "", "ä", "\udcff", one.csrf[:-1], one.id):
        assert not is_token_of(one, token)


def test_each_failure_waits_twice_as_long() -> None:
    clock = FakeClock()
    attempts = Attempts(clock)
    assert [attempts.begin("user anna", "address a") for _ in range(FREE_ATTEMPTS)] == [0] * FREE_ATTEMPTS
    waits = []
    for _ in range(12):
        waits.append(attempts.begin("user anna"))
        assert attempts.begin("user ben", "user anna") == waits[-1], "an attempt that has to wait counts as none"
        clock.advance(waits[-1])
        assert attempts.begin("user anna") == 0
    assert waits[:3] == [10, 20, 40]
    assert waits[-1] == LONGEST_WAIT_S
    assert attempts.begin("user ben") == 0
    attempts.forget("user anna")
    assert attempts.begin("user anna") == 0


def test_a_success_gives_no_further_guesses_to_its_address() -> None:
    attempts = Attempts(FakeClock())
    for _ in range(FREE_ATTEMPTS - 1):
        assert attempts.begin("address a") == 0
    for _ in range(3):
        assert attempts.begin("address a") == 0
        attempts.take_back("address a")
    assert attempts.begin("address a") == 0
    assert attempts.begin("address a") == 10
    attempts.take_back("address of nobody")


def test_failures_are_forgotten() -> None:
    clock = FakeClock()
    attempts = Attempts(clock)
    for _ in range(FREE_ATTEMPTS):
        attempts.begin("address a")
    clock.advance(FORGOTTEN_S)
    assert attempts.begin("address a") == 0
    assert attempts.begin("address a") == 20, "not yet forgotten"
    clock.advance(FORGOTTEN_S + 1)
    assert [attempts.begin("address a") for _ in range(FREE_ATTEMPTS + 1)] == [0] * FREE_ATTEMPTS + [10]
