"""Commands in the process of the tests: they take no second to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
