"""The effects of a rule change on the known URLs: one pass over all of them, for `plan` and for `reconcile`."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge, nlargest
from itertools import chain, islice, repeat
from types import MappingProxyType
from typing import TypeAlias

from crawlspace.crawl.rule_changes.folding import KnownFolds
from crawlspace.crawl.rule_changes.rediscovery import NONE_LOOSENED, LoosenedChecks
from crawlspace.decision import Actions, Reason
from crawlspace.model import SITEMAP_QUEUE, Held, Queue, Source, source_of
from crawlspace.rules.exclusion import Exclusion, KnownUrlDecisions
from crawlspace.state.changes import Reclassified
from crawlspace.state.refused_links import has_any, letters_of
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl
from crawlspace.status import NO_PAGES, OUT_OF_SPACE, SITEMAPS, Status
from crawlspace.text import counted
from crawlspace.urls import Url

EXCLUDED, KEPT, RETURNED, UNINDEXED, DUE, DELETIONS = "excluded", "kept", "returned", "unindexed", "due", "deletions"
FOLDED, JUDGED = "folded", "judged"
OTHERS = "(others)"
"""Stands for all hosts except those with the most changes."""
ACTIONS_HASH = "actions_hash"
"""Meta: the hash of the action rules last applied to the store; empty without any."""
_TOO_DEEP = letters_of([Reason.LINK_DEPTH])
"""A page whose depth fell below the limit had links that were too deep: they are not any more."""
BATCH, BATCH_IN_INDEX = 5_000, 50_000
_EXAMPLES, _HOSTS = 5, 20

Surveyed: TypeAlias = Callable[[int], None]
"""Called with the number of known URLs that have been checked so far."""


def not_shown(known: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The effects of a change of the rules, in numbers of URLs. All 0 if the rules have not changed."""

    changed: bool
    """The rules differ from those last applied to the store, or applying them was not finished."""
    known: int
    indexed: int
    """Documents in the index before the change."""
    excluded: int
    """URLs that become 760, deletions included."""
    kept: int
    """URLs that become 761: their documents stay in the index."""
    returned: int
    """URLs that become pending again, or lose a hold and are due at once."""
    deletions: int
    """Documents deleted from the index."""
    held: int
    """Equal to `deletions` if they exceed the deletion limit; then they are held, and their URLs don't change."""
    by_rule: Mapping[str, Mapping[str, int]]
    """`crawl.rules:7`, or the reason if no rule decided, to numbers by kind. Without `returned`, which have no rule."""
    by_host: Mapping[str, Mapping[str, int]]
    """The 20 hosts with the most changes, and OTHERS for the rest, to numbers by kind."""
    examples: Mapping[str, Sequence[str]]
    """The first few URLs of each kind."""
    due: int = 0
    """URLs that are due at once: they, or links of them, were refused by a check that admits more now; start URLs."""
    judged: int = 0
    """Pages whose links were refused by such a check and are judged from the archive: they need no request."""
    unindexed: int = 0
    """URLs that stay in the crawl space and must not be indexed any more (2004), deletions included."""
    folded: int = 0
    """URLs that the URL options fold into others."""
    folded_into: int = 0
    """These others, known or not."""
    pushed: int = field(default=0, compare=False)
    """Documents sent to the index in place of equal ones that were deleted or held. Known after the change only."""
    replaced: int = field(default=0, compare=False)
    """Documents of folded URLs deleted from the index, because the other URL has a document. Known after the change only."""

    @property
    def has_effect(self) -> bool:
        """Whether any known URL is affected."""
        return bool(self.excluded or self.kept or self.returned or self.unindexed or self.due or self.judged or self.folded)

    def sentence(self) -> str:
        """Return the effects in one line."""
        parts = [f"{number:,} {what}" for number, what in self._numbers() if number]
        known = counted(self.known, "known URL")
        return f"of {known} {', '.join(parts)}" if parts else f"none of {known} is affected"

    def _numbers(self) -> list[tuple[int, str]]:
        one = self.deletions == 1
        happens = "held in" if self.held else "leaves" if one else "leave"
        return [
            (self.excluded, f"excluded ({int(Status.EXCLUDED)})"),
            (self.kept, f"left to another crawler ({int(Status.EXCLUDED_HERE)})"),
            (self.unindexed, f"crawled for their links only ({int(Status.NOINDEX)})"),
            (self.returned, "back in the crawl space"),
            (self.folded, f"folded into {self.folded_into:,}"),
            (
                self.due,
                "due at once, because the rules may admit links that they refused before, or because the spider has changed",
            ),
            (self.judged, "with links to be judged again from the archive, without a request"),
            (self.deletions, f"{'document' if one else 'documents'} {happens} the index"),
        ]

    def as_json(self) -> dict[str, object]:
        """Return all values for `json.dumps`."""
        return {
            "changed": self.changed,
            "known": self.known,
            "indexed": self.indexed,
            EXCLUDED: self.excluded,
            KEPT: self.kept,
            RETURNED: self.returned,
            UNINDEXED: self.unindexed,
            DUE: self.due,
            JUDGED: self.judged,
            FOLDED: self.folded,
            "folded_into": self.folded_into,
            DELETIONS: self.deletions,
            "held": self.held,
            "by_rule": {rule: dict(numbers) for rule, numbers in self.by_rule.items()},
            "by_host": {host: dict(numbers) for host, numbers in self.by_host.items()},
            "examples": {kind: list(urls) for kind, urls in self.examples.items()},
        }


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
    due: array[int] = field(default_factory=lambda: array("q"))
    """Are due at once: they, or links of them, were refused by a check that admits more now."""
    judged: int = 0
    """Number of pages with such links that are judged from the archive."""
    moved: list[tuple[int, Queue]] = field(default_factory=list)
    """Get another queue."""
    folds: KnownFolds = field(default_factory=KnownFolds)
    """Are folded into others by the URL options."""
    unfolded: array[int] = field(default_factory=lambda: array("q"))
    """Keys of folded URLs whose documents stop waiting for the other URL: stored links still lead to that one."""
    actions_changed: bool = False
    beyond_limit: dict[bool, Counter[str]] = field(default_factory=lambda: {True: Counter(), False: Counter()})
    """By site, URLs excluded by the limit of the host only, with and without a document."""
    rules: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Numbers by rule for each kind; `sites` likewise."""
    sites: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def leave(self, known: KnownUrl, exclusion: Exclusion) -> None:
        """Add a URL that leaves the crawl space."""
        by = str(exclusion.rule) if exclusion.rule is not None else exclusion.reason.value
        in_index = known.indexed or known.left_to_others
        if exclusion.status == Status.EXCLUDED_HERE:
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
        """Add a URL whose queue changes; sitemaps stay first."""
        is_to_be_read = (known.source, known.shift) == SITEMAP_QUEUE and known.depth == 0  # a sitemap that has no such status yet
        if known.source == Source.USER or known.status in SITEMAPS or is_to_be_read:
            return
        links = known.source != Source.REDIR
        source = source_of(index=actions.index, follow=actions.follow) if links else Source.REDIR
        if (known.source, known.shift) != (source, actions.shift):
            self.moved.append((known.id, Queue(source, actions.shift)))

    def come_back(self, known: KnownUrl) -> None:
        """Add a URL that is in the crawl space again."""
        self.returned.append(known.id)
        self._count(RETURNED, known, None)

    def make_due(self, known: KnownUrl) -> None:
        """Add a page that was refused, or whose links were, by a check that admits more now."""
        self.due.append(known.id)
        self._count(DUE, known, None)

    def judge(self, known: KnownUrl) -> None:
        """Add a page whose links are judged from the archive."""
        self.judged += 1
        self._count(JUDGED, known, None)

    def fold(self, known: KnownUrl, into: Url) -> None:
        """Add a URL that is folded into another one."""
        self.folds.add(known, into)
        self._count(FOLDED, known, None)

    def parts(self, *, hold: bool) -> Iterator[Reclassified]:
        """Yield the changes in batches for one transaction each.

        URLs left to another crawler come first, in the largest possible batches: of equal pages that are all left, none must be deleted
        because another left earlier. Next come held deletions: a page that represents a group only because another one names it must not
        lose its document when that one leaves. Next come those with nothing in the index: otherwise one could be pushed when its
        representative is deleted, and be deleted next.
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
        for (due,) in _portions(self.due, size=BATCH):
            yield Reclassified(due=due)
        for first in range(0, len(self.moved), BATCH):
            yield Reclassified(moved=self.moved[first : first + BATCH])

    @property
    def by_rule(self) -> dict[str, dict[str, int]]:
        """The numbers by rule and kind, the rules with the most URLs first."""
        return {rule: _numbers(self.rules, rule) for rule in _ranked(self.rules)}

    @property
    def by_host(self) -> dict[str, dict[str, int]]:
        """The same by host, for those with the most URLs; OTHERS stands for the rest."""
        return _by_host({kind: _of_hosts(counter) for kind, counter in self.sites.items()})

    def _count(self, kind: str, known: KnownUrl, by: str | None) -> None:
        if by is not None:
            self.rules[kind][by] += 1
        self.sites[kind][known.site] += 1
        examples = self.examples[kind]
        if len(examples) < _EXAMPLES:
            examples.append(known.url)


def survey(
    store: Store,
    decisions: KnownUrlDecisions,
    *,
    looser: LoosenedChecks = NONE_LOOSENED,
    depths: Mapping[int, int] = MappingProxyType({}),
    surveyed: Surveyed = not_shown,
) -> Survey:
    """Return the known URLs whose state differs from the present rules; `depths` are other link depths by id. Reads only."""
    before = store.get_meta(ACTIONS_HASH) or ""
    found = Survey(actions_changed=before != decisions.actions_hash)
    deepest = decisions.max_link_depth
    acts, loosens = bool(before or decisions.actions_hash), bool(looser)
    decisions.begin()
    last = 0
    while page := store.scan(last, BATCH):
        decisions.expect(known.site for known in page)
        for known in page:
            id, key, url, site, _, status, depth, host_as_written, has_document, _, held, never_due, _, _, _, _, left, _ = known
            depth = depths.get(id, depth) if depths else depth
            exclusion, actions, into = decisions.decide(
                url, site=site, depth=depth, host_as_written=host_as_written, is_page=status not in NO_PAGES
            )
            if held == Held.FOLDED and (into is None or exclusion is not None):
                found.unfolded.append(key)
            if exclusion is not None:
                if exclusion.reason is Reason.URLS_PER_HOST:
                    found.beyond_limit[has_document][site] += 1
                if status != exclusion.status or (
                    left and held == Held.RULES
                ):  # the held deletion ends if another collection has the URL again
                    found.leave(known, exclusion)
                continue
            if into is not None:
                found.fold(known, into)
                continue
            again = (never_due and status is not None) or held == Held.RULES or status in OUT_OF_SPACE
            if acts:
                found.move(known, actions)
                if has_document and not actions.index:
                    found.unindex(known, actions)
                    continue
                again = again or (found.actions_changed and actions.index and status == Status.NOINDEX)
            if again:
                found.come_back(known)
            elif loosens and looser.concern(known):
                (found.judge if looser.is_judged(known) else found.make_due)(known)
            elif deepest is not None and depth < deepest and has_any(known.refused, _TOO_DEEP):
                found.make_due(known)
        found.known += len(page)
        last = page[-1].id
        surveyed(found.known)
    return found


def _of_hosts(sites: Counter[str]) -> Counter[str]:
    hosts = Counter[str]()
    for site, number in sites.items():
        hosts[site.rpartition(":")[0]] += number
    return hosts


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
    """Divide ids of all kinds into batches in the order of ids, so that neighbours in the file are written together."""
    ordered = merge(*(zip(ids, repeat(kind)) for kind, ids in enumerate(kinds)))
    while portion := list(islice(ordered, size)):
        yield [array("q", (id for id, own in portion if own == kind)) for kind in range(len(kinds))]
