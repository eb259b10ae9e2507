"""A collection of a random history that keeps an archive: it is compacted, and an index that was lost is made anew of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from tests.histories.archive import SimulatedArchive
from tests.histories.checks import CheckedCollection
from tests.histories.documents import Indexed
from tests.histories.kills import Countdown, Killed, killed_by

Work = Callable[[SqliteStore | RedisStore, EmbeddedIndex, Countdown], None]


class ArchivedCollection(CheckedCollection):
    def _tend_archive(self, archive: SimulatedArchive) -> None:
        """What a person does with an archive between two crawls."""
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
        self._report.met["index made anew of the archive"] += lost
        self._say(f"{'the index is lost and made anew' if lost else 'all is sent again'}, killed {kills} times")
        self._report.differences += self._changed_by_it(before, self._crawler.index())
        self._index_before = self._index_before and self._index()

    def _changed_by_it(self, before: dict[str, Indexed], after: dict[str, Indexed]) -> Iterator[str]:
        key = self._configuration.content_key
        for url in sorted(before.keys() | after.keys()):
            was, now = before.get(url), after.get(url)
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
