"""The licences of all that is installed with crawlspace and its extras, as a table in docs/licences.md.

python -m tests.licences          # writes it again, out of the metadata of what is installed (make licences)
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.command_line import ROOT

PAGE = ROOT / "docs" / "licences.md"
EXTRAS = ("browser", "article", "mcp")
TABLE = re.compile(r"(?<=<!-- table: licences, from make licences -->\n).*?(?=<!-- end -->)", re.DOTALL)
COPYLEFT = re.compile(r"GPL|MPL|Mozilla|EPL|Eclipse|CDDL|EUPL|OSL|CeCILL", re.IGNORECASE)

_PYTHONS = ("3.11.2", "3.11.9", "3.14.0")
"""Some packages are for old versions of Python alone; 3.11.2 is that of Debian 12."""
_OF_SOME_PYTHONS = {"async-timeout": "Apache-2.0", "backports-zstd": "PSF-2.0"}
"""Licences of packages that the Python of a developer may not need."""
_LONGEST = 60
"""Characters; metadata may have the text of the licence in the place of its name."""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    needed_by: str
    """`crawlspace`, or an extra."""


def packages() -> list[Package]:
    """Return what the requirements and the extras install on Linux, by name; each once, for crawlspace if that needs it."""
    found = {name: Package(name, version, "crawlspace") for name, version in pinned("requirements.txt").items()}
    browser, developers = pinned("requirements-browser.txt"), pinned("requirements-dev.txt")
    for extra in EXTRAS:
        names = browser if extra == "browser" else installed_by(declared_extra(extra))
        versions = browser if extra == "browser" else developers
        for name in names:
            found.setdefault(name, Package(name, versions[name], extra))
    return [found[name] for name in sorted(found)]


@cache
def pinned(file: str) -> dict[str, str]:
    """Return the versions that a file of requirements has for CPython on Linux, by name."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    wanted = (Requirement(line.removesuffix("\\")) for line in lines if "==" in line)
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in wanted if is_installed(one)}


def is_installed(wanted: Requirement, extras: Iterable[str] = ("",)) -> bool:
    """Return whether a requirement applies to CPython on Linux, in one of the versions of Python."""
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "implementation_name": "cpython"}
    named = {**linux, "platform_python_implementation": "CPython"}
    return wanted.marker is None or any(
        wanted.marker.evaluate(
            {**named, "python_full_version": version, "python_version": version.rpartition(".")[0], "extra": extra}
        )
        for version in _PYTHONS
        for extra in extras
    )


def declared_extra(name: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*map(Requirement, project["optional-dependencies"][name])]


def installed_by(wanted: Iterable[Requirement]) -> set[str]:
    """Return the names of what requirements install, with all that these need in turn, by the metadata of what is installed."""
    names: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [*wanted]
    while waiting:
        one = waiting.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key not in seen:
            seen.add(key)
            names.add(key[0])
            needed = [Requirement(text) for text in requires(one.name) or ()]
            waiting += [each for each in needed if is_installed(each, one.extras or ("",))]
    return names


def licence(name: str) -> str:
    """Return the licence of an installed package. Raises PackageNotFoundError."""
    if name in _OF_SOME_PYTHONS:
        return _OF_SOME_PYTHONS[name]
    found = metadata(name)
    expression, text = (" ".join(found.get_all(field) or ()).strip() for field in ("License-Expression", "License"))
    classifiers = [one.rpartition(" :: ")[2] for one in found.get_all("Classifier") or () if one.startswith("License :: ")]
    short = text if text and len(text) <= _LONGEST and "\n" not in text else ""
    return expression or short or " and ".join(classifiers) or "not declared"


def rows() -> Iterator[str]:
    yield "| package | version | licence | needed by |\n|---|---|---|---|\n"
    for one in packages():
        needed_by = one.needed_by if one.needed_by == "crawlspace" else f"`crawlspace[{one.needed_by}]`"
        yield f"| {one.name} | {one.version} | {licence(one.name)} | {needed_by} |\n"


def main() -> int:
    try:
        table = "".join(rows())
    except PackageNotFoundError as error:
        sys.stderr.write(f"the package {error.name} is not installed, so its licence cannot be read: run make licences\n")
        return 1
    PAGE.write_text(TABLE.sub(lambda _: table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
