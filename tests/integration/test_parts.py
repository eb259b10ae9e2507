"""Parts come and go with the document of their page: sections, elements of rules, several items of a spider."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, collection, make_due, shared
from tests.sites import Answer, Site, html, page, serve, status

PARTS = "CRAWLSPACE_PARTS = 'headings'\n"
SINKS = "CRAWLSPACE_SINKS = {'local': {'type': 'sqlite'}, 'log': {'type': 'file'}}\n"


def manual(*sections: str, more: str = "") -> Answer:
    body = "".join(f"<h2 id={name.lower()}>{name}</h2><p>All about {name.lower()}.</p>" for name in sections)
    return html(f"<title>Manual</title><h1>Manual</h1>{body}{more}<a href=/other>o</a>")


def documents(demo: Project, name: str = "demo") -> dict[str, dict[str, Any]]:
    """The documents in the index by title, as an export has them."""
    lines = demo.scrapy("export", name, "-O", "-:jsonl").succeeded().stdout.splitlines()
    return {(one := json.loads(line))["title"]: one for line in lines}


def parts(demo: Project, title: str = "Manual") -> dict[str, str]:
    return {part["key"]: part["text"] for part in documents(demo)[title].get("parts", [])}


def sent(demo: Project, *, after: int = 0) -> list[tuple[str, str, list[str]]]:
    """The orders in the log: operation, path, and the parts of its document."""
    lines = (demo.data / "demo" / "log.jsonl").read_text(encoding="utf-8").splitlines()[after:]
    return sorted(
        (one["op"], re.sub(r"http://[^/]*", "", one["url"]), [part["key"] for part in one.get("document", {}).get("parts", [])])
        for one in map(json.loads, lines)
    )


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_parts_of_a_page_that_changes_are_replaced_and_no_others(project: MakeProject, *, is_shared: bool) -> None:
    site = Site({"/": manual("Install", "Use"), "/other": page("Other", text="other"), "/robots.txt": status(404)})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + PARTS + SINKS + "CRAWLSPACE_MARKDOWN = True\n"))
        if is_shared:
            shared(demo)
        demo.crawl("demo").succeeded()
        assert parts(demo) == {"install": "All about install.", "use": "All about use.\n\no"}
        of_manual = documents(demo)["Manual"]
        assert of_manual["markdown"].startswith("# Manual\n\n## Install\n\nAll about install.\n")
        assert of_manual["parts"][0] == {
            "id": of_manual["parts"][0]["id"],
            "key": "install",
            "position": 0,
            "url": server.url("/#install"),
            "title": "Install",
            "headings": ["Manual", "Install"],
            "text": "All about install.",
            "digest": of_manual["parts"][0]["digest"],
            "fields": {},
        }
        before = len(sent(demo))
        assert sent(demo)[0] == ("push", "/", ["install", "use"])

        site["/"] = manual("Install", "Upgrade")
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert sent(demo, after=before) == [("push", "/", ["install", "upgrade"])], "the other page is as it was"
        assert parts(demo).keys() == {"install", "upgrade"}
        again = documents(demo)["Manual"]["parts"]
        assert (again[0]["id"], again[0]["digest"]) == (of_manual["parts"][0]["id"], of_manual["parts"][0]["digest"])

        site["/"] = html(manual("Install", "Upgrade").body.decode().replace("id=upgrade", "id=newer"))
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert sent(demo, after=before + 1) == [("push", "/", ["install", "newer"])], "an anchor is part of the document"

        site["/"] = status(410)
        for _ in range(3):
            make_due(demo)
            demo.crawl("demo")
        assert sent(demo, after=before + 2) == [("delete", "/", [])]
    assert "no hits" in demo.scrapy("search", "demo", "install").succeeded().stdout


def test_pages_with_the_same_text_and_other_parts_are_different_documents(project: MakeProject) -> None:
    same = "<title>Same</title><a href=/b></a><a href=/c></a><h2 id={}>Same</h2><p>The same text"
    with serve(Site({"/": html(same.format("a")), "/b": html(same.format("b")), "/c": html(same.format("a"))})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + PARTS))
        demo.crawl("demo").succeeded()
        lines = demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout.splitlines()
        found = {one["url"]: ([part["key"] for part in one["parts"]], one["duplicates"]) for one in map(json.loads, lines)}
        assert found == {server.url("/"): (["a"], [server.url("/c")]), server.url("/b"): (["b"], [])}


RULES = """
[[part]]
where = "{url}jobs"
css = ".job"
key = "@id"
title = "h3"
"""
JOBS = "<title>Jobs</title><div class=job id=w><h3>Welder</h3>Welds.</div><div class=job id=f><h3>Fitter</h3>Fits.</div>"


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_change_of_rules_changes_parts_without_a_request(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site({"/": manual("Install"), "/other": page("Other", links=["/jobs"]), "/jobs": html(JOBS)})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED) | {"demo/extract.toml": RULES.format(url=server.url("/"))})
        if is_shared:
            shared(demo)
        demo.crawl("demo").succeeded()
        assert parts(demo, "Jobs") == {"w": "Welder\n\nWelds.", "f": "Fitter\n\nFits."}
        assert parts(demo) == {}
        shown = demo.scrapy("search", "demo", "welds").succeeded().stdout
        assert f"    - Welder\n      {server.url('/jobs#w')}\n      Welder [Welds].\n" in shown
        asked = len(server.paths())
        file = demo.collections / "demo" / "extract.toml"
        file.write_text(f'[[part]]\nwhere = "{server.url("/jobs")}"\ncss = ".job"\nkey = "h3"\n', encoding="utf-8")
        planned = json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)["extraction"]
        assert planned["fields"] == {
            "parts": {"changed": 1, "examples": [{"url": server.url("/jobs"), "before": "2 parts", "after": "2 parts"}]}
        }
        shown = demo.scrapy("extract", "demo", server.url("/jobs")).succeeded().stdout
        assert "  finds 2 parts: Welder | Fitter\n" in shown
        assert "parts        2\n  Welder:  (14 characters)\n" in shown
        demo.write({"demo/settings.py": ARCHIVED + PARTS})
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
        assert parts(demo, "Jobs").keys() == {"Welder", "Fitter"}
        assert parts(demo) == {"install": "All about install.\n\no"}
        file.unlink()
        demo.write({"demo/settings.py": ARCHIVED})
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
        assert len(server.paths()) == asked
    assert all("parts" not in one and "markdown" not in one for one in documents(demo).values())


OWN = ("-s", "SPIDER_MODULES=tests.integration.own_spiders")


def test_several_items_of_a_spider_are_a_page_and_its_parts(project: MakeProject) -> None:
    lamps = (
        "<title>{}</title><ul><li id=a>A<li id=b>B<li id=a>Again</ul><a href=/alone>a</a><a href=/none>n</a><a href=/two>t</a>"
    )
    site = {"/": html(lamps.format("Lamps")), **{path: html(lamps.format(path)) for path in ("/alone", "/none", "/two")}}
    with serve(Site(site)) as server:
        made = project({"lamps/start_urls.txt": server.url("/"), "lamps/settings.py": ARCHIVED + PARTS})
        crawled = made.crawl("lamps", *OWN)
    found = documents(made, "lamps")
    assert found.keys() == {"Own Lamps", "/alone"}
    for title in found:
        assert [(part["key"], part["title"], part["text"]) for part in found[title]["parts"]] == [
            ("a", "A", "a lamp"),
            ("b", "B", "a lamp"),
            ("a~2", "Again", "a lamp"),
            ("given", "", "given"),
        ]
    first = found["/alone"]["parts"][0]
    assert (first["fields"], first["url"]) == ({"price": "3"}, f"{found['/alone']['url']}#a")
    assert "of several items all but one have a key, for they are parts of the page" in crawled.stderr
