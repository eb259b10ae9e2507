"""What is published: the wheel and the sdist, of two clean clones alike, with what belongs into them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from crawlspace import __version__
from tests.command_line import ROOT
from tests.conftest import assert_same
from tests.notifications import LONGEST_WAIT_S

pytestmark = pytest.mark.full

WHEEL = f"crawlspace-{__version__}-py3-none-any.whl"
SDIST = f"crawlspace-{__version__}.tar.gz"


def run(command: Sequence[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def built(folder: Path, *, source: Path) -> Path:
    """Build both out of a folder, as `make dist` does, and return where they are."""
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], source)
    assert_same((path.name for path in folder.iterdir()), [WHEEL, SDIST])
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist of a clean clone."""
    folder = tmp_path_factory.mktemp("first")
    run(["git", "clone", "--quiet", str(ROOT), "source"], folder)
    return built(folder / "dist", source=folder / "source")


def names_in(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as opened:
        return [member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()]


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as opened:
        return BytesParser().parsebytes(opened.read(f"crawlspace-{__version__}.dist-info/METADATA"))


def test_a_second_clean_clone_gives_the_same_bytes(published: Path, tmp_path: Path) -> None:
    run(["git", "clone", "--quiet", str(ROOT), "elsewhere"], tmp_path)
    for path in (tmp_path / "elsewhere").rglob("*.py"):
        path.chmod(0o600)  # as another umask would have it
    second = built(tmp_path / "dist", source=tmp_path / "elsewhere")
    assert [name for name in (WHEEL, SDIST) if (published / name).read_bytes() != (second / name).read_bytes()] == []


def test_the_wheel_of_the_sdist_is_the_same(published: Path, tmp_path: Path) -> None:
    with tarfile.open(published / SDIST) as opened:
        opened.extractall(tmp_path, filter="data")
    run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], tmp_path / SDIST.removesuffix(".tar.gz")
    )
    assert (tmp_path / WHEEL).read_bytes() == (published / WHEEL).read_bytes()


def test_the_sdist_has_what_the_wheel_is_built_from_and_the_documentation(published: Path) -> None:
    names = names_in(published / SDIST)
    of_hatch = {"PKG-INFO", ".gitignore"}
    folders = {name.partition("/")[0] for name in names if "/" in name}
    files = {name for name in names if "/" not in name} - of_hatch
    assert folders == {"crawlspace", "spiders", "middlewares", "pipelines", "docs", "examples"}
    assert files == {*"pyproject.toml README.md LICENSE CHANGELOG.md requirements.txt requirements-browser.txt".split()}
    assert not [name for name in names if {"__pycache__", "data", ".venv"} & {*name.split("/")}]


def test_the_wheel_has_the_package_alone_with_its_types_and_the_files_of_a_project(published: Path) -> None:
    names = ZipFile(published / WHEEL).namelist()
    assert {name.partition("/")[0] for name in names} == {"crawlspace", f"crawlspace-{__version__}.dist-info"}
    assert {"crawlspace/py.typed", "crawlspace/project_files/spiders/collection.py"} <= {*names}
    listed = subprocess.run(
        ["git", "ls-files", "crawlspace"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    of_package = [name for name in names if name.startswith("crawlspace/") and "/project_files/" not in name]
    assert_same(of_package, listed)


def test_the_metadata(published: Path) -> None:
    found = metadata(published / WHEEL)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (found["Version"], found["License-Expression"], found["Requires-Python"]) == (__version__, "BSD-3-Clause", ">=3.11")
    assert_same(found.get_all("Provides-Extra", []), list(project["optional-dependencies"]))
    status = 5 if int(__version__.partition(".")[0]) else 4
    classifiers = found.get_all("Classifier", [])
    assert [one for one in classifiers if one.startswith(f"Development Status :: {status} - ")]
    versions = [f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)]
    assert [one for one in classifiers if one.startswith("Programming Language :: Python :: 3.")] == versions
    assert found.get_all("Project-URL") is None
