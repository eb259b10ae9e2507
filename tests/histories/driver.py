"""Run the real engine, store and index over a simulated web: in one process, with a simulated clock, and with kills.

What Scrapy and the collection's spider do around the engine is done here in a few lines: requests in flight, answered
in any order, each with one outcome; now and then a commit; now and then a batch to the index.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from crawlspace import settings as defaults
from crawlspace.admin.url_changes import ChangeCounts, UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.content.fingerprint import with_parts
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.files import unreadable
from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.crawl.sinks.repair import LostDocuments, Resending, enter_unknown
from crawlspace.crawl.startup import build_deletion_limit, open_engine
from crawlspace.decision import Reason
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.login_exclusion import checksum_behind_login
from crawlspace.index.sink import Sink
from crawlspace.model import State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.items import simhash_of
from crawlspace.state.redis.keys import Prefix
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.status import Status
from crawlspace.urls import url_key
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink
from tests.histories.archive import MovedDocuments, SimulatedArchive, exchange_of
from tests.histories.configuration import DAY, Configuration, rules_xml
from tests.histories.depths import end_run_checked
from tests.histories.documents import AS_IT_WAS, HeldDocument, Indexed, Inherited, checksum_of, key_of
from tests.histories.fate import Countdown, Failing, Fate, Killed, Run, Stuck, errors_into, killed_by, wait
from tests.histories.logins import LoggingIn
from tests.histories.reading import EDITIONS, Reader, parts_of, status_of, without_document
from tests.histories.restoring import SimulatedBackup
from tests.histories.sinks import IndexFile, send_once
from tests.histories.sitemaps import outcome_of as sitemap_outcome
from tests.histories.sites import CookieJar
from tests.histories.web import HTML, Answer, Web, host_of

NAME = "h"
InFlight = list[FetchPage | FetchRobots]
OnServer = Callable[[str], RedisStore]
"""Opens the store of the collection with that name."""
_ROUNDS = 400_000
"""More than a crawl of a small web takes; beyond, it would never end."""
_DEFAULTS = {name: value for name, value in vars(defaults).items() if name.isupper()}


class SimulatedCrawler(IndexFile):
    """A machine that crawls: its files and its clock outlive each crawl."""

    def __init__(
        self,
        folder: Path,
        web: Web,
        chance: random.Random,
        *,
        in_memory: bool,
        on_server: OnServer | None = None,
        name: str = NAME,
        clock: FakeClock | None = None,
    ) -> None:
        self.name = name
        """Of the collection; all those in one folder share the index."""
        self.clock = clock or FakeClock()
        self._on_server = on_server
        in_memory = in_memory and on_server is None
        self.in_memory = in_memory
        """The store is in memory, and outlives a crawl because all crawls are in one process here."""
        self._folder = folder
        self._web = web
        self._chance = chance
        self._memory = MemoryStore(sinks=(EMBEDDED,)) if in_memory else None
        self._memory_sink = MemorySink(EMBEDDED)
        self.edition = 0
        """Of the spider's code that divides pages into parts."""
        self.held_midway: set[bytes] = set()
        """Checksums of documents that a killed extraction left held for too many deletions: they may be of an earlier edition."""
        self.discarded: set[str] = set()
        """URLs that failed or redirected when a person kept their documents, and have not answered since."""
        self.by_spider = False
        """The project's own spider makes outcomes of the answers."""
        self.ends_sessions = False
        """Those of sites with a log-in end now and then while they are crawled."""
        self.spider = 1
        """Version of the spider's code."""
        self._contents: dict[tuple[str, bytes], tuple[str, str]] = {}
        self._latest: dict[str, tuple[str, str]] = {}
        self._keys: dict[int, str] = {}
        self._field = ""
        """The value that rules.xml adds in this crawl."""
        self._folded = Configuration().folded
        self._inherited = Inherited()
        self._fetches: Counter[tuple[str, int]] = Counter()
        """By URL and day."""
        self._logins: WeakKeyDictionary[Engine, LoggingIn] = WeakKeyDictionary()
        self._jars: WeakKeyDictionary[Engine, CookieJar] = WeakKeyDictionary()
        (folder / "collections" / name).mkdir(parents=True)
        (folder / "data" / name).mkdir(parents=True)
        self._index_file = folder / "data" / "index.db"
        self.archive: SimulatedArchive | None = None
        self.was_restored = False
        """From then on, a start compares index and store, and repairs differences."""

    def backup(self, chance: random.Random) -> SimulatedBackup:
        """Return what makes backups of its collection."""
        return SimulatedBackup(self._folder, self.name, chance, on_server=self._on_server is not None)

    def beside(self, name: str) -> SimulatedCrawler:
        """Return a crawler of another collection with the same clock and index."""
        other = SimulatedCrawler(
            self._folder, self._web, self._chance, in_memory=False, on_server=self._on_server, name=name, clock=self.clock
        )
        other.by_spider, other.spider = self.by_spider, self.spider
        if self.archive is not None:
            other.keep_archive()
        return other

    def keep_archive(self) -> None:
        """Archive what the crawls fetch."""
        self.archive = SimulatedArchive(self._folder / "data" / self.name / "archive", self.name, self.clock, self._chance)

    def configured(self, configuration: Configuration) -> Collection:
        """Write the collection's files, and load them as a crawl does at its start."""
        folder = self._folder / "collections" / self.name
        self._field, self._folded = configuration.field, configuration.folded
        (folder / "crawl.rules").write_text("".join(f"{rule}\n" for rule in configuration.rules))
        (folder / "start_urls.txt").write_text("".join(f"{start}\n" for start in self._web.start_urls()))
        (folder / "rules.xml").write_text(rules_xml(configuration.field) if configuration.field else "<Rules/>\n")
        shared = self._folder / "collections" / "global.rules"
        if configuration.global_rules is None:
            shared.unlink(missing_ok=True)
        else:
            shared.write_text("".join(f"{rule}\n" for rule in configuration.global_rules))
        places = {
            "CRAWLSPACE_COLLECTIONS_DIR": str(folder.parent),
            "CRAWLSPACE_DATA_DIR": str(self._folder / "data"),
            "CRAWLSPACE_SINKS": {"local": {"type": "sqlite", "file": str(self._index_file)}},
        }
        return load_collection(self.name, {**_DEFAULTS, **configuration.settings(), **places})

    def crawl(self, configuration: Configuration, fate: Fate) -> Run:
        """Run one crawl until it finishes, is stopped or is killed."""
        run = Run()
        with errors_into(run.errors):
            self._crawl_till_its_end(configuration, fate, run)
        return run

    def _crawl_till_its_end(self, configuration: Configuration, fate: Fate, run: Run) -> None:
        collection = self.configured(configuration)
        countdown = Countdown(fate.kill_after)
        store = self._open_store(collection)
        sink = self._open_sink()
        killed = False
        try:
            for opened in (store, sink):
                killed_by(countdown, opened)
            failing = Failing(sink, fate.index_fails, self._chance)
            run.pushed = failing.pushed
            self._run(collection, store, failing, countdown, fate, run)
            store.close()
        except Killed:
            killed = True
            run.ended = "killed"
        except Exception as error:  # noqa: BLE001 - any error of the crawler is reported with the history that led to it
            killed = True
            run.ended = "broken"
            run.errors.append(f"{type(error).__name__}: {error}")
        finally:
            sink.close()
            if self.search is not None:
                self.search.end()
            if self.archive is not None:
                self.archive.end(killed=killed)
            if killed and isinstance(store, SqliteStore):
                store._close_files()
            elif killed and isinstance(store, RedisStore):
                store.close()

    def command(self, name: str, urls: Sequence[str], *, crawled: bool = False) -> str:
        """Give a random command of a person, during a crawl or between two; return a description."""
        with self.store() as store:
            url_changes = UrlChanges(store, clock=self.clock, crawled=crawled)
            known = [state.id for url in urls if (state := store.get(url)) is not None]
            commands: dict[str, Callable[[], ChangeCounts]] = {
                "approve": url_changes.approve,
                "discard": url_changes.discard,
                "clear-errors": url_changes.clear_errors,
                "recrawl": lambda: url_changes.recrawl(known),
                "forget": lambda: url_changes.forget(known),
            }
            if name == "discard":
                self.discarded |= {state.url for state in store.urls(held=True) if state.state is State.FAILED}
            made = commands[name]()
        return f"{name} {' '.join(urls) if name in ('recrawl', 'forget') else ''}: {made.changed} changed"

    # --- what is left behind --------------------------------------------------------------------------------------

    @contextmanager
    def store(self) -> Iterator[SqliteStore | MemoryStore | RedisStore]:
        """Open the store, as a command does."""
        if self._memory is not None:
            self._memory.use_sinks(self.sinks)
            yield self._memory
            return
        if self._on_server is not None:
            with closing(self._on_server(self.name)) as shared:
                shared.use_sinks(self.sinks)
                yield shared
            return
        with closing(SqliteStore(self._folder / "data" / self.name / "state.db", sinks=self.sinks, clock=self.clock)) as store:
            yield store

    def index(self) -> dict[str, Indexed]:
        """Return the documents in the index."""
        documents = list(self._memory_sink.documents.values()) if self._memory is not None else self.documents()
        return {
            each.url: Indexed(each.title, each.text, frozenset(each.duplicates), each.fields.get("kind", ""))
            for each in documents
        }

    def left_to_others(self, states: Iterable[UrlState]) -> set[str]:
        """Return the URLs whose documents were left in the index for another collection, by the store."""
        known = {state.id: state.url for state in states}
        with self.store() as store:
            return {known[one] for one in store.left_to_others(list(known))}

    def kept(self, state: UrlState, configuration: Configuration) -> HeldDocument:
        """Return a document whose deletion is held, as it was when it was fetched."""
        assert state.checksum is not None
        title, text = self._contents.get((state.url, state.checksum)) or self._latest[state.url]
        canonical = self._keys.get(state.canonical, "?") if state.canonical is not None else ""
        now = checksum_of(title, text, with_title=configuration.checksum_title, cut_off=configuration.cut_off)
        editions = (self.edition,) if state.checksum in self.held_midway else range(EDITIONS)
        found = [with_parts(now, parts_of(text, edition)) for edition in editions]
        if host_of(state.url) in configuration.logins:
            found = [checksum_behind_login(one) or one for one in found]
        key = None if state.checksum in found else key_of(state.checksum) or (AS_IT_WAS, state.checksum.hex())
        why = state.held.label if state.held is not None else ""
        return HeldDocument(state.url, title, text, canonical, why, key, self._inherited.along_links_of(state.url))

    def inherited_from(self, url: str) -> dict[str, set[str]]:
        """Return the values of the field that links of a page have inherited since it was first read, as `HeldDocument.inherited`."""
        return self._inherited.along_links_of(url)

    def is_due_tomorrow(self, state: UrlState) -> bool:
        """Return whether a URL waits for the next day, or its refresh before that, since it was fetched again on one day already."""
        if not state.next_fetch or state.fetched_at is None:
            return False
        day = state.fetched_at // DAY
        return state.next_fetch % DAY == 0 or (state.next_fetch // DAY == day and self._fetches[state.url, day] > 1)

    # --- a crawl --------------------------------------------------------------------------------------------------

    def _open_store(self, collection: Collection) -> SqliteStore | MemoryStore | RedisStore:
        if self._memory is not None:
            self._memory.use_sinks(self.sinks)
            self._memory.release([state.id for state in self._memory.urls(leased=True)])
            return self._memory
        if self._on_server is not None:
            store = self._on_server(self.name)
            store.use_sinks(self.sinks)
            store.release([state.id for state in store.urls(leased=True)])
            for claim in store.server.client.scan_iter(f"{store.server.prefix}{Prefix.CLAIM}*"):
                store.server.client.delete(claim)  # of a crawl that was killed: it expires by the server's clock
            return store
        return SqliteStore.open_for_crawl(collection.store_file, sinks=self.sinks, clock=self.clock)

    def _open_sink(self) -> EmbeddedIndex | MemorySink:
        return self._memory_sink if self._memory is not None else self.open_index()

    def _run(
        self,
        collection: Collection,
        store: SqliteStore | MemoryStore | RedisStore,
        sink: Failing,
        countdown: Countdown,
        fate: Fate,
        run: Run,
    ) -> None:
        engine, lost = self._open(collection, store, sink, run, self.more_sinks(fate))
        moved = MovedDocuments(engine, self.archive, self._contents, self._latest)
        midway = self._chance.randint(1, 40) if fate.midway is not None and not fate.moments else -1
        width, commits = self._chance.choice((1, 3, 8)), self._chance.choice((0.03, 0.2, 1.0))
        began = ended_at = self.clock.now()
        in_flight: InFlight = []
        for step in range(_ROUNDS):
            countdown.tick()
            if fate.stop_after is not None and step >= fate.stop_after:
                run.ended = "stopped"
                break
            has_come = bool(fate.moments) and self.clock.now() - began >= fate.moments[0]
            if fate.midway is not None and (has_come or step == midway):
                run.changes.append(fate.midway())
                del fate.moments[:1]
            if fate.stalls and self._chance.random() < 0.02:
                self.clock.advance(collection.lease_s + 100)
                run.stalled += collection.lease_s + 100
            if moved.go_on(self._chance):
                continue
            fetch = engine.next_fetch() if len(in_flight) < width else None
            if fetch is not None:
                in_flight.append(fetch)
                self.send(engine, fetch)
                continue
            if in_flight:
                self._answer_one(engine, in_flight, run, countdown, commits)
                continue
            engine.commit()
            if moved.finish():
                continue
            if engine.is_done():
                break
            ended_at = self._end_day(engine, run, ended_at)
            if self._is_over(engine, countdown, run, until=began + fate.continues_for):
                break
            if lost is not None:
                lost.resume()
        else:
            raise Stuck(f"the crawl does not end: {store.counts()}")
        run.lasted, run.moved = self.clock.now() - began, moved.end()
        run.spared, run.called = engine.progress.spared, engine.progress.called
        run.moved_away += engine.progress.moves.total()
        if run.ended == "finished" and not collection.continuous:
            self._end_run(engine, run)
        engine.close()
        while send_once(engine, countdown, self.search):
            pass

    def _open(
        self, collection: Collection, store: SqliteStore | MemoryStore | RedisStore, sink: Failing, run: Run, more: Sequence[Sink]
    ) -> tuple[Engine, LostDocuments | None]:
        """Start as a session does; return what looks for lost documents, where the index may be shared."""
        indexed = store.counts().indexed
        run.deletion_limit_by_rules = max(collection.max_deletions, indexed * collection.max_deletions_percent // 100)
        archiving = None if self.archive is None else self.archive.open(store)
        resending = None
        if self.was_restored and isinstance(sink.sink, EmbeddedIndex):
            resending = Resending(store, sink.sink, owner=self.name, now=int(self.clock.now()))
            resending.begin()
        startup = open_engine(
            collection,
            store=store,
            sinks=[sink, *more],
            clock=self.clock,
            archiving=archiving,
            spider=SpiderCode(str(self.spider)),
        )
        if resending is not None:
            resending.finish(partial(enter_unknown, startup.engine), limit=build_deletion_limit(collection))
        if self.search is not None and more:
            reader = None if self.archive is None else self.archive.reader(store)
            self.search.filling = self.search.filling_of(store, startup.engine, reader)
        if startup.plan is not None:
            run.held_for_rules = startup.plan.held
            run.deletions = startup.plan.deletions - startup.plan.held
        if collection.limits.max_link_depth is not None:
            run.too_far = {state.url for state in store.urls() if state.state is State.EXCLUDED and state.checksum is None}
        run.deletion_limit = max(collection.max_deletions, store.counts().indexed * collection.max_deletions_percent // 100)
        lost = LostDocuments(startup.engine, sink.sink) if isinstance(sink.sink, EmbeddedIndex) else None
        if lost is not None:
            lost.start()
        return startup.engine, lost

    def _end_run(self, engine: Engine, run: Run) -> None:
        states = {state.url: state.state for state in engine.store.urls()}
        self.discarded = {url for url in self.discarded if states.get(url) in (State.FAILED, State.PENDING)}
        end_run_checked(engine, run, discarded=self.discarded)

    def _end_day(self, engine: Engine, run: Run, ended_at: float) -> float:
        """Do once a day in a continuous crawl what others do at their end; return when it was done."""
        if self.clock.now() - ended_at < DAY or not engine.is_idle():
            return ended_at
        self._end_run(engine, run)
        return self.clock.now()

    def _is_over(self, engine: Engine, countdown: Countdown, run: Run, *, until: float) -> bool:
        """Wait for something to do; if that is too far off, end the run as other crawls do, and return whether it is over."""

        def send() -> None:
            send_once(engine, countdown, self.search)

        if wait(engine, self.clock, until=until, send=send):
            return False
        self._end_run(engine, run)
        return not wait(engine, self.clock, until=until, send=send)

    def _answer_one(self, engine: Engine, in_flight: InFlight, run: Run, countdown: Countdown, commits: float) -> None:
        self._answer(engine, in_flight.pop(self._chance.randrange(len(in_flight))), run)
        if self._chance.random() < commits:
            engine.commit()
        if self._chance.random() < 0.1:
            send_once(engine, countdown, self.search)

    def send(self, engine: Engine, fetch: FetchPage | FetchRobots) -> None:
        """Send a request, with the cookies that there are now."""
        if isinstance(fetch, FetchPage):
            self._jar(engine).send(fetch)
            if any(one.session for one in engine.logins.accesses):
                self._logging_in(engine).send(fetch)

    def _logging_in(self, engine: Engine) -> LoggingIn:
        found = self._logins.get(engine)
        if found is None:
            found = self._logins[engine] = LoggingIn(engine, self._web, self.clock, self._chance)
        return found

    def _jar(self, engine: Engine) -> CookieJar:
        return self._jars.setdefault(engine, CookieJar())

    def _answer(self, engine: Engine, fetch: FetchPage | FetchRobots, run: Run) -> None:
        if isinstance(fetch, FetchRobots):
            robots = self._web.answer(fetch.url)
            engine.robots_read(fetch, status=status_of(robots), body=robots.body, retry_after_s=robots.retry_after_s)
            return
        state, jar = fetch.state, self._jar(engine)
        answer = self._shown(engine, fetch, jar.sent(fetch))
        if answer is None:
            engine.not_sent(state.id)
            return
        run.fetched += 1
        if isinstance(answer, Outcome):
            engine.fetched(answer)
            return
        jar.take(answer, engine)
        outcome = self._outcome(engine, state, answer, conditional=fetch.conditional)
        outcome.exchange = (
            None
            if self.archive is None or outcome.named is not None
            else exchange_of(state.url, answer, self.clock.now(), self.by_spider)
        )
        self._inherited.note(state.url, answer, self._field)
        self._fetches[state.url, int(self.clock.now()) // DAY] += 1
        if outcome.document is not None:
            outcome.simhash = simhash_of(outcome.document, engine.collection.content)
        engine.fetched(outcome)

    def _shown(self, engine: Engine, fetch: FetchPage, cookies: frozenset[str]) -> Answer | Outcome | None:
        """Return what a request is answered with; the outcome of a page that is not shown, and None where nobody could log in."""
        state = fetch.state
        etag, modified = (state.etag, state.last_modified) if fetch.conditional else (None, None)

        def ask(session: str) -> Answer:
            return self._web.answer(state.url, etag=etag, last_modified=modified, cookies=cookies, session=session)

        if not any(one.session for one in engine.logins.accesses):
            return ask("")
        logging_in = self._logging_in(engine)
        if self.ends_sessions:
            logging_in.end_sessions(state.url)
        return logging_in.answer(fetch, ask)

    def _outcome(self, engine: Engine, state: UrlState, answer: Answer, *, conditional: bool) -> Outcome:
        """Return the outcome that the collection's spider makes of a response."""
        if answer.status == 200 and self._web.is_sitemap(state.url) and not answer.has_form:
            return sitemap_outcome(engine, state, answer)
        if self.by_spider and not answer.failure:
            read = Reader(engine, edition=self.edition).outcome(state, answer, conditional=conditional)
            self._note_keys((*answer.links, answer.canonical, answer.link_canonical, state.url))
            self.note_document(state.url, read.document, read.checksum)
            return read
        failed = without_document(engine, state, answer, conditional=conditional)
        if failed is not None:
            return failed
        content = engine.collection.content
        noindex = answer.noindex and content.obey_meta_robots
        kind, status, reason = (
            (OutcomeKind.EXCLUDED, Status.NOINDEX, Reason.NOINDEX) if noindex else (OutcomeKind.DOCUMENT, 200, None)
        )
        read = Outcome(state.id, state.url, kind, status, reason=reason)
        read.index = not noindex
        read.links = list(answer.links)
        read.canonical = answer.canonical or None
        read.etag, read.last_modified = answer.etag or None, answer.last_modified or None
        self._note_keys((*answer.links, state.url))
        if not noindex:
            read.document = Document(state.url, title=answer.title, text=answer.text, content_type=HTML)
            with_title, cut_off = content.checksum_title, content.checksum_cut_off
            read.checksum = checksum_of(answer.title, answer.text, with_title=with_title, cut_off=cut_off, locked=answer.locked)
            self._contents[state.url, read.checksum] = self._latest[state.url] = (answer.title, answer.text)
            return unreadable(state, read, why="encrypted", policy=engine.policy) if answer.locked else read
        return read

    def _note_keys(self, urls: Iterable[str]) -> None:
        self._keys.update((url_key(one), one) for url in urls if url for one in (url, self._folded(url)))
