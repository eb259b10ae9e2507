"""Import the lines of a pending file into the store of a collection, also during a crawl.

Each batch of lines is one transaction where the store supports it, else a few short ones; repeating the import completes it: importing a
line twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from msgspec import structs

from crawlspace.admin.pending.export import number_of, realm_of
from crawlspace.admin.pending.lines import ERROR, WAITING, PendingLine, merged
from crawlspace.admin.pending.realms import Origin, Origins
from crawlspace.admin.url_changes import is_outside
from crawlspace.crawl.admission import Admission, CandidateChecker
from crawlspace.crawl.rule_changes.folding import known_by_url
from crawlspace.crawl.run import Refused, describe_refusal
from crawlspace.decision import Reason
from crawlspace.model import Candidate, NewUrl, Source, State, UrlState, source_of
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.lifecycle import imported_error, is_imported_error, pending_again
from crawlspace.state.store import Store
from crawlspace.text import counted

LINES_AT_ONCE = 1_000
DEPTH = 1
"""Links from a start URL: those of an imported URL are not known."""
_SHOWN = 20


@dataclass(slots=True)
class ImportCounts:
    """The results of an import. `notes` are sentences about the first refused lines."""

    lines: int = 0
    entered: int = 0
    changed: int = 0
    """Known URLs whose state or realm was changed."""
    unchanged: int = 0
    refused: Counter[Reason] = field(default_factory=Counter)
    other_realm: int = 0
    """Lines with another realm than their URL has already."""
    fetched_now: int = 0
    """URLs in flight, whose outcome replaces the line."""
    outside: int = 0
    """URLs that the rules excluded when they were applied last, and whose line has a time."""
    with_document: int = 0
    """Errors whose document stays in the index."""
    notes: list[str] = field(default_factory=list)

    @property
    def left_out(self) -> int:
        """Lines that were not fully imported."""
        return self.refused.total() + self.other_realm + self.fetched_now + self.outside

    def note(self, sentence: str) -> None:
        if len(self.notes) < _SHOWN:
            self.notes.append(sentence)

    def sentences(self) -> list[str]:
        """Return a sentence for each kind of line that was not fully imported."""
        found = [f"{number:,} kept out: {reason.sentence}" for reason, number in self.refused.most_common()]
        if self.other_realm:
            found.append(f"{counted(self.other_realm, 'line')} with another realm than the URL has: a URL has one, the first")
        if self.fetched_now:
            found.append(f"{counted(self.fetched_now, 'URL')} being fetched at this moment: the outcome counts")
        if self.outside:
            found.append(
                f"{counted(self.outside, 'URL')} kept out when the rules were applied last: only a start brings them back"
            )
        if self.with_document:
            found.append(
                f"{counted(self.with_document, 'error')} with a document here, which stays in the index: `scrapy forget` deletes it"
            )
        return found

    def as_json(self) -> dict[str, object]:
        """Return all numbers for `json.dumps`."""
        return {
            "lines": self.lines,
            "entered": self.entered,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "refused": {str(reason): number for reason, number in self.refused.items()},
            "other_realm": self.other_realm,
            "fetched_now": self.fetched_now,
            "outside": self.outside,
            "with_document": self.with_document,
        }


class _Result(Enum):
    """The result for a known URL."""

    UNCHANGED = auto()
    CHANGED = auto()
    WITH_DOCUMENT = auto()
    FETCHED_NOW = auto()
    OUTSIDE = auto()


class _Wanted(NamedTuple):
    """The state of one URL by the lines of a batch."""

    new: NewUrl
    realm: str
    number: int
    is_retried: bool
    """It is reset if it is an imported error."""


class PendingImport:
    """Imports lines into one collection, and counts. Raises StoreError and its kinds; what was imported before stays."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        discovery: CandidateChecker,
        *,
        collection: str,
        file: str,
        now: int,
        crawled: bool = False,
        retry_errors: bool = False,
    ) -> None:
        """`file` is its name for sentences; `crawled`: a crawl is running; `retry_errors`: errors are imported as waiting."""
        self._store = store
        self._admission = admission
        self._discovery = discovery
        self._own = realm_of(collection)
        self._file = file
        self._now = now
        self._crawled = crawled
        self._retry_errors = retry_errors
        self._origins = Origins(store)
        self.counts = ImportCounts()

    def add(self, lines: Sequence[PendingLine]) -> None:
        """Import a batch of lines."""
        wanted = self._admitted(lines)
        with self._store.one_transaction():
            known = known_by_url(self._store, [one.new for one in wanted.values()])
            unknown = [one.new for url, one in wanted.items() if url not in known]
            ids = {url: one.id for url, one in known.items()}
            if unknown:
                found = self._store.discover(unknown, now=self._now).ids
                missing = [new for new in unknown if new.url not in found]
                ids |= found
                if missing:
                    ids |= {url: one.id for url, one in known_by_url(self._store, missing).items()}
            by_id = {ids[url]: one for url, one in wanted.items() if url in ids}
            self._write(by_id, entered={ids[new.url] for new in unknown if new.url in ids})
        self.counts.lines += len(lines)

    def _admitted(self, lines: Iterable[PendingLine]) -> dict[str, _Wanted]:
        """Return the wanted state of each admitted URL, and count the refused lines."""
        wanted: dict[str, _Wanted] = {}
        places: dict[str, PendingLine] = {}
        for line in lines:
            new, _, decision = self._discovery.candidate(Candidate(line.url, Source.INDEX_FOLLOW, depth=DEPTH))
            if new is None:
                self.counts.refused[decision.reason] += 1
                self.counts.note(describe_refusal(Refused(f"{self._file}:{line.line}", line.url, decision)))
                continue
            number = WAITING if self._retry_errors and line.number == ERROR else line.number
            if (before := wanted.get(new.url)) is None:
                source = source_of(index=decision.index, follow=decision.follow)
                if source is not new.source:
                    new = structs.replace(new, source=source)
                wanted[new.url] = _Wanted(new, line.realm, number, number != line.number)
                places[new.url] = line
                continue
            self._note_realm(before.realm, line.realm, new.url)
            retried = before.is_retried or number != line.number
            wanted[new.url] = before._replace(number=merged(before.number, number), is_retried=retried)
        kept, _ = self._admission.within_host_limit([one.new for one in wanted.values()])
        if len(kept) < len(wanted):
            urls = {new.url for new in kept}
            for url in [url for url in wanted if url not in urls]:
                del wanted[url]
                self.counts.refused[Reason.URLS_PER_HOST] += 1
                self.counts.note(f"{self._file}:{places[url].line}: {url} is refused: {Reason.URLS_PER_HOST.sentence}")
        return wanted

    def _write(self, wanted: Mapping[int, _Wanted], *, entered: set[int]) -> None:
        before = self._origins.of_all(wanted)
        outcomes: dict[int, _Result] = {}

        def change(state: UrlState) -> Change | None:
            """Return the change of a URL; called again if it was changed meanwhile."""
            outcomes[state.id], change = self._change(state, wanted[state.id], before[state.id].indexed_at)
            return change

        ids = [id for id, one in wanted.items() if one.number == ERROR or ((one.number or one.is_retried) and id not in entered)]
        if ids:
            self._store.revise(ids, change, now=self._now)
        origins = {id: self._origin(before[id], one, outcomes.get(id)) for id, one in wanted.items()}
        moved = {id for id, origin in origins.items() if origin != before[id]}
        self._origins.write({id: origins[id] for id in moved})
        counts = self.counts
        results = Counter(outcomes.values())
        counts.fetched_now += results[_Result.FETCHED_NOW]
        counts.outside += results[_Result.OUTSIDE]
        counts.with_document += results[_Result.WITH_DOCUMENT]
        left = {id for id, outcome in outcomes.items() if outcome in (_Result.FETCHED_NOW, _Result.OUTSIDE)}
        states = {id for id, outcome in outcomes.items() if outcome in (_Result.CHANGED, _Result.WITH_DOCUMENT)}
        changed = (states | moved) - entered - left
        counts.entered += len(entered)
        counts.changed += len(changed)
        counts.unchanged += len(wanted.keys() - entered - changed - left)

    def _origin(self, before: Origin, wanted: _Wanted, outcome: _Result | None) -> Origin:
        """Return the origin of a URL after the import: the realm that it has already stays, and the time if its state does."""
        realm = before.realm
        if realm is None:
            realm = None if wanted.realm == self._own else wanted.realm
        else:
            self._note_realm(realm, wanted.realm, wanted.new.url)
        if outcome in (_Result.UNCHANGED, _Result.FETCHED_NOW, _Result.OUTSIDE):
            return Origin(realm, before.indexed_at)
        indexed_at = merged(before.indexed_at, wanted.number)
        return Origin(realm, 0 if indexed_at == ERROR else indexed_at)

    def _note_realm(self, own: str, other: str, url: str) -> None:
        if own != other:
            self.counts.other_realm += 1
            self.counts.note(f"{self._file}: {url} has the realm {own} already, so {other} is left out")

    def _change(self, state: UrlState, wanted: _Wanted, indexed_at: int) -> tuple[_Result, Change | None]:
        """Return the result and change of a URL; `indexed_at` is the time imported before."""
        known = number_of(state, indexed_at)
        if wanted.is_retried and is_imported_error(state):
            known = WAITING - 1
        if merged(known, wanted.number) == known:
            return _Result.UNCHANGED, None
        if self._crawled and state.lease_until is not None:
            return _Result.FETCHED_NOW, None
        if is_outside(state):
            return _Result.OUTSIDE, None
        if wanted.number == ERROR:
            return (
                _Result.CHANGED if state.checksum is None else _Result.WITH_DOCUMENT,
                Change(imported_error(state)),
            )
        return _Result.CHANGED, self._due(state)

    def _due(self, state: UrlState) -> Change | None:
        """Return the change that makes a URL due at once; None if it waits already."""
        if state.checksum is not None:
            return Change(structs.replace(state, next_fetch=at_once(self._now, state.fetched_at)))
        if state.state is State.PENDING and state.fetched_at is None:
            return None
        return Change(structs.replace(pending_again(state), fetched_at=None))
