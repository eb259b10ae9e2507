"""Sites that give no answer, over real connections: what goes on, and what is said of them."""

from __future__ import annotations

import pytest

from tests.conftest import MakeProject
from tests.integration.stored import FAST, collection, indexed, shared, states, unreachable
from tests.sites import Site, page, serve


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_link_with_https_to_a_plain_port_stops_nothing_else(project: MakeProject, *, is_shared: bool) -> None:
    site = Site({})
    with serve(site) as server:
        https = server.url("/b").replace("http:", "https:")
        site["/"] = page("Home", text="Start here", links=[https, "/a"])
        site["/a"] = page("A", text="Another page")
        made = project(collection(server.url("/"), settings=f"{FAST}RETRY_TIMES = 1\n"))
        if is_shared:
            shared(made)
        said = made.crawl("demo").stderr
    assert f"{server.netloc} is unreachable" in said
    assert "its https URLs are not fetched until the next start; those of http are" in said
    assert indexed(made) == ["/", "/a"]
    assert states(made)["/b"].status == 741
    assert unreachable(made) == {}
