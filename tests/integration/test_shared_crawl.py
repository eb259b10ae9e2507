"""A collection that several workers crawl together over Redis; each has a data folder of its own, as on a machine of its own."""

from __future__ import annotations

import shutil
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from crawlspace.crawl.engine import SINK
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import State, UrlState
from crawlspace.state.redis.store import RedisStore
from tests.command_line import CompletedRun, run_scrapy, start_scrapy
from tests.conftest import MakeProject, Project, assert_same
from tests.integration import stored
from tests.quick_start import Running
from tests.servers import Server as RedisServer
from tests.servers import another_client, emptied, redis_server
from tests.sites import Reply, Request, Server, Site, page, redirect, serve, slow, status, text

HOST = socket.gethostname()
FAST = f"{stored.FAST}CRAWLSPACE_WORKER_TIMEOUT = 5\n"


class Team:
    """Workers of the collection `demo`; each is a process with data and output of its own."""

    def __init__(self, project: Project, settings: str) -> None:
        self.project = project
        self.env = {**project.env, "CRAWLSPACE_STORE": ""}
        self.store = RedisStore(another_client(), "demo", sinks=(SINK,))
        self._workers: list[tuple[Running, Path]] = []
        url = f"CRAWLSPACE_STORE_URL = 'redis://127.0.0.1:{redis_server().port}/0'\n"
        project.write({"demo/settings.py": FAST + url + settings})

    def data(self, number: int) -> Path:
        return self.project.folder / f"machine{number}"

    def start(self, *args: str) -> Running:
        number = len(self._workers)
        output = self.project.folder / f"output{number}.txt"
        env = {**self.project.env, "CRAWLSPACE_DATA_DIR": str(self.data(number))}
        process = start_scrapy(["crawl", "demo", *args], output=output, env=env, quickly=True)
        self.project.started.append(process)
        self._workers.append((process, output))
        return process

    def run(self, *args: str) -> CompletedRun:
        """Run a command on the first machine."""
        return run_scrapy(args, env={**self.project.env, "CRAWLSPACE_DATA_DIR": str(self.data(0))})

    def output(self, number: int = 0) -> str:
        return self._workers[number][1].read_text()

    def wait(self) -> None:
        """Until all have ended; those that were not killed must have succeeded."""
        for number, (process, _) in enumerate(self._workers):
            assert process.wait(timeout=60) in (0, -signal.SIGKILL), self.output(number)

    def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            Event().wait(0.02)  # a look at the server takes time from the crawl
            for number, (process, _) in enumerate(self._workers):
                assert process.poll() in (None, -signal.SIGKILL), self.output(number)

    def states(self) -> dict[str, UrlState]:
        return {state.url: state for state in self.store.urls()}

    def indexed(self, number: int = 0) -> set[str]:
        index = EmbeddedIndex(self.data(number) / "demo" / "index.db", read_only=True)
        try:
            return set(index.urls())
        finally:
            index.close()


MakeTeam = Callable[..., Team]


@pytest.fixture
def team(project: MakeProject) -> Iterator[MakeTeam]:
    made = []

    def make(*starts: str, settings: str = "", rules: str = "") -> Team:
        emptied().close()
        one = Team(project({"demo/start_urls.txt": "\n".join(starts), "demo/crawl.rules": rules}), settings)
        made.append(one)
        return one

    yield make
    for each in made:
        each.store.close()


def tree(pages: int, *, others: list[str] | None = None) -> Site:
    """A site of so many pages, each with links to six more."""
    site = Site(
        {
            f"/{n}": page(
                f"Page {n}", text=f"text of page {n}", links=[f"/{6 * n + c}" for c in range(1, 7) if 6 * n + c < pages]
            )
            for n in range(pages)
        }
    )
    site["/"] = page("Home", text="home", links=["/0", *(others or [])])
    return site


def seen(state: UrlState) -> tuple[object, ...]:
    return state.url, state.state, state.status, state.depth, state.indexed, state.checksum, state.source


def test_the_result_is_that_of_a_file(team: MakeTeam, project: MakeProject) -> None:
    site = tree(60)
    site["/0"] = page("Zero", text="zero", links=["/1", "/2", "/3", "/gone", "/moved", "/same", "/hidden", "/3?x"])
    site |= {
        "/gone": status(404),
        "/moved": redirect("/5"),
        "/same": page("Page 1", text="text of page 1"),
        "/hidden": page("Hidden", head='<meta name="robots" content="noindex">', links=["/4"]),
        "/robots.txt": status(404),
    }
    with serve(site) as server:
        alone = project(stored.collection(server.url("/")))
        alone.crawl("demo").succeeded()
        shared = team(server.url("/"))
        shared.start()
        shared.wait()
        assert_same(map(seen, shared.states().values()), map(seen, stored.states(alone).values()))
        assert_same({urlsplit(url).path for url in shared.indexed()}, {path.partition("?")[0] for path in stored.indexed(alone)})
        first = server.counts()
        shared.start()
        shared.wait()
        assert server.counts() == first, "nothing is due"


def test_what_a_dead_worker_was_to_send_is_sent_before_the_end(team: MakeTeam) -> None:
    """One on another machine, of which nobody knows yet that it is dead when the last page has been recorded."""
    site = tree(20)
    site["/7"] = slow(page("Late", text="late"), 1.0)
    with serve(site) as server:
        shared = team(server.url("/"))
        shared.start()
        shared.until(lambda: shared.store.counts().by_state.get("done", 0) > 3)
        for command, key, *values in (
            ("ZADD", "workers", shared.store.scripts.command("ZRANGE", "workers", 0, 0, "WITHSCORES")[0][1], "elsewhere:1:dead"),
            ("HSET", "drain", SINK, "elsewhere:1:dead"),
        ):
            shared.store.scripts.command(command, key, *values)
        shared.wait()
        assert shared.store.backlog(SINK) == 0
        assert {urlsplit(url).path for url in shared.indexed()} == set(site)
        assert "left for" not in shared.output()


@pytest.fixture
def four() -> Iterator[list[Server]]:
    """Four sites that link to each other."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(tree(50), host=f"127.0.0.{n}")) for n in range(1, 5)]
        for server in servers:
            server.site["/"] = page("Home", text=f"home of {server.netloc}", links=["/0", *(other.url("/") for other in servers)])
            server.site["/robots.txt"] = status(404)
            for path in [path for path in server.site if path not in ("/", "/robots.txt")]:
                number = int(path[1:])
                links = [f"/{6 * number + c}" for c in range(1, 7) if 6 * number + c < 50]
                server.site[path] = slow(page(path, text=f"{path} of {server.netloc}", links=links), 0.03)
        yield servers


def all_of(servers: list[Server]) -> set[str]:
    return {server.url(path) for server in servers for path in server.site if path != "/robots.txt"}


def fetched(servers: list[Server]) -> Counter[str]:
    return Counter(
        {server.url(path): count for server in servers for path, count in server.counts().items() if path != "/robots.txt"}
    )


def test_begun_with_a_file_and_finished_by_two(team: MakeTeam, project: MakeProject, four: list[Server]) -> None:
    four[0].site["/same"] = page("/7", text=f"/7 of {four[0].netloc}")
    four[0].site["/0"] = page("/0", text="zero", links=["/same", "/gone", *(f"/{n}" for n in range(1, 7))])
    four[0].site["/gone"] = status(404)
    starts = [server.url("/") for server in four]
    alone = project(stored.collection("\n".join(starts)))
    alone.crawl("demo").succeeded()
    for server in four:
        server.requests.clear()
    shared = team(*starts)
    first = shared.data(0)
    shared.run("crawl", "demo", "-s", "CRAWLSPACE_STORE_URL=", "-s", "CLOSESPIDER_PAGECOUNT=60").succeeded()
    moved = shared.run("move-store", "demo", "file", f"redis://127.0.0.1:{redis_server().port}/0").succeeded()
    assert "compared with" in moved.stdout
    assert f"Its index stays where it is, at {HOST}:{first / 'demo' / 'index.db'}" in moved.stdout
    (first / "demo" / "state.db").unlink()
    assert 50 < len(fetched(four)) < len(all_of(four)) - 50
    shared.start()
    shared.start()
    shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1)), "nothing was fetched twice"
    assert_same(map(seen, shared.states().values()), map(seen, stored.states(alone).values()))
    assert shared.indexed() == {state.url for state in stored.states(alone).values() if state.indexed}


@pytest.mark.parametrize(
    "settings", ["", "CRAWLSPACE_REFRESH_MIN = 1\nCRAWLSPACE_REFRESH_MAX = 1\n"], ids=["once", "due again at once"]
)
def test_two_workers_fetch_each_page_once(team: MakeTeam, four: list[Server], settings: str) -> None:
    shared = team(*(server.url("/") for server in four), settings=settings)
    shared.start()
    shared.until(lambda: len(fetched(four)) > 2)
    shared.start()
    shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1))
    assert shared.indexed(0) == all_of(four), "one of them sends all to the index"
    assert {state.state for state in shared.states().values()} == {State.DONE}
    for number in range(2):
        assert "done." in shared.output(number)


def test_a_killed_worker_costs_no_page(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    dying = shared.start()
    shared.until(lambda: len(fetched(four)) > 60)
    shared.start()
    shared.until(lambda: len(fetched(four)) > 90)
    dying.kill()
    shared.wait()
    assert set(fetched(four)) == all_of(four)
    assert {state.state for state in shared.states().values()} == {State.DONE}
    assert sum(fetched(four).values()) - len(all_of(four)) < 200
    assert "left for the next start" in shared.output(1), "the index is on the machine of the one that was killed"
    shared.start("-s", f"CRAWLSPACE_INDEX_FILE={shared.data(0)}/demo/index.db")
    shared.wait()
    assert shared.indexed(0) == all_of(four)


def test_the_index_moves_to_another_machine(team: MakeTeam, four: list[Server]) -> None:
    """As docs/machines.md says it is done."""
    shared = team(*(server.url("/") for server in four))
    shared.start("-s", "CLOSESPIDER_PAGECOUNT=60")
    shared.wait()
    sent = shared.indexed(0)
    assert set() < sent < all_of(four)
    shutil.copytree(shared.data(0) / "demo", shared.data(1) / "demo")
    assert shared.store.scripts.command("DEL", "index") == 1
    shared.start()
    shared.wait()
    assert shared.indexed(1) == all_of(four)
    assert shared.indexed(0) == sent


def test_a_document_that_cannot_be_stored_costs_no_other(team: MakeTeam, four: list[Server]) -> None:
    """Those of its transaction are recorded one by one, while the worker says that it is alive, and takes and lets go of sites."""
    odd = ("/3", "/17", "/30", "/44")
    for server in four:
        for path in odd:
            server.site[path] = page("breaks", text=f"{path} of {server.netloc}")
    shared = team(
        *(server.url("/") for server in four),
        settings="EXTENSIONS = {'tests.integration.own_spiders.spiders.Picky': 0}\n",
    )
    shared.start()
    shared.start()
    shared.wait()
    assert "recorded one by one" in shared.output(0) + shared.output(1)
    reached = {url for url in all_of(four) if urlsplit(url).path not in ("/19", "/20", "/21", "/22", "/23", "/24")}
    states = {url: (state.state, state.status) for url, state in shared.states().items()}
    assert states == {url: (State.FAILED, 699) if urlsplit(url).path in odd else (State.DONE, 200) for url in reached}


def test_other_rules_are_refused(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    shared.start()
    shared.until(lambda: len(fetched(four)) > 5)
    shared.project.write({"demo/crawl.rules": "forbid prefix http://127.0.0.1/3\n"})
    second = shared.start()
    assert second.wait(timeout=30) == 1
    assert "crawls by other rules or settings" in shared.output(1)
    assert "Traceback" not in shared.output(1)


def test_a_crawl_that_cannot_begin_leaves_no_worker_behind(team: MakeTeam) -> None:
    """On another machine one would wait for it."""
    shared = team("http://localhost/", rules="forbid domain *\n")
    assert shared.start().wait(timeout=30) == 1
    assert "no start URL is in the crawl space" in shared.output()
    assert shared.store.scripts.command("ZCARD", "workers") == 0


def test_the_scheduler_of_scrapy_redis_is_refused(team: MakeTeam) -> None:
    shared = team("http://localhost/", settings="SCHEDULER = 'scrapy_redis.scheduler.Scheduler'\n")
    assert shared.start().wait(timeout=30) == 1
    assert shared.output() == (
        "SCHEDULER is 'scrapy_redis.scheduler.Scheduler', which knows nothing of rules and states: remove that setting;"
        " for a crawl by several machines CRAWLSPACE_STORE_URL is enough\n"
    )


def test_a_full_server_is_waited_for(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    client = another_client()
    shared.start()
    shared.until(lambda: len(fetched(four)) > 20)
    client.config_set("maxmemory", 1)
    try:
        shared.until(lambda: "Redis is full" in shared.output())
    finally:
        client.config_set("maxmemory", 0)
        client.close()
    shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1))
    assert shared.indexed(0) == all_of(four)
    assert "Redis answers again" in shared.output()


def test_an_emptied_server_is_no_emptied_web(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    client = another_client()
    worker = shared.start()
    shared.until(lambda: len(fetched(four)) > 30)
    shared.until(lambda: len(shared.indexed()) > 20)
    client.flushall()
    client.close()
    assert worker.wait(timeout=30) == 1
    assert "Redis has lost this collection" in shared.output()
    assert "Traceback" not in shared.output()
    assert len(shared.indexed()) > 20, "nothing is deleted"
    again = shared.start("-s", f"CRAWLSPACE_INDEX_FILE={shared.data(0)}/demo/index.db")
    assert again.wait(timeout=30) == 1
    assert "Redis knows nothing of demo" in shared.output(1)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://127.0.0.1:1/0", "Redis cannot be reached"),
        ("sentinel://127.0.0.1:1/here", "Redis cannot be reached: No master found for the service"),
        ("sentinel://127.0.0.1:1", "the URL is to name Sentinels and a service, as in sentinel://"),
        ("sentinel://127.0.0.1:x/here/0", "the URL is to name Sentinels and a service, as in sentinel://"),
        ("sentinel://127.0.0.1:1/here/x", "the URL is to name Sentinels and a service, as in sentinel://"),
        ("redis://:wrong@127.0.0.1:{port}/0", "Redis refuses the user or the password"),
        ("redis://127.0.0.1:{port}/0", "Redis refuses the user or the password"),
        ("http://127.0.0.1/", "CRAWLSPACE_STORE_URL is 'http://127.0.0.1/'"),
    ],
)
def test_a_server_that_cannot_be_used(team: MakeTeam, url: str, said: str) -> None:
    shared = team("http://127.0.0.1:9/")
    client = another_client()
    client.config_set("requirepass", "right")
    try:
        run = shared.project.crawl("demo", "-s", f"CRAWLSPACE_STORE_URL={url.format(port=redis_server().port)}")
    finally:
        client.config_set("requirepass", "")
        client.close()
    assert run.returncode != 0
    assert said in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_what_is_fed_to_a_running_crawl(team: MakeTeam, four: list[Server]) -> None:
    shared = team(four[0].url("/"), rules="forbid domain elsewhere.example\n")
    four[0].site["/fed"] = page("Fed", text="fed")
    four[0].site["/plain"] = page("Plain", text="plain")
    client = another_client()
    shared.start()
    shared.until(lambda: len(fetched(four)) > 5)
    client.lpush(
        "demo:start_urls",
        f'{{"url": "{four[0].url("/fed")}", "meta": {{"x": 1}}}}',
        four[0].url("/plain"),
        "no message of ours",
        b"\xff\xfe",
        '{"address": "http://a.example/"}',
        '{"url": "http://elsewhere.example/"}',
    )
    shared.wait()
    assert client.llen("demo:start_urls") == 0
    client.close()
    assert {four[0].url("/fed"), four[0].url("/plain")} <= set(fetched(four))
    said = shared.output()
    assert "demo:start_urls holds a message without a URL, which is left out: 'no message of ours'" in said
    assert "demo:start_urls: http://elsewhere.example/ is refused" in said
    assert said.count("message without a URL") == 3
    assert "Traceback" not in said


def test_what_is_fed_when_all_else_is_done(team: MakeTeam) -> None:
    """In the last moment, between two looks at what is fed."""
    client = another_client()
    with serve(Site({"/": page("Home", text="home"), "/fed": page("Fed", text="fed")})) as server:

        def last(_: Request) -> Reply:
            client.lpush("demo:start_urls", server.url("/fed"))
            return page("Last", text="last")

        server.site["/last"] = last
        server.site["/"] = page("Home", text="home", links=["/last"])
        shared = team(server.url("/"))
        shared.start()
        shared.wait()
        assert client.llen("demo:start_urls") == 0
        assert server.counts()["/fed"] == 1
    client.close()


def test_records_that_are_not_ours_are_put_aside(team: MakeTeam, four: list[Server]) -> None:
    garbage = [b"\x00garbage", b"\x93\x63\x01\x02", b"cos\nsystem\n(S'true'\ntR.", b""]
    shared = team(four[0].url("/"))
    client = another_client()
    shared.start()
    shared.until(lambda: client.hlen("{demo}:url:0") > 24)
    waiting = sorted(state.id for state in shared.store.urls() if state.status is None)
    unlucky = dict(zip((b"%d" % id for id in waiting[-len(garbage) :]), garbage, strict=True))
    for id, record in unlucky.items():
        client.hset("{demo}:url:0", id, record)
    shared.wait()
    assert client.hgetall("{demo}:broken") == unlucky
    client.close()
    assert "records of this collection in Redis are not ours" in shared.output()
    assert "Traceback" not in shared.output()
    assert len(fetched(four)) >= len([path for path in four[0].site if path != "/robots.txt"]) - 4 * 10


def test_a_server_that_is_away_is_waited_for(team: MakeTeam, four: list[Server], tmp_path: Path) -> None:
    kept = {"appendonly": "yes", "appendfsync": "always"}
    first = RedisServer(data_dir=tmp_path / "kept", config=kept, persist=True)
    first.start()
    port = first.port
    shared = team(*(server.url("/") for server in four))
    shared.start("-s", f"CRAWLSPACE_STORE_URL=redis://127.0.0.1:{port}/0")
    shared.until(lambda: len(fetched(four)) > 60)
    first.stop()
    shared.until(lambda: "Redis cannot be reached" in shared.output())
    with RedisServer(port=port, data_dir=tmp_path / "kept", config=kept):
        shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1))
    assert shared.indexed(0) == all_of(four)
    assert "Redis answers again" in shared.output()


def test_a_worker_that_is_stopped_while_the_server_is_away_ends(team: MakeTeam, four: list[Server], tmp_path: Path) -> None:
    kept = {"appendonly": "yes", "appendfsync": "always"}
    first = RedisServer(data_dir=tmp_path / "kept", config=kept, persist=True)
    first.start()
    port = first.port
    url = f"CRAWLSPACE_STORE_URL=redis://127.0.0.1:{port}/0"
    shared = team(*(server.url("/") for server in four))
    worker = shared.start("-s", url)
    shared.until(lambda: len(fetched(four)) > 60)
    first.stop()
    shared.until(lambda: "Redis cannot be reached" in shared.output())
    worker.send_signal(signal.SIGINT)
    assert worker.wait(timeout=40) == 1
    assert "what could not be recorded is fetched again" in shared.output()
    assert "Traceback" not in shared.output()
    with RedisServer(port=port, data_dir=tmp_path / "kept", config=kept):
        shared.start("-s", url, "-s", f"CRAWLSPACE_INDEX_FILE={shared.data(0)}/demo/index.db").wait(timeout=60)
    assert "done." in shared.output(1)
    assert set(fetched(four)) == all_of(four)
    assert shared.indexed(0) == all_of(four)


DELAY_S = 0.3
DELAYED = f"DOWNLOAD_DELAY = {DELAY_S}\nRANDOMIZE_DOWNLOAD_DELAY = False\n"


def shortest_gap(server: Server) -> float:
    """Between two requests to the site, by when they came in, to the tick of the system's clock."""
    return min(after - before for before, after in pairwise(sorted(request.at for request in server.requests)))


def test_delays_hold_for_all_workers_together(team: MakeTeam) -> None:
    """Also where a site goes from one worker to another, because the first is killed or another one comes."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(tree(9), host=f"127.0.0.{n}")) for n in range(1, 7)]
        shared = team(*(server.url("/") for server in servers), settings=DELAYED)
        first = shared.start()
        shared.until(lambda: len(fetched(servers)) > 10)
        shared.start()
        shared.until(lambda: len(fetched(servers)) > 24)
        first.kill()
        shared.start()
        shared.wait()
        for server in servers:
            assert shortest_gap(server) > DELAY_S - 0.03
        assert set(fetched(servers)) == {server.url(path) for server in servers for path in server.site}
        assert "done." in shared.output(1)
        assert "done." in shared.output(2)


def test_a_delay_holds_where_the_robots_txt_of_others_lie(team: MakeTeam) -> None:
    """Many hosts have their robots.txt on one of them, and several workers ask for it there while one of them crawls it."""
    with ExitStack() as stack:
        common, *others = [stack.enter_context(serve(tree(14 if n == 1 else 2), host=f"127.0.0.{n}")) for n in range(1, 7)]
        for other in others:
            other.site["/robots.txt"] = redirect(common.url("/robots.txt"))
        common.site["/robots.txt"] = text("User-agent: *\nDisallow: /13\n")
        shared = team(
            *(server.url("/") for server in (common, *others)),
            settings=DELAYED,
        )
        shared.start()
        shared.start()
        shared.wait()
        assert shortest_gap(common) > DELAY_S - 0.03
        assert common.counts()["/robots.txt"] == 6
        assert set(fetched([common, *others])) == all_of([common, *others]) - {common.url("/13")}


def test_delays_hold_when_one_that_was_taken_for_dead_comes_back(team: MakeTeam) -> None:
    """As a machine that was suspended, or cut off: others have its sites by then."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(tree(18), host=f"127.0.0.{n}")) for n in range(1, 7)]
        shared = team(*(server.url("/") for server in servers), settings=DELAYED)
        shared.start()
        shared.until(lambda: len(fetched(servers)) > 10)
        late = shared.start()
        held = shared.store.scripts

        def sites() -> list[int]:
            return [held.command("SCARD", f"owned:{name.decode()}") for name in held.command("ZRANGE", "workers", 0, -1)]

        shared.until(lambda: sites() == [3, 3])
        before = len(fetched(servers))
        shared.until(lambda: len(fetched(servers)) > before + 6)
        late.send_signal(signal.SIGSTOP)
        shared.until(lambda: len(sites()) == 1)
        before = len(fetched(servers))
        shared.until(lambda: len(fetched(servers)) > before + 6)
        late.send_signal(signal.SIGCONT)
        shared.wait()
        for server in servers:
            assert shortest_gap(server) > DELAY_S - 0.03
        assert set(fetched(servers)) == {server.url(path) for server in servers for path in server.site}
        assert shared.output(1).count("this worker did not report for too long") == 1
