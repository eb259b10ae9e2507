"""How well the main content is found, and written as Markdown: `python -m benchmarks.main_content [--pages FOLDER] [--misses]`.

The pages are 42 of 20 generators, from packages of documentation that Debian has; `apt-get` downloads these once (500 MB unpacked: a
folder is kept that `--pages` may name). `content_sets/pages.tsv` has, for each, its generator, package and path, the CSS selectors of its
main content and of what is no part of that. They were chosen by eye, page by page, and are read by lxml's own parser.

The lists of the second table include definition lists, which html2text and markdownify write as paragraphs, and relative links count for
them as for us. Rules and tables of generators were written with these pages at hand: F1 on generators that nobody has looked at will be
lower. `content_sets/blind_pages.tsv` has 40 others for that, "blind" in the table: of packages that the first set has not, 31 of
documentation and 9 of newspapers (test data of a package of Python, fetched by pip). They were drawn by a seed and marked before any
program was run on them. Their first F1 was 0.900 (trafilatura 0.889, readability-lxml 0.760); then menus with the names of content, and
lists of links beside what trafilatura finds, were left out because of some of them, so they are blind no more.

Measured beside are trafilatura and readability-lxml, html2text and markdownify, as far as they are installed. The packages change with
Debian's versions: a page that has moved is named and left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from lxml import etree, html
from markdown_it import MarkdownIt
from markdown_it.token import Token

from benchmarks.manuals import CACHE
from benchmarks.measure import BenchmarkFailed, Row, finish, say
from crawlspace.content.charset import decode
from crawlspace.content.main_content import main_elements, text_of
from crawlspace.content.markdown import markdown_of
from crawlspace.content.tree import page_tree

SETS = {"": "pages.tsv", ", blind": "blind_pages.tsv"}
"""Sets of marked pages, by what the table calls them."""
BASE = "http://docs.example.com/folder/page.html"
KINDS = ("headings", "lists", "tables", "code blocks", "links")
F1_TARGET = 0.92
FOUND_TARGET = 0.98
_WORD = re.compile(r"\w+")
_APT_GET = ("apt-get", "-q", "download")
_READER = MarkdownIt("commonmark").enable("table")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CODE = "pre|listing|xmp"

Parts = Mapping[str, Counter[str]]
"""By kind: the words of each part of it, of a link its URL."""


class Marked(NamedTuple):
    """A page with its main content as marked by hand."""

    generator: str
    package: str
    path: str
    text: str
    content: html.HtmlElement
    html: str


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the main content of pages, and its Markdown.")
    parser.add_argument("--pages", type=Path, default=CACHE, help="folder with a folder for each package")
    parser.add_argument("--misses", action="store_true", help="print the pages below the target, and what their Markdown lacks")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for label, name in SETS.items():
        marked = list(marked_pages(Path(__file__).with_name("content_sets") / name, options.pages))
        if not marked:
            raise BenchmarkFailed(f"none of the pages of {name} is there")
        rows += found_content(marked, label, misses=options.misses)
        rows += found_parts(marked, label, misses=options.misses)
    return rows


def found_content(marked: Sequence[Marked], label: str, *, misses: bool) -> Iterator[Row]:
    """Yield the mean F1 of each program: the harmonic mean of the shares of right words, of those found and of the page's."""
    for name, extract in available({"crawlspace": _ours, "trafilatura": _trafilatura, "readability": _readability}):
        scores: dict[str, list[float]] = defaultdict(list)
        for page in marked:
            score = f1(_WORD.findall(extract(page.html)), _WORD.findall(page.text))
            scores[page.generator].append(score)
            if misses and name == "crawlspace" and score < F1_TARGET:
                say(f"{score:.2f} {page.package} {page.path}")
        all_scores = [score for of_one in scores.values() for score in of_one]
        worst, least = min(((generator, mean(of_one)) for generator, of_one in scores.items()), key=lambda row: row[1])
        value = f"{mean(all_scores):.3f} on {len(all_scores)} pages; the worst {min(all_scores):.2f}, {worst} {least:.2f}"
        is_ours = name == "crawlspace"
        yield Row(
            "main_content",
            f"F1 of the words, {name}{label}",
            value,
            f">= {F1_TARGET}" if is_ours else "",
            mean(all_scores) >= F1_TARGET if is_ours else None,
        )


def found_parts(marked: Sequence[Marked], label: str, *, misses: bool) -> Iterator[Row]:
    """Yield, for each program and kind, how many parts of the marked content its Markdown has, and how many that the page has not."""
    programs = {
        "crawlspace": _our_markdown,
        "html2text": _html2text,
        "markdownify": _markdownify,
        "trafilatura": _trafilatura_markdown,
    }
    for name, write in available(programs):
        found: Counter[str] = Counter()
        wanted: Counter[str] = Counter()
        invented: Counter[str] = Counter()
        for page in marked:
            written = etree.tostring(page.content, encoding="unicode", method="html")
            of_page, of_markdown = parts_of_page(page.content), parts_of_markdown(write(written))
            for kind in KINDS:
                wanted[kind] += of_page[kind].total()
                found[kind] += (of_page[kind] & of_markdown[kind]).total()
                extra = of_markdown[kind] - of_page[kind]
                invented[kind] += extra.total()
                if misses and name == "crawlspace" and of_page[kind] != of_markdown[kind]:
                    missing = of_page[kind] - of_markdown[kind]
                    say(f"{page.path} {kind}: MISSING {_some(missing)} EXTRA {_some(extra)}")
        for kind in KINDS:
            share = found[kind] / max(wanted[kind], 1)
            value = f"{share:.3f} ({found[kind]} of {wanted[kind]}), invented {invented[kind]}"
            met = (share >= FOUND_TARGET and not invented[kind]) if name == "crawlspace" else None
            yield Row("markdown", f"{kind}, {name}{label}", value, f">= {FOUND_TARGET}, none" if met is not None else "", met)


def f1(found: Sequence[str], wanted: Sequence[str]) -> float:
    both = (Counter(found) & Counter(wanted)).total()
    return 2 * both / (len(found) + len(wanted)) if found or wanted else 1.0


# --- pages ---------------------------------------------------------------------------------------------------------


def marked_pages(pages: Path, cache: Path) -> Iterator[Marked]:
    """Yield the pages of a set with the content that was marked by hand in them."""
    for line in pages.read_text(encoding="utf-8").splitlines():
        generator, package, path, kept, dropped = line.split("\t")
        file = package_folder(package, cache) / path
        if not file.exists():
            say(f"{package} has no {path}: left out")
            continue
        body, _ = decode(file.read_bytes(), None, markup=True)
        content = marked_content(body, kept, dropped)
        text = " ".join(_block_text(content).split())
        if not text:
            raise BenchmarkFailed(f"{path}: nothing is marked by {kept}")
        yield Marked(generator, package, path, text, content, body)


def marked_content(body: str, kept: str, dropped: str) -> html.HtmlElement:
    """Return a `div` with the outermost elements that a selector names, without what the other one names."""
    tree = html.document_fromstring(re.sub(r"^\s*<\?xml[^>]*>", "", body), parser=html.HTMLParser(huge_tree=True))
    for node in [*tree.xpath("//script|//style|//noscript|//template|//head"), *(tree.cssselect(dropped) if dropped else ())]:
        node.drop_tree()
    etree.strip_tags(tree, etree.Comment, etree.ProcessingInstruction)
    for sign in tree.xpath("//a[starts-with(@href, '#')]"):
        if len(sign.text_content().strip()) <= 2 and not _WORD.search(sign.text_content()):
            sign.drop_tree()
    elements = tree.cssselect(kept)
    inside = set(elements)
    content = html.Element("div")
    for element in [element for element in elements if inside.isdisjoint(element.iterancestors())]:
        element.tail = None
        element.tag = "div" if element.tag == "body" else element.tag
        content.append(element)
    return content


def package_folder(package: str, cache: Path) -> Path:
    """Return the folder of a package, fetched and unpacked on first use: NAME is one of Debian, NAME==VERSION one of Python."""
    folder = cache / package
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    say(f"fetching {package}")
    name = package.partition("==")[0]
    is_python = name != package
    if not is_python and (shutil.which("apt-get") is None or shutil.which("dpkg") is None):
        raise BenchmarkFailed(f"{package} needs apt-get and dpkg")
    source = [sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--no-binary", name] if is_python else _APT_GET
    try:
        subprocess.run([*source, package], cwd=cache, check=True, stdout=subprocess.DEVNULL)
        archive = next(cache.glob(f"{package.replace('==', '-')}.tar.gz" if is_python else f"{package}_*.deb"))
        if is_python:
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
        else:
            subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)
    except subprocess.CalledProcessError as failed:
        raise BenchmarkFailed(f"{package} could not be fetched (apt-get update first?): {failed}") from failed
    archive.unlink()
    return folder


# --- parts of a page and of its Markdown ---------------------------------------------------------------------------


def parts_of_page(content: html.HtmlElement) -> Parts:
    """Return the parts of a page that Markdown can have.

    Tables: of at least two rows and columns, without tables or headings in them. Lists: those that are in no such table. Links:
    with text, to elsewhere or to a part, in no code block; each once. A `div.fragment` is Doxygen's code block.
    """
    tables = [table for table in content.xpath(".//table") if _is_data(table)]
    in_tables = {node for table in tables for node in table.iter()}
    codes = [
        node
        for node in content.xpath(".//pre|.//div[@class='fragment']")
        if node not in in_tables and node.text_content().strip()
    ]
    in_code = {node for code in codes for node in code.iter()}
    lists = [node for node in content.xpath(".//ul|.//ol|.//dl") if node not in in_tables and node.xpath(".//li|.//dt|.//dd")]
    headings = [node for node in content.iter(*_HEADINGS) if node not in in_tables and _key(_block_text(node))]
    links = [node for node in content.iter("a") if node not in in_code and node.get("href") and (_is_seen(node))]
    return {
        "headings": Counter(f"{node.tag[1]} {_key(_block_text(node))}" for node in headings),
        "lists": Counter(filter(None, (_key(_block_text(node))[:20] for node in lists))),
        "tables": Counter(filter(None, (_key(_block_text(table, without=("caption",))) for table in tables))),
        "code blocks": Counter(_key(_code_text(node)) for node in codes),
        "links": Counter({_address(node.get("href")) for node in links} - {""}),
    }


def parts_of_markdown(markdown: str) -> Parts:
    """Return the parts of Markdown as a parser for CommonMark and tables reads them."""
    parts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    tokens = _READER.parse(markdown)
    links: set[str] = set()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            parts["headings"][f"{token.tag[1]} {_key(_token_text(tokens[at + 1]))}"] += 1
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            parts["lists"][_first_of(tokens[at + 1 :])] += 1
        elif token.type == "table_open":
            end = next(number for number in range(at, len(tokens)) if tokens[number].type == "table_close")
            parts["tables"][_key(" ".join(_token_text(inner) for inner in tokens[at:end]))] += 1
        elif token.type in ("fence", "code_block"):
            parts["code blocks"][_key(token.content)] += 1
        links |= {_address(str(child.attrs["href"])) for child in token.children or () if child.type == "link_open"}
    parts["links"] = Counter(links - {""})
    return parts


def _is_data(table: html.HtmlElement) -> bool:
    rows = table.xpath("./tr|./thead/tr|./tbody/tr|./tfoot/tr")
    cells = max((sum(int(cell.get("colspan") or 1) for cell in row.xpath("./td|./th")) for row in rows), default=0)
    return len(rows) > 1 and cells > 1 and not table.xpath(".//table|.//h1|.//h2|.//h3|.//h4|.//h5|.//h6")


def _is_seen(link: html.HtmlElement) -> bool:
    return bool(link.text_content().strip()) or bool(link.xpath(".//img[@src]"))


def _block_text(element: html.HtmlElement, *, without: Iterable[str] = ()) -> str:
    """Return the text of an element with spaces around its blocks."""
    parts: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            parts += [" " if node.tag not in _INLINE else "", (node.text or "") if node.tag not in without else ""]
        else:
            parts += [" " if node.tag not in _INLINE else "", (node.tail or "") if node is not element else ""]
    return "".join(parts)


_INLINE = frozenset(
    "a abbr acronym b big cite code del dfn em font i ins kbd mark q s samp small span strong sub sup tt u var".split()
)


def _first_of(tokens: Sequence[Token]) -> str:
    """Return the first words of a list."""
    text = ""
    depth = 0
    for token in tokens:
        depth += token.nesting
        text += " " + (token.content if token.type in ("fence", "code_block") else _token_text(token))
        if depth < 0 or len(_key(text)) >= 20:
            break
    return _key(text)[:20]


def _code_text(node: html.HtmlElement) -> str:
    for number in node.xpath(".//span[contains(concat(' ', @class, ' '), ' lineno ')]"):
        number.drop_tree()
    return str(node.text_content())


def _token_text(token: Token) -> str:
    return "".join(
        child.content
        if child.type in ("text", "text_special", "code_inline")
        else " "
        if child.type in ("softbreak", "hardbreak")
        else ""
        for child in token.children or ()
    )


def _key(text: str) -> str:
    """Return the letters and digits of a text: programs differ in spaces and signs."""
    return "".join(_WORD.findall(text))


def _address(href: str) -> str:
    """Return a link as a program may write it, made comparable: absolute, without escapes."""
    url = href.strip()
    if url.lower().startswith("javascript:"):
        return ""
    parts = urlsplit(urljoin(BASE, url))
    return unquote(parts._replace(path=parts.path or "/").geturl() if parts.netloc else parts.geturl())


def _some(parts: Counter[str]) -> list[str]:
    return [part[:60] for part in list(parts)[:3]]


# --- programs ------------------------------------------------------------------------------------------------------


def available(programs: Mapping[str, Callable[[str], str]]) -> Iterator[tuple[str, Callable[[str], str]]]:
    for name, program in programs.items():
        if name == "crawlspace" or find_spec(name) is not None:
            yield name, program
        else:
            say(f"{name} is not installed: left out")


def _ours(body: str) -> str:
    return text_of(main_elements(page_tree(body)))


def _our_markdown(body: str) -> str:
    return markdown_of([page_tree(body).find("body")], BASE)


def _trafilatura(body: str) -> str:
    return _library("trafilatura").extract(body, include_comments=False) or ""


def _readability(body: str) -> str:
    summary = _library("readability").Document(re.sub(r"^\s*<\?xml[^>]*>", "", body)).summary()
    return _block_text(html.document_fromstring(summary))


def _html2text(body: str) -> str:
    converter = _library("html2text").HTML2Text(bodywidth=0)
    return str(converter.handle(body))


def _markdownify(body: str) -> str:
    return str(_library("markdownify").markdownify(body, heading_style="ATX"))


def _trafilatura_markdown(body: str) -> str:
    found = _library("trafilatura").extract(
        body, output_format="markdown", include_links=True, include_tables=True, include_comments=False, favor_recall=True
    )
    return found or ""


def _library(name: str) -> Any:
    return import_module(name)


if __name__ == "__main__":
    sys.exit(finish(main))
