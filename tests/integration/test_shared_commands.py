"""The commands beside a crawl that several workers share over Redis: who they say crawls, what they leave alone, who tells the index."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec
import pytest
import redis

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.document import Document, IndexOrder
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import BatchMark
from crawlspace.index.outbox import Drain
from crawlspace.model import NewUrl, Source, State
from crawlspace.runtime.components.command import WIDTH
from crawlspace.runtime.session.paths import collection_paths
from crawlspace.state.changes import Change
from crawlspace.state.redis.server import RedisServer
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from crawlspace.state.store import Store
from crawlspace.urls import parse
from tests.command_line import CompletedRun
from tests.conftest import MakeProject, Project
from tests.draining import drain_all
from tests.integration.conftest import Run, settings_of
from tests.integration.stored import indexed, opened, shared, states, worker_of
from tests.servers import another_client, redis_server

NOW = 1_750_000_000
HOME, SHOP = "http://www.example.com", "http://shop.example.com"
FILES = {"demo/start_urls.txt": f"{HOME}/\n", "demo/crawl.rules": "allow  domain *.example.com\nforbid domain *\n"}
LEFT_ALONE = "1 URL is being fetched at this moment, and its outcome decides; run it again afterwards\n"
CRAWL_UPDATES_INDEX = "the running crawl updates the index\n"
FOLLOWED = "the index is up to date\n"
HOST, PROCESS = socket.gethostname(), os.getpid()


@pytest.fixture
def demo(project: MakeProject) -> Project:
    """A collection of four URLs that has been crawled, the index has followed; and one, `new`, that the server does not know."""
    demo = shared(project({**FILES, **{name.replace("demo", "new"): content for name, content in FILES.items()}}))
    (demo.data / "demo").mkdir()
    worker_of(demo).leave()
    with opened(demo) as store, closing(EmbeddedIndex(demo.data / "demo" / "index.db", owner="demo")) as index:
        for url, status in ((f"{HOME}/", 200), (f"{HOME}/b", 200), (f"{HOME}/gone", 404), (f"{SHOP}/", 200)):
            crawled(store, url, status)
        drain_all(Drain(store, index, FakeClock(NOW)))
    return demo


def crawled(store: Store, url: str, status: int) -> None:
    store.discover([new(url)], now=NOW)
    state = store.get(url)
    assert state is not None
    is_page = status == 200
    state.state, state.status = State.DONE if is_page else State.GONE, status
    state.fetched_at, state.next_fetch, state.interval_s = NOW, NOW, 86_400
    state.checksum = url.encode()[-16:] if is_page else None
    state.refused = "p2" if url.endswith("/b") else None
    store.record([Change(state, document=Document(url, title="A") if is_page else None)], now=NOW)


def new(url: str) -> NewUrl:
    parsed = parse(url)
    return NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)


@pytest.fixture
def key(demo: Project) -> Iterator[RedisStore]:
    """For plain commands about the collection's keys."""
    store = RedisStore(another_client(), "demo")
    yield store
    store.close()


def json_of(run: CompletedRun, *, status: int = 0) -> Any:
    assert run.returncode == status, run.stderr
    return json.loads(run.stdout)


# --- who crawls -----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def now_ms(monkeypatch: pytest.MonkeyPatch) -> int:
    """Stop the clock of the server, so that no worker expires meanwhile, and return its time."""
    now_s = int(time.time())
    clock = property(lambda _: lambda: now_s * 1000, lambda _, __: None)  # each object has one of its own, which does not count
    monkeypatch.setattr(RedisServer, "now_ms", clock, raising=False)
    monkeypatch.setattr(redis.Redis, "time", lambda _: (now_s, 0))
    return now_s * 1000


def aged(key: RedisStore, worker: Worker, now_ms: int, *, since_s: int, unseen_s: int, received: str) -> None:
    """Have a worker have begun so long ago, and have said something last so long ago."""
    key.server.command("HSET", f"worker:{worker.name}", "since", now_ms - since_s * 1000, "report", received)
    key.server.command("ZADD", "workers", now_ms - unseen_s * 1000, worker.name)


@pytest.fixture
def team(now_ms: int, demo: Project, key: RedisStore) -> tuple[Worker, Worker, Worker]:
    """One at work, one that has not said anything for a while, and one that is dead and not yet found so."""
    with opened(demo) as store:
        store.discover([new(f"{HOME}/{number}") for number in range(3)], now=NOW)
    at_work, given_up_sites, dead = (worker_of(demo, timeout_s=1000) for _ in range(3))
    at_work.take(refill={}, new=5, limit=2, now=NOW, until=NOW + 300)
    aged(key, at_work, now_ms, since_s=200, unseen_s=0, received='{"fetched": 1000, "errors": 3, "documents": 990}')
    aged(key, given_up_sites, now_ms, since_s=110, unseen_s=10, received='{"fetched": 20, "later": "more"}')
    aged(key, dead, now_ms, since_s=300, unseen_s=31, received="")
    return at_work, given_up_sites, dead


def test_status_shows_all_workers(team: tuple[Worker, Worker, Worker], run: Run) -> None:
    shown = run("status", "demo").succeeded().stdout
    first, _, head, at_work, given_up_sites, silence, together, _, urls = shown.splitlines()[:9]
    who = f"{HOST}, process {PROCESS}"[:40].split()
    assert first == "demo is being crawled by 2 workers"
    assert head.split() == ["Workers", "since", "sites", "URLs", "fetched", "pages/s"]
    assert (at_work.split()[:-6], at_work.split()[-4:]) == (who, ["1", "4", "1,000", "5.0"])
    assert given_up_sites.split()[-4:] == ["0", "0", "20", "0.2"]
    assert silence.startswith("    no report for 10 ")
    assert together.split() == ["together", "1", "4", "1,020", "5.2"]
    assert urls.startswith("URLs                           7 ")
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_status_shows_all_workers_as_json(team: tuple[Worker, Worker, Worker], run: Run) -> None:
    numbers = json_of(run("status", "demo", "--json"))
    first, second = numbers["workers"]
    assert (numbers["crawling"], numbers["since"]) == (PROCESS, first["since"])
    silences = first.pop("silent_s"), second.pop("silent_s")
    assert silences == (0, 10)
    assert first.pop("since") < second.pop("since")
    per_second = first.pop("per_second"), second.pop("per_second")
    assert per_second == (5.0, 0.2)
    worker = {"host": HOST, "process": PROCESS}
    assert first == {**worker, "sites": 1, "urls": 4, "fetched": 1000, "errors": 3, "documents": 990}
    assert second == {**worker, "sites": 0, "urls": 0, "fetched": 20, "errors": 0, "documents": 0}


def test_the_rate_of_a_worker_that_has_come_back(now_ms: int, demo: Project, key: RedisStore, run: Run) -> None:
    aged(key, worker_of(demo, timeout_s=1000), now_ms, since_s=2, unseen_s=0, received='{"ran_s": 100.0, "fetched": 1000}')
    [worker] = json_of(run("status", "demo", "--json"))["workers"]
    assert worker["per_second"] == pytest.approx(10.0)


def test_a_worker_alone(demo: Project, run: Run) -> None:
    worker = worker_of(demo)
    assert run("status", "demo").succeeded().stdout.startswith("demo is being crawled by 1 worker\n")
    worker.leave()
    assert run("status", "demo").succeeded().stdout.startswith("demo is not being crawled at present\n")
    numbers = json_of(run("status", "demo", "--json"))
    assert (numbers["crawling"], numbers["since"], numbers["workers"]) == (None, None, [])


def test_a_longer_time_out_keeps_a_worker_alive(team: object, run: Run) -> None:
    assert len(json_of(run("status", "demo", "--json", "-s", "CRAWLSPACE_WORKER_TIMEOUT=60s"))["workers"]) == 3


# --- looking --------------------------------------------------------------------------------------------------------

# arguments -> a part of what is printed
LOOKING = [
    (("status", "demo"), "documents                    3"),
    (("urls", "demo", "--status", "404"), f"{HOME}/gone"),
    (("urls", "demo", "--status", "404", "--with-referrers"), "linked from"),
    (("links", "demo", f"{HOME}/gone"), "links in     "),
    (("refused", "demo"), "  2 links, of which the sample has none"),
    (("plan", "demo"), "demo"),
    (("explain", "demo", f"{HOME}/gone"), "status 404"),
    (("deletions", "demo", "--json"), ""),
    (("lint", "demo"), "no findings"),
]
CHANGING = [
    ("recrawl", "demo", "--errors"),
    ("clear-errors", "demo"),
    ("forget", "demo", f"{HOME}/"),
    ("deletions", "demo", "--approve"),
]


@pytest.mark.parametrize(("arguments", "says"), LOOKING, ids=[" ".join(row[0]) for row in LOOKING])
def test_looking_changes_nothing(demo: Project, key: RedisStore, run: Run, arguments: tuple[str, ...], says: str) -> None:
    worker = worker_of(demo)
    before, edition = states(demo), worker.heartbeat().edition
    assert says in run(*arguments).succeeded().stdout
    assert states(demo) == before
    assert worker.heartbeat().edition == edition, "no worker is told to look again"


@pytest.mark.parametrize("arguments", [*(row[0] for row in LOOKING), *CHANGING], ids=" ".join)
def test_a_collection_that_the_server_does_not_know_stays_so(demo: Project, run: Run, arguments: tuple[str, ...]) -> None:
    command, _, *others = arguments
    assert run(command, "new", *others).returncode in (0, 1)
    with closing(another_client()) as client:
        assert client.keys("{new}*") == []
    assert [folder.name for folder in demo.data.iterdir()] == ["demo"]


def test_a_collection_that_the_server_does_not_know_was_never_crawled(run: Run) -> None:
    assert run("status", "new").succeeded().stdout == "new has never been crawled: `scrapy crawl new` does\n"
    assert json_of(run("status", "new", "--json"))["workers"] == []
    assert "has never been crawled" in run("urls", "new").succeeded().stderr
    assert run("search", "new", "holiday").succeeded().stdout.startswith("no hits: new has never been crawled")


# --- beside workers -------------------------------------------------------------------------------------------------


def test_what_is_fetched_now_is_left_alone(demo: Project, run: Run) -> None:
    worker = worker_of(demo)
    taken = worker.take(refill={}, new=1, limit=1, now=NOW, until=NOW + 600)
    (url,) = [state.url for one in taken.sites for state in one.states]
    assert url == f"{HOME}/"
    edition = worker.heartbeat().edition
    again = run("recrawl", "demo", f"{HOME}/", f"{SHOP}/").succeeded()
    assert (again.stdout, again.stderr) == ("1 URL is due now\n", LEFT_ALONE)
    assert worker.heartbeat().edition != edition, "the workers hear of it"
    assert worker.drains(EMBEDDED, location_of_index(demo))[0]
    forgotten = run("forget", "demo", f"{HOME}/").succeeded()
    assert forgotten.stderr == CRAWL_UPDATES_INDEX
    with opened(demo) as store:
        assert (store.get(f"{HOME}/"), store.backlog(EMBEDDED)) == (None, 1)
    worker.leave()
    assert run("recrawl", "demo", f"{HOME}/b").succeeded().stdout == "1 URL is due now: the next crawl fetches it\n"


def location_of_index(demo: Project) -> str:
    return f"{HOST}:{(demo.data / 'demo' / 'index.db').resolve()}"


def test_urls_of_an_expired_worker_are_not_being_fetched(now_ms: int, demo: Project, key: RedisStore, run: Run) -> None:
    worker = worker_of(demo)
    worker.take(refill={}, new=9, limit=9, now=NOW, until=NOW + 600)
    assert worker.drains(EMBEDDED, location_of_index(demo))[0]
    aged(key, worker, now_ms, since_s=60, unseen_s=31, received="")
    again = run("recrawl", "demo", f"{HOME}/").succeeded()
    assert (again.stdout, again.stderr) == ("1 URL is due now: the next crawl fetches it\n", "")
    assert run("forget", "demo", f"{SHOP}/").succeeded().stderr == FOLLOWED
    assert indexed(demo) == ["/", "/b"]
    assert json_of(run("status", "demo", "--json"))["urls"]["leased"] == 0


def test_while_a_command_sends_to_the_index_no_worker_does(demo: Project, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    here, send, seen = location_of_index(demo), EmbeddedIndex.send, []
    other, late = worker_of(demo), Worker(RedisStore(another_client(), "demo", crawls=True), timeout_s=30)

    def watched(index: EmbeddedIndex, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> object:
        with collection_paths("demo", demo.collections / "demo", settings_of(demo)).store.reading() as beside:
            assert beside is not None
            seen.append((other.drains(EMBEDDED, here), len(beside.crawlers())))
        return send(index, orders, mark)

    monkeypatch.setattr(EmbeddedIndex, "send", watched)
    forgotten = run("forget", "demo", f"{HOME}/")
    assert forgotten.stderr == FOLLOWED
    assert seen == [((False, here), 1)], "a worker waits, and the command is not taken for one"
    assert indexed(demo) == ["/", "/b"]
    assert other.drains(EMBEDDED, here) == (True, here)
    assert late.begin("rules") is None
    assert other.heartbeat().workers == 2, "the command is gone"


@pytest.mark.parametrize(
    ("place", "reported"),
    [
        (
            "elsewhere:/index.db",
            "1 order waits for the index, which is at elsewhere:/index.db: the next crawl there sends them\n",
        ),
        ("", "1 order waits for the index until the next crawl\n"),
    ],
)
def test_an_index_that_is_elsewhere(demo: Project, key: RedisStore, run: Run, place: str, reported: str) -> None:
    key.server.command("HDEL", "index", EMBEDDED)
    if place:
        key.server.command("HSET", "index", EMBEDDED, place)
    assert run("forget", "demo", f"{HOME}/").succeeded().stderr == reported
    assert len(indexed(demo)) == 3
    if place:
        worker = worker_of(demo)
        assert worker.drains(EMBEDDED, place)[0]
        assert run("forget", "demo", f"{HOME}/b").succeeded().stderr == CRAWL_UPDATES_INDEX


# --- a server that cannot be used, and what is damaged --------------------------------------------------------------


@pytest.fixture
def guarded() -> Iterator[None]:
    """The server has a user with a password."""
    with closing(another_client()) as client:
        client.acl_setuser("crawler", enabled=True, passwords=["+right"], keys="*", categories=["+@all"])
        yield
        client.acl_deluser("crawler")


# URL -> a part of the sentence
UNUSABLE = [
    (
        "redis://127.0.0.1:1/0",
        "Redis cannot be reached: Error 111 connecting to 127.0.0.1:1. Connection refused: start it, or set ",
    ),
    ("redis://crawler:wrong@127.0.0.1:{port}/0", "Redis refuses the user or the password: "),
    ("redis://127.0.0.1:{port}/99", "Redis answered: DB index is out of range"),
    ("redis://127.0.0.1:port/0", "Redis cannot be connected to with these settings: "),
    (
        "http://127.0.0.1/",
        "CRAWLSPACE_STORE_URL is 'http://127.0.0.1/'; leave it empty for a file, or write the URL of a Redis server",
    ),
]
ALL = [*(row[0] for row in LOOKING if row[0][0] != "lint"), *CHANGING]


@pytest.mark.parametrize(("url", "reported"), UNUSABLE, ids=[row[0] for row in UNUSABLE])
def test_a_server_that_cannot_be_used_is_a_sentence(demo: Project, guarded: None, run: Run, url: str, reported: str) -> None:
    demo.store_url = url.format(port=redis_server().port)
    for arguments in ALL if url == UNUSABLE[0][0] else ALL[:2]:
        ended = run(*arguments, "-s", f"CRAWLSPACE_STORE_URL={demo.store_url}")
        assert (ended.returncode, ended.stdout) == (1, ""), arguments
        assert reported in ended.stderr
        assert "wrong" not in ended.stderr, "the password stays secret"
        assert ended.stderr.count("\n") == 1


def test_the_right_password(demo: Project, guarded: None, run: Run) -> None:
    demo.store_url = demo.store_url.replace("//", "//crawler:right@")
    assert json_of(run("status", "demo", "--json", "-s", f"CRAWLSPACE_STORE_URL={demo.store_url}"))["hosts"] == 2


def test_lint_reports_rules_whatever_the_server_does(demo: Project, run: Run) -> None:
    away = run("lint", "demo", "-s", "CRAWLSPACE_STORE_URL=redis://127.0.0.1:1/0").succeeded()
    assert (away.stdout, away.stderr) == ("no findings\n", "")
    wrong = run("lint", "demo", "-s", "CRAWLSPACE_STORE_URL=http://127.0.0.1/")
    assert (wrong.returncode, wrong.stderr) == (1, "")
    assert "error: CRAWLSPACE_STORE_URL is 'http://127.0.0.1/'" in wrong.stdout


@pytest.mark.full
def test_garbage_under_any_key_is_a_sentence_at_worst(team: object, key: RedisStore, run: Run) -> None:
    with closing(another_client()) as client:
        everything = {name: client.dump(name) for name in client.keys("*")}
        for name in everything:
            hashed = client.hkeys(name) if client.type(name) == b"hash" else []
            for fields in ([], hashed) if hashed else ([],):
                client.delete(name)
                if fields:
                    client.hset(name, mapping=dict.fromkeys(fields, b"\xc1\xff"))
                else:
                    client.set(name, b"garbage")
                looked_at(run, name)
                client.flushdb()
                with client.pipeline() as restored:
                    for each, dumped in everything.items():
                        restored.restore(each, 0, dumped or b"")
                    restored.execute()
    assert len(json_of(run("status", "demo", "--json"))["workers"]) == 2, "all is as it was"


def looked_at(run: Run, name: bytes | str) -> None:
    for command in ("status", "urls"):
        ended = run(command, "demo")
        assert ended.returncode in (0, 1), name
        assert ended.stderr.count("\n") <= 1, name
        assert (ended.returncode == 1) == bool(ended.stderr), name


# a record as another program, or another version, may have written it, and the sentence
@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([2, f"{HOME}/", "k" * 8, 1, "done"], ""),
        ([2, f"{HOME}/", "k" * 8, 1, 99, None, 0, 0, 0, 0, 1, NOW], "what Redis keeps of this collection is damaged (URL 1: "),
        ([3, "of a later version"], ""),
    ],
)
def test_a_record_that_is_not_ours(demo: Project, key: RedisStore, run: Run, row: list[object], says: str) -> None:
    key.server.command("HSET", "url:0", 1, msgspec.msgpack.encode(row))
    ended = run("urls", "demo")
    assert (ended.returncode, ended.stderr[: len(says)]) == (1 if says else 0, says)
    assert ended.stderr.count("\n") == (1 if says else 0)


def test_the_worker_with_garbage_is_alive_all_the_same(demo: Project, key: RedisStore, run: Run) -> None:
    worker = worker_of(demo)
    key.server.command("HSET", f"worker:{worker.name}", "info", b"\xff\x00", "since", "soon", "report", b"\xff{")
    shown = run("status", "demo").succeeded().stdout
    assert worker.name[:30] in shown
    assert json_of(run("status", "demo", "--json"))["workers"][0]["fetched"] == 0
