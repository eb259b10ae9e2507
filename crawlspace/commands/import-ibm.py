"""`scrapy import-ibm`: make a collection of the master_config folder of IBM's Web crawler.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from crawlspace.errors import UsageError
from crawlspace.importers.ibm.collection import translate_ibm
from crawlspace.importers.ibm.folder import list_folder, name_of
from crawlspace.runtime.components.command import refuse_wrong_name
from crawlspace.runtime.components.import_command import ImportCommand
from crawlspace.text import quoted


class Command(ImportCommand):
    usage = "[options] <folder> [<collection>]"
    summary = "Make a collection of a master_config folder of IBM's Web crawler"
    explanation = (
        "Translate the master_config folder of a Web crawler of IBM (OmniFind, Content Analytics, Watson Content Analytics) into a "
        "collection: start_urls.txt, crawl.rules, global.rules where it has one, rules.xml and settings.py, with the lines that each entry "
        "comes from. The fate of each file and entry is printed; then what `scrapy lint` finds in the new files. A collection that is "
        "there already and would change is left as it is, and the difference is printed. Passwords and cookies become references to the "
        "environment. Without a name, the collection has that of the folder, with _ for a dot. Exit status: 0 imported, or nothing to change, 1 something "
        "has no counterpart, or not yet, the collection is there and differs, a file has a mistake or cannot be read, or lint finds an "
        "error, 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--start-urls", metavar="FILE", help="the file with the start URLs, under any name")
        parser.add_argument(
            "--logged-out",
            metavar="SITE=TEXT",
            action="append",
            default=[],
            help="the cookies of this site are a log-in; a page with this text, or a redirect to this address, asks to log in",
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if not 1 <= len(args) <= 2:
            raise UsageError("name the folder, and a collection if need be, as in: scrapy import-ibm master_config intranet")
        folder = Path(args[0])
        signs = dict(map(_sign, opts.logged_out))
        files = list_folder(folder, Path(opts.start_urls) if opts.start_urls else None)
        name = args[1] if len(args) == 2 else name_of(folder.resolve().name)
        refuse_wrong_name(name, way_out="" if len(args) == 2 else f"; give it another name: scrapy import-ibm {args[0]} NAME")
        settings = self.project_settings()
        imported = translate_ibm(files, folder=folder.resolve().name, name=name, defaults=settings, logged_out=signs)
        return self.write(name, imported, opts)


def _sign(text: str) -> tuple[str, str]:
    site, separator, sign = text.partition("=")
    if not (site.strip() and separator and sign.strip()):
        raise UsageError(f"--logged-out is a site and a text, as in wiki.example.com='Please log in', not {quoted(text)}")
    return site.strip().lower(), sign.strip()
