"""`scrapy letters`: what the owner of each site may want to correct."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_space
from crawlspace.errors import ConfigError
from crawlspace.private_files import replace_file
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, print_json
from crawlspace.runtime.lookups.site_letters import Letter, markdown_of, site_letters
from crawlspace.text import counted


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Write a letter to the owner of each site: broken links, pages closed by mistake, orphans, slow pages"
    explanation = (
        "Write for each host, from what is stored, what its owner may want to correct: links of its pages to what is not there, pages that are closed "
        "to the crawler although others link to them, pages that nothing leads to, and slow pages. Markdown, to be sent as it is. "
        "Changes nothing and makes no network requests. "
        "Exit status: 0 written; 1 the collection, its store or the folder has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", metavar="HOST", help="only the letter of this host")
        parser.add_argument("--to", metavar="FOLDER", help="write a file HOST.md for each host with findings into FOLDER")
        parser.add_argument("--json", action="store_true", help="print what was found for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy letters demo"))
        collection = load_collection(paths.name, paths.settings)
        host = opts.host.lower() if opts.host else None
        with paths.store.reading() as opened:
            letters = [] if opened is None else site_letters(opened.store, build_space(collection), host=host)
        if opts.json:
            print_json({"collection": paths.name, "letters": [letter.as_json() for letter in letters]})
        elif not letters:
            print(
                f"{paths.name} knows nothing of {host}"
                if host
                else f"{paths.name} has never been crawled: `scrapy crawl {paths.name}` does"
            )
        elif opts.to:
            _write(Path(opts.to), [letter for letter in letters if letter.has_findings or host], paths.name)
            without = sum(not letter.has_findings for letter in letters)
            if without and not host:
                print(f"nothing was found of {counted(without, 'other host')}")
        else:
            print("\n".join(markdown_of(letter, collection=paths.name, now=SystemClock().now()) for letter in letters), end="")
        return 0


def _write(folder: Path, letters: Sequence[Letter], name: str) -> None:
    """Write a file for each letter. Raises ConfigError."""
    for letter in letters:
        path = folder / f"{letter.host.strip('[]').replace(':', '_')}.md"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, markdown_of(letter, collection=name, now=SystemClock().now()).encode())
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
        numbers = ", ".join(f"{number:,} {what}" for what, number in letter.numbers.items())
        print(f"{path}: {numbers or 'nothing was found'}")
