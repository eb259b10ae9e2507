"""What the commands that look at a collection share: its settings and files, and how an error or a closed pipe ends them.

Not in the package of the commands, where Scrapy takes every command class for a command.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import re
import sys
import textwrap
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from scrapy.commands import ScrapyCommand
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.log import configure_logging

from crawlspace.clock import SystemClock
from crawlspace.config.collection import collection_folder
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.runtime.components.loader import collection_settings
from crawlspace.runtime.components.setting_kinds import refuse_unreadable
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, collection_paths
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.text import cut, escaped, quoted

if TYPE_CHECKING:
    from crawlspace.admin.url_changes import UrlChanges

_LONGEST_NAME = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
WIDTH = 100
"""Columns that a line of output keeps to, but for URLs and rules that are longer by themselves."""


class CollectionCommand(ScrapyCommand):
    """A command that needs no network. Subclasses implement `answer`."""

    requires_project = True
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    usage: ClassVar[str]
    summary: ClassVar[str]
    """For the list of the commands."""
    explanation: ClassVar[str]
    """Its effect and exit status, for `--help`."""

    def syntax(self) -> str:
        return self.usage

    def short_desc(self) -> str:
        return self.summary

    def long_desc(self) -> str:
        return self.explanation

    @abstractmethod
    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        """Print the answer and return the exit status. `args` has no options. Raises CrawlspaceError with the sentence to print instead."""

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        self.options(parser)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        refuse_unreadable(opts.set)
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self._log()

        def answer() -> int:
            refuse_without_collections(self.project_settings())
            return self.answer(without_options(args), opts)

        self.exitcode = printing(answer)

    def project_settings(self) -> Settings:
        assert self.settings is not None
        return self.settings

    def paths(self, name: str) -> CollectionPaths:
        """Return where a collection's files are. Raises UnknownCollection, and ConfigError for a settings.py that doesn't run."""
        settings = self.project_settings()
        folder = collection_folder(name, settings)
        return collection_paths(name, folder, collection_settings(settings, name))

    def _log(self) -> None:
        """Log if the command line requests it."""
        settings = self.project_settings()
        if settings.getbool("LOG_ENABLED"):
            configure_logging(settings)
        else:
            logging.getLogger("crawlspace").addHandler(logging.NullHandler())


def refuse_without_collections(settings: BaseSettings) -> None:
    """Raise UsageError in a project that has no collections, whose COMMANDS_MODULE names our commands all the same."""
    if settings["CRAWLSPACE_COLLECTIONS_DIR"] is None:
        raise UsageError(
            "this project has no collections, so the commands of crawlspace.commands make no sense in it: take COMMANDS_MODULE out of its"
            " settings.py; `scrapy lint` and `scrapy explain` of the add-on need no setting"
        )


def printing(answer: Callable[[], int]) -> int:
    """Call a function that prints for a person; return its exit status, or that of the error or the closed pipe that ended it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the terminal cannot show must not end the command
    try:
        with redirect_stdout(EscapingOutput(sys.stdout)):
            exit_status = answer()
            sys.stdout.flush()
    except CrawlspaceError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return exit_status


def exactly_one(args: Sequence[str], *, example: str) -> str:
    """Return the one collection named. Raises UsageError."""
    if len(args) != 1:
        raise UsageError(f"name one collection, as in: {example} (`scrapy list` shows them)")
    return args[0]


def refuse_wrong_name(name: str, *, way_out: str = "") -> None:
    """Raise UsageError for what cannot name a new collection."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"{quoted(name, most=_LONGEST_NAME)} cannot name a collection: use up to {_LONGEST_NAME} letters, digits, - and _, beginning with a letter or digit{way_out}"
        )


class EscapingOutput:
    """A stream for text from outside: control characters are written as escapes (printable.escaped)."""

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream
        """For text that is printable already, and has terminal codes of ours."""

    def write(self, text: str) -> int:
        return self.unescaped.write(escaped(text, keep_lines=True))

    def flush(self) -> None:
        self.unescaped.flush()

    def isatty(self) -> bool:
        return self.unescaped.isatty()

    def fileno(self) -> int:
        return self.unescaped.fileno()


def print_json(value: object) -> None:
    """Print a value for programs: one line, not escaped beyond need."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_lines(lines: Sequence[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


def shortened(text: str, width: int) -> str:
    return cut(text, width)


def hanging(head: str, text: str) -> str:
    """Return a sentence after its head, wrapped with a hanging indent."""
    lines = textwrap.wrap(text, max(WIDTH - len(head), 20), break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * len(head)}".join([head + "".join(lines[:1]), *lines[1:]]).rstrip()


def url_changes(opened: OpenStore) -> UrlChanges:
    """Return the UrlChanges of a store for a command, with a progress display."""
    from crawlspace.admin.url_changes import UrlChanges  # noqa: PLC0415 - for those that change URLs

    clock = SystemClock()
    progress = ProgressDisplay(sys.stderr, clock)
    return UrlChanges(opened.store, clock=clock, crawled=bool(opened.crawlers()), progress=progress)


def reduce_garbage_collection() -> None:
    """Exclude the objects of start-up from later garbage collections, and collect less often.

    The state of a crawl is many small, long-lived objects. Scanning them took a quarter of the time of a polite crawl
    (`python -m benchmarks.politeness`: 16 s of CPU became 12), in pauses without requests. A reindex takes 5 % less.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 5)


def without_options(args: Sequence[str]) -> list[str]:
    """Return the arguments that are no options. Raises UsageError for one that looks like an option, because Scrapy's parser does not know it."""
    if "--" in args:
        end = args.index("--")
        return [*without_options(args[:end]), *args[end + 1 :]]
    for arg in args:
        if arg.startswith("-") and len(arg) > 1 and " " not in arg:
            raise UsageError(f"there is no option {arg}; --help shows those there are")
    return list(args)
