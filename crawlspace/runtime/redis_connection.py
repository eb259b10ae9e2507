"""Connects to the Redis server of a collection, with the settings of scrapy-redis: REDIS_URL, REDIS_HOST, REDIS_PORT, REDIS_DB, REDIS_PARAMS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.errors import ConfigError, StoreAway, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

OLDEST = (7, 0)


def connected(settings: Mapping[str, object]) -> redis.Redis:
    """Return a client for the server that CRAWLSPACE_STORE_URL names. Raises ConfigError, StoreAway or StoreError."""
    from scrapy.settings import Settings  # noqa: PLC0415
    from scrapy_redis.connection import get_redis_from_settings  # noqa: PLC0415 - half a second that only those pay who share a collection

    from crawlspace.state.redis_scripts import said  # noqa: PLC0415

    url = str(settings["CRAWLSPACE_STORE_URL"])
    own = Settings(dict(settings))
    if url.partition("://")[2]:
        own.set("REDIS_URL", url)
    own.setdict({"REDIS_DECODE_RESPONSES": None, "REDIS_ENCODING": None})
    try:
        client: redis.Redis = get_redis_from_settings(own)
    except (ValueError, TypeError, ImportError) as error:
        raise ConfigError(
            f"Redis cannot be connected to with these settings: {error}; see CRAWLSPACE_STORE_URL, REDIS_URL and REDIS_PARAMS"
        ) from error
    try:
        with said():
            _check(client.info("server"))
    except StoreAway as error:
        client.close()
        raise StoreAway(f"{str(error).rstrip('.')}: start it, or set CRAWLSPACE_STORE_URL to where it is") from error
    except BaseException:
        client.close()
        raise
    return client


def _check(server: Mapping[str, object]) -> None:
    version = str(server.get("valkey_version") or server.get("redis_version") or "0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreError(
            f"the server is Redis {version}; a shared collection needs {'.'.join(map(str, OLDEST))} or newer, or Valkey"
        )
