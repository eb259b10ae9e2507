"""`scrapy plan`: show what the present rules would change at the next start."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from crawlspace.admin.extraction_preview import ExtractionChanges
from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.rule_changes.rules_in_force import kept_rules, present_rules
from crawlspace.errors import ConfigError
from crawlspace.private_files import replace_file
from crawlspace.runtime.components.command import WIDTH, CollectionCommand, exactly_one, hanging, print_json, shortened
from crawlspace.runtime.planning.plan_process import planned_changes
from crawlspace.runtime.planning.rule_plan import CONTENT_CHANGED, FIELDS_CHANGED, KINDS, RulePlan, largest_rules, rule_plan
from crawlspace.status import Status
from crawlspace.text import counted, printable

_ROWS = 20
_NAME = 40
"""Width of the column for a rule or a host."""


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Show what a change of the rules would do"
    explanation = (
        "Show what the next start would change because rules, limits or the global crawl space are not as they were at the last one: which known "
        "URLs leave the crawl space, which come back, which documents leave the index, by rule and by host, with examples; and whether the "
        "deletions are so many that they would be held. Changes nothing and makes no network requests. "
        "Exit status: 0 shown; 1 deletions would be held, a test of tests.rules fails, or the collection has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the plan for a program")
        parser.add_argument(
            "--html",
            metavar="FILE",
            help="also write it to FILE, with what has changed in the rule files, for who approves the change",
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy plan demo"))
        collection = load_collection(paths.name, paths.settings)
        found = rule_plan(paths, collection)
        shown = found.plan
        if opts.html:
            _write_report(Path(opts.html), found, collection)
        if opts.json:
            print_json(found.as_json())
        else:
            print("\n".join(_lines(found, collection)))
            if found.fields_changed:
                print(hanging("", FIELDS_CHANGED))
            if found.content_changed:
                print(hanging("", CONTENT_CHANGED))
            if found.extraction is not None:
                print("\n".join(_of_extraction(found.extraction, collection.name)))
            if found.hosts_without_addresses:
                print("\n".join(_without_addresses(found.hosts_without_addresses)))
            for line in _of_tests(found.failed_tests, collection.name):
                print(line)
            for line in found.of_refresh:
                print(hanging("", line))
        return 1 if shown.held or found.failed_tests else 0


def _write_report(path: Path, found: RulePlan, collection: Collection) -> None:
    """Write the plan as a file that can be sent. Raises ConfigError."""
    from crawlspace.console.plan_report import plan_report  # noqa: PLC0415 - with the templates

    now = SystemClock().now()
    try:
        kept = kept_rules(collection.data_folder)
        report = plan_report(
            collection.name,
            planned_changes(found, collection),
            before=kept[-1] if kept else None,
            present=present_rules(collection, since=int(now)),
            now=now,
        )
        replace_file(path, report.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def _of_extraction(found: ExtractionChanges, name: str) -> Iterator[str]:
    """Yield lines about documents that other extraction rules change."""
    checked = "" if found.checked == found.documents else f", of {found.documents:,} in the index"
    archived = counted(found.checked, "document")
    yield ""
    yield hanging(
        "",
        f"extract.toml has changed: of {archived} whose pages were read from the archive{checked}, {found.changed:,} would be different. A page gets"
        f" its new document at its next fetch, and all archived ones at `scrapy reindex {name} --extract`, without a request.",
    )
    for field, number in sorted(found.by_field.items()):
        yield f"  {field}: {counted(number, 'document')}"
        for one in found.examples[field]:
            before, after = (shortened(printable(value), _NAME) or "nothing" for value in (one.before, one.after))
            yield f"    {before} -> {after}  {one.url}"


def _lines(found: RulePlan, collection: Collection) -> Iterator[str]:
    name, shown, left = collection.name, found.plan, found.left
    if not shown.known:
        yield f"{name} knows no URL yet: nothing would change"
        return
    if not shown.changed and not shown.has_effect:
        yield f"the rules of {name} are those of its last start: nothing would change"
        return
    if not shown.has_effect:
        yield f"the rules of {name} have changed, but of the {shown.known:,} known URLs none is affected: nothing would change"
        return
    if not shown.changed and shown.returned:
        yield f"the rules of {name} are those of its last start, and hosts have room again (CRAWLSPACE_MAX_URLS_PER_HOST), or a run was killed"
    left_text = f", and {left:,} left for another collection ({int(Status.EXCLUDED_HERE)})" if left else ""
    yield hanging("", f"{name}: {shown.sentence()}; the index has {counted(shown.indexed, 'document')}{left_text}")
    if shown.held:
        yield hanging(
            "",
            f"held: {counted(shown.held, 'deletion')}, more than {collection.max_deletions:,} and more than "
            f"{collection.max_deletions_percent} % of the index: a start would delete nothing, and the documents would stay. If the change "
            f"is meant, start, and then approve it with `scrapy deletions {name} --approve`. If not, correct the rules and look again.",
        )
    if shown.by_rule:
        yield from _table("By rule", largest_rules(shown.by_rule, _ROWS), found.texts)
    yield from _table("By host", shown.by_host)
    for kind, meaning in KINDS.items():
        if shown.examples.get(kind):
            yield from ("", f"Examples of those that {meaning}")
            yield from (f"  {url}" for url in shown.examples[kind])


def _of_tests(failed: Sequence[str], name: str) -> Iterator[str]:
    if failed:
        tests = counted(len(failed), "test of tests.rules fails", "tests of tests.rules fail")
        yield ""
        yield hanging("", f"{tests}, so no crawl would begin: `scrapy lint {name}` shows {'it' if len(failed) == 1 else 'them'}.")
        yield from (f"  {one}" for one in failed[:_ROWS])


def _without_addresses(hosts: Sequence[str]) -> Iterator[str]:
    number = f"the address of {hosts[0]} is" if len(hosts) == 1 else f"the addresses of {len(hosts):,} hosts are"
    yield ""
    yield hanging("", f"{number} not known yet: the address rules are applied when a page is fetched, which may exclude more.")
    yield from (f"  {host}" for host in hosts[:_ROWS])
    if len(hosts) > _ROWS:
        yield f"  and {len(hosts) - _ROWS:,} more"


def _table(title: str, rows: Mapping[str, Mapping[str, int]], texts: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield a line for each name, with a column for each kind that occurs, and a line with its text."""
    kinds = [kind for kind in KINDS if any(kind in numbers for numbers in rows.values())]
    yield ""
    yield f"{title:<{_NAME + 2}}" + "".join(f"{kind:>12}" for kind in kinds)
    for name, numbers in rows.items():
        columns = "".join(f"{numbers[kind]:>12,}" if kind in numbers else f"{'':>12}" for kind in kinds)
        yield f"  {shortened(name, _NAME):<{_NAME}}{columns}".rstrip()
        if name in texts:
            yield f"    {shortened(printable(texts[name]), WIDTH - 4)}"
