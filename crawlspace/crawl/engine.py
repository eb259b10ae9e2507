"""The engine of a running crawl, a façade: callers use it, and none of its parts.

Scrapy (or a test) calls `next_fetch`, and then `fetched` with the one `Outcome` of that request; `commit` writes what was recorded, and `close`
ends the crawl. The engine decides nothing: it calls the rules, the lifecycle and the frontier, and the store writes each effect in one transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crawlspace.access.login_states import Logins
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.addresses import Locate, Locating
from crawlspace.crawl.admission import Admission, CandidateChecker, check_start_urls
from crawlspace.crawl.commits import Archiving, Commits, EventLog, OneByOne, PageStore, WorkerView
from crawlspace.crawl.conditional import generation, sends_validators
from crawlspace.crawl.depths.settlement import fetch_again
from crawlspace.crawl.files import FileSlots
from crawlspace.crawl.findings import RunFindings
from crawlspace.crawl.inherited_metadata import lacks_fields
from crawlspace.crawl.outcomes import UNAVAILABLE, OutcomePolicy, excluded_status, unavailable
from crawlspace.crawl.recording import OutcomeRecorder
from crawlspace.crawl.rendering import Rendering
from crawlspace.crawl.rule_changes.folding import FoldedDocuments
from crawlspace.crawl.run import FetchPage, FetchRobots, Refused, RunCounters, RunStart
from crawlspace.crawl.sinks.deliveries import Deliveries
from crawlspace.crawl.sitemaps import Sitemaps, refused_sitemaps
from crawlspace.crawl.sites import SiteDelays, SiteFailures, frontier_of, robots_of
from crawlspace.crawl.timed.steps import Steps
from crawlspace.crawl.timed.work import PassingTime
from crawlspace.decision import Decision, Reason
from crawlspace.errors import CrawlspaceError
from crawlspace.frontier.robots import RobotsVerdict
from crawlspace.frontier.site_queue import Wait
from crawlspace.index.sink import Sink
from crawlspace.model import Candidate, NewUrl, Queue, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change, Effects
from crawlspace.state.due_times import is_due_again
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.site_health import Health
from crawlspace.state.store import LeaseStore, Store
from crawlspace.state.unreachable import UnreachableSite, postponed
from crawlspace.status import Status

CHECK_EVERY_S = 0.1
"""Interval of the checks whether another process has written to the store."""


class Engine:
    """The crawl of one collection by this process.

    Its public attributes are values, and the parts that are passed to Scrapy components.
    """

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
        events: EventLog | None = None,
    ) -> None:
        """`worker`: how this process uses the store, where several workers share the crawl."""
        self.collection, self.space, self.global_space = collection, space, global_space
        self.store, self.clock = store, clock
        self._checker = CandidateChecker(space)
        self._admission = Admission(collection, self._checker, store)
        self.page_urls, self.canonical_key = self._admission.page_urls, self._admission.canonical_key
        self._sends_validators = sends_validators(collection)
        self.deliveries = Deliveries(store, sinks, clock, most=collection.max_backlog, settings=collection.sinks)
        self.findings = RunFindings(store, clock, folding=collection.url_folding)
        self.progress = RunCounters(watcher=self.findings)
        self._results: PageStore = store if worker is None else worker
        self._leases: LeaseStore = store if worker is None else worker.sites
        self._run = RunStart(self._results, clock, continuous=collection.continuous)
        self._time = PassingTime(collection, store, clock, progress=self.progress)
        self.due_earlier = self._time.due_earlier
        """Number of URLs made due earlier, because the clock was set back or the longest interval was reduced."""
        self._seeding: Steps[list[NewUrl]] = Steps(clock)
        self._outcomes = OutcomePolicy(
            store,
            read_health=self._results.health,
            clock=clock,
            deletion_limit=DeletionLimit(collection.max_deletions_percent, collection.max_deletions),
        )
        self.progress.moves = self._outcomes.moves
        self.policy = self._time.policy()
        self.generation = generation(store)
        """Generation of the rules; a page fetched under another one is requested with an unconditional GET."""
        self.robots = robots_of(collection, self._results, clock)
        self.sitemaps = Sitemaps(
            collection, store, admission=self._admission, checker=self._checker, robots=self.robots, lastmod=self._time.lastmod
        )
        self.logins = Logins.of(collection, store, clock)
        self.rendering = Rendering.of(collection, space, store, clock=clock)
        self.site_delays = SiteDelays(collection, clock, self.robots)
        self.frontier = frontier_of(
            collection,
            self._leases,
            self.site_delays,
            clock=clock,
            retries_until=self._time.retries_until,
            others=None if worker is None else worker.sites,
            policy=self.policy,
        )
        self._site_failures = SiteFailures(
            self.frontier,
            self.robots,
            store,
            save_row=self._results.set_unreachable,
            clock=clock,
            giving_up=collection.giving_up,
            policy=lambda: self.policy,
        )
        self._leased: dict[int, UrlState] = {}
        self.file_slots = FileSlots(
            self.frontier,
            self.site_delays,
            self._site_failures,
            leased=self._leased,
            policy=lambda: self.policy,
            clock=clock,
            converted_types=collection.files.converters,
        )
        self._locating: Locating | None = None
        self.is_judging = False
        """Whether links of archived pages remain to be judged; set from outside."""
        self._commits = Commits(self._results, clock, archiving, events)
        self.folded = FoldedDocuments(store)
        self._recorder = OutcomeRecorder(
            collection,
            store,
            admission=self._admission,
            checker=self._checker,
            outcomes=self._outcomes,
            folded=self.folded,
            commits=self._commits,
            lastmod=self._time.lastmod,
            clock=clock,
            deepest=space.limits.max_link_depth,
            run_ends=self._run.ends,
        )
        self._version, self._checked_at = self._results.version(), float("-inf")

    # --- inserting URLs -------------------------------------------------------------------------------------------

    def seed(self) -> list[Refused]:
        """Insert the start URLs; known ones are not fetched sooner. Returns refused ones. Raises ConfigError if all are refused."""
        refused = [*check_start_urls(self.collection.start_urls, self.space), *refused_sitemaps(self.collection, self.space)]
        for new in self._admission.starts():
            self.enter(new)
        return refused

    def read_folded(self) -> tuple[Effects, list[NewUrl]]:
        """Find the waiting documents of folded URLs, and insert the URLs that they wait for; return the effects, and these URLs."""
        effects, lost = self.folded.read(self.collection.url_folding, now=self.now())
        self.enter(lost)
        return effects, lost

    def admitted(self, candidates: Iterable[Candidate]) -> tuple[list[NewUrl], list[Refused]]:
        """Check candidates without inserting them; return those to be inserted, and those refused."""
        return self._admission.candidates(candidates)

    def admit(self, candidates: Iterable[Candidate]) -> list[Refused]:
        """Insert candidates from elsewhere, such as requests of a spider. Returns those refused."""
        new, refused = self.admitted(candidates)
        self.enter(new)
        return refused

    def enter(self, new: Sequence[NewUrl]) -> None:
        """Insert URLs that the checks have admitted; known ones may get a smaller depth."""
        if new:
            self.inserted(new, self.store.discover(new, now=self.now()))

    def inserted(self, new: Sequence[NewUrl], effects: Effects) -> None:
        """Process URLs that were inserted, and the effects."""
        self._discovered({(one.site, one.queue) for one in new}, effects)
        self._site_failures.found(new)
        self.fetch_again(effects)

    def fetch_again(self, effects: Effects, *, linked: bool = False) -> None:
        """Fetch URLs with a smaller depth in this run, if the limit of link depth excluded them or their links.

        `linked`: a way leads to all of them from a start URL, so that none is an orphan any more.
        """
        while effects.lowered:
            changes, effects = fetch_again(
                effects.lowered, self.store, discovery=self._checker, limits=self.space.limits, now=self.now(), linked=linked
            )
            self._discovered([(one.state.site, one.state.queue) for one in changes], effects)
            for change in changes:
                self.due(change.state)

    # --- decisions ------------------------------------------------------------------------------------------------

    def recheck(self, state: UrlState) -> Decision:
        """Return the decision for a stored URL by the present rules."""
        return self._checker.recheck(state)

    def count_refused(self, reasons: Mapping[Reason, int]) -> None:
        """Count links and requests that were refused, by reason."""
        self._checker.refused.update(reasons)

    def take_refused(self) -> Counter[Reason]:
        """Return what was refused since the last call, by reason."""
        refused, self._checker.refused = self._checker.refused, Counter()
        return refused

    # --- fetching and recording -----------------------------------------------------------------------------------

    def next_fetch(self) -> FetchPage | FetchRobots | None:
        """Return the next request; None if no site is ready, or the index is too far behind."""
        if self.deliveries.blocks_crawl:
            return None
        self.file_slots.admit_deferred()
        for _ in range(100):  # a limit, because URLs that need no request must not block the event loop
            state = self.frontier.next()
            if state is None:
                self._update()
                return None
            # A command has ended its lease during the crawl, and it is in flight; or it has ended in this run.
            droppers = self._recorder, self._time, self.folded
            is_dropped = state.id in self._leased or any(one.drop(state, self._commits.batch.changes) for one in droppers)
            if is_dropped or self._recorder.is_leaving(state):
                self.frontier.skip(state)
                continue
            if self.file_slots.defers(state):
                continue
            if self.logins.wait_s(state.site):
                self.frontier.put_back(state)
                self.logins.pause(state.site, self.frontier)
                continue
            decision = self._checker.recheck(state)
            if not decision.admitted:
                status = excluded_status(decision, state, space=self.space, global_space=self.global_space)
                self._exclude(state, status, decision.reason)
                continue
            if self._locating is not None and self._locating.defers(state):
                continue
            if self.collection.robots_obey:
                answer = self.robots.check(state.url, site=state.site)
                if answer is RobotsVerdict.FORBIDDEN:
                    self._exclude(state, Status.ROBOTS_FORBIDDEN, Reason.ROBOTS)
                    continue
                if answer is RobotsVerdict.UNKNOWN:
                    if (fetch := self._site_failures.robots_to_fetch(state)) is None:
                        self.frontier.skip(state)
                        self._commits.batch.changes.append(Change(postponed(state, policy=self.policy, now=self.now())))
                        continue
                    self.frontier.block(state.site)  # first: the site keeps its slot
                    self.frontier.put_back(state)
                    return fetch
            if self._time.lastmod.spare(state, self._commits.batch.changes, policy=self.policy, generation=self.generation):
                self.frontier.skip(state)
                continue
            self._leased[state.id] = state
            known = state.rules == self.generation and bool(state.etag or state.last_modified)
            known = known and self._sends_validators(state, decision.actions)
            known = known and (self.rendering is None or self.rendering.is_conditional(state.url))
            return FetchPage(state, conditional=known and not lacks_fields(state, decision.actions))
        return None

    def fetched(self, outcome: Outcome) -> bool:
        """Add the outcome of a FetchPage to the batch that `commit` writes. Return False when it is not awaited any more."""
        if (state := self._leased.get(outcome.id)) is None:
            return False
        again = self._recorder.check_redirect(state, outcome)
        self.file_slots.ended(state, outcome)
        self.progress.add(outcome)
        if outcome.status in UNAVAILABLE:
            del self._leased[state.id]
            self.progress.count(state, outcome)
            waits = outcome.status == Status.LOGGED_OUT and self.logins.note_logged_out(state.site, outcome.detail, self.frontier)
            after = unavailable(state, outcome, policy=self.policy, now=self.now(), run_ends=self._run.ends, waits=waits)
            self._commits.add(Change(after), outcome, state)
        else:
            self._record(outcome)
            self._recorder.request_again((one for one in again if one.id not in self._leased), together_with=state)
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

    def leased_again(self, state: UrlState) -> bool:
        """Update a URL that was leased again while it is in flight; return whether it is."""
        if state.id not in self._leased:
            return False
        self._leased[state.id] = state
        return True

    def robots_read(
        self, fetch: FetchRobots, *, status: int, body: str, retry_after_s: float | None = None, detail: str = ""
    ) -> None:
        """Process the response to a request for robots.txt, or its failure."""
        self._site_failures.robots_read(fetch, status=status, body=body, retry_after_s=retry_after_s, detail=detail)
        self.enter(self.sitemaps.of_robots_txt(fetch, status=status, body=body))

    def robots_not_sent(self, fetch: FetchRobots, *, wait_s: float = 0.0) -> None:
        """Request a robots.txt again with the next slot of its site, or after a while: its request was not answered."""
        if wait_s:
            self.frontier.wait_site(fetch.site, wait_s)
        self.frontier.unblock(fetch.site)

    def commit(self, *, waits: bool = True) -> Effects | None:
        """Write all outcomes so far, in one transaction. Raises StoreError, and then keeps them for another try.

        Unless it `waits`, outcomes that the archive has not written yet are left to the next call.
        """
        effects = None
        while (self.is_writing or self.begin_commit()) and (waits or self._commits.is_archived):
            try:
                effects = self.write()
                if effects is None:
                    effects = self._commits.write_one_by_one(self.one_by_one())
            except CrawlspaceError:
                self._outcomes.merge_back(self._commits.merge_back())
                raise
            self.end_commit(effects)
        return effects

    def begin_commit(self) -> bool:
        """Start a batch of all outcomes so far, to be written by `write`. Return False if there are none, or others are being written."""
        self.progress.refused.update({reason.value: count for reason, count in self.take_refused().items()})
        return self._commits.begin(self._outcomes.take_changed)

    def write(self) -> Effects | None:
        """Write the batch in one transaction; log a fault in a change and return None. Raises StoreError, ArchiveError.

        Uses only store and archive, so it can run in another thread.
        """
        return self._commits.write()

    def write_changes(self, changes: Sequence[Change]) -> Effects | Exception:
        """Write changes; return the error of a faulty one. Raises StoreError. May run in another thread."""
        return self._commits.record(changes)

    def one_by_one(self) -> OneByOne:
        """Write the batch change by change; one that cannot be written becomes an unexpected error (699) of its URL."""
        # Not tried again in this run: it would fail again. The store and the index keep the document.
        policy = replace(self.policy, retry_times=0)
        return self._commits.one_by_one(lambda state, lost: self._outcomes.follow(state, lost, policy=policy).state)

    def end_commit(self, effects: Effects) -> None:
        """Apply the effects of the written batch. Raises StoreError."""
        batch = self._commits.end()
        self._outcomes.recorded(effects.displaced)
        self._admission.room.committed(self._commits.batch.discovered())
        self.frontier.recorded(change.state.id for change in batch.changes)
        self._recorder.recorded(change.state.id for change in batch.changes)
        for state in (change.state for change in batch.changes if not change.forget):
            again = state.retries > 0 or is_due_again(state, self.now())
            if state.next_fetch is not None and (again or not self._run.ends):
                self.frontier.due(state.site, state.queue, state.next_fetch, retry=again)
        self.inserted(list(batch.discovered()), effects)
        self.deliveries.ordered(effects.pushes + effects.deletes)
        self.keep_learned()
        self._update()

    @property
    def uncommitted(self) -> int:
        """Number of collected changes that are not being written yet."""
        return len(self._commits.batch.changes)

    @property
    def is_writing(self) -> bool:
        """Whether a batch is being written."""
        return self._commits.is_writing

    @property
    def has_uncommitted(self) -> bool:
        """Whether outcomes are not written yet."""
        return self._commits.has_unwritten

    # --- sites ----------------------------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether any site has pending or due URLs, ready or not."""
        return self.frontier.working > 0

    @property
    def given_up_sites(self) -> set[str]:
        """Sites that were given up for this run."""
        return self.frontier.given_up_sites

    def wake_in(self) -> float | None:
        """Return the seconds until the next URL may be fetched; None if that depends on requests in flight."""
        return self.frontier.wake_in()

    def paused(self) -> Wait | None:
        """Return why no request is sent; None if one is in flight or may be sent, or waits for the delay of its site only."""
        return self.frontier.paused()

    def wait_for_site(self, site: str, seconds: float) -> None:
        """Pause a site for that time."""
        self.frontier.wait_site(site, seconds)

    def note_request(self, site: str, *, sent_ago_s: float = 0.0) -> None:
        """Note a request to a site other than for a page: its delay counts from it."""
        self.frontier.record_other_request(site, sent_ago_s=sent_ago_s)

    def refuse_login(self, fetch: FetchRobots, why: str) -> None:
        """Stop requests to a site that refused its log-in when its robots.txt was requested."""
        self.frontier.unblock(fetch.site, answered=True)
        self.logins.note_refused(fetch.site, why)
        self.frontier.give_up(fetch.site)

    def pause_login(self, fetch: FetchRobots, why: str) -> None:
        """Pause a site to which logging in failed when its robots.txt was requested."""
        self.robots_not_sent(fetch)
        self.logins.note_logged_out(fetch.target_site, why, self.frontier)
        self.logins.pause(fetch.site, self.frontier)

    def look_up_addresses(self, locate: Locate, *, most: int) -> None:
        """Look up the address of each site before its first request, `most` at a time: sites at one address share their delay."""
        self._locating = Locating(self.frontier, locate, most=most)

    def unanswered_sites(self) -> dict[str, str]:
        """Return the unreachable sites of this run, and the causes."""
        return self._site_failures.unanswered()

    # --- changes by others ----------------------------------------------------------------------------------------

    def due(self, state: UrlState, *, at: int | None = None) -> None:
        """Queue a URL whose due time was changed, for this run; it is due `at`, or at the time of its state."""
        due_at = state.next_fetch if at is None else at
        if due_at is not None:
            self.frontier.due(state.site, state.queue, due_at, retry=True)

    def links_judged(self, new: Sequence[NewUrl], effects: Effects) -> None:
        """Process the URLs found by links of archived pages, and the effects of recording them."""
        self._admission.room.committed(new)
        self.inserted(new, effects)

    def documents_move(self) -> None:
        """Note that archived documents move to other URLs from now on."""
        self._commits.archive_moves()

    def documents_moved(self, effects: Effects) -> None:
        """Apply the effects of archived documents that were pushed under other URLs."""
        self.inserted([], effects)
        self.deliveries.ordered(effects.pushes + effects.deletes)

    def finish_moving(self) -> None:
        """Move the remaining archived documents, when nothing is fetched any more. Raises StoreError."""
        self.folded.finish()

    def count_written(self, *, pushes: int, deletes: int) -> None:
        """Count documents pushed and deleted for another reason than an outcome."""
        self.progress.pushes += pushes
        self.progress.deletes += deletes

    def orphans_deleted(self, *, pushes: int, deletes: int) -> None:
        """Count deleted documents of orphans, and documents pushed in their place."""
        self.count_written(pushes=pushes, deletes=deletes)
        self._outcomes.deleted += deletes
        self.deliveries.ordered(deletes + pushes)

    def site_acquired(self, site: str, health: Health, unreachable: UnreachableSite | None) -> None:
        """Take over the state of a site that this worker has acquired."""
        self._outcomes.know(site, health)
        self._site_failures.know(site, unreachable)

    def forget_known(self) -> None:
        """Clear the cache of known URLs, because the store may have forgotten some, or lowered depths."""
        self._checker.forget_known()

    def note_others(self, *, waiting: Mapping[str, int], deleted: int) -> None:
        """Note the totals of all workers: waiting orders by sink, and documents deleted by the others."""
        self.deliveries.recount(waiting)
        self._outcomes.deleted_elsewhere = deleted

    @property
    def deleted(self) -> int:
        """Number of documents that this process has deleted, counted for the deletion limit."""
        return self._outcomes.deleted

    @property
    def deleted_by_all(self) -> int:
        """The same for all workers, as far as known."""
        return self._outcomes.deleted + self._outcomes.deleted_elsewhere

    @property
    def withheld(self) -> int:
        """Number of deletions of this run held because of the deletion limit."""
        return self._outcomes.withheld

    # --- the end --------------------------------------------------------------------------------------------------

    @property
    def is_alone(self) -> bool:
        """Whether no other workers share the crawl."""
        return self._results is self.store

    @property
    def has_steps(self) -> bool:
        """Whether background steps remain, although there may be nothing to fetch."""
        return self._time.has_steps or self._seeding.has_remaining

    def is_idle(self) -> bool:
        """Return whether nothing is in flight, pending or to be recorded."""
        waits = self._commits.has_unwritten or self._leased or self.file_slots.has_deferred or self._time.has_more_to_fetch
        return not (waits or self.is_judging or self.folded.is_moving) and self.frontier.is_done()

    def is_done(self) -> bool:
        """Return whether the run is complete, with all outcomes recorded. A continuous crawl is never done."""
        return not self.collection.continuous and self.is_idle()

    def keep_learned(self, *, is_last: bool = False) -> None:
        """Store what this run has learned about rendering, and its findings."""
        if self.rendering is not None:
            self.rendering.keep(is_last=is_last)
        self.findings.keep(is_last=is_last)
        self._time.lastmod.keep(is_last=is_last)

    def leave_sites(self) -> None:
        """Count the failures of a complete run, and release all unused leases."""
        self._site_failures.end()
        self.frontier.close()

    def close(self) -> None:
        """Commit, and release unused leases."""
        self.commit()
        self.keep_learned(is_last=True)
        self._time.end()
        self.leave_sites()
        if self._leased:  # a forced end: they are fetched again
            self._leases.release(list(self._leased))
            self._leased.clear()

    def now(self) -> int:
        """Return the time in seconds since 1970."""
        return int(self.clock.now())

    # --- private --------------------------------------------------------------------------------------------------

    def _exclude(self, state: UrlState, status: Status, reason: Reason) -> None:
        """Exclude a URL just returned by the frontier."""
        self.frontier.skip(state)
        self._leased[state.id] = state
        self._record(Outcome(state.id, state.url, OutcomeKind.EXCLUDED, status, reason=reason, fetched_at=self.now()))

    def _record(self, outcome: Outcome) -> None:
        """Add the change that an outcome makes to the batch."""
        self._run.check_clock()
        state = self._leased.pop(outcome.id)
        self._recorder.add(state, outcome, policy=self.policy, generation=self.generation, in_flight=self._leased)
        self.progress.count(state, outcome)

    def _update(self) -> None:
        """Update from changes by others, such as a command's writes, and start due background work, such as a new cycle."""
        self.enter(self._seeding.next() or ())
        for step in self._time.resume(is_idle=self.is_idle):
            for due in step.due:
                self.frontier.due(*due)
            if step.begins_cycle:
                self.policy, self.generation, self._version = self._time.policy(), generation(self.store), -1
            if step.enters_starts:
                self._seeding.begin(self._admission.starts())
        if self.clock.monotonic() - self._checked_at < CHECK_EVERY_S and self._version != -1:
            return
        self._checked_at = self.clock.monotonic()
        if (version := self._results.version()) == self._version:
            return
        self._version = version
        for site in self.logins.recheck():
            self.frontier.resume(site)
        self.forget_known()
        self.frontier.recheck_sites()
        self.deliveries.recount()

    def _discovered(self, where: Iterable[tuple[str, Queue]], effects: Effects) -> None:
        self.progress.discovered += effects.discovered
        self.count_written(pushes=effects.pushes, deletes=effects.deletes)
        if effects.pending_sites:
            self.frontier.discovered(where)
        for site, queue, at in effects.due:
            self.frontier.due(site, queue, at)
