"""docs/tutorial.md, followed word by word in an empty folder by somebody who has installed the wheel."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.command_line import environment as environment_of_tests
from tests.integration.test_servers_tutorial import as_shown, served, steps_of
from tests.notifications import LONGEST_WAIT_S

pytestmark = pytest.mark.full

PAGE = ROOT / "docs" / "tutorial.md"
SITE = "http://127.0.0.1:8000"
"""What the page has in the place of the test's own."""


class Shell:
    """Runs one command after the other, as typed into a terminal."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._environment = {**environment_of_tests(None), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def run(self, command: str) -> str:
        """Return what is printed. A command that fails fails the test."""
        done = subprocess.run(
            ["bash", "-c", f'{command}\nstatus=$?; pwd > "$WHERE"; exit $status'],
            cwd=self.folder,
            env={**self._environment, "WHERE": str(self.folder / ".where")},
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_WAIT_S,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        where = self.folder / ".where"
        self.folder = Path(where.read_text(encoding="utf-8").strip())
        where.unlink()
        return done.stdout + done.stderr


def test_the_tutorial(environment: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shell = Shell(empty, environment / "bin")
    with served(empty / "site" / "pages") as site:
        for step in steps_of("", PAGE.read_text(encoding="utf-8")):
            if step.command.startswith("python3 -m http.server"):
                assert SITE.endswith(step.command.split()[-1])
                continue
            printed = shell.run(
                step.command.replace(SITE, site).replace(SITE.removeprefix("http://"), site.removeprefix("http://"))
            )
            shown = printed.replace(site.removeprefix("http://"), SITE.removeprefix("http://")).replace(f"{shell.folder}/", "")
            assert as_shown(shown) == as_shown(step.printed), f"$ {step.command}\n{shown}"
    assert re.search(r"^## A page changes", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
