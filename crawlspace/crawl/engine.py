"""The use-cases of a running crawl: enter start URLs, admit candidates, choose the next fetch, record its outcome.

Scrapy (or a test) calls `next_fetch`, and then `fetched` with the one `Outcome` of that request. The engine decides nothing itself: it
asks the rules, the lifecycle and the frontier, and the store writes each effect in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.addresses import Locating
from crawlspace.crawl.admission import Admission, CandidateChecker, EndedUrls, check_start_urls
from crawlspace.crawl.commits import Archiving, Commits, RecordStore, Singly
from crawlspace.crawl.conditional import generation, mark_after
from crawlspace.crawl.depths.settlement import fetch_again
from crawlspace.crawl.files import SiteTurns
from crawlspace.crawl.findings import RunFindings, keep_learned
from crawlspace.crawl.inherited_metadata import lacks_fields
from crawlspace.crawl.logins import Logins
from crawlspace.crawl.outcomes import OutcomePolicy, excluded_status
from crawlspace.crawl.redirects import Redirects
from crawlspace.crawl.rendering import Rendering
from crawlspace.crawl.rule_changes.folding import FoldedDocuments
from crawlspace.crawl.run import FetchPage, FetchRobots, Refused, RunCounters
from crawlspace.crawl.sinks.deliveries import Deliveries
from crawlspace.crawl.sites import SiteDelays, SiteFailures, frontier_of, robots_of
from crawlspace.crawl.timed.steps import Steps
from crawlspace.crawl.timed.work import PassingTime
from crawlspace.decision import Reason
from crawlspace.errors import CrawlspaceError
from crawlspace.frontier.ports import OtherWorkers
from crawlspace.frontier.robots.cache import RobotsStore, RobotsVerdict
from crawlspace.index.sink import Sink
from crawlspace.model import Candidate, NewUrl, Outcome, OutcomeKind, Queue, State, Status, UrlState
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change, Effects
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.once_a_run import RunStart, at_once, is_due_again
from crawlspace.state.refused_links import packed
from crawlspace.state.site_health import Health
from crawlspace.state.store import LeaseStore, RunStore, Store
from crawlspace.state.unreachable import UnreachableSite, logged_out, not_rendered, postponed


class PageStore(RecordStore, RobotsStore, RunStore, Protocol):
    """What does not wait for the server where several workers share the crawl."""

    def health(self, site: str) -> Health: ...
    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None: ...
    def version(self) -> int: ...


class SharedLeases(LeaseStore, OtherWorkers, Protocol):
    """The sites of one worker."""


class WorkerView(PageStore, Protocol):
    """How one of several workers uses the store."""

    @property
    def sites(self) -> SharedLeases: ...


LOOK_EVERY_S = 0.1
"""Interval of the checks whether another process has written to the store."""


class Engine:
    """The crawl of one collection by this process."""

    def __init__(
        self,
        collection: Collection,
        space: CrawlSpace,
        *,
        store: Store,
        sinks: Sequence[Sink],
        clock: Clock,
        global_space: GlobalSpace | None = None,
        worker: WorkerView | None = None,
        archiving: Archiving | None = None,
    ) -> None:
        """`worker`: how this process uses the store, where several workers share the crawl."""
        self.collection = collection
        self.space = space
        self.global_space = global_space
        self.store = store
        self.clock = clock
        self.discovery = CandidateChecker(space)
        self.admission = Admission(collection, self.discovery, store)
        self.deliveries = Deliveries(store, sinks, clock, most=collection.max_backlog, settings=collection.sinks)
        self.findings = RunFindings(store, clock, folding=collection.url_folding)
        self.progress = RunCounters(watcher=self.findings)
        self.results: PageStore = store if worker is None else worker
        self._leases: LeaseStore = store if worker is None else worker.sites
        self._run = RunStart(self.results, clock, continuous=collection.continuous)
        self._time = PassingTime(collection, store, clock)
        self.hastened = self._time.hastened
        self._seeding: Steps[list[NewUrl]] = Steps(clock)
        self.outcome_policy = OutcomePolicy(
            store,
            read_health=self.results.health,
            clock=clock,
            deletion_limit=DeletionLimit(collection.max_deletions_percent, collection.max_deletions),
        )
        self.progress.moves = self.outcome_policy.moves
        self.policy = policy = self._time.policy()
        self.generation = generation(store)
        """Generation of the rules; a page fetched under another one is requested with an unconditional GET."""
        self.robots = robots_of(collection, self.results, clock)
        self.logins = Logins.of(collection, store, clock)
        self.rendering = Rendering.of(collection, space, store, clock=clock)
        self.site_delays = SiteDelays(collection, clock, self.robots)
        others = None if worker is None else worker.sites
        self.frontier = frontier_of(
            collection, self._leases, self.site_delays, clock=clock, time=self._time, others=others, policy=policy
        )
        self.site_failures = SiteFailures(
            self.frontier,
            self.robots,
            store,
            save_row=self.results.set_unreachable,
            clock=clock,
            giving_up=collection.giving_up,
            policy=lambda: self.policy,
        )
        self.robots_read = self.site_failures.robots_read
        self._leased: dict[int, UrlState] = {}
        self.turns = SiteTurns(
            self.frontier,
            self.site_delays,
            self.site_failures,
            leased=self._leased,
            policy=lambda: self.policy,
            clock=clock,
            converted_types=collection.files.converters,
        )
        self.locating: Locating | None = None
        """Looks up which sites share an address; set from outside if these share their delay."""
        self.is_judging = False
        """Whether links of archived pages are left to be judged; set from outside."""
        self._ended = EndedUrls(self.discovery, run_ends=self._run.ends, starts=(start.url for start in collection.start_urls))
        self.commits = Commits(self.results, clock, archiving)
        self.folded = FoldedDocuments(store)
        self.redirects = Redirects(
            store,
            uncommitted=self._uncommitted,
            most=collection.max_redirects,
            keeps_cookies=collection.keeps_cookies,
            folding=collection.url_folding,
        )
        self._version, self._looked_at = self.results.version(), float("-inf")

    # --- inserting URLs -------------------------------------------------------------------------------------------

    def seed(self) -> list[Refused]:
        """Insert the start URLs; a known one is not fetched sooner.

        Returns those that the rules refuse. Raises ConfigError if they refuse all.
        """
        refused = check_start_urls(self.collection.start_urls, self.space)
        for new in self.admission.starts():
            self.enter(new)
        return refused

    def admit(self, candidates: Iterable[Candidate]) -> list[Refused]:
        """Insert candidates from elsewhere, such as requests of a spider. Returns those refused."""
        new, refused = self.admission.candidates(candidates)
        self.enter(new)
        return refused

    # --- fetching and recording -----------------------------------------------------------------------------------

    def next_fetch(self) -> FetchPage | FetchRobots | None:
        """Return the next request; None if no site is ready, or the index is too far behind."""
        if self.deliveries.hold_up:
            return None
        self.turns.let_in()
        for _ in range(100):  # a limit, because URLs that need no request must not block the event loop
            state = self.frontier.next()
            if state is None:
                self._update()
                return None
            # A command beside the crawl has ended its lease, and it is being fetched all the same; or it has ended in this run.
            droppers = self._ended, self._time, self.folded
            if state.id in self._leased or any(one.drop(state, self.commits.batch.changes) for one in droppers):
                self.frontier.skip(state)
                continue
            if state.id in self.redirects.leaving:
                self.frontier.skip(state)
                continue
            if self.turns.sets_aside(state):
                continue
            if self.logins.wait_s(state.site):
                self.frontier.put_back(state)
                self.logins.pause(state.site, self.frontier)
                continue
            decision = self.discovery.recheck(state)
            if not decision.admitted:
                status = excluded_status(decision, state, space=self.space, global_space=self.global_space)
                self._exclude(state, status, decision.reason)
                continue
            if self.locating is not None and self.locating.takes(state):
                continue
            if self.collection.robots_obey:
                answer = self.robots.ask(state.url, site=state.site)
                if answer is RobotsVerdict.FORBIDDEN:
                    self._exclude(state, Status.ROBOTS_FORBIDDEN, Reason.ROBOTS)
                    continue
                if answer is RobotsVerdict.UNKNOWN:
                    if (fetch := self.site_failures.robots_to_fetch(state)) is None:
                        self.frontier.skip(state)
                        self.commits.batch.changes.append(Change(postponed(state, policy=self.policy, now=self._now())))
                        continue
                    self.frontier.block(state.site)  # first: the site keeps its turn
                    self.frontier.put_back(state)
                    return fetch
            self._leased[state.id] = state
            known = state.rules == self.generation and bool(state.etag or state.last_modified)
            known = known and (self.rendering is None or self.rendering.is_conditional(state.url))
            return FetchPage(state, conditional=known and not lacks_fields(state, decision.actions))
        return None

    def fetched(self, outcome: Outcome) -> bool:
        """Take the outcome of a FetchPage into the batch that `commit` writes. Return False when it is not awaited any more."""
        if (state := self._leased.get(outcome.id)) is None:
            return False
        again = self.redirects.check(state, outcome)
        self.turns.ended(state, outcome)
        self.progress.fetched += 1
        self.progress.by_kind[outcome.kind] += 1
        if outcome.status in (Status.LOGGED_OUT, Status.NOT_RENDERED):
            del self._leased[state.id]
            self.commits.add(Change(self._not_shown(state, outcome)), outcome, state)
        else:
            self._take(outcome)
            self._fetch_again(again, state)
        return True

    def not_sent(self, id: int) -> None:
        """Release a FetchPage that was not sent; its site's delay still counts from now."""
        if (state := self._leased.pop(id, None)) is not None:
            self._leases.release([id])
            self.frontier.recorded([id])
            self.frontier.finished(state)
            self.frontier.discovered([(state.site, state.queue)])

    def is_awaited(self, id: int) -> bool:
        return id in self._leased

    def awaited(self) -> list[UrlState]:
        return list(self._leased.values())

    def commit(self, *, waits: bool = True) -> Effects | None:
        """Write all outcomes taken so far, in one transaction. Raises StoreError, and then keeps them for another try.

        Unless it `waits`, those of which the archive has no record yet are set apart, for the next call.
        """
        effects = None
        while (self.commits.is_writing or self.begin_commit()) and (waits or self.commits.is_archived):
            try:
                effects = self.commits.write()
                if effects is None:
                    effects = self.commits.write_singly(self.singly())
            except CrawlspaceError:
                self.outcome_policy.give_back(self.commits.give_up())
                raise
            self.end_commit(effects)
        return effects

    def begin_commit(self) -> bool:
        """Set apart all outcomes taken so far, to be written by `commits`. Return False where there are none, or others are being written."""
        self.progress.refused.update({reason.value: count for reason, count in self.discovery.refused.items()})
        self.discovery.refused.clear()
        return self.commits.begin(self.outcome_policy.take_changed)

    def singly(self) -> Singly:
        """Go through what was set apart, change by change; one that cannot be written becomes an unexpected error (699) of its URL."""
        # Not tried again in this run: it would break again. The store keeps what it has of the document, and so does the index.
        policy = replace(self.policy, retry_times=0)
        return self.commits.singly(lambda state, lost: self.outcome_policy.follow(state, lost, policy=policy).state)

    def end_commit(self, effects: Effects) -> None:
        """Apply the effects of what was set apart and is written now. Raises StoreError."""
        batch = self.commits.end()
        self.outcome_policy.recorded(effects.displaced)
        self.admission.room.committed(self.commits.batch.new)
        self.frontier.recorded(change.state.id for change in batch.changes)
        if self.redirects.leaving:
            self.redirects.leaving.difference_update(change.state.id for change in batch.changes)
        for state in (change.state for change in batch.changes if not change.forget):
            again = state.retries > 0 or is_due_again(state, self._now())
            if state.next_fetch is not None and (again or not self._run.ends):
                self.frontier.due(state.site, state.queue, state.next_fetch, retry=again)
        self.inserted(batch.new, effects)
        self.deliveries.ordered(effects.pushes + effects.deletes)
        keep_learned(self.rendering, self.findings)
        self._update()

    @property
    def has_steps(self) -> bool:
        """Whether background steps remain, although there may be nothing to fetch."""
        return self._time.has_steps or self._seeding.are_left

    @property
    def uncommitted(self) -> int:
        return len(self.commits.batch.changes)

    def is_done(self) -> bool:
        """Return whether the run is complete, with all outcomes recorded. A continuous crawl is never done."""
        return not self.collection.continuous and self.is_idle()

    def close(self) -> None:
        """Commit, and release unused leases."""
        self.commit()
        keep_learned(self.rendering, self.findings, is_last=True)
        self.site_failures.end()
        self._time.end()
        self.frontier.close()
        if self._leased:  # an end by force: they are fetched again
            self._leases.release(list(self._leased))
            self._leased.clear()

    # --- private --------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self.clock.now())

    def is_idle(self) -> bool:
        """Whether nothing is in flight, pending or to be recorded."""
        waits = self.commits.waits or self._leased or self.turns.are_left or self._time.has_more_to_fetch
        return not (waits or self.is_judging or self.folded.are_moved) and self.frontier.is_done()

    def _exclude(self, state: UrlState, status: Status, reason: Reason) -> None:
        """Exclude a URL just returned by the frontier."""
        self.frontier.skip(state)
        self._leased[state.id] = state
        self._take(Outcome(state.id, state.url, OutcomeKind.EXCLUDED, status, reason=reason, fetched_at=self._now()))

    def _not_shown(self, state: UrlState, outcome: Outcome) -> UrlState:
        """Return the state of a URL of whose page nothing is known, for no reason of its own."""
        self.progress.count(state, outcome)
        if outcome.status == Status.NOT_RENDERED:
            return not_rendered(state, policy=self.policy, now=self._now(), run_ends=self._run.ends, detail=outcome.detail)
        waits = self.logins.logged_out(state.site, outcome.detail, self.frontier)  # else it is about this page alone
        return logged_out(state, outcome.retry_after_s, policy=self.policy, now=self._now(), waits=waits, detail=outcome.detail)

    def _update(self) -> None:
        """Update from changes by others, such as a command's writes, and start due background work, such as a new cycle."""
        self.enter(self._seeding.next() or ())
        for step in self._time.go_on(is_idle=self.is_idle):
            for due in step.due:
                self.frontier.due(*due)
            if step.is_turn:
                self.policy, self.generation, self._version = self._time.policy(), generation(self.store), -1
            if step.enters_starts:
                self._seeding.begin(self.admission.starts())
        if self.clock.monotonic() - self._looked_at < LOOK_EVERY_S and self._version != -1:
            return
        self._looked_at = self.clock.monotonic()
        if (version := self.results.version()) == self._version:
            return
        self._version = version
        for site in self.logins.look():
            self.frontier.resume(site)
        self.discovery.forget_known()
        self.frontier.look_again()
        self.deliveries.look()

    def enter(self, new: Sequence[NewUrl]) -> None:
        """Insert URLs that the checks have admitted; known ones may get nearer."""
        if new:
            self.inserted(new, self.store.discover(new, now=self._now()))

    def inserted(self, new: Sequence[NewUrl], effects: Effects) -> None:
        """Go on with URLs that were inserted, and with what that has changed."""
        self._discovered({(one.site, one.queue) for one in new}, effects)
        self.site_failures.found(new)
        self.fetch_again(effects)

    def fetch_again(self, effects: Effects, *, linked: bool = False) -> None:
        """Fetch URLs with a smaller depth in this run, if the limit of link depth excluded them or their links."""
        while effects.lowered:
            changes, effects = fetch_again(
                effects.lowered, self.store, discovery=self.discovery, limits=self.space.limits, now=self._now(), linked=linked
            )
            self._discovered([(one.state.site, one.state.queue) for one in changes], effects)
            for change in changes:
                if change.state.next_fetch is not None:
                    self.frontier.due(change.state.site, change.state.queue, change.state.next_fetch, retry=True)

    def _discovered(self, where: Iterable[tuple[str, Queue]], effects: Effects) -> None:
        self.progress.discovered += effects.discovered
        self.progress.pushes += effects.pushes
        self.progress.deletes += effects.deletes
        if effects.pending_sites:
            self.frontier.discovered(where)
        for site, queue, at in effects.due:
            self.frontier.due(site, queue, at)

    def _take(self, outcome: Outcome) -> None:
        """Add the change that an outcome makes to the batch."""
        self._run.look_at_clock()
        state = self._leased.pop(outcome.id)
        new, keys, refused, sample = self.admission.of_page(state, outcome)
        canonical = self.admission.canonical_key(state, outcome)
        folded = self.folded.of(state)
        if outcome.redirect_to is not None and not new:
            self.redirects.refused(state.url)
        target = self.redirects.target(state, outcome, new[0] if new else None)
        transition = self.outcome_policy.follow(
            state, outcome, policy=self.policy, canonical=canonical, folded=folded, target=target
        )
        after = transition.state
        if outcome.doubted:  # what is known of the page stays
            outcome.document = None
            if target is not None and new and not target.is_settled:
                self.redirects.wait(after, target, link=new[0])
        if outcome.doubted or (outcome.status == Status.REDIRECT_LOOP and after.checksum is not None):
            keys, new = None, new if outcome.redirect_to is not None else []
            if new:
                self.discovery.forget(new[0].key)  # a link to it may have a smaller depth
                keys, new[0] = self.redirects.links_of_kept(state, new[0], deepest=self.space.limits.max_link_depth)
                after.etag = after.last_modified = None  # its links are to be read again
        elif outcome.kind not in (OutcomeKind.GONE, OutcomeKind.FAILED, OutcomeKind.UNCHANGED):
            after.rules = self.generation
            after.refused = packed(refused or {})
        elif after.state is State.GONE:
            after.refused = None
        wanted = transition.order is not None or after.canonical != state.canonical
        has_other_fields = False
        if not outcome.doubted:
            after.fields_mark, has_other_fields = mark_after(outcome, after, before=state.fields_mark)
        document = outcome.document if (wanted or has_other_fields) and after.checksum is not None else None
        change = Change(
            after,
            document=document,
            links=keys,
            discovered=new,
            forget=transition.forget,
            keep_in_index=outcome.status == Status.EXCLUDED_HERE,
            refused_links=sample if after.refused and keys is not None else (),
        )
        self.commits.add(self._ended.follow(change, policy=self.policy, now=self._now()), outcome, state)
        self.commits.batch.changes += self.outcome_policy.replaced(folded, change, outcome, policy=self.policy)
        self._follow_waiting(after)
        self.commits.batch.new += new
        self.progress.count(state, outcome)

    def _follow_waiting(self, after: UrlState) -> None:
        """Let the documents leave that wait for what becomes of a URL; `after` is its state."""
        if not self.redirects.is_awaited(after.url):
            return
        after = self.outcome_policy.as_indexed(after)
        for one in self.redirects.waiting(after):
            if one.page.id in self._leased:  # its own outcome decides
                continue
            change = self.outcome_policy.follow_waiting(one, after, policy=self.policy)
            if change is not None:
                change.state.rules, change.state.refused = self.generation, packed({})
                self.commits.batch.changes.append(change)
                self.redirects.leaving.add(one.page.id)
            if change is not None or one.target is None or one.target.is_settled:
                self.redirects.end_wait(one.page)
            elif one.target.url != after.url:
                self.redirects.wait(one.page, one.target, link=one.link)

    def _uncommitted(self, url: str) -> UrlState | None:
        """Return the state of a URL after an outcome that is not recorded yet; None: there is none."""
        state = self.commits.uncommitted(url)
        return None if state is None else self.outcome_policy.as_indexed(state)

    def _fetch_again(self, urls: Iterable[UrlState], last: UrlState) -> None:
        """Have URLs be fetched in this run because of what a redirect leads to; `last` is the one that redirects."""
        for state in urls:
            if state.id not in self._leased:
                due = structs.replace(state, next_fetch=at_once(self._now(), state.fetched_at), lease_until=None)
                self.commits.batch.changes.append(Change(due, together_with=last.id))
