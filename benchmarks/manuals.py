"""Manuals that Debian packages, as documents of a search: fetched once with `apt-get`, read by the project's own parser."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import BenchmarkFailed, say
from crawlspace.content.html import extract
from crawlspace.document import Document

CACHE = Path.home() / ".cache" / "crawlspace-benchmarks"
ORIGIN = "http://manuals.example.com"


@dataclass(frozen=True, slots=True)
class Manual:
    """A manual of one language; `html` is its folder in the package."""

    name: str
    package: str
    html: str


_APACHE = "usr/share/doc/apache2-doc/manual"
_HANDBOOK = "usr/share/doc/debian-handbook/html"
PYTHON = Manual("python-en", "python3.11-doc", "usr/share/doc/python3.11/html")
MANUALS = (
    Manual("apache-en", "apache2-doc", f"{_APACHE}/en"),
    Manual("apache-de", "apache2-doc", f"{_APACHE}/de"),
    PYTHON,
    Manual("handbook-ja", "debian-handbook", f"{_HANDBOOK}/ja-JP"),
    Manual("handbook-zh", "debian-handbook", f"{_HANDBOOK}/zh-CN"),
    Manual("apache-ko", "apache2-doc", f"{_APACHE}/ko"),
)


def folder_of(manual: Manual, cache: Path = CACHE) -> Path:
    """Return the folder with a manual's pages, fetched and unpacked on first use."""
    unpacked = cache / manual.package
    html = unpacked / manual.html
    if (html / "index.html").exists():
        return html
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise BenchmarkFailed(f"{manual.package} needs apt-get and dpkg")
    cache.mkdir(parents=True, exist_ok=True)
    say(f"fetching {manual.package}")
    try:
        subprocess.run(["apt-get", "-q", "download", manual.package], cwd=cache, check=True, stdout=subprocess.DEVNULL)
        package = next(cache.glob(f"{manual.package}_*.deb"))
        subprocess.run(["dpkg", "-x", str(package), str(unpacked)], check=True)
    except subprocess.CalledProcessError as failed:
        raise BenchmarkFailed(f"{manual.package} could not be fetched (apt-get update first?): {failed}") from failed
    package.unlink()
    return html


def pages(manual: Manual, cache: Path = CACHE) -> Iterator[tuple[str, bytes]]:
    """Yield path and body of each page of a manual, sorted by path."""
    folder = folder_of(manual, cache)
    for file in sorted(folder.rglob("*.html")):
        yield file.relative_to(folder).as_posix(), file.read_bytes()


def documents(manual: Manual, cache: Path = CACHE) -> Iterator[Document]:
    """Yield the pages of a manual as the crawl gives them to the index."""
    for path, body in pages(manual, cache):
        url = url_of(manual, path)
        page = extract(body, url=url)
        yield Document(
            url,
            title=page.title,
            description=page.description,
            language=page.language,
            text=page.text,
            headings=list(page.headings),
            content_type="text/html",
        )


def url_of(manual: Manual, path: str) -> str:
    return f"{ORIGIN}/{manual.name}/{path}"
