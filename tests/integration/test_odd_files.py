"""What stands in the place of a file and is none, or cannot be written: a sentence, exit status 1, no traceback, and nothing hangs."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import MakeProject
from tests.integration import stored
from tests.sites import Site, page, serve


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


Make = Callable[[Path], None]
ODD: list[tuple[str, Make, str]] = [
    # what a crawl uses, what stands in its place, what is said
    ("data/demo/state.db", pipe, "state.db is not a file but a pipe"),
    ("data/demo/state.db", Path.mkdir, "state.db is not a file but a directory"),
    ("data/demo/state.db", device, "state.db is not a file but a device"),
    ("data/demo/state.db", loop, "state.db cannot be opened"),
    ("data/demo/state.db.lock", pipe, "state.db.lock is not a file but a pipe"),
    ("data/demo/state.db.lock", Path.mkdir, "state.db.lock is not a file but a directory"),
    ("data/demo/index.db", pipe, "index.db cannot be opened, because it is a pipe"),
    ("data/demo/index.db", device, "index.db cannot be opened, because it is a device"),
    ("data/demo/index.db", loop, "index.db cannot be opened"),
    ("collections/demo/crawl.rules", pipe, "crawl.rules is not a regular file but a pipe"),
    ("collections/demo/crawl.rules", loop, "crawl.rules cannot be read: Too many levels of symbolic links"),
    ("collections/demo/rules.xml", pipe, "rules.xml is not a regular file but a pipe"),
    ("collections/demo/global.rules", loop, "global.rules cannot be read: Too many levels of symbolic links"),
    ("collections/demo/start_urls.txt", pipe, "start_urls.txt is not a regular file but a pipe"),
    ("collections/demo/start_urls.txt", loop, "start_urls.txt cannot be read: Too many levels of symbolic links"),
    ("crawl.log", pipe, "crawl.log', which cannot be written: No such device or address"),
    ("crawl.log", loop, "crawl.log', which cannot be written: Too many levels of symbolic links"),
    ("crawl.log", Path.mkdir, "crawl.log', which cannot be written: Is a directory"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "sentence"), ODD, ids=[f"{row[0]} {row[1].__name__}" for row in ODD])
def test_what_is_no_file(project: MakeProject, name: str, make: Make, sentence: str) -> None:
    with serve(Site({"/": page("Home")})) as server:
        made = project(stored.collection(server.url("/")))
        place = made.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        make(place)
        run = made.crawl("demo", *(["--logfile", str(place)] if name == "crawl.log" else []))
    assert (run.returncode, run.stderr.count(sentence), "Traceback" in run.stderr) == (1, 1, False), run.stderr
    assert len(run.stderr) < 2_000
    assert server.paths() == []


def test_a_log_on_a_full_disk_is_reported_once(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/a"]), "/a": page("A")})) as server:
        made = project(stored.collection(server.url("/")))
        run = made.crawl("demo", "--logfile", "/dev/full", "-s", "LOG_LEVEL=DEBUG")
    assert (run.returncode, "Traceback" in run.stderr) == (1, False), run.stderr[:3_000]
    assert run.stderr.count("the log /dev/full cannot be written: No space left on device; the crawl goes on without it") == 1
    assert "in the index: 2 documents" in run.stderr


@pytest.mark.full
def test_a_state_file_that_another_program_has_locked(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        made = project(stored.collection(server.url("/")))
        made.crawl("demo").succeeded()
        server.forget()
        with (made.data / "demo" / "state.db").open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            run = made.crawl("demo")
    assert (run.returncode, "Traceback" in run.stderr) == (1, False), run.stderr
    assert "waiting for another program that has locked" in run.stderr
    assert run.stderr.count("state.db is being written by another process: try again when it has finished") == 1
    assert server.paths() == []


def test_an_answer_of_redis_that_is_nested_without_end(project: MakeProject) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def answer() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(1 << 16)
                    client.sendall(b"*1\r\n" * 100_000)

        threading.Thread(target=answer, daemon=True).start()
        made = project(stored.collection("http://127.0.0.1:9/"))
        made.store_url = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        run = made.crawl("demo")
        listener.shutdown(socket.SHUT_RDWR)
    assert (run.returncode, run.stderr.count("a reply is nested too deeply"), "Traceback" in run.stderr) == (1, 1, False), (
        run.stderr
    )
