"""Hosts that a person has paused: nothing is leased of them, and nothing about their URLs changes, until a person resumes them.

They are a value by name of the store, so that they survive restarts and go with a dump. A pause names a host, a host and port, or with `*.`
all hosts below a domain: a site has few such patterns, and each is looked up. `waits.is_paused` in `redis/lua/records.lua` does the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from crawlspace.clock import iso, local_time
from crawlspace.errors import StoreDamaged
from crawlspace.text import printable

PAUSES = "site_pauses"
"""Meta: the pauses by their patterns, as a JSON object."""
MOST_PAUSES = 1_000
"""Each worker of a shared collection reads them with each heartbeat."""
MOST_REASON = 200
"""Characters of a reason."""


class SitePause(msgspec.Struct, frozen=True):
    """Who has paused a host, and why."""

    by: str
    """A user of the operating system, or of the console."""
    since: int
    """Unix time, in seconds."""
    reason: str = ""

    @property
    def sentence(self) -> str:
        """`paused by ada since 2026-11-20 14:00: moves to another server`"""
        why = f": {printable(self.reason)}" if self.reason else ""
        return f"paused by {printable(self.by)} since {local_time(self.since)}{why}"

    def as_json(self) -> dict[str, object]:
        return {"by": printable(self.by), "since": iso(self.since), "reason": printable(self.reason)}


class Paused(NamedTuple):
    """The pause of a site, with the pattern that it was made for."""

    pattern: str
    pause: SitePause


Pauses = Mapping[str, SitePause]
"""By pattern."""
NO_PAUSES: Pauses = {}

_decode = msgspec.json.Decoder(dict[str, SitePause]).decode


def read_pauses(value: str | bytes | None) -> dict[str, SitePause]:
    """Return what PAUSES has. Raises StoreDamaged: otherwise a host that a person has paused would be requested."""
    if not value:
        return {}
    try:
        return _decode(value)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreDamaged(
            f"the pauses of hosts in the store are damaged ({value[:80]!r}): put a copy of the store back, or move it and the index away and"
            " crawl again"
        ) from error


def with_pause(value: str | None, pattern: str, pause: SitePause | None) -> str:
    """Return the value with a pause, or without one if it is None. Raises StoreDamaged."""
    pauses = read_pauses(value)
    if pause is None:
        pauses.pop(pattern, None)
    else:
        pauses[pattern] = pause
    return msgspec.json.encode(pauses).decode() if pauses else ""


def pause_of(pauses: Pauses, site: str) -> Paused | None:
    """Return the pause that applies to a site, the one for the most exact pattern; None if it is not paused."""
    if pauses:
        for pattern in patterns_of(site):
            if (pause := pauses.get(pattern)) is not None:
                return Paused(pattern, pause)
    return None


def patterns_of(site: str) -> Iterator[str]:
    """Yield all patterns that match a site, the most exact one first."""
    host, _, port = site.rpartition(":")
    yield site
    yield host
    rest = host
    while "." in rest:
        rest = rest.partition(".")[2]
        yield f"*.{rest}:{port}"
        yield f"*.{rest}"
