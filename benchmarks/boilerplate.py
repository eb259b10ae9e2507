"""What learned boilerplate leaves out of three whole manuals: `python -m benchmarks.boilerplate [--misses]`.

What should go are texts that are on every page, what should stay are those on few: both are told by the text nodes of lxml's own parser, which
know nothing of blocks and their places. A text counts by its words.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lxml import etree, html

from benchmarks.manuals import CACHE, MANUALS, PYTHON, Manual, folder_of
from benchmarks.measure import BenchmarkFailed, Row, finish
from crawlspace.content.boilerplate import BlockCounter, leave_out
from crawlspace.content.charset import decode
from crawlspace.content.tree import page_tree
from crawlspace.runtime.session.boilerplate import PAGES_READ

SITES = (PYTHON, MANUALS[0], Manual("policy", "debian-policy", "usr/share/doc/debian-policy/policy.html"))
GONE_TARGET, LOST_TARGET = 0.95, 0.005
_FEW = 0.1
"""Share of pages that have a text of a page's own."""
_NOT_SHOWN = frozenset({"script", "style", "title", "noscript", "template"})


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure what learned boilerplate leaves out.")
    parser.add_argument("--pages", type=Path, default=CACHE, help="folder with a folder for each package")
    parser.add_argument("--misses", action="store_true", help="print the texts that stay and should go, and those that are lost")
    options = parser.parse_args(arguments)
    return [row for manual in SITES for row in _measured(manual, options.pages, misses=options.misses)]


def _measured(manual: Manual, cache: Path, *, misses: bool) -> Iterator[Row]:
    paths = sorted(folder_of(manual, cache).rglob("*.html"))
    if not paths:
        raise BenchmarkFailed(f"{manual.package} has no pages at {manual.html}")
    pages = [decode(path.read_bytes(), None, markup=True)[0] for path in paths]
    step = max(1, len(pages) // PAGES_READ)
    counter = BlockCounter()
    for page in pages[::step][:PAGES_READ]:
        counter.add(page_tree(page))
    blocks = counter.learned().blocks
    before = [_texts(html.document_fromstring(page)) for page in pages]
    on = Counter(text for texts in before for text in texts)
    least = {text: min(texts[text] for texts in before) for text, number in on.items() if number == len(pages)}
    gone, every, lost, own = 0, 0, 0, 0
    stayed, missing = Counter[str](), Counter[str]()
    for page, texts in zip(pages, before, strict=True):
        root = page_tree(page)
        leave_out(root, blocks)
        after = _texts(root)
        for text, number in texts.items():
            words = len(text.split())
            if on[text] == len(pages):
                most = least[text]  # a page may have it in its content, too
                every += words * most
                gone += words * min(number - min(after[text], number), most)
                stayed[text] += most - min(number - min(after[text], number), most)
            elif on[text] <= _FEW * len(pages):
                own += words * number
                lost += words * (number - min(after[text], number))
                missing[text] += number - min(after[text], number)
    if misses:
        for what, found in (("stays", stayed), ("is lost", missing)):
            for text, number in found.most_common(20):
                if number:
                    sys.stderr.write(f"{manual.name}: {what} {number:,} times: {text[:100]}\n")
    name = f"{manual.name}, {len(pages):,} pages, {len(blocks)} blocks"
    share = gone / every if every else 1.0
    yield Row(
        "boilerplate", f"{name}: of texts on every page gone", f"{share:.3f}", f"at least {GONE_TARGET}", share >= GONE_TARGET
    )
    share = lost / own
    yield Row("boilerplate", f"{name}: of a page's own lost", f"{share:.4f}", f"at most {LOST_TARGET}", share <= LOST_TARGET)


def _texts(root: html.HtmlElement) -> Counter[str]:
    """Return the shown text nodes of a page, with their numbers."""
    found = Counter[str]()
    body = root.find("body")
    for event, node in etree.iterwalk(root if body is None else body, events=("start", "end")):
        if not isinstance(node.tag, str) or node.tag in _NOT_SHOWN:
            written = node.tail if event == "end" else None
        else:
            written = node.text if event == "start" else node.tail
        text = " ".join((written or "").split())
        if text:
            found[text] += 1
    return found


if __name__ == "__main__":
    sys.exit(finish(main))
