"""What a change of the rules costs with a million known URLs: `python -m benchmarks.reconcile`.

Six of ten URLs have a document; the new rules exclude about a tenth of all, by domain and by prefix. Each step runs in its own process, so
its time includes the start of Python, and its peak is its own. Killed with SIGKILL while it changes the store, and run again, it must end
with the same rows as a run without a kill.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import apsw

from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, run, say, start, stop, tail
from crawlspace.crawl.rule_changes.reconcile import RECONCILING, RULES_HASH, plan, reconcile, rules_hash
from crawlspace.document import Document
from crawlspace.model import NewUrl, Source, State, UrlState
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.status import Status
from crawlspace.urls import parse, url_key

_NOW = 1_750_000_000
_HOSTS = 200
_FILLED_AT_ONCE = 10_000
_SECONDS, _MB = 10, 300

OLD = "allow domain *.example.com\nforbid domain *\n"
NEW = "".join(
    (
        *(f"forbid domain host{number}.example.com\n" for number in range(15)),
        OLD,
        *(f"forbid prefix https://host{number}.example.com/section/9\n" for number in range(100, 130)),
        "forbid prefix https://*.example.com/section/88/\n",
    )
)
GLOBAL = "".join(f"allow domain host{number}.example.com\n" for number in range(5))


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a change of the rules.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--do", choices=("fill", "plan", "reconcile", "digest"), help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--old", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.do == "fill":
        fill(options.store, urls=options.urls)
    elif options.do == "digest":
        print(json.dumps(digest(options.store)))
    elif options.do is not None:
        print(json.dumps(change(options.store, write=options.do == "reconcile", old=options.old, hold=options.hold)))
    else:
        with tempfile.TemporaryDirectory(prefix="bench-reconcile-") as folder:
            return list(_measured(Path(folder), options.urls))
    return []


def _measured(folder: Path, urls: int) -> Iterator[Row]:
    filled = folder / "filled.db"
    filling, _ = _step(folder, "fill", filled, "--urls", str(urls))
    say(f"{urls:,} URLs put into the store in {filling.wall_s:.0f} s")

    yield from _rows("plan", *_step(folder, "plan", filled))
    whole = Path(shutil.copyfile(filled, folder / "whole.db"))
    cost, done = _step(folder, "reconcile", whole)
    yield from _rows("reconcile", cost, done)
    expected = _step(folder, "digest", whole)[1]
    for share in (0.2, 0.6):
        killed = Path(shutil.copyfile(filled, folder / "killed.db"))
        _kill(folder, killed, int(done["excluded"] * share))
        again, rest = _step(folder, "reconcile", killed)
        same = _step(folder, "digest", killed)[1] == expected
        yield Row(
            "reconcile",
            f"killed, {done['excluded'] - rest['excluded']:,} of {done['excluded']:,} URLs excluded, and run again",
            f"{'the same' if same else 'ANOTHER'} end, {again.wall_s:.1f} s",
            "the same end",
            same,
        )
        killed.unlink()
    yield from _rows("all back", *_step(folder, "reconcile", whole, "--old"))
    whole.unlink()
    yield from _rows("held", *_step(folder, "reconcile", filled, "--hold"))


def _rows(name: str, cost: Cost, done: dict[str, int]) -> Iterator[Row]:
    numbers = ", ".join(f"{done[kind]:,} {kind}" for kind in ("excluded", "kept", "returned", "deletions", "held") if done[kind])
    of = f"{name}, {done['known']:,} known URLs"
    yield Row("reconcile", f"URLs, {of}", numbers)
    seconds = f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})"
    yield Row("reconcile", f"seconds, {of}", seconds, f"< {_SECONDS}", cost.wall_s < _SECONDS)
    yield Row("reconcile", f"peak, {of}", f"{cost.peak_mb:.0f} MB", f"< {_MB} MB", cost.peak_mb < _MB)


def _step(folder: Path, do: str, store: Path, *more: str) -> tuple[Cost, dict[str, int]]:
    """Run a step in its own process; return its cost and output."""
    log = folder / f"{do}.log"
    cost = run(_command(do, store, *more), log=log)
    if cost.status:
        raise BenchmarkFailed(f"{do} failed:\n{tail(log)}")
    printed = log.read_text(encoding="utf-8")
    return cost, json.loads(printed) if printed else {}


def _kill(folder: Path, store: Path, excluded: int) -> None:
    """Change the rules, and kill the process after it has set so many URLs to 760."""
    with (folder / "killed.log").open("wb") as log, closing(SqliteStore(store, read_only=True)) as watched:
        process = start(_command("reconcile", store), output=log.fileno())
        try:
            while watched.counts().by_status.get(int(Status.EXCLUDED), 0) < excluded:
                if process.poll() is not None:
                    raise BenchmarkFailed(f"it ended before it could be killed:\n{tail(folder / 'killed.log')}")
                time.sleep(0.01)
            stop(process, signal.SIGKILL)
            if not watched.get_meta(RECONCILING):
                raise BenchmarkFailed("it was killed too late, the change was made")
        finally:
            stop(process, signal.SIGKILL)


def _command(do: str, store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.reconcile", "--do", do, "--store", str(store), *more]


# --- what the processes do -----------------------------------------------------------------------------------------


def fill(file: Path, *, urls: int) -> None:
    """Make a store in which six of ten URLs have a document; one of a hundred has the document of a URL on another host."""
    store = SqliteStore.open_for_crawl(file, sinks=())
    for first in range(0, urls, _FILLED_AT_ONCE):
        numbers = range(first, min(first + _FILLED_AT_ONCE, urls))
        store.discover([_url(number) for number in numbers], now=_NOW)
        store.record([_page(number) for number in numbers if number % 10 < 6], now=_NOW)
    store.set_meta(RULES_HASH, rules_hash(_space(OLD), _global_rules()))
    store.close()


def change(file: Path, *, write: bool, old: bool, hold: bool) -> dict[str, object]:
    """Show or make the change to the new rules, or back to the old ones; return the numbers of the plan."""
    space = _space(OLD if old else NEW)
    rules = _global_rules()
    verdicts = KnownUrlDecisions(space, GlobalSpace(rules.domain))
    deletion_limit = DeletionLimit(0, 0) if hold else DeletionLimit(100, 0)
    hash_ = rules_hash(space, rules)
    if write:
        store = SqliteStore.open_for_crawl(file)
        done = reconcile(store, verdicts, hash=hash_, deletion_limit=deletion_limit, now=_NOW)
    else:
        store = SqliteStore(file, read_only=True)
        done = plan(store, verdicts, hash=hash_, deletion_limit=deletion_limit)
    store.close()
    if done is None:
        raise BenchmarkFailed("the rules are as they were")
    return done.as_json()


def digest(file: Path) -> dict[str, object]:
    """Return a digest of all rows of a store, without numbers assigned in turn."""
    database = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    state = blake2b(digest_size=16)
    for statement in (
        "SELECT * FROM url ORDER BY id",
        "SELECT id FROM document ORDER BY id",
        "SELECT checksum FROM content ORDER BY checksum",
        "SELECT sink, parked, op, url FROM outbox ORDER BY url, sink",
        "SELECT * FROM tally WHERE name NOT IN ('id', 'sequence') AND value <> 0",
        "SELECT * FROM site ORDER BY id",
        "SELECT * FROM meta",
    ):
        for row in database.execute(statement):
            state.update(repr(row).encode())
    return {"digest": state.hexdigest()}


def _url(number: int) -> NewUrl:
    host = f"host{number % _HOSTS}.example.com"
    path = f"/section/{number // _HOSTS % 97}/a-page-with-a-usual-name-{number}.html"
    text = f"https://{host}{path}"
    return NewUrl(url_key(text), text, f"{host}:443", Source.INDEX_FOLLOW, 0, 3, 0, len(path))


def _page(number: int) -> Change:
    new = _url(number)
    same_as = number - 5 if number % 100 == 5 else number
    state = UrlState(
        id=number + 1,
        key=new.key,
        url=new.url,
        site=new.site,
        state=State.DONE,
        status=200,
        source=new.source,
        depth=new.depth,
        fetched_at=_NOW - 1_000,
        next_fetch=_NOW + 86_400,
        interval_s=86_400,
        etag=f'"{number:x}"',
        rules=1,
        checksum=blake2b(b"%d" % same_as, digest_size=16).digest(),
    )
    return Change(state, Document(new.url, "A page with a usual name", language="en", text=f"The text of {same_as}"))


def _space(rules: str) -> CrawlSpace:
    return CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [parse("https://host0.example.com/")])


def _global_rules() -> CrawlRules:
    return CrawlRules(parse_global_rules(GLOBAL, file="global.rules"))


if __name__ == "__main__":
    sys.exit(finish(main))
