"""`crawlspace init` and --upgrade: what is written, replaced, left beside and removed; kills and full disks; what is refused."""

from __future__ import annotations

import ast
import re
import resource
import signal
import subprocess
import sys
from itertools import count, takewhile
from pathlib import Path

import pytest

from crawlspace import __version__, project
from crawlspace.config.collection import known_names
from crawlspace.errors import ConfigError
from crawlspace.project import MANIFEST, main, make_project, upgrade_project, version_difference
from tests.command_line import ROOT
from tests.notifications import LONGEST_WAIT_S
from tests.setting_tables import defaults

FIRST = {"scrapy.cfg": b"1", "spiders/a.py": b"1", "spiders/gone.py": b"1", "settings.py": b"1"}
SECOND = {"scrapy.cfg": b"1", "spiders/a.py": b"2", "settings.py": b"2", "new/b.py": b"2"}


def contents(folder: Path) -> dict[str, str]:
    """The text of each file but the manifest, by path."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def make(folder: Path) -> Path:
    make_project(folder, FIRST, "1.2")
    return folder


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path / "site")


def refusal(folder: Path, version: str = "1.3", *, is_adopted: bool = False) -> str:
    with pytest.raises(ConfigError) as raised:
        upgrade_project(folder, SECOND, version, is_adopted=is_adopted)
    return str(raised.value)


def test_a_project_has_the_files_and_a_folder_for_collections(made: Path) -> None:
    assert contents(made) == dict.fromkeys(FIRST, "1")
    assert [*(made / "collections").iterdir()] == []


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    for name in ("notes.txt", "spiders/own.py", "scrapy.cfg", "collections/demo/start_urls.txt", ".git/config"):
        folder = tmp_path / name.replace("/", "_")
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("mine", encoding="utf-8")
        with pytest.raises(ConfigError, match="is not empty"):
            make_project(folder, FIRST, "1.2")
        assert contents(folder) == {name: "mine"}


def test_what_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(ConfigError, match=f"{name} is no folder"):
            make_project(tmp_path / name, FIRST, "1.2")


def test_a_project_is_not_made_again(made: Path) -> None:
    with pytest.raises(ConfigError, match="is a project already"):
        make_project(made, FIRST, "1.2")


@pytest.mark.parametrize(
    ("own", "expected", "lines"),
    [
        ({}, {"spiders/a.py": "2", "settings.py": "2", "new/b.py": "2", "spiders/gone.py": None}, 4),
        ({"settings.py": "own"}, {"settings.py": "own", "settings.py.new": "2", "spiders/a.py": "2"}, 4),
        ({"scrapy.cfg": "own"}, {"scrapy.cfg": "own", "scrapy.cfg.new": None}, 4),
        ({"spiders/a.py": "2"}, {"spiders/a.py": "2", "spiders/a.py.new": None}, 3),
        ({"spiders/gone.py": "own"}, {"spiders/gone.py": "own"}, 4),
        ({"new/b.py": "own"}, {"new/b.py": "own", "new/b.py.new": "2"}, 4),
        ({"settings.py": None}, {"settings.py": "2"}, 4),
        ({"spiders/gone.py": None}, {"spiders/gone.py": None}, 3),
        ({"spiders/mine.py": "own"}, {"spiders/mine.py": "own"}, 4),
    ],
)
def test_an_upgrade(made: Path, own: dict[str, str | None], expected: dict[str, str | None], lines: int) -> None:
    for name, text in own.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).unlink(missing_ok=True)
        if text is not None:
            (made / name).write_text(text, encoding="utf-8")
    assert len(upgrade_project(made, SECOND, "1.3")) == lines
    found = contents(made)
    assert {name: found.get(name) for name in expected} == expected
    manifest = (made / MANIFEST).read_bytes()
    assert upgrade_project(made, SECOND, "1.3") == []
    assert (contents(made), (made / MANIFEST).read_bytes()) == (found, manifest)


def test_an_upgrade_without_changed_files_notes_the_version(made: Path) -> None:
    assert upgrade_project(made, FIRST, "1.3") == ["no file has changed between the versions"]
    assert version_difference(made, "1.3") == ""


def test_a_project_without_a_manifest_is_adopted_on_request(made: Path) -> None:
    (made / MANIFEST).unlink()
    assert "crawlspace init --adopt" in refusal(made)
    upgrade_project(made, SECOND, "1.3", is_adopted=True)
    kept = dict.fromkeys(FIRST, "1")
    assert contents(made) == {**kept, "settings.py.new": "2", "spiders/a.py.new": "2", "new/b.py": "2"}
    assert upgrade_project(made, SECOND, "1.3") == []
    assert "has a manifest already" in refusal(made, is_adopted=True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is damaged"),
        ('{"version": "1.2"', "is damaged"),
        ("[]", "is damaged"),
        ('{"version": "1.2", "files": {"a": 1}}', "is damaged"),
        ('{"version": "new", "files": {}}', "'new' is no version"),
        ('{"version": "1.2", "files": {"../a": ""}}', "'../a' is no file of a project"),
        ('{"version": "1.2", "files": {"/etc/passwd": ""}}', "'/etc/passwd' is no file of a project"),
        ('{"version": "1.10", "files": {}}', "upgrade the package"),
        ('{"version": "2.0rc1", "files": {}}', "upgrade the package"),
    ],
)
def test_manifests_that_are_refused(made: Path, text: str, sentence: str) -> None:
    (made / MANIFEST).write_text(text, encoding="utf-8")
    assert sentence in refusal(made)
    assert sentence in version_difference(made, "1.3")
    assert contents(made) == dict.fromkeys(FIRST, "1")


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("1.2", ""),
        ("1.2rc1", "upgrade the package"),
        ("1.1", "upgrade the package"),
        ("1.3rc1", "crawlspace init --upgrade"),
        ("1.10", "crawlspace init --upgrade"),
    ],
)
def test_the_difference_between_a_project_and_what_is_installed(made: Path, version: str, sentence: str) -> None:
    found = version_difference(made, version)
    assert sentence in found
    assert bool(found) is bool(sentence)


def test_what_has_no_manifest_is_of_no_version(tmp_path: Path) -> None:
    assert version_difference(tmp_path) == ""
    assert version_difference(ROOT) == ""


def test_what_is_no_project_is_not_upgraded(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "no scrapy.cfg" in refusal(tmp_path)
    assert "no scrapy.cfg" in refusal(tmp_path / "missing")
    assert "is a file" in refusal(tmp_path / "file")


def test_a_folder_in_the_place_of_a_file_is_named(made: Path) -> None:
    (made / "settings.py").unlink()
    (made / "settings.py").mkdir()
    assert "settings.py is a directory" in refusal(made)


KILLED = f"""
import os, signal, sys
from pathlib import Path
from crawlspace.project import make_project, upgrade_project

folder, left = Path(sys.argv[1]), int(sys.argv[2])

def kill_in_time(event, args):
    global left
    if event in ("os.mkdir", "os.remove", "os.rename", "tempfile.mkstemp"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill_in_time)
if folder.exists():
    upgrade_project(folder, {SECOND}, "1.3")
else:
    make_project(folder, {FIRST}, "1.2")
"""
"""Makes a project, or upgrades one, and is killed after a number of changes in the file system."""


def was_killed(folder: Path, changes: int) -> bool:
    """Run KILLED; return whether it was killed before its end."""
    command = [sys.executable, "-c", KILLED, str(folder), str(changes)]
    status = subprocess.run(command, cwd=ROOT, check=False, timeout=LONGEST_WAIT_S).returncode
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.full
def test_an_init_that_was_killed_is_done_by_another(tmp_path: Path) -> None:
    folders = (tmp_path / str(changes) for changes in count())
    killed = [*takewhile(lambda folder: was_killed(folder, int(folder.name)), folders)]
    assert len(killed) > 10
    for folder in killed:
        if not (folder / MANIFEST).exists():  # the last thing that is written
            make_project(folder, FIRST, "1.2")
        assert contents(folder) == dict.fromkeys(FIRST, "1")
        assert upgrade_project(folder, FIRST, "1.2") == []


@pytest.mark.full
def test_an_upgrade_that_was_killed_is_done_by_another(tmp_path: Path) -> None:
    expected = {"scrapy.cfg": "1", "spiders/a.py": "2", "settings.py": "own", "settings.py.new": "2", "new/b.py": "2"}
    folders = (make(tmp_path / str(changes)) for changes in count())

    def was_upgrade_killed(folder: Path) -> bool:
        (folder / "settings.py").write_text("own", encoding="utf-8")
        return was_killed(folder, int(folder.name))

    killed = [*takewhile(was_upgrade_killed, folders)]
    assert len(killed) > 10
    for folder in killed:
        upgrade_project(folder, SECOND, "1.3")
        assert contents(folder) == expected
        assert upgrade_project(folder, SECOND, "1.3") == []


def test_a_full_disk_ends_in_a_sentence_and_leaves_whole_files(made: Path) -> None:
    """A limit on the length of files has the effect of a full disk on what is written."""
    as_made = contents(made)
    long = {name: content * 5_000 for name, content in SECOND.items()}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        with pytest.raises(ConfigError, match="run the same command again"):
            upgrade_project(made, long, "1.3")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert contents(made) == as_made
    assert upgrade_project(made, long, "1.3") != []
    assert contents(made)["settings.py"] == "2" * 5_000


# --- command line ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ([], 2, "crawlspace init site"),
        (["init"], 2, "crawlspace init site"),
        (["init", ""], 2, "crawlspace init site"),
        (["crawl", "demo"], 2, "`scrapy crawl NAME`"),
        (["init", "site"], 1, "which is a project itself"),
    ],
)
def test_what_the_command_line_refuses(
    arguments: list[str],
    status: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == status
    assert sentence in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("arguments", [["init", "a", "b"], ["--unknown"], ["init", "--upgrade", "--adopt"]])
def test_wrong_use(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in (["--version"], f"crawlspace {__version__}\n"), (["--help"], "scrapy startcollection, lint"):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        assert text in capsys.readouterr().out


def test_the_version_of_the_package_is_one_that_a_manifest_may_have(tmp_path: Path) -> None:
    make_project(tmp_path / "site", FIRST)
    assert "crawlspace init --upgrade" in version_difference(tmp_path / "site", f"9{__version__}")


def test_the_settings_of_a_new_project() -> None:
    """What stands in its comments can be taken out of them."""
    written = re.sub(r"^#(?=[A-Z_]+ = )", "", project.SETTINGS, flags=re.MULTILINE)
    names = [ast.unparse(one.targets[0]) for one in ast.parse(written).body if isinstance(one, ast.Assign)]
    assert len(names) > 5
    assert not set(names) - {*known_names(), *defaults()}
