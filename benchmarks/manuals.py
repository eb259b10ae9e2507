"""Manuals that Debian packages, as documents of a search: fetched once with `apt-get`, read by the project's own parser."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from urllib.parse import urldefrag

from lxml import html

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


# --- search queries ------------------------------------------------------------------------------------------------


FILE = Path(__file__).with_name("search_sets") / "queries.tsv"
DRAWN = 120

_NUMBER = re.compile(
    r"^(?:Chapter|Appendix|第|附录|付録|부록|[0-9]+장)?\s*(?:[0-9]+|[A-Z](?=[.\s]))(?:\.[0-9]+)*\s*(?:章|장)?[.:]?\s+"
)
_IN_MODULE = re.compile(r"(\w+)\(\) \(in module ([\w.]+)\)")

SOURCES = {
    "apache-en": {"titles": ("sitemap.html", "//li/a"), "directives": ("mod/directives.html", "//li/a")},
    "apache-de": {"titles": ("sitemap.html", "//li/a"), "directives": ("mod/directives.html", "//li/a")},
    "python-en": {
        "titles": ("contents.html", "//li/a"),
        "modules": ("py-modindex.html", "//td/a"),
        "functions": ("genindex-all.html", "//li/a"),
    },
    "handbook-ja": {"titles": ("index.html", "//dt//a")},
    "handbook-zh": {"titles": ("index.html", "//dt//a")},
}
"""Of each manual: the kinds of its queries, each with the page that has them as links."""


def main() -> None:
    FILE.parent.mkdir(exist_ok=True)
    with FILE.open("w", encoding="utf-8") as out:
        for manual in MANUALS:
            folder = folder_of(manual)
            for kind, (page, links) in SOURCES.get(manual.name, {}).items():
                found = sorted(_with_one_page(_links(folder, page, links, kind)))
                if manual.name == "apache-de":  # two thirds of its pages are in English
                    found = [(query, path) for query, path in found if _language(folder / path) == "de"]
                random.Random(1).shuffle(found)
                for number, (query, path) in enumerate(found[:DRAWN]):
                    if manual.name == "apache-en" and _language(folder / path) != "en":
                        continue  # a few pages of the package are in Portuguese, and have no word of the query
                    out.write(f"{manual.name}\t{kind}\t{('open', 'kept')[number % 2]}\t{query}\t{path}\n")


def _links(folder: Path, page: str, links: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield text and target of the links that lead to a page of the manual."""
    for link in html.parse(str(folder / page), html.HTMLParser(encoding=_encoding(folder / page))).xpath(links):
        path = urldefrag(link.get("href") or "").url
        target = Path(
            normpath((folder / page).parent / path)
        )  # not resolved: a page that nobody has translated is a symbolic link
        text = _NUMBER.sub("", " ".join(link.text_content().split())).replace('"', "").replace("*", "")
        if kind == "functions":
            match = _IN_MODULE.fullmatch(text)
            text = f"{match[2]}.{match[1]}" if match else ""
        if (
            "//" in path
            or not path
            or not target.is_file()
            or not text
            or re.search(r"(^|\s)-", text)
            or not target.is_relative_to(folder)
        ):
            continue
        yield text, target.relative_to(folder).as_posix()


def _with_one_page(links: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    targets = defaultdict(set)
    spellings: dict[str, str] = {}
    for text, path in links:
        targets[text.casefold()].add(path)
        spellings.setdefault(text.casefold(), text)
    for folded, paths in targets.items():
        if len(paths) == 1:
            yield spellings[folded], paths.pop()


def _encoding(file: Path) -> str:
    return "iso-8859-1" if b"charset=ISO-8859-1" in file.read_bytes()[:2000] else "utf-8"


def _language(file: Path) -> str:
    return str(html.parse(str(file)).getroot().get("lang", ""))


if __name__ == "__main__":
    main()
