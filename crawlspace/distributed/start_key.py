"""Start URLs that are added to a running shared crawl through scrapy-redis's key: `LPUSH demo:start_urls '{"url": "http://…"}'`.

A message stays in the key until its URL is in the store, so none is lost with a worker; it is harmless if two workers read one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import Refused, describe_refusal
from crawlspace.model import Candidate, NewUrl, Source
from crawlspace.parsing import boolean, integer
from crawlspace.state.redis.server import redis_errors

if TYPE_CHECKING:
    import redis

logger = logging.getLogger(__name__)

DEFAULT_KEY = "%(name)s:start_urls"
SHOWN = 200
"""Maximal shown characters of a message that is no URL."""


class StartKey:
    """The key of one collection: a list, a set or a sorted set, by scrapy-redis's settings."""

    def __init__(self, client: redis.Redis, name: str, settings: Mapping[str, object]) -> None:
        """Raises SettingError."""
        self._client = client
        key = str(settings.get("REDIS_START_URLS_KEY") or DEFAULT_KEY)
        self.key = key % {"name": name}
        as_set = boolean("REDIS_START_URLS_AS_SET", settings.get("REDIS_START_URLS_AS_SET") or False)
        as_zset = boolean("REDIS_START_URLS_AS_ZSET", settings.get("REDIS_START_URLS_AS_ZSET") or False)
        self._kind = "zset" if as_zset else "set" if as_set else "list"
        self._batch = integer("REDIS_START_URLS_BATCH_SIZE", settings.get("REDIS_START_URLS_BATCH_SIZE") or 100, low=1)

    def read(self) -> list[bytes]:
        """Return the next messages, without removing them. Raises StoreError and its subclasses."""
        read: Mapping[str, tuple[object, ...]] = {
            "list": ("LRANGE", self.key, 0, self._batch - 1),
            "set": ("SRANDMEMBER", self.key, self._batch),
            "zset": ("ZREVRANGE", self.key, 0, self._batch - 1),
        }
        with redis_errors():
            found: list[bytes] = self._client.execute_command(*read[self._kind])
        return found

    def remove(self, messages: Sequence[bytes]) -> None:
        """Remove processed messages. Raises as `read`."""
        with redis_errors():
            for message in messages:
                if self._kind == "list":
                    self._client.execute_command("LREM", self.key, 1, message)
                else:
                    self._client.execute_command("SREM" if self._kind == "set" else "ZREM", self.key, message)


def admitted(messages: Sequence[bytes], engine: Engine, *, key: str) -> list[NewUrl]:
    """Return the URLs to insert for messages; log why the others are left out."""
    candidates = []
    for message in messages:
        url = _url_of(message)
        if url is None:
            shown = message[:SHOWN].decode("utf-8", "replace")
            logger.warning('%s holds a message without a URL, which is left out: %r; write {"url": "http://…"}', key, shown)
        else:
            candidates.append(Candidate(url, Source.USER))
    new, refused = engine.admitted(candidates)
    for one in refused:
        logger.warning("%s", describe_refusal(Refused(key, one.url, one.decision)))
    return new


def _url_of(message: bytes) -> str | None:
    """Return the URL of a message: an object with `url`, or a URL alone."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return None
    try:
        read = json.loads(text)
    except ValueError:
        return text.strip() if "://" in text else None
    url = read.get("url") if isinstance(read, dict) else None
    return url if isinstance(url, str) else None
