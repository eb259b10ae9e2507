"""The collection of a random history: its archive, its search server, and its crawls, each checked, with the oracle when all is settled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from crawlspace.access.login_states import forget_refused, refused_logins
from crawlspace.crawl.sinks.deliveries import lacks_documents, request_backfill
from crawlspace.crawl.sinks.repair import UNSENT, note_restored_documents_sent
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import Held, State, UrlState
from crawlspace.state.duplicates import held_checksum
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.status import Status
from tests.histories import neighbour
from tests.histories.archive import SimulatedArchive, is_shown_no_more, is_to_be_archived
from tests.histories.checks import CheckedCollection
from tests.histories.collection import row_of
from tests.histories.configuration import ELSEWHERE
from tests.histories.documents import UNREADABLE, Indexed, Past
from tests.histories.fate import Countdown, Fate, Killed, Run, killed_by
from tests.histories.folded import forgotten, needlessly_held
from tests.histories.folded import lost as lost_by_folding
from tests.histories.oracle import WALLED, Oracle, Remembered
from tests.histories.reading import EDITIONS, parts_of
from tests.histories.restoring import SimulatedBackup
from tests.histories.sinks import SEARCH, SimulatedSearch
from tests.histories.sites import is_walled, target_of
from tests.histories.web import REDIRECTS, host_of

Work = Callable[[SqliteStore | RedisStore, EmbeddedIndex, Countdown], None]


class ArchivedCollection(CheckedCollection):
    def _maintain_archive(self, archive: SimulatedArchive) -> None:
        """Compact or bound the archive between two crawls, or reindex from it, as a person does."""
        chance = self._chance
        kill_after = round(2 ** chance.uniform(1, 8)) if chance.random() < 0.5 else None
        what = chance.random()
        if what < 0.2:
            archive.most_bytes = chance.choice((None, 2_000, 20_000))
            self._say(f"the archive may have {archive.most_bytes} bytes")
        elif what < 0.6 or self._other is not None or self._counts.outbox or self._counts.left_to_others:
            done = self._done(lambda store, _, countdown: archive.compact(store, countdown), kill_after)
            self._report.met["archive compacted"] += done
            self._say(f"the archive is compacted{'' if done else ', and that is killed'}")
        else:
            self._reindex(archive, kill_after)
        self._look()
        self._report.differences += self._archive_differences()

    def _reindex(self, archive: SimulatedArchive, kill_after: int | None) -> None:
        lost = self._chance.random() < 0.7
        before = self._crawler.index()
        if lost:
            self._crawler.lose_index()
        kills = 0
        while not self._done(archive.reindex, kill_after):
            kills += 1
            kill_after = kill_after * 2 if kill_after is not None else None
        self._report.met["index rebuilt from the archive"] += lost
        self._say(f"{'the index is lost and rebuilt' if lost else 'all is sent again'}, killed {kills} times")
        self._report.differences += self._changed_by_it(before, self._crawler.index())
        self._index_before = self._index_before and self._index()

    def _changed_by_it(self, before: dict[str, Indexed], after: dict[str, Indexed]) -> Iterator[str]:
        key = self._configuration.content_key
        for url in sorted(before.keys() | after.keys()):
            was, now = before.get(url), after.get(url)
            if now is None and url in self._known and is_to_be_archived(self._known[url]):
                known = self._known[url]
                if known.held is Held.RULES or is_shown_no_more(known):  # else the next crawl fetches it
                    self._not_rebuilt.add(url)
                continue
            # It is sent with what is known of it now. What was held is in the index as it was sent before; equal pages are apart since then.
            held = url in self._kept or (url in self._known and self._known[url].held is not None)
            seen = [one and (key(one.title, one.text), held or (one.duplicates, one.field)) for one in (was, now)]
            if seen[0] != seen[1]:
                yield f"REINDEX {url}: {was} before, {now} afterwards"

    def _archive_differences(self) -> Iterator[str]:
        archive = self._crawler.archive
        if archive is None:
            return
        index, own = self._crawler.index(), self._crawler.owners()
        mine = {url for url, owner in own.items() if owner == self._crawler.name and not self._counts.outbox}
        with self._crawler.store() as store:
            assert isinstance(store, (SqliteStore, RedisStore))
            yield from archive.differences(store, self._known, index, self._configuration, own=mine)

    def _done(self, work: Work, kill_after: int | None) -> bool:
        """Whether something came to its end that is killed after so many statements and steps."""
        countdown = Countdown(kill_after)
        try:
            with self._crawler.store() as store, closing(self._crawler.open_index()) as index:
                assert isinstance(store, (SqliteStore, RedisStore))
                for opened in (store, index):
                    killed_by(countdown, opened)
                work(store, index, countdown)
        except Killed:
            return False
        return True


# --- searched ------------------------------------------------------------------------------------------------------


class SearchedCollection(ArchivedCollection):
    def _maintain_search(self, search: SimulatedSearch) -> None:
        """Add, fill or empty the search server between two crawls, or drop pushes for it."""
        search.was_filled = True
        what = self._chance.random()
        with self._crawler.store() as store:
            if not search.is_named:
                search.is_named = True
                store.use_sinks(self._crawler.sinks)
                if store.counts().indexed:
                    request_backfill(store, SEARCH)
                self._say("the settings name the search server")
            elif what < 0.3:
                request_backfill(store, SEARCH)
                self._say("the search server is to be filled")
            elif what < 0.6:
                search.lose(store)
                self._say("the search server has lost its index, and is to be filled")
            else:
                waiting = store.backlog(SEARCH)
                request_backfill(store, SEARCH)
                store.withdraw(SEARCH, deletes=False)
                self._say(f"of {waiting} orders for the search server the pushes are dropped")
                self._report.met["pushes for the search server dropped"] += waiting > 0

    def _end_faults_if_lacking(self, search: SimulatedSearch) -> None:
        """End all faults where the server lacks documents: some are fetched for it in the crawls that follow."""
        with self._crawler.store() as store:
            if lacks_documents(store, SEARCH):
                search.end_faults()

    def _search_differences(
        self, oracle: Oracle, index: Mapping[str, Indexed], memory: Mapping[str, Remembered], past: Past
    ) -> Iterator[str]:
        """Yield differences between server and embedded index in a settled state, when all is sent."""
        search = self._crawler.search
        if search is None or not search.is_named:
            return
        with self._crawler.store() as store:
            search.send_rest(store, self._crawler.clock.now())
            if waiting := store.backlog(SEARCH):
                yield f"SEARCH  {waiting} orders wait, though nothing fails"
            for op, url, reason in store.parked(SEARCH):
                yield f"SEARCH  {op.name} {url} refused: {reason}"
            if lacks_documents(store, SEARCH):
                yield "SEARCH  it lacks documents still"
        there = search.index()
        lacking = {url for url in index.keys() - there.keys() if self._cannot_be_sent(url, search)}
        for url in sorted(index.keys() - there.keys() - lacking):
            yield f"SEARCH  MISSING {url}: {index[url].title!r} ({row_of(self._known.get(url))})"
        for url in sorted(there.keys() - index.keys()):
            yield f"SEARCH  EXTRA   {url}: {there[url].title!r}"
        of_embedded = set(oracle.differences(index, memory, past))
        for one in oracle.differences({**there, **{url: index[url] for url in lacking}}, memory, past):
            if one not in of_embedded:
                yield f"SEARCH  {one}"
        self._report.met["documents on the search server"] += len(there)
        self._report.met["documents that it cannot be sent"] += len(lacking)
        search.fail_again()

    def _cannot_be_sent(self, url: str, search: SimulatedSearch) -> bool:
        """Whether the server, since it was filled, lacks a document that could only be fetched: its page fails, or is never requested."""
        state = self._known.get(url)
        if state is None or not search.was_filled:
            return False
        if state.next_fetch is None or state.held is not None:
            return True  # left in the index for another crawler, or its page is no document any more
        # in a continuous crawl, a page may have been in flight whenever its document was to be sent
        # one without a checksum was left in the index when its page came back and failed: nothing is kept of what it was
        # one with a checksum of its own was held for the rules; it is sent after its next fetch, changed or not
        is_to_fetch = state.fields_mark == UNSENT or state.checksum in (None, held_checksum(state.id))
        is_shown = self._is_well(url) and not self._is_forbidden(url)
        return is_to_fetch and (self._configuration.continuous or not is_shown)


# --- crawled -------------------------------------------------------------------------------------------------------


_LOGIN = "the log-in of CRAWLSPACE_SITES"


class CrawledCollection(SearchedCollection):
    _extracting: random.Random | None = None
    """The archive that documents are extracted from again."""
    _is_unapplied = False
    """The settings were not those of a crawl yet."""
    _lacks_pages = False
    """Documents were to be extracted again of pages that are not archived: the next crawl fetches these (spec 14.5)."""

    def _crawl(self, fate: Fate, *, everything_due: bool = False) -> Run:
        self._note_elsewhere()
        self._web.most_redirects = max(self._web.most_redirects, self._configuration.max_redirects)
        before, shared, lost = self._known, self._shared(), set(self._lost)
        down = {site.host: WALLED for site in self._web.sites.values() if is_walled(site, self._configuration)}
        down.update({site.host: site.outage for site in self._web.sites.values() if site.outage not in ("", "flaky")})
        folds = self._configuration.folds
        had = self._crawler.index() if folds else {}
        self._try_logins()
        self._lacks_pages = self._is_unapplied = False
        run = self._crawler.crawl(self._configuration, fate)
        report = self._report
        report.crawls += 1
        report.fetches += run.fetched
        report.kills += run.ended == "killed"
        midway = f", meanwhile {'; '.join(run.changes)}" if run.changes else ""
        report.met.update({f"crawl {run.ended}"})
        report.differences += [
            f"REFUSED the log-in of {host}: {why}"
            for host, why in self._refused_logins().items()
            if not self._web.sites[host].outage
        ]
        if run.held_for_rules:
            report.met.update({"crawl that held a change of the rules"})
        self._say(f"crawl {run.ended}, {run.fetched} fetched{midway}")
        self._look()
        after = self._known
        if self._other is not None:
            self._has_had |= run.pushed  # also what left again before its end, for a page that it names as its canonical one
            self._other._note_lost(shared[0], owned=shared[1] | run.pushed)
        index = self._index()
        report.met.update({"documents that were lost, sent again"} if lost - self._lost.keys() else ())
        errors = [error for error in run.errors if not error.startswith(_LOGIN)]  # see `_refused_logins`
        report.differences += [*(f"ERROR   {error}" for error in errors), *run.differences]
        report.met.update({"orphans deleted"} if run.orphans else ())
        report.met["documents moved from the archive"] += run.moved
        report.met["requests spared for a sitemap"] += run.spared
        report.met["pages due for a sitemap"] += run.called
        if folds and not run.changes:
            gone = _gone(after) if run.moved else set()  # what was moved counts as the page's own, which may fail then
            # Redirects of a small site are believed at once (spec 10).
            gone |= {url for url in after if down.get(host_of(url)) in REDIRECTS and self._is_small(host_of(url), before)}
            # What is not known has been forgotten by a command, and its deletion is sent by this crawl.
            had = {url: one for url, one in had.items() if url in before and self._configuration.folded(url) not in gone}
            report.differences += lost_by_folding(had, self._crawler.index(), self._oracle(), self._configuration)
            kept_on = {
                url: was for url, was in before.items() if url not in run.orphans and self._configuration.folded(url) not in gone
            }
            report.differences += forgotten(kept_on, after, self._oracle(), self._configuration)
            report.met.update({"documents that waited for a folded URL"} if _waits(after) else ())
        if not run.changes:
            report.differences += self._always(before, after, run, down)
        if run.ended not in ("killed", "broken") and not self._counts.outbox:
            report.differences += self._at_rest(after, index)
            if run.ended == "finished" and not run.changes:
                report.differences += needlessly_held(after, self._configuration)
            if run.ended == "finished" and not run.changes:
                report.differences += self._not_sent_again(lost, after)
            if self._drawn.copies and self._index_before is not None and not run.changes and not self._regrouping:
                oracle = self._oracle()
                # what the rules excluded, or what is gone and held, was in no group (spec 4, 10), and comes after those that were
                in_group = {
                    url: has
                    for url, has in self._index_before.items()
                    if url in before and before[url].indexed and not _is_in_no_group(before[url])
                }
                urls = {state.key: url for url, state in after.items()}
                named = {url: urls.get(before[url].canonical or 0, "") for url in in_group}
                report.differences += oracle.displaced(in_group, index, remembered(after), self._past(after), named=named)
            if self._index_before is not None and not run.changes:
                report.differences += self._unplanned(self._index_before, index, run)
                report.differences += self._touched(self._index_before, index, before, after)
                report.differences += self._oracle().moved(self._index_before, index, remembered(after))
            self._index_before = index
        else:
            self._index_before = None
        if everything_due and not report.differences:
            memory = remembered(after)
            compared = {url: has for url, has in index.items() if url not in self._not_compared}  # the next start deletes those
            report.differences += self._oracle().prompt_differences(compared, memory, self._past(after))
        return run

    def _refused_logins(self) -> dict[str, str]:
        """Return the hosts whose log-ins are refused, and why: that is so only where a whole site fails."""
        if not self._configuration.logins:
            return {}
        with self._crawler.store() as store:
            return {host: one.why for host, one in refused_logins(store).items()}

    def _try_logins(self) -> None:
        """Try again the log-ins that were refused while the whole site failed, as `scrapy login` does."""
        for host in self._refused_logins():
            if not self._web.sites[host].outage:
                with self._crawler.store() as store:
                    forget_refused(store, host)

    def _fate(self) -> Fate:
        chance = self._chance
        fate = Fate(index_fails=chance.choice((0.0, 0.0, 0.0, 0.5)), stalls=chance.random() < 0.1)
        what = chance.random()
        if what < 0.6:
            fate.kill_after = round(2 ** chance.uniform(1, 10.5))
        elif what < 0.7:
            fate.stop_after = chance.randint(0, 60)
        midway = chance.random()
        if midway < 0.15:
            fate.midway = self._changes.change
        elif midway < 0.25 and not self._crawler.in_memory:
            fate.midway = lambda: self._command(crawled=True)
        return fate

    def _compare(self) -> None:
        """Compare with the oracle in a settled state."""
        self._regrouping = False
        self._report.checks += 1
        with self._crawler.store() as store:
            store.check()
        states = self._known
        memory = remembered(states)
        oracle, past = self._oracle(), self._past(states)
        index = {**self._not_brought_back(past), **self._index()}
        self._report.differences += oracle.differences(index, memory, past)
        self._report.differences += self._lost_for_ever()
        self._report.differences += self._archive_differences()
        self._report.differences += self._search_differences(oracle, index, memory, past)
        self._report.differences += self._part_differences()
        self._returned = set()
        met = {f"status {status}" for _, status in memory.values() if status is not None}
        met |= {f"held {kept.reason}" for kept in past.kept}
        met |= {"files without text" for _, status in memory.values() if status == UNREADABLE}
        met |= {"duplicates" for has in index.values() if has.duplicates}
        met |= {"elsewhere, indexed" for url in index if oracle.verdicts(url) == {ELSEWHERE}}
        for site in self._web.sites.values():
            if site.wall is not None:
                met.add(
                    "sites that want a cookie they don't get"
                    if is_walled(site, self._configuration)
                    else "sites that want a cookie"
                )
        met |= {
            "pages that have moved"
            for state in states.values()
            if host_of(state.url) in self._web.sites and self._has_moved(state)
        }
        met |= {"pages that lead who is logged in to the log-in" for _, status in memory.values() if status == Status.LOGGED_OUT}
        self._report.met.update(met)

    def _restore(self, backup: SimulatedBackup, chance: random.Random) -> None:
        """Take a backup, in the middle of a crawl or after one, lose all, restore the backup, and perhaps send what the archive has."""
        crawler, archive = self._crawler, self._crawler.archive
        with_archive = archive is not None
        if not self._known:
            return
        ended = ""
        if chance.random() < 0.6:
            ended = self._crawl_backed_up(backup, chance, with_archive=with_archive)
            if not ended or self._report.differences:
                return
        else:
            backup.write(with_archive=with_archive)
        loses_index = chance.random() < 0.6 and not self._counts.left_to_others
        if loses_index:
            self._lost_with_index.update(crawler.index())
            crawler.lose_index()
        kills = backup.restore(crawler.sinks)
        crawler.was_restored = True
        if with_archive and archive is not None and chance.random() < 0.7:
            while not self._done(archive.reindex, round(2 ** chance.uniform(1, 8)) if chance.random() < 0.3 else None):
                kills += 1
            with crawler.store() as store:
                note_restored_documents_sent(store, to_new_index=loses_index)
        self._say(
            f"a backup {ended or 'of before'} is restored, {'with' if with_archive else 'without'} the archive, killed {kills} times;"
            f" the index {'is lost' if loses_index else 'is as it was'}"
        )
        self._report.met["backups restored"] += 1
        self._look()
        rows, index = {url for url, state in self._known.items() if state.indexed}, self._crawler.index()
        self._not_compared = rows ^ index.keys()
        self._index_before = None

    def _crawl_backed_up(self, backup: SimulatedBackup, chance: random.Random, *, with_archive: bool) -> str:
        """Take a backup in the middle of a crawl, which is killed then or goes on; return when. Empty: the crawl was too short."""
        is_killed = chance.random() < 0.5
        done: list[str] = []

        def take() -> str:
            backup.write(with_archive=with_archive)
            done.append("in the middle of a crawl")
            if is_killed:
                raise Killed
            return "a backup is made"

        self._crawler.clock.advance(self._configuration.refresh_max + 1)
        self._crawl(Fate(midway=take))
        return "".join(done)

    def _not_brought_back(self, past: Past) -> dict[str, Indexed]:
        """Return the documents that were lost with the index, and that no fetch can bring back, because their deletion is held."""
        lost = {one.url for one in past.kept if one.url in self._not_compared}
        return {url: has for url, has in self._lost_with_index.items() if url in lost}

    def _part_differences(self) -> Iterator[str]:
        """Yield documents whose parts are not those that the spider's code makes of their text by now.

        A page that fails, or whose deletion is held, is as it was; so is one that is not archived, until it has been fetched.
        """
        crawler = self._crawler
        if self._extracting is None or self._other is not None or self._lacks_pages:
            return
        with closing(crawler.open_index()) as index:
            for document in index.documents(crawler.name):
                state = self._known.get(document.url)
                if state is None or state.state is not State.DONE or state.held is not None or not state.indexed:
                    continue
                self._report.met["documents with parts"] += bool(document.parts)
                if document.parts != parts_of(document.text, crawler.edition):
                    yield f"PARTS   {document.url}: {[part.text for part in document.parts]}, of {document.text!r} in edition {crawler.edition}"

    def _has_moved(self, state: UrlState) -> bool:
        to = self._known.get(target_of(state.url, self._web))
        return state.state is State.REDIRECTED and to is not None and to.indexed

    def _begin_extracting(self, seed: int, *, is_possible: bool) -> None:
        """Change headers of pages in some histories, and extract documents again. It draws from a generator of its own."""
        chance = random.Random(seed)
        if is_possible and chance.random() < 0.15:
            self._extracting, self._crawler.by_spider, self._changes.by_spider = chance, True, True
            for site in self._web.sites.values():
                site.bare_304 = chance.random() < 0.3
            self._crawler.keep_archive()

    def _change_headers(self) -> bool:
        """Change headers now and then, and crawl; return whether that was done."""
        chance = self._extracting
        if chance is None or chance.random() >= 0.4:
            return False
        self._say("; ".join(self._changes.headers() for _ in range(chance.randint(1, 3))))
        self._crawler.clock.advance(self._configuration.refresh_max + 1)
        self._crawl(Fate())
        return True

    def _extract(self) -> None:
        """Extract all documents again in a settled state: nothing changes but what other settings for directives change.

        The web is as it was fetched last, so the oracle holds afterwards too. It is not compared where pages are not archived.
        """
        chance, archive, crawler = self._extracting, self._crawler.archive, self._crawler
        if chance is None or archive is None or self._report.differences:
            return
        if self._other is not None or self._counts.outbox or self._counts.left_to_others:
            return
        changes = chance.random() < 0.5
        if changes:
            self._configure(replace(self._configuration, meta_robots=not self._configuration.meta_robots))
            self._is_unapplied = True
        with crawler.store() as store:
            assert isinstance(store, (SqliteStore, RedisStore))
            read = [one for one in self._known.values() if one.checksum is not None or one.status == Status.NOINDEX]
            is_known = not archive.lacks_a_page(store, read)
            self._lacks_pages = not is_known
            is_known = is_known and not (changes and archive.shows_old_directives(store, read, self._web))
        edition = chance.choice((*range(EDITIONS), crawler.edition))
        if is_known and all(
            one.state is State.DONE and one.held is None for one in self._known.values() if one.checksum is not None
        ):
            crawler.edition = edition  # else some documents would be of another one, and equal to no others
        collection, kills = crawler.configured(self._configuration), 0
        extract = partial(archive.extract, collection=collection, noted=crawler.note_document, edition=crawler.edition)
        kill_after = round(2 ** chance.uniform(1, 8)) if chance.random() < 0.5 else None
        while not self._done(extract, kill_after):
            kills, kill_after = kills + 1, (kill_after or 1) * 2
        self._report.met["documents extracted again"] += is_known
        self._report.met["directives that apply by then, or don't"] += changes and is_known
        self._say(f"all documents are extracted again, {'with other settings, ' if changes else ''}killed {kills} times")
        self._look()
        if kills:  # that two equal pages change together is not known after a kill, so the second may be held as it was
            crawler.held_midway |= {one.checksum for one in self._known.values() if one.held is Held.MANY and one.checksum}
        awaits_fetch = changes and any(one.held is Held.MANY for one in self._known.values())  # its next fetch ends that
        self._index_before = self._index_before and self._index()
        if (is_known or not changes) and not awaits_fetch:
            self._compare()
        else:  # the next fetches show what the archive did not
            self._settle()

    def _settle(self) -> None:
        raise NotImplementedError


class OtherCollection(CrawledCollection):
    """The second collection of a history, for which no steps are drawn."""

    def __init__(self, first: CrawledCollection, folder: Path) -> None:
        self._drawn, self._focus, self._chance = first._drawn, first._focus, first._chance
        self._web, self._changes, self._report = first._web, first._changes, first._report
        self._web.lasting = neighbour.own_host(self._web)
        rules = neighbour.first_rules(self._web, self._chance)
        self._configuration = neighbour.configured_beside(first._configuration, rules)
        crawler = first._crawler
        self._crawler = crawler.beside(neighbour.NAME)
        self._other = first
        self._begin()

    def _say(self, step: str) -> None:
        super()._say(f"[{self._crawler.name}] {step}")


def _gone(states: Mapping[str, UrlState]) -> set[str]:
    return {url for url, state in states.items() if state.state is State.GONE}


def _waits(states: Mapping[str, UrlState]) -> bool:
    return any(state.held is Held.FOLDED for state in states.values())


def _is_in_no_group(state: UrlState) -> bool:
    """Whether a document is in no group of equal pages: it is held for the rules, or was until its next fetch."""
    return state.checksum is not None and state.checksum.startswith(b"held")


def remembered(states: Mapping[str, UrlState]) -> dict[str, Remembered]:
    return {url: (state.state.label, state.status) for url, state in states.items()}
