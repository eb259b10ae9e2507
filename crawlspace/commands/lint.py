"""`scrapy lint`: errors and doubts in a collection's files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from urllib.request import getproxies

from crawlspace.config import Collection, collection_folder, collection_names
from crawlspace.errors import ConfigError, StoreError, UsageError
from crawlspace.review import across, findings_of, review
from crawlspace.rules.lint import Finding
from crawlspace.runtime.command import CollectionCommand, exactly_one, place_of, print_json, reading_store
from crawlspace.runtime.loader import collection_settings


class Command(CollectionCommand):
    """What is wrong in rules, settings and start URLs, and what loads but is hardly meant."""

    def syntax(self) -> str:
        return "[options] <collection> | --all"

    def short_desc(self) -> str:
        return "Find mistakes and doubts in rules and settings"

    def long_desc(self) -> str:
        return (
            "Read a collection's rules, settings and start URLs and list what is wrong with them (error: the collection can't be crawled so) and "
            "what is doubtful (warning): a rule that can never apply, a list that forbids nothing in the end, a start URL that the rules refuse, "
            "and, when everything found has been crawled, a rule that let nothing in. One finding a line: file:line:column: level: message [code]. "
            "Changes nothing and asks nothing of the network. Exit status: 0 nothing found, 1 a finding of either level, 2 wrong use."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--all", action="store_true", help="look at every collection, and at what they have in common")
        parser.add_argument("--json", action="store_true", help="print the findings for a program, as a list")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if opts.all and args:
            raise UsageError("name a collection or give --all, not both")
        findings = self._all() if opts.all else self._one(exactly_one(args, example="scrapy lint demo, or scrapy lint --all"))[0]
        if opts.json:
            print_json([asdict(finding) for finding in findings])
        else:
            print("\n".join(map(str, findings)) or "no findings")
        return 1 if findings else 0

    def _all(self) -> list[Finding]:
        findings: list[Finding] = []
        collections: list[Collection] = []
        for name in collection_names(str(self.project_settings()["CRAWLSPACE_COLLECTIONS_DIR"])):
            found, collection = self._one(name)
            findings += (replace(one, file=f"{name}/{one.file}" if one.file != name else name) for one in found)
            if collection is not None:
                collections.append(collection)
        return [*findings, *across(collections)]

    def _one(self, name: str) -> tuple[list[Finding], Collection | None]:
        folder: Path = collection_folder(name, self.project_settings())
        try:
            settings = collection_settings(self.project_settings(), name)
        except ConfigError as error:
            return list(findings_of(error, folder)), None
        proxy = settings.getbool("HTTPPROXY_ENABLED") and bool(getproxies().keys() & {"http", "https", "all"})
        try:
            with reading_store(place_of(name, folder, settings).store_file) as store:
                return review(name, folder, settings, store=store, proxy=proxy)
        except StoreError:  # the store's faults are not the rules'
            return review(name, folder, settings, store=None, proxy=proxy)
