"""`scrapy lint`: errors and warnings in a collection's files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from scrapy import Spider
from scrapy.settings import BaseSettings

from crawlspace.config.collection import collection_folder, collection_names
from crawlspace.config.files import global_rules_file
from crawlspace.errors import ConfigError, StoreError, UsageError, first_of_each_file
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.collections import CollectionHosts, collection_hosts, lint_collections, with_collection
from crawlspace.lint.finding import Finding, bounded, findings_of
from crawlspace.project import MANIFEST, version_difference
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, print_json
from crawlspace.runtime.components.loader import (
    CollectionLoader,
    collection_settings,
    default_values,
    project_folder,
    settings_and_faults,
)
from crawlspace.runtime.components.scrapy_effects import without_effect
from crawlspace.runtime.components.setting_kinds import faults
from crawlspace.runtime.session.paths import collection_paths
from crawlspace.state.store import Store

SERVER = "CRAWLSPACE_STORE_URL"
"""The location of a finding about the server of a shared collection."""


class Command(CollectionCommand):
    usage = "[options] <collection> | --all"
    summary = "Find errors and probable mistakes in rules and settings"
    explanation = (
        "Read a collection's rules, settings and start URLs and list what is wrong with them (error: the collection can't be crawled so) and "
        "what is suspicious (warning): a rule that can never apply, a list that does not end in a forbid rule, a start URL that the rules refuse, "
        "a setting of Scrapy or an attribute of the spider class that has no effect in a collection, a misspelt setting, "
        "a Redis server that would lose records, and, when nothing is pending, a rule that admitted nothing. --all also finds hosts that two collections crawl, that the global "
        "crawl space allows and none crawls, or that are crawled outside of it, and copies of global.rules that differ. One finding a line: file:line:column: level: message [code]. "
        "Changes nothing and requests nothing but what the collection's store has. Exit status: 0 nothing found, 1 a finding of either level, 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--all", action="store_true", help="check every collection, and what they have in common")
        parser.add_argument("--json", action="store_true", help="print the findings for a program, as a list")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if opts.all and args:
            raise UsageError("name a collection or give --all, not both")
        findings = self._all() if opts.all else self._one(exactly_one(args, example="scrapy lint demo, or scrapy lint --all"))[0]
        findings = [*_of_project(), *findings]
        if opts.json:
            print_json([finding.as_json() for finding in bounded(findings)])
        else:
            print("\n".join(first_of_each_file(findings)) or "no findings")
        return 1 if findings else 0

    def _all(self) -> list[Finding]:
        findings: list[Finding] = []
        collections: list[CollectionHosts] = []
        names = collection_names(str(self.project_settings()["CRAWLSPACE_COLLECTIONS_DIR"]))
        for name in names:
            found, collection = self._one(name)
            folder, global_file = self._places(name)
            findings += (with_collection(one, folder, global_file) for one in found)
            if collection is not None:
                collections.append(collection)
        findings += lint_collections(collections, complete=len(collections) == len(names))
        return list(dict.fromkeys(findings))  # collections that share a global.rules share its findings

    def _one(self, name: str) -> tuple[list[Finding], CollectionHosts | None]:
        folder: Path = collection_folder(name, self.project_settings())
        found: list[Finding] = []
        spider: type[Spider] | None = None
        try:
            spider = CollectionLoader.from_settings(self.project_settings()).load(name)
        except SystemExit as error:
            found.append(Finding("spiders", 0, 0, "error", "spider", str(error)))
        try:
            settings, faulty = settings_and_faults(self.project_settings(), name, spider=spider)
            found += without_effect(spider, settings, name)
        except ConfigError as error:
            return [*found, *findings_of(error, folder)], None
        found += [finding for fault in (*faulty, *faults(settings)) for finding in findings_of(fault, folder)]
        try:
            paths = collection_paths(name, folder, settings).store
            found += [Finding(SERVER, 0, 0, one.level, one.code, one.message) for one in paths.faults()]
            with paths.reading() as opened:
                store = None if opened is None else opened.store
                return _reviewed(folder, settings, store=store, found=found)
        except StoreError:  # not a fault of the rules
            pass
        except ConfigError as error:  # the other settings are still checked
            found += findings_of(error, folder)
        return _reviewed(folder, settings, store=None, found=found)

    def _places(self, name: str) -> tuple[Path, Path | None]:
        """Return a collection's folder and its global.rules, even if neither can be read."""
        folder = collection_folder(name, self.project_settings())
        try:
            return folder, global_rules_file(folder, collection_settings(self.project_settings(), name))
        except ConfigError:
            return folder, None


def _of_project() -> list[Finding]:
    """Return the finding of a project whose files are not of the installed version."""
    difference = version_difference(project_folder())
    return [Finding(MANIFEST, 0, 0, "warning", "project-version", difference)] if difference else []


def _reviewed(
    folder: Path, settings: BaseSettings, *, store: Store | None, found: list[Finding]
) -> tuple[list[Finding], CollectionHosts | None]:
    findings, collection = lint_collection(folder, settings, default_values(), store=store)
    shown = sorted(dict.fromkeys([*found, *findings]), key=lambda one: (one.file, one.line, one.column, one.code))
    return shown, collection_hosts(collection, store) if collection is not None else None
