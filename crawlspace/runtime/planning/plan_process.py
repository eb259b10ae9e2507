"""A process that works out what edited rules would do to all known URLs: `python -m crawlspace.runtime.planning.plan_process`.

With a million known URLs that takes many seconds of a processor and some memory, which a server of pages has better uses for. It reads one
JSON object from its standard input, and writes one a line: its progress, then the plan, or why there is none. It ends when nobody reads that.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from scrapy.utils.project import get_project_settings

from crawlspace.admin.rule_files import edited_rules, load_edited, rule_files
from crawlspace.config.collection import Collection
from crawlspace.errors import CrawlspaceError, StoreError
from crawlspace.runtime.planning.rule_plan import KINDS, RulePlan, largest_rules, rule_plan
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.runtime.session.project import ProjectCollections
from crawlspace.text import MESSAGE, printable

_RULES = 200
"""Rules that are reported; the others are added up as one."""
_HOSTS = 200
"""Hosts without known addresses that are reported."""


class PlanStart(Struct, frozen=True):
    """What is to be planned. `data` is the edited file, in base64; None: it is missing. Without a file, the rules are those on disk."""

    collection: str
    options: Mapping[str, str]
    file: str = ""
    data: str | None = None


class PlannedChanges(Struct, frozen=True):
    """A plan, as far as pages show it. Numbers are by kind of change, as in `rule_plan.KINDS`."""

    sentence: str
    changed: bool
    has_effect: bool
    known: int
    indexed: int
    left: int
    held: int
    max_deletions: int
    max_deletions_percent: int
    totals: dict[str, int]
    by_rule: dict[str, dict[str, int]]
    by_host: dict[str, dict[str, int]]
    texts: dict[str, str]
    examples: dict[str, list[str]]
    fields_changed: bool
    content_changed: bool
    extraction: dict[str, object] | None
    hosts_without_addresses: list[str]
    hosts_without_addresses_number: int
    of_refresh: list[str]
    failed_tests: list[str]


class PlanAnswer(Struct, frozen=True, omit_defaults=True):
    """A line of the answer: URLs that are checked, of those known; or the plan; or a sentence why there is none."""

    checked: int = 0
    known: int = 0
    plan: PlannedChanges | None = None
    error: str = ""


def started(project: Path, start: PlanStart) -> subprocess.Popen[bytes]:
    """Start the process in the folder of a project. Raises StoreError."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "crawlspace.runtime.planning.plan_process"],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for the server, which ends this process
        )
    except OSError as error:
        raise StoreError(f"the plan cannot be worked out: {error.strerror}") from error
    assert process.stdin is not None
    try:
        with process.stdin as stream:
            stream.write(msgspec.json.encode(start))
    except OSError as error:
        process.kill()
        with process:  # its output is closed, and it is waited for
            pass
        raise StoreError(f"the plan cannot be worked out, because its process has ended: {error.strerror}") from error
    return process


def main() -> int:
    """Work out one plan."""
    start = msgspec.json.decode(sys.stdin.buffer.read(), type=PlanStart)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the code of the project prints is no answer

    def answer(one: PlanAnswer) -> None:
        output.write(msgspec.json.encode(one) + b"\n")
        output.flush()

    try:
        os.nice(10)  # crawls and pages first
        settings = get_project_settings()
        settings.setdict(dict(start.options), priority="cmdline")
        answer(PlanAnswer(plan=_planned(ProjectCollections(settings).paths(start.collection), start, answer)))
    except CrawlspaceError as error:
        answer(PlanAnswer(error=str(error)))
    return 0


def _planned(paths: CollectionPaths, start: PlanStart, answer: Callable[[PlanAnswer], None]) -> PlannedChanges:
    """Return the plan. Raises CrawlspaceError."""
    with paths.store.reading() as opened:
        known = 0 if opened is None else sum(opened.store.counts().by_state.values())
    answer(PlanAnswer(known=known))
    file = rule_files(paths.folder, paths.settings).get(start.file)
    data = None if start.data is None else base64.b64decode(start.data)
    with edited_rules(paths.folder, paths.settings, file, data) as edited:
        collection = load_edited(edited)
        found = rule_plan(paths, collection, surveyed=lambda checked: answer(PlanAnswer(checked=checked, known=known)))
    return planned_changes(found, collection)


def planned_changes(found: RulePlan, collection: Collection) -> PlannedChanges:
    plan = found.plan
    by_rule = largest_rules(plan.by_rule, _RULES)
    numbers = plan.as_json()
    return PlannedChanges(
        sentence=plan.sentence(),
        changed=plan.changed,
        has_effect=plan.has_effect,
        known=plan.known,
        indexed=plan.indexed,
        left=found.left,
        held=plan.held,
        max_deletions=collection.max_deletions,
        max_deletions_percent=collection.max_deletions_percent,
        totals={kind: number for kind in KINDS if isinstance(number := numbers[kind], int) and number},
        by_rule=by_rule,
        by_host={host: dict(kinds) for host, kinds in plan.by_host.items()},
        texts={rule: printable(text, most=MESSAGE) for rule, text in found.texts.items() if rule in by_rule},
        examples={kind: [printable(url, most=MESSAGE) for url in urls] for kind, urls in plan.examples.items()},
        fields_changed=found.fields_changed,
        content_changed=found.content_changed,
        extraction=None if found.extraction is None else found.extraction.as_json(),
        hosts_without_addresses=list(found.hosts_without_addresses[:_HOSTS]),
        hosts_without_addresses_number=len(found.hosts_without_addresses),
        of_refresh=list(found.of_refresh),
        failed_tests=list(found.failed_tests[:_HOSTS]),
    )


if __name__ == "__main__":
    sys.exit(main())
