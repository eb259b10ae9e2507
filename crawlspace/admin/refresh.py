"""When known pages are fetched again, by settings and stored state: for `explain`, `status`, `plan`, `lint` and the summary of a crawl."""

from __future__ import annotations

from dataclasses import dataclass

from crawlspace.clock import local_time
from crawlspace.config.refresh import SCHEDULE, SMART, RefreshTimes
from crawlspace.crawl.timed.refreshes import AGE, CYCLE_BEGAN, OFF, ON, RUNNING, SETTLED, settled_until
from crawlspace.model import Requester, State, UrlState
from crawlspace.state.due_times import real_time
from crawlspace.state.site_pauses import pause_of
from crawlspace.state.store import MetaStore, Store


@dataclass(frozen=True, slots=True)
class Refreshing:
    """The next refresh of all known pages, and its cause. `next_at` is in the past if that time was missed: the next start makes up for it."""

    times: RefreshTimes
    next_at: int | None
    """Time of the next scheduled refresh or cycle; None if there is none."""
    is_running: bool = False
    """A scheduled refresh has begun and is not complete."""
    is_switched: bool = False
    """Smart refresh was turned off or on since the last start."""

    @property
    def is_plain(self) -> bool:
        """Whether pages are fetched again only after their own intervals."""
        return self.times.due_by_age and self.times.cycle is None and self.times.schedule is None

    def sentence(self, now: float) -> str:
        """Return a sentence about refreshes; empty if each page has only its own interval."""
        if self.is_plain:
            return ""
        if self.times.cycle is not None:
            return f"everything known is fetched once in each cycle, {_when('the next', self.next_at, now)}"
        own = "each page is fetched again after its own interval, and" if self.times.due_by_age else "smart refresh is off:"
        if self.times.schedule is None:
            return (
                f"{own} pages that were fetched are not fetched again, except those that failed ({SMART}; there is no {SCHEDULE})"
            )
        running = "; one has begun, and is not complete" if self.is_running else ""
        return f"{own} all known URLs are fetched again by the schedule, {_when('the next time', self.next_at, now)}{running}"

    def of_url(self, state: UrlState) -> str:
        """Return when and why a known URL is fetched next; empty if never, or as soon as possible."""
        if state.state is State.PENDING or state.next_fetch is None:
            return ""
        if state.requested_by == Requester.SCHEDULE:
            return f"next by the schedule, due since {local_time(state.next_fetch)}"
        own = real_time(state.next_fetch)
        if self.next_at is not None and (own is None or self.next_at < own) and not state.requested_by:
            return f"next {'in the cycle' if self.times.cycle is not None else 'by the schedule'} of {local_time(self.next_at)}"
        if own is None:
            return f"never due by age: smart refresh is off ({SMART}), and there is no schedule ({SCHEDULE})"
        return f"next {local_time(own)}"


def refreshing(times: RefreshTimes, store: MetaStore | None, *, now: float) -> Refreshing:
    """Return the next refreshes. `store` is None for a collection that was never crawled."""
    began, settled, running, age = (None,) * 4 if store is None else store.get_metas([CYCLE_BEGAN, SETTLED, RUNNING, AGE])
    next_at = None
    if times.cycle is not None and began is not None and began.isdigit():
        next_at = times.cycle.next_after(int(began))
    elif times.schedule is not None:
        until = settled_until(settled, times.schedule, now=now)
        next_at = times.schedule.next_after(now if until is None else until)
    is_switched = (age or ON).partition(" ")[0] != (ON if times.due_by_age else OFF)
    return Refreshing(
        times, next_at, is_running=bool(running) and times.schedule is not None, is_switched=store is not None and is_switched
    )


def soonest_due(store: Store, times: RefreshTimes, *, now: float) -> tuple[int, str] | None:
    """Return when the first known page is due, in seconds since 1970, and its site; an empty site if a cycle or the schedule makes it due.

    None if none is ever due. Sites that a person has paused don't count.
    """
    pauses = store.site_pauses()
    sites = (site for site in store.sites() if pause_of(pauses, site.site) is None)
    due = [(at, site.site) for site in sites for _, at in site.due if real_time(at) is not None]
    next_at = refreshing(times, store, now=now).next_at
    return min([*due, *([] if next_at is None else [(next_at, "")])], default=None)


def _when(what: str, at: int | None, now: float) -> str:
    if at is None:
        return "from the next start on"
    return (
        f"{what} was missed on {local_time(at)}: the next start makes up for it" if at <= now else f"{what} on {local_time(at)}"
    )
