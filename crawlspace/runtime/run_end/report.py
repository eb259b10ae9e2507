"""How a crawl ended, for programs: what `--summary` writes and the command of CRAWLSPACE_ON_FINISH gets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlspace.admin.rendering import counts_as_json
from crawlspace.admin.report import iso
from crawlspace.crawl.run import RunCounters
from crawlspace.model import Held, OutcomeKind
from crawlspace.state.views import Counts

if TYPE_CHECKING:
    from crawlspace.runtime.session import Session

MOST_SITES = 100
"""Unreachable sites that are named, those with the most documents first."""
_NOTHING_COUNTED = Counts({}, {}, indexed=0, outbox=0, parked=0, hosts=0, retrying=0)


@dataclass(frozen=True, slots=True)
class RunReport:
    """One crawl that has ended. `session` is None where it could not begin; times are in seconds since 1970."""

    collection: str
    exit_status: int
    faults: Sequence[str]
    began: float
    session: Session | None

    @property
    def outcome(self) -> str:
        """`done`, `stopped` (by Ctrl-C) or `failed`."""
        if self.exit_status not in (0, STOPPED):
            return "failed"
        return "done" if self.session is not None and self.session.finish_reason == "finished" else "stopped"

    def as_json(self) -> dict[str, object]:
        session, now = self.session, time.time()
        progress = RunCounters() if session is None else session.progress
        counts = (None if session is None else session.final_counts) or _NOTHING_COUNTED
        held = {} if session is None else session.final_held
        sites = [] if session is None else session.final_sites
        rendering = None if session is None else session.rendering
        return {
            "collection": self.collection,
            "outcome": self.outcome,
            "exit_status": self.exit_status,
            "faults": list(self.faults),
            "began": iso(int(self.began)),
            "ended": iso(int(now)),
            "duration_s": round(now - self.began, 1),
            "fetched": progress.fetched,
            "outcomes": {kind.value: progress.by_kind[kind] for kind in OutcomeKind},
            "status": {str(code): count for code, count in sorted(progress.by_status.items())},
            "moved": [{"from": old, "to": new, "pages": count} for (old, new), count in progress.moves.most_common(MOST_SITES)],
            "errors": [] if session is None else [one.as_json() for one in session.findings.error_examples()],
            "traps": [] if session is None else [one.as_json() for one in session.findings.found.traps.values()],
            "refused": dict(sorted(progress.refused.items())),
            "pending": counts.by_state.get("pending", 0) + counts.by_state.get("leased", 0),
            "index": {
                "documents": counts.indexed,
                "duplicates": counts.duplicates,
                "pushed": progress.pushes,
                "deleted": progress.deletes,
                "outbox": counts.outbox,
                "parked": counts.parked,
            },
            "held": {reason.label: held.get(reason, 0) for reason in Held},
            "unreachable_sites": len(sites),
            "unreachable": [site.as_json() for site in sites[:MOST_SITES]],
            **({} if rendering is None else {"rendering": counts_as_json(rendering.counts)}),
        }


STOPPED = 130
"""The exit status after Ctrl-C before anything was fetched."""
