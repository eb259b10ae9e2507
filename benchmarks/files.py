"""Files in a crawl: what hanging, crashing and exploding ones cost the pages; PDFs beside pdftotext; the memory of a large one.

python -m benchmarks.files --pages 5000
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Row, finish, say
from benchmarks.serve import PageServer, Reply
from crawlspace.content.mime import DOCX
from tests.unit.content.documents.made_files import docx, para, pdf, zipped

BENCHMARK = "files"
TIMEOUT_S = 2
_A_HUNDRED = 100
_CHILDREN = 8
_WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon".split()
_PDFS, _PDF_PAGES, _LINES = 100, 30, 45
_LARGE = 90 * 1024 * 1024
_MEGABYTE = 1024
_PYTHON = f"{sys.executable} -c"


class Crawled(NamedTuple):
    """Pages a second, the peak of the crawl's own memory, and for how long each readable file waited."""

    pages_per_s: float
    wall_s: float
    peak_mb: float
    waits_s: list[float]


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Crawl pages with files among them.")
    parser.add_argument("--pages", type=int, default=5_000)
    options = parser.parse_args(arguments)
    return [*_bad_files(options.pages), *_beside_pdftotext(), *_large_file()]


def _bad_files(pages: int) -> list[Row]:
    bodies = {
        "hang": (200, b"application/x-hang", b"x"),
        "crash": (200, b"application/x-crash", b"x"),
        "explode": (200, DOCX.encode(), zipped({"word/document.xml": b"<document>" + b" " * 700_000_000})),
    }

    def answer(_: str, path: str) -> Reply:
        if path.startswith("/p/"):
            return (200, b"text/html", _page(int(path[3:]), pages, files=with_files))
        kind, _, number = path.rpartition("/")[2].removesuffix(".pdf").partition("-")
        if kind == "good":
            return (200, DOCX.encode(), docx(para(f"file number {number}")))
        status, declared, body = bodies.get(kind, (404, b"text/html", b""))
        return (status, declared, body + number.encode() if kind in ("hang", "crash") else body)

    settings = {
        "CRAWLSPACE_FILE_TIMEOUT": TIMEOUT_S,
        "CRAWLSPACE_CONVERTERS": {
            "application/x-hang": f"{_PYTHON} 'import time; time.sleep(60)' {{file}}",
            "application/x-crash": f"{_PYTHON} 'import os; os.kill(os.getppid(), 11)' {{file}}",
        },
    }
    with_files = False
    without = _crawl(answer, settings, pages=pages)
    with_files = True
    among = _crawl(answer, settings, pages=pages)
    ratio = among.pages_per_s / without.pages_per_s
    wait = median(among.waits_s)
    more = among.peak_mb - without.peak_mb
    number = pages // _A_HUNDRED
    return [
        Row(BENCHMARK, f"{pages} pages: pages/s", f"{without.pages_per_s:.0f}/s"),
        Row(BENCHMARK, f"with {number} hanging, crashing, exploding and readable files each", f"{among.pages_per_s:.0f}/s"),
        Row(BENCHMARK, "pages/s, with them against without", f"{ratio:.2f} times", ">= 0.9", ratio >= 0.9),
        Row(BENCHMARK, "until the last of the files was read", f"{among.wall_s:.0f} s"),
        Row(
            BENCHMARK,
            "wait of the readable files: median, longest",
            f"{wait:.0f} s, {max(among.waits_s):.0f} s",
            "< 10 s",
            wait < 10,
        ),
        Row(BENCHMARK, "memory of the crawl, with them against without", f"{more:+.0f} MB", "<= 50 MB", more <= 50),
    ]


def _beside_pdftotext() -> list[Row]:
    if shutil.which("pdftotext") is None:
        return [Row(BENCHMARK, "PDFs beside pdftotext", "there is no pdftotext")]
    bodies = [pdf([_text(number * _PDF_PAGES + page) for page in range(_PDF_PAGES)]) for number in range(_PDFS)]

    def answer(_: str, path: str) -> Reply:
        if path == "/p/0":
            links = "".join(f'<a href="/f/{number}.pdf">x</a>' for number in range(_PDFS))
            return (200, b"text/html", f"<title>PDFs</title>{links}".encode())
        name = path.rpartition("/")[2].removesuffix(".pdf")
        return (200, b"application/pdf", bodies[int(name)]) if name.isdecimal() else (404, b"text/html", b"")

    with tempfile.TemporaryDirectory(prefix="bench-files-") as temp:
        for number, body in enumerate(bodies):
            Path(temp, f"{number}.pdf").write_bytes(body)
        began = time.perf_counter()
        for number in range(_PDFS):
            subprocess.run(["pdftotext", f"{temp}/{number}.pdf", f"{temp}/{number}.txt"], check=True)
        other_s = time.perf_counter() - began
    ours_s = _crawl(answer, {}, pages=1, documents=_PDFS + 1).wall_s
    start_s = _crawl(lambda *_: (200, b"text/html", b"<title>A page</title>"), {}, pages=1).wall_s
    number = _PDFS * _PDF_PAGES
    ratio = other_s / (ours_s - start_s)
    return [
        Row(BENCHMARK, f"{_PDFS} PDFs of {_PDF_PAGES} pages, pdftotext: pages/s", f"{number / other_s:.0f}/s"),
        Row(
            BENCHMARK,
            "the whole crawl of them: pages/s, with its start and without",
            f"{number / ours_s:.0f}/s, {number / (ours_s - start_s):.0f}/s",
        ),
        Row(BENCHMARK, "pages/s without the start against pdftotext", f"{ratio:.2f} times", ">= 0.5", ratio >= 0.5),
    ]


def _large_file() -> list[Row]:
    small = pdf(["A few words"])
    large = small + b"%" + bytes(_LARGE - len(small))
    body = small

    def answer(_: str, path: str) -> Reply:
        if path == "/p/0":
            return (200, b"text/html", b'<title>Home</title><a href="/f/a.pdf">x</a>')
        return (200, b"application/pdf", body) if path == "/f/a.pdf" else (404, b"text/html", b"")

    before_mb = _crawl(answer, {}, pages=1, documents=2).peak_mb
    body = large
    more = _crawl(answer, {}, pages=1, documents=2).peak_mb - before_mb
    return [Row(BENCHMARK, "memory of the crawl, a file of 90 MB against one of 1 KB", f"{more:+.0f} MB", "<= 20 MB", more <= 20)]


def _crawl(
    answer: Callable[[str, str], Reply], settings: Mapping[str, object], *, pages: int, documents: int | None = None
) -> Crawled:
    with tempfile.TemporaryDirectory(prefix="bench-files-") as temp, contextlib.ExitStack() as stack:
        server = stack.enter_context(PageServer(answer))
        origin = server.origins[0]
        memory = Path(temp, "memory")
        collection = BenchCollection(Path(temp, "collection"))
        collection.write(
            start_urls=[f"{origin}/p/0"],
            rules=f"allow domain {origin.removeprefix('http://')}\nforbid domain *\n",
            settings={
                **settings,
                "ROBOTSTXT_OBEY": False,
                "CRAWLSPACE_ON_FINISH": ["sh", "-c", f"grep VmHWM /proc/$PPID/status > {memory}"],
            },
        )
        offset = time.time() - time.monotonic()
        cost = collection.crawl()
        say(f"{cost.wall_s:.1f} s")
        states = {state.url.removeprefix(origin): state for state in collection.states()}
        done = sum(path.startswith("/p/") and state.status == 200 for path, state in states.items())
        if done != pages or (documents is not None and len(collection.index_urls()) != documents):
            raise BenchmarkFailed(f"{done} pages of {pages} are done, {len(collection.index_urls())} are indexed")
        asked = {request.path: request.at for request in server.requests}
        of_pages = [at for path, at in asked.items() if path.startswith("/p/")]
        waits = [(states[path].fetched_at or 0) - asked[path] - offset for path in asked if "good" in path]
        took = max(of_pages) - min(of_pages)
        peak_mb = int(memory.read_text(encoding="ascii").split()[1]) / _MEGABYTE
        return Crawled(pages / took if took else 0.0, cost.wall_s, peak_mb, waits)


def _page(number: int, pages: int, *, files: bool) -> bytes:
    targets = [n for n in range(number * _CHILDREN + 1, number * _CHILDREN + _CHILDREN + 1) if n < pages]
    targets += [(number * 7 + n * 131) % pages for n in range(30 - len(targets))]
    links = "".join(f'<a href="/p/{n}">page {n}</a> ' for n in targets)
    if files and number % _A_HUNDRED == 0:
        links += "".join(f'<a href="/f/{kind}-{number}.pdf">{kind}</a> ' for kind in ("hang", "crash", "explode", "good"))
    text = f"number {number} " + " ".join(_WORDS[(number + n) % len(_WORDS)] for n in range(1_000))
    return f"<!doctype html><title>Page {number}</title><p>{text}</p>{links}".encode()


def _text(seed: int) -> str:
    """Return the lines of a page, as the operators that show them."""
    lines = [" ".join(_WORDS[(seed + line * 3 + n) % len(_WORDS)] + str(n) for n in range(12)) for line in range(_LINES)]
    return ") Tj 0 -14 Td (".join(lines)


if __name__ == "__main__":
    sys.exit(finish(main))
