"""The use-cases of a running crawl, and nothing else: seed, admit, hand out, record, drain.

Scrapy (or a test) asks `next_fetch` what to ask for, and answers with one `Outcome` for it; everything in between is its affair.
The engine decides nothing itself: it asks the rules, the lifecycle and the frontier, and has the store make each effect whole.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from crawlspace.clock import Clock
from crawlspace.config import Collection
from crawlspace.decision import Reason
from crawlspace.discovery import Discovery
from crawlspace.errors import ConfigError, CrawlspaceError
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.politeness import Pace
from crawlspace.frontier.robots import Answer, Robots
from crawlspace.index.outbox import Delivery, Drain, Drained
from crawlspace.index.sink import Sink
from crawlspace.model import Candidate, NewUrl, Outcome, OutcomeKind, Source, State, Status, UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.run import FetchPage, FetchRobots, Progress, Refused, describe_refusal
from crawlspace.state.lifecycle import advance
from crawlspace.state.recrawl import retry_wait
from crawlspace.state.store import Change, Effects, Store
from crawlspace.urls import MalformedUrl, join, parse

logger = logging.getLogger(__name__)

SINK = "embedded"
"""The embedded index's place in the outbox."""


@dataclass(slots=True)
class _Batch:
    changes: list[Change] = field(default_factory=list)
    new: list[NewUrl] = field(default_factory=list)
    hosts: Counter[str] = field(default_factory=Counter)
    """How many of `new` by host."""


class Engine:
    """One collection being crawled by this process."""

    def __init__(self, collection: Collection, space: CrawlSpace, *, store: Store, sink: Sink, clock: Clock) -> None:
        self.collection = collection
        self.space = space
        self.store = store
        self.clock = clock
        self.discovery = Discovery(space)
        self.drain = Drain(store, sink, clock)
        self.backlog = self.drain.backlog()
        """Orders the index has not acknowledged yet."""
        self.progress = Progress()
        policy = collection.policy
        counts = store.counts()
        retrying = counts.retrying if policy.retry_times else 0
        self._noted_before = Status.ROBOTS_UNAVAILABLE in counts.by_status
        """Sites of an earlier run gave no robots.txt, and their URLs say so."""
        longest = retry_wait(max(1, policy.retry_times), retry_after_s=None, policy=policy)
        self.frontier = Frontier(
            store,
            clock=clock,
            pace_of=self.pace_of,
            lease_s=collection.lease_s,
            retries_until=clock.now() + longest if retrying else 0.0,
        )
        self.robots = Robots(store, clock=clock, user_agent=collection.robots_agent, ttl_s=collection.robots_ttl_s)
        self._leased: dict[int, UrlState] = {}
        self._robots_tries: Counter[str] = Counter()
        self._batch = _Batch()

    # --- what comes in --------------------------------------------------------------------------------------------

    def seed(self) -> list[Refused]:
        """Enter the start URLs; one that is known already is not fetched sooner for it.

        Returns those the rules refuse. Raises ConfigError when they refuse all.
        """
        candidates = [
            Candidate(start.url.text, Source.USER, base_host_as_written=start.url.host_as_written, shift=start.shift)
            for start in self.collection.start_urls
        ]
        refused: list[Refused] = []
        new: list[NewUrl] = []
        for start, candidate in zip(self.collection.start_urls, candidates, strict=True):
            admitted, _, decision = self.discovery.candidate(candidate)
            if admitted is None:
                refused.append(Refused(start.where, start.url.text, decision))
            else:
                new.append(admitted)
        if not new:
            raise ConfigError(
                "no start URL is in the crawl space:\n" + "\n".join(f"  {describe_refusal(one)}" for one in refused)
            )
        self._enter(new)
        return refused

    def admit(self, candidates: Iterable[Candidate]) -> list[Refused]:
        """Enter candidates from elsewhere, such as requests that a spider yields. Returns those refused."""
        refused: list[Refused] = []
        new: list[NewUrl] = []
        for candidate in candidates:
            admitted, _, decision = self.discovery.candidate(candidate)
            if admitted is None:
                refused.append(Refused("", candidate.href, decision))
            else:
                new.append(admitted)
        self._enter(new)
        return refused

    # --- what goes out --------------------------------------------------------------------------------------------

    def next_fetch(self) -> FetchPage | FetchRobots | None:
        """What to ask for next; None when nothing may be asked now, or the index is too far behind."""
        if self.waits_for_index:
            return None
        for _ in range(100):  # URLs that need no request are dealt with here, but the loop must not be held up by them
            state = self.frontier.next()
            if state is None:
                return None
            decision = self.discovery.recheck(state)
            if not decision.admitted:
                self.frontier.skip(state)
                self._leased[state.id] = state
                self._take(_excluded(state, Status.EXCLUDED, decision.reason, now=self._now()))
                continue
            if self.collection.robots_obey:
                answer = self.robots.ask(state.url, site=state.site)
                if answer is Answer.FORBIDDEN:
                    self.frontier.skip(state)
                    self._leased[state.id] = state
                    self._take(_excluded(state, Status.ROBOTS_FORBIDDEN, Reason.ROBOTS, now=self._now()))
                    continue
                if answer is Answer.UNKNOWN:
                    self.frontier.put_back(state)
                    self.frontier.hold(state.site)
                    scheme = state.url.split(":", 1)[0]
                    host = state.url.split("/", 3)[2]
                    return FetchRobots(state.site, scheme, f"{scheme}://{host}/robots.txt")
            self._leased[state.id] = state
            return FetchPage(state)
        return None

    def robots_read(self, fetch: FetchRobots, *, status: int, body: str, retry_after_s: float | None = None) -> None:
        """The answer to a FetchRobots. A site whose robots.txt can't be read waits, and is given up for this run after the retries."""
        site = fetch.site
        if status in (Status.NO_SUCH_HOST, Status.EXCLUDED):  # there is no one to ask, as each of its URLs will say for itself
            self.robots.pass_over(site, fetch.scheme)
            self.frontier.unhold(site)
            return
        if self.robots.save(site, fetch.scheme, status=status, body=body):
            self._robots_tries.pop(site, None)
            if self._noted_before:
                self.store.note_pending(site, None)
            self.frontier.unhold(site)
            return
        self._robots_tries[site] += 1
        tries = self._robots_tries[site]
        policy = self.collection.policy
        if tries <= policy.retry_times:
            self.frontier.wait_site(site, retry_wait(tries, retry_after_s=retry_after_s, policy=policy))
        else:
            self.frontier.give_up(site)
            self.store.note_pending(site, Status.ROBOTS_UNAVAILABLE)
            logger.warning(
                "%s gives no robots.txt (%s: %s): nothing of it is fetched, its URLs stay pending (741) until the next start",
                site,
                status,
                Status(status).sentence if status in list(Status) else "HTTP status",
            )
        self.frontier.unhold(site)

    def fetched(self, outcome: Outcome) -> bool:
        """Take the outcome of a FetchPage into the batch; `commit` makes it lasting. False when it is not awaited any more."""
        state = self._leased.get(outcome.id)
        if state is None:
            return False
        self.frontier.finished(state, sent_ago_s=outcome.sent_ago_s)
        if outcome.retry_after_s is not None:
            wait = min(outcome.retry_after_s, self.collection.policy.retry_after_max_s)
            self.frontier.wait_site(state.site, wait)
        self.progress.fetched += 1
        self._take(outcome)
        return True

    def is_awaited(self, id: int) -> bool:
        return id in self._leased

    def commit(self) -> Effects | None:
        """Make all outcomes taken so far lasting, in one transaction. Raises StoreError, and then keeps them for another try."""
        self._count_refusals()
        if not self._batch.changes:
            return None
        batch = self._batch
        try:
            effects = self.store.record(batch.changes, now=self._now())
        except CrawlspaceError:
            raise
        except Exception:
            logger.exception("a document could not be stored; the outcomes of its transaction are recorded one by one")
            effects = self._record_singly(batch)
        self._batch = _Batch()
        for change in batch.changes:
            state = change.state
            if change.forget:
                self.discovery.forget(state.key)
            elif state.next_fetch is not None:
                self.frontier.due(state.site, state.next_fetch, retry=state.retries > 0)
        self._discovered(batch.new, effects)
        self._refetch_nearer(effects)
        self.backlog += effects.pushes + effects.deletes
        return effects

    def _record_singly(self, batch: _Batch) -> Effects:
        """Record what can be; a change that breaks becomes an unexpected error (699) of its URL."""
        total = Effects()
        for number, change in enumerate(batch.changes):
            try:
                effects = self.store.record([change], now=self._now())
            except CrawlspaceError:
                raise
            except Exception:  # noqa: BLE001 - logged by the caller; whatever is wrong with this one must not stop the others
                lost = Outcome(change.state.id, change.state.url, OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True)
                # Not tried again in this run: it would break again. The store keeps what it has of the document, and so does the index.
                policy = replace(self.collection.policy, retry_times=0)
                after = advance(change.state, lost, policy=policy, now=self._now()).state
                batch.changes[number] = Change(after)
                effects = self.store.record([batch.changes[number]], now=self._now())
            total.discovered += effects.discovered
            total.pushes += effects.pushes
            total.deletes += effects.deletes
            total.lowered += effects.lowered
            for site, count in effects.pending_sites.items():
                total.pending_sites[site] = total.pending_sites.get(site, 0) + count
        return total

    @property
    def waits_for_index(self) -> bool:
        """So many orders are not acknowledged that nothing more is fetched for now."""
        return self.backlog >= self.collection.max_backlog

    def settle(self, delivery: Delivery) -> Drained:
        """Take down what the index has made durable. Raises StoreError."""
        drained = self.drain.settle(delivery)
        self.backlog = self.drain.backlog()
        return drained

    @property
    def uncommitted(self) -> int:
        return len(self._batch.changes)

    def is_done(self) -> bool:
        """Nothing is left to do in this run, and everything done is recorded."""
        return not self._batch.changes and not self._leased and self.frontier.is_done()

    def close(self) -> None:
        """Commit, and give back the leases of what was never asked for."""
        self.commit()
        self.frontier.close()
        if self._leased:  # an end by force: they are asked for again
            self.store.release(list(self._leased))
            self._leased.clear()

    # --- inside ---------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self.clock.now())

    def pace_of(self, site: str) -> Pace:
        """How fast a site (`host:port`) may be asked."""
        host, _, port = site.rpartition(":")
        settings = self.collection.sites.of(host, int(port))
        return Pace(settings.delay_s, settings.concurrency)

    def _enter(self, new: Sequence[NewUrl]) -> None:
        new = self._within_host_limit(new)
        if new:
            self._discovered(new, self.store.discover(new, now=self._now()))

    def _discovered(self, new: Sequence[NewUrl], effects: Effects) -> None:
        self.progress.discovered += effects.discovered
        self.progress.pushes += effects.pushes
        self.progress.deletes += effects.deletes
        if effects.pending_sites:
            self.frontier.discovered(new, effects.pending_sites)

    def _take(self, outcome: Outcome) -> None:
        """Turn an outcome into the change it makes."""
        state = self._leased.pop(outcome.id)
        new: list[NewUrl] = []
        keys: Sequence[int] | None = None
        if outcome.links is not None:
            found = self.discovery.links(
                outcome.links, base=outcome.base or state.url, base_host_as_written=state.host_as_written, depth=state.depth + 1
            )
            keys, new = found.keys, found.new
        if outcome.redirect_to is not None:
            target = self._redirect_target(state, outcome)
            if target is not None:
                new.append(target)
                keys = [target.key]
        transition = advance(state, outcome, policy=self.collection.policy, now=self._now())
        after = transition.state
        if outcome.document is not None and after.checksum is not None:
            after.canonical = self._canonical_key(state, outcome)
        document = outcome.document if transition.order is not None and after.checksum is not None else None
        if new:
            new = self._within_host_limit(new)
        self._batch.changes.append(Change(after, document=document, links=keys, discovered=new, forget=transition.forget))
        self._batch.new.extend(new)
        self._batch.hosts.update(one.site.rpartition(":")[0] for one in new)
        progress = self.progress
        if state.state is State.PENDING:
            progress.first_fetches += 1
        progress.by_status[int(outcome.status)] += 1
        if outcome.reason is not None:
            progress.refused[outcome.reason] += 1
        if outcome.kind is OutcomeKind.DOCUMENT:
            progress.documents += 1
        elif outcome.kind in (OutcomeKind.GONE, OutcomeKind.FAILED):
            progress.errors += 1

    def _redirect_target(self, state: UrlState, outcome: Outcome) -> NewUrl | None:
        """The target of a redirect: a new candidate of source redir with the same link depth, that never gets around a rule."""
        if state.redirects >= self.collection.max_redirects:
            self.discovery.refused[Reason.REDIRECTS] += 1
            return None
        candidate = Candidate(
            outcome.redirect_to or "",
            Source.REDIR,
            base=state.url,
            base_host_as_written=state.host_as_written,
            depth=state.depth,
            redirects=state.redirects + 1,
        )
        admitted, url, decision = self.discovery.candidate(candidate)
        if admitted is None and state.source is Source.USER:
            shown = url.text if url is not None else outcome.redirect_to or ""
            logger.warning("a start URL leads outside: %s", describe_refusal(Refused(state.url, f"its target {shown}", decision)))
        return admitted

    def _canonical_key(self, state: UrlState, outcome: Outcome) -> int | None:
        if not outcome.canonical:
            return None
        try:
            key = parse(join(outcome.base or state.url, outcome.canonical)).key
        except MalformedUrl:
            return None
        return key if key != state.key else None

    def _within_host_limit(self, new: Sequence[NewUrl]) -> list[NewUrl]:
        """Leave out unknown URLs of hosts that have as many as CRAWLSPACE_MAX_URLS_PER_HOST allows."""
        kept: list[NewUrl] = []
        adding: Counter[str] = Counter()
        for url in new:
            host, _, port = url.site.rpartition(":")
            most = self.collection.sites.of(host, int(port)).limits.max_urls_per_host
            if most is not None and self.store.get(url.url) is None:
                if self.store.host_count(host) + self._batch.hosts[host] + adding[host] >= most:
                    self.discovery.refused[Reason.URLS_PER_HOST] += 1
                    continue
                adding[host] += 1
            kept.append(url)
        return kept

    def _refetch_nearer(self, effects: Effects) -> None:
        """A page that turned out nearer to a start URL may lead to pages that were too far away before: fetch it again for its links."""
        deepest = self.space.limits.max_link_depth
        if deepest is None:
            return
        again = []
        for id, before, _ in effects.lowered:
            state = self.store.get_by_id(id)
            if (
                state is not None
                and before >= deepest
                and state.state in (State.DONE, State.EXCLUDED)
                and state.lease_until is None
            ):
                again.append(Change(replace(state, next_fetch=self._now(), rules=0)))
                self.frontier.due(state.site, self._now(), retry=True)
        if again:
            self.store.record(again, now=self._now())

    def _count_refusals(self) -> None:
        refused = self.discovery.refused
        if refused:
            self.store.count_refusals({reason.value: count for reason, count in refused.items()})
            self.progress.refused.update({reason.value: count for reason, count in refused.items()})
            refused.clear()


def _excluded(state: UrlState, status: Status, reason: Reason, *, now: int) -> Outcome:
    return Outcome(state.id, state.url, OutcomeKind.EXCLUDED, status, reason=reason, fetched_at=now)
