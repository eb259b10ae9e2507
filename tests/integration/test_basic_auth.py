"""The examples of docs/security.md for sites with a password: pages are read, and nobody else gets to see the password."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

import pytest

from tests.command_line import ROOT
from tests.conftest import MakeProject, assert_same
from tests.http import Reply, Request
from tests.integration.stored import FAST, statuses
from tests.sites import Site, page, redirect, serve, status, text

PASSWORD = "secret of the wiki"
EXPECTED = "Basic " + base64.b64encode(f"crawler:{PASSWORD}".encode()).decode()
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/security.md").read_text(encoding="utf-8"), re.DOTALL)


def behind_a_password(then: Reply) -> Callable[[Request], Reply]:
    asked = status(401, headers={"WWW-Authenticate": 'Basic realm="wiki"'})
    return lambda request: then if request.headers.get("authorization") == EXPECTED else asked


@pytest.mark.parametrize("example", EXAMPLES, ids=["one domain"])
def test_pages_behind_a_password_are_read_and_no_other_host_gets_it(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    other_site = Site(
        {"/linked": page("Linked", text="linked"), "/target": page("Target", text="target"), "/robots.txt": text("")}
    )
    with serve(other_site, host="127.0.0.2") as other:
        home = page("Home", text="home", links=["/a", "/moved", other.url("/linked")])
        pages = {"/": home, "/a": page("A", text="a"), "/moved": redirect(other.url("/target")), "/robots.txt": text("")}
        with serve(Site({path: behind_a_password(reply) for path, reply in pages.items()})) as server:
            settings = FAST + example.replace("wiki.example.com", server.netloc)
            demo = project(
                {
                    "demo/start_urls.txt": server.url(),
                    "demo/crawl.rules": "allow address 127.0.0.0/8\n",
                    "demo/settings.py": settings,
                }
            )
            run = demo.crawl("demo").succeeded()
            found = demo.scrapy("lint", "demo")
            assert {request.headers.get("authorization") for request in server.requests} == {EXPECTED}
        assert_same(other.paths(), ["/robots.txt", "/linked", "/target"])
        assert {request.headers.get("authorization") for request in other.requests} == {None}
    assert set(statuses(demo).values()) == {200, 302}
    assert PASSWORD not in run.stderr + found.stdout + found.stderr


@pytest.mark.parametrize(("domain", "reported"), [("None", True), ("'wiki.example.com'", False)])
def test_a_password_for_every_host_is_a_finding(project: MakeProject, domain: str, *, reported: bool) -> None:
    settings = f"HTTPAUTH_USER = 'crawler'\nHTTPAUTH_PASS = '{PASSWORD}'\nHTTPAUTH_DOMAIN = {domain}\n"
    demo = project({"demo/start_urls.txt": "http://wiki.example.com/", "demo/settings.py": settings})
    found = demo.scrapy("lint", "demo").stdout
    assert ("settings.py:2:1: warning: HTTPAUTH_PASS is sent to every host that a link leads to" in found) is reported
    assert PASSWORD not in found
