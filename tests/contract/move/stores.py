"""The two stores between which a collection is moved, a collection that has a bit of everything, and moves that are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from crawlspace.decision import Reason
from crawlspace.document import Document
from crawlspace.model import Held, State
from crawlspace.state.changes import Change
from crawlspace.state.dump import CopyMark, CopyTarget, Record, UrlRecord, move
from crawlspace.state.redis.dump import RedisSide
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.site_health import Health
from crawlspace.state.site_pauses import SitePause
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import url_key
from tests.contract.conftest import NOW, SINKS, Known, key, new
from tests.contract.drawn import TWIN
from tests.servers import another_client, emptied

Side = SqliteSide | RedisSide
KINDS = ("sqlite", "redis")
WAYS = [("sqlite", "redis"), ("redis", "sqlite")]
NAME = "walk"


class Stores:
    """The two stores of one collection, of which there may be one, both or none."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME / "state.db"
        self.file.parent.mkdir()
        self.urls = 0
        """Written by the last move that might be stopped."""

    def open(self, kind: str) -> Store:
        return RedisStore(another_client(), NAME, sinks=SINKS) if kind == "redis" else SqliteStore(self.file, sinks=SINKS)

    def side(self, kind: str, *, writes: bool = False) -> Side:
        if kind == "redis":
            return RedisSide(another_client(), NAME, timeout_s=30)
        return SqliteSide(self.file, writes=writes)

    def move(
        self, here: str, there: str, *, records: int = 3, watch: Callable[[CopyTarget], CopyTarget] = lambda target: target
    ) -> int:
        with closing(self.side(here)) as source, closing(self.side(there, writes=True)) as target:
            return move(source, watch(target), NAME, records=records).urls

    def stopped(self, here: str, there: str, *, stop: int, late: bool = False) -> int | None:
        """Move until it is killed; return the URLs that were written, None where it came to its end."""
        targets: list[Stopping] = []

        def watch(target: CopyTarget) -> CopyTarget:
            targets.append(Stopping(target, stop, late=late))
            return targets[0]

        try:
            self.move(here, there, watch=watch)
        except KeyboardInterrupt:
            return targets[0].urls
        finally:
            self.urls = targets[0].urls
        return None

    def remove(self, kind: str) -> None:
        if kind == "redis":
            emptied().close()
            return
        for path in self.file.parent.glob("state.db*"):
            path.unlink()


class Stopping:
    """A target of a move that is killed at the n-th time that it is written to, before that or after it; counts the URLs written."""

    def __init__(self, target: CopyTarget, stop: int = -1, *, late: bool = False) -> None:
        self._target = target
        self._left = stop
        self._late = late
        self.urls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
        if self._left == 0 and not self._late:
            raise KeyboardInterrupt
        self._target.write(batch, mark)
        self.urls += sum(isinstance(one, UrlRecord) for one in batch)
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1


PLACES = [f"{host}.example/{name}" for host in "ab" for name in ("", "x", "y", "z", "long", "out", "left")]


def fill(store: Store) -> None:
    """Have a bit of everything."""
    known = Known(store)
    known.discover(*PLACES, structs.replace(TWIN, key=url_key(TWIN.url)))
    known.record(known.page("a.example/", "one"), known.page("a.example/x", "one"), known.page("b.example/left", "two"))
    store.add_archive_file("walk-1.warc.gz")
    store.add_archive_file("walk-2.warc.gz")
    known.acknowledge_all()
    known.record(
        known.page("a.example/y", "three", canonical=key("a.example/")),
        known.page(
            "b.example/x",
            "four",
            links=[key("a.example/"), key("b.example/y")],
            etag='"e"',
            fetched_at=NOW,
            interval_s=60,
            history=b"\xff\0" * 28,
            archived=(2 << 32) + 300,
        ),
        known.page("b.example/y", "one", canonical=key("b.example/z")),
        known.change("b.example/left", checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True),
        known.page("a.example/z", "five", held=Held.MANY, retries=1, next_fetch=NOW + 5, requested_by=True, fields_mark=-7),
        known.page("a.example/left", "six"),
    )
    known.record(known.change("a.example/left", checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True))
    known.record(known.change("b.example/z", forget=True), known.change("a.example/out", state=State.GONE, status=404))
    known.record(known.change("a.example/x", checksum=None, state=State.GONE, status=611, detail="no HTTP: ü"))
    link_metadata = '{"c":"red"}'
    store.record(
        [
            Change(
                structs.replace(known.get("b.example/"), state=State.DONE, checksum=b"seven", rules=1),
                Document("", text="T", fields={"c": "red"}),
                [key("a.example/long")],
                [structs.replace(new("a.example/long"), inherited=link_metadata)],
            )
        ],
        now=NOW,
        health={"a.example:80": Health(3, 5, 2, (0, 4_294_967_295, 7))},
    )
    store.push_again({known.get("a.example/z").id: Document("http://a.example/z", text="archived")})
    store.park("index", store.orders("index", 100, now=NOW)[-1], "too large")
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    store.wait_site("b.example:80", NOW + 9, wait_s=30)
    store.set_unreachable("dead.example:80", UnreachableSite("dead.example:80", 612, NOW - 9, 2, NOW))
    store.set_site_pause("paused.example", SitePause("ada", NOW, "é"))
    store.save_robots(RobotsEntry("other.example:443", "https", 404, "", NOW))
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "Disallow: /é", NOW))
    store.set_meta("rules_hash", "0123")
    page = known.get("b.example/x").id
    sample = [
        RefusedLink(Reason.DOMAIN, f"{n % 2}.example", f"http://{n % 2}.example/é{n}", page, "crawl.rules:1") for n in range(4)
    ]
    sample += [RefusedLink(Reason.MALFORMED, "", "http://[", page), sample[0]._replace(url="http://0.example/", page=page + 1)]
    known.record(known.change("b.example/x", links=[], refused="d4m1", refused_links=sample))


def seen(store: Store) -> dict[str, object]:
    """All that can be seen of a store."""
    states = list(store.urls())
    return {
        "states": states,
        "sites": list(store.sites()),
        "counts": store.counts(),
        "outbox": [(store.orders(sink, 100, now=NOW), store.parked(sink), store.backlog(sink)) for sink in SINKS],
        "links": store.lost_links([state.id for state in states]),
        "refused_links": [store.refused_links(), *(store.refused_links(page=state.id) for state in states)],
        "unreachable": store.unreachable(),
        "documents": store.documents([f"{host}.example:80" for host in "abc"]),
        "health": [store.health(f"{host}.example:80") for host in "abc"],
        "robots": [store.robots("other.example:443", "https"), store.robots("a.example:80", "http")],
        "archive_files": store.archive_files(),
        "pauses": store.site_pauses(),
        "rest": [store.get_meta("rules_hash"), store.get_meta("moving")],
    }


@contextmanager
def looking(stores: Stores, kind: str) -> Iterator[Store]:
    with closing(stores.open(kind)) as store:
        yield store


def all_of(stores: Stores, kind: str) -> dict[str, object]:
    with looking(stores, kind) as store:
        return seen(store)


def changing(change: Callable[[CopyTarget], CopyTarget]) -> Callable[[CopyTarget], CopyTarget]:
    """Have the change made when the target is written to for the first time."""

    class Changing(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            if not self.urls:
                change(self._target)
            super().write(batch, mark)

    return lambda target: Changing(target)
