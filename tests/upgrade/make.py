"""Write the files that are kept of this version: `python -m tests.upgrade.make [NAME]`.

The sites are crawled twice with the states in a file, and twice in Redis, at fixed times. Then a crawl is killed while it waits for a page,
so that the states have a lease. Files that exist are not replaced.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import crawlspace
from crawlspace.clock import SystemClock
from tests.command_line import start_scrapy
from tests.conftest import Project
from tests.integration.stored import shared
from tests.notifications import Running, wait_until
from tests.sites import held, status
from tests.upgrade import kept
from tests.upgrade.scene import BLOG, HOME, LEASED, Scene, served

_BEGAN = 1_750_000_000
_DAY_S, _HOUR_S = 86_400, 3_600
_DOWN = {"type": "opensearch", "url": "http://127.0.0.1:9", "index": "kept"}
"""A second sink that never answers: its orders wait."""
_MACHINE, _USER = "crawler", "admin"
"""Their names in the files, in place of those of this machine."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.upgrade.make", description="Write the files that are kept of this version."
    )
    parser.add_argument("name", nargs="?", default=crawlspace.__version__, help="of the folder, that of the version by default")
    folder = kept.FOLDER / parser.parse_args().name
    if folder.exists():
        parser.error(f"{folder} exists already: files of a version are kept as they are, so name another folder")
    found = {}
    with tempfile.TemporaryDirectory(prefix="kept-") as temp:
        made = Path(temp, "made")
        made.mkdir()
        for place in kept.PLACES:
            project = Project(Path(temp, place), {})
            try:
                found[place] = _made(project if place == "sqlite" else shared(project), made)
            finally:
                project.close()
        if lines := kept.differences(found["sqlite"], found["redis"]):
            sys.exit("what is in the file differs from what is in Redis:\n" + "\n".join(lines))
        content = {"formats": kept.FORMATS, **found["sqlite"]}
        (made / kept.EXPECTED).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        made.rename(folder)
    print(f"{folder}: {sum(file.stat().st_size for file in folder.iterdir()):,} bytes")
    return 0


def _made(project: Project, folder: Path) -> dict[str, object]:
    """Crawl, write the files to a folder, and return what is found in them."""
    with served() as scene:
        scene.configure(project, _DOWN)
        _crawl(project, scene)
        found = kept.found(project)
    kept.pack(project, folder)
    return found


def _crawl(project: Project, scene: Scene) -> None:
    _run(project, _BEGAN, "crawl", "demo")
    _run(project, _BEGAN + _DAY_S, "sites", "demo", "--pause", BLOG, "--reason", "it is being moved")
    scene.change(project)
    _run(project, _BEGAN + 2 * _DAY_S, "crawl", "demo")
    soon = _BEGAN + 2 * _DAY_S + _HOUR_S  # nothing else is due: a worker over Redis would lease it too
    _run(project, soon, "recrawl", "demo", f"{HOME}{LEASED.removeprefix('/')}")
    scene.www.site[LEASED] = waiting = held(status(404))
    scene.www.forget()
    crawl = _start(project, soon, "crawl", "demo")
    wait_until(lambda: LEASED in scene.www.paths() or crawl.poll() is not None)
    crawl.kill()
    crawl.wait()
    waiting.release()


def _run(project: Project, at: float, *command: str) -> None:
    process = _start(project, at, *command)
    if process.wait():
        sys.exit(f"{' '.join(command)} has failed:\n{process.output()}")


def _start(project: Project, at: float, *command: str) -> Running:
    """Start a command at that time of day."""
    options = ["-s", f"CRAWLSPACE_STORE_URL={project.store_url}"] if project.store_url else []
    environment = {**project.env, "LOGNAME": _USER}
    first = partial(_begin_elsewhere, at)
    return start_scrapy([*command, *options], output=project.folder / "output.txt", env=environment, first=first)


def _begin_elsewhere(at: float) -> None:
    """Have the clock of this process show that time, and its machine have another name."""
    ahead_s = at - time.time()
    SystemClock.now = lambda _: time.time() + ahead_s  # type: ignore[method-assign, assignment]
    socket.gethostname = lambda: _MACHINE


if __name__ == "__main__":
    sys.exit(main())
