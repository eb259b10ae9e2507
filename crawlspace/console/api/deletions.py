"""Held deletions in the JSON interface: their numbers, a list in parts, and the decision about them."""

from __future__ import annotations

from collections import Counter

from crawlspace.admin.site_report import SiteReport
from crawlspace.clock import iso
from crawlspace.console.api import answers as to
from crawlspace.console.api import parameters as of
from crawlspace.console.routes import Asked, NotNow
from crawlspace.errors import UsageError
from crawlspace.model import Held, UrlState
from crawlspace.runtime.session.held_deletions import HeldSelection, NothingHeld, decide, first_held, held_deletions
from crawlspace.text import quoted


def deletions(asked: Asked, query: of.DeletionsQuery) -> to.DeletionsAnswer:
    """List held deletions: on the first page sites that are held as a whole, then URLs in the order of their discovery."""
    paths, selection = asked.console.paths(asked.name), _selection(query.reason, query.host)
    with paths.store.reading() as opened:
        if opened is None:
            return to.DeletionsAnswer(0, {}, ())
        after = 0
        if query.after:
            state = opened.store.get(query.after)
            if state is None:
                raise UsageError(f"after is {quoted(query.after)}, which is not known: begin again without it")
            after = state.id
        found = held_deletions(paths, opened.store)
        states, has_more = first_held(opened.store, found, selection, after=after, most=query.limit)
        sites = [] if query.after else found.sites_of(selection)
        numbers: Counter[str] = Counter()
        for (reason, host), number in found.numbers.items():
            numbers[reason.label] += number if selection.has(reason, host) else 0
        rows = [*map(_of_site, sites), *map(_of_url, states)]
        return to.DeletionsAnswer(found.total(selection), dict(+numbers), rows, states[-1].url if has_more else "")


def approve(asked: Asked, body: of.DecisionBody) -> to.DecidedAnswer:
    """Delete documents whose deletion is held."""
    return _decided(asked, body, approve=True)


def discard(asked: Asked, body: of.DecisionBody) -> to.DecidedAnswer:
    """Drop held deletions: the documents stay."""
    return _decided(asked, body, approve=False)


def _decided(asked: Asked, body: of.DecisionBody, *, approve: bool) -> to.DecidedAnswer:
    try:
        done = decide(
            asked.console.paths(asked.name),
            _selection(body.reason, body.host),
            approve=approve,
            clock=asked.console.clock,
            changes_of=asked.changes,
        )
    except NothingHeld as error:
        raise NotNow(str(error)) from error
    return to.DecidedAnswer(done.changed, done.fetched_now, done.notes)


def _selection(reason: str, host: str) -> HeldSelection:
    return HeldSelection(Held[reason.upper()] if reason else None, host.lower() or None)


def _of_site(one: SiteReport) -> to.DeletionRow:
    row = one.row
    return to.DeletionRow(
        Held.HOST.label, site=row.site, status=row.status, documents=one.documents, cause=one.cause, since=iso(row.since)
    )


def _of_url(state: UrlState) -> to.DeletionRow:
    reason = "" if state.held is None else state.held.label
    fetched = None if state.fetched_at is None else iso(state.fetched_at)
    return to.DeletionRow(reason, url=state.url, status=state.status, last_fetch=fetched)
