"""Read which pages are rendered in a browser, and the settings of the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cssselect import HTMLTranslator, SelectorError

from crawlspace.decision import Render
from crawlspace.errors import RuleFileError, SettingError
from crawlspace.parsing import duration, integer, one_of, words
from crawlspace.rules.crawl_rules import DomainRule, parse_crawl_rules
from crawlspace.rules.domain import DomainMatcher
from crawlspace.text import quoted

SITE_KEYS = ("render", "render_hosts", "render_wait_for")
"""In CRAWLSPACE_SITES."""
RENDER = "CRAWLSPACE_RENDER"
RENDER_HOSTS = "CRAWLSPACE_RENDER_HOSTS"
WAIT_FOR = "CRAWLSPACE_RENDER_WAIT_FOR"
_SMALLEST_BROWSER_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SiteRendering:
    """How pages of a site are rendered, else those of the collection."""

    mode: Render = Render.NEVER
    hosts: tuple[str, ...] = ()
    """Patterns of hosts, as in domain rules, that pages may load scripts and data from, besides what the domain rules admit."""
    wait_for: str = ""
    """CSS selector that is waited for instead of an idle network."""
    where: str = RENDER
    """The setting that `mode` is from, for messages."""
    sets_mode: bool = False
    """Whether the site's own entry sets `mode`."""
    sets_hosts: bool = False
    """Whether the site's own entry sets `hosts`."""

    def load_matcher(self) -> DomainMatcher:
        """Return what matches the hosts that pages may load from."""
        return DomainMatcher(_rules(self.hosts), case_sensitive=False)


NO_RENDERING = SiteRendering()


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """The browser that renders pages."""

    executable: str
    """Path or name of a Chromium; empty: it is found by itself."""
    pages: int
    """Pages rendered at a time."""
    timeout_s: float
    """For a page."""
    max_pages: int
    """Pages after which the browser is replaced."""
    memory_bytes: int
    """Memory of the browser at which it is replaced."""


def read_browser(settings: Mapping[str, object]) -> BrowserSettings:
    """Return the settings of the browser. Raises SettingError."""
    executable = settings["CRAWLSPACE_BROWSER"]
    if not isinstance(executable, str):
        raise SettingError(
            f'CRAWLSPACE_BROWSER is {quoted(executable)}; it must be the path or name of a Chromium, or "" to find one'
        )
    return BrowserSettings(
        executable=executable.strip(),
        pages=integer("CRAWLSPACE_BROWSER_PAGES", settings["CRAWLSPACE_BROWSER_PAGES"], low=1, high=64),
        timeout_s=duration("CRAWLSPACE_BROWSER_TIMEOUT", settings["CRAWLSPACE_BROWSER_TIMEOUT"], low=1),
        max_pages=integer("CRAWLSPACE_BROWSER_MAX_PAGES", settings["CRAWLSPACE_BROWSER_MAX_PAGES"], low=1),
        memory_bytes=integer("CRAWLSPACE_BROWSER_MEMORY", settings["CRAWLSPACE_BROWSER_MEMORY"], low=_SMALLEST_BROWSER_BYTES),
    )


def read_rendering(settings: Mapping[str, object]) -> SiteRendering:
    """Return how pages of the collection are rendered. Raises SettingError."""
    return SiteRendering(
        mode=Render(one_of(RENDER, settings[RENDER], tuple(Render))),
        hosts=_hosts(RENDER_HOSTS, settings[RENDER_HOSTS]),
        wait_for=_selector(WAIT_FOR, settings[WAIT_FOR]),
    )


def read_site_rendering(where: str, values: Mapping[object, object], default: SiteRendering) -> SiteRendering:
    """Return how pages of a site are rendered: by its entry of CRAWLSPACE_SITES, else as the collection's. Raises SettingError."""
    mode, hosts, wait_for = SITE_KEYS
    sets_mode = mode in values
    of_mode = f"{where}['{mode}']"
    return SiteRendering(
        mode=Render(one_of(of_mode, values[mode], tuple(Render))) if sets_mode else default.mode,
        hosts=_hosts(f"{where}['{hosts}']", values[hosts]) if hosts in values else default.hosts,
        wait_for=_selector(f"{where}['{wait_for}']", values[wait_for]) if wait_for in values else default.wait_for,
        where=of_mode if sets_mode else default.where,
        sets_mode=sets_mode,
        sets_hosts=hosts in values,
    )


def _hosts(name: str, value: object) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(words(name, value, separators=", |")))
    wrong = next((word for word in found if len(word.split()) > 1), None)
    if wrong is not None:
        raise SettingError(f'{name} has {quoted(wrong)}; it must hold hosts, as in ["cdn.example.net", "*.example.net"]')
    try:
        _rules(found)
    except RuleFileError as error:
        first = error.mistakes[0]
        raise SettingError(f"{name} has {quoted(first.text.split(maxsplit=2)[-1])}: {first.message}") from error
    return found


def _selector(name: str, value: object) -> str:
    """Return a CSS selector, or "". Raises SettingError."""
    if not isinstance(value, str):
        raise SettingError(f'{name} is {quoted(value)}; it must be a CSS selector, as in "#content", or ""')
    selector = value.strip()
    try:
        if selector:
            HTMLTranslator().css_to_xpath(selector)
    except SelectorError as error:
        raise SettingError(f"{name} is {quoted(selector)}, which is no CSS selector: {error}") from error
    return selector


def _rules(hosts: tuple[str, ...]) -> Sequence[DomainRule]:
    return parse_crawl_rules("".join(f"allow domain {host}\n" for host in hosts), file=RENDER_HOSTS).domain


__all__ = [
    "NO_RENDERING",
    "BrowserSettings",
    "Render",
    "SiteRendering",
    "read_browser",
    "read_rendering",
    "read_site_rendering",
]
