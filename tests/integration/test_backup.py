"""`scrapy backup` and `scrapy restore`, through the command line: during a crawl, killed, on a full disk, and with what is no backup."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.command_line import ROOT, CompletedRun, environment
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, collection, indexed, make_due, opened, shared, statuses
from tests.notifications import LONGEST_WAIT_S
from tests.quick import some
from tests.servers import emptied, redis_server
from tests.sites import Server, Site, held, page, serve

ARCHIVED = FAST.replace("CRAWLSPACE_ARCHIVE = False\n", "")
PAGES = 8


def site() -> Site:
    made = Site(
        {f"/{n}": page(f"Page {n}", text=f"text of {n}", links=[f"/{n + 1}"] if n < PAGES - 2 else []) for n in range(PAGES - 1)}
    )
    made["/"] = page("Home", links=["/0"])
    return made


def crawled(project: MakeProject, server: Server, *, settings: str = ARCHIVED, is_shared: bool = False) -> Project:
    demo = project(collection(server.url("/"), settings=settings))
    if is_shared:
        shared(demo)
    demo.crawl("demo").succeeded()
    return demo


def lose(demo: Project, *, keep: Sequence[str] = ()) -> None:
    """Remove the data of a collection and its folder."""
    for path in (demo.data / "demo").iterdir():
        if not path.name.startswith(tuple(keep) or "-"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(demo.collections / "demo")
    if demo.store_url:
        emptied().close()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- as it was ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_shared", "with_archive"), some([(False, True), (True, False), (False, False), (True, True)], 2))
def test_all_is_as_before(project: MakeProject, *, is_shared: bool, with_archive: bool) -> None:
    with serve(site()) as server:
        demo = crawled(project, server, is_shared=is_shared)
        file = demo.folder / "demo.tar"
        before, files, state = indexed(demo), files_of(demo.collections / "demo"), statuses(demo)
        asked = len(server.paths())
        made = demo.scrapy("backup", "demo", str(file), *(["--archive"] if with_archive else [])).succeeded()
        assert f"demo: {PAGES} URLs" in made.stdout
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        lose(demo)
        done = demo.scrapy("restore", "demo", str(file)).succeeded().stdout
        assert f"demo: {PAGES} URLs and 0 index orders of" in done
        assert files_of(demo.collections / "demo") == files
        assert statuses(demo) == state
        is_sent = with_archive and not is_shared
        assert (f"demo: {PAGES} documents were sent again." in done) is is_sent
        if is_sent:
            assert_same(indexed(demo), before)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), before)
        assert (len(server.paths()) > asked) is not is_sent, "what the archive has is not fetched"
        demo.crawl("demo").succeeded()
        demo.scrapy("audit", "demo").succeeded()


def test_what_an_index_has_from_later_times_is_looked_up(project: MakeProject) -> None:
    """Pages that the backup does not know, those that are gone since, and those that its rules refuse."""
    with serve(site()) as server:
        demo = crawled(project, server)
        file = demo.folder / "demo.tar"
        rules = demo.collections / "demo" / "crawl.rules"
        rules.write_text(f"forbid prefix {server.url('/no')}\nallow domain {server.netloc}\n")
        demo.crawl("demo").succeeded()
        demo.scrapy("backup", "demo", str(file), "--archive").succeeded()
        rules.write_text(f"allow domain {server.netloc}\n")
        for path in ("/new", "/no", "/gone"):
            server.site[path] = page(path, text=f"text of {path}")
        server.site["/"] = page("Home", links=["/0", "/new", "/no", "/gone"])
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert {"/new", "/no", "/gone"} <= set(indexed(demo))
        del server.site["/gone"]
        lose(demo, keep=["index"])
        demo.scrapy("restore", "demo", str(file)).succeeded()
        make_due(demo)
        demo.crawl("demo").succeeded()
        demo.crawl("demo").succeeded()
        assert "/new" in indexed(demo)
        assert not {"/no", "/gone"} & set(indexed(demo))


def test_a_backup_during_a_crawl(project: MakeProject) -> None:
    """The crawl goes on meanwhile; what is restored is as it was then, and the next crawl brings the rest."""
    waiting = held(page("Page 4", text="text of 4", links=["/5"]))
    pages = site()
    pages["/4"] = waiting
    file_name = "demo.tar"
    with serve(pages) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/4" in server.paths())
        with opened(demo) as store:
            demo.until(lambda: store.counts().indexed >= 4)
        file = demo.folder / file_name
        demo.scrapy("backup", "demo", str(file), "--archive").succeeded()
        waiting.release()
        assert process.wait() == 0, demo.output()
        assert len(indexed(demo)) == PAGES
        lose(demo)
        demo.scrapy("restore", "demo", str(file)).succeeded()
        assert len(statuses(demo)) < PAGES
        server.forget()
        demo.crawl("demo").succeeded()
        assert len(indexed(demo)) == PAGES
        assert not {"/", "/0", "/1"} & set(server.paths()), "they are in the archive"


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.fixture
def demo(project: MakeProject) -> Project:
    with serve(site()) as server:
        return crawled(project, server)


@pytest.fixture
def file(demo: Project) -> Path:
    file = demo.folder / "demo.tar"
    demo.scrapy("backup", "demo", str(file), "--archive").succeeded()
    return file


def refused(run: CompletedRun, sentence: str, *, status: int = 1) -> None:
    assert "Traceback" not in run.stderr
    assert (run.returncode, sentence in run.stderr) == (status, True), run.stderr + run.stdout


def test_secrets_in_plain_text_are_named(demo: Project) -> None:
    with (demo.collections / "demo" / "settings.py").open("a") as settings:
        settings.write('FTP_PASSWORD = "geheim"\nHTTPPROXY = "http://me:geheim@proxy"\nSMTP_PASS = "env:SMTP"\n')
    made = demo.scrapy("backup", "demo", str(demo.folder / "demo.tar")).succeeded()
    assert "which will be in the backup: FTP_PASSWORD, HTTPPROXY; write env:NAME" in made.stderr
    assert "geheim" not in made.stderr + made.stdout


def test_a_file_that_is_there_is_kept(demo: Project, file: Path) -> None:
    before = file.read_bytes()
    refused(demo.scrapy("backup", "demo", str(file)), f"{file} exists: name another file, or replace it with --replace", status=2)
    assert file.read_bytes() == before
    demo.scrapy("backup", "demo", str(file), "--replace").succeeded()
    assert file.stat().st_size < len(before), "it has no archive"


WRONG_FILES = [
    ("", "is not a file but a directory"),
    ("no/demo.tar", "does not exist: make it first"),
    ("collections/demo/demo.tar", "which is copied: name a file in another folder"),
    ("data/demo/archive/demo.tar", "which is copied: name a file in another folder"),
]


@pytest.mark.parametrize(("name", "sentence"), WRONG_FILES)
def test_where_no_backup_can_be(demo: Project, name: str, sentence: str) -> None:
    refused(demo.scrapy("backup", "demo", str(demo.folder / name)), sentence, status=2)


def test_another_collection(demo: Project, file: Path) -> None:
    refused(demo.scrapy("restore", "other", str(file)), "is a backup of 'demo': name that collection", status=2)


def test_what_is_there_is_not_overwritten(demo: Project, file: Path) -> None:
    refused(demo.scrapy("restore", "demo", str(file)), "holds demo already, and nothing of that was changed")
    rules, extra = demo.collections / "demo" / "crawl.rules", demo.collections / "demo" / "extra.txt"
    rules.write_text("allow domain *\n")
    extra.touch()
    for path in (demo.data / "demo").glob("state.db*"):
        path.unlink()
    refused(demo.scrapy("restore", "demo", str(file)), "and nothing was changed there: crawl.rules, extra.txt; move it away")
    demo.scrapy("restore", "demo", str(file), "--keep-files").succeeded()
    assert rules.read_text() == "allow domain *\n"
    assert len(statuses(demo)) == PAGES


def test_other_files_of_the_archive(demo: Project, file: Path) -> None:
    lose(demo, keep=["archive"])
    (archived,) = (demo.data / "demo" / "archive").iterdir()
    archived.write_bytes(archived.read_bytes() + b"what a crawl has added")
    shutil.copy(archived, demo.folder / "kept")
    demo.scrapy("restore", "demo", str(file)).succeeded()
    assert archived.read_bytes() == (demo.folder / "kept").read_bytes()
    lose(demo, keep=["archive"])
    archived.write_bytes(b"another" + archived.read_bytes())
    refused(demo.scrapy("restore", "demo", str(file)), f"by the same names, and nothing was changed there: {archived.name}")
    assert not (demo.collections / "demo").exists()


GLOBAL = [  # the global.rules of before, those that are there, other collections -> what is said, and what is there in the end
    ("allow domain *\n", None, False, "was written, which applies to all collections", "allow domain *\n"),
    ("allow domain *\n", "allow domain *\n", True, "", "allow domain *\n"),
    ("allow domain *\n", "allow domain b.example\n", False, "and nothing was changed: make", "allow domain b.example\n"),
    ("allow domain *\n", None, True, "that would apply to other too, and nothing was changed", None),
    (None, "allow domain *\n", False, "and nothing was changed: make", "allow domain *\n"),
]


@pytest.mark.parametrize(("before", "there", "has_other", "sentence", "after"), GLOBAL)
def test_rules_of_all_collections(
    demo: Project, before: str | None, there: str | None, *, has_other: bool, sentence: str, after: str | None
) -> None:
    rules, file = demo.collections / "global.rules", demo.folder / "demo.tar"
    if before is not None:
        rules.write_text(before)
    demo.scrapy("backup", "demo", str(file)).succeeded()
    lose(demo)
    rules.unlink(missing_ok=True)
    if there is not None:
        rules.write_text(there)
    if has_other:
        (demo.collections / "other").mkdir()
    done = demo.scrapy("restore", "demo", str(file))
    assert sentence in done.stdout + done.stderr
    assert done.returncode == ("nothing was changed" in sentence)
    assert (rules.read_text() if rules.exists() else None) == after
    assert (demo.collections / "demo").exists() is not bool(done.returncode)


def test_over_a_running_crawl(project: MakeProject) -> None:
    waiting = held(page("Page 4"))
    pages = site()
    pages["/4"] = waiting
    with serve(pages) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/4" in server.paths())
        file = demo.folder / "demo.tar"
        demo.scrapy("backup", "demo", str(file)).succeeded()
        refused(demo.scrapy("restore", "demo", str(file)), "demo is being crawled by process")
        waiting.release()
        assert process.wait() == 0, demo.output()


def test_workers_on_a_server_have_to_be_stopped(project: MakeProject) -> None:
    waiting = held(page("Page 4"))
    pages = site()
    pages["/4"] = waiting
    with serve(pages) as server:
        demo = shared(project(collection(server.url("/"), settings=ARCHIVED)))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/4" in server.paths())
        refused(demo.scrapy("backup", "demo", str(demo.folder / "demo.tar")), "demo is being crawled by process")
        assert_same([path.name for path in demo.folder.glob("*.tar*")], [])
        waiting.release()
        assert process.wait() == 0, demo.output()


# --- no backup ----------------------------------------------------------------------------------------------------


def test_a_damaged_backup(demo: Project, file: Path) -> None:
    """Nothing is written; `tests/unit/admin/backups` has all kinds of damage."""
    lose(demo)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    refused(demo.scrapy("restore", "demo", str(file)), f"{file} is cut off or damaged after")
    refused(demo.scrapy("restore", "demo", str(demo.folder / "none")), "none cannot be read: No such file or directory")
    assert_same([*files_of(demo.data), *demo.collections.iterdir()], [])
    file.write_bytes(whole)
    assert f"{file} is whole: demo, {PAGES} URLs" in demo.scrapy("restore", "demo", str(file), "--check").succeeded().stdout


# --- killed, and a full disk ---------------------------------------------------------------------------------------


def killed_at(demo: Project, moment: str, *arguments: str) -> None:
    """Run a command in a process that kills itself when it calls a function of os or of a module of ours."""
    module, _, name = moment.rpartition(".")
    program = (
        f"import os, signal, sys, importlib\nmodule = importlib.import_module({module!r})\n"
        f"def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"setattr(module, {name!r}, die)\nfrom scrapy.cmdline import execute\nexecute(['scrapy', *sys.argv[1:]])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, env=environment(demo.env), check=False, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def test_a_backup_that_was_killed_leaves_nothing_that_stays(demo: Project) -> None:
    file = demo.folder / "demo.tar"
    killed_at(demo, "os.fsync", "backup", "demo", str(file))
    assert_same([path.name for path in demo.folder.glob("*demo.tar*")], [".demo.tar.new"])
    demo.scrapy("backup", "demo", str(file)).succeeded()
    assert_same([path.name for path in demo.folder.glob("*demo.tar*")], ["demo.tar"])
    demo.scrapy("restore", "demo", str(file), "--check").succeeded()


MOMENTS = [
    "crawlspace.runtime.operations.restore.opened",
    "crawlspace.runtime.operations.restore.put_archive_in_place",
    "crawlspace.admin.backups.folders.sync_folder",
    "crawlspace.runtime.operations.restore.sync_folder",
    "crawlspace.runtime.operations.restore.records_of_restored",
    "crawlspace.runtime.operations.restore.DocumentsAgain",
    "crawlspace.runtime.operations.restore.note_restored_documents_sent",
]


@pytest.mark.full
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_restore_that_was_killed_continues(demo: Project, file: Path, moment: str) -> None:
    before = indexed(demo)
    lose(demo)
    killed_at(demo, moment, "restore", "demo", str(file))
    if (demo.collections / "demo").exists() and moment < MOMENTS[-1] and "Documents" not in moment:
        refused(demo.crawl("demo"), "demo is here only in part, because copying it from")
    demo.scrapy("restore", "demo", str(file)).succeeded()
    assert_same(indexed(demo), before)
    assert_same([path.name for path in demo.collections.iterdir()], ["demo"])
    demo.crawl("demo").succeeded()


def limited(demo: Project, kilobytes: int, *arguments: str) -> CompletedRun:
    """Run a command that may write no larger files."""
    command = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "-", sys.executable, "-m", "scrapy", *arguments]
    env = environment(demo.env)
    ended = subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=LONGEST_WAIT_S)
    return CompletedRun(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.full
def test_on_a_full_disk(demo: Project, file: Path) -> None:
    again = demo.folder / "again.tar"
    (demo.collections / "demo" / "notes.txt").write_bytes(os.urandom(300_000))
    refused(limited(demo, 200, "backup", "demo", str(again)), f"{again} cannot be written (File too large)")
    assert_same([path.name for path in demo.folder.glob("*again*")], [])
    (demo.collections / "demo" / "notes.txt").unlink()
    before = indexed(demo)
    lose(demo)
    for kilobytes in (0, 8, 100, 200):
        ended = limited(demo, kilobytes, "restore", "demo", str(file))
        assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr
        assert not (demo.collections / "demo").exists() or demo.crawl("demo").returncode == 1
    demo.scrapy("restore", "demo", str(file)).succeeded()
    assert_same(indexed(demo), before)


# --- elsewhere ----------------------------------------------------------------------------------------------------


def test_from_a_file_to_a_server_and_back(demo: Project, file: Path) -> None:
    before = indexed(demo)
    lose(demo)
    emptied().close()
    url = f"redis://127.0.0.1:{redis_server().port}/0"
    done = demo.scrapy("restore", "demo", str(file), "--store", url).succeeded()
    assert f'Set CRAWLSPACE_STORE_URL = "{url}", so that the next crawl uses it.' in done.stdout
    demo.store_url = url
    demo.scrapy("backup", "demo", str(file), "--archive", "--replace").succeeded()
    demo.store_url = ""
    emptied().close()
    shutil.rmtree(demo.collections / "demo")
    demo.scrapy("restore", "demo", str(file), "--store", "file").succeeded()
    assert_same(indexed(demo), before)


def test_what_programs_read(demo: Project, file: Path) -> None:
    made = json.loads(demo.scrapy("backup", "demo", str(file), "--replace", "--json").succeeded().stdout)
    there = json.loads(demo.scrapy("restore", "demo", str(file), "--check", "--json").succeeded().stdout)
    assert {key: made[key] for key in there} == there
    assert (made["contents"]["urls"], made["bytes"]) == (PAGES, file.stat().st_size)
