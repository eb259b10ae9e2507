"""One crawl of a collection as its Scrapy components see it: the engine, its store and index, opened and closed as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.crawler import Crawler

from crawlspace.admin.refresh import soonest_due
from crawlspace.admin.site_report import SiteReport, held_by_reason, unreachable_sites
from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.addresses import Located
from crawlspace.crawl.commits import Archiving
from crawlspace.crawl.depths.end_of_run import end_run
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.outcomes import DAY_S
from crawlspace.crawl.rule_changes.rediscovery import UNKNOWN_SPIDER, SpiderCode
from crawlspace.crawl.run import Run, describe_refusal, failing_sites, faults_of
from crawlspace.crawl.run_events import RunEvents
from crawlspace.crawl.run_log import RunLog
from crawlspace.crawl.sinks.repair import LostDocuments, Resent
from crawlspace.crawl.startup import Startup, learned_blocks
from crawlspace.errors import ConfigError, CrawlspaceError, StoreAway, StoreError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sink
from crawlspace.model import Held
from crawlspace.runtime.browser.extra import check_browser, check_extra
from crawlspace.runtime.components.scrapy_internals import end_spider, run_soon
from crawlspace.runtime.http.host_addresses import look_up
from crawlspace.runtime.http.negotiate import prepare_negotiate
from crawlspace.runtime.http.resolver import GuardedResolver
from crawlspace.runtime.http.sending import SecondAttempts, SendingTimes
from crawlspace.runtime.processes.index_process import IndexProcess
from crawlspace.runtime.session.archive_limit import end_archive
from crawlspace.runtime.session.sinks import fillings_of, former_sinks, open_sinks
from crawlspace.runtime.session.stores import (
    CrawlStore,
    abandon,
    begin_events,
    begin_log,
    check_server,
    discard_log,
    index_is_here,
    make_folder,
    open_archive,
    open_store,
    start,
)
from crawlspace.state.site_pauses import Pauses
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.state.views import Counts
from crawlspace.text import counted

if TYPE_CHECKING:
    from crawlspace.distributed.owned_sites import OwnedSites
    from crawlspace.distributed.prefetch import OtherRequests
    from crawlspace.runtime.session.sharing import Sharing

logger = logging.getLogger(__name__)


class Session:
    """The parts of one running crawl. `error` is the reason why it had to stop, if it had to."""

    def __init__(
        self,
        collection: Collection,
        startup: Startup,
        *,
        opened: CrawlStore,
        index: EmbeddedIndex | None,
        sinks: Sequence[Sink],
        archiving: Archiving | None,
        run_log: RunLog | None,
        events: RunEvents | None = None,
        settings: Mapping[str, object],
    ) -> None:
        self.collection = collection
        self.run_log = run_log
        """The record of the run; None where documents are only rebuilt."""
        self.describe: Callable[[], Mapping[str, object]] | None = None
        """Returns the summary of the run, which is called before the store is closed; None until the crawl runs."""
        self.startup = startup
        self.engine: Engine = startup.engine
        self.space, self.clock, self.progress = self.engine.space, self.engine.clock, self.engine.progress
        self.logins, self.rendering, self.robots = self.engine.logins, self.engine.rendering, self.engine.robots
        self.site_delays, self.deliveries, self.findings = self.engine.site_delays, self.engine.deliveries, self.engine.findings
        self.file_slots, self.sitemaps, self.frontier = self.engine.file_slots, self.engine.sitemaps, self.engine.frontier
        self.error: CrawlspaceError | None = None
        self.final_counts: Counts | None = None
        """The numbers of the store at the end; None where it could not be read any more."""
        self.final_sites: list[SiteReport] = []
        """The sites that cannot be reached, at the end."""
        self._failing: set[str] = set()  # sites with errors in this run that fail as a whole
        self.next_due: tuple[int, str] | None = None  # `soonest_due`, where this run was stopped or has fetched nothing
        self.final_pauses: Pauses = {}
        """The hosts that a person has paused, at the end."""
        self.final_held: Mapping[Held, int] = {}
        """Documents whose deletion is held, at the end, by reason."""
        self.faults: list[str] = []
        """Reasons for exit status 1 although the crawl came to its end, in sentences for the head of its summary; components add to it."""
        self.has_lost_log = False
        """The log could not be written to its end; that makes the exit status 1, too."""
        self._began = int(SystemClock().now())
        self.sending = SendingTimes()
        self.second_attempts = SecondAttempts()
        self.store: Store = opened.store
        self.boilerplate = learned_blocks(self.store) if collection.content.boilerplate else {}
        """Blocks that are left out of pages, by site."""
        self._joined = opened.joined
        self._settings = settings
        self.shared: Sharing | None = None
        """This worker's part of a shared crawl, once the crawl runs; None where no other worker crawls the collection."""
        self._sinks = sinks
        self._archiving, self._events = archiving, events
        self.without_effect: Sequence[str] = ()
        """Sentences about settings without effect."""
        self.resent: Resent | None = None
        """Documents sent to the index again because it has lost them."""
        self._closed = False
        self._lost = LostDocuments(self.engine, index) if index is not None and index_is_here(collection, opened) else None
        self._filling = fillings_of(collection, self.engine, self.store) if sinks else {}
        self._settled_at = -inf
        """Time when a crawl that does not end has settled its link depths."""
        self._at_close: list[Callable[[], None]] = []
        self._own: GuardedResolver | None = None
        """The resolver with the address rules of this crawl."""
        self.finish_reason = ""
        """Scrapy's reason for the end of the crawl: "finished" when nothing was left to do."""

    @classmethod
    def open(cls, name: str, settings: Mapping[str, object], *, spider: SpiderCode = UNKNOWN_SPIDER) -> Session:
        """Read the configuration, lock the collection, open store and index, bring them in line, and enter the start URLs.

        Raises CrawlspaceError with a sentence for the user; nothing stays open then, and nothing has been changed.
        """
        collection = load_collection(name, settings)
        if collection.renders:
            check_extra()
        collection.proxies.check()
        check_browser(collection.sites.accesses, collection.browser)
        prepare_negotiate(collection.sites.accesses)
        make_folder(collection)
        opened = open_store(collection, settings)
        with ExitStack() as undo:
            undo.callback(abandon, opened)
            sinks = open_sinks(collection, undo)
            index = next((sink for sink in sinks if isinstance(sink, EmbeddedIndex)), None)
            check_server(collection, opened, index)
            if index is not None and collection.processes > 1:
                index.write_by(IndexProcess(index.path, owner=collection.name))
            run_log = begin_log(collection, opened)
            undo.callback(discard_log, run_log)
            events = begin_events(collection, opened, run_log, undo)
            archiving = open_archive(collection, opened, SystemClock(), undo, settings)
            startup, resent = start(collection, opened, index, sinks, archiving, events=events, spider=spider)
            session = cls(
                collection,
                startup,
                opened=opened,
                index=index,
                sinks=sinks,
                archiving=archiving,
                events=events,
                run_log=run_log,
                settings=settings,
            )
            session.resent = resent
            if session._lost is not None:
                session._lost.start()
            if opened.joined is not None:
                opened.joined.shared.worker.ready()
            undo.pop_all()
        return session

    def log_warnings(self) -> None:
        """Log each start URL that the rules refuse, with the rule, address rules that cannot apply, and settings without effect."""
        for sentence in self.without_effect:
            logger.warning("%s", sentence)
        if self.space.has_address_rules and self.collection.proxies.sentence:
            logger.warning(
                "the address rules do not hold for %s: they are requested through a proxy, and only that sees the addresses",
                self.collection.proxies.sentence,
            )
        actions = self.collection.action_rules
        by_rules = actions is not None and actions.renders
        for _, what, why in self.collection.sites.routes_without_effect(rendered_by_rules=by_rules):
            logger.warning("%s has no effect: %s", what, why)
        for refused in self.startup.refused_starts:
            logger.warning("%s", describe_refusal(refused))
        for former in former_sinks(self.store, self.collection.sinks):
            logger.warning(
                "CRAWLSPACE_SINKS does not name the sink %s any more; orders are kept for it until `scrapy sinks %s --forget %s`",
                former,
                self.collection.name,
                former,
            )
        self._log_changes()

    def _log_changes(self) -> None:
        """Log what the start changed in the known URLs, and what a person may do about it."""
        name, plan = self.collection.name, self.startup.plan
        if plan is not None and plan.has_effect:
            if plan.changed:
                why = "the rules of %s have changed: %s"
            elif plan.returned:
                why = "hosts of %s have room again (CRAWLSPACE_MAX_URLS_PER_HOST), or its last run was killed: %s"
            else:
                why = "the settings or the spider of %s have changed, or its last run was killed: %s"
            logger.info(why, name, plan.sentence())
        if self.resent is not None:
            logger.warning("%s: %s", self.collection.index_file, self.resent.sentence(archived=name if self._archiving else ""))
        if plan is not None and plan.held:
            logger.warning(
                "held in the index: %s now excluded by the rules, because to delete so much needs approval (more than %d and more than %d %%):"
                " `scrapy deletions %s` lists it, with --approve it is deleted; if it was a mistake, correct the rules and start again",
                counted(plan.held, "document"),
                self.collection.max_deletions,
                self.collection.max_deletions_percent,
                name,
            )
        if self.startup.due_earlier:
            logger.warning(
                "due within CRAWLSPACE_REFRESH_MAX from now: %s that would have been due later, because the clock was set back or the"
                " setting made shorter",
                counted(self.startup.due_earlier, "URL"),
            )

    def guard_connections(self, wake: Callable[[], None]) -> None:
        """Check every connection of this crawl against its address rules, at connect time, until the session is closed.

        So are connections that cannot be assigned to a crawl. `wake` is called when an address that was looked up is known.
        """
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

        resolver = reactor.nameResolver
        if not isinstance(resolver, GuardedResolver):
            raise ConfigError(
                "TWISTED_DNS_RESOLVER is not crawlspace.runtime.http.resolver.GuardedResolver, so address rules could not be held; remove that setting"
            )
        guard = self.space.at_connect
        resolver.add(guard)
        self.at_close(lambda: resolver.remove(guard))
        own = self._own = resolver.for_one(guard)
        self.at_close(lambda: self._keep_addresses(most=10_000))
        if self.collection.share_address_delay:

            def locate(site: str, located: Located) -> None:
                def answered(address: str | None, *, certain: bool) -> None:
                    located(site, address, certain=certain)
                    wake()

                host, _, port = site.rpartition(":")
                if self.collection.proxies.of_site(site) is not None:  # only the proxy knows the address
                    answered(None, certain=True)
                    return
                look_up(own, host, int(port), answered)

            self.engine.look_up_addresses(locate, most=max(1, reactor.getThreadPool().max // 2))

    @property
    def owned_sites(self) -> OwnedSites | None:
        """The sites that this worker owns; None where no others crawl the collection."""
        return None if self._joined is None else self._joined.shared.view.sites

    def share(self, crawler: Crawler, others: OtherRequests) -> None:
        """Join a shared crawl, if it is one. To be called while the crawl's loop runs."""
        if self._joined is not None:
            from crawlspace.runtime.session.sharing import Sharing  # noqa: PLC0415 - with the client half a second, which only those pay who share

            shared, background = self._joined.shared, self._joined.background
            self.shared = Sharing(self, shared, background, crawler, self._settings, others=others)

    def owned_for_s(self, site: str) -> float:
        """Return the seconds for which requests may still be sent to a site of which a URL was leased."""
        return inf if self.shared is None else self.shared.owned_for_s(site)

    def incarnation(self) -> int:
        """Return a number that changes whenever this worker has lost all its sites to others."""
        return 0 if self.shared is None else self.shared.incarnation()

    def resolver(self) -> GuardedResolver | None:
        """Return the resolver of this crawl; None before its connections are guarded."""
        return self._own

    def at_close(self, call: Callable[[], None]) -> None:
        """Call a function first when the session is closed, however the crawl ended."""
        self._at_close.append(call)

    def commit(self, crawler: Crawler, *, waits: bool = True) -> None:
        """Commit outcomes (see `Engine.commit`); if the store fails, stop the crawl and keep the reason."""
        if self.error is not None or self._closed:
            return
        try:
            if self.shared is not None:
                self.shared.commit()
                return
            self._check_place()
            self.engine.commit(waits=waits)
            self._keep_addresses()
        except StoreError as error:
            self.fail(error, crawler)
        except Exception as error:
            logger.exception("what was fetched could not be recorded")
            fault = f"what was fetched could not be recorded, through a fault of ours ({type(error).__name__}: {error})"
            self.fail(
                StoreError(f"{fault}: the log has the details, please report it; nothing that was recorded is lost"), crawler
            )

    def end_run(self, crawler: Crawler) -> None:
        """Settle the link depths and delete orphans, if nothing is left to do; where several workers crawl, one of them does."""
        if self.engine.is_done() and (self.shared is None or self.shared.is_over):
            self._settle(crawler)

    def fill(self, drain: Drain) -> bool:
        """Order some of the documents that a sink lacks; return whether there are more for which there is room. Raises StoreError."""
        filling = self._filling.get(drain.sink)
        if filling is None or drain.is_unavailable:
            return False
        return filling.step() if self.shared is None else self.shared.fill(drain, filling.step)

    def end_day(self, crawler: Crawler) -> None:
        """Do the same in a crawl that does not end, once a day, when there is nothing to fetch; send again what the index has lost."""
        if not self.collection.continuous:
            return
        if self._lost is not None:
            self._lost.resume()
        if monotonic() - self._settled_at >= DAY_S and self.engine.is_idle():
            self._settled_at = monotonic()
            self._settle(crawler)

    def _settle(self, crawler: Crawler) -> None:
        if self.error is not None:
            return
        try:
            if self._joined is None:
                end_run(self.engine)
            else:
                with self._joined.shared.store.settling() as is_this:
                    if is_this:
                        end_run(self.engine)
        except StoreError as error:
            self.fail(error, crawler)

    def _keep_addresses(self, *, most: int = 100) -> None:
        """Store the addresses that were looked up, for address rules at the next start."""
        if self._own is not None and self.error is None:
            with suppress(StoreError):  # the next commit raises it
                self._own.look_ups.keep(self.store, now=int(SystemClock().now()), most=most)

    def _check_place(self) -> None:
        """Raise StoreError when the state file was moved or removed since it was opened: what is written to it would be lost."""
        if isinstance(self.store, SqliteStore) and not self.store.is_in_place:
            raise StoreError(
                f"{self.store.path} was moved or removed while {self.collection.name} is being crawled; put it back and start again"
            )

    def fail(self, error: CrawlspaceError, crawler: Crawler) -> None:
        """Stop the crawl because of an error that a person must fix. Nothing that was recorded is lost."""
        if self.error is not None:
            return
        self.error = error
        run_soon(end_spider(crawler, type(error).__name__))

    def all_faults(self) -> list[str]:
        """Return what makes the exit status 1, the worst first, once the crawl is closed."""
        found = list(self.faults)
        if self.error is None and self.finish_reason == "finished" and self.final_counts is not None:
            engine = self.engine
            seen = {site.row.site: site.cause for site in self.final_sites if site.row.counted_at >= self._began}
            refused = {one.url for one in self.startup.refused_starts}
            starts = {start.url.site for start in self.collection.start_urls if start.url.text not in refused}
            run = Run(
                self.progress,
                start_sites=starts,
                unreachable=seen | engine.unanswered_sites(),
                with_documents={site.row.site for site in self.final_sites if site.documents},
                has_documents=self.final_counts.indexed > 0,
                failing=self._failing,
                refused_logins=self.logins.refused_sites(engine.given_up_sites),
                without_login=self.logins.waiting_sites(engine.given_up_sites),
            )
            found += faults_of(run)
        return found

    def close(self) -> None:
        """Record the remaining outcomes, release the leases, close the files. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as closing:  # what is first here is done last; all of it is done, whatever fails
            closing.callback(self._keep_error, self.store.close)
            closing.callback(self._end_log)
            if self._events is not None:
                closing.callback(self._keep_error, self._events.close)
            closing.callback(self._end_archive)
            for sink in reversed(self._sinks):
                closing.callback(sink.close)
            closing.callback(self._keep_error, self._record_rest)
            for call in reversed(self._at_close):
                closing.callback(self._keep_error, call)

    def _record_rest(self) -> None:
        """Record the remaining outcomes, release the leases, and read the final numbers. Raises StoreError."""
        if self.shared is not None:
            self.shared.close()
        elif self._joined is not None:
            self._joined.leave()
        elif self.error is None:
            self._check_place()
            self.engine.close()
        if not isinstance(self.error, StoreAway):  # the server was waited for long enough
            self.final_counts, self.final_pauses = self.store.counts(), self.store.site_pauses()
            errors = self.collection.policy.max_temporary_errors
            self.final_sites = unreachable_sites(self.store, max_temporary_errors=errors)
            self._failing = failing_sites(self.store, self.progress.failed_sites, self.collection.policy)
            self.final_held = held_by_reason(self.store, self.final_sites)
            if self.finish_reason != "finished" or not self.progress.fetched:
                self.next_due = soonest_due(self.store, self.collection.refresh, now=self.clock.now())

    def _end_archive(self) -> None:
        is_last = self.error is None and (self._joined is None or (self.shared is not None and not self.shared.others))
        self._keep_error(lambda: end_archive(self._archiving, self.collection, self.store, is_last=is_last))

    def _end_log(self) -> None:
        """Write the record of the run with its summary; remove it where nothing has run."""
        if self.run_log is None or isinstance(self.error, StoreAway):
            return
        if self.describe is None:
            discard_log(self.run_log)
            return
        with suppress(StoreError):  # what was written last stays
            self.run_log.end(self.progress, self.describe())

    def _keep_error(self, call: Callable[[], None]) -> None:
        """Call a function; keep the first StoreError as the reason of the crawl's end."""
        try:
            call()
        except StoreError as error:
            self.error = self.error or error
