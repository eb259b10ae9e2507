"""The page of one URL: the decision, the state, links, the stored page and the document."""

from __future__ import annotations

import pytest

from tests.conftest import MakeProject
from tests.consoles import Browser, served
from tests.integration.stored import FAST, collection, states
from tests.sites import Site, html, page, serve, status

SCRIPT = "<script>alert(1)</script>"
HOSTILE = f"""<!doctype html><html lang="en"><head><title>{SCRIPT} {{{{7*7}}}}</title><link rel="stylesheet" href="//evil.example/">
<meta http-equiv="refresh" content="0; url=//evil.example/"></head><body onload="alert(1)"><p>words of the page {{{{7*7}}}} &lt;script&gt;alert(2)&lt;/script&gt;</p>
<img src="//evil.example/pixel" onerror="alert(1)"><a href="javascript:alert(1)">a</a><a href="/other">other</a></body></html>"""
ARCHIVED = FAST.replace("CRAWLSPACE_ARCHIVE = False", "CRAWLSPACE_ARCHIVE = True")


def shown(browser: Browser, url: str, part: str = "") -> str:
    answer = browser.get(f"/c/demo/url?url={url}" + (f"&show={part}" if part else ""))
    assert answer.status == 200
    assert SCRIPT not in answer.text
    assert 'href="javascript' not in answer.text
    assert 'href="http' not in answer.text, "no link leads out of the console"
    return answer.words.replace("/ ", "/")  # a URL may be broken there


def test_urls_known_and_unknown(project: MakeProject) -> None:
    site = Site(
        {
            "/": page("Home", links=["/a", "/copy", "/moved", "/gone", "/secret/x", "javascript:alert(1)"]),
            "/a": page("A", text="the same words on two pages"),
            "/copy": page("A", text="the same words on two pages"),
            "/moved": status(301, headers={"Location": "/a"}),
            "/robots.txt": status(404),
        }
    )
    with serve(site) as server:
        home = server.url("/")
        demo = project(collection(home, rules=f"# secrets\nforbid prefix {home}secret/\n"))
        with served(demo) as browser:
            assert "Look up a URL" in browser.get("/c/demo/url").words
            assert "nothing is known before its first crawl" in shown(browser, home)
            demo.crawl("demo").succeeded()
            words = shown(browser, home)
            assert "It is in the index." in words
            assert "admitted done" in words
            assert "start_urls.txt:1" in words
            assert "/a" in words
            assert "is nearly" not in shown(browser, f"{home}copy")
            duplicate, winner = (f"{home}a", f"{home}copy")
            both = shown(browser, duplicate) + shown(browser, winner)
            assert both.count("It is not in the index: it is a duplicate of") == 1
            assert "it leads to another URL (301 Moved Permanently)" in shown(browser, f"{home}moved")
            assert "Redirects to" in shown(browser, f"{home}moved")
            assert "its last fetch ended with 404 Not Found" in shown(browser, f"{home}gone")
            refused = browser.get(f"/c/demo/url?url={home}secret/x")
            assert "It does not belong to the collection: a prefix rule forbids the URL." in refused.words
            assert "/c/demo/rules?file=crawl.rules&amp;line=2" in refused.text
            assert "Seen on" in refused.words
            assert "no link to it has been found" in shown(browser, f"{home}nowhere")
            browser.get_until(f"/c/demo/url?url={home}nowhere", lambda got: "Known URLs next to it" in got.words)
            incoming = shown(browser, f"{home}a", "in")
            assert "2 pages lead to it" in incoming
            assert "Redirects among them" in incoming
            assert "0 pages lead to it" in shown(browser, f"{home}nowhere", "in")
            for odd in ("javascript:alert(1)", SCRIPT, "{{7*7}}", "http://[", "//x", "x" * 3000, "%00", "http://a:b@c/"):
                shown(browser, odd)
            assert browser.get(f"/c/demo/url?url={'x' * 5000}").status == 400
            assert browser.get(f"/c/demo/url?url={home}&show=x").status == 400


def test_a_url_is_fetched_again_added_and_forgotten(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server:
        home = server.url("/")
        demo = project(collection(home, rules=f"forbid prefix {home}no\n"))
        demo.crawl("demo").succeeded()
        with served(demo) as browser:
            assert "1 URL is due now: the next crawl fetches it." in browser.post("/c/demo/url/recrawl", {"url": home}).words
            assert states(demo)["/"].requested_by
            added = browser.post("/c/demo/url/recrawl", {"url": f"{home}new"})
            assert "1 URL is due now, 1 of them new" in added.words
            assert "it waits to be fetched for the first time" in added.words
            assert "outside the crawl space" in browser.post("/c/demo/url/recrawl", {"url": f"{home}no"}).words
            assert "1 URL is forgotten" in browser.post("/c/demo/url/forget", {"url": f"{home}new"}).words
            assert "/new is not known" in browser.post("/c/demo/url/forget", {"url": f"{home}new"}).words
            assert set(states(demo)) == {"/"}
            assert browser.post("/c/demo/url/recrawl", {"url": "no URL"}).status == 400
            assert browser.post("/c/demo/url/recrawl", {"url": home}, csrf="guessed").status == 403


def test_the_stored_page_neither_runs_nor_loads_anything(project: MakeProject) -> None:
    site = Site({"/": html(HOSTILE), "/other": page("Other"), "/file": status(200), "/robots.txt": status(404)})
    with serve(site) as server:
        home = server.url("/")
        demo = project(collection(home, settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        with served(demo) as browser:
            stored = browser.get(f"/c/demo/stored?url={home}")
            assert stored.status == 200
            policy = stored.headers["Content-Security-Policy"]
            assert policy.startswith("sandbox; default-src 'none'; ")
            assert "script-src" not in policy
            assert "allow-" not in policy
            assert "frame-ancestors 'self'" in policy
            assert stored.headers["X-Frame-Options"] == "SAMEORIGIN"
            assert stored.headers["X-Content-Type-Options"] == "nosniff"
            assert "words of the page" in stored.text
            assert "evil.example" not in stored.text
            assert "alert(1)" not in stored.text.replace("&lt;script&gt;alert(1)&lt;/script&gt;", ""), (
                "only as the text of the title"
            )
            framed = browser.get(f"/c/demo/url?url={home}&show=page")
            assert '<iframe class="stored" sandbox src="/c/demo/stored?url=' in framed.text
            assert framed.headers["X-Frame-Options"] == "DENY"
            for part in ("source", "text", "document"):
                answer = browser.get(f"/c/demo/url?url={home}&show={part}")
                assert "<script>alert" not in answer.text
                assert "words of the page {{7*7}}" in answer.words
                assert "//evil.example" in answer.words or part != "source"
            assert '"language": "en"' in browser.get(f"/c/demo/url?url={home}&show=document").words
            for url in (f"{home}nowhere", f"{home}other2"):
                missing = browser.get(f"/c/demo/stored?url={url}")
                assert (missing.status, missing.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
            assert browser.get("/c/demo/stored?url=x").status == 400


def test_documents_as_each_sink_gets_them(project: MakeProject) -> None:
    sinks = (
        "CRAWLSPACE_SINKS = {'mine': {'type': 'sqlite'}, 'log': {'type': 'file'},"
        " 'search': {'type': 'opensearch', 'url': 'http://127.0.0.1:9', 'index': 'x'},"
        " 'solr': {'type': 'solr', 'url': 'http://127.0.0.1:9/solr', 'index': 'x'}}\n"
    )
    with serve(Site({"/": page("Home", text="words of the page"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        (demo.collections / "demo/settings.py").write_text(f"{FAST}{sinks}")
        with served(demo) as browser:
            words = browser.get(f"/c/demo/url?url={server.url('/')}&show=document").words
            for expected in ("embedded sqlite", "log file", '"op": "push"', "search opensearch", "solr solr", '"text_txt_en"'):
                assert expected in words


@pytest.mark.parametrize("path", ["url?url=", "stored?url=http://127.0.0.1:9/"])
def test_without_a_store(project: MakeProject, path: str) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    with served(demo) as browser:
        assert browser.get(f"/c/demo/{path}").status in (200, 503)
