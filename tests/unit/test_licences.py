"""docs/licences.md has exactly what the requirements install, and explains each copyleft licence."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from tests.conftest import assert_same
from tests.licences import COPYLEFT, PAGE, TABLE, is_installed, licence, packages, pinned


def table(markdown: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown.splitlines()[2:]]


def listed() -> list[list[str]]:
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return table(found[0])


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("aiohttp==3", True),
        ("async-timeout==5 ; python_full_version < '3.11.3'", True),
        ("backports-zstd==1 ; python_full_version < '3.14'", True),
        ("tomli==2 ; python_version < '3.11'", False),
        ("colorama==0.4 ; sys_platform == 'win32'", False),
        ("brotlicffi==1 ; implementation_name == 'pypy'", False),
        ("pycparser==3 ; implementation_name != 'PyPy'", True),
        ("cssselect2==1 ; extra == 'css'", False),
    ],
)
def test_what_is_installed(requirement: str, *, expected: bool) -> None:
    assert is_installed(Requirement(requirement)) is expected


def test_the_page_has_the_packages_and_versions_of_the_requirements() -> None:
    rows = [(name, version, needed_by.strip("`")) for name, version, _, needed_by in listed()]
    named = {"crawlspace": "crawlspace"}
    expected = [(one.name, one.version, named.get(one.needed_by, f"crawlspace[{one.needed_by}]")) for one in packages()]
    assert rows == expected, "make licences writes the page again"
    of_users = [(name, version) for name, version, needed_by in rows if needed_by == "crawlspace"]
    assert_same(of_users, pinned("requirements.txt").items())


def test_licences_are_those_that_packages_declare() -> None:
    """Of those of the extra `browser`, which the tests run without, the page alone knows."""
    undeclared = {one.name for one in packages() if one.needed_by == "browser"}
    rows = {name: named for name, _, named, _ in listed()}
    assert {name: named for name, named in rows.items() if name not in undeclared and licence(name) != named} == {}


def test_each_copyleft_licence_is_explained() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Copyleft")[2].partition("## All packages")[0]
    explained = table("\n".join(line for line in section.splitlines() if line.startswith("|")))
    assert_same(
        ((name, named) for name, named, _ in explained),
        ((name, named) for name, _, named, _ in listed() if COPYLEFT.search(named)),
    )
    assert "not declared" not in {named for _, _, named, _ in listed()}
