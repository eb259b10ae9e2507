"""Prepare a crawl: update the store for changed rules, settings and clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.config.sites import SiteLimitTable
from crawlspace.content.boilerplate import SiteBlocks
from crawlspace.crawl.addresses import KnownAddresses
from crawlspace.crawl.admission import check_start_urls
from crawlspace.crawl.commits import Archiving, WorkerView
from crawlspace.crawl.conditional import begin_generation
from crawlspace.crawl.depths.end_of_run import begin_run, mark_unknown_depths
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rule_changes.reconcile import RULES_HASH, reconcile, rules_hash
from crawlspace.crawl.rule_changes.rediscovery import UNKNOWN_SPIDER, Rediscovery, SpiderCode
from crawlspace.crawl.rule_changes.rules_in_force import keep_rules
from crawlspace.crawl.rule_changes.survey import Plan
from crawlspace.crawl.run import Refused
from crawlspace.crawl.run_events import RunEvents
from crawlspace.decision import Reason
from crawlspace.errors import RuleFileError
from crawlspace.index.sink import Sink
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.loosened import Checks
from crawlspace.rules.rule_tests import failed_tests
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.metadata import damaged
from crawlspace.state.near_duplicates import begin_epoch, use_distance
from crawlspace.state.store import MetaStore, Store

CONTENT = "content_hash"
EXTRACTION = "extraction_rules"
BOILERPLATE = "boilerplate"
"""Meta: the hash of the extraction rules at the last start, and the fields that they had, as JSON."""
METADATA_HASH = "metadata_hash"


@dataclass(frozen=True, slots=True)
class Startup:
    """A collection ready to be crawled. `plan` has the effects of a change of the rules, None without a change."""

    engine: Engine
    refused_starts: list[Refused]
    plan: Plan | None
    due_earlier: int
    """Number of URLs made due earlier, because the clock was set back or the longest interval was reduced."""


def build_space(collection: Collection) -> CrawlSpace:
    """Compile a collection's rules and limits."""
    return CrawlSpace(
        collection.rules,
        collection.limits,
        [start.url for start in collection.start_urls],
        host_case_sensitive=collection.host_case_sensitive,
        named_hosts_any_address=collection.named_hosts_any_address,
        actions=collection.action_rules,
        site_limits=SiteLimitTable(collection.sites) if collection.sites.limits_differ else None,
        folding=collection.url_folding,
    )


def build_global_space(collection: Collection) -> GlobalSpace | None:
    """Compile the global rules, if there are any."""
    if collection.global_rules is None:
        return None
    return GlobalSpace(collection.global_rules.domain, case_sensitive=collection.host_case_sensitive)


def build_known_url_decisions(collection: Collection, space: CrawlSpace, store: MetaStore) -> KnownUrlDecisions:
    """Return the decisions about the URLs of a store, with its stored addresses of hosts."""
    addresses = KnownAddresses(store)
    return KnownUrlDecisions(
        space,
        build_global_space(collection),
        addresses=addresses,
        read_ahead=addresses.read,
        is_proxied=collection.proxies.has,  # only the proxy knows the addresses
    )


def build_deletion_limit(collection: Collection) -> DeletionLimit:
    return DeletionLimit(collection.max_deletions_percent, collection.max_deletions)


def build_rediscovery(collection: Collection, space: CrawlSpace, *, spider: SpiderCode = UNKNOWN_SPIDER) -> Rediscovery:
    """Return the collection's checks and its spider's properties, to be compared with those of the last start."""
    checks = Checks(
        rules=collection.rules,
        limits=collection.limits,
        start_urls=[start.url for start in collection.start_urls],
        host_case_sensitive=collection.host_case_sensitive,
        accept="" if collection.action_rules is None else collection.action_rules.accept_hash,
        sites=collection.sites.limits_hash("max_path_depth", "max_urls_per_host", "follow_query_strings"),
        site_extensions=collection.sites.limits_hash("exclude_extensions"),
        site_types=collection.sites.limits_hash("mime_types"),
        folding=space.folding,
        redirects=collection.max_redirects,
        follows_redirects=collection.follows_offsite_redirects,
        page_links=collection.content.max_links,
        robots=collection.robots_obey,
        meta_robots=collection.content.obey_meta_robots,
        meta="" if collection.action_rules is None else collection.action_rules.meta_hash,
    )
    starts = frozenset(start.url.text for start in collection.start_urls)
    return Rediscovery(
        checks.described(),
        starts,
        is_wanted=collection.rediscover,
        spider=spider.hash,
        from_archive=collection.archive.is_on and spider.follows_links,
    )


def hash_of(collection: Collection, space: CrawlSpace) -> str:
    """Return a hash that changes whenever the rules may decide differently about a URL."""
    proxied = collection.proxies.content_hash
    return rules_hash(space, collection.global_rules, collection.host_case_sensitive, *([proxied] if proxied else ()))


def applied_rules(store: MetaStore) -> str | None:
    """Return the hash of the rules by which the known URLs were checked; empty if they have to be checked again, None before the first start."""
    return store.get_meta(RULES_HASH)


def rules_of(collection: Collection, space: CrawlSpace) -> str:
    """Return a hash that changes whenever a page or its rule actions may differ: it must be equal for all workers."""
    combined = f"{hash_of(collection, space)} {collection.content_hash} {_inheritance_hash(collection)}"
    return blake2b(combined.encode(), digest_size=8).hexdigest()


def open_engine(
    collection: Collection,
    *,
    store: Store,
    sinks: Sequence[Sink],
    clock: Clock,
    worker: WorkerView | None = None,
    archiving: Archiving | None = None,
    events: RunEvents | None = None,
    spider: SpiderCode = UNKNOWN_SPIDER,
) -> Startup:
    """Update the store, create the engine, and insert the start URLs. `spider`: properties of the spider's code.

    Raises ConfigError, before any change, if the rules refuse all start URLs or fail a test. After a kill, the next start continues.
    """
    space = build_space(collection)
    check_start_urls(collection.start_urls, space)
    if failed := list(failed_tests(collection.rule_tests, space)):
        raise RuleFileError(failed)
    keep_rules(collection, now=int(clock.now()), run=0 if events is None else events.run)
    global_space = build_global_space(collection)
    rules = hash_of(collection, space)
    begin_run(store, collection, clock, rules_changed=applied_rules(store) not in (None, rules))
    plan = reconcile(
        store,
        build_known_url_decisions(collection, space, store),
        hash=rules,
        deletion_limit=build_deletion_limit(collection),
        now=int(clock.now()),
        rediscovery=build_rediscovery(collection, space, spider=spider),
        note=(lambda _: None) if events is None else events.note_rules,
    )
    _apply_content(store, collection)
    _apply_inheritance(store, collection)
    engine = Engine(
        collection,
        space,
        store=store,
        sinks=sinks,
        clock=clock,
        global_space=global_space,
        worker=worker,
        archiving=archiving,
        events=events,
    )
    folded, lost = engine.read_folded()
    mark_unknown_depths(store, [new.key for new in lost])  # links to the folded URL may not lead to the other one
    engine.count_written(pushes=folded.pushes, deletes=folded.deletes)
    if plan is not None:
        _forget_sites_outside(store, space)
        engine.count_written(pushes=plan.pushed, deletes=plan.deletions - plan.held + plan.replaced)
    return Startup(engine, engine.seed(), plan, engine.due_earlier)


def _forget_sites_outside(store: Store, space: CrawlSpace) -> None:
    """Delete the rows of unreachable sites that domain rules now exclude: they would never be tried again."""
    for row in store.unreachable():
        port = row.site.rpartition(":")[2]
        _, decision = space.decide(f"{'https' if port == '443' else 'http'}://{row.site}/")
        if decision.reason is Reason.DOMAIN:
            store.set_unreachable(row.site, None)


def _apply_content(store: Store, collection: Collection) -> None:
    """Begin a generation if settings of the content have changed."""
    use_near_duplicates(store, collection)
    before = store.get_meta(CONTENT)
    if before == collection.content_hash:
        return
    if before is not None:
        begin_generation(store)
        begin_epoch(store)
    store.set_meta(CONTENT, collection.content_hash)
    rules = collection.extraction_rules
    names = sorted({rule.name for rule in rules.fields})
    applied = AppliedRules(rules.content_hash, tuple(names), bool(rules.texts), bool(rules.parts))
    store.set_meta(EXTRACTION, msgspec.json.encode(applied).decode())


def use_near_duplicates(store: MetaStore, collection: Collection) -> None:
    """Store the distance of near duplicates, for all that change documents from now on."""
    use_distance(store, collection.content.near_duplicates)


class AppliedRules(NamedTuple):
    """The extraction rules at the last start: their hash, the fields that they were for, and whether there were any for texts and for parts."""

    content_hash: str = ""
    fields: tuple[str, ...] = ()
    texts: bool = False
    parts: bool = False


def applied_extraction(store: Store) -> AppliedRules:
    """Return what is known of the extraction rules at the last start. Raises StoreDamaged."""
    written = store.get_meta(EXTRACTION)
    if written is None:
        return AppliedRules()
    try:
        return msgspec.json.decode(written, type=AppliedRules)
    except msgspec.MsgspecError as error:
        raise damaged(EXTRACTION, written) from error


def learned_blocks(store: Store) -> dict[str, SiteBlocks]:
    """Return the blocks that were learned last, by site. Raises StoreDamaged."""
    written = store.get_meta(BOILERPLATE)
    if not written:
        return {}
    try:
        return msgspec.json.decode(written, type=dict[str, SiteBlocks])
    except msgspec.MsgspecError as error:
        raise damaged(BOILERPLATE, written) from error


def set_learned_blocks(store: Store, learned: Mapping[str, SiteBlocks]) -> None:
    """Replace what was learned."""
    store.set_meta(BOILERPLATE, msgspec.json.encode(learned).decode() if learned else "")


def content_changed(store: Store, collection: Collection) -> bool:
    """Return whether settings have changed by which an unchanged page may have other content, such as links, than at the last start."""
    return store.get_meta(CONTENT) not in (None, collection.content_hash)


def metadata_changed(store: Store, collection: Collection) -> bool:
    """Return whether rules.xml adds other metadata than at the last start."""
    return store.get_meta(METADATA_HASH) not in (None, _inheritance_hash(collection))


def _apply_inheritance(store: Store, collection: Collection) -> None:
    """Begin a generation if pages may pass on other metadata; until fetched, each page's old metadata remains."""
    before, now = store.get_meta(METADATA_HASH), _inheritance_hash(collection)
    if before == now:
        return
    if before is not None:
        begin_generation(store)
    store.set_meta(METADATA_HASH, now)


def _inheritance_hash(collection: Collection) -> str:
    fields = collection.action_rules.fields_hash if collection.action_rules is not None else ""
    return f"{fields} {collection.metadata_along_links}" if fields else ""
