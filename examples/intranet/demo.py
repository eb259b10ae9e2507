"""A tour of crawlspace on a made-up intranet, in less than a minute and without a network.

    python -m examples.intranet.demo

Every command is shown as a user would type it, then run. `--serve` leaves the intranet up afterwards, with the console.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import threading
from pathlib import Path

from examples.intranet.server import Intranet
from examples.intranet.sites import DEFAULT_PORTS, Ports, free_ports
from examples.intranet.workplace import Workplace, shown

_REFUSED = "http://127.0.0.1:8941/people/anna-lindqvist/private/notes.html"
_LINES_SHOWN = 3
_LINE_WIDTH = 160


class StepFailed(Exception):
    """A step of the tour did not do what it is there to show; the message says which."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    place = Workplace(options.folder.resolve())
    try:
        with Intranet(free_ports()) as intranet:
            place.prepare(intranet.ports)
            _tour(place, intranet.ports)
            if options.serve:
                _serve(place)
    except (StepFailed, OSError) as trouble:
        print(f"\nThe demonstration stopped: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; run it again to go on where it was.")
        return 130
    return 0


def _serve(place: Workplace) -> None:
    """Leave the intranet up, with the console over its collections, until Ctrl-C."""
    print("\nThe intranet stays up, for more crawls and the console; Ctrl-C ends both.", flush=True)
    console = place.start("console", "--search", "demo")
    try:
        if console.wait():
            print("The console could not be served (above); the intranet stays up.", flush=True)
            threading.Event().wait()
    finally:
        console.terminate()
        console.wait()


def _tour(place: Workplace, ports: Ports) -> None:
    print("Halden Pumps has three web servers. This is what a crawl of them looks like.")
    if ports != DEFAULT_PORTS:
        print(f"(Port {DEFAULT_PORTS.home} or one of the next is taken, so they use {ports.home} and the next ones.)")
    print(f"To type the commands yourself, first: {place.export_line()}")

    _title(1, "Crawl. Rules, limits and start URLs are in the collection's folder")
    items = place.items("demo")
    _run(place, "crawl", "demo", "-O", shown(items))
    crawled = _count_lines(items)
    if crawled:
        print(f"\n{crawled} items exported.")
    else:
        print("\nNothing new to do: every page is known and none is due again yet. (rm -r the folder above to start over.)")

    _title(2, "What is indexed, and what was refused for which reason")
    _run(place, "status", "demo")

    _title(3, "Search. The page is in windows-1252, the index does not mind")
    _run(place, "search", "demo", "Überstunden", must_show="arbeitszeit.html")

    _title(4, "Why is this page not there?")
    _run(place, "explain", "demo", ports.rewrite(_REFUSED), must_show="crawl.rules:12", allowed=(0, 1))

    _title(5, f"The export, one document a line ({shown(items)})")
    if crawled:
        _show_export(items)
    else:
        print("Empty, because this run fetched nothing.")

    print(
        f"""
What next
  scrapy crawl handbook                                    one folder of the site only, six pages at most
  scrapy crawl open                                        no rules: see what keeps it out of the private network
  scrapy urls demo --status 404                            the URLs behind a number of the status
  scrapy lint demo                                         warnings about the rules
  edit {shown(place.collections / "demo" / "crawl.rules")}, then: scrapy explain demo URL   what a change would decide
The intranet is down now; `make demo SERVE=1` keeps it up for the crawls among these, and serves the console.
A collection of your own begins with: scrapy startcollection NAME URL. The errors above are there on purpose."""
    )


def _run(place: Workplace, *words: str, must_show: str | None = None, allowed: tuple[int, ...] = (0,)) -> None:
    """Show a command, run it, and make sure that it worked; `must_show` is a text its output has to hold."""
    command = shlex.join(("scrapy", *words))
    print(f"$ {command}\n", flush=True)
    try:
        done = place.scrapy(*words, capture=must_show is not None)
    except subprocess.TimeoutExpired as late:
        raise StepFailed(f"`{command}` was not done after {late.timeout:.0f} seconds") from late
    if done.stdout:
        print(done.stdout, end="", flush=True)
    if done.returncode not in allowed:
        if done.stderr:
            print(done.stderr, end="", file=sys.stderr)
        raise StepFailed(f"`{command}` ended with exit status {done.returncode}")
    if must_show is not None and must_show not in done.stdout:
        raise StepFailed(f"`{command}` does not show {must_show!r}")


def _show_export(items: Path) -> None:
    with items.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == _LINES_SHOWN:
                break
            text = json.dumps(json.loads(line), ensure_ascii=False)
            print(text if len(text) <= _LINE_WIDTH else text[: _LINE_WIDTH - 1] + "…")


def _count_lines(file: Path) -> int:
    try:
        with file.open(encoding="utf-8") as lines:
            return sum(1 for line in lines if line.strip())
    except FileNotFoundError as missing:
        raise StepFailed(f"the crawl has written no {shown(file)}") from missing


def _title(number: int, text: str) -> None:
    print(f"\n── {number}. {text} ".ljust(110, "─"), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.intranet.demo", description="A tour of crawlspace in a minute.")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(__file__).with_name("data"),
        help="where collections, store and exports are put (default: %(default)s)",
    )
    parser.add_argument("--serve", action="store_true", help="leave the intranet up until Ctrl-C")
    return parser


if __name__ == "__main__":
    sys.exit(main())
