"""Pages that scripts make, behind a log-in by a form: what the scripts load carries the session, and renews it when it ends."""

from __future__ import annotations

from tests.browser.pages import app, paths, words_of
from tests.browser.test_rendering import ALWAYS, TIMEOUT, texts
from tests.conftest import MakeProject, assert_same
from tests.door import PASSWORD, USER, Door
from tests.http import Reply
from tests.integration.stored import collection, indexed
from tests.sites import serve


def test_sessions_that_end_while_pages_are_rendered_are_renewed(project: MakeProject) -> None:
    behind: dict[str, Reply] = {path: reply for path, reply in app(16).items() if path != "/robots.txt"}  # type: ignore[misc]
    door = Door(behind, lasts=range(6, 14), seed=1)
    with serve(door.site) as server:
        login = {"type": "form", "url": server.url("/login"), "fields": {"user": USER, "password": "env:WIKI_PASSWORD"}}
        settings = f"{ALWAYS}CRAWLSPACE_SITES = {{{server.netloc!r}: {{'login': {login!r}, 'allow_plain_http': True}}}}\n"
        demo = project(collection(server.url("/"), settings=settings))
        demo.env["WIKI_PASSWORD"] = PASSWORD
        crawled = demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(indexed(demo), paths(16))
        found = texts(demo)
    assert {path: words_of(path) in found[path] for path in paths(16)} == dict.fromkeys(paths(16), True)
    assert door.lost > 0
    assert door.logins <= door.lost + 1
    assert PASSWORD not in crawled.stderr
