"""A relay before a server that stops after a number of bytes, so that a test can do something while a program is in the middle of writing."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread

from tests.notifications import LONGEST_WAIT_S

_AT_ONCE = 1 << 14


class HoldingRelay:
    """Passes on what clients send until that is `most` bytes, and holds the rest until `release`."""

    def __init__(self, server: tuple[str, int], most: int) -> None:
        self._server = server
        self._left = most
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends = ExitStack()
        self._holds = Event()
        self._goes_on = Event()
        self.port: int = self._listening.getsockname()[1]
        self._start(self._accept)

    def wait_until_it_holds(self) -> None:
        assert self._holds.wait(LONGEST_WAIT_S), "fewer bytes were sent"

    def release(self) -> None:
        self._goes_on.set()

    def close(self) -> None:
        self.release()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._ends.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                self._ends.callback(client.close)
                self._ends.callback(server.close)
                self._start(self._pass_on, client, server, True)
                self._start(self._pass_on, server, client, False)

    def _pass_on(self, one: socket.socket, other: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while data := one.recv(_AT_ONCE):
                if counts:
                    self._left -= len(data)
                    if self._left < 0:
                        self._holds.set()
                        self._goes_on.wait(LONGEST_WAIT_S)
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    @staticmethod
    def _start(target: Callable[..., None], *arguments: object) -> None:
        Thread(target=target, args=arguments, daemon=True).start()


@contextmanager
def holding(port: int, *, most: int) -> Iterator[HoldingRelay]:
    """Relay to a port of this machine while the block runs."""
    relay = HoldingRelay(("127.0.0.1", port), most)
    try:
        yield relay
    finally:
        relay.close()
