"""What holds for every text file of the repository: no path of a machine, pinned requirements, lines of prose that are not too long."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.command_line import ROOT


@cache
def texts() -> dict[str, str]:
    """Every text file that git keeps, or would keep once it is added, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, f"the files of the project cannot be listed: {listed.stderr}"
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        raw = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" not in raw:
            found[name] = raw.decode("utf-8")
    return found


def holding(pattern: str, found: dict[str, str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, content in found.items()
        for number, line in enumerate(content.splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_no_file_holds_a_path_of_a_machine() -> None:
    here = "|".join(re.escape(f"{path}/") for path in {ROOT, Path.home()} if len(path.parts) > 1)
    someones = r"/home/[\w.-]+/|/Users/[\w.-]+/|[A-Z]:\\Users\\"
    assert not holding(rf"(?<![\w.])(?:{here}|{someones})", texts())


def test_no_file_names_a_package_registry() -> None:
    assert not holding(r"https?://[^/]+/(simple|packages)/|--(extra-)?index-url [a-z]|--find-links [a-z]", texts())


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "requirements-docs.txt", "requirements-fuzz.txt"])
def test_requirements_are_versions_and_hashes_and_nothing_else(name: str) -> None:
    pinned = r"[a-z0-9.-]+==[\w.]+( ; [^\\]+)? \\"
    digest = r" {4}--hash=sha256:[0-9a-f]{64}( \\)?"
    assert not [line for line in texts()[name].splitlines() if not re.fullmatch(rf"#.*|{pinned}|{digest}", line)]


def test_the_other_requirements_hold_the_users() -> None:
    users, developers, writers, fuzzers = (
        {line for line in texts()[name].splitlines() if "==" in line}
        for name in ("requirements.txt", "requirements-dev.txt", "requirements-docs.txt", "requirements-fuzz.txt")
    )
    assert users < writers < developers
    assert users < fuzzers


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads(texts()["pyproject.toml"])["project"]
    for declared, name in (
        (project["dependencies"], "requirements.txt"),
        (project["optional-dependencies"]["dev"], "requirements-dev.txt"),
        (project["optional-dependencies"]["docs"], "requirements-docs.txt"),
        (project["optional-dependencies"]["fuzz"], "requirements-fuzz.txt"),
    ):
        wanted = {re.split(r"[<>=;\s]", line)[0] for line in declared}
        pinned = {line.partition("==")[0] for line in texts()[name].splitlines()}
        assert wanted <= pinned, "run make lock"


LONGEST_PROSE = 120


def long_prose(content: str) -> list[int]:
    """Numbers of the lines of a Markdown file that are longer than prose may be; tables and examples may be."""
    found, is_example = [], False
    for number, line in enumerate(content.splitlines(), 1):
        is_fence = line.lstrip().startswith("```")
        is_example ^= is_fence
        is_prose = not (is_fence or is_example or line.startswith(("|", "    ", "<!--")))
        if is_prose and len(line) > LONGEST_PROSE:
            found.append(number)
    return found


def test_lines_of_prose() -> None:
    long = "word " * 25
    assert long_prose(f"short\n{long}\n| {long}\n    {long}\n```json\n{long}\n```\n- {long}\n") == [2, 8]


def test_prose_is_readable_without_wrapping() -> None:
    assert not [f"{name}:{number}" for name, content in texts().items() if name.endswith(".md") for number in long_prose(content)]
