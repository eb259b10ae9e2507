"""`scrapy plan`: show what the present rules would change at the next start."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from crawlspace.admin.extraction_preview import ExtractionChanges
from crawlspace.admin.refresh import refreshing
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.admission import check_start_urls
from crawlspace.crawl.depths.end_of_run import pending_depths
from crawlspace.crawl.rule_changes.reconcile import plan
from crawlspace.crawl.rule_changes.survey import DELETIONS, DUE, EXCLUDED, FOLDED, JUDGED, KEPT, OTHERS, RETURNED, UNINDEXED, Plan
from crawlspace.crawl.startup import (
    build_deletion_limit,
    build_known_url_decisions,
    build_rediscovery,
    build_space,
    content_changed,
    hash_of,
    metadata_changed,
)
from crawlspace.decision import RuleRef
from crawlspace.runtime.components.command import WIDTH, CollectionCommand, exactly_one, hanging, print_json, shortened
from crawlspace.runtime.components.loader import CollectionLoader, spider_code
from crawlspace.runtime.session.extraction_plan import extraction_changes
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.state.sqlite.file import IN_MEMORY
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.status import Status
from crawlspace.text import counted, printable

_KINDS = {
    EXCLUDED: "leave the crawl space (760)",
    KEPT: "leave it, and stay in the index for another crawler (761)",
    RETURNED: "are back in the crawl space",
    UNINDEXED: "are crawled for their links only (2004)",
    DUE: "are due at once: a check admits more now, or the spider has changed",
    JUDGED: "have links to be judged again, from the archive: a check admits more now",
    FOLDED: "are folded into others by the URL options",
    DELETIONS: "leave the index",
}
_FIELDS = (
    "The fields that rules.xml adds to documents have changed: each page is fetched with an unconditional GET next time, and so are the pages it links to "
    "that inherit other fields. `scrapy recrawl` makes them due now."
)
_CONTENT = (
    "A page may yield other links, another text or another status than before, by settings (CRAWLSPACE_LINK_TAGS is one of them) or by what this "
    "version takes from pages: each page is fetched with an unconditional GET next time. `scrapy recrawl` makes them due now."
)
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
        "Exit status: 0 shown; 1 deletions would be held, or the collection has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the plan for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy plan demo"))
        collection = load_collection(paths.name, paths.settings)
        found = _plan(paths, collection)
        shown, unknown = found.plan, found.hosts_without_addresses
        if opts.json:
            rules = {rule: text for rule, text in _texts(collection).items() if rule in shown.by_rule}
            changed = {
                "fields_changed": found.fields_changed,
                "content_changed": found.content_changed,
                "extraction": None if found.extraction is None else found.extraction.as_json(),
            }
            print_json({**shown.as_json(), "rules": rules, **changed, "hosts_without_addresses": unknown})
        else:
            print("\n".join(_lines(shown, collection, found.left)))
            if found.fields_changed:
                print(hanging("", _FIELDS))
            if found.content_changed:
                print(hanging("", _CONTENT))
            if found.extraction is not None:
                print("\n".join(_of_extraction(found.extraction, collection.name)))
            if unknown:
                print("\n".join(_without_addresses(unknown)))
            for line in found.of_refresh:
                print(hanging("", line))
        return 1 if shown.held else 0


class _Found(NamedTuple):
    """The changes a start would make. `left`: documents left to other collections (761); `of_refresh`: lines."""

    plan: Plan
    fields_changed: bool
    content_changed: bool
    hosts_without_addresses: list[str]
    left: int
    of_refresh: list[str]
    extraction: ExtractionChanges | None
    """None where the extraction rules are those of the last start."""


def _plan(paths: CollectionPaths, collection: Collection) -> _Found:
    spider = CollectionLoader.from_settings(paths.settings).load(paths.name)
    space = build_space(collection)
    check_start_urls(collection.start_urls, space)
    with paths.store.reading() as opened:
        known = SqliteStore(IN_MEMORY) if opened is None else opened.store
        decisions = build_known_url_decisions(collection, space, known)
        shown = plan(
            known,
            decisions,
            hash=hash_of(collection, space),
            deletion_limit=build_deletion_limit(collection),
            rediscovery=build_rediscovery(collection, space, spider=spider_code(spider)),
            depths=pending_depths(known, collection),
        )
        unknown = sorted(decisions.hosts_without_addresses)
        of_refresh = [] if opened is None else list(_of_refresh(collection, known))
        fields_changed, left = metadata_changed(known, collection), known.counts().left_to_others
        extraction = None if opened is None else extraction_changes(collection, known)
        return _Found(shown, fields_changed, content_changed(known, collection), unknown, left, of_refresh, extraction)


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


def _of_refresh(collection: Collection, store: Store) -> Iterator[str]:
    """Yield sentences about changes at the next start that don't come from the rules."""
    now = time.time()
    found = refreshing(collection.refresh, store, now=now)
    known = f"{sum(store.counts().by_state.values()):,} known URLs"
    if found.is_switched and found.times.has_due_times:
        yield f"Smart refresh is on again: those of the {known} whose interval is over are due."
    elif found.is_switched:
        yield f"Smart refresh is off now: none of the {known} is due by age, and failed ones still are."
    if found.times.schedule is not None and found.next_at is not None and found.next_at <= now:
        yield f"A scheduled refresh was missed: the next start puts the {known} into source index, to be fetched again."


def _lines(shown: Plan, collection: Collection, left: int) -> Iterator[str]:
    name = collection.name
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
        yield from _table("By rule", _largest(shown.by_rule), _texts(collection))
    yield from _table("By host", shown.by_host)
    for kind, meaning in _KINDS.items():
        if shown.examples.get(kind):
            yield from ("", f"Examples of those that {meaning}")
            yield from (f"  {url}" for url in shown.examples[kind])


def _without_addresses(hosts: Sequence[str]) -> Iterator[str]:
    number = f"the address of {hosts[0]} is" if len(hosts) == 1 else f"the addresses of {len(hosts):,} hosts are"
    yield ""
    yield hanging("", f"{number} not known yet: the address rules are applied when a page is fetched, which may exclude more.")
    yield from (f"  {host}" for host in hosts[:_ROWS])
    if len(hosts) > _ROWS:
        yield f"  and {len(hosts) - _ROWS:,} more"


def _texts(collection: Collection) -> dict[str, str]:
    """Return the text of each rule by its location."""
    listed = [collection.rules, *([collection.global_rules] if collection.global_rules is not None else [])]
    refs: list[RuleRef] = []
    for rules in listed:
        refs += [
            *(rule.ref for rule in rules.domain),
            *(rule.ref for rule in rules.prefix),
            *(rule.ref for rule in rules.address),
        ]
    if collection.action_rules is not None:
        refs += [rule.ref for rule in collection.action_rules.rules.rules]
    return {str(ref): ref.text for ref in refs}


def _table(title: str, rows: Mapping[str, Mapping[str, int]], texts: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield a line for each name, with a column for each kind that occurs, and a line with its text."""
    kinds = [kind for kind in _KINDS if any(kind in numbers for numbers in rows.values())]
    yield ""
    yield f"{title:<{_NAME + 2}}" + "".join(f"{kind:>12}" for kind in kinds)
    for name, numbers in rows.items():
        columns = "".join(f"{numbers[kind]:>12,}" if kind in numbers else f"{'':>12}" for kind in kinds)
        yield f"  {shortened(name, _NAME):<{_NAME}}{columns}".rstrip()
        if name in texts:
            yield f"    {shortened(printable(texts[name]), WIDTH - 4)}"


def _largest(rules: Mapping[str, Mapping[str, int]]) -> Mapping[str, Mapping[str, int]]:
    """Return the rules with the most URLs; the others are added up as one."""
    shown = dict(list(rules.items())[:_ROWS])
    for numbers in list(rules.values())[_ROWS:]:
        others = dict(shown.get(OTHERS, {}))
        shown[OTHERS] = {kind: others.get(kind, 0) + numbers.get(kind, 0) for kind in {**others, **numbers}}
    return shown
