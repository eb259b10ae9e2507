"""Two sites at one address, one of them by name: the delay holds for both together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from tests.conftest import MakeProject
from tests.integration.stored import indexed
from tests.sites import Server, Site, page, serve

DELAY_S = 0.4
SETTINGS = f"DOWNLOAD_DELAY = {DELAY_S}\nROBOTSTXT_OBEY = False\nCRAWLSPACE_SHARE_ADDRESS_DELAY = "
RULES = "allow address 127.0.0.0 255.0.0.0\n"


@contextmanager
def two_sites() -> Iterator[tuple[Server, Server]]:
    pages = {"/": page("Home", links=["/1", "/2"]), "/1": page("One", text="one"), "/2": page("Two", text="two")}
    other = {path: page(f"Other {path}", text=f"other {path}", links=["/1", "/2"]) for path in pages}
    with serve(Site(pages)) as first, serve(Site(other)) as second:
        yield first, second


@pytest.mark.full
@pytest.mark.parametrize("shared", [True, False])
def test_a_request_waits_for_the_last_one_to_the_neighbour(project: MakeProject, *, shared: bool) -> None:
    with two_sites() as (first, second):
        starts = f"{first.url()}\nhttp://localhost:{second.port}/\n"
        demo = project({"demo/start_urls.txt": starts, "demo/crawl.rules": RULES, "demo/settings.py": f"{SETTINGS}{shared}\n"})
        demo.crawl("demo")
        came = sorted(request.at for server in (first, second) for request in server.requests)
    assert len(came) == 6
    assert len(indexed(demo)) == 6
    shortest = min(after - before for before, after in pairwise(came))
    assert shortest > DELAY_S * 0.75 if shared else shortest < DELAY_S / 2
