"""A generated static web site on disk: pages of 8 KB with 30 links, and some exact duplicates.

    python -m benchmarks.site FOLDER --pages 20000

The links are those of a real site: the same navigation on every page, a tree through which every page can be reached, and
references across. The same seed gives the same site.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

START_PATH = "/index.html"
_PAGE_BYTES = 8 * 1024
_LINKS = 30
_CHILDREN = 8
_NAVIGATION = 10
_A_FOLDER = 500
_WORDS = 4000
_SYLLABLES = [consonant + vowel for consonant in "bdgklmnprst" for vowel in "aeiou"]


@dataclass(frozen=True, slots=True)
class StaticSite:
    """A generated site. `duplicates` of its `pages` are byte for byte copies of others."""

    folder: Path
    pages: int
    duplicates: int

    @property
    def documents(self) -> int:
        """The number of pages in an index without duplicates."""
        return self.pages - self.duplicates


def path_of(number: int) -> str:
    """Return the path of a page; the first one is the start page."""
    return START_PATH if number == 0 else f"/section-{number // _A_FOLDER:03d}/page-{number:06d}.html"


def children_of(number: int, pages: int) -> range:
    """Return the pages one step down the tree."""
    return range(min(number * _CHILDREN + 1, pages), min(number * _CHILDREN + _CHILDREN + 1, pages))


def generate(folder: Path, *, pages: int = 20_000, duplicates: float = 0.02, seed: int = 1) -> StaticSite:
    """Write the site below `folder` and return it. An existing site is not written again."""
    copies = int(pages * duplicates)
    site = StaticSite(folder, pages, copies)
    stamp = folder / ".complete"
    label = f"{pages} {copies} {seed}"
    if stamp.exists() and stamp.read_text() == label:
        return site
    chance = random.Random(seed)
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(_WORDS)]
    weights = [1 / (rank + 2) for rank in range(_WORDS)]
    stock = chance.choices(words, weights, k=200_000)  # one long text, of which pages are slices, for speed
    leaves = [number for number in range(1, pages) if not children_of(number, pages)]
    copied = set(chance.sample(leaves, copies)) if copies else set()
    originals = [number for number in leaves if number not in copied]
    for number in range(pages):
        if number not in copied:
            _write(folder, number, _page(number, pages, chance, stock))
    for number in sorted(copied):
        _write(folder, number, _file(folder, chance.choice(originals)).read_bytes())
    stamp.write_text(label)
    return site


def _page(number: int, pages: int, chance: random.Random, stock: list[str]) -> bytes:
    targets = [n * pages // _NAVIGATION for n in range(_NAVIGATION)]
    below = list(children_of(number, pages))
    across = [chance.randrange(pages) for _ in range(_LINKS - _NAVIGATION - len(below))]
    at = chance.randrange(len(stock) - 1500)
    text = stock[at : at + 1500]
    title = f"{' '.join(text[:5]).capitalize()} {number}"
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n',
        f'<meta name="description" content="{" ".join(text[5:25])}"></head><body>\n<nav>',
        *(f'<a href="{path_of(target)}">{text[30 + n]}</a>\n' for n, target in enumerate(targets)),
        f"</nav>\n<h1>{title}</h1>\n",
    ]
    links = [f'<a href="{path_of(target)}">{stock[(at + target) % len(stock)]}</a>' for target in (*below, *across)]
    size = sum(map(len, parts)) + sum(map(len, links))
    word = 40
    paragraph = 0
    while size < _PAGE_BYTES - 100:
        if paragraph % 4 == 0:
            heading = f"<h2>{' '.join(text[word : word + 4])}</h2>\n"
            parts.append(heading)
            size += len(heading)
        block = text[word + 4 : word + 54]
        word += 54
        link = links.pop() if links else ""
        sentence = f"<p>{' '.join(block)}. {link}</p>\n"
        size += len(sentence) - len(link)
        parts.append(sentence)
        paragraph += 1
    parts.append(f"<ul>{''.join(f'<li>{link}' for link in links)}</ul>\n</body></html>\n")
    return "".join(parts).encode()


def _file(folder: Path, number: int) -> Path:
    return folder / path_of(number).lstrip("/")


def _write(folder: Path, number: int, content: bytes) -> None:
    file = _file(folder, number)
    if number % _A_FOLDER == 0 or not file.parent.is_dir():
        file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a made-up web site.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    site = generate(options.folder, pages=options.pages, seed=options.seed)
    print(f"{site.pages} pages, {site.duplicates} of them duplicates, in {site.folder}")


if __name__ == "__main__":
    main()
