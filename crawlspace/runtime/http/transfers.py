"""The transfers of one crawl on its event loop: libcurl's multi handle, and the connections that it keeps.

libcurl reports which sockets to watch and when to call it again (curl_multi_socket_action(3)); what it is called with then ends in the
callbacks of transfers. All of it runs on the thread of the loop.
"""

from __future__ import annotations

import asyncio
import select
from asyncio import TimerHandle
from collections.abc import Hashable
from math import inf
from typing import Protocol

import pycurl

_ENDED = 64
"""Transfers whose end is read at a time."""
Connection = tuple[str, int]
"""The address of the server, and the local port: which of a host's connections it is."""


class Running(Protocol):
    """A transfer, as `Transfers` knows it."""

    @property
    def curl(self) -> pycurl.Curl: ...

    @property
    def site(self) -> str: ...

    def ended(self, code: int, message: str) -> None:
        """Take the end of the transfer; `code`: 0, or the error of libcurl."""

    def has_read(self) -> bool:
        """Note that its socket was read; return whether it is to be ended, because nothing comes of that."""


class Transfers:
    """Runs transfers, any number at a time. `most_idle`: connections that are kept for a host's next request."""

    def __init__(self, *, most_idle: int) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_due)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_MAXCONNECTS, most_idle)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[pycurl.Curl, Running] = {}
        self._watched: dict[int, int] = {}
        """Events that each socket is watched for."""
        self._to_watch: dict[int, int] = {}
        """The same for sockets that libcurl has named since it was called: an answer that is there at once makes watching needless."""
        self._due = inf
        """Time when libcurl wants to be called, by the clock of the loop."""
        self._timer: TimerHandle | None = None
        self._rings_at = inf
        """Time when the timer calls; not all of uvloop's handles have it."""
        self.kept = KeptConnections(most_hosts=2 * most_idle)
        self.by_socket: dict[int, Running] = {}
        """The transfers that have been sent, by the socket of their connections; of several at a time, the last one."""

    def start(self, transfer: Running) -> None:
        """Begin a transfer; its `ended` is called at its end, also where it is stopped."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._multi.add_handle(transfer.curl)
        self._running[transfer.curl] = transfer
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def stop(self, transfer: Running, why: str = "") -> None:
        """Give up a transfer, if it runs: its connection is closed, and its `ended` is called."""
        if self._running.pop(transfer.curl, None) is not None:
            self._multi.remove_handle(transfer.curl)
            transfer.ended(pycurl.E_ABORTED_BY_CALLBACK, why)
            self._arrange()

    def running(self) -> list[Running]:
        """Return the transfers that have not ended."""
        return list(self._running.values())

    def close(self) -> None:
        """End all transfers, and close all connections."""
        for transfer in list(self._running.values()):
            self.stop(transfer, "the crawl has ended")
        if self._timer is not None:
            self._timer.cancel()
        self._multi.close()

    def _set_due(self, in_ms: int) -> None:
        assert self._loop is not None
        self._due = inf if in_ms < 0 else self._loop.time() + in_ms / 1000

    def _watch(self, what: int, socket: int, _multi: object, _data: object) -> None:
        if what != pycurl.POLL_REMOVE:
            self._to_watch[socket] = what & pycurl.POLL_INOUT
        else:
            self._to_watch.pop(socket, None)
            self._watch_for(socket, 0)  # at once: libcurl may close it, and its number be used again

    def _watch_for(self, socket: int, now: int) -> None:
        assert self._loop is not None
        before = self._watched.pop(socket, 0)
        if now & pycurl.POLL_IN and not before & pycurl.POLL_IN:
            self._loop.add_reader(socket, self._act, socket, pycurl.CSELECT_IN)
        elif before & pycurl.POLL_IN and not now & pycurl.POLL_IN:
            self._loop.remove_reader(socket)
        if now & pycurl.POLL_OUT and not before & pycurl.POLL_OUT:
            self._loop.add_writer(socket, self._act, socket, pycurl.CSELECT_OUT)
        elif before & pycurl.POLL_OUT and not now & pycurl.POLL_OUT:
            self._loop.remove_writer(socket)
        if now:
            self._watched[socket] = now

    def _act(self, socket: int, events: int) -> None:
        _, running = self._multi.socket_action(socket, events)
        if running < len(self._running):
            self._end()
        reading = self.by_socket.get(socket) if events == pycurl.CSELECT_IN else None
        if reading is not None and reading.has_read():
            self.stop(reading)
        self._arrange()

    def _end(self) -> None:
        left = 1
        while left:
            left, complete, failed = self._multi.info_read(_ENDED)
            for curl in complete:
                self._ended(curl, 0, "")
            for curl, code, message in failed:
                self._ended(curl, code, message)

    def _ended(self, curl: pycurl.Curl, code: int, message: str) -> None:
        transfer = self._running.pop(curl, None)
        if transfer is not None:
            try:
                transfer.ended(code, message)
            finally:
                self._multi.remove_handle(curl)

    def _arrange(self) -> None:
        """Watch the sockets that libcurl has named, and have `_on_timer` called in time.

        A timer that comes too early stays: most are set again and again.
        """
        for socket, what in self._to_watch.items():
            self._watch_for(socket, what)
        self._to_watch.clear()
        if self._due == inf:
            return
        assert self._loop is not None
        if self._timer is not None:
            if self._rings_at <= self._due:
                return
            self._timer.cancel()
        self._rings_at = self._due
        self._timer = self._loop.call_at(self._due, self._on_timer)

    def _on_timer(self) -> None:
        assert self._loop is not None
        self._timer = None
        if self._loop.time() < self._due:
            self._arrange()
            return
        self._due = inf
        self._act(pycurl.SOCKET_TIMEOUT, 0)


class KeptConnections:
    """The connections of each host, for the check of those that are used again.

    libcurl looks only once a second whether a kept connection was closed, or has input that belongs to no request. What a server sends
    after an answer must not be taken for the answer to the next request.

    Sockets are numbers, and libcurl closes a kept connection without saying so: a number may be that of another connection by then.
    """

    def __init__(self, *, most_hosts: int) -> None:
        self._most_hosts = most_hosts
        self._by_host: dict[Hashable, dict[Connection, int]] = {}
        """The socket of an idle connection; ~socket (negative) of one that is in use, or carries several requests at a time (HTTP/2)."""

    def opened(self, host: Hashable, connection: Connection, socket: int) -> None:
        """Note that a request is sent on a new connection."""
        known = self._by_host.get(host)
        if known is None:
            if len(self._by_host) >= self._most_hosts:  # those of the first have been closed by now
                del self._by_host[next(iter(self._by_host))]
            known = self._by_host[host] = {}
        known[connection] = ~socket

    def take(self, host: Hashable, connection: Connection) -> int | None:
        """Return the socket of a connection that is used again; None if no request may be sent on it."""
        known = self._by_host.get(host, {})
        socket = known.get(connection)
        if socket is None or socket < 0:
            return None if socket is None else ~socket
        if _has_input(socket):
            del known[connection]
            return None
        known[connection] = ~socket
        return socket

    def release(self, host: Hashable, connection: Connection, socket: int, *, is_shared: bool) -> None:
        """Note that a request has ended. `socket` is negative where the connection is closed; `is_shared`: it carries several at a time."""
        known = self._by_host.get(host)
        if known is None or connection not in known:
            return
        if socket >= 0:
            known[connection] = ~socket if is_shared else socket
            return
        del known[connection]
        if not known:
            del self._by_host[host]


def _has_input(socket: int) -> bool:
    """Return whether a connection has something to read, has ended, or is none any more."""
    if not hasattr(select, "poll"):  # as on Windows
        return bool(select.select([socket], [], [], 0)[0])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
