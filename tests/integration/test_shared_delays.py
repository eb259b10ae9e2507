"""Delays hold for all workers together."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from crawlspace.clock import SystemClock
from tests.integration.workers import Growing, MakeTeam, Team, all_of, fetched, tree
from tests.sites import Server, Site, redirect, serve, slow, status, text

DELAY_S = 0.3
DELAYED = f"DOWNLOAD_DELAY = {DELAY_S}\nRANDOMIZE_DOWNLOAD_DELAY = False\n"

_GAPS = 3


def shortest_gap(server: Server) -> float:
    """Between requests to the site, by when they were read: the mean of three gaps, because a busy machine reads one of them late."""
    times = sorted(request.at for request in server.requests)
    return min((after - before) / _GAPS for before, after in zip(times, times[_GAPS:], strict=False))


@pytest.mark.full
def test_delays_hold_for_all_workers_together(team: MakeTeam) -> None:
    """Also where a site goes from one worker to another, because the first is killed or another one comes."""
    with growing() as (pages, servers):
        shared = team(*(server.url("/") for server in servers), settings=DELAYED)
        first = shared.start()
        until_more(shared, servers)
        shared.start()
        shared.until_shared(3, 3)
        until_more(shared, servers)
        first.kill()
        shared.expire(first)
        shared.start()
        shared.until_shared(3, 3)
        until_more(shared, servers)
        for each in pages:
            each.stop()
        shared.wait()
        assert_delays_and_pages(pages, servers)
        assert "done." in shared.output(1)
        assert "done." in shared.output(2)


@pytest.mark.full
def test_each_worker_throttles_the_sites_it_has(team: MakeTeam) -> None:
    latency_s = 0.2
    throttled = "DOWNLOAD_DELAY = 0\nAUTOTHROTTLE_ENABLED = True\nAUTOTHROTTLE_START_DELAY = 0.2\n"
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(tree(6), host=f"127.0.0.{n}")) for n in range(1, 5)]
        for server in servers:
            for path, reply in server.site.items():
                server.site[path] = slow(reply, latency_s)  # type: ignore[arg-type]
        shared = team(*(server.url("/") for server in servers), settings=throttled)
        shared.start()
        shared.until(lambda: len(fetched(servers)) > 4)
        shared.start()
        shared.wait()
        for server in servers:
            assert shortest_gap(server) > latency_s - 0.03
        assert set(fetched(servers)) == all_of(servers)


@pytest.mark.full
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


@pytest.mark.full
def test_delays_are_kept_when_an_expired_worker_comes_back(team: MakeTeam, tmp_path: Path) -> None:
    """As a machine that was suspended, or cut off: others have its sites by then."""
    with growing() as (pages, servers):
        shared = team(*(server.url("/") for server in servers), settings=DELAYED)
        shared.start()
        until_more(shared, servers)
        suspended = tmp_path / "suspended"
        late = shared.start(first=partial(count_suspension, suspended))
        shared.until_shared(3, 3)
        until_more(shared, servers)
        late.send_signal(signal.SIGSTOP)
        shared.expire(late)
        until_more(shared, servers)
        suspended.touch()
        late.send_signal(signal.SIGCONT)
        shared.until_shared(3, 3)
        until_more(shared, servers)
        for each in pages:
            each.stop()
        shared.wait()
        assert_delays_and_pages(pages, servers)
        assert shared.output(1).count("this worker did not report for too long") == 1


@contextmanager
def growing() -> Iterator[tuple[list[Growing], list[Server]]]:
    """Six sites that have always another page, so that no worker is too late for them."""
    with ExitStack() as stack:
        pages = [Growing() for _ in range(6)]
        sites = [Site({"/robots.txt": status(404)}, otherwise=each) for each in pages]
        yield pages, [stack.enter_context(serve(site, host=f"127.0.0.{n}")) for n, site in enumerate(sites, 1)]


def until_more(shared: Team, servers: list[Server]) -> None:
    """Wait until one page or more of each site, as it is on average, was requested."""
    before = len(fetched(servers))
    shared.until(lambda: len(fetched(servers)) > before + len(servers))


def assert_delays_and_pages(pages: list[Growing], servers: list[Server]) -> None:
    for server in servers:
        assert shortest_gap(server) > DELAY_S - 0.03
    assert set(fetched(servers)) == {server.url(path) for each, server in zip(pages, servers, strict=True) for path in each.paths}


def count_suspension(suspended: Path) -> None:
    """Have so much time have passed in this process, once that file is there, that it has expired; as on a machine that was suspended."""
    elapsed = SystemClock.monotonic

    def monotonic(self: SystemClock) -> float:
        return elapsed(self) + 400 * suspended.exists()

    SystemClock.monotonic = monotonic  # type: ignore[method-assign]
