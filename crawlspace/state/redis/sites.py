"""Sites in Redis, without their URLs: waits, health, robots.txt, schemes, numbers of URLs and documents, unreachable sites.

The schemes of a site at port 80 or 443 are noted only where they are not those of its port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from crawlspace.state.redis.encoding import raw, understood, written
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.server import RedisServer, pairs_of
from crawlspace.state.site_health import NEW_SITE, Health, health_of
from crawlspace.state.site_pauses import PAUSES, Pauses, SitePause, read_pauses, with_pause
from crawlspace.state.unreachable import ALL_SCHEMES, UnreachableSite
from crawlspace.state.views import KnownSite, RobotsEntry, WaitingUrls


class UnreachableRow(msgspec.Struct, array_like=True):
    """An unreachable site, in its stored form."""

    status: int
    since: int
    runs: int
    counted_at: int
    detail: str = ""


_read_row = msgspec.msgpack.Decoder(UnreachableRow).decode
_read_robots = msgspec.msgpack.Decoder(tuple[int, str, int]).decode
_SCHEME_OF_PORT = {"80": "http", "443": "https"}
_AT_ONCE = 100
RESUMED_AT_ONCE = 1_000
"""Paused sites that one call looks at, for which other workers wait."""
"""Sites whose URLs are counted in one call: each has 60 queues."""
_FILES = 20
"""robots.txt files read at once: one may have half a megabyte."""


class RedisSites:
    """The part of the store that concerns sites."""

    server: RedisServer

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        self.server.write("wait_site", site=site, until=until, wait_s=wait_s)

    def site_pauses(self) -> Pauses:
        return read_pauses(self.server.command("HGET", Key.META, PAUSES))

    def set_site_pause(self, pattern: str, pause: SitePause | None) -> None:
        is_set = False
        while not is_set:  # another command may change them at the same time
            with understood("the pauses of its hosts"):
                found = self.server.command("HGET", Key.META, PAUSES)
                before = None if found is None else found.decode()
            after = with_pause(before, pattern, pause)
            is_set = bool(self.server.write("replace_meta", name=PAUSES, before=before, after=after))
        cursor = "0"
        while pause is None:
            cursor = self.server.write("offer_resumed", cursor=cursor, limit=RESUMED_AT_ONCE).decode()
            if cursor == "0":
                return

    def health(self, site: str) -> Health:
        reply = self.server.command("HGET", Key.HEALTH, site)
        with understood(f"how {site} has answered"):
            return NEW_SITE if reply is None else health_of(reply)

    def known_of_host(self, host: str) -> int:
        return self._number_of(Key.HOST, host)

    def host_count(self, host: str) -> int:
        return self._number_of(Key.HOST, host) - self._number_of(Key.HOST_UNCOUNTED, host)

    def _number_of(self, key: str, host: str) -> int:
        reply = self.server.command("HGET", key, host)
        with understood(f"the number of URLs of {host}"):
            return int(reply or 0)

    def unreachable(self) -> list[UnreachableSite]:
        return rows_of(self.server.hash(Key.UNREACHABLE))

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        self.server.write("set_unreachable", site=site, row=encode_unreachable(row))

    def documents(self, sites: Iterable[str]) -> dict[str, int]:
        names = list(sites)
        return dict(zip(names, self.server.call("documents", sites=names), strict=True))

    def known_sites(self) -> list[KnownSite]:
        of_hosts, documents, healths = map(self.server.hash, (Key.HOST, Key.DOCUMENTS, Key.HEALTH))
        found = []
        with understood("its sites"):
            for name, number in sorted(self.server.hash(Key.SITE).items()):
                if urls := int(of_hosts.get(name.rpartition(b":")[0], 0)):
                    health = healths.get(name)
                    how = NEW_SITE if health is None else health_of(health)
                    found.append(KnownSite(name.decode(), urls, int(documents.get(number, 0)), how))
        return found

    def waiting_urls(self, sites: Iterable[str], *, now: int) -> dict[str, WaitingUrls]:
        names, found = list(sites), dict[str, WaitingUrls]()
        for some in (names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE)):
            reply = self.server.call("waiting_urls", sites=some, now=now)
            found |= {site: WaitingUrls(*counts) for site, counts in zip(some, reply, strict=True)}
        return found

    def schemes(self, site: str) -> frozenset[str]:
        usual = _SCHEME_OF_PORT.get(site.rpartition(":")[2])
        found = frozenset(
            scheme
            for scheme in ALL_SCHEMES
            if scheme == usual or self.server.command("SISMEMBER", Key.SCHEMES, f"{scheme} {site}")
        )
        return found or ALL_SCHEMES

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        reply = self.server.command("HGET", Key.ROBOTS, f"{scheme} {site}")
        return None if reply is None else robots_entry(site, scheme, reply)

    def save_robots(self, entry: RobotsEntry) -> None:
        self.server.write("save_robots", **encode_robots(entry))

    def forget_robots(self, *, read_after: int) -> None:
        cursor = 0
        while True:
            cursor, some = self.server.command("HSCAN", Key.ROBOTS, cursor, "COUNT", _FILES)
            late = [key for key, body in pairs_of(some) if robots_entry("", "", body).fetched_at > read_after]
            if late:
                self.server.command("HDEL", Key.ROBOTS, *late)
            if not int(cursor):
                return


def wait_of(reply: bytes) -> tuple[int, int]:
    """Return until when a site must wait, and the length of the wait in seconds when it was written; 0 if unknown."""
    until, _, wait_s = reply.partition(b" ")
    with understood("how long a site waits"):
        return int(until), int(wait_s or 0)


def encode_unreachable(row: UnreachableSite | None) -> msgspec.Raw | None:
    """Return a row in its stored form."""
    return None if row is None else raw(written((row.status, row.since, row.runs, row.counted_at, row.detail)))


def rows_of(reply: Mapping[bytes, bytes]) -> list[UnreachableSite]:
    with understood("its unreachable sites"):
        return [row_of(site.decode(), row) for site, row in sorted(reply.items())]


def row_of(site: str, reply: bytes) -> UnreachableSite:
    return UnreachableSite(site, *msgspec.structs.astuple(_read_row(reply)))


def encode_robots(entry: RobotsEntry) -> dict[str, object]:
    """Return a robots.txt in the form of the functions; `robots_entry` decodes it."""
    body = raw(written((entry.status, entry.body, entry.fetched_at)))
    return {"site": entry.site, "key": f"{entry.scheme} {entry.site}", "entry": body}


def robots_entry(site: str, scheme: str, reply: bytes) -> RobotsEntry:
    with understood(f"the robots.txt of {site}"):
        return RobotsEntry(site, scheme, *_read_robots(reply))
