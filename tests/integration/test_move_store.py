"""`scrapy move-store`, through the command line: what it says, and that a crawl goes on in the other store and never in half of one."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.model import NewUrl, Source
from crawlspace.state.duplicates import rank_of
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse
from tests.conftest import MakeProject, Project
from tests.holding_relay import holding
from tests.integration.conftest import Run
from tests.integration.stored import collection, indexed, statuses
from tests.servers import another_client, emptied, redis_server
from tests.sites import Site, page, serve

NOW = 1_750_000_000
HOME = "http://www.example.com/"


def address() -> str:
    return f"redis://localhost:{redis_server().port}/0"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    emptied().close()
    demo = project(collection(HOME))
    (demo.data / "demo").mkdir()
    with closing(SqliteStore(demo.data / "demo" / "state.db", sinks=(EMBEDDED,))) as store:
        store.discover([known(n) for n in range(50)], now=NOW)
    return demo


def known(number: int) -> NewUrl:
    url = parse(f"{HOME}{number}")
    return NewUrl(url.key, url.text, url.site, Source.INDEX, 0, 1, 0, rank_of(0, url.text))


# arguments -> exit status and a part of the sentence
WRONG = [
    (("demo", "file"), 2, "name a collection and two stores, as in: scrapy move-store demo file redis://localhost:6379/0"),
    (("dmeo", "file", "redis"), 2, "no collection 'dmeo'"),
    (("demo", "file", "sqlite"), 2, "the two stores are one and the same"),
    (
        ("demo", "file", "mysql://me:secret@host"),
        2,
        "'mysql://…@host' is no store: write file, redis, or the URL of a Redis server",
    ),
    (("demo", "redis", "file"), 1, "Redis cannot be reached"),
    (("demo", "file", "redis://localhost:99999/0"), 1, "Redis cannot be connected to with these settings"),
]


@pytest.mark.parametrize(("arguments", "status", "sentence"), WRONG)
def test_wrong_use(demo: Project, run: Run, arguments: tuple[str, ...], status: int, sentence: str) -> None:
    ended = run("move-store", *arguments, "-s", "REDIS_URL=redis://localhost:1/0")
    assert (ended.returncode, ended.stdout) == (status, "")
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(statuses(demo)) == 50


def test_never_crawled(demo: Project, run: Run) -> None:
    (demo.data / "demo" / "state.db").unlink()
    ended = run("move-store", "demo", "file", address())
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "demo has never been crawled with a file" in ended.stderr
    ended = run("move-store", "demo", address(), "file")
    assert ended.returncode == 1
    assert "has no demo: it has never been crawled there" in ended.stderr
    assert not (demo.data / "demo" / "state.db").exists()


def test_a_missing_password_is_reported(demo: Project, run: Run) -> None:
    with closing(another_client()) as client:
        client.config_set("requirepass", "sesame")
        try:
            url = address().replace("//", "//:wrong@")
            ended = run("move-store", "demo", "file", url)
        finally:
            client.config_set("requirepass", "")
    assert ended.returncode == 1
    assert "Redis refuses the user or the password" in ended.stderr
    assert "wrong@" not in ended.stderr


def test_a_crawl_goes_on_in_the_other_store(project: MakeProject) -> None:
    emptied().close()
    site = Site({f"/{n}": page(f"Page {n}", text=f"text of {n}", links=[f"/{n + 1}"]) for n in range(8)})
    site["/"] = page("Home", links=["/0"])
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo", "-s", "CLOSESPIDER_PAGECOUNT=4").succeeded()
        before = len(indexed(demo))
        assert before < 9
        moved = demo.scrapy("move-store", "demo", "file", address()).succeeded()
        assert f"index orders are in {address()} now, compared with" in moved.stdout
        assert f'Set CRAWLSPACE_STORE_URL = "{address()}", so that the next crawl uses it.' in moved.stdout
        assert f"{demo.data / 'demo' / 'state.db'} may be deleted" in moved.stdout
        (demo.data / "demo" / "state.db").unlink()
        demo.crawl("demo", "-s", f"CRAWLSPACE_STORE_URL={address()}").succeeded()
        assert len(indexed(demo)) == 9
        demo.scrapy("move-store", "demo", address(), "file").succeeded()
        demo.crawl("demo").succeeded()
        assert set(server.counts().values()) == {1}, "nothing was fetched twice"


_MANY = 40_000
_BYTES = 1_000_000
"""That a move sends before it is stopped, a part of what it has to send."""
"""URLs: a copy that a slow test still stops half-way."""


@pytest.mark.full
def test_stopped_and_killed_half_way(project: MakeProject, demo: Project) -> None:
    """A crawl refuses half a copy, and the next move goes on with it."""
    with closing(SqliteStore(demo.data / "demo" / "state.db", sinks=(EMBEDDED,))) as store:
        store.discover([known(n) for n in range(_MANY)], now=NOW)
    with closing(another_client()) as client:
        copied = 0
        for number, status in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
            with holding(redis_server().port, most=_BYTES) as relay:
                # The signal is to end it, also on a machine so busy that the server would be taken for dead before that comes.
                process = demo.start("move-store", "demo", "file", f"redis://localhost:{relay.port}/0?socket_timeout=600")
                relay.wait_until_it_holds()
                process.send_signal(number)
                assert process.wait() == status, demo.output()  # it is not released: nothing but the signal may end it
            before, copied = copied, client.hlen("{demo}:url:0")
            assert copied > before
            if number == signal.SIGINT:
                reported = (demo.folder / "output.txt").read_text().splitlines()  # after its progress, where the machine is slow
                assert reported[-1] == "stopped: what was copied stays, and the same command continues there"
                assert all(line.startswith("copying: ") for line in reported[:-1])
    assert copied < _MANY
    refused = demo.crawl("demo", "-s", f"CRAWLSPACE_STORE_URL={address()}")
    assert refused.returncode == 1
    assert "demo is here only in part, because copying it from" in refused.stderr
    assert "Traceback" not in refused.stderr
    moved = demo.scrapy("move-store", "demo", "file", address()).succeeded()
    assert f"demo: {_MANY:,} URLs and 0 index orders are in" in moved.stdout
    with closing(RedisStore(another_client(), "demo")) as copy:
        assert copy.counts().by_state == {"pending": _MANY}
