"""An upgrade of a file, or of the keys in Redis, whose process is killed at any statement or call is done at the next start."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest
import redis

from crawlspace.index import embedded_schema
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.ideographs import joined
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from crawlspace.state.sqlite import schema
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.state.sqlite.store import SqliteStore
from tests.conftest import MakeProject
from tests.integration.stored import shared
from tests.long.shared_crash import text_of
from tests.servers import redis_server
from tests.unit.state.sqlite.test_file import OF_VERSION_1, statements
from tests.upgrade import kept

NEWEST = kept.VERSIONS[-1]
BANDS = b"{demo}:near_bands"


def alone(check: Callable[[], None]) -> None:
    """Run a check in a process of its own, which has one thread and so may fork."""
    process = multiprocessing.get_context("forkserver").Process(target=check)
    process.start()
    process.join()
    assert process.exitcode == 0, "see what it has printed"


def killed_at(number: int, step: Callable[[Callable[[], None]], None]) -> bool:
    """Run a step in a process that is killed when it calls its argument for that time; return whether it was."""
    child = os.fork()
    if child == 0:
        calls = count(1)
        try:
            step(lambda: os.kill(os.getpid(), signal.SIGKILL) if next(calls) == number else None)
        except BaseException:  # noqa: BLE001 - the rest of the tests is not to run in this process too
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def open_state(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.check()


def open_index(path: Path) -> None:
    EmbeddedIndex(path).close()


def open_traced(path: Path, open_file: Callable[[Path], None], counted: Callable[[], None]) -> None:
    """Open a file, and report each statement that is about to be executed."""

    def trace(*_: object) -> bool:
        counted()
        return True

    apsw.connection_hooks.append(lambda db: setattr(db, "exec_trace", trace))
    open_file(path)


def records_of(path: Path) -> list[Any]:
    with closing(SqliteSide(path)) as side:
        return list(side.records())


def documents_of(path: Path) -> list[Any]:
    with closing(EmbeddedIndex(path, read_only=True)) as index:
        found = [index.search(words).total for words in ("管理者", "บริษัท", "valves")]
        return [*found, *index.documents("demo")]


def make_first_state(path: Path) -> None:
    statements(*OF_VERSION_1)(path)


def make_first_index(path: Path) -> None:
    """Have the words as version 1 stored them."""
    with closing(apsw.Connection(str(path))) as db:
        for row, text in db.execute("SELECT rowid, text FROM words").fetchall():
            db.execute("UPDATE words SET text = ? WHERE rowid = ?", (joined(str(text)), row))
        db.execute("DROP TABLE more; DROP INDEX by_id; PRAGMA user_version = 1")


# file, what makes it one of version 1, what opens it, what is in it, its version
FILES = [
    ("state.db", make_first_state, open_state, records_of, schema.VERSION),
    ("index.db", make_first_index, open_index, documents_of, embedded_schema.VERSION),
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "make_first", "open_file", "content_of", "version"), FILES, ids=[row[0] for row in FILES])
def test_a_file_is_upgraded_after_a_kill_at_any_statement(
    project: MakeProject,
    tmp_path: Path,
    name: str,
    make_first: Callable[[Path], None],
    open_file: Callable[[Path], None],
    content_of: Callable[[Path], list[Any]],
    version: int,
) -> None:
    demo = project({})
    kept.unpack(NEWEST, demo)
    make_first(first := demo.data / "demo" / name)
    alone(partial(check_each_kill, first, tmp_path, open_file, content_of, version))


def check_each_kill(
    first: Path, folder: Path, open_file: Callable[[Path], None], content_of: Callable[[Path], list[Any]], version: int
) -> None:
    whole, file = folder / "whole.db", folder / "killed.db"
    shutil.copyfile(first, whole)
    open_file(whole)
    expected = content_of(whole)
    versions = set()
    for number in count(1):
        for left in folder.glob("killed.db*"):
            left.unlink()
        shutil.copyfile(first, file)
        if not killed_at(number, partial(open_traced, file, open_file)):
            break
        versions.add(version_of(file))
        open_file(file)
        assert (version_of(file), content_of(file) == expected) == (version, True), f"killed at statement {number}"
    assert versions >= {1, version}, "killed before the first step, and after the last one"


def version_of(file: Path) -> int:
    with closing(apsw.Connection(str(file))) as db:
        return int(db.pragma("user_version"))


def test_keys_are_upgraded_after_a_kill_at_any_call(project: MakeProject) -> None:
    """Of the keys, the look-up of near duplicates is what this version builds again where an earlier one has written it."""
    kept.unpack(NEWEST, shared(project({})))
    alone(partial(check_each_call, redis_server().port))


def check_each_call(port: int) -> None:
    with closing(redis.Redis(port=port)) as client:
        expected = client.hgetall(BANDS)
        killed = 0
        while True:
            client.delete(BANDS)
            client.hset("{demo}:near_band", "17", b"entries of another form")
            if not killed_at(killed + 1, partial(begin_run, port)):
                break
            killed += 1
            begin_run(port, lambda: None)
            assert client.hgetall(BANDS) == expected, f"killed at call {killed}"
            assert not client.exists("{demo}:near_band")
        assert (killed > 3, client.hgetall(BANDS)) == (True, expected)


def begin_run(port: int, counted: Callable[[], None]) -> None:
    """Begin a run as its only worker; report each call of the server that is about to be sent. The workers before are dead."""
    client = redis.Redis(port=port)
    call = client.execute_command

    def reported(*args: Any, **options: Any) -> Any:
        counted()
        return call(*args, **options)

    client.execute_command = reported  # type: ignore[method-assign]
    with closing(RedisStore(client, "demo", crawls=True)) as store:
        worker = Worker(store, timeout_s=1_000)
        worker.expire(map(text_of, client.zrange("{demo}:workers", 0, -1)))
        assert worker.begin("rules") is None
        worker.leave()
