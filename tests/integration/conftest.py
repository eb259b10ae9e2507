"""Commands in the process of the tests, which take no second to start; a plain project with the add-on; workers and sites for them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

from tests.command_line import ROOT, CompletedRun
from tests.conftest import MakeProject, Project
from tests.integration.plain_project import PlainProject
from tests.integration.workers import MakeTeam, Team, tree
from tests.notifications import LONGEST_WAIT_S
from tests.servers import emptied
from tests.sites import Server, page, serve, slow, status

Run = Callable[..., CompletedRun]


@pytest.fixture
def run(demo: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a command as the command line does, for the project `demo`, which each module has of its own."""
    monkeypatch.chdir(ROOT)

    def in_this_process(*arguments: str) -> CompletedRun:
        with pytest.raises(SystemExit) as ended:
            execute(["scrapy", *arguments], settings_of(demo))
        reported = capsys.readouterr()
        return CompletedRun(int(ended.value.code or 0), reported.out, reported.err)

    return in_this_process


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this folder."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and by a link the packages that the tests run with; its `scrapy` is in its folder `bin`."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name == "posix")
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text("\n".join(path for path in sys.path if Path(path).name == "site-packages"))
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--isolated", "--quiet", "--no-index", str(wheel)]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert (packages / "crawlspace" / "project_files" / "spiders").is_dir()
    script = folder / "bin" / "scrapy"
    script.write_text(f"#!{folder}/bin/python\nfrom scrapy.cmdline import execute\n\nexecute()\n", encoding="utf-8")
    script.chmod(0o755)
    return folder


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


@pytest.fixture
def plain(tmp_path: Path) -> PlainProject:
    return PlainProject(tmp_path / "elsewhere")


@pytest.fixture
def team(project: MakeProject) -> Iterator[MakeTeam]:
    made = []

    def make(*starts: str, settings: str = "", rules: str = "") -> Team:
        emptied().close()
        one = Team(project({"demo/start_urls.txt": "\n".join(starts), "demo/crawl.rules": rules}), settings)
        made.append(one)
        return one

    yield make
    for each in made:
        each.store.close()


@pytest.fixture
def four() -> Iterator[list[Server]]:
    """Four sites that link to each other."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(tree(50), host=f"127.0.0.{n}")) for n in range(1, 5)]
        for server in servers:
            server.site["/"] = page("Home", text=f"home of {server.netloc}", links=["/0", *(other.url("/") for other in servers)])
            server.site["/robots.txt"] = status(404)
            for path in [path for path in server.site if path not in ("/", "/robots.txt")]:
                number = int(path[1:])
                links = [f"/{6 * number + c}" for c in range(1, 7) if 6 * number + c < 50]
                server.site[path] = slow(page(path, text=f"{path} of {server.netloc}", links=links), 0.03)
        yield servers
