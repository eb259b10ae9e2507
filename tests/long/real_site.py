"""A whole crawl of a real site, compared with an independent walk over the same files.

    python -m tests.long.real_site [--folder FOLDER_WITH_HTML]

The site is the Python documentation as Debian packages it (about 500 pages by many authors); `apt-get` downloads it once.
The walk is the standard library's HTML parser and `urljoin`: it shares no code with the crawler.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, deque
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from benchmarks.collection import BenchCollection
from benchmarks.manuals import CACHE, PYTHON, folder_of
from benchmarks.measure import Row, finish, say
from benchmarks.serve import folder_server

_PAGE_SUFFIXES = ("html", "htm", "txt", "xml", "py")
"""Extensions of documents in the site; everything else it links to is an image, a style, a script or an archive.

Programs in Python are sent without a type of their own, and are text by their first bytes.
"""
_SHOWN = 20


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Crawl a real site and compare with an independent walk.")
    parser.add_argument("--folder", type=Path, help=f"folder of HTML files (default: Debian's {PYTHON.package})")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where the package is kept")
    options = parser.parse_args(arguments)
    folder = options.folder or folder_of(PYTHON, options.cache)
    walked = walk(folder)
    with tempfile.TemporaryDirectory(prefix="bench-real-") as temp, folder_server(folder) as origin:
        collection = BenchCollection(Path(temp))
        collection.write(
            start_urls=[f"{origin}/index.html"],
            rules=f"allow domain {origin.removeprefix('http://')}\nforbid domain *\n",
            settings={},
        )
        cost = collection.crawl()
        states = collection.states()
        indexed = len(collection.index_urls())
    documents = {state.url.removeprefix(origin) for state in states if state.status == 200}
    missing, extra = walked - documents, documents - walked
    for label, paths in (("MISSING", missing), ("EXTRA", extra)):
        for path in sorted(paths)[:_SHOWN]:
            say(f"{label:<8}{path}")
    others = Counter(str(state.status) for state in states if state.status != 200)
    name = "real site"
    return [
        Row(
            name,
            "pages of the walk missing from the crawl, and the other way round",
            f"{len(missing)} and {len(extra)} of {len(walked)}",
            "0 and 0",
            not missing and not extra,
        ),
        Row(name, "documents indexed, duplicates of them", f"{indexed}, {len(documents) - indexed}"),
        Row(name, "other answers by status", ", ".join(f"{status}: {n}" for status, n in sorted(others.items())) or "none"),
        Row(
            name, "pages/s, CPU, peak memory", f"{cost.pages_per_s(len(states)):.0f}/s, {cost.cpu_s:.1f} s, {cost.peak_mb:.0f} MB"
        ),
    ]


def walk(folder: Path) -> set[str]:
    """Return the paths (and queries) of all documents that links lead to from `/index.html`."""
    origin = "http://site.invalid"
    root = folder.resolve()
    found: set[str] = set()
    seen = {"/index.html"}
    waiting = deque(seen)
    while waiting:
        path = waiting.popleft()
        file = _file_of(root, path)
        if file is None:
            continue
        found.add(path)
        if file.suffix not in (".html", ".htm"):
            continue
        links = _Links()
        links.feed(file.read_text(encoding="utf-8", errors="replace"))
        base = urljoin(origin + path, links.base or "")
        for href in links.found:
            target = _target(base, href, origin)
            if target is not None and target not in seen:
                seen.add(target)
                waiting.append(target)
    return found


def _target(base: str, href: str, origin: str) -> str | None:
    """Return the path of a link in normal form; None for one that leads elsewhere or to no document."""
    try:
        parts = urlsplit(urldefrag(urljoin(base, href.strip())).url)
    except ValueError:
        return None
    if f"{parts.scheme}://{parts.netloc}" != origin:
        return None
    path = quote(unquote(parts.path), safe="/:@!$&'()*+,;=~-._") or "/"
    name = path.rsplit("/", 1)[1]
    if "." in name and name.rsplit(".", 1)[1].lower() not in _PAGE_SUFFIXES:
        return None
    return f"{path}?{parts.query}" if parts.query else path


def _file_of(root: Path, path: str) -> Path | None:
    file = root / unquote(path.split("?", 1)[0]).lstrip("/")
    if path.split("?", 1)[0].endswith("/"):
        file /= "index.html"
    try:
        return file if file.is_file() else None
    except OSError:
        return None


class _Links(HTMLParser):
    """Collects the links that a crawler follows: anchors, areas, frames, and link elements for neighbouring pages."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        rel = values.get("rel", "").lower().split()
        if tag == "base" and self.base is None:
            self.base = values.get("href")
        elif "nofollow" in rel:
            return
        elif tag in ("a", "area") and "href" in values:
            self.found.append(values["href"])
        elif tag in ("frame", "iframe") and "src" in values:
            self.found.append(values["src"])
        elif tag == "link" and {"next", "prev", "alternate", "canonical"} & set(rel) and "href" in values:
            self.found.append(values["href"])


if __name__ == "__main__":
    sys.exit(finish(main))
