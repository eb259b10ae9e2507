"""How many fields of pages are right: `python -m benchmarks.page_fields [--pages FOLDER] [--wrong]`.

The pages are 273 of packages of documentation that Debian has, of 33 generators, and 27 of newspapers and portals that a package of Python
has as data of its tests; `apt-get` and `pip` download them once (a folder is kept that `--pages` may name). `content_sets/fields.tsv` has,
for each, its generator, package and path, and its title, language, description, author and dates. `python -m benchmarks.declared_fields`
wrote it with another parser; each difference from what our parser finds was then decided by eye, page by page.

A field that a page has not counts for nothing, and is wrong where our parser invents one. The language is compared twice: with that of
most of the text, and, in the row after it, with none too where the text is mixed or only has names, as the documentation promises.

The packages change with Debian's versions: a page that has moved is named and left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.declared_fields import AND, FIELDS, OR_NONE, VALUES
from benchmarks.main_content import package_folder
from benchmarks.manuals import CACHE
from benchmarks.measure import BenchmarkFailed, Row, finish, say
from crawlspace.content.html import extract
from crawlspace.content.language import language_of
from crawlspace.document import values_of

TARGET = 0.97


class Wrong(NamedTuple):
    """A field that differs from what is right."""

    field: str
    package: str
    path: str
    right: str
    found: str


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare the fields of pages with those that are right.")
    parser.add_argument("--pages", type=Path, default=CACHE, help="folder with a folder for each package")
    parser.add_argument("--wrong", action="store_true", help="print the fields that are wrong")
    options = parser.parse_args(arguments)
    pages = 0
    generators = set()
    having: Counter[str] = Counter()
    wrong: list[Wrong] = []
    for line in VALUES.read_text(encoding="utf-8").splitlines():
        generator, package, path, *values = line.split("\t")
        file = package_folder(package, options.pages) / path
        if not file.exists():
            say(f"{package} has no {path}: left out")
            continue
        pages += 1
        generators.add(generator)
        found = found_fields(file.read_bytes(), path)
        for field, right in zip(FIELDS, values, strict=True):
            having[field] += bool(right or found[field])
            if not is_same(field, right, found[field]):
                wrong.append(Wrong(field, package, path, right, found[field]))
    if not pages:
        raise BenchmarkFailed("none of the pages is there")
    if options.wrong:
        for one in wrong:
            say(f"{one.field}: {one.package} {one.path}\n  right {one.right[:200]!r}\n  found {one.found[:200]!r}")
    of_field = Counter(one.field for one in wrong)
    rows = [_row(field, having[field], of_field[field]) for field in FIELDS]
    unclear = sum(one.right.endswith(OR_NONE) and not one.found for one in wrong)
    rows.insert(2, _row("language, none where it is mixed", having["language"], of_field["language"] - unclear))
    return [*rows, _row(f"all, {pages} pages of {len(generators)} generators", having.total(), of_field.total())]


def found_fields(body: bytes, path: str) -> dict[str, str]:
    """Return the fields of a page as its document has them."""
    page = extract(body, url=f"http://docs.example.com/{path}")
    authors = values_of(page.fields.get("author", ""))
    return {
        "title": page.title,
        "language": page.language or language_of(page.text),
        "description": page.description,
        "author": authors if isinstance(authors, str) else AND.join(authors),
        "published": page.fields.get("published", ""),
        "modified": page.modified,
    }


def is_same(field: str, right: str, found: str) -> bool:
    if field == "language":
        return right.removesuffix(OR_NONE).casefold().replace("_", "-") == found.casefold()
    return re.sub(r"\s+", " ", right).strip() == re.sub(r"\s+", " ", found).strip()


def _row(field: str, having: int, wrong: int) -> Row:
    share = 1 - wrong / max(having, 1)
    return Row("page_fields", field, f"{share:.3f} ({having - wrong} of {having})", f">= {TARGET}", share >= TARGET)


if __name__ == "__main__":
    sys.exit(finish(main))
