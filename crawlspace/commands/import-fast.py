"""`scrapy import-fast`: make collections of a crawl configuration of FAST's web crawler.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import UsageError
from crawlspace.importers.fast.collection import translate_fast
from crawlspace.importers.fast.xml import FastSection, read_fast_xml
from crawlspace.importers.reading import MAX_SIZE
from crawlspace.runtime.components.import_command import ImportCommand, collections_by_name
from crawlspace.text import quoted


class Command(ImportCommand):
    usage = "[options] <file> [<collection>]"
    summary = "Make collections of a crawl configuration of FAST"
    explanation = (
        "Translate the collections of a crawl configuration of FAST's web crawler (CrawlerConfig, as `crawleradmin --getcollection` "
        "prints it) into collections of ours: start_urls.txt, crawl.rules, rules.xml and settings.py, with the line that each entry comes "
        "from. The fate of each option is printed, one a line; then what `scrapy lint` finds in the new files. A collection that is there "
        "already and would change is left as it is, and the difference is printed. Passwords become references to the environment. "
        "A collection's name is given where the file has one collection, or to choose one of several by its name there. Exit status: 0 imported, "
        "or nothing to change, 1 an option has no counterpart, or not yet, the collection is there and differs, the file cannot be read, or "
        "lint finds an error, 2 wrong use."
    )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if not 1 <= len(args) <= 2:
            raise UsageError("name the file, and a collection if need be, as in: scrapy import-fast news.xml news")
        path = Path(args[0])
        if not is_there(path):
            raise UsageError(f"there is no file {quoted(args[0])}: name the XML file of FAST's configuration")
        found = read_fast_xml(read_bytes(path, most=MAX_SIZE + 1), file=path.name)
        named = collections_by_name(
            [(section.name, section) for section in found], args[1:], command="import-fast", file=path.name
        )
        return max(self._import(name, section, path, opts) for name, section in named.items())

    def _import(self, name: str, section: FastSection, path: Path, opts: argparse.Namespace) -> int:
        settings = self.project_settings()
        imported = translate_fast(section, file=path.name, folder=path.parent, name=name, defaults=settings)
        return self.write(name, imported, opts)
