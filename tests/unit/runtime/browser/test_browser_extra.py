"""What a crawl says before it starts, where it needs the browser and that is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.machinery import ModuleSpec

import pytest

from crawlspace.config.access import SiteAccess, read_site_access
from crawlspace.errors import ConfigError
from crawlspace.runtime.browser import extra
from crawlspace.settings import BrowserSettings

SETTINGS = BrowserSettings(executable="", pages=1, timeout_s=1.0, max_pages=1, memory_bytes=1 << 30)
FORM: Mapping[str, object] = {"type": "form", "url": "https://wiki.example.com/login", "fields": {"user": "me"}}
BROWSER: Mapping[str, object] = {"type": "browser", "url": "https://wiki.example.com/login", "steps": [{"click": "#go"}]}


def access(login: Mapping[str, object]) -> SiteAccess:
    found = read_site_access("X", "wiki.example.com", {"login": login})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        (set(), "playwright and psutil are not installed"),
        ({"playwright"}, "psutil is not installed"),
    ],
)
def test_without_the_extra_a_log_in_in_the_browser_is_named(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], missing: str
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda name: ModuleSpec(name, None) if name in installed else None)
    extra.check_browser([access(FORM)], SETTINGS)
    with pytest.raises(ConfigError) as raised:
        extra.check_browser([access(FORM), access(BROWSER)], SETTINGS)
    assert str(raised.value) == (
        f"CRAWLSPACE_SITES['wiki.example.com'] has a log-in in the browser, and {missing}: run `make browser`, or install"
        " crawlspace[browser]"
    )
    with pytest.raises(ConfigError, match=r"^pages are to be rendered in a browser \(CRAWLSPACE_RENDER"):
        extra.check_extra()
