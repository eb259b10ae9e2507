"""A random walk: the same steps on a store and on the model in memory, and nothing that can be seen may differ."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import structs

from crawlspace.document import Document, IndexOrder
from crawlspace.model import NewUrl, Queue, State, UrlState
from crawlspace.simhash import in_epoch, is_near
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.depths import DepthMark, NewDepth
from crawlspace.state.near_duplicates import NEAR_EPOCH_META, use_distance
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.site_health import Health
from crawlspace.state.site_pauses import SitePause
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, SINKS, key, new
from tests.contract.drawn import (
    PLACES,
    SIGNATURES,
    SITES,
    Lying,
    archived,
    canonicals,
    depth_marks,
    depths,
    documents,
    edits,
    fields,
    given_documents,
    healths,
    inherited_all,
    links,
    new_ones,
    new_urls,
    places,
    queues,
    refused_links,
    seldom,
    times,
)
from tests.contract.memory.store import MemoryStore
from tests.memory import folder_in_memory
from tests.quick import examples
from tests.servers import another_client, emptied

T = TypeVar("T")


class ArchiveSteps(RuleBasedStateMachine):
    def both(self, step: Callable[[Store], object]) -> None:
        raise NotImplementedError

    def known_ids(self, by_place: dict[int, T]) -> dict[int, T]:
        raise NotImplementedError

    @rule(moves=st.dictionaries(st.integers(0, 15), st.tuples(archived, archived), max_size=5))
    def move_archived(self, moves: dict[int, tuple[int | None, int | None]]) -> None:
        self.both(lambda store: store.move_archived([(id, was or 1, now) for id, (was, now) in self.known_ids(moves).items()]))

    @rule(given=st.dictionaries(st.integers(0, 15), given_documents, max_size=5))
    def push_again(self, given: dict[int, Document]) -> None:
        by_id = self.known_ids(given)
        documents: dict[int, Document | None] = {4711: None, **by_id}
        self.both(lambda store: store.push_again(documents))

    @rule(name=st.sampled_from("fgh"))
    def add_archive_file(self, name: str) -> None:
        self.both(lambda store: (store.add_archive_file(name), store.archive_files()))


class SinkSteps(RuleBasedStateMachine):
    model: MemoryStore

    def both(self, step: Callable[[Store], object]) -> None:
        raise NotImplementedError

    @rule()
    def acknowledge_all(self) -> None:
        for sink in SINKS:
            self.acknowledge(sink, 100)

    @rule(sink=st.sampled_from(SINKS), limit=st.integers(1, 5))
    def acknowledge(self, sink: str, limit: int) -> None:
        orders = self.model.orders(sink, limit, now=NOW)
        self.both(lambda store: store.acknowledge(sink, orders))

    @rule(sink=st.sampled_from(SINKS), limit=st.integers(1, 3))
    def park(self, sink: str, limit: int) -> None:
        for order in self.model.orders(sink, limit, now=NOW):
            self.both(partial(_park, sink=sink, order=order))

    @rule(sink=st.sampled_from(SINKS))
    def unpark(self, sink: str) -> None:
        self.both(lambda store: store.unpark(sink))


def _park(store: Store, *, sink: str, order: IndexOrder) -> None:
    store.park(sink, order, "too large")


WALK = settings(
    stateful_step_count=30,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a failing walk shorter takes longer than a test may
    suppress_health_check=list(HealthCheck),
)


class StoreWalk(ArchiveSteps, SinkSteps):
    """A store and the model of it. `reopened` opens the store, `lies` says what lies in it of documents and of what is handed."""

    def __init__(self) -> None:
        super().__init__()
        self.model = MemoryStore(sinks=SINKS)
        self.began: int | None = None
        """When the run began; None for one that does not end."""
        self.store = self.reopened()
        self.widest = 3
        """The widest distance of near duplicates that there was."""
        self.both(lambda store: use_distance(store, self.widest))
        self.both(lambda store: store.discover([new(place) for place in PLACES[:8]], now=NOW))

    def teardown(self) -> None:
        self.store.close()

    def reopened(self) -> Store:
        raise NotImplementedError

    def lies(self) -> Lying:
        raise NotImplementedError

    def known_ids(self, by_place: dict[int, T]) -> dict[int, T]:
        """The same by ids of URLs that are known, instead of by numbers."""
        known = list(self.model.urls())
        return {known[place % len(known)].id: value for place, value in by_place.items()} if known else {}

    @rule(within=st.sampled_from((3, 6)))
    def use_distance(self, within: int) -> None:
        self.widest = max(within, self.widest)
        self.both(lambda store: use_distance(store, within))

    def signed(self, state: UrlState) -> UrlState:
        """Return the state with the signature of its text, as a crawl records it."""
        signature, epoch = SIGNATURES.get(state.checksum or b""), int(self.model.get_meta(NEAR_EPOCH_META) or 0)
        return structs.replace(state, simhash=None if signature is None else in_epoch(signature, epoch))

    def both(self, step: Callable[[Store], object]) -> None:
        assert step(self.store) == step(self.model)

    @rule(urls=st.lists(new_urls, max_size=6), now=times)
    def discover(self, urls: list[NewUrl], now: int) -> None:
        self.both(lambda store: store.discover(urls, now=now))

    @rule(site=st.sampled_from(SITES), limit=st.integers(1, 4), now=times, queue=st.none() | queues)
    def lease(self, site: str, limit: int, now: int, queue: Queue | None) -> None:
        self.both(lambda store: store.lease(site, limit, now=now, until=now + 10, queue=queue))

    @rule(ids=st.lists(st.integers(1, 15), max_size=4))
    def release(self, ids: list[int]) -> None:
        self.both(lambda store: store.release(ids))

    @rule(now=times)
    def reclaim(self, now: int) -> None:
        self.both(lambda store: store.reclaim(now=now))

    @rule(
        outcomes=st.lists(
            st.tuples(st.integers(0, 15), edits(), documents, links, new_ones, seldom, st.booleans(), refused_links), max_size=5
        ),
        now=times,
        stale=st.booleans(),
        health=healths,
    )
    def record(
        self,
        outcomes: list[
            tuple[int, dict[str, object], Document | None, list[int] | None, list[NewUrl], bool, bool, list[RefusedLink]]
        ],
        now: int,
        stale: bool,
        health: dict[str, Health],
    ) -> None:
        known = list(self.model.urls())
        changes = []
        for place, edit, document, keys, discovered, forget, keep, refused in outcomes:
            if not known:
                continue
            state = known[place % len(known)]
            edited = self.signed(structs.replace(state, **(edit if stale else {**edit, "depth": state.depth})))
            sampled = [link._replace(page=state.id) for link in refused if keys is not None and edited.refused and not forget]
            changes.append(Change(edited, document, keys, discovered, forget, keep, sampled, edited.archived))
        self.both(lambda store: store.record(changes, now=now, health=health))

    @rule(revised=st.dictionaries(st.integers(0, 15), st.tuples(edits(), documents, seldom) | st.none(), max_size=4), now=times)
    def revise(self, revised: dict[int, tuple[dict[str, object], Document | None, bool] | None], now: int) -> None:
        made = self.known_ids(revised)

        def change(state: UrlState) -> Change | None:
            found = made[state.id]
            if found is None:
                return None
            edit, document, forget = found
            return Change(self.signed(structs.replace(state, **edit)), document, forget=forget)

        self.both(lambda store: store.revise([4711, *made], change, now=now))

    @rule(kinds=st.dictionaries(st.integers(0, 15), st.integers(0, 8), max_size=8), queue=queues, now=times)
    def reclassify(self, kinds: dict[int, int], queue: Queue, now: int) -> None:
        ids: list[list[int]] = [[], [], [], [4711], [], [], [4712], [], []]
        for id, kind in self.known_ids(kinds).items():
            ids[kind].append(id)
        excluded, given_up, held, returned, unindexed, held_unindexed, forgotten, held_folded, moved = ids
        found = Reclassified(excluded, given_up, held, returned, unindexed, held_unindexed, forgotten, held_folded)
        found.moved = [(id, queue) for id in (*moved, *returned)]
        self.both(lambda store: store.reclassify(found, now=now))
        if len(forgotten) > 1:  # as a change of the rules does then: what they have passed on is left to it
            self.both(lambda store: store.drop_inherited())

    @rule(
        pages=st.lists(
            st.tuples(places, st.sampled_from([None, b"three", b"four", *SIGNATURES]), canonicals), min_size=2, max_size=6
        )
    )
    def pages_with_canonicals(self, pages: list[tuple[str, bytes | None, int | None]]) -> None:
        """Pages that name each other, which single outcomes seldom make."""
        changes = [
            Change(
                self.signed(structs.replace(state, checksum=checksum, canonical=canonical, state=State.DONE)),
                Document("", text=url),
            )
            for url, checksum, canonical in pages
            if (state := self.model.get(new(url).url)) is not None
        ]
        self.both(lambda store: store.record(changes, now=NOW))

    @rule(
        pages=st.lists(
            st.tuples(places, inherited_all, st.lists(places, max_size=5) | st.none(), fields, st.integers(0, 2)),
            min_size=1,
            max_size=4,
        ),
        days=st.integers(0, 2),
        fetched=st.booleans(),
    )
    def pages_that_hand(
        self, pages: list[tuple[str, str | None, list[str] | None, dict[str, str], int]], days: int, fetched: bool
    ) -> None:
        """Pages that lead to each other, which single outcomes seldom make; with metadata as it was inherited when they were leased, or not."""
        now = NOW + days * 86_400
        changes = []
        for url, link_metadata, reached, own, generation in pages:
            state = self.model.get(new(url).url)
            if state is not None:
                inherited = state.inherited if fetched else link_metadata
                later = structs.replace(
                    state, state=State.DONE, checksum=url.encode(), next_fetch=now + 99_999, rules=generation, inherited=inherited
                )
                below = [new(other, depth=state.depth + 1) for other in reached or ()]
                leads = [structs.replace(one, inherited=link_metadata, depth_from=state.id) for one in below]
                keys = None if reached is None else [one.key for one in leads]
                changes.append(Change(later, Document("", text=url, fields=dict(own)), keys, leads))
        self.both(lambda store: store.record(changes, now=now))

    @rule(depths=depths, marks=depth_marks)
    def set_depths(self, depths: dict[int, tuple[int, int, int | None, bool]], marks: dict[int, DepthMark | None]) -> None:
        depth_now = {state.id: state.depth for state in self.model.urls()}
        new_depths = [
            NewDepth(id, depth_now[id] + outdated, depth, page, orphaned)
            for id, (depth, page, orphaned, outdated) in self.known_ids(depths).items()
        ]
        self.both(lambda store: store.set_depths([NewDepth(4711, 0, 1, 1, None), *new_depths]))
        self.both(lambda store: store.set_depth_marks(marks))

    @rule()
    def drop_inherited(self) -> None:
        self.both(lambda store: store.drop_inherited())

    @rule(latest=times, after=st.integers(0, 8), limit=st.integers(1, 9), fetched_by=st.none() | times)
    def make_due_by(self, latest: int, after: int, limit: int, fetched_by: int | None) -> None:
        self.both(lambda store: store.make_retries_due_by(latest))
        self.both(lambda store: store.make_due_by(latest, after=after, limit=limit, fetched_by=fetched_by).due)

    @rule(at=times, after=st.integers(0, 8), limit=st.integers(1, 9), fetched_by=times)
    def schedule(self, at: int, after: int, limit: int, fetched_by: int) -> None:
        self.both(lambda store: store.schedule(at, after=after, limit=limit, fetched_by=fetched_by))

    @rule(counts=st.booleans(), latest=times, after=st.integers(0, 8), limit=st.integers(1, 9))
    def set_due_by_age(self, counts: bool, latest: int, after: int, limit: int) -> None:
        self.both(lambda store: store.set_due_by_age(counts=counts, latest=latest, after=after, limit=limit))

    @rule(
        urls=st.lists(places, min_size=2, max_size=6, unique=True),
        checksum=st.sampled_from([b"one", b"two", b"near both"]),
        text=st.sampled_from("stu"),
    )
    def equal_pages(self, urls: list[str], checksum: bytes, text: str) -> None:
        """Groups with many members, which single outcomes seldom make."""
        wanted = {new(url).url for url in urls}
        changes = [
            Change(self.signed(structs.replace(state, checksum=checksum, state=State.DONE)), Document("", text=text))
            for state in self.model.urls()
            if state.url in wanted
        ]
        self.both(lambda store: store.record(changes, now=NOW))

    @rule(url=places, canonical=canonicals, text=st.sampled_from("stu"))
    def fetched_again(self, url: str, canonical: int | None, text: str) -> None:
        """A page that stays in its group, on another footing."""
        state = self.model.get(new(url).url)
        if state is not None:
            change = Change(structs.replace(state, canonical=canonical), Document("", text=text))
            self.both(lambda store: store.record([change], now=NOW))

    @rule(site=st.sampled_from(SITES), until=st.none() | times)
    def wait_site(self, site: str, until: int | None) -> None:
        self.both(lambda store: store.wait_site(site, until))

    @rule(
        pattern=st.sampled_from(["a.example", "a.example:80", "*.example", "b.example:443", "c.example"]),
        pause=st.sampled_from([None, None, SitePause("ada", NOW), SitePause("é", NOW - 1, 'for "maintenance"')]),
    )
    def set_site_pause(self, pattern: str, pause: SitePause | None) -> None:
        self.both(lambda store: store.set_site_pause(pattern, pause))

    @rule(at=st.none() | times)
    def begin_run(self, at: int | None) -> None:
        self.began = at
        self.both(lambda store: store.begin_run(at))

    @rule(by=st.integers(0, 20))
    def set_back_beginning(self, by: int) -> None:
        if self.began is not None:
            self.began -= by
            self.both(lambda store: store.begin_run(self.began, resumes=True))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.reopened()
        self.both(lambda store: store.begin_run(self.began))

    @invariant()
    def same_to_look_at(self) -> None:
        self.both(lambda store: list(store.urls()))
        self.both(lambda store: list(store.urls(leased=True)))
        self.both(lambda store: (list(store.urls(held=True)), list(store.folded_urls()), store.held_numbers()))
        self.both(lambda store: (list(store.sites()), store.site_pauses()))
        self.both(lambda store: (store.counts(), store.refused_links(), store.refused_links(page=3)))
        self.both(lambda store: [store.is_duplicate(n, checksum=b"one", canonical=key(PLACES[n])) for n in range(5)])
        self.both(lambda store: [store.is_duplicate(n, checksum=b"two", canonical=None) for n in range(5)])
        self.both(lambda store: [store.leading_text(simhash) for simhash in SIGNATURES.values()])
        self.both(
            lambda store: [
                store.is_duplicate(n, checksum=b"", canonical=None, simhash=simhash)
                for n in range(5)
                for simhash in SIGNATURES.values()
            ]
        )
        self.both(lambda store: [(store.due(site), store.health(site)) for site in (*SITES, "new.example:80")])
        self.both(lambda store: store.documents([*SITES, "new.example:80"]))
        self.both(lambda store: store.waiting_urls([*SITES, "new.example:80"], now=NOW + 20))
        with_urls = {state.site for state in self.model.urls()}
        self.both(lambda store: [one for one in store.known_sites() if one.site in with_urls])
        self.both(lambda store: [(store.host_count(host), store.known_of_host(host)) for host in ("a.example", "b.example")])
        self.both(lambda store: [store.scan(0, 3), store.scan(3, 100)])
        self.both(lambda store: [read([3, 1, 4711, 2]) for read in (store.get_by_ids, store.urls_to_fold)])
        self.both(lambda store: store.lost_links([state.id for state in store.urls()]))
        self.both(lambda store: (store.depth_marks(), store.orphans(), sorted(store.depths_of(map(key, PLACES)))))
        self.both(lambda store: [store.scan_depths(0, 3), store.scan_depths(3, 100)])
        self.both(lambda store: [store.scan_links(0, 100), store.scan_links(4, 3), store.links_of(range(20))])
        self.both(lambda store: [list(store.links_to([key(place) for place in some])) for some in (PLACES[:1], PLACES[3:6], ())])
        for sink in SINKS:
            self.both(partial(_outbox, sink=sink))

    @invariant()
    def each_document_is_indexed_or_stood_for_by_one_that_is(self) -> None:
        states = {state.id: state for state in self.store.urls()}
        for state in states.values():
            assert (state.checksum is not None) == (state.indexed or state.duplicate_of is not None)
            if state.duplicate_of is not None:
                representative = states[state.duplicate_of]
                assert representative.indexed
                named = [page for page in states.values() if page.key == state.canonical and page.canonical is None]
                assert any(_is_same(representative, page, self.widest) for page in (state, *named))

    @invariant()
    def nothing_is_left_lying(self) -> None:
        lies = self.lies()
        states = [state for state in self.store.urls() if state.checksum is not None]
        assert lies.documents == {state.id for state in states}
        assert lies.checksums <= {state.checksum for state in states}
        assert lies.inheritance <= {state.id for state in self.store.urls()}


class SqliteWalk(StoreWalk):
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="walk", dir=folder_in_memory()))
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)

    def reopened(self) -> Store:
        return SqliteStore(self.folder / "state.db", sinks=SINKS)

    def lies(self) -> Lying:
        assert isinstance(self.store, SqliteStore)
        db = self.store._file.db
        words = db.execute(
            "SELECT id FROM link_metadata UNION SELECT id FROM inheritance UNION SELECT page FROM inheritance WHERE page IS NOT NULL"
        )
        return Lying(
            {id for (id,) in db.execute("SELECT id FROM document")},
            {checksum for (checksum,) in db.execute("SELECT checksum FROM content")},
            {id for (id,) in words},
        )


class RedisWalk(StoreWalk):
    def __init__(self) -> None:
        self.client = emptied()
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.client.close()

    def reopened(self) -> Store:
        return RedisStore(another_client(), "walk", sinks=SINKS)

    def lies(self) -> Lying:
        names = {key.decode() for key in self.client.scan_iter("{walk}:to:*")}
        return Lying(
            set(map(int, self.client.hkeys("{walk}:document"))),
            {bytes(checksum) for checksum in self.client.hkeys("{walk}:text") if isinstance(checksum, bytes)},
            {int(id) for kind in ("link_metadata", "inherited", "by", "mark") for id in self.client.hkeys(f"{{walk}}:{kind}")}
            | {int(name.rpartition(":")[2]) for name in names},
        )

    @invariant()
    def nobody_is_in_a_group_that_is_gone(self) -> None:
        """What the indexes of the groups hold is what the URLs are."""
        rows = {state.id: state for state in self.store.urls()}
        names = {
            (state.canonical, state.id) for state in rows.values() if state.checksum is not None and state.canonical is not None
        }
        prefix = b"{walk}:names:"
        listed = {
            (int.from_bytes(named[len(prefix) :], "little", signed=True), int(id))
            for named in self.client.scan_iter(prefix + b"*")
            for id in self.client.smembers(named)
        }
        assert listed == names
        counted: Counter[bytes] = Counter()
        for bucket in self.client.scan_iter("{walk}:checksum:*"):
            for checksum, entry in self.client.hgetall(bucket).items():
                assert isinstance(checksum, bytes)
                assert isinstance(entry, bytes)
                counted[checksum] += int(entry.partition(b":")[0])
        assert +counted == Counter(state.checksum for state in rows.values() if state.checksum is not None)


def _is_same(representative: UrlState, page: UrlState, within: int) -> bool:
    if representative.checksum == page.checksum:
        return True
    signatures = representative.simhash, page.simhash
    return None not in signatures and is_near(signatures[0] or b"", signatures[1] or b"", within)


def _outbox(store: Store, *, sink: str) -> object:
    return store.orders(sink, 100, now=NOW), store.parked(sink), store.backlog(sink), store.backlog(sink, parked=True)


TestSqliteWalk = SqliteWalk.TestCase
TestRedisWalk = RedisWalk.TestCase
TestSqliteWalk.settings = settings(WALK, max_examples=examples(60))
TestRedisWalk.settings = settings(WALK, max_examples=examples(30))
