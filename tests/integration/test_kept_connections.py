"""Servers that close a kept connection, over real HTTP: no failure, and no request before the site's delay is over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from tests.conftest import MakeProject
from tests.http import Connection, Reply, Request
from tests.integration.stored import collection, indexed, statuses
from tests.sites import Site, page, serve, text

DELAY_S = 0.05
TICK_S = 0.02
"""By so much the arrival of a request may be misjudged."""
PAGES = 30


@dataclass
class ClosesAfter:
    """Answers as `then` does on a connection's first requests; closes at the next one without a word, whichever page it asks for."""

    requests: int
    then: Reply
    closed: list[str] = field(default_factory=list)
    _answered: Counter[int] = field(default_factory=Counter)
    _connections: list[Connection] = field(default_factory=list)

    async def send(self, request: Request, connection: Connection) -> None:
        self._connections.append(connection)  # so that no other has its id
        self._answered[id(connection)] += 1
        if self._answered[id(connection)] > self.requests:
            self.closed.append(request.path)
            raise ConnectionAbortedError
        await self.then.send(request, connection)


@pytest.mark.full
def test_a_request_on_a_connection_that_is_being_closed_has_another_turn(project: MakeProject) -> None:
    closing = ClosesAfter(5, page("Page", links=[f"/{number}" for number in range(PAGES - 1)]))
    site = Site({"/robots.txt": ClosesAfter(5, text(""))}, otherwise=lambda request: numbered(closing, request))
    with serve(site) as server:
        made = project(collection(server.url("/"), settings=f"DOWNLOAD_DELAY = {DELAY_S}\nRETRY_TIMES = 0\n"))
        run = made.crawl("demo").succeeded()
        assert len(closing.closed) >= PAGES // 10
        assert Counter(server.paths()) == Counter([*statuses(made), *closing.closed, "/robots.txt"])
        gaps = [after.at - before.at for before, after in pairwise(server.requests)]
        assert min(gaps) > DELAY_S - TICK_S
    assert set(statuses(made).values()) == {200}
    assert len(indexed(made)) == PAGES
    assert f"{PAGES} fetched: {PAGES} with a document." in run.stderr


def numbered(closing: ClosesAfter, request: Request) -> Reply:
    """A page of its own text for each path."""
    closing.then = page(
        f"Page {request.path}", text=f"Words of {request.path}", links=[f"/{number}" for number in range(PAGES - 1)]
    )
    return closing
