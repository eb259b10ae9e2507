"""Log-ins in the browser: on pages that scripts make, with a real browser."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.browser.test_ends import browsers_of, gone
from tests.conftest import MakeProject, Project, assert_same
from tests.door import PASSWORD, USER, ScriptedDoor, scripted_wiki
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.sites import Server, serve

TIMEOUT = 300
PAGES = 30
BOTH = [{"fill": {"#user": USER, "#password": "env:WIKI_PASSWORD"}, "click": "#go"}]
TWICE = [
    {"fill": {"#user": USER}, "click": "#go", "wait_for": "#password"},
    {"fill": {"#password": "env:WIKI_PASSWORD"}, "click": "#go"},
]
LOGGED_OUT = {"text": "Please log in to the wiki"}


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)


def settings(server: Server, *, steps: object = BOTH, **login: object) -> str:
    """The settings of a collection that logs in to a server."""
    values = {"type": "browser", "url": server.url("/login"), "steps": steps, "logged_out": LOGGED_OUT, **login}
    return f"{FAST}CRAWLSPACE_SITES = {{{server.netloc!r}: {{'login': {values!r}, 'allow_plain_http': True}}}}\n"


def all_pages(pages: int = PAGES) -> list[str]:
    return ["/", *(f"/{n}" for n in range(pages))]


def kept(demo: Project) -> bytes:
    return b"".join(path.read_bytes() for path in demo.data.rglob("*") if path.is_file())


@pytest.mark.parametrize(("asks", "steps"), [("once", BOTH), ("twice", TWICE)])
def test_a_site_is_crawled_behind_a_form_that_a_script_makes(project: MakeProject, asks: str, steps: object) -> None:
    door = scripted_wiki(PAGES, asks=asks)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server, steps=steps)))
        crawled = demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert (door.logins, door.attempts) == (1, 1)
        assert_same(indexed(demo), all_pages())
        server.forget()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert (door.logins, door.anonymous.total()) == (1, 0)  # with the session of the run before
    assert PASSWORD not in crawled.stderr + crawled.stdout
    assert PASSWORD.encode() not in kept(demo)
