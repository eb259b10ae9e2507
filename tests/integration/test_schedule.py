"""A scheduled refresh through `scrapy crawl`: it is made up for at a start, survives being killed, and is told of."""

from __future__ import annotations

import signal

import pytest
from msgspec import structs

from crawlspace.crawl.timed.refreshes import RUNNING, SETTLED
from crawlspace.model import Requester
from crawlspace.state.changes import Change
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.killed_at_commit import crawl_killed
from tests.integration.stored import FAST, collection, opened, states
from tests.sites import Site, page, serve

PAGES = {
    "/": page("Home", links=[f"/{n}" for n in range(20)]),
    **{f"/{n}": page(f"Page {n}", text=f"text {n}") for n in range(20)},
}
SETTINGS = FAST + (
    'CRAWLSPACE_SMART_REFRESH = False\nCRAWLSPACE_REFRESH_SCHEDULE = "@yearly"\nCRAWLSPACE_TIMEZONE = "UTC"\nROBOTSTXT_OBEY = False\n'
)


def miss_a_time(demo: Project) -> None:
    """Have the last time that was followed be long ago, and all fetches an hour."""
    with opened(demo, "demo") as store:
        ids = [state.id for state in store.urls()]
        store.revise(ids, lambda state: Change(structs.replace(state, fetched_at=(state.fetched_at or 0) - 3_600)), now=0)
        settled = store.get_meta(SETTLED)
        assert settled is not None
        store.set_meta(SETTLED, " ".join(["1", *settled.split(" ")[1:]]))


def test_a_refresh_that_was_missed_is_made_up_for_and_told_of(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url(), settings=SETTINGS))
        demo.crawl("demo").succeeded()
        server.forget()
        assert "nothing was due: the next refresh by the schedule is on" in demo.crawl("demo").stderr
        assert server.paths() == []
        assert "all known URLs are fetched again by the schedule, the next time on" in demo.scrapy("status", "demo").stdout
        assert "next by the schedule of" in demo.scrapy("explain", "demo", server.url("/1")).stdout
        miss_a_time(demo)
        assert "the next time was missed on" in demo.scrapy("status", "demo").stdout
        assert "A scheduled refresh was missed: the next start puts the 21 known URLs" in demo.scrapy("plan", "demo").stdout
        demo.crawl("demo").succeeded()
        assert_same(sorted(server.paths()), sorted(PAGES))
        demo.write({"demo/settings.py": FAST + "CRAWLSPACE_SMART_REFRESH = False\n"})
        assert "[refresh]" in demo.scrapy("lint", "demo").stdout
        assert "nothing was due, and nothing will be: smart refresh is off" in demo.crawl("demo").stderr


@pytest.mark.full
def test_kill_9_within_each_transaction_of_a_refresh(project: MakeProject) -> None:
    """What the killed starts left undone, the last one does, and what they did is not done again but for what they could not record."""
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url(), settings=SETTINGS))
        demo.crawl("demo").succeeded()
        miss_a_time(demo)
        before = {path: state.fetched_at or 0 for path, state in states(demo).items()}
        server.forget()
        kills, seen = 0, set()
        while True:
            process = crawl_killed(kills + 1, output=demo.folder / "output.txt", env=demo.env)
            status = process.wait()
            with opened(demo, "demo") as store:
                seen.add((store.get_meta(RUNNING) or "", sum(state.requested_by is Requester.SCHEDULE for state in store.urls())))
            if status != -signal.SIGKILL:
                break
            kills += 1
        assert status == 0, process.output()
        assert len(seen) > 2, "some were killed when a refresh had begun, and when a part was fetched"
        assert seen >= {("", 0)}
        assert all(
            state.requested_by is Requester.NOBODY and (state.fetched_at or 0) > before[path]
            for path, state in states(demo).items()
        )
        assert set(server.paths()) == set(PAGES)
        server.forget()
        demo.crawl("demo").succeeded()
        assert server.paths() == []
