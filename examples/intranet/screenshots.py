"""Takes the pictures of docs/console.md: `make screenshots`. They show the console over a made-up intranet that has been crawled twice.

    python -m examples.intranet.screenshots

Needs Chromium, as rendering does: on the path, or named in CRAWLSPACE_BROWSER.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from crawlspace.runtime.browser.process import find_program
from examples.intranet.server import Intranet
from examples.intranet.sites import free_ports
from examples.intranet.workplace import PROJECT, Workplace

FOLDER = PROJECT / "docs" / "images" / "console"
WIDTH, HEIGHT = 1200, 840
_PHONE = 390
_SETTINGS = "\nCRAWLSPACE_ARCHIVE = True\nCRAWLSPACE_MAX_DELETIONS = 2\nCRAWLSPACE_MAX_DELETIONS_PERCENT = 0\n"
_SLIP = "forbid prefix  http://127.0.0.1:8941/people/\n"
_HIDE_FOLDER = """([folder, shown]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, shown)
}"""


class Picture(NamedTuple):
    """A page of the console, and what is done there before the picture is taken."""

    name: str
    path: str
    before: Callable[[Page], object] = lambda _: None
    width: int = WIDTH
    height: int = HEIGHT
    is_dark: bool = False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.intranet.screenshots", description="Take the pictures of docs/console.md."
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to put them (default: docs/images/console)")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    program = find_program(os.environ.get("CRAWLSPACE_BROWSER", ""))
    with tempfile.TemporaryDirectory() as work, Intranet(free_ports()) as intranet:
        place = Workplace(Path(work))
        place.prepare(intranet.ports)
        start = intranet.ports.rewrite("http://127.0.0.1:8941/")
        _crawl(place, intranet.ports.rewrite(_SLIP))
        with _console(place) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            for picture in _pictures(start):
                _take(browser, picture, address, file=folder / f"{picture.name}.png", hidden=work)
                print(folder / f"{picture.name}.png", flush=True)
            browser.close()
    return 0


def _crawl(place: Workplace, slip: str) -> None:
    """Crawl twice; before the second time a rule excludes too much, so that deletions are held, and somebody pauses a host."""
    settings, rules = (place.collections / "demo" / name for name in ("settings.py", "crawl.rules"))
    settings.write_text(settings.read_text(encoding="utf-8") + _SETTINGS, encoding="utf-8")
    for name in ("handbook", "demo"):
        place.scrapy("crawl", name, capture=True)
    place.scrapy("sites", "demo", "--pause", "127.0.0.2", "--reason", "moves on Friday", capture=True)
    rules.write_text(slip + rules.read_text(encoding="utf-8"), encoding="utf-8")
    place.scrapy("recrawl", "demo", "--host", "127.0.0.1", capture=True)
    place.scrapy("crawl", "demo", capture=True)


@contextmanager
def _console(place: Workplace) -> Iterator[str]:
    """Serve the console; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    console = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "console", "--bind", f"127.0.0.1:{port}", "--search", "demo"],
        cwd=PROJECT,
        env={**os.environ, **place.variables()},
        stdout=subprocess.PIPE,
        text=True,
    )
    with console:
        try:
            assert console.stdout is not None
            console.stdout.readline()  # it is ready
            yield f"http://127.0.0.1:{port}"
        finally:
            console.terminate()


def _take(browser: Browser, picture: Picture, address: str, *, file: Path, hidden: str) -> None:
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height}, color_scheme="dark" if picture.is_dark else "light"
    )
    page = context.new_page()
    page.goto(address + picture.path)
    picture.before(page)
    page.wait_for_load_state("networkidle")
    page.evaluate(_HIDE_FOLDER, [hidden, "/srv/crawlspace"])
    page.screenshot(path=file)
    context.close()


def _pictures(start: str) -> Iterator[Picture]:
    yield Picture("overview", "/c/demo/", height=1300)
    yield Picture("explorer", "/c/demo/explorer", _wait_for("127.0.0.1"))
    yield Picture("urls", "/c/demo/explorer/urls?status=404", _wait_for("404"), height=640)
    yield Picture("url", f"/c/demo/url?url={start}handbook/", height=1100)
    yield Picture("rules", "/c/demo/rules", height=1100)
    yield Picture("plan", "/c/demo/rules", partial(_plan, rule=f"forbid prefix  {start}news/\n"), height=1300)
    yield Picture("deletions", "/c/demo/deletions")
    yield Picture("sites", "/c/demo/sites")
    yield Picture("runs", "/c/demo/runs", height=560)
    yield Picture("compared", "/c/demo/runs/compared?first=1&second=2", _wait_for("compared with"), height=640)
    yield Picture("sinks", "/c/demo/sinks", height=480)
    yield Picture("search", "/c/demo/search?q=pump")
    yield Picture("find", "/find?q=pump")
    yield Picture("phone", "/c/demo/", width=_PHONE, is_dark=True)
    yield Picture("collections", "/", height=480)  # last, when all documents have been counted


def _plan(page: Page, *, rule: str) -> None:
    """Edit the rules and ask what that would do, without saving it."""
    editor = page.locator("textarea").first
    editor.fill(rule + editor.input_value())
    page.get_by_role("button", name="Plan: what would it do?").click()
    page.locator("#plan").get_by_text("leave").first.wait_for()
    page.locator("#plan").scroll_into_view_if_needed()


def _wait_for(text: str) -> Callable[[Page], object]:
    return lambda page: page.get_by_text(text).first.wait_for()


if __name__ == "__main__":
    sys.exit(main())
