"""`scrapy refused`: list links that were refused, with their pages and rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from crawlspace.admin.refused import REASONS, RefusedForReason, SeenLink, refused_by_reason
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, hanging, print_json
from crawlspace.state.refused_links import HOSTS_OF_REASON, LINKS_OF_HOST
from crawlspace.text import counted, quoted
from crawlspace.urls import MalformedUrl, parse

SHOWN = 100


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "List the links that were refused"
    explanation = (
        "List the links that were refused on the pages as last fetched, by reason: the rule that refuses each by the rules on disk, the URL, and a "
        f"page with the link. The crawl keeps a sample of them: the last {LINKS_OF_HOST} URLs for each reason and host, of the last "
        f"{HOSTS_OF_REASON:,} hosts for each reason. The others are counted. A link that the rules on disk admit is left out: the next crawl "
        f"finds it. The first {SHOWN} for each reason are printed. Makes no network requests. "
        "Exit status: 0 listed, whatever was found; 1 the collection or its store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--reason",
            choices=[reason.value for reason in REASONS],
            metavar="REASON",
            help="only links refused for this reason, as in domain or prefix",
        )
        parser.add_argument("--host", type=_host, metavar="HOST", help="only links to this host, as in www.example.com")
        parser.add_argument(
            "--all", action="store_true", help=f"print the whole sample, and not the first {SHOWN} for each reason"
        )
        parser.add_argument("--json", action="store_true", help="print the answer for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy refused demo --reason domain"))
        space = build_space(load_collection(paths.name, paths.settings))
        reason = None if opts.reason is None else Reason(opts.reason)
        most = None if opts.all else SHOWN
        with paths.store.reading() as opened:
            is_known = opened is not None
            found = [] if opened is None else refused_by_reason(opened.store, space, reason=reason, host=opts.host, most=most)
        if opts.json:
            print_json({"collection": paths.name, "refused": {one.reason.value: one.as_json() for one in found}})
        elif not is_known:
            print(f"{paths.name} has never been crawled: `scrapy crawl {paths.name}` does")
        elif not found:
            print("no refused links")
        else:
            print("\n\n".join("\n".join(_lines(one)) for one in found))
        return 0


def _host(text: str) -> str:
    try:
        url = parse(f"http://{text}/")
    except MalformedUrl:
        url = None
    if url is None or url.text != f"http://{url.host}/":
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is no host: write it without scheme, port and path, as in www.example.com"
        )
    return url.host


def _lines(of_reason: RefusedForReason) -> Iterator[str]:
    total = "" if of_reason.total is None else f"{of_reason.total:,}"
    yield hanging(f"{of_reason.reason:<20}{total:>12}   ", of_reason.reason.sentence)
    for link in of_reason.links:
        yield _line(link)
    if of_reason.links and of_reason.others:
        yield f"  and {counted(of_reason.others, 'other')}"
    elif of_reason.others:
        yield f"  {counted(of_reason.others, 'link')}, of which the sample has none"
    elif of_reason.total is None and len(of_reason.links) >= LINKS_OF_HOST:
        yield f"  and perhaps others: of each host the last {LINKS_OF_HOST} are kept, and the others are counted by reason only"


def _line(seen: SeenLink) -> str:
    reason = "" if seen.decision.reason is seen.link.reason else f"{seen.decision.reason} "
    decision = f"{reason}{seen.rule or '-'}"
    return f"  {decision:<20} {seen.printable}  on {seen.printable_page}"
