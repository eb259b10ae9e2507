"""Credentials in DEFAULT_REQUEST_HEADERS, and cookies, over real HTTP: they stay with the hosts that they are for."""

from __future__ import annotations

import pytest

from tests.conftest import MakeProject
from tests.integration.stored import FAST, collection, statuses
from tests.sites import Server, Site, page, redirect, serve, text

HEADERS = 'COOKIES_ENABLED = True\nDEFAULT_REQUEST_HEADERS = {"Accept-Language": "de", "Authorization": "Bearer abc"}\n'


def with_credentials(server: Server) -> set[str]:
    return {request.path for request in server.requests if request.headers.get("authorization") == "Bearer abc"}


@pytest.mark.parametrize("trusts_other", [False, True])
def test_they_follow_no_link_and_no_redirect_to_another_host(project: MakeProject, *, trusts_other: bool) -> None:
    with serve(Site({"/": page("Other"), "/linked": page("Linked"), "/robots.txt": text("")}), host="127.0.0.2") as other:
        site = Site({"/robots.txt": text(""), "/moved": redirect(other.url("/"))})
        site["/"] = page("Home", links=["/a", "/moved", other.url("/linked")], headers={"Set-Cookie": "id=1"})
        site["/a"] = page("A")
        with serve(site) as server:
            own = f'CRAWLSPACE_CREDENTIAL_HOSTS = ["127.0.0.1", "{other.netloc}"]\n' if trusts_other else ""
            made = project(collection(server.url("/"), rules="allow address 127.0.0.0/8\n", settings=FAST + HEADERS + own))
            made.crawl("demo").succeeded()
            assert with_credentials(server) == {"/robots.txt", "/", "/a", "/moved"}
            assert [request.headers.get("cookie") for request in server.requests if request.path == "/a"] == ["id=1"]
        assert set(other.paths()) == {"/robots.txt", "/", "/linked"}
        assert with_credentials(other) == (set(other.paths()) if trusts_other else set())
        assert {request.headers["accept-language"] for request in other.requests} == {"de"}
        assert set(statuses(made).values()) == {200, 302}
    run = made.scrapy("lint", "demo")
    assert ("[credential-header]" in run.stdout) is not trusts_other
    assert trusts_other or "settings.py:7:1: warning: DEFAULT_REQUEST_HEADERS has Authorization" in run.stdout
    assert "abc" not in run.stdout + run.stderr
