"""Values of a collection by name in Redis, and claims: what one worker alone may do at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from crawlspace.state.redis.encoding import understood
from crawlspace.state.redis.keys import Key, Prefix


class RedisValues(ABC):
    """The part of the store that concerns values by name."""

    @abstractmethod
    def _command(self, command: str, key: str, *args: Any) -> Any: ...

    def get_meta(self, name: str) -> str | None:
        return self.get_metas([name])[0]

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        values = self._command("HMGET", Key.META, *names) if names else []
        with understood(f"its {', '.join(names[:3])}"):
            return [None if value is None else value.decode() for value in values]

    def set_meta(self, name: str, value: str) -> None:
        self._command("HSET", Key.META, name, value)

    def claim(self, name: str, *, seconds: int) -> bool:
        return self._command("SET", f"{Prefix.CLAIM}{name}", 1, "NX", "EX", seconds) is not None

    def end_claim(self, name: str) -> None:
        self._command("DEL", f"{Prefix.CLAIM}{name}")
