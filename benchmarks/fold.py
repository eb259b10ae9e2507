"""What a change of the URL options costs with a million known URLs: `python -m benchmarks.fold`.

Of ten URLs six are pages with a document, two the same pages with a tracking parameter, one is known with one only, and one with one is
pending. Each page has ten links. `drop` drops the parameter, so that four of ten URLs are folded; `www` removes `www.`, so that all are. Each
step runs in its own process. Killed with SIGKILL while it folds, and run again, it must end with the same URLs as a run without a kill.
"""

from __future__ import annotations

import argparse
import gc
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

from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, run, say, start, stop, tail
from crawlspace.crawl.rule_changes.reconcile import RECONCILING, RULES_HASH, plan, reconcile, rules_hash
from crawlspace.document import Document
from crawlspace.model import NewUrl, Source, State, UrlState
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.url_options import NO_OPTIONS, Folding, UrlFolding, UrlOptions
from crawlspace.state.changes import Change
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse, url_key

_NOW = 1_750_000_000
_HOSTS, _LINKS = 200, 10
_FILLED_AT_ONCE = 10_000
_SECONDS, _MB = 30, 600
OPTIONS = {
    "none": NO_OPTIONS,
    "drop": UrlOptions(drop_parameters=("utm_*",)),
    "www": UrlOptions(www=Folding.REMOVE),
}


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a change of the URL options.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--do", choices=("fill", "plan", "fold", "digest"), help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--options", choices=tuple(OPTIONS), default="drop", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.do == "fill":
        fill(options.store, urls=options.urls)
    elif options.do == "digest":
        print(json.dumps(digest(options.store)))
    elif options.do is not None:
        print(json.dumps(change(options.store, OPTIONS[options.options], write=options.do == "fold")))
    else:
        with tempfile.TemporaryDirectory(prefix="bench-fold-") as folder:
            return list(_measured(Path(folder), options.urls))
    return []


def _measured(folder: Path, urls: int) -> Iterator[Row]:
    filled = folder / "filled.db"
    filling, _ = _step(folder, "fill", filled, "--urls", str(urls))
    say(f"{urls:,} URLs put into the store in {filling.wall_s:.0f} s")
    yield from _rows("plan", *_step(folder, "plan", filled))
    whole = Path(shutil.copyfile(filled, folder / "whole.db"))
    cost, done = _step(folder, "fold", whole)
    yield from _rows("drop", cost, done)
    expected = _step(folder, "digest", whole)[1]
    whole.unlink()
    for phase in ("forgotten", "held"):
        killed = Path(shutil.copyfile(filled, folder / "killed.db"))
        _kill(folder, killed, phase, urls // 20)
        again, rest = _step(folder, "fold", killed)
        same = _step(folder, "digest", killed)[1] == expected
        yield Row(
            "fold",
            f"killed while URLs are {phase}, {done['folded'] - rest['folded']:,} of {done['folded']:,} URLs folded, and run again",
            f"{'the same' if same else 'ANOTHER'} end, {again.wall_s:.1f} s",
            "the same end",
            same,
        )
        killed.unlink()
    yield from _rows("www", *_step(folder, "fold", filled, "--options", "www"))


def _rows(name: str, cost: Cost, done: dict[str, int]) -> Iterator[Row]:
    of = f"{name}, {done['known']:,} known URLs"
    yield Row("fold", f"URLs, {of}", f"{done['folded']:,} folded into {done['folded_into']:,}")
    yield Row("fold", f"seconds, {of}", f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})", f"< {_SECONDS}", cost.wall_s < _SECONDS)
    yield Row("fold", f"peak, {of}", f"{cost.peak_mb:.0f} MB", f"< {_MB} MB", cost.peak_mb < _MB)


def _step(folder: Path, do: str, store: Path, *more: str) -> tuple[Cost, dict[str, int]]:
    """Run a step in its own process; return its cost and output."""
    log = folder / f"{do}.log"
    cost = run(_command(do, store, *more), log=log)
    if cost.status:
        raise BenchmarkFailed(f"{do} failed:\n{tail(log)}")
    printed = log.read_text(encoding="utf-8")
    return cost, json.loads(printed) if printed else {}


def _kill(folder: Path, store: Path, phase: str, number: int) -> None:
    """Fold, and kill the process once so many URLs are forgotten, or held."""
    with (folder / "killed.log").open("wb") as log, closing(SqliteStore(store, read_only=True)) as watched:
        counts = watched.counts()
        known = sum(counts.by_state.values())
        process = start(_command("fold", store), output=log.fileno())
        try:
            while (known - sum(counts.by_state.values()) if phase == "forgotten" else counts.held) < number:
                if process.poll() is not None:
                    raise BenchmarkFailed(f"it ended before it could be killed:\n{tail(folder / 'killed.log')}")
                time.sleep(0.01)
                counts = watched.counts()
            stop(process, signal.SIGKILL)
            if not watched.get_meta(RECONCILING):
                raise BenchmarkFailed("it was killed too late, the change was made")
        finally:
            stop(process, signal.SIGKILL)


def _command(do: str, store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.fold", "--do", do, "--store", str(store), *more]


# --- what the processes do -----------------------------------------------------------------------------------------


def fill(file: Path, *, urls: int) -> None:
    store = SqliteStore.open_for_crawl(file, sinks=())
    for first in range(0, urls, _FILLED_AT_ONCE):
        numbers = range(first, min(first + _FILLED_AT_ONCE, urls))
        store.discover([_url(number) for number in numbers], now=_NOW)
        store.record([_page(number) for number in numbers if number % 10 < 9], now=_NOW)
    store.set_meta(RULES_HASH, rules_hash(_space(NO_OPTIONS), None))
    store.close()


def change(file: Path, options: UrlOptions, *, write: bool) -> dict[str, object]:
    """Show or make the change to the options; return the numbers of the plan."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 5)  # as `scrapy crawl` does at its start
    space = _space(options)
    verdicts, hash_, deletion_limit = KnownUrlDecisions(space, None), rules_hash(space, None), DeletionLimit(100, 0)
    if write:
        store = SqliteStore.open_for_crawl(file)
        done = reconcile(store, verdicts, hash=hash_, deletion_limit=deletion_limit, now=_NOW)
    else:
        store = SqliteStore(file, read_only=True)
        done = plan(store, verdicts, hash=hash_, deletion_limit=deletion_limit)
    store.close()
    if done is None:
        raise BenchmarkFailed("the options are as they were")
    return done.as_json()


def digest(file: Path) -> dict[str, object]:
    """Return a digest of all URLs, without numbers assigned in turn."""
    state = blake2b(digest_size=16)
    with closing(SqliteStore(file, read_only=True)) as store:
        for row in sorted((row.url, row.site, row.state, row.depth, row.indexed, row.held) for row in store.urls()):
            state.update(repr(row).encode())
        state.update(repr(store.counts()).encode())
    return {"digest": state.hexdigest()}


def _text_of(number: int) -> str:
    kind, page = number % 10, number
    if kind in (6, 7):
        page = number - 6  # the same page, by another spelling
    text = f"https://www.host{page // 10 % _HOSTS}.example.com/section/{page // 2000 % 97}/a-page-with-a-usual-name-{page}.html"
    return f"{text}?utm_source=newsletter" if kind >= 6 else text


def _url(number: int) -> NewUrl:
    text = _text_of(number)
    site = f"{text.split('/', 3)[2]}:443"
    return NewUrl(url_key(text), text, site, Source.INDEX_FOLLOW, 0, 3, 0, len(text))


def _page(number: int) -> Change:
    new = _url(number)
    same_as = number - 6 if number % 10 in (6, 7) else number
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
        rules=1,
        checksum=blake2b(b"%d" % same_as, digest_size=16).digest(),
    )
    links = [url_key(_text_of(max(0, number - step))) for step in range(1, _LINKS + 1)]
    return Change(state, Document(new.url, "A page", language="en", text=f"The text of {same_as}"), links=links)


def _space(options: UrlOptions) -> CrawlSpace:
    folding = None if options == NO_OPTIONS else UrlFolding(lambda *_: options, of_hosts=repr(options), of_the_rest="")
    return CrawlSpace(CrawlRules(), Limits(), [parse("https://www.host0.example.com/")], folding=folding)


if __name__ == "__main__":
    sys.exit(finish(main))
