"""Apply outcomes in this run: the lifecycle of the URL, the health of its site, and the deletion limit of the run.

A page may be displaced: it gets the text of another one, or names another one as canonical. A site that returns its log-in page for every
URL, or names the front page as canonical everywhere, would empty an index, so displaced documents count as deletions. Whether a document
is displaced is certain only when it is recorded; until then it counts as possible, and the store is queried only near the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from crawlspace.cache import Recent
from crawlspace.clock import Clock
from crawlspace.crawl.displacements import Displacements, has_other_standing
from crawlspace.crawl.redirects import (
    CookieRetries,
    Moves,
    Target,
    WaitingPage,
    is_same_fault,
    is_unsettled,
    sentence_of_shown,
    signature_of_target,
    signature_of_text,
    signatures_of_page,
    target_url,
)
from crawlspace.decision import Decision
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change
from crawlspace.state.duplicates import stays_in_index
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.fetch_history import DocumentChange, history_after
from crawlspace.state.lifecycle import Transition, advance, has_failed, is_confirmed, kept_detail, rebuilt, withhold
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import MISSING, REFUSALS, Health
from crawlspace.state.store import Store
from crawlspace.state.unreachable import UNREACHABLE, logged_out, not_rendered
from crawlspace.status import NO_CONTENT, Status
from crawlspace.urls import Url, parse

DAY_S = 86_400.0
_KEPT = 20_000
_BUSY = (429, 503)
_WAIT_FOR_APPROVAL = (Held.MANY, Held.RULES)
UNAVAILABLE = (Status.LOGGED_OUT, Status.NOT_RENDERED)
"""Statuses of pages that could not be obtained, for reasons other than the page."""
_SHOWS_NOTHING = NO_CONTENT | {Status.REDIRECT_MALFORMED}
_NOT_OF_SITE = frozenset(
    {
        Status.ROBOTS_FORBIDDEN,
        Status.EXCLUDED,
        Status.EXCLUDED_HERE,
        Status.PORT_OR_SCHEME,
        Status.UNEXPECTED,
        Status.NOT_RENDERED,
        Status.NO_SITEMAP,
    }
)


class OutcomePolicy:
    """Applies outcomes in order of arrival. A continuous crawl resets its count of deletions each day."""

    def __init__(
        self, store: Store, *, read_health: Callable[[str], Health], clock: Clock, deletion_limit: DeletionLimit
    ) -> None:
        """`read_health` returns the stored health of a site."""
        self._store = store
        self._read_health = read_health
        self._clock = clock
        self._deletion_limit = deletion_limit
        self._displacements = Displacements(store)
        self._healths: dict[str, Health] = {}
        self._changed: dict[str, Health] = {}
        self._moves = Moves()
        self._cookie_retries = CookieRetries()
        self._texts_before: Recent[bytes, bytes] = Recent(_KEPT)
        """By the checksum of a text that a duplicate has shown first, that of the text before: see `_changes_with_others`."""
        self._small: dict[str, bool] = {}
        """By site, computed before any of its pages was found missing: see `_is_small`."""
        self.deleted = 0
        self.deleted_elsewhere = 0
        """Deletions by other workers of the same collection, as far as known."""
        self.withheld = 0
        """Deletions of this run held because of the deletion limit."""
        self._reset_counts()

    @property
    def moves(self) -> Counter[tuple[str, str]]:
        """Pages that were found at another address in this run, by the old and the new scheme and host."""
        return self._moves.by_host

    def follow(
        self,
        state: UrlState,
        outcome: Outcome,
        *,
        policy: RecrawlPolicy,
        canonical: int | None = None,
        folded: Sequence[UrlState] = (),
        target: Target | None = None,
    ) -> Transition:
        """Return the transition of an outcome; beyond the deletion limit, with the deletion held.

        `canonical` is the key of the canonical page named by the page; `folded` are the URLs folded into this one that wait for it; `target` is
        where a page redirects to that has a document, or that such URLs wait for. An outcome that is not trusted yet is marked
        (`Outcome.doubted`).
        """
        outcome.simhash = self._displacements.in_epoch(outcome.simhash)
        health = self._healths.get(state.site) or self._read(state.site)
        now = self._clock.now()
        holder = document_holder(state, folded) if target is not None else state
        shown = self._shown(holder, outcome, target)
        if shown and target is None and outcome.kind is OutcomeKind.DOCUMENT:
            outcome.detail = sentence_of_shown(shown)
        before = self._cookie_retries.before(state, outcome)
        outcome.is_doubted_again = bool(shown) and is_same_fault(before, outcome)
        if shown and holder is state and self._is_doubted(state, outcome, shown, health, policy=policy, target=target):
            outcome.doubted = shown
        judged = replace(outcome, kind=OutcomeKind.GONE) if outcome.doubted else outcome
        missing = judged.kind is OutcomeKind.GONE and judged.status in MISSING
        small = missing and state.checksum is not None and self._is_small(state.site, health, policy)
        transition = advance(state, judged, policy=policy, now=int(now), site=health, is_small_site=small)
        failed = _is_failure(judged) or (judged.kind is OutcomeKind.GONE and judged.status in REFUSALS)
        # A confirmed deletion is no new evidence about the site: a removed section is deleted completely, whatever its size.
        confirmed = state.held is Held.HOST and ((missing and transition.forget) or (shown and not outcome.doubted))
        wants_cookie = outcome.status == Status.REDIRECT_LOOP and outcome.sets_cookie
        again = (
            ((failed or missing or outcome.doubted) and has_failed(state))
            or outcome.is_doubted_again
            or confirmed
            or wants_cookie
        )
        if _concerns_site(outcome) and not again:
            is_instead = (
                target is None and not outcome.doubted and bool(health.shown) and _is_shown_instead(state, outcome, health)
            )
            health = health.after(
                failed=failed,
                missing=missing,
                answered=target is None and not outcome.doubted and not is_instead,
                shown=None if holder.checksum is None or is_instead else shown,
                window=policy.host_fetches,
            )
            self._healths[state.site] = self._changed[state.site] = health
        if target is not None and holder is state and not outcome.doubted and self._moves.add(state, target, health):
            return transition
        return self._within_limit(state, judged, transition, canonical, folded)

    def as_indexed(self, after: UrlState) -> UrlState:
        """Return the state of a URL as recorded after its outcome: its document is indexed, unless it is a duplicate."""
        if after.checksum is None or after.held is not None or self._displacements.is_lost(after):
            return after
        return structs.replace(after, indexed=True)

    def follow_waiting(self, one: WaitingPage, by: UrlState, *, policy: RecrawlPolicy) -> Change | None:
        """Return the change that deletes the document of a page that waits for the outcome of a URL; None: it keeps waiting.

        `by` is that URL after its outcome. The document is deleted in the same transaction: the index has it at another address, or the site is
        so small that its redirects are trusted.
        """
        page, target = one.page, one.target
        assert target is not None
        health = self._healths.get(page.site) or self._read(page.site)
        is_small = target.is_settled and self._is_small(page.site, health, policy)
        if not is_small and not target.has_document_of(page):
            return None
        has_moved = self._moves.add(page, target, health)
        outcome = Outcome(page.id, page.url, OutcomeKind.REDIRECTED, page.status or 0)
        transition = advance(page, outcome, policy=policy, now=int(self._clock.now()), site=health)
        transition.state.history = page.history  # which has this fetch already
        if not has_moved:
            transition = self._within_limit(page, outcome, transition, None)
        return Change(transition.state, links=[one.link.key], discovered=[one.link], together_with=by.id, before=page)

    def _shown(self, state: UrlState, outcome: Outcome, target: Target | None) -> int:
        """Return the signature of the page or text shown instead of the document of a URL; 0 for none, or the document itself."""
        if target is not None:
            return 0 if target.has_document_of(state) else target.signature
        if outcome.status in _SHOWS_NOTHING and state.checksum is not None:
            return int(outcome.status)
        changed = outcome.kind is OutcomeKind.DOCUMENT and outcome.index and outcome.checksum != state.checksum
        if not changed or outcome.checksum is None or state.checksum is None:
            return 0
        return signature_of_text(self._displacements.shared_text(outcome.checksum, outcome.simhash))

    def _is_doubted(
        self, state: UrlState, outcome: Outcome, shown: int, health: Health, *, policy: RecrawlPolicy, target: Target | None
    ) -> bool:
        """Return whether a redirect or text shown instead of a document is not trusted yet.

        On a small site a redirect is trusted as soon as its target is known.
        """
        is_small = self._is_small(state.site, health, policy)  # first: targets become pages of the site
        if target is not None and is_unsettled(target, state, outcome, policy):
            return True
        if is_small or (outcome.kind is OutcomeKind.DOCUMENT and not self._has_other(state, outcome)):
            return False
        is_confirmed_text = outcome.kind is OutcomeKind.DOCUMENT and _was_shown_in_earlier_round(state)
        if not (is_confirmed(state, health) or is_confirmed_text) or not outcome.is_doubted_again:
            return True
        return health.is_failing(policy.host_failed_percent) or health.mostly_shows(shown, policy.host_fetches)

    def _has_other(self, state: UrlState, outcome: Outcome) -> bool:
        """Return whether another URL has the text that a document has now."""
        after = structs.replace(state, checksum=outcome.checksum, simhash=outcome.simhash, canonical=None)
        return not self._changes_with_others(state, after) and self._displacements.is_lost(after)

    def _changes_with_others(self, state: UrlState, after: UrlState) -> bool:
        """Return whether the document of a URL changes as an equal page did before, which has been in the index for that text since.

        The index had one document of both, and will have one again: none is lost.
        """
        assert after.checksum is not None
        is_equal = state.canonical is None and after.canonical is None
        return is_equal and state.checksum is not None and self._texts_before.get(after.checksum) == state.checksum

    def rebuild(self, state: UrlState, outcome: Outcome, *, policy: RecrawlPolicy, canonical: int | None = None) -> Transition:
        """Return the same for an outcome rebuilt from a stored response, which is no evidence about the site."""
        outcome.simhash = self._displacements.in_epoch(outcome.simhash)
        transition = rebuilt(state, advance(state, outcome, policy=policy, now=int(self._clock.now())))
        return self._within_limit(state, outcome, transition, canonical)

    def _within_limit(
        self, state: UrlState, outcome: Outcome, transition: Transition, canonical: int | None, folded: Sequence[UrlState] = ()
    ) -> Transition:
        if outcome.kind is OutcomeKind.DOCUMENT and transition.state.checksum is not None:
            transition.state.canonical = canonical
            if any(one.indexed and one.checksum == transition.state.checksum for one in folded):
                # a waiting document with the same text is replaced by this one
                self._displacements.add(transition.state)
                return transition
            return self._follow_document(state, outcome, transition)
        if not _deletes(transition, outcome) or not (state.indexed or self._takes_back(state, transition)):
            return transition
        if state.held in _WAIT_FOR_APPROVAL:  # a new run must not delete, bit by bit, documents held by an earlier one
            return withhold(state, transition)
        room = self._room()
        if self._displacements.lost(room=room) < room:
            self.deleted += 1
            return transition
        self.withheld += 1
        return withhold(state, transition)

    def _follow_document(self, state: UrlState, outcome: Outcome, transition: Transition) -> Transition:
        """Hold the deletion of a document that another one will represent, if the deletion limit is exceeded.

        What the page shows is kept with it, so that the next fetch is trusted if it shows the same.
        """
        displacements, after = self._displacements, transition.state
        assert after.checksum is not None
        if self._changes_with_others(state, after):
            beyond = False
        elif state.held is Held.MANY and state.indexed and state.state in (State.DONE, State.FAILED):
            beyond = has_other_standing(state, after) and displacements.is_lost(after)
        else:
            beyond = displacements.is_beyond(state, after, room=self._room())
            self.withheld += beyond
        if beyond:
            after.detail = kept_detail(outcome.detail)
            return withhold(state, transition)
        if (
            state.checksum is not None
            and not state.indexed
            and state.checksum != after.checksum
            and not displacements.is_lost(after)
        ):
            self._texts_before.put(after.checksum, state.checksum)
        displacements.add(after)
        return transition

    def replaced(
        self,
        folded: Sequence[UrlState],
        change: Change,
        outcome: Outcome,
        *,
        before: UrlState,
        policy: RecrawlPolicy,
        target: Target | None,
    ) -> list[Change]:
        """Return changes that delete documents of URLs folded into one with an outcome; `change` is the change of that one.

        They are deleted together with the push of its document, also where the deletion limit keeps its previous one. If it has none, they are
        deleted if the outcome would delete their own, and the deletion limit allows it; a redirect to itself deletes nothing, nor does one
        that is not trusted yet. `before` and `target` are as for `follow`.
        """
        id = change.state.id
        if change.state.state is State.DONE:
            return [Change(state, forget=True, together_with=id) for state in folded]
        if change.links is not None and change.state.key in change.links and outcome.kind is OutcomeKind.REDIRECTED:
            return []
        return [
            Change(state, forget=True, together_with=id)
            for state in folded
            if (target is None or self._is_trusted_of_folded(state, before, target, policy))
            and self._deletes_folded(state, outcome, policy, site=change.state.site)
        ]

    def _is_trusted_of_folded(self, state: UrlState, before: UrlState, target: Target, policy: RecrawlPolicy) -> bool:
        """Return whether a redirect deletes the document of a folded URL: `before` has redirected in an earlier run, or the index has it there.

        On a small site, a redirect is trusted; on another one, not while it redirects most of its pages so.
        """
        health = self._healths.get(before.site) or self._read(before.site)
        if target.has_document_of(state) or self._is_small(before.site, health, policy):
            return True
        return before.state is State.REDIRECTED and not health.mostly_shows(target.signature, policy.host_fetches)

    def _deletes_folded(self, state: UrlState, outcome: Outcome, policy: RecrawlPolicy, *, site: str) -> bool:
        """Return whether an outcome deletes the document of a folded URL; `site` is the one that answered, and may fail as a whole."""
        health = self._healths.get(site) or self._read(site)
        small = outcome.status in MISSING and self._is_small(site, health, policy)
        state = structs.replace(state, held=None)
        transition = advance(state, outcome, policy=policy, now=int(self._clock.now()), site=health, is_small_site=small)
        if not _deletes(transition, outcome):
            return False
        if state.duplicate_of is not None:  # it has no document in the index
            return True
        room = self._room()
        if self._displacements.lost(room=room) < room:
            self.deleted += 1
            return True
        self.withheld += 1
        return False

    def recorded(self, displaced: int) -> None:
        """Update the counts after a successful write that displaced `displaced` documents."""
        self._displacements.end()
        self.deleted += displaced

    def know(self, site: str, health: Health) -> None:
        """Update the health of a site that another process has fetched from."""
        self._healths[site] = self._changed.get(site, health)

    def take_changed(self) -> Mapping[str, Health]:
        """Return the health of the sites for which it has changed since the last call, to be stored."""
        self._displacements.begin()
        changed, self._changed = self._changed, {}
        if len(self._healths) > _KEPT:
            self._healths.clear()
            self._small.clear()
        return changed

    def merge_back(self, health: Mapping[str, Health]) -> None:
        """Take back the result of `take_changed`, which could not be stored."""
        self._displacements.merge_back()
        self._changed = {**health, **self._changed}

    def _room(self) -> int:
        """Return how many documents may still be deleted."""
        if self._clock.now() - self._since >= DAY_S:
            self._reset_counts()
        return self._most - self.deleted - self.deleted_elsewhere

    def _reset_counts(self) -> None:
        self._since = self._clock.now()
        self.deleted = 0
        self._texts_before.clear()
        self._small.clear()
        counts = self._store.counts()
        self._most = self._deletion_limit.most(counts.indexed)
        self._has_left = counts.left_to_others > 0

    def _takes_back(self, state: UrlState, transition: Transition) -> bool:
        """Return whether a document left for another collection is deleted because its URL belongs to this one again."""
        if not self._has_left or state.checksum is not None:
            return False
        return (transition.forget or not stays_in_index(transition.state)) and bool(self._store.left_to_others([state.id]))

    def _is_small(self, site: str, health: Health, policy: RecrawlPolicy) -> bool:
        """Return whether a site has no more pages than its health counts: known URLs of its host and recent misses.

        Missing URLs may be forgotten, but count as part of the site."""
        small = self._small.get(site)
        if small is None:
            known = self._store.known_of_host(site.rpartition(":")[0]) + health.misses
            small = self._small[site] = known <= policy.host_fetches
        return small

    def _read(self, site: str) -> Health:
        health = self._healths[site] = self._changed.get(site) or self._read_health(site)
        return health


def document_holder(state: UrlState, folded: Sequence[UrlState]) -> UrlState:
    """Return a URL as if it had the document that waits for it, if it has none itself; `folded` are the URLs folded into it."""
    if state.checksum is not None or not folded:
        return state
    return structs.replace(state, checksum=folded[0].checksum)


def unavailable(state: UrlState, outcome: Outcome, *, policy: RecrawlPolicy, now: int, run_ends: bool, waits: bool) -> UrlState:
    """Return the state of a URL whose page could not be obtained. `waits`: its site waits for a log-in, else only this page is concerned."""
    if outcome.status == Status.NOT_RENDERED:
        after = not_rendered(state, policy=policy, now=now, run_ends=run_ends, detail=outcome.detail)
        after.history = history_after(
            state, now=now, status=int(outcome.status), took_s=outcome.took_s, change=DocumentChange.NONE
        )
        return after
    return logged_out(state, outcome.retry_after_s, policy=policy, now=now, waits=waits, detail=outcome.detail)


def excluded_status(decision: Decision, state: UrlState, *, space: CrawlSpace, global_space: GlobalSpace | None) -> Status:
    """Return the status of a refused URL: whether another collection may have its document.

    `decision` may concern the address of its host when it was connected to.
    """
    if global_space is None:
        return Status.EXCLUDED
    url = parse(state.url, host_as_written=state.host_as_written)
    return Status.EXCLUDED_HERE if is_left_to_others(decision, url, space=space, global_space=global_space) else Status.EXCLUDED


def is_left_to_others(decision: Decision, url: Url, *, space: CrawlSpace, global_space: GlobalSpace | None) -> bool:
    """Return whether another collection may have the document of a refused URL, because only its domain is refused."""
    if global_space is None:
        return False
    is_by_domain = decision.lacks_domain_rule or space.is_refused_by_domain_only(url, decision)
    return is_by_domain and global_space.allows(url) is not None


def site_failed(outcome: Outcome) -> bool | None:
    """Return whether a site failed; None if the outcome is no evidence about it, as where a log-in is not for a page.

    Redirect loops don't mean that it is overloaded.
    """
    if not _concerns_site(outcome) or outcome.status == Status.LOGGED_OUT:
        return None
    return _is_failure(outcome) and outcome.status != Status.REDIRECT_LOOP


def site_answered(outcome: Outcome) -> bool | None:
    """Return whether a site responded; None if the outcome is no evidence about it."""
    return outcome.status not in UNREACHABLE if _concerns_site(outcome) else None


def _was_shown_in_earlier_round(state: UrlState) -> bool:
    """Return whether what a page shows at a first attempt, like at its last one, was shown in an earlier round while its deletion was held for
    approval. That is never confirmed: a text is trusted for the links of the page only, which would not be read until a person decides."""
    return state.held is Held.MANY and state.retries == 0


def _is_shown_instead(state: UrlState, outcome: Outcome, health: Health) -> bool:
    """Return whether an outcome is shown by the site instead of documents, so that it is no normal answer.

    A text counts only where several pages have shown it: a page whose own text has changed shows its document.
    """
    shown = set(signatures_of_page(state))
    checksum = outcome.checksum or (state.checksum if outcome.kind is OutcomeKind.UNCHANGED else None)
    if checksum is not None and health.shown.count(signature_of_text(checksum)) > 1:
        shown.add(signature_of_text(checksum))
    if outcome.redirect_to is not None:
        target = target_url(state, outcome)
        if target is None:
            return False
        shown.add(signature_of_target(target, parse(state.url)))
    return not shown.isdisjoint(health.shown)


def _is_failure(outcome: Outcome) -> bool:
    """Return whether the site failed. A site that sent an unreadable file has answered."""
    failed = outcome.kind is OutcomeKind.FAILED and outcome.status != Status.UNREADABLE_FILE
    return outcome.host_failure or failed or outcome.status in _BUSY


def _concerns_site(outcome: Outcome) -> bool:
    """Return whether an outcome is evidence about the site.

    URLs excluded by rules, addresses or robots.txt were not requested, nor are pages without a browser to render them. An unexpected error is
    mostly a fault in parsing a page of a healthy site; it must not count as a response either, because responses confirm deletions.
    """
    if outcome.kind is OutcomeKind.GONE:
        return True  # a site may return any status code
    return outcome.status not in _NOT_OF_SITE


def _deletes(transition: Transition, outcome: Outcome) -> bool:
    return (transition.forget or transition.state.checksum is None) and outcome.status != Status.EXCLUDED_HERE
