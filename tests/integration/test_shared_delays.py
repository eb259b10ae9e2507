"""Delays hold for all workers together."""

from __future__ import annotations

import signal
from contextlib import ExitStack

from tests.integration.workers import MakeTeam, all_of, fetched, tree
from tests.sites import Server, redirect, serve, slow, text

DELAY_S = 0.3


DELAYED = f"DOWNLOAD_DELAY = {DELAY_S}\nRANDOMIZE_DOWNLOAD_DELAY = False\n"

_GAPS = 3


def shortest_gap(server: Server) -> float:
    """Between requests to the site, by when they were read: the mean of three gaps, because a busy machine reads one of them late."""
    times = sorted(request.at for request in server.requests)
    return min((after - before) / _GAPS for before, after in zip(times, times[_GAPS:], strict=False))


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


def test_delays_are_kept_when_an_expired_worker_comes_back(team: MakeTeam) -> None:
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

        shared.until_in_redis(lambda: sites() == [3, 3], "own*")
        before = len(fetched(servers))
        shared.until(lambda: len(fetched(servers)) > before + 6)
        late.send_signal(signal.SIGSTOP)
        shared.until_in_redis(lambda: len(sites()) == 1, "workers")
        before = len(fetched(servers))
        shared.until(lambda: len(fetched(servers)) > before + 6)
        late.send_signal(signal.SIGCONT)
        shared.wait()
        for server in servers:
            assert shortest_gap(server) > DELAY_S - 0.03
        assert set(fetched(servers)) == {server.url(path) for server in servers for path in server.site}
        assert shared.output(1).count("this worker did not report for too long") == 1
