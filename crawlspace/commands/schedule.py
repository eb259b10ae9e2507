"""`scrapy schedule`: crawl a collection by systemd or cron."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from scrapy.utils.conf import closest_scrapy_cfg

from crawlspace.errors import UsageError
from crawlspace.private_files import real_path
from crawlspace.runtime.components.command import CollectionCommand, exactly_one
from crawlspace.runtime.operations.schedule import ScheduleNote, Units, note, noted, read_times, write

_FOLDER = "systemd"


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Crawl a collection at regular times, by systemd or cron"
    explanation = (
        "Write a timer and a service of systemd that crawl a collection, hardened, or print a line for a crontab. Nothing is installed; what to do "
        "is printed. A start while the last crawl runs does nothing. A collection has one schedule: a second is refused. "
        "Exit status: 0 written; 1 a file cannot be written; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        when = parser.add_mutually_exclusive_group()
        when.add_argument("--every", metavar="T", help="the time between two starts, such as 30m, 1h or 7d")
        when.add_argument(
            "--cron", metavar="EXPRESSION", help="times as in a crontab, such as '0 2 * * mon-fri', on this machine's clock"
        )
        parser.add_argument("--to", metavar="DIR", help=f"the folder for the units; without it, {_FOLDER} in the project")
        parser.add_argument("--user", default="crawlspace", help="the user that crawls (systemd); without it, crawlspace")
        parser.add_argument("--crontab", action="store_true", help="print a line for a crontab instead")
        parser.add_argument("--replace", action="store_true", help="replace the schedule that the collection has")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy schedule demo --every 1h"))
        times = read_times(opts.every, opts.cron)
        if opts.crontab and opts.to is not None:
            raise UsageError("--crontab prints a line and writes no units: leave out --to, or --crontab")
        if not opts.user.strip() or any(one.isspace() or one in "%:/" for one in opts.user):
            raise UsageError("--user must be the name of a user of this machine")
        project = real_path(Path(closest_scrapy_cfg())).parent
        options = [word for setting in opts.set for word in ("-s", setting)]
        units = Units(paths, project, times, opts.user, options)
        before = noted(paths)
        if before is not None and not opts.replace:
            raise UsageError(f"{paths.name} is crawled {before.sentence()} already: replace that with --replace")
        if opts.crontab:
            print(units.crontab())
            note(paths, ScheduleNote(times.text))
            return 0
        files = units.files()
        folder = real_path(Path(opts.to or project / _FOLDER))
        timer, service = write(folder, files)
        note(paths, ScheduleNote(times.text, str(timer)))
        print(
            f"{timer}\n{service}\nare written. The user {opts.user} must be allowed to write to the data of the collection. Then, as root:"
        )
        print(f"  systemctl link {service}\n  systemctl enable --now {timer}")
        print(f"`systemctl list-timers` shows when it starts, `journalctl -u {units.name}` its log.")
        return 0
