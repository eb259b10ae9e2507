"""The lifecycle of a URL: one pure function from its state and the outcome of a fetch to its new state and an index order.

Every fetch goes through `advance`, so errors are interpreted in one place. A deletion that may be the host's fault, or one of too many, is
held: the URL stays known, and is refreshed, until the page answers or a person decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec import structs

from crawlspace.document import Op
from crawlspace.model import Held, Requester, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import DUE, EXCLUDED
from crawlspace.state.fetch_history import DocumentChange, history_after
from crawlspace.state.recrawl import RecrawlPolicy, error_wait, first_interval, interval_of, next_fetch, next_refresh, retry_wait
from crawlspace.state.site_health import MISSING, NEW_SITE, REFUSALS, Health
from crawlspace.status import SITEMAPS, Status
from crawlspace.text import printable


@dataclass(frozen=True, slots=True)
class Transition:
    """The new state and the order for the index; `forget` removes the URL after the order."""

    state: UrlState
    order: Op | None = None
    forget: bool = False
    retry: bool = False
    """The URL is tried again within this run."""


_NEVER_AGAIN = frozenset({Status.EXCLUDED, Status.EXCLUDED_HERE})
_MOST_WITH_COOKIE = 10
"""Retries of a redirect that sets a cookie: one in a run, and one more for each run that ended first, which loses its cookies."""
MOST_DETAIL = 300
"""Maximal stored characters of the detail of an error."""


def kept_detail(detail: str) -> str | None:
    """Return the detail of an error to be stored: printable, without user information and passwords; None if empty."""
    return printable(detail, most=MOST_DETAIL) or None if detail else None


def advance(
    state: UrlState,
    outcome: Outcome,
    *,
    policy: RecrawlPolicy,
    now: int,
    site: Health = NEW_SITE,
    is_small_site: bool = False,
) -> Transition:
    """Return the transition by an outcome. `state` is that of the URL when it was leased, and is not changed.

    `site` is the health of the site before this fetch; of several attempts at one URL in a run, only the first counts there.
    `is_small_site`: it has so few pages that all of them may be gone at once.
    """
    transition = _transition(state, outcome, policy=policy, now=now, site=site, is_small_site=is_small_site)
    if outcome.status not in _NEVER_AGAIN and not outcome.needs_body:
        change = _change_of(state, outcome, transition.state)
        transition.state.history = history_after(state, now=now, status=int(outcome.status), took_s=outcome.took_s, change=change)
    return transition


def _change_of(state: UrlState, outcome: Outcome, after: UrlState) -> DocumentChange:
    if after.checksum is None or outcome.kind not in (OutcomeKind.DOCUMENT, OutcomeKind.UNCHANGED):
        return DocumentChange.NONE
    if state.checksum is None:
        return DocumentChange.NEW
    return DocumentChange.UNCHANGED if after.checksum == state.checksum else DocumentChange.CHANGED


def _transition(
    state: UrlState, outcome: Outcome, *, policy: RecrawlPolicy, now: int, site: Health, is_small_site: bool
) -> Transition:
    policy, kind = policy.of(state.site), outcome.kind
    if kind is OutcomeKind.UNCHANGED and not outcome.conditional:
        kind = OutcomeKind.GONE  # 304 to an unconditional GET
    match kind:
        case OutcomeKind.DOCUMENT:
            return _document(state, outcome, policy, now)
        case OutcomeKind.UNCHANGED:
            return _unchanged(state, outcome, policy, now)
        case OutcomeKind.REDIRECTED:
            return _left(state, outcome, State.REDIRECTED, policy, now)
        case OutcomeKind.EXCLUDED:
            return _left(state, outcome, State.EXCLUDED, policy, now)
        case OutcomeKind.GONE | OutcomeKind.FAILED:
            return _error(state, outcome, policy, now, site, is_small_site=is_small_site)


def withhold(state: UrlState, transition: Transition) -> Transition:
    """Return a transition with its deletion held for approval, because there were too many."""
    after = transition.state
    if after.status in _NEVER_AGAIN:
        stays = state if state.checksum is not None else after  # without a document it may be pending, and would be fetched again
        return Transition(structs.replace(stays, next_fetch=None, retries=0, lease_until=None, held=Held.RULES, held_mark=0))
    return Transition(
        structs.replace(
            after,
            checksum=state.checksum,
            canonical=state.canonical,
            simhash=state.simhash,
            etag=None,
            last_modified=None,
            held=Held.MANY,
            held_mark=0,
        )
    )


def rebuilt(state: UrlState, transition: Transition) -> Transition:
    """Return the transition of an outcome that was rebuilt from a stored response: data that only a fetch provides stays.

    A page that has failed since stays failed, with another document.
    """
    after = transition.state
    failed = state.state is State.FAILED and after.checksum is not None
    new = structs.replace(
        after,
        state=state.state if failed else after.state,
        status=state.status if failed else after.status,
        fetched_at=state.fetched_at,
        history=state.history,
        interval_s=state.interval_s,
        next_fetch=state.next_fetch,
        retries=state.retries,
        errors=state.errors,
        lease_until=state.lease_until,
        requested_by=state.requested_by,
        etag=None if after.etag is None else state.etag,
        last_modified=None if after.last_modified is None else state.last_modified,
        detail=state.detail if failed else after.detail,
    )
    return replace(transition, state=new)


def remembered(state: UrlState, *, policy: RecrawlPolicy, now: int) -> UrlState:
    """Return the state of a URL that is gone and stays known: it is fetched unconditionally after the shortest interval."""
    policy = policy.of(state.site)
    interval = policy.refresh_min_s
    due = next_fetch(now, interval, policy)
    return _without_validators(structs.replace(state, interval_s=interval, next_fetch=due, rules=0), before=state)


def approved(state: UrlState, *, now: int) -> Transition:
    """Return the transition when a person approves a held deletion."""
    if state.held is Held.RULES and state.held_mark:
        return Transition(unindexed(state, now), Op.DELETE)
    if state.held is Held.RULES:
        return Transition(excluded(state, Status.EXCLUDED), Op.DELETE)
    forget = state.held in (Held.HOST, Held.FOLDED) or state.state in (State.GONE, State.FAILED) or state.orphaned is not None
    gone = structs.replace(state, checksum=None, canonical=None, retries=0, lease_until=None, held=None, held_mark=0)
    return Transition(_without_validators(gone, before=state), Op.DELETE, forget=forget)


def discarded(state: UrlState, *, next_run: int) -> Transition:
    """Return the transition when a person discards a held deletion: the document stays, and its errors are counted from 0.

    An orphan stays one, counted from run `next_run`.
    """
    orphaned = None if state.orphaned is None else next_run
    return Transition(structs.replace(state, errors=0, retries=0, lease_until=None, held=None, held_mark=0, orphaned=orphaned))


def excluded(state: UrlState, status: Status) -> UrlState:
    """Return the state of a URL outside the crawl space: no data of its page is kept, and it is never due."""
    return structs.replace(state, **EXCLUDED, status=int(status))


def unindexed(state: UrlState, now: int) -> UrlState:
    """Return the state of a URL whose document the rules exclude from the index; it is due, for its links."""
    new = excluded(state, Status.NOINDEX)
    return structs.replace(new, **DUE, next_fetch=now if state.fetched_at is None else min(now, state.fetched_at))


def is_retry(state: UrlState) -> bool:
    """Return whether a URL waits for a retry of a failed fetch; the unconditional GET after a 304 is no such retry."""
    return state.retries > 0 and state.state is State.FAILED


def has_failed(state: UrlState) -> bool:
    """Return whether a URL waits for a retry of a fetch that counts as a failure of its site: not of one that only wants a cookie."""
    return is_retry(state) and state.status != Status.REDIRECT_LOOP


def pending_again(state: UrlState) -> UrlState:
    """Return the state of a URL that is crawled as if newly found."""
    new = excluded(state, Status.EXCLUDED)
    return structs.replace(new, state=State.PENDING, status=None, rules=0)


def imported_error(state: UrlState) -> UrlState:
    """Return the state of a URL that failed in another crawler: it is never due until a person resets it.

    It has no status, because the error is unknown. Its document stays in the index.
    """
    return structs.replace(
        state,
        state=State.GONE if state.checksum is None else State.FAILED,
        status=None,
        next_fetch=None,
        retries=0,
        errors=0,
        lease_until=None,
        etag=None,
        last_modified=None,
        requested_by=Requester.NOBODY,
        detail=None,
    )


def is_imported_error(state: UrlState) -> bool:
    """Return whether a URL has the state of `imported_error`."""
    return state.state in (State.GONE, State.FAILED) and state.status is None and state.next_fetch is None


def _document(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int) -> Transition:
    if not outcome.index or outcome.checksum is None:
        return _left(state, replace(outcome, status=Status.NOINDEX), State.EXCLUDED, policy, now)
    changed = outcome.checksum != state.checksum
    new = _finished(state, State.DONE, outcome.status, policy, now, changed=changed)
    new.checksum, new.simhash = outcome.checksum, outcome.simhash
    new.etag, new.last_modified = outcome.etag, outcome.last_modified
    return Transition(new, Op.PUSH if changed else None)


def _unchanged(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int) -> Transition:
    """The page is unchanged; after failures it is a document again. New validators replace the old ones."""
    into, status = (state.state, state.status) if state.checksum is None else (State.DONE, status_of_document(state))
    if outcome.needs_body:  # an unconditional GET follows at once and ends the round; nothing has failed
        whole = structs.replace(state, state=into, status=status, next_fetch=now, retries=max(1, state.retries))
        whole.lease_until = whole.etag = whole.last_modified = None
        if into is not state.state:
            whole.detail = None
        whole.rules = 0
        if state.held is Held.HOST:  # the site has answered, which must not confirm the deletion
            whole.held, whole.held_mark = None, 0
        return Transition(whole, retry=True)
    new = _finished(state, into, status, policy, now, changed=False)
    new.etag, new.last_modified = outcome.etag or state.etag, outcome.last_modified or state.last_modified
    return Transition(new)


def _left(state: UrlState, outcome: Outcome, into: State, policy: RecrawlPolicy, now: int) -> Transition:
    """The response is no document for the index: an indexed document is deleted at once."""
    order = _delete_of(state)
    if outcome.status in _NEVER_AGAIN:
        stays = outcome.status == Status.EXCLUDED_HERE
        return Transition(
            structs.replace(excluded(state, Status(outcome.status)), fetched_at=state.fetched_at), None if stays else order
        )
    same = state.state is into and state.status == outcome.status
    new = _finished(state, into, int(outcome.status), policy, now, changed=not same)
    new.checksum = None
    new.canonical = None
    new.etag, new.last_modified = outcome.etag, outcome.last_modified
    if into is State.GONE:
        new.detail = kept_detail(outcome.detail)
    return Transition(new, order)


def _error(
    state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int, site: Health, *, is_small_site: bool
) -> Transition:
    """An error is retried within the run, then counted; at a refresh, the last allowed one deletes and forgets the URL.

    A refusal, a redirect or text that is not trusted, or a page that is missing together with most of its site, counts as the host's failure
    as long as the URL has a document. It is not retried at once if a retry could confirm nothing. A redirect loop is retried once in a run
    with its cookie, if it sets one.
    """
    passing = outcome.kind is OutcomeKind.FAILED
    failing = site.is_failing(policy.host_failed_percent, own=1 if has_failed(state) else 0)
    failing = failing or (outcome.doubted != 0 and site.mostly_shows(outcome.doubted, policy.host_fetches))
    refused = state.checksum is not None and (outcome.status in REFUSALS or outcome.doubted != 0)
    missing = outcome.status in MISSING and not is_small_site and _is_missing_with_most(state, site, policy)
    failure = passing or outcome.host_failure
    may_be_the_hosts = failure or refused or missing
    rule = policy.error_rules.of(int(outcome.status))
    retries: int | None = None
    borne = policy.max_temporary_errors if passing else 1
    keep = False
    if rule is not None:
        borne, keep, retries = rule.after, rule.keep, rule.retries
    of_proxy = outcome.status == Status.PROXY_FAILED  # which is no evidence about the page
    errors = state.errors + (not of_proxy)
    doomed = _crawled_before(state) and not keep and not of_proxy and errors >= borne
    if retries is None and outcome.status == Status.REDIRECT_LOOP:
        retries = _MOST_WITH_COOKIE if outcome.sets_cookie else 0
    elif retries is None:
        may_pass = outcome.status in policy.retry_codes if policy.retry_codes is not None and outcome.status < 600 else failure
        retries = policy.retry_times if (may_pass and not outcome.code_failed) or (refused and doomed and not failing) else 0
    held, mark = state.held, state.held_mark
    is_new_loop = outcome.status == Status.REDIRECT_LOOP != state.status
    is_other_fault = held is Held.HOST and (is_new_loop or (outcome.doubted != 0 and not outcome.is_doubted_again))
    if doomed and may_be_the_hosts and (held is None or is_other_fault):  # the site must answer again
        held, mark = Held.HOST, site.answers
    if state.retries < retries:
        return _retry(state, outcome, policy, now, held, mark)
    failing = failing or (missing and site.is_mostly_missing(policy.host_fetches))
    confirmed = is_confirmed(state, site) and not failing and not outcome.doubted and not is_other_fault
    if doomed and (confirmed or not may_be_the_hosts):
        return replace(_left(state, outcome, State.GONE, policy, now), forget=True)
    into = State.FAILED if passing or state.checksum is not None or held is not None else State.GONE
    new = _finished(state, into, int(outcome.status), policy, now, changed=False)
    # An error is no evidence about how often the page changes, and is checked soon; but a page that is missing with most of its site keeps
    # its usual interval, so that normal answers come in between.
    if into is State.FAILED and not missing:
        new.interval_s = state.interval_s or first_interval(policy)
        new.next_fetch = next_fetch(now, error_wait(errors, interval_s=new.interval_s, policy=policy), policy)
    new.errors, new.held, new.held_mark, new.detail = errors, held, mark, kept_detail(outcome.detail)
    return Transition(_without_validators(new, before=state))


def is_confirmed(state: UrlState, site: Health) -> bool:
    """Return whether a deletion is held because of the host, and the site has answered normally since."""
    return state.held is Held.HOST and site.answers > state.held_mark


def _is_missing_with_most(state: UrlState, site: Health, policy: RecrawlPolicy) -> bool:
    """Return whether a document is missing like more than half of the last fetches of its site, this one included.

    A deletion held for this reason stays held until it is confirmed."""
    if state.checksum is None:
        return False
    if state.held is Held.HOST and state.status in MISSING:
        return True
    return site.after(missing=True, window=policy.host_fetches).is_mostly_missing(policy.host_fetches)


def _retry(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int, held: Held | None, held_mark: int) -> Transition:
    """Wait for a retry in this run. The data of the document stays."""
    retries = state.retries + 1
    wait = retry_wait(retries, retry_after_s=outcome.retry_after_s, policy=policy)
    new = structs.replace(
        state,
        state=State.FAILED,
        status=int(outcome.status),
        fetched_at=now,
        next_fetch=now + wait,
        retries=retries,
        lease_until=None,
        held=held,
        held_mark=held_mark,
        detail=kept_detail(outcome.detail),
    )
    return Transition(_without_validators(new, before=state), retry=True)


def _finished(state: UrlState, into: State, status: int | None, policy: RecrawlPolicy, now: int, *, changed: bool) -> UrlState:
    """Return the state after a finished round, due again after the next interval."""
    interval = interval_of(state, changed=changed, policy=policy)
    if status in SITEMAPS and policy.sitemap_refresh_s is not None:
        interval = policy.sitemap_refresh_s
    return structs.replace(
        state,
        state=into,
        status=status,
        fetched_at=now,
        interval_s=interval,
        next_fetch=(next_fetch if into is State.FAILED else next_refresh)(now, interval, policy),
        retries=0,
        errors=0,
        lease_until=None,
        held=None,
        held_mark=0,
        requested_by=Requester.NOBODY,
        detail=None,
    )


def _without_validators(new: UrlState, *, before: UrlState) -> UrlState:
    """A URL without a document must be fetched with an unconditional GET: there is nothing that could be unchanged.

    So must a file without text, because the status of the error replaces the status that marks it.
    """
    if new.checksum is None or before.status == Status.UNREADABLE_FILE:
        new.etag = new.last_modified = None
    return new


def status_of_document(state: UrlState) -> int:
    """Return the status of an unchanged document. After an error a file without text is fetched unconditionally."""
    return int(Status.UNREADABLE_FILE) if state.status == Status.UNREADABLE_FILE and state.state is State.DONE else 200


def _crawled_before(state: UrlState) -> bool:
    """Return whether an earlier round was finished, so that this fetch is a refresh."""
    return state.interval_s is not None


def _delete_of(state: UrlState) -> Op | None:
    return Op.DELETE if state.checksum is not None else None
