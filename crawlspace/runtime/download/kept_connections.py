"""A kept connection that its server closes at the moment when a request is written to it: not counted as a failure, once.

Servers close a connection after some time or some number of requests, often without saying so beforehand. Twisted would send such a
request again at once, on a new connection and without the site's delay; here the URL is leased once more.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.python.failure import Failure
from twisted.web.client import RequestTransmissionFailed, ResponseNeverReceived

from crawlspace.cache import Recent
from crawlspace.runtime.download.errors import KeptConnectionClosed
from crawlspace.runtime.download.http_internals import RequestNotSent, kept_connection, new_connection

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from twisted.web.client import HTTPConnectionPool

REMEMBERED = 10_000
"""Requests that wait for their second attempt, at least; only some hundred are in flight at a time."""

TLS_END_S = 5.0
"""Seconds in which the other side must confirm the end of a TLS connection."""


def ended_before_answer(failure: Failure) -> bool:
    """Whether the connection of a request was closed before the first byte of an answer, and not by us."""
    if not failure.check(RequestNotSent, RequestTransmissionFailed, ResponseNeverReceived):
        return False
    reasons = getattr(failure.value, "reasons", ())
    return not any(reason.check(CancelledError) for reason in reasons)


def ended_in_handshake(failure: Failure, transport: Any) -> bool:
    """Whether the server closed a connection with TLS before it answered the handshake; `transport` is that of the connection."""
    if not ended_before_answer(failure) or not hasattr(transport, "transport"):
        return False
    is_closed = all(reason.check(ConnectionLost, ConnectionDone) for reason in getattr(failure.value, "reasons", ()))
    tls = transport.getHandle() if is_closed else None
    return tls is not None and tls.get_cipher_name() is None


class SecondTurns:
    """Which requests have had their one retry. A request is known by the id of its URL, or by the site whose robots.txt it asks for."""

    def __init__(self) -> None:
        self._waiting: Recent[int | str, int] = Recent(REMEMBERED)

    def may_retry(self, request: int | str, error: BaseException | None) -> bool:
        """Whether a failed request is sent once more, as if it had not been sent."""
        if not isinstance(error, KeptConnectionClosed):
            return False
        self._waiting.put(request, 1)
        return True

    def begins(self, request: int | str) -> bool:
        """Whether this is the second attempt of a request. It needs a new connection: a kept one might be closed in the same way."""
        if self._waiting.get(request) is None:
            return False
        self._waiting.drop(request)
        return True


def end_in_time(transport: Any, clock: Any) -> None:
    """End a TLS connection that is being closed after some seconds, whether or not the other side confirms.

    Twisted waits for the other side's end without limit, and a crawl can run out of files to open.
    """
    lose = transport.loseConnection

    def abort() -> None:
        if transport.connected:
            transport.abortConnection()

    def lose_in_time() -> None:
        if transport.connected and not transport.disconnecting:
            clock.callLater(TLS_END_S, abort)
        lose()

    transport.loseConnection = lose_in_time


def no_second_sending(pool: HTTPConnectionPool) -> Callable[[], None]:
    """Have the pool send no request twice. Returns what makes it take a new connection for the next request.

    Its `take_kept` returns a kept connection if there is one and the next request may have it.
    """
    pool.retryAutomatically = False
    get = pool.getConnection
    needs_new = False

    def new_for_the_next() -> None:
        nonlocal needs_new
        needs_new = True

    def get_connection(key: Any, endpoint: Any) -> Any:
        nonlocal needs_new
        take_new, needs_new = needs_new, False
        return new_connection(pool, key, endpoint) if take_new else get(key, endpoint)

    def take_kept(key: Any) -> Any:
        return None if needs_new else kept_connection(pool, key)

    pool.getConnection = get_connection  # type: ignore[method-assign]
    pool.take_kept = take_kept  # type: ignore[attr-defined]
    return new_for_the_next


class LoopTimer:
    """A call that is to come. `args` are those of the function."""

    __slots__ = ("_handle", "args")

    def __init__(self, handle: TimerHandle, args: tuple[Any, ...]) -> None:
        self._handle, self.args = handle, args

    def cancel(self) -> None:
        self._handle.cancel()


class LoopTimers:
    """Twisted's callLater with timers of the loop: two are set for each page, and cancelled, at half the cost of the reactor's."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    def callLater(self, delay: float, function: Callable[..., object], *args: Any) -> Any:  # noqa: N802
        try:
            loop = get_running_loop()
        except RuntimeError:  # a reactor of another kind
            return self._reactor.callLater(delay, function, *args)
        return LoopTimer(loop.call_later(delay, function, *args), args)
