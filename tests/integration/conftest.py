"""Commands in the process of the tests: they take no second to start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

from tests.command_line import ROOT, CompletedRun
from tests.conftest import Project

Run = Callable[..., CompletedRun]


@pytest.fixture
def run(demo: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a command as the command line does, for the project `demo`, which each module has of its own."""
    monkeypatch.chdir(ROOT)

    def in_this_process(*arguments: str) -> CompletedRun:
        with pytest.raises(SystemExit) as ended:
            execute(["scrapy", *arguments], settings_of(demo))
        said = capsys.readouterr()
        return CompletedRun(int(ended.value.code or 0), said.out, said.err)

    return in_this_process


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this folder."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("*.whl"))


def settings_of(demo: Project) -> Settings:
    """The project's settings for a collection's folders, and its store."""
    folders = {"CRAWLSPACE_COLLECTIONS_DIR": str(demo.collections), "CRAWLSPACE_DATA_DIR": str(demo.data)}
    return settings_with({**folders, "CRAWLSPACE_STORE_URL": demo.store_url})


def settings_with(own: Mapping[str, str]) -> Settings:
    """The project's settings, with some as the command line would give them."""
    settings = Settings()
    settings.setmodule("crawlspace.settings", priority="project")
    settings.setdict(dict(own), priority="cmdline")
    return settings
