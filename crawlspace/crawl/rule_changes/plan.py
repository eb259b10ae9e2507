"""The effects of a rule change on the known URLs: computed by `reconcile`, shown by `scrapy plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.model import Status
from crawlspace.plural import counted

EXCLUDED, KEPT, RETURNED, UNINDEXED, DUE, DELETIONS = "excluded", "kept", "returned", "unindexed", "due", "deletions"
FOLDED, JUDGED = "folded", "judged"
OTHERS = "(others)"
"""Stands for all hosts except those with the most changes."""


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
    """URLs that are due at once: links of theirs, or they themselves, were refused by a check that admits more now; start URLs."""
    judged: int = 0
    """Pages whose links were refused by such a check and are judged from the archive: they need no request."""
    unindexed: int = 0
    """URLs that stay in the crawl space and are not to be indexed any more (2004), deletions included."""
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
        return f"of {known} {', '.join(parts)}" if parts else f"none of {known} is concerned"

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
