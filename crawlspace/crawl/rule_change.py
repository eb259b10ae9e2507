"""The effects of a change of the rules on known URLs: shown by `plan`, applied by `reconcile` at the next start.

Both check every known URL once, with the same function. URLs that leave the crawl space become 760 or 761, those readmitted
become pending. If the deletions exceed the limit, all of them are held. The change is made in many transactions; `reconciling` in
the store's meta has the decision made before the first of them, so that a start after a kill continues with the same decision.

Address rules apply to hosts with known addresses (known_addresses). A URL of another host that only an address rule excludes
can't be distinguished from a readmitted one: it becomes pending after every change.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import merge, nlargest
from itertools import chain, islice, repeat
from typing import Protocol

from crawlspace.crawl.generation import generation, set_generation
from crawlspace.crawl.host_limit import has_room, note_kept_out
from crawlspace.crawl.plan import DELETIONS, EXCLUDED, KEPT, OTHERS, RETURNED, UNINDEXED, Plan
from crawlspace.decision import Actions, Reason
from crawlspace.model import OUT_OF_SPACE, Held, Queue, Source, Status, source_of
from crawlspace.rules.bulk import BulkDecisions, Exclusion
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Effects, Reclassified
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.metadata import get_table
from crawlspace.state.site_health import MISSING
from crawlspace.state.views import Counts, KnownUrl

RULES_HASH = "rules_hash"
"""Meta: the hash of the rules last applied to the store."""
ACTIONS_HASH = "actions_hash"
"""Meta: the hash of the action rules last applied to the store; empty without any."""
RECONCILING = "reconciling"
"""Meta: the decision about a change in progress; empty if there is none."""

BATCH, BATCH_IN_INDEX = 5_000, 50_000
_EXAMPLES, _HOSTS = 5, 20


class SurveyedStore(Protocol):
    """The known URLs of a collection."""

    def scan(self, after: int, limit: int) -> list[KnownUrl]: ...
    def counts(self) -> Counts: ...
    def host_count(self, host: str) -> int: ...
    def get_meta(self, name: str) -> str | None: ...


class ReclassifiedStore(SurveyedStore, Protocol):
    """The same, with the changes that `reconcile` makes."""

    def reclassify(self, found: Reclassified, *, now: int) -> Effects: ...
    def drop_inherited(self) -> None: ...
    def set_meta(self, name: str, value: str) -> None: ...


def rules_hash(space: CrawlSpace, global_rules: CrawlRules | None, *beside: str | bool) -> str:
    """Return a hexadecimal hash that changes whenever a decision may change: of the meaning of the rules, not their text.

    `beside` has other values that count as a change of the rules.
    """
    shared = None if global_rules is None else [f"{rule.action} {rule.target}" for rule in global_rules.domain]
    content = json.dumps([1, space.content_hash, shared, *beside])
    return blake2b(content.encode(), digest_size=16).hexdigest()


def plan(store: SurveyedStore, verdicts: BulkDecisions, *, hash: str, deletion_limit: DeletionLimit) -> Plan:  # noqa: A002 - the builtin is not needed here
    """Return what the next start would change; nothing is written, and a crawl may be running."""
    work = _unfinished(store)
    counts = store.counts()
    changed = work is not None or store.get_meta(RULES_HASH) != hash
    if not changed and not has_room(store, verdicts):
        return _plan(Survey(known=sum(counts.by_state.values())), indexed=counts.indexed, hold=False, changed=False)
    found = survey(store, verdicts)
    hold = (
        work.hold if work is not None and work.hash == hash else not deletion_limit.allows(found.leaving, indexed=counts.indexed)
    )
    return _plan(found, indexed=counts.indexed, hold=hold, changed=changed)


def reconcile(
    store: ReclassifiedStore,
    verdicts: BulkDecisions,
    *,
    hash: str,  # noqa: A002 - as above
    deletion_limit: DeletionLimit,
    now: int,
) -> Plan | None:
    """Apply the rules to the known URLs if they have changed or a host has room again; return what was done, or None.

    After a kill, the next call continues, with the same result. Times are seconds since 1970.
    """
    work = _unfinished(store)
    interrupted = work is not None
    before = store.get_meta(RULES_HASH)
    changed = work is not None or before != hash
    if not changed and not has_room(store, verdicts):
        return None
    present = generation(store)
    if work is None and before is None and not store.scan(0, 1):
        set_generation(store, present)
        store.set_meta(ACTIONS_HASH, verdicts.actions_hash)
        store.set_meta(RULES_HASH, hash)
        return None
    indexed = store.counts().indexed
    found = survey(store, verdicts)
    if work is None or work.hash != hash:
        work = _Work(hash, not deletion_limit.allows(found.leaving, indexed=indexed), present + changed)
        store.set_meta(RECONCILING, work.written())
    if present < work.generation:  # before pages that need an unconditional GET become pending
        set_generation(store, work.generation)
    pushed = sum(store.reclassify(part, now=now).pushes for part in found.parts(hold=work.hold))
    if interrupted or found.excluded or found.deletions or found.given_up or found.kept:
        store.drop_inherited()  # pages that are no longer crawled pass on no metadata
    if found.actions_changed:
        store.set_meta(ACTIONS_HASH, verdicts.actions_hash)
    note_kept_out(store, found.beyond_limit, hold=work.hold)
    store.set_meta(RULES_HASH, hash)
    store.set_meta(RECONCILING, "")
    return replace(_plan(found, indexed=indexed, hold=work.hold, changed=changed), pushed=pushed)


@dataclass(slots=True)
class Survey:
    """The known URLs affected by a change of the rules: ids by kind of change, and numbers."""

    known: int = 0
    excluded: array[int] = field(default_factory=lambda: array("q"))
    """Become 760, with nothing in the index."""
    deletions: array[int] = field(default_factory=lambda: array("q"))
    """Become 760; their documents are deleted."""
    given_up: array[int] = field(default_factory=lambda: array("q"))
    """Become 761, with nothing in the index."""
    kept: array[int] = field(default_factory=lambda: array("q"))
    """Become 761; their documents stay in the index."""
    returned: array[int] = field(default_factory=lambda: array("q"))
    unindexed: array[int] = field(default_factory=lambda: array("q"))
    """Become 2004, with nothing in the index."""
    unindexed_deletions: array[int] = field(default_factory=lambda: array("q"))
    """Become 2004; their documents are deleted."""
    moved: list[tuple[int, Queue]] = field(default_factory=list)
    """Get another queue."""
    actions_changed: bool = False
    beyond_limit: dict[bool, Counter[str]] = field(default_factory=lambda: {True: Counter(), False: Counter()})
    """By site, URLs excluded by the limit of the host only, with and without a document."""
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    """Numbers by rule for each kind; `hosts` likewise."""
    hosts: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def leave(self, known: KnownUrl, verdict: Exclusion) -> None:
        """Add a URL that leaves the crawl space."""
        by = str(verdict.rule) if verdict.rule is not None else verdict.reason.value
        in_index = known.indexed or known.left_to_others
        if verdict.status == Status.EXCLUDED_HERE:
            (self.kept if in_index else self.given_up).append(known.id)
            self._count(KEPT, known, by)
            return
        self._count(EXCLUDED, known, by)
        if in_index:
            self.deletions.append(known.id)
            self._count(DELETIONS, known, by)
        else:
            self.excluded.append(known.id)

    @property
    def leaving(self) -> int:
        """Number of documents deleted from the index."""
        return len(self.deletions) + len(self.unindexed_deletions)

    def unindex(self, known: KnownUrl, actions: Actions) -> None:
        """Add a document that the rules exclude from the index, but not from the crawl space."""
        by = str(actions.index_rule) if actions.index_rule is not None else Reason.NOINDEX.value
        self._count(UNINDEXED, known, by)
        if known.indexed:
            self.unindexed_deletions.append(known.id)
            self._count(DELETIONS, known, by)
        else:
            self.unindexed.append(known.id)

    def move(self, known: KnownUrl, actions: Actions) -> None:
        """Add a URL whose queue changes."""
        if known.source == Source.USER:
            return
        links = known.source != Source.REDIR
        source = source_of(index=actions.index, follow=actions.follow) if links else Source.REDIR
        if (known.source, known.shift) != (source, actions.shift):
            self.moved.append((known.id, Queue(source, actions.shift)))

    def come_back(self, known: KnownUrl) -> None:
        """Add a URL that is in the crawl space again."""
        self.returned.append(known.id)
        self._count(RETURNED, known, None)

    def parts(self, *, hold: bool) -> Iterator[Reclassified]:
        """Yield the changes in batches for one transaction each.

        URLs left to another crawler come first, in the largest possible batches: of equal pages that all go, none must be deleted
        because another went before. Next come deletions that are held: a page that only keeps its place in a group because another
        one names it must not lose its document when that one goes. Next come those with nothing in the index: otherwise one could be
        pushed when the page that represents it is deleted, and be deleted next.
        """
        for kept, given_up in _portions(self.kept, self.given_up, size=BATCH_IN_INDEX):
            yield Reclassified(given_up=array("q", sorted((*kept, *given_up))))
        if hold:
            for (held,) in _portions(self.deletions, size=BATCH):
                yield Reclassified(held=held)
            for (held,) in _portions(self.unindexed_deletions, size=BATCH):
                yield Reclassified(held_unindexed=held)
        for excluded, returned in _portions(self.excluded, self.returned, size=BATCH):
            yield Reclassified(excluded=excluded, returned=returned)
        for (unindexed,) in _portions(self.unindexed, size=BATCH):
            yield Reclassified(unindexed=unindexed)
        if not hold:
            for (deletions,) in _portions(self.deletions, size=BATCH):
                yield Reclassified(excluded=deletions)
            for (deletions,) in _portions(self.unindexed_deletions, size=BATCH):
                yield Reclassified(unindexed=deletions)
        for first in range(0, len(self.moved), BATCH):
            yield Reclassified(moved=self.moved[first : first + BATCH])

    def _count(self, kind: str, known: KnownUrl, by: str | None) -> None:
        if by is not None:
            self.rules.setdefault(kind, Counter())[by] += 1
        self.hosts.setdefault(kind, Counter())[known.site.rpartition(":")[0]] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(known.url)


def survey(store: SurveyedStore, verdicts: BulkDecisions) -> Survey:
    """Return the known URLs whose state differs from what the present rules demand. Reads only."""
    before = store.get_meta(ACTIONS_HASH) or ""
    found = Survey(actions_changed=before != verdicts.actions_hash)
    acts = bool(before or verdicts.actions_hash)
    verdicts.begin()
    last = 0
    while page := store.scan(last, BATCH):
        verdicts.expect(known.site for known in page)
        for known in page:
            _, url, site, _, status, depth, host_as_written, has_document, _, held, never_due, _, _, left = known
            verdict = verdicts.of(url, site=site, depth=depth, host_as_written=host_as_written, is_missing=status in MISSING)
            if verdict is not None:
                if verdict.reason is Reason.URLS_PER_HOST:
                    found.beyond_limit[has_document][site] += 1
                if status != verdict.status or (
                    left and held == Held.RULES
                ):  # a hold ends if another collection has the URL again
                    found.leave(known, verdict)
                continue
            again = never_due or held == Held.RULES or status in OUT_OF_SPACE
            if acts:
                actions = verdicts.actions_of(url, host_as_written=host_as_written)
                found.move(known, actions)
                if has_document and not actions.index:
                    found.unindex(known, actions)
                    continue
                again = again or (found.actions_changed and actions.index and status == Status.NOINDEX)
            if again:
                found.come_back(known)
        found.known += len(page)
        last = page[-1].id
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    """A change in progress: the hash of its rules, whether its deletions are held, and its generation."""

    hash: str
    hold: bool
    generation: int

    def written(self) -> str:
        return json.dumps({"hash": self.hash, "hold": self.hold, "generation": self.generation})


def _unfinished(store: SurveyedStore) -> _Work | None:
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
        by_rule={rule: _numbers(found.rules, rule) for rule in _ranked(found.rules)},
        by_host=_by_host(found.hosts),
        examples=found.examples,
        unindexed=len(found.unindexed) + len(found.unindexed_deletions),
    )


def _by_host(hosts: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    largest = _ranked(hosts, _HOSTS)
    shown = {host: _numbers(hosts, host) for host in largest}
    rest = {kind: counter.total() - sum(counter[host] for host in largest) for kind, counter in hosts.items()}
    if any(rest.values()):
        shown[OTHERS] = {kind: number for kind, number in rest.items() if number}
    return shown


def _numbers(kinds: Mapping[str, Counter[str]], name: str) -> dict[str, int]:
    return {kind: counter[name] for kind, counter in kinds.items() if name in counter}


def _ranked(kinds: Mapping[str, Counter[str]], most: int | None = None) -> list[str]:
    """Return the names with the most URLs first, at most `most`."""
    changed = [counter for kind, counter in kinds.items() if kind != DELETIONS]

    def number(name: str) -> int:
        return sum(counter[name] for counter in changed)

    names: Iterable[str] = chain.from_iterable(changed)
    if most is not None:
        names = nlargest(most * len(changed), names, key=number)  # a name occurs once for each kind
    return sorted(dict.fromkeys(names), key=lambda name: (-number(name), name))[:most]


def _portions(*kinds: array[int], size: int) -> Iterator[list[array[int]]]:
    """Divide ids into batches in the order of ids, across kinds, so that neighbours in the file are written together."""
    ordered = merge(*(zip(ids, repeat(kind)) for kind, ids in enumerate(kinds)))
    while portion := list(islice(ordered, size)):
        yield [array("q", (id for id, own in portion if own == kind)) for kind in range(len(kinds))]
