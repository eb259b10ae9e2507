"""What a change of the rules makes of the URLs that are known: told by `plan`, done by `reconcile` at the next start.

Both look at every known URL once, with the same eyes. What leaves the space becomes 760 or 761, what comes back is pending
again. Deletions that are too many at once are held, all of them. The change is made in many transactions; `reconciling` in the
store's meta holds what was decided before the first of them, so that a start after a kill goes on with the same decision.

Address rules hold for hosts whose addresses are known (known_addresses). A URL of another host that only an address rule keeps out can't
be told from one that has come back: it is pending again after every change.
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
from crawlspace.rules.bulk import Verdict, Verdicts
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Effects, Reclassified
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.metadata import get_table
from crawlspace.state.site_health import MISSING
from crawlspace.state.views import Counts, KnownUrl

RULES_HASH = "rules_hash"
"""Meta: the rules that the store is in line with."""
ACTIONS_HASH = "actions_hash"
"""Meta: the action rules that the store is in line with; empty without any."""
RECONCILING = "reconciling"
"""Meta: what was decided about the change under way; empty when there is none."""

_BATCH, _AT_ONCE = 5_000, 50_000
_EXAMPLES, _HOSTS = 5, 20


class Known(Protocol):
    """The known URLs of a collection."""

    def scan(self, after: int, limit: int) -> list[KnownUrl]: ...
    def counts(self) -> Counts: ...
    def host_count(self, host: str) -> int: ...
    def get_meta(self, name: str) -> str | None: ...


class Changeable(Known, Protocol):
    """And a way to change them."""

    def reclassify(self, found: Reclassified, *, now: int) -> Effects: ...
    def drop_inherited(self) -> None: ...
    def set_meta(self, name: str, value: str) -> None: ...


def rules_hash(space: CrawlSpace, global_rules: CrawlRules | None, *beside: str | bool) -> str:
    """Return what differs where a verdict could, in hexadecimal: over what the rules say, and not how they say it.

    `beside` is whatever else is to count as a change of the rules.
    """
    shared = None if global_rules is None else [f"{rule.action} {rule.target}" for rule in global_rules.domain]
    content = json.dumps([1, space.content_hash, shared, *beside])
    return blake2b(content.encode(), digest_size=16).hexdigest()


def plan(store: Known, verdicts: Verdicts, *, hash: str, deletion_limit: DeletionLimit) -> Plan:  # noqa: A002 - the builtin is not needed here
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
    store: Changeable,
    verdicts: Verdicts,
    *,
    hash: str,  # noqa: A002 - as above
    deletion_limit: DeletionLimit,
    now: int,
) -> Plan | None:
    """Bring the known URLs in line with the rules, if those have changed or a host has room again; return what was done, or None.

    Killed at any point, the next call goes on, and ends as if there had been one. Times are seconds since 1970.
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
    if present < work.generation:  # before a page is pending again that must be fetched whole
        set_generation(store, work.generation)
    pushed = sum(store.reclassify(part, now=now).pushes for part in found.parts(hold=work.hold))
    if interrupted or found.excluded or found.deletions or found.given_up or found.kept:
        store.drop_inherited()  # pages that are crawled no more don't speak for others
    if found.actions_changed:
        store.set_meta(ACTIONS_HASH, verdicts.actions_hash)
    note_kept_out(store, found.beyond_limit, hold=work.hold)
    store.set_meta(RULES_HASH, hash)
    store.set_meta(RECONCILING, "")
    return replace(_plan(found, indexed=indexed, hold=work.hold, changed=changed), pushed=pushed)


@dataclass(slots=True)
class Survey:
    """The known URLs that a change of the rules concerns: ids by what becomes of them, and numbers."""

    known: int = 0
    excluded: array[int] = field(default_factory=lambda: array("q"))
    """Become 760 and have nothing in the index."""
    deletions: array[int] = field(default_factory=lambda: array("q"))
    """Become 760; their documents leave the index."""
    given_up: array[int] = field(default_factory=lambda: array("q"))
    """Become 761 and have nothing in the index."""
    kept: array[int] = field(default_factory=lambda: array("q"))
    """Become 761; their documents stay in the index."""
    returned: array[int] = field(default_factory=lambda: array("q"))
    unindexed: array[int] = field(default_factory=lambda: array("q"))
    """Become 2004 and have nothing in the index."""
    unindexed_deletions: array[int] = field(default_factory=lambda: array("q"))
    """Become 2004; their documents leave the index."""
    moved: list[tuple[int, Queue]] = field(default_factory=list)
    """Wait elsewhere from now on."""
    actions_changed: bool = False
    beyond_limit: dict[bool, Counter[str]] = field(default_factory=lambda: {True: Counter(), False: Counter()})
    """By site what only the limit of the host excludes, with and without a document."""
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    """Numbers by rule for each kind; so are `hosts`."""
    hosts: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def leave(self, known: KnownUrl, verdict: Verdict) -> None:
        """Note a URL that is to leave the crawl space."""
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
        """Documents that leave the index."""
        return len(self.deletions) + len(self.unindexed_deletions)

    def unindex(self, known: KnownUrl, said: Actions) -> None:
        """Note a document that the rules want out of the index, though not out of the crawl space."""
        by = str(said.index_rule) if said.index_rule is not None else Reason.NOINDEX.value
        self._count(UNINDEXED, known, by)
        if known.indexed:
            self.unindexed_deletions.append(known.id)
            self._count(DELETIONS, known, by)
        else:
            self.unindexed.append(known.id)

    def move(self, known: KnownUrl, said: Actions) -> None:
        """Note where a URL waits from now on, if that is elsewhere."""
        if known.source == Source.USER:
            return
        links = known.source != Source.REDIR
        source = source_of(index=said.index, follow=said.follow) if links else Source.REDIR
        if (known.source, known.shift) != (source, said.shift):
            self.moved.append((known.id, Queue(source, said.shift)))

    def come_back(self, known: KnownUrl) -> None:
        """Note a URL that is in the crawl space again."""
        self.returned.append(known.id)
        self._count(RETURNED, known, None)

    def parts(self, *, hold: bool) -> Iterator[Reclassified]:
        """What to do, in portions for one transaction each.

        What is left to another crawler goes at once, as far as a transaction bears it: of equal pages that all go, none is to be deleted
        because one has gone before. Of the others, first what has nothing in the index: else it would be pushed there when the page
        goes that stands for it, and leave next.
        """
        for kept, given_up in _portions(self.kept, self.given_up, size=_AT_ONCE):
            yield Reclassified(given_up=array("q", sorted((*kept, *given_up))))
        for excluded, returned in _portions(self.excluded, self.returned, size=_BATCH):
            yield Reclassified(excluded=excluded, returned=returned)
        for (unindexed,) in _portions(self.unindexed, size=_BATCH):
            yield Reclassified(unindexed=unindexed)
        for (deletions,) in _portions(self.deletions, size=_BATCH):
            yield Reclassified(held=deletions) if hold else Reclassified(excluded=deletions)
        for (deletions,) in _portions(self.unindexed_deletions, size=_BATCH):
            yield Reclassified(held_unindexed=deletions) if hold else Reclassified(unindexed=deletions)
        for first in range(0, len(self.moved), _BATCH):
            yield Reclassified(moved=self.moved[first : first + _BATCH])

    def _count(self, kind: str, known: KnownUrl, by: str | None) -> None:
        if by is not None:
            self.rules.setdefault(kind, Counter())[by] += 1
        self.hosts.setdefault(kind, Counter())[known.site.rpartition(":")[0]] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(known.url)


def survey(store: Known, verdicts: Verdicts) -> Survey:
    """Return what the rules as they are now mean for each known URL that is not as they would have it. Reads only."""
    before = store.get_meta(ACTIONS_HASH) or ""
    found = Survey(actions_changed=before != verdicts.actions_hash)
    acts = bool(before or verdicts.actions_hash)
    verdicts.begin()
    last = 0
    while page := store.scan(last, _BATCH):
        verdicts.expect(known.site for known in page)
        for known in page:
            _, url, site, _, status, depth, host_as_written, has_document, _, held, never_due, _, _, left = known
            verdict = verdicts.of(url, site=site, depth=depth, host_as_written=host_as_written, is_missing=status in MISSING)
            if verdict is not None:
                if verdict.reason is Reason.URLS_PER_HOST:
                    found.beyond_limit[has_document][site] += 1
                if status != verdict.status or (left and held == Held.RULES):  # one that others have again loses its hold
                    found.leave(known, verdict)
                continue
            again = never_due or held == Held.RULES or status in OUT_OF_SPACE
            if acts:
                said = verdicts.said(url, host_as_written=host_as_written)
                found.move(known, said)
                if has_document and not said.index:
                    found.unindex(known, said)
                    continue
                again = again or (found.actions_changed and said.index and status == Status.NOINDEX)
            if again:
                found.come_back(known)
        found.known += len(page)
        last = page[-1].id
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    """A change under way: to which rules, whether its deletions are held, and which generation of rules it makes."""

    hash: str
    hold: bool
    generation: int

    def written(self) -> str:
        return json.dumps({"hash": self.hash, "hold": self.hold, "generation": self.generation})


def _unfinished(store: Known) -> _Work | None:
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
    """The names with the most URLs first, and no more than `most`."""
    changed = [counter for kind, counter in kinds.items() if kind != DELETIONS]

    def number(name: str) -> int:
        return sum(counter[name] for counter in changed)

    names: Iterable[str] = chain.from_iterable(changed)
    if most is not None:
        names = nlargest(most * len(changed), names, key=number)  # a name comes once for each kind
    return sorted(dict.fromkeys(names), key=lambda name: (-number(name), name))[:most]


def _portions(*kinds: array[int], size: int) -> Iterator[list[array[int]]]:
    """Divide ids in the order of ids, whatever their kinds, for what is near to each other in a file is written at once."""
    ordered = merge(*(zip(ids, repeat(kind)) for kind, ids in enumerate(kinds)))
    while portion := list(islice(ordered, size)):
        yield [array("q", (id for id, own in portion if own == kind)) for kind in range(len(kinds))]
