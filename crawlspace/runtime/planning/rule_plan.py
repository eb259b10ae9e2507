"""What the next start of a collection would do to its known URLs, for `scrapy plan`, the console and its JSON interface."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crawlspace.admin.extraction_preview import ExtractionChanges
from crawlspace.admin.refresh import refreshing
from crawlspace.config.collection import Collection
from crawlspace.crawl.admission import check_start_urls
from crawlspace.crawl.depths.end_of_run import pending_depths
from crawlspace.crawl.rule_changes.reconcile import plan
from crawlspace.crawl.rule_changes.survey import (
    DELETIONS,
    DUE,
    EXCLUDED,
    FOLDED,
    JUDGED,
    KEPT,
    OTHERS,
    RETURNED,
    UNINDEXED,
    Plan,
    Surveyed,
    not_shown,
)
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
from crawlspace.errors import ConfigError
from crawlspace.rules.rule_tests import failed_tests
from crawlspace.runtime.components.loader import CollectionLoader, spider_code
from crawlspace.runtime.planning.extraction_plan import extraction_changes
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.state.sqlite.file import IN_MEMORY
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store

KINDS = {
    EXCLUDED: "leave the crawl space (760)",
    KEPT: "leave it, and stay in the index for another crawler (761)",
    RETURNED: "are back in the crawl space",
    UNINDEXED: "are crawled for their links only (2004)",
    DUE: "are due at once: a check admits more now, or the spider has changed",
    JUDGED: "have links to be judged again, from the archive: a check admits more now",
    FOLDED: "are folded into others by the URL options",
    DELETIONS: "leave the index",
}
FIELDS_CHANGED = (
    "The fields that rules.xml adds to documents have changed: each page is fetched with an unconditional GET next time, and so are the pages it links to "
    "that inherit other fields. `scrapy recrawl` makes them due now."
)
CONTENT_CHANGED = (
    "A page may yield other links, another text or another status than before, by settings (CRAWLSPACE_LINK_TAGS is one of them) or by what this "
    "version takes from pages: each page is fetched with an unconditional GET next time. `scrapy recrawl` makes them due now."
)


@dataclass(frozen=True, slots=True)
class RulePlan:
    """The changes that a start would make."""

    plan: Plan
    texts: Mapping[str, str]
    """The text of each rule by its location."""
    fields_changed: bool
    content_changed: bool
    hosts_without_addresses: Sequence[str]
    left: int
    """Documents left to other collections (761)."""
    of_refresh: Sequence[str]
    """Sentences about changes that don't come from the rules."""
    extraction: ExtractionChanges | None
    """None where the extraction rules are those of the last start."""
    failed_tests: Sequence[str]
    """What `lint` says of the tests that fail with these rules: no crawl would begin."""

    def as_json(self) -> dict[str, object]:
        """Return all values for `json.dumps`."""
        return {
            **self.plan.as_json(),
            "rules": {rule: text for rule, text in self.texts.items() if rule in self.plan.by_rule},
            "fields_changed": self.fields_changed,
            "content_changed": self.content_changed,
            "extraction": None if self.extraction is None else self.extraction.as_json(),
            "hosts_without_addresses": list(self.hosts_without_addresses),
            "failed_tests": list(self.failed_tests),
        }


def rule_plan(paths: CollectionPaths, collection: Collection, *, surveyed: Surveyed = not_shown) -> RulePlan:
    """Return what a start with this configuration would change; nothing is written, and a crawl may be running.

    `collection` may have other rules than the files of `paths`. `surveyed` is called with the number of known URLs checked so far. Raises
    ConfigError, also where the rules refuse all start URLs, and StoreError.
    """
    try:
        spider = CollectionLoader.from_settings(paths.settings).load(paths.name)
    except SystemExit as error:  # of the loader, where the code of a spider fails
        raise ConfigError(str(error.code)) from error
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
            surveyed=surveyed,
        )
        return RulePlan(
            shown,
            _texts(collection),
            metadata_changed(known, collection),
            content_changed(known, collection),
            sorted(decisions.hosts_without_addresses),
            known.counts().left_to_others,
            [] if opened is None else list(_of_refresh(collection, known)),
            None if opened is None else extraction_changes(collection, known),
            [f"{one.file}:{one.line}: {one.message}" for one in failed_tests(collection.rule_tests, space)],
        )


def largest_rules(by_rule: Mapping[str, Mapping[str, int]], most: int) -> dict[str, dict[str, int]]:
    """Return the rules with the most URLs; the others are added up as one."""
    rows = list(by_rule.items())
    shown = {rule: dict(numbers) for rule, numbers in rows[:most]}
    for _, numbers in rows[most:]:
        others = shown.setdefault(OTHERS, {})
        for kind, number in numbers.items():
            others[kind] = others.get(kind, 0) + number
    return shown


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


def _texts(collection: Collection) -> dict[str, str]:
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
