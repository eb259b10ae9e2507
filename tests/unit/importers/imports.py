"""What tests of all importers share: an import as the collection that a crawl reads, and what becomes of its settings."""

from __future__ import annotations

import ast
from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.admin.explain import Question, explain
from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection, load_collection, read_settings_file
from crawlspace.crawl.startup import build_space
from crawlspace.importers.files import ImportedCollection, write_files
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding

DEFAULTS = {key: value for key, value in vars(defaults).items() if key.isupper()}


def collection(name: str, base: Path, found: ImportedCollection) -> Collection:
    """The collection of an import, read as a crawl reads it."""
    return load_collection(name, _written(name, base, found))


def findings(name: str, base: Path, found: ImportedCollection) -> list[Finding]:
    """What lint finds in it."""
    return lint_collection(base / name, _written(name, base, found), DEFAULTS, store=None)[0]


def admitted(read: Collection, *urls: str) -> dict[str, bool]:
    """Which URLs are in its crawl space."""
    space = build_space(read)
    answers = {url: explain(Question(url), read, space=space, store=None, clock=SystemClock()) for url in urls}
    return {url: answer.decision.admitted for url, answer in answers.items()}


def settings_of(found: ImportedCollection, *, delay: float | None = None) -> dict[str, object]:
    """What settings.py sets, but for what it always has, and the delay where that is the old system's default."""
    settings = {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in ast.parse(found.files["settings.py"]).body
        if isinstance(node, ast.Assign)
    }
    assert settings.pop("CRAWLSPACE_HOST_CASE_SENSITIVE") is False
    if delay is not None and settings.get("DOWNLOAD_DELAY") == delay:
        del settings["DOWNLOAD_DELAY"]
    return settings


def _written(name: str, base: Path, found: ImportedCollection) -> dict[str, object]:
    write_files(base / name, found.files, found.absent)
    return {**DEFAULTS, **read_settings_file(base / name), "CRAWLSPACE_COLLECTIONS_DIR": str(base)}
