"""The package as somebody installs it for the add-on, beside modules of their own."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from crawlspace.addon import COMPONENTS, CrawlSpaceRules
from crawlspace.runtime.components.addon_rules import SharedResolver
from tests.command_line import ROOT


def test_a_wheel_holds_the_package_alone(wheel: Path) -> None:
    """Names like `spiders` and `middlewares` are for the modules of whoever installs it."""
    with ZipFile(wheel) as files:
        folders = {name.partition("/")[0] for name in files.namelist()}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"crawlspace"}


def test_what_the_add_on_puts_into_a_project_is_in_the_package() -> None:
    components = [CrawlSpaceRules, SharedResolver, *(component for _, component, _ in COMPONENTS)]
    assert {component.__module__.partition(".")[0] for component in components} == {"crawlspace"}


def test_the_page_of_the_add_on_explains_how_to_install_it_before_it_is_named_in_settings() -> None:
    documented = (ROOT / "docs" / "addon.md").read_text(encoding="utf-8")
    assert "    pip install " in documented.partition("ADDONS = ")[0]
