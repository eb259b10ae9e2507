"""What the commands share that make collections of the files of other crawlers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from crawlspace.errors import ConfigError, UsageError, first_of_each_file
from crawlspace.importers.files import ImportedCollection, difference, write_files
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding
from crawlspace.runtime.components.command import CollectionCommand, print_json, print_lines, refuse_wrong_name
from crawlspace.runtime.components.loader import collection_settings, default_values
from crawlspace.text import quoted

Imported = TypeVar("Imported")


class ImportCommand(CollectionCommand):
    """A command that writes collections. Subclasses implement `answer`, and call `write` for each collection."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="print the report and the files, and write nothing")
        parser.add_argument(
            "--overwrite", action="store_true", help="replace the files of a collection that is there and differs"
        )
        parser.add_argument("--json", action="store_true", help="print the report for a program, one object for each collection")

    def write(self, name: str, imported: ImportedCollection, opts: argparse.Namespace) -> int:
        """Write a collection if it is new, or may be overwritten; print the result. Return the exit status."""
        folder = Path(str(self.project_settings()["CRAWLSPACE_COLLECTIONS_DIR"])) / name
        is_new = not folder.exists()
        changed = "" if is_new else difference(folder, imported.files, imported.absent)
        findings = self._findings(name, imported.files)
        is_written = not opts.dry_run and (not changed or opts.overwrite)
        if is_written and (changed or is_new):
            write_files(folder, imported.files, imported.absent)
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
            done = "written" if is_new else "overwritten" if changed else "there already, and unchanged"
            print_lines(list(_lines(name, folder, imported, findings=findings, changed=changed, done=done, opts=opts)))
        differs = bool(changed) and not opts.overwrite and not opts.dry_run
        return 1 if imported.report.lost or differs or any(one.level == "error" for one in findings) else 0

    def _findings(self, name: str, files: Mapping[str, str]) -> list[Finding]:
        """Return the findings of lint in the files, in a temporary folder."""
        with TemporaryDirectory(prefix="crawlspace-import-") as base:
            settings = self.project_settings().copy()
            settings.set("CRAWLSPACE_COLLECTIONS_DIR", base, priority="cmdline")
            write_files(Path(base) / name, files)
            try:
                return lint_collection(Path(base) / name, collection_settings(settings, name), default_values(), store=None)[0]
            except ConfigError as error:
                return [Finding(name, 0, 0, "error", "setting", str(error))]


def collections_by_name(
    found: Sequence[tuple[str, Imported]], names: Sequence[str], *, command: str, file: str
) -> Mapping[str, Imported]:
    """Return the collections of a file to import, by the names that they get; `names` has the one that was given. Raises UsageError."""
    there = dict(found)
    if len(there) < len(found):
        raise UsageError(f"{file} has two collections of one name: rename one of them")
    if names and len(found) == 1:
        refuse_wrong_name(names[0])
        return {names[0]: found[0][1]}
    if names:
        if names[0] not in there:
            raise UsageError(f"{file} has no collection {quoted(names[0])}: it has {', '.join(map(quoted, there))}")
        there = {names[0]: there[names[0]]}
    for name in there:
        way_out = f"give it another name: scrapy {command} {file} NAME" if len(found) == 1 else f"rename it in {file}"
        refuse_wrong_name(name, way_out=f"; {way_out}")
    return there


def _lines(
    name: str,
    folder: Path,
    imported: ImportedCollection,
    *,
    findings: Sequence[Finding],
    changed: str,
    done: str,
    opts: argparse.Namespace,
) -> Iterator[str]:
    """Yield the answer for a user; `done` is the result for the folder, if it equals the import."""
    yield f"collection {name}:"
    yield from imported.report.lines()
    if opts.dry_run:
        for file, text in imported.files.items():
            yield f"\n--- {folder / file}\n{text}".removesuffix("\n")
        yield "\nnothing was written (--dry-run)"
    elif changed and not opts.overwrite:
        yield f"\n{changed}\n{folder} is there and differs: it was left as it is; --overwrite replaces the files"
    else:
        yield f"{folder} is {done}; next: `scrapy lint {name}`, then `scrapy crawl {name}`"
    if findings:
        yield "lint finds in it:"
        yield from first_of_each_file(findings)
