"""The steps of a log-in in the browser: what is filled in and clicked on its pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crawlspace.config.logins.values import check_keys, check_selector, selector, several, texts
from crawlspace.errors import SettingError

EXAMPLE = (
    '{"type": "browser", "url": "https://wiki.example.com/login",'
    ' "steps": [{"fill": {"#user": "crawler", "#password": "env:WIKI_PASSWORD"}, "click": "button[type=submit]"}]}'
)
KEYS = ("url", "steps", "hosts", "check", "logged_out")
_STEP_KEYS = ("fill", "click", "wait_for")
_STEP_EXAMPLE = "{'fill': {'#user': 'crawler'}, 'click': 'button[type=submit]', 'wait_for': '#password'}"


@dataclass(frozen=True, slots=True)
class BrowserStep:
    """What is done on a page, in this order; what is empty is left out."""

    fill: Mapping[str, str] = field(repr=False)
    """By CSS selectors of fields; values may be references."""
    click: str = ""
    """A CSS selector."""
    wait_for: str = ""
    """The same of what shows that the step has worked."""


def read_steps(where: str, value: object) -> tuple[BrowserStep, ...]:
    """Return the steps of a log-in. Raises SettingError."""
    steps = several(where, value, f"dicts, as in [{_STEP_EXAMPLE}]")
    if not steps:
        raise SettingError(f"{where} has no step; a log-in of type 'browser' is like {EXAMPLE}")
    return tuple(_step(f"{where}[{number}]", step) for number, step in enumerate(steps))


def _step(where: str, step: object) -> BrowserStep:
    if not isinstance(step, Mapping):
        raise SettingError(f"{where} must be a dict, as in {_STEP_EXAMPLE}")
    check_keys(where, step, _STEP_KEYS, of="a step")
    fill = texts(f"{where}['fill']", step.get("fill"), "{'#user': 'crawler', '#password': 'env:WIKI_PASSWORD'}")
    for name in fill:
        check_selector(f"{where}['fill'] has", name)
    found = BrowserStep(fill, selector(where, step, "click"), selector(where, step, "wait_for"))
    if not (found.fill or found.click or found.wait_for):
        raise SettingError(f"{where} does nothing; a step has any of 'fill', 'click' and 'wait_for', as in {_STEP_EXAMPLE}")
    return found
