"""`scrapy schedule`: when a collection is crawled, as units of systemd or a line of a crontab."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cronsim import CronSim

from crawlspace.config.secrets import credential_name, secret_references
from crawlspace.cron import Cron, read_cron
from crawlspace.errors import SettingError, StoreError, UsageError
from crawlspace.parsing import duration
from crawlspace.private_files import make_folder, real_path, replace_file
from crawlspace.runtime.session.paths import CollectionPaths, folder_of
from crawlspace.text import duration as in_words
from crawlspace.text import quoted

NOTE = "schedule.json"
"""File in the data folder of a collection: its schedule."""
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_ALL = {"month": set(range(1, 13)), "hour": set(range(24)), "minute": set(range(60))}
_MINUTE_S, _HOUR_S, _DAY_S, _WEEK_S = 60, 3_600, 86_400, 604_800


class ScheduleNote(msgspec.Struct, frozen=True):
    """The schedule of a collection, for the next one who makes one."""

    when: str
    unit: str = ""
    """The file of the timer; empty for a line of a crontab."""

    def is_there(self) -> bool:
        return not self.unit or Path(self.unit).exists()

    def sentence(self) -> str:
        return f"{self.when}, by {self.unit or 'a line of a crontab'}"


@dataclass(frozen=True, slots=True)
class Times:
    """When to start: every so many seconds, or by a cron expression."""

    every_s: int | None
    cron: Cron | None

    @property
    def text(self) -> str:
        return f"every {in_words(self.every_s)}" if self.every_s is not None else f"at {self._cron.expression}"

    def timer_lines(self) -> list[str]:
        """Return the lines of a timer. Raises UsageError for an expression that systemd cannot express."""
        if self.every_s is not None:
            return ["OnBootSec=2min", f"OnUnitActiveSec={self.every_s}s"]
        return [f"OnCalendar={line}" for line in on_calendar(self._cron)]

    def crontab(self) -> str:
        """Return the five fields. Raises UsageError for an interval that a crontab cannot express."""
        if self.every_s is None:
            parsed = CronSim(self._cron.expression, Cron.REFERENCE)
            if min(parsed.days) < 0 or any(isinstance(day, tuple) for day in parsed.weekdays):
                raise UsageError(
                    f"a crontab has no {quoted(self._cron.expression)}, because of L or #: name days, or have units written"
                )
            return self._cron.expression
        minutes, hours = self.every_s // _MINUTE_S, self.every_s // _HOUR_S
        if self.every_s == _WEEK_S:
            return "0 0 * * 0"
        if self.every_s == _DAY_S:
            return "0 0 * * *"
        if self.every_s == hours * _HOUR_S and hours and 24 % hours == 0:
            return "0 * * * *" if hours == 1 else f"0 */{hours} * * *"
        if self.every_s == minutes * _MINUTE_S and minutes and 60 % minutes == 0:
            return "* * * * *" if minutes == 1 else f"*/{minutes} * * * *"
        raise UsageError(
            f"a crontab has no {self.text}: give a part of an hour or of a day, such as 15m or 6h, 1d or 7d, or the times with --cron"
        )

    @property
    def _cron(self) -> Cron:
        assert self.cron is not None
        return self.cron


def read_times(every: str | None, cron: str | None) -> Times:
    """Raises UsageError."""
    if (every is None) == (cron is None):
        raise UsageError("say when to crawl: --every 1h, or --cron with an expression, such as --cron '0 2 * * *'")
    try:
        if cron is not None:
            return Times(None, read_cron("--cron", cron, zone=None))
        return Times(round(duration("--every", every, low=_MINUTE_S)), None)
    except SettingError as error:
        raise UsageError(str(error)) from None


def on_calendar(cron: Cron) -> Iterator[str]:
    """Yield calendar events of systemd that are together the times of an expression. Raises UsageError where there are none."""
    parsed = CronSim(cron.expression, Cron.REFERENCE)
    at = f"{_listed(parsed.hours, 'hour')}:{_listed(parsed.minutes, 'minute')}:00"
    months = _listed(parsed.months, "month")
    weekdays = parsed.weekdays
    days = {day % 7 for day in weekdays if isinstance(day, int)}
    names = "" if len(days) == len(_DAYS) else ",".join(_DAYS[day] for day in sorted(days))
    has_all_days = parsed.days == set(range(1, 32))
    if CronSim.LAST_WEEKDAY in parsed.days:
        raise UsageError(f"systemd has no {quoted(cron.expression)}, because of LW: name days instead")
    if has_all_days:
        if days or not weekdays:
            yield f"{names} *-{months}-* {at}".strip()
        for day, number in sorted(one for one in weekdays if isinstance(one, tuple)):
            which = "~07/1" if number == CronSim.LAST else f"-{7 * number - 6:02}..{7 * number:02}"
            yield f"{_DAYS[day % 7]} *-{months}{which} {at}"
        return
    if any(isinstance(day, tuple) for day in weekdays):
        raise UsageError(
            f"systemd has no {quoted(cron.expression)}: give days of the month, or such days of the week, and not both"
        )
    either = not parsed.day_and and bool(names)
    for which in _days_of_month(parsed.days):
        yield f"{'' if either else names} *-{months}{which} {at}".strip()
    if either:
        yield f"{names} *-{months}-* {at}"


def _days_of_month(days: set[int]) -> Iterator[str]:
    if numbers := sorted(day for day in days if day > 0):
        yield f"-{','.join(f'{day:02}' for day in numbers)}"
    if CronSim.LAST in days:
        yield "~01"


def _listed(numbers: set[int], part: str) -> str:
    return "*" if numbers == _ALL[part] else ",".join(f"{number:02}" for number in sorted(numbers))


# --- units ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a collection; `project` is the folder with scrapy.cfg."""

    paths: CollectionPaths
    project: Path
    times: Times
    user: str
    options: Sequence[str] = ()
    """Of the command line, for each crawl."""

    @property
    def name(self) -> str:
        return f"crawlspace-{self.paths.name}"

    def files(self) -> dict[str, str]:
        """Return the text of the units by their file names. Raises UsageError."""
        return {f"{self.name}.timer": self._timer(), f"{self.name}.service": self._service()}

    def crontab(self) -> str:
        """Return a line of a crontab. Raises UsageError."""
        log = self.paths.state_file.parent / "crawl.log"
        command = f"cd {shlex.quote(str(self.project))} && {self._command()} --logfile {shlex.quote(str(real_path(log)))}"
        return f"{self.times.crontab()}  {command}".replace("%", "\\%")

    def _command(self) -> str:
        words = [str(Path(sys.executable).parent / "scrapy"), "crawl", self.paths.name, "--unless-running", *self.options]
        return shlex.join(words)

    def _timer(self) -> str:
        lines = "\n".join(self.times.timer_lines())
        return f"[Unit]\nDescription=Crawl {self.paths.name} {self.times.text}\n\n[Timer]\n{lines}\n\n[Install]\nWantedBy=timers.target\n"

    def _service(self) -> str:
        files, variables = secret_references(self.paths.settings)
        credentials = "".join(f"LoadCredential={credential_name(file)}:{file}\n" for file in files)
        environment = (
            f"# The settings need {', '.join(variables)}: write them into this file, which only root may read.\n"
            f"EnvironmentFile=/etc/{self.name}.env\n"
            if variables
            else ""
        )
        home = (
            "read-only" if any(str(path).startswith(("/home", "/root")) for path in (self.project, *self._written())) else "true"
        )
        namespaces = "" if self._renders() else "RestrictNamespaces=true\n"
        return _SERVICE.format(
            collection=self.paths.name,
            user=self.user,
            project=_escaped(self.project),
            command=self._command().replace("%", "%%").replace("$", "$$"),
            written=" ".join(_escaped(path) for path in self._written()),
            credentials=credentials.replace("%", "%%") + environment,
            home=home,
            namespaces=namespaces,
        )

    def _renders(self) -> bool:
        """Return whether a browser may run, which makes namespaces for its own processes."""
        return str(self.paths.settings["CRAWLSPACE_RENDER"]) != "never" or "render" in str(
            self.paths.settings["CRAWLSPACE_SITES"]
        )

    def _written(self) -> list[Path]:
        """Return the folders that a crawl writes to."""
        folders = [self.paths.state_file.parent, folder_of(self.paths), self.paths.index_file.parent]
        folders += [Path(str(uri)).parent for uri in self.paths.settings.getdict("FEEDS") if "://" not in str(uri)]
        if log := self.paths.settings["LOG_FILE"]:
            folders.append(Path(str(log)).parent)
        real = sorted({real_path(folder) for folder in folders})
        return [folder for folder in real if not any(other in folder.parents for other in real)]


_SERVICE = """\
[Unit]
Description=Crawl of the collection {collection}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
User={user}
WorkingDirectory={project}
ExecStart={command}
# Ctrl-C: what is in flight is finished and recorded.
KillSignal=SIGINT
SuccessExitStatus=130
TimeoutStopSec=5min
UMask=0077
{credentials}
ProtectSystem=strict
ReadWritePaths={written}
ProtectHome={home}
PrivateTmp=true
PrivateDevices=true
DevicePolicy=closed
NoNewPrivileges=true
CapabilityBoundingSet=
AmbientCapabilities=
{namespaces}RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
RemoveIPC=true
ProtectProc=invisible
ProtectClock=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectKernelTunables=true
ProtectControlGroups=true
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
"""


def _escaped(path: Path) -> str:
    """Return a path as systemd reads it in a list."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"' if any(one.isspace() for one in text) else text


# --- one schedule of a collection -----------------------------------------------------------------------------------


def noted(paths: CollectionPaths) -> ScheduleNote | None:
    """Return the schedule that was made of a collection, if it is still there."""
    try:
        note = msgspec.json.decode(_note_of(paths).read_bytes(), type=ScheduleNote)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    return note if note.is_there() else None


def write(folder: Path, files: Mapping[str, str]) -> Sequence[Path]:
    """Write the units. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            replace_file(folder / name, text.encode(), mode=0o644)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}; name another folder with --to") from error
    return [folder / name for name in files]


def note(paths: CollectionPaths, schedule: ScheduleNote) -> None:
    """Note the schedule of a collection. Raises StoreError."""
    file = _note_of(paths)
    try:
        make_folder(file.parent)
        replace_file(file, msgspec.json.encode(schedule))
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error


def _note_of(paths: CollectionPaths) -> Path:
    return paths.state_file.parent / NOTE
