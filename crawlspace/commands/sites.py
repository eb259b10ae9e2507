"""`scrapy sites`: show what is known of each site and why it waits; pause hosts, and resume them."""

from __future__ import annotations

import argparse
import getpass
import os
import time
from collections.abc import Iterator, Sequence

from crawlspace.admin.report import status_sentence
from crawlspace.admin.sites import (
    SiteDetails,
    SiteList,
    SiteOrder,
    pause_host,
    read_pattern,
    resume_host,
    sentence_of_pause,
    sentence_of_resumption,
    sitemap_lines,
    sites_as_json,
)
from crawlspace.clock import SystemClock, local_time
from crawlspace.config.collection import load_collection
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, hanging, print_json, shortened
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.state.site_pauses import NO_PAUSES, SitePause
from crawlspace.text import counted, printable

SHOWN = 20
_HEAD = f"{'Site':<36}{'URLs':>10}{'documents':>11}{'pending':>9}{'due':>9}{'delay':>8}{'failed':>8}  next request"


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Show sites and why they wait; pause hosts"
    explanation = (
        "Show the sites of a collection (a site is a host and port): their URLs, documents, delay, the failures among the last 20 fetches, when "
        f"each is requested next, and why it waits; the {SHOWN} with the most URLs, or those that the options select. --host shows all that is "
        "known of one. --pause has nothing of a host requested any more, neither pages nor robots.txt nor its log-in, until --resume: a running "
        "crawl notices within seconds, requests in flight end normally, and nothing of the host is deleted or counted as a failure meanwhile. "
        "Makes no network requests. "
        "Exit status: 0 shown, or paused, or resumed; 1 the collection or its store has a fault; 2 wrong use, as where no known host has that name."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--pause", metavar="HOST", help="pause a host, as www.example.com, www.example.com:8080 or *.example.com"
        )
        parser.add_argument("--reason", metavar="TEXT", default="", help="with --pause: why, for others to read")
        parser.add_argument("--resume", metavar="HOST", help="end a pause, as it is listed")
        parser.add_argument("--host", metavar="HOST", help="show all that is known of the sites of this host")
        parser.add_argument("--robots-txt", action="store_true", help="with --host: the text of robots.txt, too")
        parser.add_argument(
            "--errors",
            action="store_true",
            help="only sites with failures among their last fetches, that cannot be reached, or whose log-in fails",
        )
        parser.add_argument("--paused", action="store_true", help="only sites that a person has paused")
        parser.add_argument("--waiting", action="store_true", help="only sites with URLs to fetch that are kept from it")
        parser.add_argument(
            "--sort",
            type=SiteOrder,
            choices=tuple(SiteOrder),
            default=SiteOrder.URLS,
            help="the largest number first, or by name",
        )
        parser.add_argument("--limit", metavar="N", type=_limit, default=SHOWN, help=f"show at most N sites (default: {SHOWN})")
        parser.add_argument("--json", action="store_true", help="print the answer for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy sites demo --host www.example.com"))
        if opts.pause and opts.resume:
            raise UsageError("use --pause or --resume, not both")
        if opts.reason and not opts.pause:
            raise UsageError("--reason says why a host is paused: use it with --pause")
        if opts.robots_txt and not opts.host:
            raise UsageError("--robots-txt shows that of one host: name it with --host")
        if opts.pause or opts.resume:
            print(_changed(paths, opts))
            return 0
        host = None if opts.host is None else read_pattern(opts.host)
        collection = load_collection(paths.name, paths.settings)
        with paths.store.reading() as opened:
            if opened is None:
                found, shown, patterns = [], [], NO_PAUSES
            else:
                sites = SiteList(opened.store, collection, SystemClock())
                patterns = sites.pauses
                found = sites.select(host=host, errors=opts.errors, paused=opts.paused, waiting=opts.waiting, order=opts.sort)
                shown = sites.details(found[: opts.limit])
        if opts.json:
            print_json(sites_as_json(paths.name, shown, total=len(found), pauses=patterns, with_text=host is not None))
        elif opened is None:
            print(f"{paths.name} has never been crawled: `scrapy crawl {paths.name}` does")
        elif host is not None:
            if not found:
                raise UsageError(f"{host} is no host that {paths.name} knows: `scrapy sites {paths.name}` lists them")
            print("\n\n".join("\n".join(_of_site(one, with_text=opts.robots_txt)) for one in shown))
        else:
            print("\n".join(_of_all(shown, len(found), paths.name, pauses=len(patterns))))
        return 0


def _changed(paths: CollectionPaths, opts: argparse.Namespace) -> str:
    """Pause or resume a host; return what was done."""
    pattern = read_pattern(opts.pause or opts.resume)
    with paths.crawled(paths.store.changing()) as opened:
        is_crawled = bool(opened.crawlers())
        if opts.resume:
            ended = resume_host(opened.store, pattern, collection=paths.name)
            return sentence_of_resumption(pattern, ended, is_crawled=is_crawled)
        pause = SitePause(_user(), int(time.time()), opts.reason)
        before = pause_host(opened.store, pattern, pause, collection=paths.name)
    sentence = sentence_of_pause(pattern, before, is_crawled=is_crawled)
    return f"{sentence}; scrapy sites {paths.name} --resume {_quoted_for_shell(pattern)}"


def _of_all(shown: Sequence[SiteDetails], total: int, name: str, *, pauses: int) -> Iterator[str]:
    paused = f", {counted(pauses, 'host')} paused" if pauses else ""
    yield f"{counted(total, 'site')}{paused}"
    if not shown:
        return
    yield ""
    yield _HEAD
    for one in shown:
        state, waiting = one.state, one.waiting
        failed = f"{state.health.failures}/{state.health.fetches}" if state.health.fetches else "-"
        yield (
            f"{shortened(state.site, 35):<36}{state.known.urls:>10,}{state.known.documents:>11,}{waiting.pending:>9,}{waiting.due:>9,}"
            f"{f'{one.pace.pace.delay_s:g} s':>8}{failed:>8}  {_next(one)}"
        )
        if state.unreachable is not None:
            yield hanging("    ", f"unreachable: {state.unreachable.sentence}")
        for why in state.waits:
            yield hanging("    ", why)
    if total > len(shown):
        yield f"and {total - len(shown):,} more (scrapy sites {name} --limit {total})"


def _of_site(one: SiteDetails, *, with_text: bool) -> Iterator[str]:
    state = one.state
    yield state.site
    yield _row("URLs", f"{state.known.urls:,} known of its host; {one.waiting.pending:,} pending, {one.waiting.due:,} due now")
    yield _row("documents", f"{state.known.documents:,} in the index")
    for number, why in enumerate(state.waits):
        yield _row("" if number else "waits", why)
    yield _row("next request", _next(one))
    yield _row("delay", one.delay_sentence)
    yield _row("errors", state.errors_sentence or "none among the last fetches")
    if state.unreachable is not None:
        yield _row("unreachable", state.unreachable.sentence)
    if not one.robots:
        yield _row("robots.txt", "not read yet")
    for robots in one.robots:
        entry = robots.entry
        obeyed = "" if robots.is_obeyed else "; it is not obeyed (ROBOTSTXT_OBEY)"
        status = f"{entry.status} {status_sentence(entry.status)}".rstrip()
        yield _row("robots.txt", f"{entry.scheme}: {status}, {robots.size:,} bytes, read {local_time(entry.fetched_at)}{obeyed}")
        if with_text:
            yield from (f"    {printable(line)}" for line in entry.body.splitlines())
    if one.login:
        yield _row("log-in", one.login)
    if one.rendering_sentence:
        yield _row("rendered", one.rendering_sentence)
    for number, sentence in enumerate(sitemap_lines(one)):
        yield _row("" if number else "sitemaps", sentence)


def _next(one: SiteDetails) -> str:
    state = one.state
    if state.paused is not None:
        return "when it is resumed"
    if state.next_at is None:
        return "when its log-in works" if state.login_wait else "never"
    return local_time(state.next_at) if state.next_at > time.time() else "with its next slot"


def _row(label: str, text: str) -> str:
    return hanging(f"{label:<13} ", text)


def _user() -> str:
    """Return the user of the operating system, who pauses a host."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # it has no name, as in some containers
        return f"user {os.getuid()}"


def _quoted_for_shell(pattern: str) -> str:
    return f"'{pattern}'" if "*" in pattern or "[" in pattern else pattern


def _limit(text: str) -> int:
    limit = int(text)
    if limit < 1:
        raise argparse.ArgumentTypeError("show at least one site")
    return limit
