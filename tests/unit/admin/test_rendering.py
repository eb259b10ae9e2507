"""Whether a page is rendered, and why, as `explain` says it; what rendering has cost, as `status` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.admin.explain import Explanation, Question, explain
from crawlspace.admin.rendering import RenderingReport, counts_sentence, rendering_report
from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.crawl.rendering import RenderCounts, Rendering
from crawlspace.crawl.startup import build_space
from crawlspace.runtime.components.explanation_text import decision_lines
from crawlspace.state.render_learning import Rendered
from tests.contract.memory.store import MemoryStore
from tests.unit.config.conftest import settings

HOME = "https://app.example"
RULES = """\
<Rules>
  <Rule><Path val="/live/"/><Render/></Rule>
  <Rule><Path val="/live/print/"/><Render mode="never"/></Rule>
</Rules>
"""
SITES: dict[str, object] = {"CRAWLSPACE_SITES": {"app.example": {"render": "auto", "render_hosts": ["cdn.example"]}}}


def ask(folder: Path, url: str, store: MemoryStore | None, own: dict[str, object] = SITES, *, rules: str = RULES) -> Explanation:
    (folder / "demo").mkdir(exist_ok=True)
    (folder / "demo" / "start_urls.txt").write_text("https://app.example/\n")
    (folder / "demo" / "crawl.rules").write_text("forbid domain no.example\n")
    (folder / "demo" / "rules.xml").write_text(rules)
    collection = load_collection("demo", settings(folder, **own))
    return explain(Question(url), collection, space=build_space(collection), store=store, clock=FakeClock())


def learned(folder: Path) -> MemoryStore:
    """Two of six pages in /shop/ have gained, none of five in /empty/; two hosts were refused."""
    store = MemoryStore()
    ask(folder, HOME, None)
    collection = load_collection("demo", settings(folder, **SITES))
    rendering = Rendering(build_space(collection), collection.sites, store, clock=FakeClock())
    refused = {"cdn.example": "by then", "api.example": "robots.txt forbids it"}
    for folder_name, gained, number in (("shop", 2, 6), ("empty", 0, 5)):
        for page in range(number):
            url = f"{HOME}/{folder_name}/{page}"
            rendering.decide(url, needs_browser=True)
            words = 500 if page < gained else 0
            rendering.rendered(url, Rendered(0, words, 0, 0, seconds=0.5, requests=3, refused=refused))
    rendering.failed(f"{HOME}/shop/9", "time-out")
    rendering.keep(is_last=True)
    return store


def lines(answer: Explanation) -> str:
    """The lines from that about rendering on, white space made one blank."""
    text = " ".join("\n".join(decision_lines(answer)).split())
    return text[text.index(" rendered ") + 1 :] if " rendered " in text else ""


EXPLAINED = [
    # URL, what is said
    ("/live/x", "rendered each time (rules.xml:2: Path /live/: Render always)"),
    ("/live/print/x", "rendered no (rules.xml:3: Path /live/print/: Render never)"),
    (
        "/x",
        "rendered where it is needed (CRAWLSPACE_SITES['app.example']['render'] is auto) of app.example:443/… no page has been",
    ),
    (
        "/shop/x",
        "of app.example:443/shop/… 2 of 6 pages rendered so far gained text or links: pages that look like a script shell are",
    ),
    ("/empty/x", "of app.example:443/empty/… 0 of 5 pages rendered so far gained text or links: no page is rendered, because"),
]


@pytest.mark.parametrize(("path", "said"), EXPLAINED)
def test_explain_says_whether_a_page_is_rendered(tmp_path: Path, path: str, said: str) -> None:
    assert said in lines(ask(tmp_path, f"{HOME}{path}", learned(tmp_path)))


def test_explain_names_the_setting_of_the_collection(tmp_path: Path) -> None:
    assert "rendered each time (CRAWLSPACE_RENDER is always)" in lines(ask(tmp_path, HOME, None, {"CRAWLSPACE_RENDER": "always"}))


ROUTED: dict[str, object] = {"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_HASH_ROUTES": True}
LEFT_OFF = "folded from https://app.example/#/about (its route is left off: CRAWLSPACE_HASH_ROUTES has it followed, where"
ROUTES: list[tuple[dict[str, object], str, str, str]] = [
    # settings, URL, URL as it is known, what is said
    (ROUTED, "/#/about", "/#/about", "rendered each time, as a route behind # (CRAWLSPACE_HASH_ROUTES)"),
    (ROUTED, "/#top", "/", "rendered where it is needed (CRAWLSPACE_RENDER is auto)"),
    (ROUTED, "/live/print/x#/a", "/live/print/x", "rendered no (rules.xml:3: Path /live/print/: Render never)"),
    (SITES, "/#/about", "/", LEFT_OFF),
    ({}, "/#/about", "/", LEFT_OFF),
]


@pytest.mark.parametrize(("own", "path", "known", "said"), ROUTES)
def test_explain_says_what_becomes_of_a_route(tmp_path: Path, own: dict[str, object], path: str, known: str, said: str) -> None:
    answer = ask(tmp_path, f"{HOME}{path}", learned(tmp_path), own)
    assert answer.url is not None
    assert answer.url.text == f"{HOME}{known}"
    assert said in " ".join("\n".join(decision_lines(answer)).split())
    rendered = answer.as_json()["rendering"]
    assert isinstance(rendered, dict)
    assert (rendered["mode"] == "always") is ("#" in known)


def test_hosts_that_pages_must_not_load_from_are_named_until_they_are_admitted(tmp_path: Path) -> None:
    answer = ask(tmp_path, f"{HOME}/x", learned(tmp_path))
    assert "not loaded api.example: robots.txt forbids it by pages of this site; 'render_hosts' in" in lines(answer)
    assert "cdn.example" not in lines(answer)
    assert "not loaded" not in lines(ask(tmp_path, "https://other.example/", learned(tmp_path)))


def test_nothing_is_said_where_nothing_is_rendered(tmp_path: Path) -> None:
    answer = ask(tmp_path, HOME, learned(tmp_path), {}, rules="<Rules/>")
    assert (answer.rendering, lines(answer)) == (None, "")
    refused = ask(tmp_path, "https://no.example/", None)
    assert refused.rendering is None


def test_json(tmp_path: Path) -> None:
    store = learned(tmp_path)
    assert ask(tmp_path, f"{HOME}/shop/x", store).as_json()["rendering"] == {
        "mode": "auto",
        "setting": "CRAWLSPACE_SITES['app.example']['render']",
        "rule": None,
        "learned": {"group": "app.example:443/shop/", "needs": "shells", "rendered": 6, "gained": 2},
        "refused": [{"host": "api.example", "why": "robots.txt forbids it"}],
    }
    by_rule = ask(tmp_path, f"{HOME}/live/x", None).as_json()["rendering"]
    assert by_rule == {"mode": "always", "setting": None, "rule": "rules.xml:2", "learned": None, "refused": []}


def test_what_rendering_has_cost(tmp_path: Path) -> None:
    found = rendering_report(learned(tmp_path))
    assert found.as_json() == {
        "pages": 11,
        "samples": 0,
        "gained": 2,
        "failed": 1,
        "requests": 33,
        "seconds": 5.5,
        "groups_needing_it": 1,
    }
    assert counts_sentence(found.counts) == "11 pages rendered (2 gained text or links), 1 failed; 33 requests, 6 s"
    assert (
        counts_sentence(RenderCounts(pages=1, checks=1, requests=1, seconds=1_234.4))
        == "1 page rendered (1 as samples; 0 gained text or links); 1 request, 1,234 s"
    )
    assert not RenderingReport(RenderCounts(), 0)
