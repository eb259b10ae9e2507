"""Which pages are rendered by the settings, and the settings of the browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.collection import Collection, load_collection
from crawlspace.config.sites import SiteRendering
from crawlspace.decision import Render
from crawlspace.errors import SettingError
from crawlspace.settings import BrowserSettings
from tests.unit.config.collection_files import settings

APP = {"app.example": {"render": "Always", "render_hosts": "*.cdn.example, api.example:8443", "render_wait_for": " #content "}}


def demo(folder: Path, **own: object) -> Collection:
    return load_collection("demo", settings(folder, **own))


def test_nothing_is_rendered_by_default(collections: Path) -> None:
    found = demo(collections)
    assert not found.renders
    assert found.sites.of("a.example", 443).rendering == SiteRendering()
    assert found.browser == BrowserSettings(
        executable="", pages=4, timeout_s=30.0, max_pages=500, memory_bytes=1536 * 1024 * 1024
    )


def test_a_site_has_rendering_of_its_own(collections: Path) -> None:
    found = demo(collections, CRAWLSPACE_SITES=APP, CRAWLSPACE_RENDER="auto", CRAWLSPACE_RENDER_HOSTS=["static.example"])
    own = found.sites.of("app.example", 443).rendering
    assert (own.mode, own.hosts, own.wait_for) == (Render.ALWAYS, ("*.cdn.example", "api.example:8443"), "#content")
    assert (own.where, own.sets_mode, own.sets_hosts) == ("CRAWLSPACE_SITES['app.example']['render']", True, True)
    matcher = own.load_matcher()
    assert [matcher.match(host, 443) is not None for host in ("x.CDN.example", "cdn.example", "api.example")] == [
        True,
        False,
        False,
    ]
    other = found.sites.of("a.example", 443).rendering
    assert (other.mode, other.hosts, other.where) == (Render.AUTO, ("static.example",), "CRAWLSPACE_RENDER")


def test_a_site_takes_over_what_it_does_not_set(collections: Path) -> None:
    sites = {"a.example": {"render": "never"}, "b.example": {"render_hosts": []}, "c.example": {"delay": 1}}
    found = demo(
        collections,
        CRAWLSPACE_SITES=sites,
        CRAWLSPACE_RENDER="always",
        CRAWLSPACE_RENDER_HOSTS="x.example",
        CRAWLSPACE_RENDER_WAIT_FOR="main",
    )
    got = [found.sites.of(host, 80).rendering for host in sites]
    assert [(one.mode.value, one.hosts, one.wait_for) for one in got] == [
        ("never", ("x.example",), "main"),
        ("always", (), "main"),
        ("always", ("x.example",), "main"),
    ]


RULES = '<Rules><Rule><Path val="/"/><Render mode="{}"/></Rule></Rules>'


@pytest.mark.parametrize(
    ("own", "rule", "renders"),
    [
        ({"CRAWLSPACE_RENDER": "auto"}, "", True),
        ({"CRAWLSPACE_SITES": APP}, "", True),
        ({}, "always", True),
        ({}, "auto", True),
        ({}, "never", False),
        ({"CRAWLSPACE_SITES": {"a.example": {"render": "never"}}}, "", False),
    ],
)
def test_whether_anything_is_rendered(collections: Path, own: dict[str, object], rule: str, renders: bool) -> None:
    if rule:
        (collections / "demo" / "rules.xml").write_text(RULES.format(rule))
    assert demo(collections, **own).renders is renders


def test_pages_are_fetched_again_where_they_are_rendered_otherwise(collections: Path) -> None:
    hashes = [
        demo(collections, **own).content_hash
        for own in (
            {},
            {"CRAWLSPACE_RENDER_HOSTS": ["x.example"]},  # nothing is rendered: it has no effect
            {"CRAWLSPACE_RENDER": "auto"},
            {"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_RENDER_HOSTS": ["x.example"]},
            {"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_RENDER_WAIT_FOR": "main"},
            {"CRAWLSPACE_SITES": APP},
        )
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


WRONG: list[tuple[dict[str, object], str]] = [
    ({"CRAWLSPACE_RENDER": "yes"}, "CRAWLSPACE_RENDER is 'yes'; it must be one of always, auto, never"),
    ({"CRAWLSPACE_RENDER": True}, "CRAWLSPACE_RENDER is True; it must be one of always, auto, never"),
    ({"CRAWLSPACE_RENDER_HOSTS": 3}, "CRAWLSPACE_RENDER_HOSTS is 3; it must be a list of words"),
    ({"CRAWLSPACE_RENDER_HOSTS": ["a b"]}, "CRAWLSPACE_RENDER_HOSTS has 'a b'; it must hold hosts"),
    ({"CRAWLSPACE_RENDER_HOSTS": ["http://a/"]}, "CRAWLSPACE_RENDER_HOSTS has 'http://a/': "),
    ({"CRAWLSPACE_RENDER_WAIT_FOR": 3}, "CRAWLSPACE_RENDER_WAIT_FOR is 3; it must be a text"),
    ({"CRAWLSPACE_RENDER_WAIT_FOR": "p["}, "CRAWLSPACE_RENDER_WAIT_FOR is 'p[', which is no CSS selector: "),
    ({"CRAWLSPACE_SITES": {"a": {"render": None}}}, "CRAWLSPACE_SITES['a']['render'] is None; it must be one of always,"),
    ({"CRAWLSPACE_SITES": {"a": {"render_hosts": ["x:y"]}}}, "CRAWLSPACE_SITES['a']['render_hosts'] has 'x:y': "),
    ({"CRAWLSPACE_SITES": {"a": {"render_wait_for": ">"}}}, "CRAWLSPACE_SITES['a']['render_wait_for'] is '>', which is no"),
    ({"CRAWLSPACE_BROWSER": 3}, "CRAWLSPACE_BROWSER is 3; it must be a text"),
    ({"CRAWLSPACE_BROWSER_PAGES": 0}, "CRAWLSPACE_BROWSER_PAGES is 0; it must be from 1 to 64"),
    ({"CRAWLSPACE_BROWSER_TIMEOUT": "0s"}, "CRAWLSPACE_BROWSER_TIMEOUT is '0s'; it must be at least 1 s"),
    ({"CRAWLSPACE_BROWSER_MAX_PAGES": 0}, "CRAWLSPACE_BROWSER_MAX_PAGES is 0; it must be at least 1"),
    ({"CRAWLSPACE_BROWSER_MEMORY": "1GB"}, "CRAWLSPACE_BROWSER_MEMORY is '1GB'; it must be a whole number at least 268435456"),
]


@pytest.mark.parametrize(("own", "sentence"), WRONG)
def test_wrong_settings_of_rendering(collections: Path, own: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        demo(collections, **own)
    assert sentence in str(caught.value)
