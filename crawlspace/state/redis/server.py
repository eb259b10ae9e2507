"""The server of a collection: calls the functions in `lua/`, and plain commands; its errors become sentences.

All keys of a collection begin with `{name}:`: the braces keep them together on one node of a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

import redis
import redis.sentinel

from crawlspace.errors import StoreAway, StoreError, StoreFull, StoreVersionError
from crawlspace.state.redis.encoding import FORMAT, damaged, written
from crawlspace.state.redis.library import library

_PASSING = (
    redis.exceptions.BusyLoadingError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
)
_PASSING_CODES = ("MISCONF", "NOREPLICAS", "BUSY ")
"""Errors of a server that starts, during a failover, while it cannot write to its disk, or while a function of another client runs for long."""
UNREACHABLE = "Redis cannot be reached"
_REFUSES = "Redis refuses requests at present"


_UNKNOWN = ("unknown command 'FCALL'", "unknown command `FCALL`", "unknown command 'FUNCTION", "unknown command `FUNCTION")

_OF_DAMAGE = ("user_function:", "is not an integer", "is not a valid float")
"""Parts of errors of functions and commands that find a value which no version of crawlspace has written."""


class RedisServer:
    """`client` decodes nothing."""

    def __init__(self, client: redis.Redis, collection: str, *, sinks: Sequence[str], crawls: bool = False) -> None:
        """`crawls`: this is a worker, whose writes are not reported to the crawl as changes by a command."""
        self.client = client
        self._who = "worker" if crawls else "command"
        self.prefix = f"{{{collection}}}:"
        self.use_sinks(sinks)
        self.now_ms: Callable[[], int | str] = lambda: ""
        """The time that the functions use instead of the server's clock, in tests."""
        self.runs = 0
        """Number of round trips."""
        self.writes = 0
        """Number of writing operations."""
        self.tries_again: Callable[[float], bool] = lambda _: False
        """Called when the server cannot be reached, with the time when the call began (`monotonic`): waits a moment, and returns whether to repeat it."""

    def use_sinks(self, sinks: Sequence[str]) -> None:
        """Set the sinks that get orders."""
        self.sinks = tuple(sinks)
        self._sinks = json.dumps(self.sinks)

    def call(self, operation: str, **args: object) -> Any:
        """Do one operation, atomically. Raises StoreAway, StoreFull, StoreVersionError or StoreError."""
        call = "FCALL", library().function(operation), 1, self.prefix, written(args), self._sinks, self._who
        return self._answered(lambda: self._function(*call, self.now_ms()))

    def write(self, operation: str, **args: object) -> Any:
        """Do an operation that writes. Raises as `call`."""
        reply = self.call(operation, **args)
        self.writes += 1
        return reply

    def command(self, command: str, key: str, *args: Any) -> Any:
        """Run a plain command for a key of the collection. Raises as `call`."""
        return self._answered(lambda: self.client.execute_command(command, self.prefix + key, *args))

    def hash(self, key: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self.command("HGETALL", key)
        return found

    def close(self) -> None:
        self.client.close()

    def _function(self, *call: Any) -> Any:
        """Call a function; load the library if the server does not have it."""
        try:
            return self.client.execute_command(*call)
        except redis.exceptions.ResponseError as error:
            if not str(error).startswith("Function not found"):
                raise
        self.client.function_load(library().code, replace=True)
        return self.client.execute_command(*call)

    def _answered(self, call: Callable[[], Any]) -> Any:
        began = monotonic()
        while True:
            self.runs += 1
            try:
                with redis_errors():
                    return call()
            except StoreAway:
                if not self.tries_again(began):
                    raise


def pairs_of(found: Sequence[bytes] | Mapping[bytes, bytes]) -> Iterable[tuple[bytes, bytes]]:
    """Return the fields and values of a part of a hash, which some clients return as a flat list."""
    return found.items() if isinstance(found, Mapping) else zip(found[::2], found[1::2], strict=True)


@contextmanager
def redis_errors() -> Iterator[None]:
    """Raise errors of Redis as StoreError and its kinds."""
    try:
        yield
    except redis.exceptions.OutOfMemoryError as error:
        raise StoreFull(
            "Redis is full: give it more memory (maxmemory), or make room by deleting what is no longer needed there"
        ) from error
    except _PASSING as error:  # the first of them is a ConnectionError, too
        raise StoreAway(f"{_REFUSES}: {error}") from error
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
        if isinstance(error, redis.exceptions.AuthenticationError):
            raise StoreError(
                f"Redis refuses the user or the password: {error}; see CRAWLSPACE_STORE_URL, REDIS_URL and REDIS_PARAMS"
            ) from error
        if isinstance(error, redis.sentinel.MasterNotFoundError):  # its own message has whole clients
            found = "No master found for the service: no Sentinel can be reached, or none knows it"
            raise StoreAway(f"{UNREACHABLE}: {found}") from error
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise StoreError(
                f"Redis has an invalid certificate: {error}; if it is yours, name the authority in REDIS_PARAMS,"
                ' as in {"ssl_ca_certs": "/etc/ssl/our-ca.pem"}'
            ) from error
        raise StoreAway(f"{UNREACHABLE}: {error}") from error
    except RecursionError as error:
        raise StoreError(
            "Redis cannot be understood: a reply is nested too deeply; is CRAWLSPACE_STORE_URL that of a Redis server?"
        ) from error
    except redis.exceptions.RedisError as error:
        if str(error).startswith("VERSION "):
            found = str(error).removeprefix("VERSION ")
            raise StoreVersionError(
                f"what Redis has of this collection was written by another version of crawlspace (format {found}, this one reads"
                f" {FORMAT}): use that version, or delete its keys and crawl again; the index goes on answering meanwhile"
            ) from error
        if str(error).startswith(_UNKNOWN):
            raise StoreError(
                "the server has no functions (FCALL, FUNCTION LOAD): a shared collection needs Redis 7.0 or newer, or Valkey"
            ) from error
        if str(error).startswith(_PASSING_CODES):
            raise StoreAway(f"{_REFUSES}: {error}") from error
        if str(error).startswith("WRONGTYPE") or any(sign in str(error) for sign in _OF_DAMAGE):
            raise damaged(f"Redis answered: {error}") from error
        raise StoreError(f"Redis answered: {error}") from error
