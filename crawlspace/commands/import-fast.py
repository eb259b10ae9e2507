"""`scrapy import-fast`: make collections of a crawl configuration of FAST's web crawler.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from crawlspace.admin.lint_collection import review
from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError, UsageError, first_of_each_file
from crawlspace.importers.fast import ImportedCollection, translate_fast
from crawlspace.importers.fast_xml import MAX_SIZE, FastSection, read_fast_xml
from crawlspace.importers.written import difference, write_files
from crawlspace.printable import quoted
from crawlspace.rules.lint.crawl_rules import Finding
from crawlspace.runtime.command import CollectionCommand, print_json, refuse_wrong_name
from crawlspace.runtime.loader import collection_settings, default_values


class Command(CollectionCommand):
    """Translate a crawl configuration of FAST, report what became of each option, write the files, and lint them."""

    def syntax(self) -> str:
        return "[options] <file> [<collection>]"

    def short_desc(self) -> str:
        return "Make collections of a crawl configuration of FAST"

    def long_desc(self) -> str:
        return (
            "Translate the collections of a crawl configuration of FAST's web crawler (CrawlerConfig, as `crawleradmin --getcollection` "
            "prints it) into collections of ours: start_urls.txt, crawl.rules, rules.xml and settings.py, with the line that each entry comes "
            "from. What became of each option is printed, one a line; then what `scrapy lint` finds in the new files. A collection that is there "
            "already and would change is left as it is, and the difference is printed. Passwords become references to the environment. "
            "A collection's name is given where the file has one collection, or to choose one of several by its name there. Exit status: 0 imported, "
            "or nothing to change, 1 an option has no counterpart, or not yet, the collection is there and differs, the file cannot be read, or "
            "lint finds an error, 2 wrong use."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="print the report and the files, and write nothing")
        parser.add_argument(
            "--overwrite", action="store_true", help="replace the files of a collection that is there and differs"
        )
        parser.add_argument("--json", action="store_true", help="print the report for a program, one object for each collection")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if not 1 <= len(args) <= 2:
            raise UsageError("name the file, and a collection if need be, as in: scrapy import-fast news.xml news")
        path = Path(args[0])
        if not is_there(path):
            raise UsageError(f"there is no file {quoted(args[0])}: name the XML file of FAST's configuration")
        found = read_fast_xml(read_bytes(path, most=MAX_SIZE + 1), file=path.name)
        named = _named(found, args[1:], file=path.name)
        exit_statuses = [self._import(name, section, path, opts) for name, section in named.items()]
        return max(exit_statuses)

    def _import(self, name: str, section: FastSection, path: Path, opts: argparse.Namespace) -> int:
        settings = self.project_settings()
        imported = translate_fast(section, file=path.name, folder=path.parent, name=name, defaults=settings)
        folder = Path(str(settings["CRAWLSPACE_COLLECTIONS_DIR"])) / name
        changed = difference(folder, imported.files) if folder.exists() else ""
        findings = self._findings(name, imported.files)
        is_written = not opts.dry_run and (not changed or opts.overwrite)
        if is_written and (changed or not folder.exists()):
            write_files(folder, imported.files)
        if opts.json:
            options = [one.as_json() for one in imported.report.options]
            print_json(
                {
                    "collection": name,
                    "options": options,
                    "files": dict(imported.files) if opts.dry_run else {},
                    "lint": [finding.as_json() for finding in findings],
                    "written": is_written,
                }
            )
        else:
            _print(name, folder, imported, findings=findings, changed=changed, opts=opts)
        differs = bool(changed) and not opts.overwrite and not opts.dry_run
        return 1 if imported.report.lost or differs or any(one.level == "error" for one in findings) else 0

    def _findings(self, name: str, files: Mapping[str, str]) -> list[Finding]:
        """Return what lint finds in the files, in a folder of their own."""
        with TemporaryDirectory(prefix="crawlspace-import-") as base:
            settings = self.project_settings().copy()
            settings.set("CRAWLSPACE_COLLECTIONS_DIR", base, priority="cmdline")
            write_files(Path(base) / name, files)
            try:
                return review(Path(base) / name, collection_settings(settings, name), default_values(), store=None)[0]
            except ConfigError as error:
                return [Finding(name, 0, 0, "error", "setting", str(error))]


def _named(found: Sequence[FastSection], names: Sequence[str], *, file: str) -> dict[str, FastSection]:
    """Return the collections to import, by the names that they get. Raises UsageError."""
    there = {section.name: section for section in found}
    if len(there) < len(found):
        raise UsageError(f"{file} has two collections of one name: rename one of them")
    if names and len(found) == 1:
        refuse_wrong_name(names[0])
        return {names[0]: found[0]}
    if names:
        if names[0] not in there:
            raise UsageError(f"{file} has no collection {quoted(names[0])}: it has {', '.join(map(quoted, there))}")
        there = {names[0]: there[names[0]]}
    for name in there:
        refuse_wrong_name(name, way_out=f"; give it another name: scrapy import-fast {file} NAME" if len(found) == 1 else "")
    return there


def _print(
    name: str, folder: Path, imported: ImportedCollection, *, findings: Sequence[Finding], changed: str, opts: argparse.Namespace
) -> None:
    print(f"collection {name}:")
    print("\n".join(imported.report.lines()))
    if opts.dry_run:
        for file, text in imported.files.items():
            print(f"\n--- {folder / file}\n{text}", end="")
        print("\nnothing was written (--dry-run)")
    elif changed and not opts.overwrite:
        print(f"\n{changed}\n{folder} is there and differs: it was left as it is; --overwrite replaces the files")
    elif folder.exists():
        print(f"{folder} is as the file wants it: `scrapy lint {name}`, then `scrapy crawl {name}`")
    if findings:
        print("lint finds in it:")
        print("\n".join(first_of_each_file(findings)))
