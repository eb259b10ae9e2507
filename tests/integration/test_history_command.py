"""`scrapy history`: what became of a URL, with the rules of the time."""

from __future__ import annotations

import json

import pytest

from crawlspace.crawl.rule_changes.rules_in_force import FOLDER, MOST_BYTES, kept_rules
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, collection
from tests.sites import Site, page, serve


@pytest.fixture
def crawled(project: MakeProject) -> tuple[Project, str]:
    """A collection whose page /a came, was ruled out, came back when the rules were loosened, and was gone in the end."""
    site = Site({"/": page("Home", links=["/a"]), "/a": page("A", text="words of a")})
    with serve(site) as server:
        url = server.url("/a")
        demo = project(collection(server.url("/"), settings=FAST))
        demo.crawl("demo").succeeded()
        demo.write({"demo/crawl.rules": f"forbid prefix {url}\nallow domain 127.0.0.1\n"})
        demo.crawl("demo").succeeded()
        demo.write({"demo/crawl.rules": "# no rule\nallow domain 127.0.0.1\n", "demo/settings.py": FAST + "DEPTH_LIMIT = 5\n"})
        demo.crawl("demo").succeeded()
        del site["/a"]
        demo.scrapy("recrawl", "demo", url).succeeded()
        demo.crawl("demo").succeeded()
    return demo, url


def test_history(crawled: tuple[Project, str]) -> None:
    demo, url = crawled
    done = demo.scrapy("history", "demo", url, "--json").succeeded()
    found = json.loads(done.stdout)
    assert [(event["what"], event["status"], event["in_index"]) for event in found["events"]] == [
        ("fetched: 200, new document: its document came into the index", 200, True),
        ("moved by a change of the rules (760): its document left the index", 760, False),
        ("moved by a change of the rules (pending again)", None, False),
        ("fetched: 200, new document: its document came into the index", 200, True),
        ("forgotten (404): its document left the index", 404, False),
    ]
    rules = [event["rules"] for event in found["events"]]
    assert [(one["admitted"], one["reason"], one["rule"], one["other_settings"]) for one in rules] == [
        (True, "admitted", None, True),
        (False, "prefix", "crawl.rules:1", True),
        (True, "admitted", "crawl.rules:2", False),
        (True, "admitted", "crawl.rules:2", False),
        (True, "admitted", "crawl.rules:2", False),
    ]
    assert (found["state"], found["status"], found["indexed"]) == (None, None, False), "nothing links to it, so it was forgotten"
    text = demo.scrapy("history", "demo", url).succeeded().stdout
    assert f"refused: prefix by crawl.rules:1 (forbid prefix {url}); settings.py was another one" in " ".join(text.split())
    assert "demo does not know it any more" in text
    home = demo.scrapy("history", "demo", url.removesuffix("a")).succeeded().stdout
    assert "done (200), in the index" in home


def test_rules_are_kept_once_and_without_settings_and_large_files(crawled: tuple[Project, str]) -> None:
    demo, url = crawled
    kept = kept_rules(demo.data / "demo")
    assert [sorted(one.texts) for one in kept] == [["crawl.rules", "start_urls.txt"]] * 3
    assert [sorted(one.digests) for one in kept][-1] == ["crawl.rules", "settings.py", "start_urls.txt"]
    demo.write({"demo/crawl.rules": "#" * (MOST_BYTES + 1) + "\nallow domain 127.0.0.1\n"})
    demo.crawl("demo")
    assert kept_rules(demo.data / "demo")[-1].incomplete == ["crawl.rules"]
    (demo.data / "demo" / FOLDER / "0000000001-000001.json.gz").write_bytes(b"damaged")
    assert "forgotten (404)" in demo.scrapy("history", "demo", url).succeeded().stdout


def test_what_is_not_known(crawled: tuple[Project, str], project: MakeProject) -> None:
    demo, url = crawled
    done = demo.scrapy("history", "demo", f"{url}/unknown").succeeded()
    assert "demo does not know this URL" in done.stdout
    assert demo.scrapy("history", "demo").returncode == 2
    assert "is not a valid URL" in demo.scrapy("history", "demo", "http://").stderr


def test_a_plan_as_a_file_shows_what_has_changed_in_the_rules(crawled: tuple[Project, str]) -> None:
    demo, url = crawled
    file = demo.data / "plan.html"
    home = url.removesuffix("a")
    demo.write({"demo/crawl.rules": f"# <b>no rule</b>\nforbid prefix {home}x\nallow domain 127.0.0.1\n"})
    demo.scrapy("plan", "demo", "--html", str(file)).succeeded()
    text = file.read_text(encoding="utf-8")
    assert "crawl.rules has changed" in text
    assert f"<ins>+forbid prefix {home}x</ins>" in text
    assert "&lt;b&gt;no rule" in text
    assert "settings.py has changed" not in text
    assert [word for word in ("src=", "<link", "<script", "href=") if word in text] == [], "it needs no other file"
    unwritable = demo.scrapy("plan", "demo", "--html", str(demo.data / "missing" / "plan.html"))
    assert (unwritable.returncode, "cannot be written" in unwritable.stderr, "Traceback" in unwritable.stderr) == (1, True, False)
