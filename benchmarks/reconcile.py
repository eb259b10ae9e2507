"""Measure a change of the rules, and one of the URL options, with a million known URLs: `python -m benchmarks.reconcile [--only rules]`.

`rules`: six of ten URLs have a document, and the new rules exclude about a tenth of all, by domain and by prefix. `options`: of ten URLs six
are pages with a document, two the same pages with a tracking parameter, one is known with one only, and one with one is pending; each page
has ten links. `drop` drops the parameter, so that four of ten URLs are folded; `www` removes `www.`, so that all are.

Each step runs in its own process, so its time includes the start of Python, and its peak is its own. Killed with SIGKILL while it changes
the store, and run again, it must end with the same rows as a run without a kill.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
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
from crawlspace.rules.url_options import NO_OPTIONS, Folding, UrlFolding, UrlOptions
from crawlspace.state.changes import Change
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.status import Status
from crawlspace.urls import parse, url_key

_NAME = "reconcile"
_NOW = 1_750_000_000
_HOSTS = 200
_FILLED_AT_ONCE = 10_000

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
OPTIONS = {"none": NO_OPTIONS, "drop": UrlOptions(drop_parameters=("utm_*",)), "www": UrlOptions(www=Folding.REMOVE)}


@dataclass(frozen=True, slots=True)
class _Case:
    """A collection, and the versions of its rules."""

    first: str
    """The version that the store is filled with."""
    space: Callable[[str], CrawlSpace]
    global_rules: CrawlRules | None
    url: Callable[[int], str]
    same_as: Callable[[int], int]
    """Returns the number of the page that has the same text."""
    fetched: int
    """How many of ten URLs were fetched."""
    links: int
    most_s: int
    most_mb: int


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a change of the rules and of the URL options.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--only", choices=tuple(_CASES), help="without: both")
    parser.add_argument("--do", choices=("fill", "plan", "write", "digest"), help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--to", help=argparse.SUPPRESS)
    parser.add_argument("--hold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.do == "fill":
        fill(options.store, _CASES[options.only], urls=options.urls)
    elif options.do == "digest":
        print(json.dumps({"rules": digest_of_rows, "options": digest_of_urls}[options.only](options.store)))
    elif options.do is not None:
        print(json.dumps(change(options.store, options.only, options.to, write=options.do == "write", hold=options.hold)))
    else:
        rows: list[Row] = []
        for name, measured in (("rules", _rules), ("options", _options)):
            if options.only in (None, name):
                with tempfile.TemporaryDirectory(prefix="bench-reconcile-") as folder:
                    rows += measured(_Steps(Path(folder), name), options.urls)
        return rows
    return []


def _rules(steps: _Steps, urls: int) -> Iterator[Row]:
    filled = steps.filled(urls)
    yield from steps.rows("plan", *steps.run("plan", filled, "--to", "new"))
    whole = steps.copy(filled, "whole")
    cost, done = steps.run("write", whole, "--to", "new")
    yield from steps.rows("reconcile", cost, done)
    expected = steps.run("digest", whole)[1]
    for share in (0.2, 0.6):
        least = int(done["excluded"] * share)
        has_come = lambda store, least=least: store.counts().by_status.get(int(Status.EXCLUDED), 0) >= least  # noqa: E731
        yield steps.killed(filled, "new", "excluded", has_come, done, expected)
    yield from steps.rows("all back", *steps.run("write", whole, "--to", "old"))
    whole.unlink()
    yield from steps.rows("held", *steps.run("write", filled, "--to", "new", "--hold"))


def _options(steps: _Steps, urls: int) -> Iterator[Row]:
    filled = steps.filled(urls)
    yield from steps.rows("plan to drop a parameter", *steps.run("plan", filled, "--to", "drop"))
    whole = steps.copy(filled, "whole")
    cost, done = steps.run("write", whole, "--to", "drop")
    yield from steps.rows("drop a parameter", cost, done)
    expected = steps.run("digest", whole)[1]
    whole.unlink()
    least = urls // 20
    are_forgotten: Callable[[SqliteStore], bool] = lambda store: urls - sum(store.counts().by_state.values()) >= least  # noqa: E731
    are_held: Callable[[SqliteStore], bool] = lambda store: sum(store.held_numbers().values()) >= least  # noqa: E731
    for has_come in (are_forgotten, are_held):
        yield steps.killed(filled, "drop", "folded", has_come, done, expected)
    yield from steps.rows("remove www", *steps.run("write", filled, "--to", "www"))


@dataclass(frozen=True, slots=True)
class _Steps:
    """Runs the steps of a case, each in its own process."""

    folder: Path
    name: str

    def filled(self, urls: int) -> Path:
        store = self.folder / "filled.db"
        cost, _ = self.run("fill", store, "--urls", str(urls))
        say(f"{urls:,} URLs put into the store in {cost.wall_s:.0f} s")
        return store

    def copy(self, store: Path, name: str) -> Path:
        return Path(shutil.copyfile(store, self.folder / f"{name}.db"))

    def run(self, do: str, store: Path, *more: str) -> tuple[Cost, dict[str, int]]:
        """Return the cost of a step and what it has printed."""
        log = self.folder / f"{do}.log"
        cost = run(self._command(do, store, *more), log=log)
        if cost.status:
            raise BenchmarkFailed(f"{do} failed:\n{tail(log)}")
        printed = log.read_text(encoding="utf-8")
        return cost, json.loads(printed) if printed else {}

    def rows(self, step: str, cost: Cost, done: Mapping[str, int]) -> Iterator[Row]:
        case, of = _CASES[self.name], f"{step}, {done['known']:,} known URLs"
        kinds = ("excluded", "kept", "returned", "deletions", "held", "folded", "folded_into")
        numbers = ", ".join(f"{done[kind]:,} {kind.replace('_', ' ')}" for kind in kinds if done.get(kind))
        yield Row(_NAME, f"URLs, {of}", numbers)
        seconds = f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})"
        yield Row(_NAME, f"seconds, {of}", seconds, f"< {case.most_s}", cost.wall_s < case.most_s)
        yield Row(_NAME, f"peak, {of}", f"{cost.peak_mb:.0f} MB", f"< {case.most_mb} MB", cost.peak_mb < case.most_mb)

    def killed(
        self,
        filled: Path,
        to: str,
        counted: str,
        has_come: Callable[[SqliteStore], bool],
        done: Mapping[str, int],
        expected: Mapping[str, int],
    ) -> Row:
        """Kill the change once a moment has come, run it again, and compare the end with the expected one."""
        store = self.copy(filled, "killed")
        self._kill(store, to, has_come)
        again, rest = self.run("write", store, "--to", to)
        is_same = self.run("digest", store)[1] == expected
        store.unlink()
        measure = f"killed, {done[counted] - rest[counted]:,} of {done[counted]:,} URLs {counted}, and run again"
        value = f"{'the same' if is_same else 'ANOTHER'} end, {again.wall_s:.1f} s"
        return Row(_NAME, measure, value, "the same end", is_same)

    def _kill(self, store: Path, to: str, has_come: Callable[[SqliteStore], bool]) -> None:
        log = self.folder / "killed.log"
        with log.open("wb") as output, closing(SqliteStore(store, read_only=True)) as watched:
            process = start(self._command("write", store, "--to", to), output=output.fileno())
            try:
                while not has_come(watched):
                    if process.poll() is not None:
                        raise BenchmarkFailed(f"it ended before it could be killed:\n{tail(log)}")
                    time.sleep(0.01)
                stop(process, signal.SIGKILL)
                if not watched.get_meta(RECONCILING):
                    raise BenchmarkFailed("it was killed too late, the change was made")
            finally:
                stop(process, signal.SIGKILL)

    def _command(self, do: str, store: Path, *more: str) -> list[str]:
        return [sys.executable, "-m", "benchmarks.reconcile", "--only", self.name, "--do", do, "--store", str(store), *more]


# --- the steps, in their processes ----------------------------------------------------------------------------------


def fill(file: Path, case: _Case, *, urls: int) -> None:
    """Make a store of so many known URLs."""
    store = SqliteStore.open_for_crawl(file, sinks=())
    for first in range(0, urls, _FILLED_AT_ONCE):
        numbers = range(first, min(first + _FILLED_AT_ONCE, urls))
        store.discover([_new_url(case, number) for number in numbers], now=_NOW)
        store.record([_page(case, number) for number in numbers if number % 10 < case.fetched], now=_NOW)
    store.set_meta(RULES_HASH, rules_hash(case.space(case.first), case.global_rules))
    store.close()


def change(file: Path, name: str, to: str, *, write: bool, hold: bool) -> dict[str, object]:
    """Plan or make the change to a version of the rules; return the numbers of the plan."""
    if name == "options":
        gc.freeze()
        gc.set_threshold(20_000, 10, 5)  # as `scrapy crawl` does at its start
    case = _CASES[name]
    space = case.space(to)
    decisions = KnownUrlDecisions(space, GlobalSpace(case.global_rules.domain) if case.global_rules else None)
    hash_ = rules_hash(space, case.global_rules)
    deletion_limit = DeletionLimit(0 if hold else 100, 0)
    if write:
        store = SqliteStore.open_for_crawl(file)
        done = reconcile(store, decisions, hash=hash_, deletion_limit=deletion_limit, now=_NOW)
    else:
        store = SqliteStore(file, read_only=True)
        done = plan(store, decisions, hash=hash_, deletion_limit=deletion_limit)
    store.close()
    if done is None:
        raise BenchmarkFailed("nothing was changed")
    return done.as_json()


def digest_of_rows(file: Path) -> dict[str, object]:
    """Return a digest of all rows of a store, without numbers assigned in turn."""
    database = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    columns = [name for (name,) in database.execute("SELECT name FROM pragma_table_info('url')") if name != "ordered"]
    digest = blake2b(digest_size=16)
    for statement in (
        f"SELECT {', '.join(columns)} FROM url ORDER BY id",
        "SELECT id FROM document ORDER BY id",
        "SELECT checksum FROM content ORDER BY checksum",
        "SELECT sink, parked, op, url FROM outbox ORDER BY url, sink",
        "SELECT * FROM tally WHERE name NOT IN ('id', 'sequence') AND value <> 0",
        "SELECT * FROM site ORDER BY id",
        "SELECT * FROM meta",
    ):
        for row in database.execute(statement):
            digest.update(repr(row).encode())
    return {"digest": digest.hexdigest()}


def digest_of_urls(file: Path) -> dict[str, object]:
    """Return a digest of all URLs: folding makes new rows, whose numbers and times depend on the moment of the kill."""
    digest = blake2b(digest_size=16)
    with closing(SqliteStore(file, read_only=True)) as store:
        for row in sorted((row.url, row.site, row.state, row.depth, row.indexed, row.held) for row in store.urls()):
            digest.update(repr(row).encode())
        digest.update(repr(store.counts()).encode())
    return {"digest": digest.hexdigest()}


def _new_url(case: _Case, number: int) -> NewUrl:
    text = case.url(number)
    host, path = text.removeprefix("https://").split("/", 1)
    return NewUrl(url_key(text), text, f"{host}:443", Source.INDEX_FOLLOW, 0, 3, 0, len(path))


def _page(case: _Case, number: int) -> Change:
    new, same_as = _new_url(case, number), case.same_as(number)
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
    links = [url_key(case.url(max(0, number - step))) for step in range(1, case.links + 1)]
    document = Document(new.url, "A page with a usual name", language="en", text=f"The text of {same_as}")
    return Change(state, document, links=links) if case.links else Change(state, document)


def _plain_url(number: int) -> str:
    return f"https://host{number % _HOSTS}.example.com/section/{number // _HOSTS % 97}/a-page-with-a-usual-name-{number}.html"


def _url_with_parameter(number: int) -> str:
    """Return one URL with `www.`; four of ten have a tracking parameter, and two of these are the page of another number without it."""
    page = _without_parameter(number)
    text = f"https://www.host{page // 10 % _HOSTS}.example.com/section/{page // 2000 % 97}/a-page-with-a-usual-name-{page}.html"
    return f"{text}?utm_source=newsletter" if number % 10 >= 6 else text


def _without_parameter(number: int) -> int:
    return number - 6 if number % 10 in (6, 7) else number


def _space_of_rules(version: str) -> CrawlSpace:
    rules = parse_crawl_rules(NEW if version == "new" else OLD, file="crawl.rules")
    return CrawlSpace(rules, Limits(), [parse("https://host0.example.com/")])


def _space_of_options(version: str) -> CrawlSpace:
    options = OPTIONS[version]
    folding = None if options == NO_OPTIONS else UrlFolding(lambda *_: options, of_hosts=repr(options), of_the_rest="")
    return CrawlSpace(CrawlRules(), Limits(), [parse("https://www.host0.example.com/")], folding=folding)


_CASES: Mapping[str, _Case] = {
    "rules": _Case(
        first="old",
        space=_space_of_rules,
        global_rules=CrawlRules(parse_global_rules(GLOBAL, file="global.rules")),
        url=_plain_url,
        same_as=lambda number: number - 5 if number % 100 == 5 else number,
        fetched=6,
        links=0,
        most_s=10,
        most_mb=300,
    ),
    "options": _Case(
        first="none",
        space=_space_of_options,
        global_rules=None,
        url=_url_with_parameter,
        same_as=_without_parameter,
        fetched=9,
        links=10,
        most_s=30,
        most_mb=600,
    ),
}


if __name__ == "__main__":
    sys.exit(finish(main))
