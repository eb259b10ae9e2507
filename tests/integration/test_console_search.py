"""The search pages of the console: that of administrators, and that for everybody, which shows nothing that is not public."""

from __future__ import annotations

import json

import pytest

from crawlspace.console.missing_pages import MOST_REPORTS, MissingPages
from crawlspace.console.users import Role, Users
from crawlspace.errors import ConfigError, UsageError
from tests.conftest import MakeProject, Project
from tests.consoles import served
from tests.integration.stored import FAST, collection
from tests.sites import Answer, Site, page, serve, status

SCRIPT = "<script>alert(1)</script> {{ 7 * 7 }} <b>"
SECRET = "zebra"


def site(**more: Answer) -> Site:
    return Site(
        {
            "/": page("Home", links=["/a", "/b"], text="pumps and valves"),
            "/a": page("Pump A", text="the pump of the aquarium hums"),
            "/b": page(SCRIPT, text=f"a pump {SCRIPT} and more"),
            "/robots.txt": status(404),
            **{f"/{name}": answer for name, answer in more.items()},
        }
    )


@pytest.fixture
def demo(project: MakeProject) -> Project:
    with serve(site()) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
    return demo


def test_an_administrator_searches(demo: Project) -> None:
    with served(demo) as browser:
        assert "This searches what the collection has in its index" in browser.get("/c/demo/search").words
        found = browser.get("/c/demo/search?q=aquarium")
        assert "1 document with all words" in found.words
        assert "the pump of the <mark>aquarium</mark> hums" in found.text
        assert "/c/demo/url?url=http" in found.text
        assert "Nothing is found" in browser.get("/c/demo/search?q=giraffe").words
        assert "Why is http://x.example/ not found?" in browser.get("/c/demo/search?q=http://x.example/").words
        assert "3 documents" in browser.get("/c/demo/search?q=pump&language=en").words
        assert "0 documents" in browser.get("/c/demo/search?q=pump&language=de").words
        wrong = browser.get("/c/demo/search?q=pump&modified=yesterday")
        assert (wrong.status, "write a day as 2026-01-31" in wrong.words) == (200, True)
        for query in ("q=%22", "q=pump&page=x", "q=pump&page=-1", "q=pump&page=99999999999", "q=*", "q=-pump"):
            assert browser.get(f"/c/demo/search?{query}").status == 200, query


@pytest.mark.parametrize("path", ["/c/demo/search?q=pump", "/find?q=pump", "/find/suggestions?q=alert", "/find/document?url="])
def test_what_a_page_says_is_text(demo: Project, path: str) -> None:
    with served(demo, public=["demo"]) as browser:
        if path.endswith("url="):
            path += next(one for one in _urls(demo) if one.endswith("/b"))
        found = browser.get(path)
        assert found.status == 200
        assert "<script>alert" not in found.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt; {{ 7 * 7 }} &lt;b&gt;" in found.text


def _urls(demo: Project) -> list[str]:
    return [json.loads(line)["url"] for line in demo.scrapy("urls", "demo", "--json").succeeded().stdout.splitlines()]


def test_the_search_for_everybody_needs_no_log_in_and_shows_nothing_else(demo: Project) -> None:
    Users(demo.data / "console-users").set_password("anna", "correct horse battery", Role.VIEWER)
    with served(demo, public=["demo"]) as browser:
        assert "the pump of the aquarium hums" in browser.get("/find?q=aquarium").words
        for path in ("/", "/c/demo/", "/c/demo/search", "/finder", "/audit-log"):
            assert "/login" in browser.get(path).url, path
        for path in ("/find/../c/demo/", "/find//c/demo/", "/find/%2e%2e/c/demo/"):
            assert browser.get(path).status == 404, path
    with served(demo, public=["demo"], is_search_alone=True) as browser:
        assert browser.get("/").url.endswith("/find")
        for path in ("/c/demo/", "/c/demo/search", "/login", "/audit-log", "/metrics"):
            assert browser.get(path).status == 404, path
    with served(demo) as browser:
        assert "/login" in browser.get("/find?q=aquarium").url, "it is off by default"


def test_suggestions_are_titles(demo: Project) -> None:
    with served(demo, public=["demo"]) as browser:
        assert browser.get("/find/suggestions?q=aqu").text.strip() == '<option value="Pump A"></option>'
        assert browser.get("/find/suggestions?q=a").text.strip() == ""
        assert browser.get("/find/suggestions?q=%22").status == 200


def test_a_document_has_a_page_with_its_place(demo: Project) -> None:
    url = next(one for one in _urls(demo) if one.endswith("/a"))
    with served(demo, public=["demo"]) as browser:
        found = browser.get(f"/find/document?url={url}")
        assert "› a" in found.words
        assert "the pump of the aquarium hums" in found.words
        assert browser.get("/find/document?url=http://nope.example/").status == 404


def test_only_named_collections_and_public_documents_are_shown(project: MakeProject) -> None:
    """Two collections share an index, and some pages of one are behind a log-in."""
    secret = page("Secret zebra", text=f"{SECRET} pump for insiders", links=["/"])
    with serve(site(inside=secret)) as open_site, serve(Site({"/": page("Other", text="other pump")})) as other_site:
        files = collection(open_site.url("/")) | {"demo/start_urls.txt": f"{open_site.url('/')}\n{open_site.url('/inside')}\n"}
        demo = project({**files, "other/start_urls.txt": other_site.url("/"), "other/settings.py": FAST})
        sinks = f'CRAWLSPACE_SINKS = {{"local": {{"type": "sqlite", "file": "{demo.data}/shared.db"}}}}\n'
        logins = f'CRAWLSPACE_SITES = {{"{open_site.url("/").split("/")[2]}": {{"login": {{"type": "basic", "user": "me", "password": "secret"}}, "allow_plain_http": True}}}}\n'
        demo.write({"other/settings.py": FAST + sinks, "demo/settings.py": FAST + sinks})
        demo.crawl("other").succeeded()
        demo.crawl("demo").succeeded()
        with served(demo, public=["demo"]) as browser:
            both = browser.get("/c/demo/search?q=pump").words
            assert "other pump" in both, "an administrator searches all of a shared index"
            words = browser.get("/find?q=pump").words
            assert "4 documents" in words
            assert "other pump" not in words
            assert SECRET in words
            assert browser.get("/find?in=other&q=pump").status == 404
            assert browser.get(f"/find/document?url={other_site.url('/')}").status == 404
            # The page is behind a log-in by the settings, and was fetched before.
            demo.write({"demo/settings.py": FAST + sinks + logins})
            assert "Secret" not in browser.get("/find?q=zebra").text
            assert browser.get(f"/find/document?url={open_site.url('/inside')}").status == 404
            # It was fetched with that log-in: its document is marked.
            demo.scrapy("recrawl", "demo", open_site.url("/inside")).succeeded()
            demo.crawl("demo").succeeded()
            assert "Secret zebra" in browser.get("/c/demo/search?q=zebra").words
            demo.write({"demo/settings.py": FAST + sinks})
            hidden = browser.get("/find?q=zebra").words
            assert "Secret" not in hidden
            assert "0 documents" in hidden
            assert browser.get(f"/find/document?url={open_site.url('/inside')}").status == 404
            assert "Secret" not in browser.get("/find/suggestions?q=zeb").text


def test_a_missing_page_is_reported(demo: Project) -> None:
    Users(demo.data / "console-users").set_password("anna", "correct horse battery", Role.OPERATOR)
    with served(demo, public=["demo"]) as browser:
        form = browser.get("/find/missing?q=giraffe")
        assert "Which page is missing?" in form.words
        token = form.text.partition('name="csrf" value="')[2].partition('"')[0]
        sent = browser.post(
            "/find/missing", {"url": "http://x.example/%3Cscript%3E", "q": "giraffe", "comment": SCRIPT}, csrf=token
        )
        assert "Thank you" in sent.words
        assert browser.post("/find/missing", {"url": "http://x.example/"}, csrf="forged").status == 403
        wrong = browser.post("/find/missing", {"url": "javascript:alert(1)"}, csrf=token)
        assert (wrong.status, "Give the address of the page" in wrong.words) == (400, True)
        answers = [browser.post("/find/missing", {"url": f"http://x.example/{n}"}, csrf=token).status for n in range(6)]
        assert answers == [200] * 4 + [400, 400], "one address sends a few reports"
        browser.log_in("anna", "correct horse battery")
        listed = browser.get("/c/demo/search")
        assert "http://x.example/%3Cscript%3E giraffe" in listed.words.replace(" / ", "/").replace("/ ", "/")
        assert "<script>alert" not in listed.text
        browser.post("/c/demo/search/dismiss", {"url": "http://x.example/%3Cscript%3E"})
        assert "%3Cscript%3E" not in browser.get("/c/demo/search").text


def test_reports_are_bounded_and_counted(demo: Project) -> None:
    missing = MissingPages(demo.data / "demo")
    for number in range(MOST_REPORTS):
        missing.add(f"http://x.example/{number}", words="", comment="", at=number)
    with pytest.raises(UsageError, match="too many reports"):
        missing.add("http://x.example/more", words="", comment="", at=1)
    missing.add("http://x.example/7", words="again", comment="", at=1_000)
    assert (missing.all()[0].url, missing.all()[0].times) == ("http://x.example/7", 2)
    (demo.data / "demo" / "missing-pages.json").write_text("{")
    with pytest.raises(ConfigError, match="remove the file"):
        missing.all()
