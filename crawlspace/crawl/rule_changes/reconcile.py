"""The effects of a change of the rules on known URLs: shown by `plan`, applied by `reconcile` at the next start.

Both check every known URL once, with the same function. URLs that leave the crawl space become 760 or 761, those readmitted
become pending. If the deletions exceed the limit, all of them are held. The change is made in many transactions; `reconciling` in
the store's meta has the decision made before the first of them, so that a start after a kill continues with it.

Address rules apply to hosts with known addresses (`KnownAddresses`). A URL of another host that only an address rule excludes
can't be distinguished from a readmitted one: it becomes pending after every change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import MappingProxyType

from crawlspace.crawl.conditional import generation, set_generation
from crawlspace.crawl.depths.settlement import ANY_GIVER, DEEPER
from crawlspace.crawl.rule_changes.folding import fold_known
from crawlspace.crawl.rule_changes.rediscovery import NONE_LOOSENED, Rediscovery, begin_judging
from crawlspace.crawl.rule_changes.survey import ACTIONS_HASH, Plan, Survey, Surveyed, not_shown, survey
from crawlspace.crawl.sites import has_room, note_kept_out
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Reclassified
from crawlspace.state.depths import ANY_PAGE, LOWERED, DepthMark
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.metadata import get_table
from crawlspace.state.store import Store

RULES_HASH = "rules_hash"
"""Meta: the hash of the rules last applied to the store."""
RECONCILING = "reconciling"
"""Meta: the decision about a change in progress; empty if there is none."""


def rules_hash(space: CrawlSpace, global_rules: CrawlRules | None, *other_values: str | bool) -> str:
    """Return a hexadecimal hash that changes whenever a decision may change: of the meaning of the rules, not their text.

    `other_values` count as rules.
    """
    shared = None if global_rules is None else [f"{rule.action} {rule.target}" for rule in global_rules.domain]
    content = json.dumps([1, space.content_hash, shared, *other_values])
    return blake2b(content.encode(), digest_size=16).hexdigest()


def plan(
    store: Store,
    decisions: KnownUrlDecisions,
    *,
    hash: str,  # noqa: A002 - the builtin is not needed here
    deletion_limit: DeletionLimit,
    rediscovery: Rediscovery | None = None,
    depths: Mapping[int, int] = MappingProxyType({}),
    surveyed: Surveyed = not_shown,
) -> Plan:
    """Return what the next start would change; nothing is written, and a crawl may be running.

    `depths` are link depths by id where they differ from the stored ones, which may be wrong. `surveyed` shows the progress.
    """
    work = _unfinished(store)
    counts = store.counts()
    changed = work is not None or store.get_meta(RULES_HASH) != hash
    looser = NONE_LOOSENED if rediscovery is None else rediscovery.loosened(store)
    if not changed and not looser and not _depths_changed(store, decisions) and not has_room(store, decisions):
        return _plan(Survey(known=sum(counts.by_state.values())), indexed=counts.indexed, hold=False, changed=False)
    found = survey(store, decisions, looser=looser, depths=depths, surveyed=surveyed)
    hold = (
        work.hold if work is not None and work.hash == hash else not deletion_limit.allows(found.leaving, indexed=counts.indexed)
    )
    return _plan(found, indexed=counts.indexed, hold=hold, changed=changed)


def reconcile(
    store: Store,
    decisions: KnownUrlDecisions,
    *,
    hash: str,  # noqa: A002 - as above
    deletion_limit: DeletionLimit,
    now: int,
    rediscovery: Rediscovery | None = None,
    note: Callable[[Reclassified], None] = lambda _: None,
) -> Plan | None:
    """Apply the rules to the known URLs if they have changed or a host has room again; return what was done, or None.

    After a kill, the next call continues, with the same result. Times are seconds since 1970. `note` is called before each change is made.
    """
    work = _unfinished(store)
    interrupted = work is not None
    before = store.get_meta(RULES_HASH)
    changed = work is not None or before != hash
    looser = NONE_LOOSENED if rediscovery is None else rediscovery.loosened(store)
    if not changed and not looser and not _depths_changed(store, decisions) and not has_room(store, decisions):
        if rediscovery is not None:
            rediscovery.applied(store)
        return None
    present = generation(store)
    if work is None and before is None and not store.scan(0, 1):
        set_generation(store, present)
        store.set_meta(ACTIONS_HASH, decisions.actions_hash)
        if rediscovery is not None:
            rediscovery.applied(store)
        store.set_meta(RULES_HASH, hash)
        return None
    indexed = store.counts().indexed
    found = survey(store, decisions, looser=looser)
    if work is None or work.hash != hash:
        work = _Work(hash, not deletion_limit.allows(found.leaving, indexed=indexed), present + changed)
        store.set_meta(RECONCILING, work.written())
    if present < work.generation:  # before pages that need an unconditional GET become pending
        set_generation(store, work.generation)
    pages_leave = bool(found.excluded or found.deletions or found.given_up or found.kept or found.folds)
    if changed or looser or pages_leave or found.returned:
        # Links of pages that leave may be deeper now; readmitted URLs may have become orphans, or nearer, while they were excluded.
        store.set_meta(ANY_GIVER, "1")
    if found.unfolded:
        store.set_depth_marks({key: DepthMark(ANY_PAGE) for key in found.unfolded})
    pushed = 0
    for part in found.parts(hold=work.hold):
        note(part)
        pushed += store.reclassify(part, now=now).pushes
    folded = fold_known(store, decisions, found.folds, now=now, note=note)
    if interrupted or pages_leave:
        store.drop_inherited()  # pages that are no longer crawled pass on no metadata
    if found.actions_changed:
        store.set_meta(ACTIONS_HASH, decisions.actions_hash)
    _remove_notes(store)
    note_kept_out(store, found.beyond_limit, hold=work.hold)
    if found.judged:
        begin_judging(store, looser, now=now)
    if rediscovery is not None:
        rediscovery.applied(store)
    store.set_meta(RULES_HASH, hash)
    store.set_meta(RECONCILING, "")
    return replace(
        _plan(found, indexed=indexed, hold=work.hold, changed=changed), pushed=pushed + folded.pushes, replaced=folded.deletes
    )


def _depths_changed(store: Store, decisions: KnownUrlDecisions) -> bool:
    """Return whether depths may have crossed the limit since their URLs were checked."""
    return bool(store.get_meta(DEEPER)) or (decisions.max_link_depth is not None and bool(store.get_meta(LOWERED)))


def _remove_notes(store: Store) -> None:
    for note in (DEEPER, LOWERED):
        if store.get_meta(note):
            store.set_meta(note, "")


@dataclass(frozen=True, slots=True)
class _Work:
    """A change in progress: the hash of its rules, whether its deletions are held, and its generation."""

    hash: str
    hold: bool
    generation: int

    def written(self) -> str:
        return json.dumps({"hash": self.hash, "hold": self.hold, "generation": self.generation})


def _unfinished(store: Store) -> _Work | None:
    read = get_table(store, RECONCILING)
    if read is None:
        return None
    return _Work(str(read.get("hash")), bool(read.get("hold", True)), int(str(read.get("generation", 1))))


def _plan(found: Survey, *, indexed: int, hold: bool, changed: bool) -> Plan:
    deletions = found.leaving
    return Plan(
        changed=changed,
        known=found.known,
        indexed=indexed,
        excluded=len(found.excluded) + len(found.deletions),
        kept=len(found.given_up) + len(found.kept),
        returned=len(found.returned),
        deletions=deletions,
        held=deletions if hold else 0,
        by_rule=found.by_rule,
        by_host=found.by_host,
        examples=found.examples,
        unindexed=len(found.unindexed) + len(found.unindexed_deletions),
        due=len(found.due),
        judged=found.judged,
        folded=len(found.folds),
        folded_into=found.folds.survivors,
    )
