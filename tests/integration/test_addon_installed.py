"""The package as somebody installs it for the add-on, beside modules of their own."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch

from crawlspace.addon import COMPONENTS, CrawlSpaceRules
from crawlspace.runtime.addon_rules import SharedResolver
from tests.command_line import ROOT

PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]["find"]


def test_a_wheel_holds_the_package_alone() -> None:
    """Names like `spiders` and `middlewares` are for the modules of whoever installs it."""
    assert list(PACKAGES) == ["include"]
    folders = {path.parent.name for path in ROOT.glob("*/*.py")}
    assert {name for name in folders if any(fnmatch(name, pattern) for pattern in PACKAGES["include"])} == {"crawlspace"}


def test_what_the_add_on_puts_into_a_project_is_in_the_package() -> None:
    components = [CrawlSpaceRules, SharedResolver, *(component for _, component, _ in COMPONENTS)]
    assert {component.__module__.partition(".")[0] for component in components} == {"crawlspace"}


def test_the_page_of_the_add_on_says_how_to_install_it_before_it_is_named_in_settings() -> None:
    documented = (ROOT / "docs" / "addon.md").read_text(encoding="utf-8")
    assert "    pip install " in documented.partition("ADDONS = ")[0]
