"""The summary of a crawl for a person, in a few lines."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlspace.admin.refused import REASONS
from crawlspace.admin.rendering import counts_as_json, counts_sentence
from crawlspace.admin.run_numbers import outcome_parts
from crawlspace.clock import iso
from crawlspace.config.collection import Collection
from crawlspace.config.on_finish import ON_FINISH, TIMEOUT, FinishCommand
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.run import RunCounters
from crawlspace.decision import Reason
from crawlspace.model import Held
from crawlspace.outcome import OutcomeKind
from crawlspace.state.refused_links import LETTERS
from crawlspace.state.views import Counts
from crawlspace.status import Status
from crawlspace.text import counted, printable, verb

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

SITES_SHOWN = 3
REASONS_SHOWN = 6
EXAMPLES_SHOWN = 5


def summary(session: Session) -> str:
    """Return a summary of this run and of the remaining work, in a few lines."""
    progress = session.progress
    counts = session.final_counts
    how = "done" if session.finish_reason == "finished" and session.error is None else _stopped(session)
    lines = [f"{session.collection.name}: {'; '.join(session.all_faults()) or how}. {_fetched(progress)}."]
    if counts is not None:
        more = counted(counts.duplicates, "more page is a duplicate", "more pages are duplicates")
        lines.append(
            f"  in the index: {counted(counts.indexed, 'document')} ({progress.pushes:,} pushed, {progress.deletes:,} deleted in this run)"
            + (f"; {more} of these" if counts.duplicates else "")
        )
        lines += _moved(progress)
        lines += _left(session, counts)
    else:
        lines.append(
            f"  what could not be recorded is fetched again  (scrapy status {session.collection.name} shows what is left, once the store can be read)"
        )
    lines += _sites(session)
    if shells := progress.refused[Reason.NEEDS_BROWSER]:
        example = printable(next(iter(progress.browser_pages.values()), ""))
        lines.append(
            f"  may need a browser: {counted(shells, 'page')} with scripts and next to no text or links, such as {example}{_renders(session)}"
        )
    traps = list(session.findings.found.traps.values())
    lines += [f"  {trap.sentence}" for trap in traps[:SITES_SHOWN]]
    if len(traps) > SITES_SHOWN:
        lines.append(f"  and {len(traps) - SITES_SHOWN:,} more traps  (scrapy status {session.collection.name} shows them)")
    if (rendering := session.rendering) is not None and (rendering.counts.pages or rendering.counts.failed):
        lines.append(f"  in the browser: {counts_sentence(rendering.counts)}")
    name = session.collection.name
    if yielded := progress.own_requests["yielded"]:
        parts = [f"{count:,} {what}" for what in ("failed", "refused") if (count := progress.own_requests[what])]
        lines.append(f"  {counted(yielded, 'request')} of the spider's own{': ' if parts else ''}{', '.join(parts)}")
    if files := progress.by_status[Status.UNREADABLE_FILE]:
        lines.append(
            f"  without text: {counted(files, 'file')}  (scrapy urls {name} --status 782 lists those known by name only)"
        )
    if counts is not None and (links := _by_reason({reason: counts.refused.get(reason, 0) for reason in REASONS})):
        lines.append(f"  links refused: {links}  (scrapy refused {name} lists them)")
    if pages := _by_reason({reason: count for reason, count in progress.refused.items() if reason not in LETTERS}):
        lines.append(f"  pages kept out: {pages}  (scrapy explain {name} URL says why)")
    errors = {code: count for code, count in sorted(progress.by_status.items()) if code >= 400 and code not in _NOT_ERRORS}
    if errors:
        lines.append("  errors: " + ", ".join(f"{count:,} × {code}" for code, count in errors.items()))
    named = {site.row.site for site in session.final_sites[:SITES_SHOWN]}
    examples = [one for one in session.findings.error_examples() if one.site not in named]
    lines += [f"    {one.status}: {one.sentence}" for one in examples[:EXAMPLES_SHOWN]]
    if len(examples) > EXAMPLES_SHOWN:
        lines.append(f"    and of {len(examples) - EXAMPLES_SHOWN:,} more sites  (scrapy status {name} shows some)")
    return "\n".join(lines)


def _moved(progress: RunCounters) -> list[str]:
    """Return the line on pages that were found at another address."""
    if not progress.moves:
        return []
    parts = [
        f"{count:,} within {printable(old)}" if old == new else f"{count:,} from {printable(old)} to {printable(new)}"
        for (old, new), count in progress.moves.most_common(SITES_SHOWN)
    ]
    rest = progress.moves.total() - sum(count for _, count in progress.moves.most_common(SITES_SHOWN))
    more = f", {rest:,} of other hosts" if rest else ""
    return [f"  moved: {counted(progress.moves.total(), 'page')} that the index has at a new address: {', '.join(parts)}{more}"]


def _renders(session: Session) -> str:
    """Return how to have pages rendered that may need it, where none are."""
    return '  (CRAWLSPACE_RENDER = "auto" renders such pages)' if session.rendering is None else ""


def _stopped(session: Session) -> str:
    """Return how a crawl ended before its end: by what Scrapy calls the reason, as closespider_timeout."""
    reason = session.finish_reason
    return "stopped" if session.error is not None or reason in ("", "finished", "shutdown") else f"stopped ({reason})"


def _by_reason(numbers: Mapping[str, int]) -> str:
    """Return `8 domain, 3 prefix`, the largest numbers first."""
    ranked = [(reason, count) for reason, count in Counter(numbers).most_common() if count]
    parts = [f"{count:,} {reason}" for reason, count in ranked[:REASONS_SHOWN]]
    if rest := sum(count for _, count in ranked[REASONS_SHOWN:]):
        parts.append(f"{rest:,} for other reasons")
    return ", ".join(parts)


def _fetched(progress: RunCounters) -> str:
    """Return `94 fetched: 60 with a document, 20 redirected, 14 errors`; the parts add up to the total."""
    parts = outcome_parts(progress.by_kind, progress.by_status)
    spared = f"; {progress.spared:,} spared, as sitemaps call them unchanged" if progress.spared else ""
    return f"{progress.fetched:,} fetched" + (f": {', '.join(parts)}" if parts else "") + spared


def _left(session: Session, counts: Counts) -> list[str]:
    """Return lines on the remaining work."""
    lines = []
    is_over = session.finish_reason == "finished"
    left = counts.by_state.get("pending", 0) + counts.by_state.get("leased", 0)
    leaves_due = session.next_due is not None and session.next_due[0] <= time.time()
    if is_over and session.next_due is not None and not (leaves_due or left):
        lines.append(_next_due(session.collection, *session.next_due))
    elif is_over and not (leaves_due or left) and not session.progress.fetched and not session.collection.refresh.is_ever:
        lines.append(
            "  nothing was due, and nothing will be: smart refresh is off, and there is no schedule (CRAWLSPACE_REFRESH_SCHEDULE);"
            f" scrapy recrawl {session.collection.name} makes URLs due"
        )
    if left or leaves_due or counts.outbox:
        rest = [f"{counted(left, 'URL')} pending"] if left else []
        rest += ["pages that are due"] if leaves_due else []
        rest += [f"{counted(counts.outbox, 'order')} for {_waiting(session)}"] if counts.outbox else []
        others = session.shared.others if session.shared is not None else 0
        whom = "the next start" if not others else "the other worker" if others == 1 else f"the {others} other workers"
        lines.append(f"  left for {whom}: {', '.join(rest)}")
    if held_now := sum(session.final_held.values()):
        held = counted(held_now, "deletion is", "deletions are")
        lines.append(f"  {held} held  (scrapy deletions {session.collection.name} shows them, and why)")
    return lines


def _next_due(collection: Collection, at: int, site: str) -> str:
    due, name = time.strftime("%Y-%m-%d %H:%M", time.localtime(at)), collection.name
    if not site:
        what = "refresh by the schedule" if collection.refresh.cycle is None else "cycle begins"
        return f"  nothing was due: the next {what} {'is ' if collection.refresh.cycle is None else ''}on {due}"
    host = site.rpartition(":")[0]
    return f"  nothing was due: the next page is on {due}  (scrapy recrawl {name} --host {host} makes all of that host due)"


def _waiting(session: Session) -> str:
    """Return what orders wait for."""
    deliveries = session.deliveries
    names = [drain.sink for drain in deliveries.drains if deliveries.waiting(drain.sink)]
    if set(names) <= {EMBEDDED}:
        return "the index"
    return f"the {verb(len(names), 'sink', 'sinks')} {', '.join(names)}"


def _sites(session: Session) -> list[str]:
    """Return lines on unreachable sites, on hosts that a person has paused, and on sites given up although they responded."""
    lines = [f"  unreachable: {site.row.site}: {site.sentence}" for site in session.final_sites[:SITES_SHOWN]]
    if len(session.final_sites) > SITES_SHOWN:
        more = len(session.final_sites) - SITES_SHOWN
        lines.append(f"  unreachable: {more:,} more sites  (scrapy status {session.collection.name} shows them)")
    pauses = session.final_pauses
    for pattern, pause in list(pauses.items())[:SITES_SHOWN]:
        resume = f"scrapy sites {session.collection.name} --resume {pattern}"
        lines.append(f"  {pattern} is {pause.sentence}; nothing of it is requested  ({resume})")
    if len(pauses) > SITES_SHOWN:
        name = session.collection.name
        lines.append(f"  paused are {len(pauses) - SITES_SHOWN:,} more hosts  (scrapy sites {name} --paused shows them)")
    others = sorted(session.engine.given_up_sites - {site.row.site for site in session.final_sites})
    if others:
        more_others = f" and {len(others) - SITES_SHOWN:,} more" if len(others) > SITES_SHOWN else ""
        lines.append(f"  given up for this run: {', '.join(others[:SITES_SHOWN])}{more_others}")
    return lines


_NOT_ERRORS = {740, 760, 761, 780, 782, 2004, 2005, 2006, 3020, 3021}


# --- report --------------------------------------------------------------------------------------------------------


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

    @classmethod
    def of(cls, session: Session, *, began: float) -> RunReport:
        """Return the report of a session that has ended."""
        error, faults = session.error, session.all_faults()
        status = error.exit_status if error is not None else int(bool(faults) or session.has_lost_log)
        return cls(session.collection.name, status, [*([str(error)] if error else []), *faults], began, session)

    @property
    def outcome(self) -> str:
        """`done`, `stopped` (by Ctrl-C) or `failed`."""
        if self.exit_status not in (0, STOPPED):
            return "failed"
        return "done" if self.session is not None and self.session.finish_reason == "finished" else "stopped"

    def as_json(self) -> dict[str, object]:
        """Return the summary as JSON has it."""
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
            "began": iso(self.began),
            "ended": iso(now),
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
            "paused": {} if session is None else {name: one.as_json() for name, one in session.final_pauses.items()},
            **({} if rendering is None else {"rendering": counts_as_json(rendering.counts)}),
        }


STOPPED = 130
"""The exit status after Ctrl-C before anything was fetched."""


# --- finish command ------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

_STDERR = 2
_GRACE_S = 5
"""Time after which a process that ignores the request to end is killed."""


def run_finish_command(command: FinishCommand, summary: str, *, collection: str) -> None:
    """Run the command with the summary on its standard input, and log in one sentence why it failed, if it did.

    What it prints goes to standard error. It runs in a session of its own, so that all it has started ends with it.
    """
    failure = _failure_of(command, summary)
    if failure:
        logger.error("%s of %s: %s %s", ON_FINISH, collection, printable(command.program), failure)


def _failure_of(command: FinishCommand, summary: str) -> str:
    try:
        process = subprocess.Popen(  # noqa: S603 - a command of the user's, without a shell
            command.words, stdin=subprocess.PIPE, stdout=_STDERR, text=True, encoding="utf-8", start_new_session=True
        )
    except OSError as error:
        return f"could not be run: {error.strerror}"
    with process:
        try:
            process.communicate(summary, timeout=command.timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"was ended, because it took longer than {command.timeout_s:g} s ({TIMEOUT})"
        except KeyboardInterrupt:
            _end(process)
            return "was ended by Ctrl-C"
    if process.returncode < 0:
        return f"was ended by the signal {-process.returncode}"
    return f"ended with exit status {process.returncode}" if process.returncode else ""


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
