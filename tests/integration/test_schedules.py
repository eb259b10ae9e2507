"""`scrapy schedule`: units that systemd accepts, lines of a crontab, one schedule for a collection, and starts that overlap."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from crawlspace.cron import read_cron
from crawlspace.errors import UsageError
from crawlspace.runtime.operations.schedule import Times, on_calendar, read_times
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import FAST, collection
from tests.sites import Site, held, page, serve

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="there is no systemd-analyze")
WORST_EXPOSURE = 2.0


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://www.example.com/", settings=FAST))


# --- times --------------------------------------------------------------------------------------------------------

CALENDARS = [
    ("0 2 * * *", ["*-*-* 02:00:00"]),
    ("*/15 * * * *", ["*-*-* *:00,15,30,45:00"]),
    ("0 0 * * mon-fri", ["Mon,Tue,Wed,Thu,Fri *-*-* 00:00:00"]),
    ("30 6 1,15 * *", ["*-*-01,15 06:30:00"]),
    ("0 0 1 1 *", ["*-01-01 00:00:00"]),
    ("0 0 13 * 5", ["*-*-13 00:00:00", "Fri *-*-* 00:00:00"]),
    ("0 0 */10 * 5", ["Fri *-*-01,11,21,31 00:00:00"]),
    ("0 0 L * *", ["*-*~01 00:00:00"]),
    ("0 0 15,L * *", ["*-*-15 00:00:00", "*-*~01 00:00:00"]),
    ("0 0 * * 1#2", ["Mon *-*-08..14 00:00:00"]),
    ("0 0 * * 5L", ["Fri *-*~07/1 00:00:00"]),
    ("0 0 * * 0,7", ["Sun *-*-* 00:00:00"]),
]


@pytest.mark.parametrize(("expression", "calendars"), CALENDARS)
def test_times_of_systemd(expression: str, calendars: list[str]) -> None:
    assert list(on_calendar(read_cron("--cron", expression, zone=None))) == calendars


@needs_systemd
@pytest.mark.parametrize("expression", [expression for expression, _ in CALENDARS])
def test_systemd_starts_at_the_times_of_the_expression(expression: str) -> None:
    cron = read_cron("--cron", expression, zone=None)
    begin = datetime(2026, 3, 5, 12).astimezone()
    expected = [at for at, _ in zip(cron.after(begin.timestamp()), range(8), strict=False)]
    found: set[int] = set()
    for calendar in on_calendar(cron):
        command = [str(ANALYZE), "calendar", "--iterations=8", f"--base-time={begin:%Y-%m-%d %H:%M:%S}", calendar]
        shown = subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
        times = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", shown)
        found |= {round(datetime.fromisoformat(time).astimezone().timestamp()) for time in times}
    assert sorted(found)[:8] == expected


CRONTABS = [
    ("1m", "* * * * *"),
    ("15m", "*/15 * * * *"),
    ("1h", "0 * * * *"),
    ("6h", "0 */6 * * *"),
    ("1d", "0 0 * * *"),
    ("7d", "0 0 * * 0"),
    ("7m", None),
    ("5h", None),
    ("2d", None),
    ("90", None),
]


@pytest.mark.parametrize(("every", "fields"), CRONTABS)
def test_times_of_a_crontab(every: str, fields: str | None) -> None:
    times = read_times(every, None)
    if fields is not None:
        assert times.crontab() == fields
        return
    with pytest.raises(UsageError, match="a crontab has no every"):
        times.crontab()


NOT_EXPRESSED = [("0 0 LW * *", True, True), ("0 0 1 * 1#2", True, True), ("0 0 L * *", False, True), ("0 0 * * 5L", False, True)]


@pytest.mark.parametrize(("expression", "by_systemd", "by_cron"), NOT_EXPRESSED)
def test_times_that_cannot_be_expressed(expression: str, *, by_systemd: bool, by_cron: bool) -> None:
    times = Times(None, read_cron("--cron", expression, zone=None))
    for is_refused, what in ((by_systemd, times.timer_lines), (by_cron, times.crontab)):
        if is_refused:
            with pytest.raises(UsageError, match=r"has no '"):
                what()
        else:
            assert what()


# --- the command --------------------------------------------------------------------------------------------------


@needs_systemd
def test_systemd_likes_the_units(demo: Project, run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret 100%"
    settings = demo.collections / "demo" / "settings.py"
    settings.write_text(
        f'{FAST}CRAWLSPACE_SITES = {{"a.example": {{"login": {{"type": "basic", "user": "env:WIKI_USER", "password": "file:{secret}"}}}}}}\n'
    )
    folder = tmp_path / "units"
    written = run("schedule", "demo", "--every", "1h", "--to", str(folder), "--user", "daemon").succeeded()
    timer, service = folder / "crawlspace-demo.timer", folder / "crawlspace-demo.service"
    assert f"systemctl enable --now {timer}" in written.stdout
    assert "OnUnitActiveSec=3600s" in timer.read_text()
    text = service.read_text()
    assert f"LoadCredential={str(secret).strip('/').replace('/', '-').replace(' ', '-').replace('%', '-').strip('-')}:" in text
    assert "EnvironmentFile=/etc/crawlspace-demo.env" in text
    assert f"ReadWritePaths={demo.data / 'demo'}\n" in text
    verified = subprocess.run([str(ANALYZE), "verify", timer, service], check=False, capture_output=True, text=True)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    command = [str(ANALYZE), "security", "--offline=true", "--no-pager", str(service)]
    shown = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", shown)
    assert exposure is not None
    assert float(exposure[1]) <= WORST_EXPOSURE


def test_a_second_schedule_is_refused(demo: Project, run: Run, tmp_path: Path) -> None:
    run("schedule", "demo", "--every", "1h", "--to", str(tmp_path / "units")).succeeded()
    timer = tmp_path / "units" / "crawlspace-demo.timer"
    again = run("schedule", "demo", "--cron", "0 2 * * *", "--crontab")
    assert (again.returncode, again.stdout) == (2, "")
    assert f"demo is crawled every 60 min, by {timer} already: replace that with --replace" in again.stderr
    line = run("schedule", "demo", "--cron", "0 2 * * *", "--crontab", "--replace").succeeded().stdout
    assert re.fullmatch(r"0 2 \* \* \*  cd \S+ && \S+/scrapy crawl demo --unless-running --logfile \S+/demo/crawl\.log\n", line)
    assert "demo is crawled at 0 2 * * *, by a line of a crontab already" in run("schedule", "demo", "--every", "1h").stderr


def test_units_that_were_removed_are_no_schedule(demo: Project, run: Run, tmp_path: Path) -> None:
    run("schedule", "demo", "--every", "1h", "--to", str(tmp_path / "units")).succeeded()
    shutil.rmtree(tmp_path / "units")
    run("schedule", "demo", "--every", "2h", "--to", str(tmp_path / "units")).succeeded()


WRONG = [
    ((), "say when to crawl: --every 1h, or --cron"),
    (("--every", "10s"), "--every is '10s'; it must be at least 60 s"),
    (("--every", "soon"), "--every is 'soon'"),
    (("--cron", "61 * * * *"), "a minute is from 0 to 59"),
    (("--every", "1h", "--crontab", "--to", "x"), "leave out --to, or --crontab"),
    (("--every", "1h", "--user", "a b"), "--user must be the name of a user"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_wrong_use(demo: Project, run: Run, options: tuple[str, ...], sentence: str) -> None:
    ended = run("schedule", "demo", *options)
    assert (ended.returncode, ended.stdout, sentence in ended.stderr) == (2, "", True), ended.stderr
    assert not list((demo.data).iterdir())


# --- starts that overlap ------------------------------------------------------------------------------------------


def test_a_start_while_the_last_crawl_runs(project: MakeProject) -> None:
    waiting = held(page("Home"))
    with serve(Site({"/": waiting})) as server:
        demo = project(collection(server.url("/"), settings=FAST))
        process = demo.start("crawl", "demo", "--unless-running")
        demo.until(lambda: "/" in server.paths())
        second = demo.crawl("demo", "--unless-running").succeeded()
        sentence = r"demo is being crawled by process \d+ already: nothing is done \(--unless-running\)\n"
        assert re.fullmatch(sentence, second.stderr)
        assert demo.crawl("demo").returncode == 1
        waiting.release()
        assert process.wait() == 0, demo.output()


# --- logs ---------------------------------------------------------------------------------------------------------


def test_a_log_that_is_rotated_meanwhile(project: MakeProject) -> None:
    """As logrotate does with `copytruncate`: the crawl goes on at the beginning of the file, and no hole is before it."""
    waiting = held(page("Home"))
    with serve(Site({"/": waiting})) as server:
        demo = project(collection(server.url("/"), settings=FAST))
        log = demo.folder / "crawl.log"
        process = demo.start("crawl", "demo", "--logfile", str(log), "-L", "DEBUG")
        demo.until(lambda: "/" in server.paths())
        assert log.stat().st_size
        shutil.copy(log, demo.folder / "crawl.log.1")
        os.truncate(log, 0)
        waiting.release()
        assert process.wait() == 0, demo.output()
        written = log.read_bytes()
        assert written
        assert b"\0" not in written
