"""`scrapy import-exalead`: make collections of a crawl configuration of Exalead CloudView.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import UsageError
from crawlspace.importers.exalead.collection import translate_exalead
from crawlspace.importers.exalead.xml import ExaleadCrawler, read_crawl_config
from crawlspace.importers.reading import MAX_SIZE
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.runtime.components.import_command import ImportCommand, collections_by_name
from crawlspace.text import quoted


class Command(ImportCommand):
    usage = "[options] <file> [<collection>]"
    summary = "Make collections of a crawl configuration of Exalead"
    explanation = (
        "Translate the crawlers of a crawl configuration of Exalead CloudView (CrawlConfig.xml), or a file with rules only, into collections "
        "of ours: start_urls.txt, crawl.rules, rules.xml and settings.py, with the line that each entry comes from. The fate of each "
        "option is printed, one a line; then what `scrapy lint` finds in the new files. A collection that is there already and would change "
        "is left as it is, and the difference is printed. A collection's name is given where the file has one crawler, or to choose one of "
        "several by its name there; a file with rules only needs one. Exit status: 0 imported, or nothing to change, 1 an option has no "
        "counterpart, or not yet, the collection is there and differs, the file cannot be read, or lint finds an error, 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--regex",
            choices=[syntax.value for syntax in RegexSyntax],
            help="write CRAWLSPACE_RULES_XML_REGEX, which says how values of rules are read",
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if not 1 <= len(args) <= 2:
            raise UsageError("name the file, and a collection if need be, as in: scrapy import-exalead CrawlConfig.xml news")
        path = Path(args[0])
        if not is_there(path):
            raise UsageError(f"there is no file {quoted(args[0])}: name the CrawlConfig.xml of Exalead CloudView")
        found = read_crawl_config(read_bytes(path, most=MAX_SIZE + 1), file=path.name)
        if found[0].has_rules_only and len(args) == 1:
            raise UsageError(f"{path.name} has rules only, and no name: scrapy import-exalead {path.name} NAME")
        crawlers = [(crawler.name, crawler) for crawler in found]
        named = collections_by_name(crawlers, args[1:], command="import-exalead", file=path.name)
        return max(self._import(name, crawler, path, opts) for name, crawler in named.items())

    def _import(self, name: str, crawler: ExaleadCrawler, path: Path, opts: argparse.Namespace) -> int:
        syntax = RegexSyntax(opts.regex) if opts.regex else None
        imported = translate_exalead(crawler, file=path.name, name=name, defaults=self.project_settings(), syntax=syntax)
        return self.write(name, imported, opts)
