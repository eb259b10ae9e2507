"""`scrapy move-host`: move a host from one collection to another.

Scrapy calls a command by the name of its module, dash included.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from crawlspace.admin.rule_files import difference
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, hanging
from crawlspace.runtime.planning.host_move import HostMove, make_move, plan_move
from crawlspace.text import counted


class Command(CollectionCommand):
    usage = "[options] <host> <from> <to>"
    summary = "Move a host from one collection to another"
    explanation = (
        "Move a host: its start URLs and the rules that name it go from the files of one collection to those of the other, the first one forbids "
        "it, and the global rules allow it, if there are any. Before anything is written it is proved that the other collection admits every known URL "
        "of the host that this one has, and that the next starts of both change nothing of other hosts. Shows what changes in the files, and in which order "
        "to crawl. Old versions of the files are kept, as those that the console replaces. Makes no network requests. "
        "Exit status: 0 moved; 1 it cannot be moved, or one of the collections has a fault: then nothing was changed; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="show what would be done, and write nothing")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 3:
            raise UsageError("name a host and two collections, as in: scrapy move-host wiki.example.com intranet wikis")
        host = args[0].lower()
        if "/" in host or ":" in host or "*" in host:
            raise UsageError(f"{args[0]} is no host name: name a host without scheme and port, as in wiki.example.com")
        source, target = (self.paths(name) for name in args[1:])
        move = plan_move(
            host,
            (source, load_collection(source.name, source.settings)),
            (target, load_collection(target.name, target.settings)),
        )
        if not opts.dry_run:
            make_move(move, clock=SystemClock())
        print("\n".join(_lines(move, host, source.name, target.name, is_made=not opts.dry_run)))
        return 0


def _lines(move: HostMove, host: str, source: str, target: str, *, is_made: bool) -> Iterator[str]:
    for one in move.files:
        yield from difference(one.disk.text, one.text, old_name=one.shown, new_name=one.shown)
    yield ""
    known = f"all {counted(move.known, 'URL')} of it that {source} had are admitted there, and" if move.known else ""
    yield hanging(
        "", f"{host} {'is' if is_made else 'would be'} moved from {source} to {target}: {known} no other host is affected."
    )
    plan = move.source_plan.plan
    if plan.has_effect:
        yield hanging("", f"The next start of {source}: {plan.sentence()}.")
    for remark in move.remarks:
        yield hanging("", f"To be moved by hand: {remark}.")
    yield "Crawl in this order:" if is_made else "Then crawl in this order:"
    yield f"  scrapy crawl {target}"
    yield f"  scrapy crawl {source}"
    if move.has_global_rules:
        yield hanging("", f"Its documents stay in the index meanwhile: the global rules have it, and {target} takes them over.")
    else:
        yield hanging(
            "",
            f"There are no global rules: its documents leave the index of {source} at its start, and by then {target} has its own. If both fill one"
            f" index on a server, crawl {source} first.",
        )
    if plan.held:
        yield hanging("", f"The deletions of {source} would be held: approve them with `scrapy deletions {source} --approve`.")
