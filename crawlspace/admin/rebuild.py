"""Build a new index for a sink while the old one is searched, and switch to it once it equals the stored state.

All orders meanwhile go to both. The documents come from the archive; those without a record are copied from the searched index. Both are
then compared with the stored state until nothing differs, and only then is the index switched. No progress is stored: it follows from the
contents of the new index, so that the next call continues after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from crawlspace.admin.audit import Audit, Difference, DifferenceKind
from crawlspace.crawl.sinks.backfill import ArchivedDocuments
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.login_exclusion import LoginExclusion
from crawlspace.index.sink import BuiltCopy, Entry, Rebuildable, Refusal
from crawlspace.index.versions import Versions
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.store import Store

PAGE = 500
MOST_ROUNDS = 20
"""Maximal comparisons until nothing differs. Each but the first finds changes made during the previous one."""


@dataclass(slots=True)
class Rebuilt:
    """Numbers of documents in a rebuilt index."""

    documents: int = 0
    """Of the collection in the new index."""
    before: int = 0
    """Of the collection in the searched index."""
    others: int = 0
    """Of other collections, copied."""
    refused: list[Refusal] = field(default_factory=list)
    """Documents that the new index refuses."""
    differ: int = 0
    """Differences that remain after all rounds."""
    is_too_small: bool = False
    has_switched: bool = False


@dataclass(slots=True)
class Rebuild:
    """The rebuild for one sink. `wait` returns when all batches begun before the call are complete. Raises IndexUnavailable, StoreError."""

    store: Store
    archive: ArchivedDocuments
    sink: str
    index: Rebuildable
    versions: Versions
    owner: str
    limit: DeletionLimit
    wait: Callable[[], None]
    progress: Callable[[str, int, int], None]
    """Called with the present phase, the number of URLs done, and of all."""
    exclusion: LoginExclusion | None = None
    """The documents that the sink leaves out."""
    _done: Rebuilt = field(default_factory=Rebuilt)
    _refused: dict[str, Refusal] = field(default_factory=dict)

    def run(self, *, on_previous: bool = False, approved: bool = False) -> Rebuilt:
        """Build the next index, and switch to it unless it refuses documents or is much smaller.

        `approved`: switch anyway. `on_previous`: go back to the index used before the last switch.
        """
        done = self._done
        self.index.begin_next(on_previous=on_previous)
        built = self.index.next_copy()
        self.wait()
        self._fill(built)
        self._copy_others(built)
        done.differ = self._compare(built)
        done.refused = list(self._refused.values())
        done.documents, done.before = built.count(owner=self.owner), self.index.count(owner=self.owner)
        lost = done.before - done.documents
        done.is_too_small = not self.limit.allows(lost, indexed=done.before)
        if not done.differ and (approved or not (done.refused or done.is_too_small)):
            self.index.switch()
            done.has_switched = True
        return done

    def _fill(self, built: BuiltCopy) -> None:
        """Write the documents that the next index lacks, without a recheck."""
        total = sum(self.store.counts().by_state.values())
        after = seen = 0
        while page := self.store.scan(after, PAGE):
            after = page[-1].id
            seen += len(page)
            indexed = {known.url: known for known in page if known.indexed}
            there = built.look_up(list(indexed)) if indexed else {}
            wanted = {url: known for url, known in indexed.items() if self.exclusion is None or not self.exclusion.has(url)}
            self._write(
                built,
                [
                    Difference(DifferenceKind.MISSING, url, known.id, known.archived, known.ordered)
                    for url, known in wanted.items()
                    if url not in there
                ],
            )
            self.progress("building", seen, total)

    def _compare(self, built: BuiltCopy) -> int:
        """Compare with the stored state, and repair, until nothing differs; return the number of differences in the last round."""
        differ = carried = 0
        for number in range(1, MOST_ROUNDS + 1):
            differ = 0
            progress = partial(self.progress, f"comparing, round {number}")
            audit = Audit(
                self.store,
                self.sink,
                built,
                self.versions,
                self.owner,
                progress,
                exclusion=self.exclusion,
                archive=self.archive,
            )
            for differences in audit.differences():
                found = [one for one in differences if one.url not in self._refused]
                differ += len(found)
                self._repair(built, found)
            carried = 0 if differ else self._copy_others(built)
            if not differ and not carried:
                return 0
        return differ + carried

    def _repair(self, built: BuiltCopy, differences: Sequence[Difference]) -> None:
        extra = [one.url for one in differences if one.kind is DifferenceKind.EXTRA]
        if extra:
            built.remove(list(built.look_up(extra).values()))
        self._write(built, [one for one in differences if one.kind is not DifferenceKind.EXTRA])

    def _write(self, built: BuiltCopy, wanted: Sequence[Difference]) -> None:
        """Write archived documents, with their present duplicates; copy the others."""
        if not wanted:
            return
        noted = self.index.duplicates_of([one.url for one in wanted])
        orders, others = [], []
        for one in wanted:
            document = None if one.archived is None else self.archive.document(one.archived, one.url)
            if document is None:
                others.append(one.url)
            else:
                order = self._order(one, replace(document, duplicates=noted.get(one.url, document.duplicates)))
                orders.append(order if self.exclusion is None else self.exclusion.of(order))
        for refusal in self._sent(built, [order for order in orders if order.op is Op.PUSH]):
            self._refused[refusal.order.url] = refusal
        built.carry_over(others)

    def _order(self, one: Difference, document: Document) -> IndexOrder:
        return IndexOrder(one.ordered, Op.PUSH, one.url, document, version=self.versions.least(one.ordered))

    def _sent(self, built: BuiltCopy, orders: Sequence[IndexOrder]) -> Sequence[Refusal]:
        """Write orders; those accepted later are found by the next comparison."""
        return built.send(orders).refused if orders else ()

    def _copy_others(self, built: BuiltCopy) -> int:
        """Copy the documents of other collections from the present index to the next; return how many differed."""
        number = 0
        for page in self.index.entries_of_others(self.owner):
            there = built.look_up([entry.url for entry in page])
            lacking = [entry.url for entry in page if _is_behind(there.get(entry.url), entry)]
            built.carry_over(lacking)
            number += len(lacking)
        self._done.others += number
        for page in built.entries_of_others(self.owner):
            found = self.index.look_up([entry.url for entry in page])
            gone = [entry for entry in page if entry.url not in found]
            built.remove(gone)
            number += len(gone)
        return number


def _is_behind(there: Entry | None, entry: Entry) -> bool:
    return there is None or there.version < entry.version
